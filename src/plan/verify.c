// A plan is checked by a sweep over time that shares nothing with the solvers:
// of this room only the checks of problems, and memory, are used.
//
// Buffers are ranked by arena, then offset. The sweep keeps the ranks of the
// live buffers; a buffer that begins is compared with its neighbours among
// them:
//
//     offset ^   |  d  |
//            |   +-----+  <- the next one above must begin no lower
//            |   |  new one begins here
//            |   +-----+
//            |   |c|b|    <- those below must end no higher
//            +--------------> time
//
// Invariant: no two live buffers share a byte, except the two of a pair in
// their shared step, which begin at one offset. Three buffers cannot be pairs
// of each other in one step, as a giver ends with the step and began before it.
// So at most two are at one offset, and it suffices to compare a new buffer
// with three neighbours below and two above.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "plan/memory.h"
#include "plan/problem.h"

// The neighbours that are looked at: below, and above.
static const int looked_at[] = {3, 2};

typedef struct place {
  uint64_t offset;
  uint32_t arena;
  uint32_t buffer;
} place;

// A rank is needed from here on, or until here.
typedef struct event {
  uint64_t step;
  uint32_t rank;
  bool begins;
} event;

// A set of small numbers: one bit for each, and above each 64 words a word
// whose bits tell which of them are not zero, up to a single word:
//
//   level 2                 1...
//   level 1      1...1.1.   ....   ...
//   level 0   .11.  ....  1...   ....
//
// So a neighbour of a number is found with one word of each level: six at most.
typedef struct set {
  uint64_t *levels[6];  // the bits first
  size_t level_count;
} set;

typedef struct sweep {
  const tarn_plan_problem *problem;
  const uint64_t *offsets;
  const uint32_t *arenas;  // NULL: all in the first
  place *places;           // by rank
  event *events;
  size_t event_count;
  tarn_plan_pair *pairs;  // in order
  set live;               // ranks
  tarn__plan_memory memory;
} sweep;

// --- each buffer by itself ---------------------------------------------------

static uint32_t arena_of(const sweep *s, size_t index) {
  return s->arenas == NULL ? 0 : s->arenas[index];
}

static tarn_status check_arena(const sweep *s, size_t index) {
  const tarn_plan_buffer *b = &s->problem->buffers[index];
  uint32_t arena = arena_of(s, index);
  size_t arenas = tarn__plan_arena_count(s->problem);
  if (arena >= arenas) {
    return tarn__fail(TARN_E_CORRUPT, "buffer %zu: in arena %u of %zu", index,
                      arena, arenas);
  }
  if ((b->flags & TARN_PLAN_IN_ARENA) != 0 && b->arena != arena) {
    return tarn__fail(TARN_E_CORRUPT,
                      "buffer %zu: in arena %u, but it must lie in %u", index,
                      arena, b->arena);
  }
  return TARN_OK;
}

static tarn_status check_offset(const sweep *s, size_t index) {
  const tarn_plan_buffer *b = &s->problem->buffers[index];
  uint64_t offset = s->offsets[index];
  uint32_t arena = arena_of(s, index);
  uint64_t capacity = tarn__plan_capacity(s->problem, arena);
  uint64_t end;
  if ((b->flags & TARN_PLAN_FIXED) != 0 && b->offset != offset) {
    return tarn__fail(TARN_E_CORRUPT,
                      "buffer %zu: at offset %" PRIu64
                      ", but it is fixed at %" PRIu64,
                      index, offset, b->offset);
  }
  if (offset % tarn__plan_alignment(b) != 0) {
    return tarn__fail(TARN_E_CORRUPT,
                      "buffer %zu: its offset %" PRIu64
                      " is not a multiple of its alignment %" PRIu64,
                      index, offset, b->alignment);
  }
  if (__builtin_add_overflow(offset, b->size, &end)) {
    return tarn__fail(TARN_E_CORRUPT,
                      "buffer %zu: its offset %" PRIu64 " and size %" PRIu64
                      " are 2^64 or more",
                      index, offset, b->size);
  }
  if (capacity != 0 && end > capacity) {
    return tarn__fail(TARN_E_CORRUPT,
                      "buffer %zu: at [%" PRIu64 ", %" PRIu64
                      ") in arena %u, which has %" PRIu64 " bytes",
                      index, offset, end, arena, capacity);
  }
  return TARN_OK;
}

static tarn_status check_each(const sweep *s) {
  for (size_t i = 0; i < s->problem->count; i++) {
    TARN__TRY(check_arena(s, i));
    TARN__TRY(check_offset(s, i));
  }
  return TARN_OK;
}

// --- ranks and pairs ---------------------------------------------------------

