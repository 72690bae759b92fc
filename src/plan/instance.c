// A problem becomes an instance in three passes: buffers are joined to items
// and items cut into pieces by time; pieces' ends, in order, make sections;
// sizes are divided by the unit.
//
// A section ends at the first end of a piece after a piece has begun in it: the
// set of live pieces is maximal then. So a piece is in at least one section,
// and two pieces share a section exactly if they share a time step.
//
// The unit divides all sizes and fixed offsets. Some plan of least height has
// only offsets that are multiples of it: push everything down as far as it
// goes, and each offset is an end, a fixed offset or such a number rounded up
// to an alignment; so each alignment must divide the unit or be divided by it.
// A unit that became smaller for one alignment may miss one that it was fine
// for: sizes of 12 are units for an alignment of 6, the units of 4 that one of
// 8 makes of them are not.
#include "plan/instance.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

// While an instance is made, a piece's first and last are steps, beside it.
typedef struct end {
  uint64_t step;
  uint32_t piece;
  bool opens;
} end;

typedef struct making {
  const tarn_plan_problem *problem;
  const bool *left_out;
  const bool *merged;
  uint32_t *taker_of;  // by buffer: its taker; UINT32_MAX: none
  bool *takes;         // by buffer
  tarn__plan_instance *in;
  end *ends;  // two by two, by piece, before they are sorted
  tarn__plan_memory memory;
} making;

// --- items and pieces -------------------------------------------------------

static bool is_in(const making *m, size_t buffer) {
  return tarn__plan_is_in(m->left_out, buffer);
}

static tarn_status join_pairs(making *m) {
  size_t count = m->problem->count;
  m->taker_of = tarn__plan_array(&m->memory, count + 1, sizeof *m->taker_of);
  m->takes = tarn__plan_array(&m->memory, count + 1, sizeof *m->takes);
  if (m->memory.failed) return TARN_E_NOMEM;
  memset(m->taker_of, 0xff, count * sizeof *m->taker_of);
  for (size_t i = 0; i < m->problem->pair_count; i++) {
    if (m->merged == NULL || !m->merged[i]) continue;
    const tarn_plan_pair *pair = &m->problem->pairs[i];
    m->taker_of[pair->giver] = (uint32_t)pair->taker;
    m->takes[pair->taker] = true;
  }
  return TARN_OK;
}

// A buffer has a piece more than gaps; a merged pair shares a step, which is a
// piece of its own: no more than one for each of the two.
static tarn_status make_room(making *m) {
  size_t pieces = 0;
  for (size_t i = 0; i < m->problem->count; i++) {
    if (is_in(m, i)) pieces += 2 + m->problem->buffers[i].gap_count;
    if (pieces >= UINT32_MAX / 2) {
      return tarn__fail(TARN_E_INVALID, "plan: more than 2^31 pieces");
    }
  }
  tarn__plan_instance *in = m->in;
  tarn__plan_memory *memory = &in->memory;
  in->buffer_count = m->problem->count;
  in->items = tarn__plan_array(memory, in->buffer_count + 1, sizeof *in->items);
  in->pieces = tarn__plan_array(memory, pieces + 1, sizeof *in->pieces);
  in->item_of =
      tarn__plan_array(memory, in->buffer_count + 1, sizeof *in->item_of);
  in->item_of_piece =
      tarn__plan_array(memory, pieces + 1, sizeof *in->item_of_piece);
  m->ends = tarn__plan_array(&m->memory, 2 * pieces + 2, sizeof *m->ends);
  return memory->failed || m->memory.failed ? TARN_E_NOMEM : TARN_OK;
}

static void add_piece(making *m, tarn__plan_item *item, uint64_t first,
                      uint64_t last, uint64_t size) {
  uint32_t number = item->piece + item->piece_count++;
  m->in->pieces[number].size = size;
  m->in->item_of_piece[number] = (uint32_t)(item - m->in->items);
  m->ends[2 * (size_t)number] = (end){first, number, true};
  m->ends[2 * (size_t)number + 1] = (end){last, number, false};
  item->length += last - first;
  if (item->size < size) item->size = size;
}

// The pieces of one buffer, from the step |from| up to |to|.
static void add_pieces(making *m, tarn__plan_item *item,
                       const tarn_plan_buffer *b, uint64_t from, uint64_t to) {
  for (size_t i = 0; i <= b->gap_count; i++) {
    tarn_plan_gap run = tarn__plan_run_of(b, i);
    if (run.first < from) run.first = from;
    if (run.last > to) run.last = to;
    if (run.first < run.last) add_piece(m, item, run.first, run.last, b->size);
  }
}

