// All checks of a problem and their error texts are here; later code relies on
// them.
#include "plan/problem.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/hostmem.h"
#include "base/status.h"

// The sum of all sizes, alignments and fixed ends stays below this.
#define MOST (UINT64_C(1) << 63)

static tarn_status check_gaps(const tarn_plan_buffer *b, size_t index) {
  if (b->gap_count > 0 && b->gaps == NULL) {
    return tarn__fail(TARN_E_INVALID, "buffer %zu: %zu gaps at NULL", index,
                      b->gap_count);
  }
  uint64_t after = b->first;
  for (size_t i = 0; i < b->gap_count; i++) {
    const tarn_plan_gap *gap = &b->gaps[i];
    if (gap->first <= after || gap->last <= gap->first ||
        gap->last >= b->last) {
      return tarn__fail(TARN_E_INVALID,
                        "buffer %zu: gap %zu, [%" PRIu64 ", %" PRIu64
                        "), is empty, or does not lie in order within "
                        "[%" PRIu64 ", %" PRIu64 ") with steps on both sides",
                        index, i, gap->first, gap->last, b->first, b->last);
    }
    after = gap->last;
  }
  return TARN_OK;
}

static tarn_status check_offset(const tarn_plan_buffer *b, size_t index) {
  if ((b->flags & TARN_PLAN_FIXED) == 0) return TARN_OK;
  if (b->offset % tarn__plan_alignment(b) == 0) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "buffer %zu: the fixed offset %" PRIu64
                    " is not a multiple of its alignment %" PRIu64,
                    index, b->offset, b->alignment);
}

// Counts |part| of a buffer in, of what all together stays below 2^63.
static tarn_status add_up(uint64_t part, size_t index, uint64_t *sum) {
  if (part >= MOST - *sum) {
    return tarn__fail(TARN_E_INVALID,
                      "buffer %zu: the sum of sizes, alignments and fixed "
                      "offsets up to it is 2^63 or more",
                      index);
  }
  *sum += part;
  return TARN_OK;
}

tarn_status tarn__plan_check_buffer(const tarn_plan_buffer *b, size_t index,
                                    uint64_t *sum, tarn__plan_part_of *wrong) {
  *wrong = TARN__PLAN_PART_SIZE;
  if (b->size == 0) {
    return tarn__fail(TARN_E_INVALID, "buffer %zu: its size is 0", index);
  }
  *wrong = TARN__PLAN_PART_STEPS;
  if (b->last <= b->first) {
    return tarn__fail(TARN_E_INVALID,
                      "buffer %zu: needed in no time step of [%" PRIu64
                      ", %" PRIu64 ")",
                      index, b->first, b->last);
  }
  *wrong = TARN__PLAN_PART_GAPS;
  TARN__TRY(check_gaps(b, index));
  *wrong = TARN__PLAN_PART_OFFSET;
  TARN__TRY(check_offset(b, index));
  *wrong = TARN__PLAN_PART_SIZE;
  bool fixed = (b->flags & TARN_PLAN_FIXED) != 0;
  TARN__TRY(add_up(b->size, index, sum));
  TARN__TRY(add_up(tarn__plan_alignment(b) - 1, index, sum));
  return add_up(fixed ? b->offset : 0, index, sum);
}

// The checks that need the problem.
static tarn_status check_arena(const tarn_plan_problem *problem, size_t index) {
  const uint32_t known = TARN_PLAN_FIXED | TARN_PLAN_IN_ARENA;
  const tarn_plan_buffer *b = &problem->buffers[index];
  size_t arenas = tarn__plan_arena_count(problem);
  bool bound = (b->flags & TARN_PLAN_IN_ARENA) != 0;
  if ((b->flags & ~known) != 0) {
    return tarn__fail(TARN_E_INVALID, "buffer %zu: unknown flags %#x", index,
                      b->flags & ~known);
  }
  if (bound && b->arena >= arenas) {
    return tarn__fail(TARN_E_INVALID, "buffer %zu: arena %u of %zu", index,
                      b->arena, arenas);
  }
  if ((b->flags & TARN_PLAN_FIXED) != 0 && arenas > 1 && !bound) {
    return tarn__fail(TARN_E_INVALID,
                      "buffer %zu: its offset is fixed, but its arena is not",
                      index);
  }
  return TARN_OK;
}

tarn_status tarn__plan_check_pair(const tarn_plan_problem *problem,
                                  size_t index) {
  const tarn_plan_pair *pair = &problem->pairs[index];
  if (pair->giver >= problem->count || pair->taker >= problem->count) {
    return tarn__fail(TARN_E_INVALID, "pair %zu: buffers %zu and %zu of %zu",
                      index, pair->giver, pair->taker, problem->count);
  }
  const tarn_plan_buffer *giver = &problem->buffers[pair->giver];
  const tarn_plan_buffer *taker = &problem->buffers[pair->taker];
  if (pair->giver == pair->taker || giver->last - 1 != taker->first) {
    return tarn__fail(TARN_E_INVALID,
                      "pair %zu: the last time step of buffer %zu, %" PRIu64
                      ", is not the first of buffer %zu, %" PRIu64,
                      index, pair->giver, giver->last - 1, pair->taker,
                      taker->first);
  }
  if (giver->first == taker->first) {
    return tarn__fail(TARN_E_INVALID,
                      "pair %zu: buffer %zu has no time step of its own before "
                      "%" PRIu64 ", in which it gives its place",
                      index, pair->giver, taker->first);
  }
  return TARN_OK;
}

