// Runs of the exact search: limits, the table, memory, and files.
#include "search_kit.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/faults.h"

#ifndef TARN_SHARED_DATA
#define TARN_SHARED_DATA "../shared/data"
#endif

// All steps full, and some buffers alike.
static void make_large(large *l, size_t most, size_t steps, uint64_t height) {
  memset(l, 0, sizeof *l);
  uint64_t left[MOST_LARGE];
  for (size_t step = 0; step < steps; step++)
    left[step] = height;
  for (size_t step = 0; step < steps; step++) {
    while (left[step] > 0 && l->count < most) {
      tarn_plan_buffer *b = &l->buffers[l->count++];
      b->first = step;
      b->last = step + 1 + random_below((steps - step) / 2 + 1);
      b->size = 1 + random_below(left[step] / 3 + 1);
      bool again = 2 * b->size <= left[step] && chance(4) && l->count < most;
      if (again) l->buffers[l->count++] = *b;
      for (size_t i = step; i < b->last; i++)
        left[i] -= b->size * (again ? 2 : 1);
    }
  }
  open_large(l);
}

static uint64_t spread(const large *l, uint64_t percent) {
  return l->f.in.bound + l->f.in.bound * percent / 100;
}

TEST(the_same_runs_give_the_same_answers) {
  large l;
  tarn__plan_search *search[2];
  answer got[2];
  make_large(&l, 150, 40, 200);
  for (int i = 0; i < 2; i++)
    search[i] = search_of(&l.f);
  for (uint64_t percent = 12; percent-- > 0;) {
    tarn__plan_run run = {
        .capacity = spread(&l, percent),
        .node_limit = 700,
        .order = (tarn__plan_order)(percent % TARN__PLAN_ORDERS),
        .seed = percent / TARN__PLAN_ORDERS};
    for (int i = 0; i < 2; i++)
      assert_ok(run_with(search[i], run, &got[i]));
    ck_assert_int_eq(got[0].outcome, got[1].outcome);
    ck_assert_uint_eq(got[0].nodes, got[1].nodes);
    ck_assert_mem_eq(got[0].units, got[1].units, sizeof got[0].units);
    if (got[0].outcome == TARN__PLAN_FOUND) {
      require_plan(&l, got[0].units, run.capacity);
    }
  }
  close_field(&l.f);
}

static void require_untouched(const answer *got) {
  ck_assert_int_eq(got->outcome, TARN__PLAN_STOPPED);
  for (size_t i = 0; i < MOST_LARGE; i++)
    require(got->units[i] == UINT64_C(0xeeeeeeeeeeeeeeee));
}

TEST(it_stops_at_the_limit_of_nodes) {
  large l;
  answer got;
  make_large(&l, 200, 60, 300);
  tarn__plan_search *search = search_of(&l.f);
  for (uint64_t limit = 1; limit < 40; limit += 7) {
    tarn__plan_run run = {.capacity = l.f.in.bound, .node_limit = limit};
    assert_ok(run_with(search, run, &got));
    require_untouched(&got);
    ck_assert_uint_eq(got.nodes, limit);
  }
  close_field(&l.f);
}

static bool say_stop(void *user, uint64_t nodes) {
  uint64_t *seen_nodes = user;
  *seen_nodes = nodes;
  return false;
}

TEST(it_stops_when_it_is_told_to) {
  large l;
  answer got;
  uint64_t seen_nodes = 1;
  atomic_bool asked = true;
  tarn__plan_stop stops[] = {{.deadline_ns = UINT64_MAX, .asked = &asked},
                             {.deadline_ns = 1, .asked = &nobody_asks},
                             {.deadline_ns = UINT64_MAX,
                              .asked = &asked,
                              .watch = say_stop,
                              .user = &seen_nodes}};
  make_large(&l, 200, 60, 300);
  tarn__plan_search *search = search_of(&l.f);
  for (size_t i = 0; i < 3; i++) {
    atomic_store(&asked, i == 0);
    tarn__plan_run run = {.capacity = l.f.in.bound, .stop = &stops[i]};
    assert_ok(run_with(search, run, &got));
    require_untouched(&got);
    ck_assert_uint_eq(got.nodes, 0);
  }
  ck_assert_uint_eq(seen_nodes, 0);
  ck_assert(atomic_load(&asked));
  close_field(&l.f);
}

TEST(what_is_too_large_is_not_searched) {
  large l;
  tarn__plan_neighbours near;
  make_large(&l, 300, 4, 900);
  assert_status(tarn__plan_neighbours_make(&l.f.in, 4096, &l.f.memory, &near),
                TARN_FULL);
  close_field(&l.f);
}

TEST(nothing_is_a_plan_too) {
  large l;
  answer got;
  make_large(&l, 0, 1, 1);
  tarn__plan_search *search = search_of(&l.f);
  assert_ok(run_with(search, (tarn__plan_run){.capacity = 0}, &got));
  ck_assert_int_eq(got.outcome, TARN__PLAN_FOUND);
  close_field(&l.f);
}