static bool join_place(tarn__plan_item *item, const tarn_plan_buffer *b) {
  uint64_t both =
      tarn__plan_both_aligned(item->alignment, tarn__plan_alignment(b));
  if (both == 0) return false;
  item->alignment = both;
  if ((b->flags & TARN_PLAN_FIXED) != 0) {
    item->fixed = true;
    item->offset = b->offset;
  }
  return true;
}

// |buffer| and the chain of its takers as one item.
static tarn_status add_item(making *m, size_t buffer) {
  uint32_t number = (uint32_t)m->in->item_count++;
  tarn__plan_item *item = &m->in->items[number];
  *item =
      (tarn__plan_item){.alignment = 1, .piece = (uint32_t)m->in->piece_count};
  const tarn_plan_buffer *before = NULL;
  for (uint32_t at = (uint32_t)buffer; at != UINT32_MAX; at = m->taker_of[at]) {
    const tarn_plan_buffer *b = &m->problem->buffers[at];
    bool gives = m->taker_of[at] != UINT32_MAX;
    m->in->item_of[at] = number;
    if (!join_place(item, b)) {
      return tarn__fail(TARN_E_INVALID,
                        "buffer %u: its alignment and those of what it shares "
                        "a place with are too much together",
                        at);
    }
    if (before != NULL) {  // the step of both
      add_piece(m, item, b->first, b->first + 1,
                before->size > b->size ? before->size : b->size);
    }
    add_pieces(m, item, b, b->first + (before != NULL), b->last - gives);
    before = b;
  }
  m->in->piece_count += item->piece_count;
  return TARN_OK;
}

static tarn_status add_items(making *m) {
  for (size_t i = 0; i < m->problem->count; i++) {
    if (!is_in(m, i)) {
      m->in->item_of[i] = TARN__PLAN_NO_ITEM;
    } else if (!m->takes[i]) {
      TARN__TRY(add_item(m, i));
    }
  }
  return TARN_OK;
}

// --- sections ---------------------------------------------------------------

// By time step; ends come before beginnings.
static int by_step(const void *x, const void *y) {
  const end *a = x;
  const end *b = y;
  if (a->step != b->step) return a->step < b->step ? -1 : 1;
  if (a->opens != b->opens) return a->opens ? 1 : -1;
  return (a->piece > b->piece) - (a->piece < b->piece);
}

static void cut_sections(making *m) {
  tarn__plan_instance *in = m->in;
  size_t count = 2 * in->piece_count;
  uint32_t section = 0;
  bool begun = false;
  assert(m->ends != NULL);
  qsort(m->ends, count, sizeof *m->ends, by_step);
  for (size_t i = 0; i < count; i++) {
    const end *e = &m->ends[i];
    if (e->opens) {
      in->pieces[e->piece].first = section;
      begun = true;
      continue;
    }
    section += begun;
    begun = false;
    in->pieces[e->piece].last = section;
  }
  in->section_count = section;
}

static void span_items(tarn__plan_instance *in) {
  for (size_t i = 0; i < in->item_count; i++) {
    tarn__plan_item *item = &in->items[i];
    const tarn__plan_piece *pieces = tarn__plan_pieces(in, item);
    item->first = pieces[0].first;
    item->last = pieces[item->piece_count - 1].last;
  }
}

// --- units and sums ---------------------------------------------------------

static bool suits(uint64_t unit, uint64_t alignment) {
  return unit % alignment == 0 || alignment % unit == 0;
}

// Each round that changes the unit at least halves it.
static uint64_t suit_alignments(const tarn__plan_instance *in, uint64_t unit) {
  uint64_t before = 0;
  while (unit != before) {
    before = unit;
    for (size_t i = 0; i < in->item_count; i++) {
      uint64_t alignment = in->items[i].alignment;
      if (!suits(unit, alignment)) unit = tarn__plan_gcd(unit, alignment);
    }
  }
  return unit;
}

static void choose_unit(tarn__plan_instance *in) {
  uint64_t unit = 0;
  for (size_t i = 0; i < in->piece_count; i++) {
    unit = tarn__plan_gcd(unit, in->pieces[i].size);
  }
  for (size_t i = 0; i < in->item_count; i++) {
    if (in->items[i].fixed) unit = tarn__plan_gcd(unit, in->items[i].offset);
  }
  in->unit = unit == 0 ? 1 : suit_alignments(in, unit);
}

