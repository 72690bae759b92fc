// problem.h - checks of a problem, and arithmetic.
#ifndef TARN_PLAN_PROBLEM_H_
#define TARN_PLAN_PROBLEM_H_

#include <string.h>

#include "tarn/plan.h"

// Checks all rules of plan.h, and that the sum of all sizes and alignments is
// below 2^63: no sum of some of them overflows, and no later code checks for
// it.
//
// TARN_E_INVALID  the text names the buffer and the value.
TARN_MUST_CHECK tarn_status
tarn__plan_problem_check(const tarn_plan_problem *problem);

// The part of a buffer that is wrong.
typedef enum tarn__plan_part_of {
  TARN__PLAN_PART_SIZE = 0,
  TARN__PLAN_PART_STEPS,
  TARN__PLAN_PART_GAPS,
  TARN__PLAN_PART_OFFSET,
} tarn__plan_part_of;

// The checks of one buffer, except for those of its flags and its arena.
// |*sum| is that of the buffers before, and counts this one in.
//
// TARN_E_INVALID  |*out_wrong| says which part.
TARN_MUST_CHECK tarn_status
tarn__plan_check_buffer(const tarn_plan_buffer *buffer, size_t index,
                        uint64_t *sum, tarn__plan_part_of *out_wrong);
TARN_MUST_CHECK tarn_status
tarn__plan_check_pair(const tarn_plan_problem *problem, size_t index);

// The alignment of a buffer, at least 1.
static inline uint64_t tarn__plan_alignment(const tarn_plan_buffer *buffer) {
  return buffer->alignment == 0 ? 1 : buffer->alignment;
}

// Run |index| of the steps in which a buffer is needed: it has one run more
// than gaps.
static inline tarn_plan_gap tarn__plan_run_of(const tarn_plan_buffer *buffer,
                                              size_t index) {
  const tarn_plan_gap *gaps = buffer->gaps;
  return (tarn_plan_gap){
      index == 0 ? buffer->first : gaps[index - 1].last,
      index == buffer->gap_count ? buffer->last : gaps[index].first};
}

// The least multiple of |alignment| that is not below |offset|.
static inline uint64_t tarn__plan_align_up(uint64_t offset,
                                           uint64_t alignment) {
  if (alignment == 1) return offset;
  uint64_t over = offset % alignment;
  return over == 0 ? offset : offset + (alignment - over);
}