static int compare(uint64_t a, uint64_t b) {
  return (a > b) - (a < b);
}

static int by_place(const void *a, const void *b) {
  const place *x = a;
  const place *y = b;
  if (x->arena != y->arena) return compare(x->arena, y->arena);
  if (x->offset != y->offset) return compare(x->offset, y->offset);
  return compare(x->buffer, y->buffer);
}

static int by_giver(const void *a, const void *b) {
  const tarn_plan_pair *x = a;
  const tarn_plan_pair *y = b;
  if (x->giver != y->giver) return compare(x->giver, y->giver);
  return compare(x->taker, y->taker);
}

static tarn_status rank_all(sweep *s) {
  size_t count = s->problem->count;
  s->places = tarn__plan_array(&s->memory, count + 1, sizeof *s->places);
  if (s->places == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < count; i++) {
    s->places[i] = (place){s->offsets[i], arena_of(s, i), (uint32_t)i};
  }
  qsort(s->places, count, sizeof *s->places, by_place);
  return TARN_OK;
}

static tarn_status sort_pairs(sweep *s) {
  size_t count = s->problem->pair_count;
  if (count == 0) return TARN_OK;
  s->pairs = tarn__plan_array(&s->memory, count, sizeof *s->pairs);
  if (s->pairs == NULL) return TARN_E_NOMEM;
  memcpy(s->pairs, s->problem->pairs, count * sizeof *s->pairs);
  qsort(s->pairs, count, sizeof *s->pairs, by_giver);
  return TARN_OK;
}

static bool is_pair(const sweep *s, uint32_t giver, uint32_t taker) {
  const tarn_plan_pair key = {giver, taker};
  return s->pairs != NULL && bsearch(&key, s->pairs, s->problem->pair_count,
                                     sizeof key, by_giver) != NULL;
}

// --- what is live ------------------------------------------------------------

// Invariant: bit b of word w of a level is set if and only if word 64 w + b of
// the level below is not zero. The highest level is one word.

#define NONE UINT32_MAX

// An empty set for the numbers below |count|, which is below 2^32.
static tarn_status make_set(set *s, size_t count, tarn__plan_memory *memory) {
  do {
    count = count / 64 + 1;
    s->levels[s->level_count++] =
        tarn__plan_array(memory, count, sizeof(uint64_t));
  } while (count > 1);
  return tarn__plan_memory_status(memory);
}

static void add(set *s, uint32_t number) {
  for (size_t i = 0; i < s->level_count; i++, number /= 64) {
    uint64_t *word = &s->levels[i][number / 64];
    bool was_empty = *word == 0;
    *word |= UINT64_C(1) << number % 64;
    if (!was_empty) return;
  }
}

static void take_out(set *s, uint32_t number) {
  for (size_t i = 0; i < s->level_count; i++, number /= 64) {
    uint64_t *word = &s->levels[i][number / 64];
    *word &= ~(UINT64_C(1) << number % 64);
    if (*word != 0) return;
  }
}

// The lowest bit that is set in |word|, which is not 0, if the neighbour is
// above; else the highest.
static uint32_t nearest(uint64_t word, bool above) {
  return (uint32_t)(above ? __builtin_ctzll(word) : 63 - __builtin_clzll(word));
}

// The least member above |number|, or the greatest below it: up to the level at
// which there is a neighbour, and down along its edge.
static uint32_t neighbour(const set *s, uint32_t number, bool above) {
  for (size_t i = 0; i < s->level_count; i++, number /= 64) {
    uint64_t bit = UINT64_C(1) << number % 64;
    uint64_t beyond = above ? ~(2 * bit - 1) : bit - 1;
    uint64_t left = s->levels[i][number / 64] & beyond;
    if (left == 0) continue;
    number = number / 64 * 64 + nearest(left, above);
    while (i-- > 0)
      number = number * 64 + nearest(s->levels[i][number], above);
    return number;
  }
  return NONE;
}

// --- the sweep ---------------------------------------------------------------

// Ends come before beginnings.
static int by_step(const void *a, const void *b) {
  const event *x = a;
  const event *y = b;
  if (x->step != y->step) return compare(x->step, y->step);
  if (x->begins != y->begins) return x->begins ? 1 : -1;
  return compare(x->rank, y->rank);
}

static tarn_status make_room(sweep *s) {
  size_t parts = 1;
  for (size_t i = 0; i < s->problem->count; i++) {
    const tarn_plan_buffer *b = &s->problem->buffers[i];
    if (!tarn_size_add(parts, b->gap_count, &parts) ||
        !tarn_size_add(parts, 1, &parts)) {
      return tarn__fail(TARN_E_NOMEM, "plan: too many gaps");
    }
  }
  s->events = tarn__plan_array(&s->memory, parts, 2 * sizeof *s->events);
  return tarn__plan_memory_status(&s->memory);
}

