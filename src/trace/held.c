// Puts living blocks into segments, by a walk over both in order of address.
//
//   segments   |--------------|      |----------|
//   blocks       |==|  |===|  |==|     |====|  |==|
//   in           0     0      new      1       new: it sticks out
//
// Invariants: |order| is sorted by address; a block's owner is the number of an
// existing segment.
#include "trace/writers.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hostmem.h"
#include "base/status.h"

enum { UNIT = 512, JOINED = 2 << 20 };

typedef struct place {
  uint64_t address;
  uint32_t index;  // of a block or a segment
  uint32_t owner;  // of a block: the segment it is put into
} place;

typedef struct maker {
  const tarn_trace *trace;
  place *order;  // living blocks
  size_t count;
  place *own;  // the trace's segments
  tarn__trace_held held;
} maker;

// --- the two lists ---------------------------------------------------------

static int by_address(const void *one, const void *other) {
  const place *a = one;
  const place *b = other;
  if (a->address != b->address) return a->address < b->address ? -1 : 1;
  return (a->index > b->index) - (a->index < b->index);
}

static void sort(place *items, size_t count) {
  if (count != 0) qsort(items, count, sizeof *items, by_address);
}

static bool is_alive(const tarn_trace_block *block) {
  return block->died == TARN_TRACE_NEVER;
}

static void list_blocks(maker *m) {
  size_t at = 0;
  for (uint32_t i = 0; i < m->trace->block_count; i++) {
    if (!is_alive(&m->trace->blocks[i])) continue;
    m->order[at++] = (place){.address = m->held.addresses[i], .index = i};
  }
  sort(m->order, m->count);
}

static void list_segments(maker *m) {
  size_t count = m->trace->segment_count;
  for (uint32_t i = 0; i < count; i++) {
    m->held.segments[i].shown = m->trace->segments[i];
    m->own[i] = (place){.address = m->trace->segments[i].address, .index = i};
  }
  sort(m->own, count);
  m->held.segment_count = count;
}

// --- owners ----------------------------------------------------------------

static uint64_t size_of(const maker *m, const place *block) {
  return m->trace->blocks[block->index].size;
}

static uint64_t rounded(uint64_t address, uint64_t size) {
  size_t end = 0;
  uint64_t up = (size + UNIT - 1) / UNIT * UNIT;
  return up >= size && tarn_size_add(address, up, &end) ? up : size;
}

// Whether |block| lies in the segment |in|, which is used below |filled|.
static bool fits(const maker *m, const place *block,
                 const tarn_trace_segment *in, uint64_t filled) {
  uint64_t size = size_of(m, block);
  return block->address >= filled && size <= in->size &&
         block->address - in->address <= in->size - size;
}

// Makes a new segment for |block|, or widens the last new one.
static void put_alone(maker *m, place *block, uint64_t *end) {
  uint64_t gap = m->trace->segment_count == 0 ? JOINED : UNIT;
  uint64_t bytes = rounded(block->address, size_of(m, block));
  uint64_t stream = m->trace->blocks[block->index].stream;
  tarn__trace_held_segment *last = NULL;
  assert(m->held.segments != NULL);
  if (m->held.segment_count > m->trace->segment_count) {
    last = m->held.segments + m->held.segment_count - 1;
  }
  if (last == NULL || last->shown.stream != stream || block->address < *end ||
      block->address - *end >= gap) {
    last = m->held.segments + m->held.segment_count++;
    last->shown =
        (tarn_trace_segment){.address = block->address, .stream = stream};
  }
  *end = block->address + size_of(m, block);
  last->shown.size = block->address + bytes - last->shown.address;
  block->owner = (uint32_t)m->held.segment_count - 1;
}

static void find_owners(maker *m) {
  size_t next = 0;
  uint64_t filled = 0;     // of the segment before |next|
  uint64_t alone_end = 0;  // of the last new segment
  for (size_t i = 0; i < m->count; i++) {
    place *block = &m->order[i];
    while (next < m->trace->segment_count &&
           m->own[next].address <= block->address) {
      filled = m->own[next++].address;
    }
    const place *own = next == 0 ? NULL : &m->own[next - 1];
    if (own == NULL ||
        !fits(m, block, &m->trace->segments[own->index], filled)) {
      put_alone(m, block, &alone_end);
      continue;
    }
    block->owner = own->index;
    filled = block->address + size_of(m, block);
  }
}

// --- blocks by owner -------------------------------------------------------

static void group(maker *m) {
  tarn__trace_held_segment *segments = m->held.segments;
  size_t first = 0;
  for (size_t i = 0; i < m->count; i++)
    segments[m->order[i].owner].count++;
  for (size_t i = 0; i < m->held.segment_count; i++) {
    segments[i].first = first;
    first += segments[i].count;
    segments[i].count = 0;
  }
  for (size_t i = 0; i < m->count; i++) {
    tarn__trace_held_segment *in = &segments[m->order[i].owner];
    m->held.blocks[in->first + in->count++] = m->order[i].index;
  }
}

// --- the whole -------------------------------------------------------------

static size_t count_alive(const tarn_trace *trace) {
  size_t count = 0;
  for (size_t i = 0; i < trace->block_count; i++)
    count += is_alive(&trace->blocks[i]);
  return count;
}

static tarn_status make_room(maker *m) {
  m->count = count_alive(m->trace);
  m->held.block_count = m->count;
  if (!tarn_size_add(m->trace->segment_count, m->count,
                     &m->held.segment_room)) {
    return tarn__fail(TARN_E_NOMEM, "%s: too many segments", m->trace->name);
  }
  m->order = tarn__host_array(m->count, sizeof *m->order);
  m->own = tarn__host_array(m->trace->segment_count, sizeof *m->own);
  m->held.blocks = tarn__host_array(m->count, sizeof *m->held.blocks);
  m->held.segments =
      tarn__host_array(m->held.segment_room, sizeof *m->held.segments);
  return m->order != NULL && m->own != NULL && m->held.blocks != NULL &&
                 m->held.segments != NULL
             ? TARN_OK
             : TARN_E_NOMEM;
}

tarn_status tarn__held_make(const tarn_trace *trace, const uint64_t *addresses,
                            tarn__trace_held *out_held) {
  maker m = {.trace = trace, .held = {.trace = trace, .addresses = addresses}};
  tarn_status status = make_room(&m);
  if (status == TARN_OK) {
    list_blocks(&m);
    list_segments(&m);
    find_owners(&m);
    group(&m);
  } else {
    tarn__held_free(&m.held);
  }
  tarn__host_free_array(m.own, trace->segment_count, sizeof *m.own);
  tarn__host_free_array(m.order, m.count, sizeof *m.order);
  *out_held = m.held;
  return status;
}

void tarn__held_free(tarn__trace_held *held) {
  tarn__host_free_array(held->segments, held->segment_room,
                        sizeof *held->segments);
  tarn__host_free_array(held->blocks, held->block_count, sizeof *held->blocks);
  *held = (tarn__trace_held){0};
}

uint64_t tarn__held_bytes(const tarn__trace_held *held,
                          const tarn__trace_held_segment *segment,
                          size_t index) {
  const uint32_t *blocks = held->blocks + segment->first;
  uint64_t address = held->addresses[blocks[index]];
  uint64_t end = index + 1 < segment->count
                     ? held->addresses[blocks[index + 1]]
                     : segment->shown.address + segment->shown.size;
  uint64_t bytes = rounded(address, held->trace->blocks[blocks[index]].size);
  return bytes < end - address ? bytes : end - address;
}
