// search_kit.h - what tests of the exact search have in common.
#ifndef TARN_TESTS_PLAN_SEARCH_KIT_H_
#define TARN_TESTS_PLAN_SEARCH_KIT_H_

#include <string.h>

#include "plan/search.h"
#include "support/run.h"

enum { MOST_LARGE = 600, TABLE = 1 << 20 };

static uint64_t random_state = 1;

static inline uint64_t random_below(uint64_t limit) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return ((random_state * 0x2545f4914f6cdd1du) >> 33) % limit;
}

static inline bool chance(uint64_t one_in) {
  return random_below(one_in) == 0;
}

static atomic_bool nobody_asks;

static inline tarn__plan_stop never(void) {
  return (tarn__plan_stop){.deadline_ns = UINT64_MAX, .asked = &nobody_asks};
}

// --- instances ---------------------------------------------------------------

enum { LISTS = 8 << 20 };  // bytes of the lists of neighbours

typedef struct field {
  tarn__plan_instance in;
  tarn__plan_neighbours near;
  tarn__plan_memory memory;  // of |near| and what searches it
} field;

static inline void open_field(const tarn_plan_problem *problem,
                              const bool *merged, field *f) {
  assert_ok(tarn__plan_problem_check(problem));
  assert_ok(tarn__plan_instance_make(problem, NULL, merged, &f->in));
  f->memory = (tarn__plan_memory){0};
  assert_ok(tarn__plan_neighbours_make(&f->in, LISTS, &f->memory, &f->near));
}

static inline tarn__plan_search *search_of(field *f) {
  tarn__plan_search *search;
  assert_ok(tarn__plan_search_create(&f->near, TABLE, &f->memory, &search));
  return search;
}

static inline void close_field(field *f) {
  tarn__plan_memory_free(&f->memory);
  tarn__plan_instance_free(&f->in);
}

// --- problems of plain buffers -----------------------------------------------

typedef struct large {
  tarn_plan_buffer buffers[MOST_LARGE];
  size_t count;
  field f;
} large;

static inline void open_large(large *l) {
  tarn_plan_problem problem = {
      .struct_size = sizeof problem, .buffers = l->buffers, .count = l->count};
  open_field(&problem, NULL, &l->f);
}

static inline bool are_apart(const large *l, const uint64_t *units, size_t i,
                             size_t j) {
  const tarn_plan_buffer *a = &l->buffers[i];
  const tarn_plan_buffer *b = &l->buffers[j];
  uint64_t at = units[l->f.in.item_of[i]] * l->f.in.unit;
  uint64_t other = units[l->f.in.item_of[j]] * l->f.in.unit;
  return a->last <= b->first || b->last <= a->first || at + a->size <= other ||
         other + b->size <= at;
}

static inline void require_plan(const large *l, const uint64_t *units,
                                uint64_t capacity) {
  require(tarn__plan_instance_height(&l->f.in, units) <= capacity);
  for (size_t i = 0; i < l->count; i++) {
    for (size_t j = 0; j < i; j++)
      require(are_apart(l, units, i, j));
  }
}

typedef struct answer {
  tarn__plan_outcome outcome;
  uint64_t nodes;
  uint64_t units[MOST_LARGE];
} answer;

static inline tarn_status run_with(tarn__plan_search *search,
                                   tarn__plan_run run, answer *got) {
  tarn__plan_stop stop = never();
  if (run.stop == NULL) run.stop = &stop;
  memset(got->units, 0xee, sizeof got->units);
  return tarn__plan_search_run(search, &run, got->units, &got->outcome,
                               &got->nodes);
}

#endif  // TARN_TESTS_PLAN_SEARCH_KIT_H_