static tarn_status make_events(sweep *s) {
  TARN__TRY(make_room(s));
  for (uint32_t rank = 0; rank < s->problem->count; rank++) {
    const tarn_plan_buffer *b = &s->problem->buffers[s->places[rank].buffer];
    for (size_t i = 0; i <= b->gap_count; i++) {
      tarn_plan_gap run = tarn__plan_run_of(b, i);
      s->events[s->event_count++] = (event){run.first, rank, true};
      s->events[s->event_count++] = (event){run.last, rank, false};
    }
  }
  qsort(s->events, s->event_count, sizeof *s->events, by_step);
  return TARN_OK;
}

static uint64_t end_of(const sweep *s, const place *at) {
  return at->offset + s->problem->buffers[at->buffer].size;
}

// Of two buffers that are needed in one step.
static bool may_both_lie(const sweep *s, const place *a, const place *b) {
  if (a->arena != b->arena) return true;
  if (a->offset >= end_of(s, b) || b->offset >= end_of(s, a)) return true;
  return a->offset == b->offset &&
         (is_pair(s, a->buffer, b->buffer) || is_pair(s, b->buffer, a->buffer));
}

static tarn_status check_two(const sweep *s, uint64_t step, const place *a,
                             const place *b) {
  if (may_both_lie(s, a, b)) return TARN_OK;
  const place *one = a->buffer < b->buffer ? a : b;
  const place *other = one == a ? b : a;
  return tarn__fail(TARN_E_CORRUPT,
                    "buffer %u at [%" PRIu64 ", %" PRIu64
                    ") and buffer %u at [%" PRIu64 ", %" PRIu64
                    ") share bytes in time step %" PRIu64,
                    one->buffer, one->offset, end_of(s, one), other->buffer,
                    other->offset, end_of(s, other), step);
}

static tarn_status begin(sweep *s, const event *e) {
  for (int above = 0; above < 2; above++) {
    uint32_t at = e->rank;
    for (int i = 0; i < looked_at[above]; i++) {
      at = neighbour(&s->live, at, above != 0);
      if (at == NONE) break;
      TARN__TRY(check_two(s, e->step, &s->places[e->rank], &s->places[at]));
    }
  }
  add(&s->live, e->rank);
  return TARN_OK;
}

static tarn_status sweep_over(sweep *s) {
  TARN__TRY(make_set(&s->live, s->problem->count, &s->memory));
  for (const event *e = s->events; e < s->events + s->event_count; e++) {
    if (!e->begins) {
      take_out(&s->live, e->rank);
    } else {
      TARN__TRY(begin(s, e));
    }
  }
  return TARN_OK;
}

// --- the whole ---------------------------------------------------------------

// Places are in the order of arenas.
static tarn_status add_heights(const sweep *s, uint64_t *out_height) {
  uint64_t sum = 0;
  uint64_t height = 0;
  for (size_t i = 0; i < s->problem->count; i++) {
    const place *at = &s->places[i];
    uint64_t end = end_of(s, at);
    if (height < end) height = end;
    if (i + 1 < s->problem->count && at[1].arena == at->arena) continue;
    if (__builtin_add_overflow(sum, height, &sum)) {
      return tarn__fail(TARN_E_CORRUPT,
                        "arena %u: with its height, %" PRIu64
                        ", all arenas are 2^64 bytes or more",
                        at->arena, height);
    }
    height = 0;
  }
  *out_height = sum;
  return TARN_OK;
}

static tarn_status check(sweep *s, uint64_t *out_height) {
  TARN__TRY(check_each(s));
  TARN__TRY(rank_all(s));
  TARN__TRY(sort_pairs(s));
  TARN__TRY(make_events(s));
  TARN__TRY(sweep_over(s));
  return add_heights(s, out_height);
}

tarn_status tarn_plan_verify(const tarn_plan_problem *problem,
                             const uint64_t *offsets, const uint32_t *arenas,
                             uint64_t *out_height) {
  if (out_height == NULL) return tarn__fail(TARN_E_INVALID, "verify: NULL");
  *out_height = 0;
  TARN__TRY(tarn__plan_problem_check(problem));
  if (offsets == NULL && problem->count > 0) {
    return tarn__fail(TARN_E_INVALID, "verify: %zu offsets at NULL",
                      problem->count);
  }
  sweep s = {.problem = problem, .offsets = offsets, .arenas = arenas};
  tarn_status status = check(&s, out_height);
  tarn__plan_memory_free(&s.memory);
  return status;
}