// Sizes that together are just below 2^63, without a limit and within one.
TEST(sizes_may_be_as_large_as_they_can) {
  large l = {.count = 3};
  answer got;
  for (size_t i = 0; i < 3; i++) {
    l.buffers[i] = (tarn_plan_buffer){
        .first = i, .last = i + 2, .size = (UINT64_C(1) << 61) + i};
  }
  open_large(&l);
  tarn__plan_search *search = search_of(&l.f);
  tarn__plan_run run = {.capacity = UINT64_MAX};
  assert_ok(run_with(search, run, &got));
  ck_assert_int_eq(got.outcome, TARN__PLAN_FOUND);
  run.capacity = l.f.in.bound;
  assert_ok(run_with(search, run, &got));
  ck_assert_int_eq(got.outcome, TARN__PLAN_FOUND);
  require_plan(&l, got.units, l.f.in.bound);
  run.capacity = l.f.in.bound - 1;
  assert_ok(run_with(search, run, &got));
  ck_assert_int_eq(got.outcome, TARN__PLAN_NONE);
  close_field(&l.f);
}

// --- without memory ----------------------------------------------------------

typedef struct scene {
  large *l;
  tarn__plan_run run;
  answer expected;
  size_t recovered;
} scene;

static void search_once(void *context) {
  scene *s = context;
  tarn__plan_memory memory = {0};
  tarn__plan_search *search;
  static answer got;
  tarn_status status =
      tarn__plan_search_create(&s->l->f.near, TABLE, &memory, &search);
  bool made = status == TARN_OK;
  if (made) status = run_with(search, s->run, &got);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  if (made && status != TARN_OK) {
    require(got.outcome == TARN__PLAN_STOPPED);
    status = run_with(search, s->run, &got);
    if (status == TARN_OK) s->recovered++;
  }
  // The table may be smaller, so that it takes more nodes.
  if (status == TARN_OK && s->run.node_limit == 0) {
    require(got.outcome == s->expected.outcome);
  }
  tarn__plan_memory_free(&memory);
}

static size_t sweep(scene *s) {
  assert_ok(run_with(search_of(&s->l->f), s->run, &s->expected));
  return faults_sweep(search_once, s);
}

TEST(it_can_be_used_after_memory_was_short) {
  large l;
  make_large(&l, 400, 60, 400);
  scene s = {.l = &l, .run = {.capacity = spread(&l, 20), .node_limit = 1500}};
  ck_assert_uint_gt(sweep(&s), 20);
  ck_assert_uint_gt(s.recovered, 2);
  close_field(&l.f);
}

static void list_neighbours(void *context) {
  const large *l = context;
  tarn__plan_memory memory = {0};
  tarn__plan_neighbours near;
  tarn_status status =
      tarn__plan_neighbours_make(&l->f.in, LISTS, &memory, &near);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  tarn__plan_memory_free(&memory);
}

TEST(neighbours_of_fixed_items_need_memory_too) {
  large l = {.count = 2};
  l.buffers[0] = (tarn_plan_buffer){.last = 2, .size = 1};
  l.buffers[1] = (tarn_plan_buffer){
      .last = 2, .size = 1, .flags = TARN_PLAN_FIXED, .offset = 5};
  open_large(&l);
  ck_assert_uint_gt(faults_sweep(list_neighbours, &l), 6);
  close_field(&l.f);
}

// --- files -------------------------------------------------------------------

static const char *data_folder(void) {
  const char *folder = getenv("TARN_TEST_DATA");
  return folder == NULL ? TARN_SHARED_DATA : folder;
}

static bool read_file(large *l, char name) {
  char path[4096];
  char line[256];
  snprintf(path, sizeof path, "%s/planner/%c.1048576.csv", data_folder(), name);
  memset(l, 0, sizeof *l);
  FILE *file = fopen(path, "r");
  if (file == NULL) return false;
  require(fgets(line, sizeof line, file) != NULL);
  while (fgets(line, sizeof line, file) != NULL) {
    unsigned long first;
    unsigned long last;
    unsigned long size;
    require(l->count < MOST_LARGE);
    require(sscanf(line, "%*u,%lu,%lu,%lu", &first, &last, &size) == 3);
    l->buffers[l->count++] =
        (tarn_plan_buffer){.first = first, .last = last, .size = size};
  }
  fclose(file);
  open_large(l);
  return true;
}

// Each order in turn, with limits that double, as solve.c has it.
static uint64_t nodes_for(const large *l, tarn__plan_search *search) {
  static const tarn__plan_order orders[] = {
      TARN__PLAN_BY_PRESSURE, TARN__PLAN_BY_PRESSURE_AREA, TARN__PLAN_BY_LENGTH,
      TARN__PLAN_BY_AREA};
  uint64_t nodes = 0;
  for (uint64_t i = 0; nodes < 60000; i++) {
    answer got;
    tarn__plan_run run = {.capacity = 1048576 / l->f.in.unit,
                          .node_limit = UINT64_C(1000) << i / 4,
                          .order = orders[i % 4]};
    assert_ok(run_with(search, run, &got));
    nodes += got.nodes;
    ck_assert_int_ne(got.outcome, TARN__PLAN_NONE);
    if (got.outcome == TARN__PLAN_STOPPED) continue;
    require_plan(l, got.units, run.capacity);
    return nodes;
  }
  return UINT64_MAX;
}

TEST(hard_ones_take_few_nodes) {
  uint64_t sum = 0;
  for (const char *name = "ABCDEFGHIJK"; *name != 0; name++) {
    large l;
    if (!read_file(&l, *name)) {
      note_skipped("hard_ones_take_few_nodes", "no planner data");
      return;
    }
    uint64_t nodes = nodes_for(&l, search_of(&l.f));
    close_field(&l.f);
    ck_assert_msg(nodes <= 60000, "%c was not found", *name);
    sum += nodes;
  }
  ck_assert_uint_le(sum, 150000);
}

int main(void) {
  faults_install();
  return run_tests();
}