static inline uint64_t tarn__plan_gcd(uint64_t a, uint64_t b) {
  while (b != 0) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// The index of the first of |count| items, |stride| bytes apart, whose number
// |field| bytes into it is above |at|; |count|: there is none. Numbers do not
// fall from item to item.
static inline size_t tarn__plan_first_above(const void *items, size_t stride,
                                            size_t field, size_t count,
                                            uint64_t at) {
  size_t low = 0;
  for (size_t high = count; low < high;) {
    size_t middle = (low + high) / 2;
    const char *item = (const char *)items + middle * stride;
    if (*(const uint64_t *)(const void *)(item + field) > at) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// Bytes, or units, from |low| to before |high|.
typedef struct tarn__plan_range {
  uint64_t low;
  uint64_t high;
} tarn__plan_range;

// By where they begin.
void tarn__plan_ranges_sort(tarn__plan_range *ranges, size_t count);

// Lifts |*at|, which is aligned, until |size| fits there beside |list|, which
// is ascending, from range |i| on. Returns the first range that it is below.
static inline uint32_t tarn__plan_lift(const tarn__plan_range *list, uint32_t i,
                                       uint32_t count, uint64_t size,
                                       uint64_t alignment, uint64_t *at) {
  uint64_t lifted = *at;
  for (; i < count; i++) {
    const tarn__plan_range *range = &list[i];
    if (range->low >= lifted + size) break;
    if (range->high > lifted) {
      lifted = tarn__plan_align_up(range->high, alignment);
    }
  }
  *at = lifted;
  return i;
}

// The least common multiple of two alignments; 0: too large. A multiple that is
// neither of the two was not in a checked sum: 2^32 of them stay below 2^62.
static inline uint64_t tarn__plan_both_aligned(uint64_t a, uint64_t b) {
  uint64_t times = b / tarn__plan_gcd(a, b);
  if (a % b == 0 || b % a == 0) return a > b ? a : b;
  return a > (UINT64_C(1) << 30) / times ? 0 : a * times;
}

// The number of arenas, at least 1, and the capacity of one; 0: no limit.
static inline size_t tarn__plan_arena_count(const tarn_plan_problem *problem) {
  return problem->arena_count == 0 ? 1 : problem->arena_count;
}

static inline uint64_t tarn__plan_capacity(const tarn_plan_problem *problem,
                                           size_t arena) {
  return problem->arena_count == 0 ? 0 : problem->capacities[arena];
}

static inline bool tarn__plan_may_lie_in(const tarn_plan_buffer *buffer,
                                         size_t arena) {
  return (buffer->flags & TARN_PLAN_IN_ARENA) == 0 || buffer->arena == arena;
}

// Whether |buffer| is in a part of a problem that leaves some out; NULL: none.
static inline bool tarn__plan_is_in(const bool *left_out, size_t buffer) {
  return left_out == NULL || !left_out[buffer];
}

// The first buffer that is in and would fit into no arena alone; else the
// number of buffers.
size_t tarn__plan_misfit(const tarn_plan_problem *problem,
                         const bool *left_out);

// The sum of all capacities; UINT64_MAX: no limit.
static inline uint64_t tarn__plan_room(const tarn_plan_problem *problem) {
  uint64_t room = 0;
  for (size_t i = 0; i < tarn__plan_arena_count(problem); i++) {
    uint64_t capacity = tarn__plan_capacity(problem, i);
    if (capacity == 0 || room + capacity < room) return UINT64_MAX;
    room += capacity;
  }
  return room;
}

// Bytes times time steps.
static inline double tarn__plan_worth(const tarn_plan_buffer *buffer) {
  return (double)buffer->size * (double)(buffer->last - buffer->first);
}

typedef enum tarn__plan_sort_by {
  TARN__PLAN_BY_BEGIN,     // the earliest first
  TARN__PLAN_BY_SIZE,      // the largest first
  TARN__PLAN_BY_WORTH,     // the most bytes times steps first
  TARN__PLAN_BY_PRIORITY,  // the highest first, then by worth
} tarn__plan_sort_by;

// Sorts |count| numbers of buffers; equals by their numbers.
//
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_sort(const tarn_plan_problem *problem,
                                            tarn__plan_sort_by by,
                                            uint32_t *buffers, size_t count);

// --- arithmetic --------------------------------------------------------------

// 128 bits by which a state of a search is known.
typedef struct tarn__plan_key {
  uint64_t low;
  uint64_t high;
} tarn__plan_key;

static inline bool tarn__plan_key_same(tarn__plan_key a, tarn__plan_key b) {
  return a.low == b.low && a.high == b.high;
}

// A hash: each of the 64 bits depends on all bits of |x|.
static inline uint64_t tarn__plan_mix(uint64_t x) {
  x ^= x >> 32;
  x *= UINT64_C(0xd6e8feb86659fd93);
  x ^= x >> 32;
  x *= UINT64_C(0xd6e8feb86659fd93);
  x ^= x >> 32;
  return x;
}

// The key of |value| of a thing number |kind|.
static inline tarn__plan_key tarn__plan_key_of(uint64_t kind, uint64_t value) {
  uint64_t low = tarn__plan_mix(value + tarn__plan_mix(kind + 1));
  return (tarn__plan_key){low,
                          tarn__plan_mix(low ^ UINT64_C(0x9e3779b97f4a7c15))};
}

// The square root of |x|, which is 0 or above 2^-1000 and finite, to the last
// bit or two; the same on every machine.
//
// Half the exponent is a guess within 6%, and each step of Newton's doubles the
// digits that are right.
static inline double tarn__plan_root(double x) {
  enum { STEPS = 4 };
  const uint64_t half_bias = UINT64_C(0x1FF8) << 48;
  uint64_t bits = 0;
  double root = 0;
  if (!(x > 0)) return 0;
  memcpy(&bits, &x, sizeof bits);
  bits = (bits >> 1) + half_bias;
  memcpy(&root, &bits, sizeof root);
  for (int i = 0; i < STEPS; i++)
    root = (root + x / root) / 2;
  return root;
}

#endif  // TARN_PLAN_PROBLEM_H_
