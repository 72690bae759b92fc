// room.h - how much arenas have.
#ifndef TARN_PLAN_ROOM_H_
#define TARN_PLAN_ROOM_H_

#include "plan/problem.h"

static inline bool tarn__plan_may_lie_in(const tarn_plan_buffer *buffer,
                                         size_t arena) {
  return (buffer->flags & TARN_PLAN_IN_ARENA) == 0 || buffer->arena == arena;
}

// What the largest arena has; UINT64_MAX: no limit.
static inline uint64_t tarn__plan_largest(const tarn_plan_problem *problem) {
  uint64_t largest = 0;
  for (size_t i = 0; i < tarn__plan_arena_count(problem); i++) {
    uint64_t capacity = tarn__plan_capacity(problem, i);
    if (capacity == 0) return UINT64_MAX;
    if (largest < capacity) largest = capacity;
  }
  return largest;
}

// Whether there is an arena in which the buffer would lie well if it were
// alone, |largest| being the above.
static inline bool tarn__plan_fits(const tarn_plan_problem *problem,
                                   const tarn_plan_buffer *buffer,
                                   uint64_t largest) {
  bool bound = (buffer->flags & TARN_PLAN_IN_ARENA) != 0;
  bool fixed = (buffer->flags & TARN_PLAN_FIXED) != 0;
  uint64_t end = buffer->size + (fixed ? buffer->offset : 0);
  uint64_t capacity =
      bound ? tarn__plan_capacity(problem, buffer->arena) : largest;
  return capacity == 0 || end <= capacity;
}

// What all arenas have together; UINT64_MAX: no limit.
static inline uint64_t tarn__plan_room(const tarn_plan_problem *problem) {
  uint64_t room = 0;
  for (size_t i = 0; i < tarn__plan_arena_count(problem); i++) {
    uint64_t capacity = tarn__plan_capacity(problem, i);
    if (capacity == 0 || room + capacity < room) return UINT64_MAX;
    room += capacity;
  }
  return room;
}

#endif  // TARN_PLAN_ROOM_H_
