// problem.h - whether a problem makes sense.
#ifndef TARN_PLAN_PROBLEM_H_
#define TARN_PLAN_PROBLEM_H_

#include "tarn/plan.h"

// Checks all that plan.h asks for, and that all sizes and alignments together
// stay below 2^63: then no sum of some of them overflows, and nobody behind
// this call checks any.
//
// TARN_E_INVALID  the text names the buffer and the value.
TARN_MUST_CHECK tarn_status
tarn__plan_problem_check(const tarn_plan_problem *problem);

// Its parts, for who can say where in a file a buffer's size, steps, gaps and
// offset stand. |*sum| is of the buffers before, and counts this one in.
TARN_MUST_CHECK tarn_status
tarn__plan_check_size(const tarn_plan_buffer *buffer, size_t index);
TARN_MUST_CHECK tarn_status
tarn__plan_check_steps(const tarn_plan_buffer *buffer, size_t index);
TARN_MUST_CHECK tarn_status
tarn__plan_check_gaps(const tarn_plan_buffer *buffer, size_t index);
TARN_MUST_CHECK tarn_status
tarn__plan_check_offset(const tarn_plan_buffer *buffer, size_t index);
TARN_MUST_CHECK tarn_status tarn__plan_check_sum(const tarn_plan_buffer *buffer,
                                                 size_t index, uint64_t *sum);
TARN_MUST_CHECK tarn_status
tarn__plan_check_pair(const tarn_plan_problem *problem, size_t index);

// The alignment of a buffer, at least 1.
static inline uint64_t tarn__plan_alignment(const tarn_plan_buffer *buffer) {
  return buffer->alignment == 0 ? 1 : buffer->alignment;
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

// The alignment of what must keep both; 0: it is too large. One that is neither
// of the two was in no sum that was checked: 2^32 of them stay below 2^62.
static inline uint64_t tarn__plan_both_aligned(uint64_t a, uint64_t b) {
  uint64_t times = b / tarn__plan_gcd(a, b);
  if (a % b == 0 || b % a == 0) return a > b ? a : b;
  return a > (UINT64_C(1) << 30) / times ? 0 : a * times;
}

// How many arenas there are, at least 1, and what one has; 0: no limit.
static inline size_t tarn__plan_arena_count(const tarn_plan_problem *problem) {
  return problem->arena_count == 0 ? 1 : problem->arena_count;
}

static inline uint64_t tarn__plan_capacity(const tarn_plan_problem *problem,
                                           size_t arena) {
  return problem->arena_count == 0 ? 0 : problem->capacities[arena];
}

#endif  // TARN_PLAN_PROBLEM_H_