static void divide(tarn__plan_instance *in) {
  for (size_t i = 0; i < in->piece_count; i++)
    in->pieces[i].size /= in->unit;
  for (size_t i = 0; i < in->item_count; i++) {
    tarn__plan_item *item = &in->items[i];
    item->size /= in->unit;
    item->offset /= in->unit;
    item->alignment /= tarn__plan_gcd(item->alignment, in->unit);
  }
}

static tarn_status sum_up(tarn__plan_instance *in) {
  in->live =
      tarn__plan_array(&in->memory, in->section_count + 1, sizeof *in->live);
  if (in->live == NULL) return TARN_E_NOMEM;
  // Differences from section to section first: sums that wrap come back.
  for (size_t i = 0; i < in->piece_count; i++) {
    in->live[in->pieces[i].first] += in->pieces[i].size;
    in->live[in->pieces[i].last] -= in->pieces[i].size;
  }
  uint64_t live = 0;
  for (size_t i = 0; i < in->section_count; i++) {
    live = in->live[i] += live;
    if (in->bound < live) in->bound = live;
  }
  for (size_t i = 0; i < in->item_count; i++) {
    const tarn__plan_item *item = &in->items[i];
    uint64_t top = item->fixed ? item->offset + item->size : 0;
    if (in->bound < top) in->bound = top;
  }
  return TARN_OK;
}

// --- the whole --------------------------------------------------------------

static tarn_status make(making *m) {
  TARN__TRY(join_pairs(m));
  TARN__TRY(make_room(m));
  TARN__TRY(add_items(m));
  cut_sections(m);
  span_items(m->in);
  choose_unit(m->in);
  divide(m->in);
  return sum_up(m->in);
}

tarn_status tarn__plan_instance_make(const tarn_plan_problem *problem,
                                     const bool *left_out, const bool *merged,
                                     tarn__plan_instance *out_instance) {
  *out_instance = (tarn__plan_instance){0};
  making m = {.problem = problem,
              .left_out = left_out,
              .merged = merged,
              .in = out_instance};
  tarn_status status = make(&m);
  tarn__plan_memory_free(&m.memory);
  if (status != TARN_OK) tarn__plan_instance_free(out_instance);
  return status;
}

void tarn__plan_instance_free(tarn__plan_instance *in) {
  tarn__plan_memory_free(&in->memory);
  *in = (tarn__plan_instance){0};
}

tarn_status tarn__plan_bucket(tarn__plan_memory *memory, const uint32_t *keys,
                              size_t stride, size_t count, size_t buckets,
                              uint32_t **out_begin, uint32_t **out_sorted) {
  const char *at = (const char *)keys;
  uint32_t *begin = tarn__plan_array(memory, buckets + 1, sizeof *begin);
  uint32_t *out = tarn__plan_array(memory, count + 1, sizeof *out);
  uint32_t sum = 0;
  if (memory->failed) return TARN_E_NOMEM;
  for (size_t i = 0; i < count; i++)
    begin[*(const uint32_t *)(const void *)(at + i * stride)]++;
  for (size_t i = 0; i <= buckets; i++)
    begin[i] = sum += begin[i];
  for (size_t i = count; i-- > 0;)
    out[--begin[*(const uint32_t *)(const void *)(at + i * stride)]] =
        (uint32_t)i;
  *out_begin = begin;
  *out_sorted = out;
  return TARN_OK;
}

uint64_t tarn__plan_instance_height(const tarn__plan_instance *instance,
                                    const uint64_t *offsets) {
  uint64_t height = 0;
  for (size_t i = 0; i < instance->item_count; i++) {
    uint64_t top = offsets[i] + instance->items[i].size;
    if (height < top) height = top;
  }
  return height;
}

bool tarn__plan_items_meet(const tarn__plan_instance *in, uint32_t a,
                           uint32_t b) {
  const tarn__plan_item *x = &in->items[a], *y = &in->items[b];
  if (x->piece_count == 1 && y->piece_count == 1) return true;
  const tarn__plan_piece *p = tarn__plan_pieces(in, x);
  const tarn__plan_piece *q = tarn__plan_pieces(in, y);
  const tarn__plan_piece *p_end = p + x->piece_count;
  const tarn__plan_piece *q_end = q + y->piece_count;
  while (p < p_end && q < q_end) {
    if (p->first < q->last && q->first < p->last) return true;
    if (p->last < q->last) {
      p++;
    } else {
      q++;
    }
  }
  return false;
}
