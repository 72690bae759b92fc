// Plans in little time, in a list and in a tree: each is checked.
#include "plan/quick.h"

#include <stdlib.h>

#include "plan/placements.h"
#include "support/faults.h"
#include "support/run.h"

enum { MOST = 400 };

static uint64_t state = 1;

static uint64_t random_below(uint64_t limit) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return ((state * 0x2545f4914f6cdd1du) >> 33) % limit;
}

typedef struct making {
  tarn_plan_buffer buffers[MOST];
  tarn_plan_gap gaps[MOST];
  uint64_t offsets[MOST];
  tarn_plan_problem problem;
  tarn__plan_instance in;
} making;

static void add(making *m, uint64_t first, uint64_t last) {
  size_t i = m->problem.count++;
  tarn_plan_buffer *b = &m->buffers[i];
  *b = (tarn_plan_buffer){.first = first,
                          .last = last,
                          .size = 1 + random_below(50),
                          .alignment = (uint64_t)1 << random_below(4)};
  if (last - first < 3 || random_below(3) > 0) return;
  m->gaps[i] = (tarn_plan_gap){first + 1, last - 1};
  b->gaps = &m->gaps[i];
  b->gap_count = 1;
}

// |longest|: of the lifetimes.
static void fill(making *m, size_t count, uint64_t longest) {
  m->problem = (tarn_plan_problem){.struct_size = sizeof m->problem,
                                   .buffers = m->buffers};
  for (size_t i = 0; i < count; i++) {
    uint64_t first = random_below(2 * count);
    add(m, first, first + 1 + random_below(longest));
  }
}

// Fixed ones lie above each other, whenever they are needed.
static void fix_some(making *m) {
  uint64_t at = random_below(30);
  for (size_t i = 0; i < m->problem.count; i += 7) {
    at = (at + 7) & ~UINT64_C(7);
    m->buffers[i].flags = TARN_PLAN_FIXED;
    m->buffers[i].offset = at;
    at += m->buffers[i].size + random_below(40);
  }
}

static tarn_status plan(making *m, uint64_t *out_height) {
  uint64_t offsets[MOST];
  tarn_status status =
      tarn__plan_instance_make(&m->problem, NULL, NULL, &m->in);
  if (status == TARN_OK) {
    status = tarn__plan_quick(&m->in, offsets, out_height);
  }
  for (size_t i = 0; status == TARN_OK && i < m->problem.count; i++)
    m->offsets[i] = offsets[m->in.item_of[i]] * m->in.unit;
  *out_height *= m->in.unit;
  tarn__plan_instance_free(&m->in);
  return status;
}

static void require_good(making *m) {
  uint64_t height = 0, bound = 0, found = 0;
  require(plan(m, &height) == TARN_OK);
  require(tarn_plan_verify(&m->problem, m->offsets, NULL, &found) == TARN_OK);
  require(found == height);
  require(tarn_plan_lower_bound(&m->problem, &bound) == TARN_OK);
  require(height >= bound);
}

static void require_all_good(uint64_t longest) {
  static making m;
  for (int round = 0; round < 150; round++) {
    fill(&m, 1 + random_below(MOST), longest);
    if (round % 3 == 0) fix_some(&m);
    require_good(&m);
  }
}

// Most are live at once: a list.
TEST(high_pressure_is_planned) {
  require_all_good(UINT64_C(2) * MOST);
}

// Few are live at once: a tree.
TEST(chains_are_planned) {
  require_all_good(4);
}

TEST(what_never_meets_shares_a_place) {
  static making m;
  uint64_t height = 0, largest = 0;
  fill(&m, 0, 1);
  for (size_t i = 0; i < MOST; i++) {
    add(&m, 3 * i, 3 * i + 2);
    if (m.buffers[i].size > largest) largest = m.buffers[i].size;
  }
  assert_ok(plan(&m, &height));
  ck_assert_uint_eq(height, largest);
}

TEST(nothing_needs_nothing) {
  static making m;
  uint64_t height = 1;
  fill(&m, 0, 1);
  assert_ok(plan(&m, &height));
  ck_assert_uint_eq(height, 0);
}

// Both put an item in the same place.
TEST(lists_and_trees_agree) {
  static making m;
  for (int round = 0; round < 50; round++) {
    tarn__plan_memory memory = {0};
    tarn__plan_placed list;
    tarn__plan_placed tree;
    fill(&m, 1 + random_below(100), 1 + random_below(100));
    require(tarn__plan_instance_make(&m.problem, NULL, NULL, &m.in) == TARN_OK);
    require(tarn__plan_placed_make(&m.in, true, &memory, &list) == TARN_OK);
    require(tarn__plan_placed_make(&m.in, false, &memory, &tree) == TARN_OK);
    for (uint32_t i = 0; i < m.in.item_count; i++) {
      uint64_t at = tarn__plan_placed_lowest(&tree, i);
      require(tarn__plan_placed_lowest(&list, i) == at);
      require(tarn__plan_placed_add(&tree, i, at) == TARN_OK);
      require(tarn__plan_placed_add(&list, i, at) == TARN_OK);
    }
    tarn__plan_memory_free(&memory);
    tarn__plan_instance_free(&m.in);
  }
}

static void plan_once(void *context) {
  uint64_t height = 0;
  tarn_status status = plan(context, &height);
  require(status == TARN_OK || status == TARN_E_NOMEM);
}

TEST(memory_may_be_refused) {
  static making m;
  fill(&m, 60, 80);
  ck_assert_uint_gt(faults_sweep(plan_once, &m), 5);
  fill(&m, MOST, 3);
  ck_assert_uint_gt(faults_sweep(plan_once, &m), 5);
}

int main(void) {
  faults_install();
  return run_tests();
}
