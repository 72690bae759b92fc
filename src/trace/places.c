// Lays out blocks that have no address.
//
// Sizes have classes, eight to each doubling, and a place is as large as its
// class. A block takes the place of its class that became free last, or else
// the next one above all others; its death frees the place. Places are never
// split or joined, so each step is O(1).
//
//   next   [ . 7 . . 2 . ]     chains of dead blocks, by number + 1; the place
//   free   class -> block + 1  of a dead block is its former address
//
// Invariant: a place belongs to at most one living block; a block is on a chain
// only while it is dead and its place is free.
#include "trace/writers.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"

// Steps of a doubling, and classes for all sizes of 64 bits.
enum { STEP_BITS = 3, STEPS = 1 << STEP_BITS, CLASSES = 64 * STEPS };

typedef struct layout {
  const tarn_trace *trace;
  uint64_t *addresses;
  uint32_t *next;
  uint32_t free[CLASSES];
  uint64_t end;  // of all places
} layout;

static bool is_placed(const tarn_trace_block *block) {
  return block->address != 0;
}

// The class that |size| belongs to, and how large its places are; 0: beyond 64
// bits.
static unsigned class_of(uint64_t size, uint64_t *out_bytes) {
  const uint64_t least = (uint64_t)TARN__PLACES_UNIT * STEPS;
  *out_bytes = 0;
  if (size <= least) {
    *out_bytes =
        (size + TARN__PLACES_UNIT - 1) / TARN__PLACES_UNIT * TARN__PLACES_UNIT;
    return (unsigned)(*out_bytes / TARN__PLACES_UNIT) - 1;
  }
  unsigned high = 63 - (unsigned)__builtin_clzll(size - 1);  // at least 12
  unsigned shift = high - STEP_BITS;
  uint64_t steps = ((size - 1) >> shift) + 1;  // STEPS + 1 .. 2 x STEPS
  if (steps <= UINT64_MAX >> shift) *out_bytes = steps << shift;
  return (high - 11) * STEPS + (unsigned)steps - STEPS - 1;
}

static tarn_status beyond(const tarn_trace *trace, uint64_t size) {
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "%s: a block of %llu bytes does not fit into 64 bits of "
                    "addresses",
                    trace->name, (unsigned long long)size);
}

// Above every block that has an address; a multiple of the unit, and not 0.
static tarn_status find_start(layout *l) {
  const uint64_t round = UINT64_C(1) << 21;
  size_t end = 0;
  for (size_t i = 0; i < l->trace->block_count; i++) {
    const tarn_trace_block *block = &l->trace->blocks[i];
    uint64_t upto = block->address + block->size;
    if (is_placed(block) && upto > end) end = upto;
  }
  for (size_t i = 0; i < l->trace->segment_count; i++) {
    uint64_t upto = l->trace->segments[i].address + l->trace->segments[i].size;
    if (upto > end) end = upto;
  }
  if (!tarn_size_add(end, round, &end)) return beyond(l->trace, round);
  l->end = end / round * round;
  return TARN_OK;
}

static tarn_status take(layout *l, uint32_t block) {
  uint64_t bytes = 0;
  uint64_t size = l->trace->blocks[block].size;
  unsigned class = class_of(size, &bytes);
  uint32_t dead = l->free[class];
  if (dead != 0) {
    l->free[class] = l->next[dead - 1];
    l->addresses[block] = l->addresses[dead - 1];
    return TARN_OK;
  }
  size_t end = 0;
  if (bytes == 0 || !tarn_size_add(l->end, bytes, &end)) {
    return beyond(l->trace, size);
  }
  l->addresses[block] = l->end;
  l->end = end;
  return TARN_OK;
}

static void give_back(layout *l, uint32_t block) {
  uint64_t bytes = 0;
  unsigned class = class_of(l->trace->blocks[block].size, &bytes);
  l->next[block] = l->free[class];
  l->free[class] = block + 1;
}

static tarn_status lay_out(layout *l) {
  const tarn_trace *trace = l->trace;
  tarn_status status = find_start(l);
  for (uint32_t i = 0; status == TARN_OK && i < trace->baseline_count; i++) {
    if (!is_placed(&trace->blocks[i])) status = take(l, i);
  }
  for (size_t i = 0; status == TARN_OK && i < trace->event_count; i++) {
    const tarn_trace_event *event = &trace->events[i];
    uint32_t block = event->block;
    if (block == TARN_TRACE_NO_BLOCK || is_placed(&trace->blocks[block]))
      continue;
    if (event->kind == TARN_TRACE_ALLOC) status = take(l, block);
    if (event->kind == TARN_TRACE_FREE) give_back(l, block);
  }
  return status;
}

// Copies known addresses; returns whether all are known.
static bool copy_known(const tarn_trace *trace, uint64_t *addresses) {
  bool all = true;
  for (size_t i = 0; i < trace->block_count; i++) {
    addresses[i] = trace->blocks[i].address;
    all = all && is_placed(&trace->blocks[i]);
  }
  return all;
}

static tarn_status fill(const tarn_trace *trace, uint64_t *addresses) {
  if (copy_known(trace, addresses)) return TARN_OK;
  layout l = {.trace = trace, .addresses = addresses};
  l.next = tarn__host_array(trace->block_count, sizeof *l.next);
  if (l.next == NULL) return TARN_E_NOMEM;
  tarn_status status = lay_out(&l);
  tarn__host_free_array(l.next, trace->block_count, sizeof *l.next);
  return status;
}

tarn_status tarn__places_make(const tarn_trace *trace,
                              uint64_t **out_addresses) {
  *out_addresses = NULL;
  if (trace->block_count == 0) return TARN_OK;
  uint64_t *addresses = tarn__host_array(trace->block_count, sizeof *addresses);
  if (addresses == NULL) return TARN_E_NOMEM;
  tarn_status status = fill(trace, addresses);
  if (status == TARN_OK) {
    *out_addresses = addresses;
  } else {
    tarn__places_free(trace, addresses);
  }
  return status;
}

void tarn__places_free(const tarn_trace *trace, uint64_t *addresses) {
  tarn__host_free_array(addresses, trace->block_count, sizeof *addresses);
}