static tarn_status check_parts(const tarn_plan_problem *problem) {
  if (problem->count > 0 && problem->buffers == NULL) {
    return tarn__fail(TARN_E_INVALID, "plan: %zu buffers at NULL",
                      problem->count);
  }
  if (problem->pair_count > 0 && problem->pairs == NULL) {
    return tarn__fail(TARN_E_INVALID, "plan: %zu pairs at NULL",
                      problem->pair_count);
  }
  if (problem->arena_count > 0 && problem->capacities == NULL) {
    return tarn__fail(TARN_E_INVALID, "plan: %zu arenas at NULL",
                      problem->arena_count);
  }
  if (problem->count >= UINT32_MAX || problem->arena_count >= UINT32_MAX) {
    return tarn__fail(TARN_E_INVALID, "plan: more than 2^32 buffers or arenas");
  }
  return TARN_OK;
}

tarn_status tarn__plan_problem_check(const tarn_plan_problem *problem) {
  size_t known;
  if (problem == NULL ||
      !tarn__struct_size(problem->struct_size,
                         TARN__SIZE_UP_TO(tarn_plan_problem, arena_count),
                         sizeof *problem, &known)) {
    return tarn__fail(TARN_E_INVALID, "plan problem: NULL or struct_size");
  }
  TARN__TRY(check_parts(problem));
  uint64_t sum = 0;
  for (size_t i = 0; i < problem->count; i++) {
    tarn__plan_part_of wrong;
    TARN__TRY(check_arena(problem, i));
    TARN__TRY(tarn__plan_check_buffer(&problem->buffers[i], i, &sum, &wrong));
  }
  for (size_t i = 0; i < problem->pair_count; i++)
    TARN__TRY(tarn__plan_check_pair(problem, i));
  return TARN_OK;
}

static uint64_t largest_capacity(const tarn_plan_problem *problem) {
  uint64_t largest = 0;
  for (size_t i = 0; i < tarn__plan_arena_count(problem); i++) {
    uint64_t capacity = tarn__plan_capacity(problem, i);
    if (capacity == 0) return 0;
    if (largest < capacity) largest = capacity;
  }
  return largest;
}

size_t tarn__plan_misfit(const tarn_plan_problem *problem,
                         const bool *left_out) {
  uint64_t largest = largest_capacity(problem);
  size_t i = 0;
  for (; i < problem->count; i++) {
    const tarn_plan_buffer *b = &problem->buffers[i];
    bool bound = (b->flags & TARN_PLAN_IN_ARENA) != 0;
    bool fixed = (b->flags & TARN_PLAN_FIXED) != 0;
    uint64_t end = b->size + (fixed ? b->offset : 0);
    uint64_t capacity =
        bound ? tarn__plan_capacity(problem, b->arena) : largest;
    if (tarn__plan_is_in(left_out, i) && capacity != 0 && end > capacity) break;
  }
  return i;
}

// --- orders ------------------------------------------------------------------

typedef struct claim {
  uint64_t major;
  double minor;
  uint32_t buffer;
} claim;

static claim claim_of(const tarn_plan_buffer *b, uint32_t buffer,
                      tarn__plan_sort_by by) {
  switch (by) {
    case TARN__PLAN_BY_BEGIN:
      return (claim){UINT64_MAX - b->first, 0, buffer};
    case TARN__PLAN_BY_SIZE:
      return (claim){b->size, 0, buffer};
    case TARN__PLAN_BY_WORTH:
      return (claim){0, tarn__plan_worth(b), buffer};
    default:
      return (claim){b->priority, tarn__plan_worth(b), buffer};
  }
}

static int by_claim(const void *x, const void *y) {
  const claim *a = x;
  const claim *b = y;
  if (a->major != b->major) return a->major > b->major ? -1 : 1;
  if (a->minor > b->minor) return -1;
  if (a->minor < b->minor) return 1;
  return (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

tarn_status tarn__plan_sort(const tarn_plan_problem *problem,
                            tarn__plan_sort_by by, uint32_t *buffers,
                            size_t count) {
  claim *claims = tarn__host_array(count + 1, sizeof *claims);
  if (claims == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < count; i++)
    claims[i] = claim_of(&problem->buffers[buffers[i]], buffers[i], by);
  qsort(claims, count, sizeof *claims, by_claim);
  for (size_t i = 0; i < count; i++)
    buffers[i] = claims[i].buffer;
  tarn__host_free_array(claims, count + 1, sizeof *claims);
  return TARN_OK;
}

// --- ranges ------------------------------------------------------------------

static int by_low(const void *x, const void *y) {
  const tarn__plan_range *a = x;
  const tarn__plan_range *b = y;
  return (a->low > b->low) - (a->low < b->low);
}

void tarn__plan_ranges_sort(tarn__plan_range *ranges, size_t count) {
  qsort(ranges, count, sizeof *ranges, by_low);
}
