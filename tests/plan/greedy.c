// Plans without a search: what they are made of, and that they are plans.
#include "plan/greedy.h"

#include <stdlib.h>
#include <string.h>

#include "plan/moves.h"
#include "plan/neighbours.h"
#include "plan/placements.h"
#include "plan/sort_keys.h"
#include "support/faults.h"
#include "support/run.h"

enum { MOST = 14, SCENES = 2500 };

// --- random problems ---------------------------------------------------------

typedef struct scene {
  uint64_t random;
  bool aligned;  // all of them, so that there is a grain
  size_t count;
  tarn_plan_buffer buffers[MOST];
  tarn_plan_gap gaps[MOST];
  tarn_plan_pair pairs[MOST];
  bool merged[MOST];
  tarn_plan_problem problem;
  tarn__plan_instance in;
  tarn__plan_memory memory;
} scene;

static uint64_t below(scene *s, uint64_t limit) {
  s->random = s->random * UINT64_C(6364136223846793005) + 1442695040888963407;
  return (s->random >> 33) % limit;
}

static void make_buffer(scene *s, size_t index) {
  static const uint64_t alignments[] = {0, 1, 2, 4, 4, 8};
  tarn_plan_buffer *b = &s->buffers[index];
  *b = (tarn_plan_buffer){.first = below(s, 12), .size = 1 + below(s, 9)};
  b->last = b->first + 1 + below(s, 8);
  if (below(s, 3) == 0 || s->aligned) b->alignment = alignments[below(s, 6)];
  if (s->aligned && b->alignment < 2) b->alignment = 6;
  if (b->last - b->first < 3 || below(s, 3) != 0) return;
  s->gaps[index].first = b->first + 1 + below(s, b->last - b->first - 2);
  s->gaps[index].last = s->gaps[index].first + 1;
  b->gaps = &s->gaps[index];
  b->gap_count = 1;
}

// Somewhere where no other fixed one is, whenever that is needed.
static void fix(scene *s, size_t index) {
  tarn_plan_buffer *b = &s->buffers[index];
  uint64_t alignment = b->alignment == 0 ? 1 : b->alignment;
  b->offset = below(s, 20) * alignment;
  for (size_t i = 0; i < index; i++) {
    const tarn_plan_buffer *other = &s->buffers[i];
    if ((other->flags & TARN_PLAN_FIXED) != 0 &&
        other->offset < b->offset + b->size &&
        b->offset < other->offset + other->size) {
      return;
    }
  }
  b->flags = TARN_PLAN_FIXED;
}

// The next one takes the place of this one, which ends where it begins.
static void pair_up(scene *s, size_t giver) {
  tarn_plan_buffer *a = &s->buffers[giver];
  tarn_plan_buffer *b = &s->buffers[giver + 1];
  if (a->last - a->first < 2) return;
  uint64_t by = a->last - 1;
  b->last = b->last - b->first + by;
  if (b->gap_count > 0) {
    b->gaps = NULL;
    b->gap_count = 0;
  }
  b->first = by;
  s->merged[s->problem.pair_count] = true;
  s->pairs[s->problem.pair_count++] = (tarn_plan_pair){giver, giver + 1};
}

static void make_scene(scene *s, uint64_t seed) {
  *s = (scene){.random = seed * 77777 + 5};
  s->count = 1 + below(s, MOST);
  s->aligned = seed % 4 == 0;
  s->problem = (tarn_plan_problem){.struct_size = sizeof s->problem,
                                   .buffers = s->buffers,
                                   .count = s->count,
                                   .pairs = s->pairs};
  for (size_t i = 0; i < s->count; i++)
    make_buffer(s, i);
  for (size_t i = 0; i + 1 < s->count; i++) {
    if (below(s, 6) == 0) pair_up(s, i++);
  }
  for (size_t i = s->problem.pair_count == 0 ? 0 : s->count; i < s->count;
       i++) {
    if (below(s, 5) == 0) fix(s, i);
  }
  assert_ok(tarn__plan_problem_check(&s->problem));
  assert_ok(tarn__plan_instance_make(&s->problem, NULL, s->merged, &s->in));
}

static void close_scene(scene *s) {
  tarn__plan_memory_free(&s->memory);
  tarn__plan_instance_free(&s->in);
}

// Whether two items lie in each other's way.
static bool collide(const tarn__plan_instance *in, const uint64_t *offsets,
                    size_t a, size_t b) {
  const tarn__plan_item *x = &in->items[a];
  const tarn__plan_item *y = &in->items[b];
  for (uint32_t i = 0; i < x->piece_count; i++) {
    const tarn__plan_piece *p = &in->pieces[x->piece + i];
    for (uint32_t j = 0; j < y->piece_count; j++) {
      const tarn__plan_piece *q = &in->pieces[y->piece + j];
      if (p->first < q->last && q->first < p->last &&
          offsets[a] < offsets[b] + q->size &&
          offsets[b] < offsets[a] + p->size) {
        return true;
      }
    }
  }
  return false;
}

static void check_plan(const tarn__plan_instance *in, const uint64_t *offsets) {
  for (size_t i = 0; i < in->item_count; i++) {
    const tarn__plan_item *item = &in->items[i];
    require(offsets[i] % item->alignment == 0);
    require(!item->fixed || offsets[i] == item->offset);
    for (size_t j = 0; j < i; j++)
      require(!collide(in, offsets, i, j));
  }
}

static tarn__plan_stop never(atomic_bool *asked) {
  atomic_init(asked, false);
  return (tarn__plan_stop){.deadline_ns = UINT64_MAX, .asked = asked};
}

// --- what lies there ---------------------------------------------------------

// The lowest offset at which |index| meets none of those before it.
static uint64_t lowest_of_all(const tarn__plan_instance *in, uint64_t *offsets,
                              size_t index, uint64_t from) {
  const tarn__plan_item *item = &in->items[index];
  uint64_t at = tarn__plan_align_up(from, item->alignment);
  for (size_t i = 0; i < index; i++) {
    offsets[index] = at;
    if (!collide(in, offsets, index, i)) continue;
    at += item->alignment;
    i = SIZE_MAX;  // from the first again
  }
  return at;
}

static void place_in_turn(scene *s) {
  tarn__plan_placed placed;
  uint64_t offsets[MOST];
  assert_ok(tarn__plan_placed_make(&s->in, false, &s->memory, &placed));
  for (int round = 0; round < 2; round++) {
    for (uint32_t i = 0; i < s->in.item_count; i++) {
      uint64_t at = tarn__plan_placed_lowest(&placed, i);
      require(at == lowest_of_all(&s->in, offsets, i, 0));
      offsets[i] = lowest_of_all(&s->in, offsets, i, below(s, 2) * below(s, 9));
      assert_ok(tarn__plan_placed_add(&placed, i, offsets[i]));
    }
    tarn__plan_placed_clear(&placed);
  }
}

TEST(an_item_is_put_where_none_lies) {
  for (uint64_t seed = 0; seed < SCENES; seed++) {
    scene s;
    make_scene(&s, seed);
    place_in_turn(&s);
    close_scene(&s);
  }
}

static void require_same(const tarn__plan_ranges *a,
                         const tarn__plan_ranges *b) {
  require(a->count == b->count);
  for (uint32_t i = 0; i < a->count; i++) {
    require(a->list[i].low == b->list[i].low);
    require(a->list[i].high == b->list[i].high);
  }
}

// Takes out some of them, so that what is left looks as if they had never been
// there.
static void take_out_some(scene *s) {
  tarn__plan_placed all;
  tarn__plan_placed kept;
  uint64_t offsets[MOST];
  assert_ok(tarn__plan_placed_make(&s->in, false, &s->memory, &all));
  assert_ok(tarn__plan_placed_make(&s->in, false, &s->memory, &kept));
  for (uint32_t i = 0; i < s->in.item_count; i++) {
    offsets[i] = lowest_of_all(&s->in, offsets, i, below(s, 2) * below(s, 9));
    assert_ok(tarn__plan_placed_add(&all, i, offsets[i]));
  }
  for (uint32_t i = 0; i < s->in.item_count; i++) {
    tarn_status status = below(s, 2) == 0
                             ? tarn__plan_placed_remove(&all, i)
                             : tarn__plan_placed_add(&kept, i, offsets[i]);
    assert_ok(status);
  }
  for (size_t i = 1; i < 2 * all.leaves; i++) {
    require_same(&all.nodes[i].whole, &kept.nodes[i].whole);
    require_same(&all.nodes[i].any, &kept.nodes[i].any);
  }
}

TEST(what_was_taken_out_leaves_nothing) {
  for (uint64_t seed = 0; seed < SCENES; seed++) {
    scene s;
    make_scene(&s, seed);
    take_out_some(&s);
    close_scene(&s);
  }
}

// All that overlap a run of sections, each once.
static void check_spans(scene *s, const tarn__plan_spans *spans) {
  uint32_t first = (uint32_t)below(s, s->in.section_count);
  uint32_t last = first + 1 + (uint32_t)below(s, s->in.section_count - first);
  uint32_t met[MOST];
  bool found[MOST] = {false};
  size_t count = tarn__plan_spans_meet(spans, first, last, met);
  for (size_t i = 0; i < count; i++) {
    require(!found[met[i]]);
    found[met[i]] = true;
  }
  for (size_t i = 0; i < s->in.item_count; i++) {
    const tarn__plan_item *item = &s->in.items[i];
    require(found[i] == (item->first < last && first < item->last));
  }
}

TEST(spans_know_what_overlaps) {
  for (uint64_t seed = 0; seed < SCENES; seed++) {
    scene s;
    tarn__plan_spans spans;
    make_scene(&s, seed);
    assert_ok(tarn__plan_spans_make(&s.in, &s.memory, &spans));
    for (int i = 0; i < 8; i++)
      check_spans(&s, &spans);
    close_scene(&s);
  }
}

// Though one byte of each grain is used.
TEST(aligned_items_lie_in_one_range) {
  tarn_plan_buffer buffers[100];
  tarn_plan_problem problem = {
      .struct_size = sizeof problem, .buffers = buffers, .count = 100};
  tarn__plan_memory memory = {0};
  tarn__plan_instance in;
  tarn__plan_placed placed;
  for (size_t i = 0; i < 100; i++) {
    buffers[i] = (tarn_plan_buffer){.last = 1, .size = 1, .alignment = 64};
  }
  assert_ok(tarn__plan_instance_make(&problem, NULL, NULL, &in));
  assert_ok(tarn__plan_placed_make(&in, false, &memory, &placed));
  ck_assert_uint_eq(placed.grain, 64);
  for (uint32_t i = 0; i < 100; i++) {
    uint64_t at = tarn__plan_placed_lowest(&placed, i);
    ck_assert_uint_eq(at, UINT64_C(64) * i);
    assert_ok(tarn__plan_placed_add(&placed, i, at));
  }
  ck_assert_uint_eq(placed.nodes[1].any.count, 1);
  tarn__plan_memory_free(&memory);
  tarn__plan_instance_free(&in);
}

// --- ways --------------------------------------------------------------------

static uint64_t pressure_of(const tarn__plan_instance *in, uint32_t index) {
  uint64_t most = 0;
  for (uint32_t s = in->items[index].first; s < in->items[index].last; s++) {
    if (most < in->live[s]) most = in->live[s];
  }
  return most;
}

// What must not grow along the order |way|.
static uint64_t rank_in(const tarn__plan_instance *in, uint32_t index,
                        tarn__plan_sort_key way) {
  const tarn__plan_item *item = &in->items[index];
  uint32_t sections = item->last - item->first;
  switch (way) {
    case TARN__PLAN_BEGIN_IN_16:
      return (sections >= 16 ? 1000u : 0u) + 999 - item->first;
    case TARN__PLAN_END_IN_16:
      return (sections >= 16 ? 1000u : 0u) + item->last;
    case TARN__PLAN_BEGIN_IN_4:
      return (sections >= 4 ? 1000u : 0u) + (sections >= 16 ? 1000u : 0u) +
             999 - item->first;
    case TARN__PLAN_END_IN_4:
      return (sections >= 4 ? 1000u : 0u) + (sections >= 16 ? 1000u : 0u) +
             item->last;
    case TARN__PLAN_LONGEST:
      return item->length;
    case TARN__PLAN_LARGEST:
      return item->size;
    case TARN__PLAN_WIDEST:
      return item->size * item->length;
    case TARN__PLAN_SPREAD:
      return sections * UINT64_C(1000) + item->size;
    default:
      return pressure_of(in, index) * 1000 + sections;
  }
}

static void check_order(const tarn__plan_sort_keys *ways,
                        tarn__plan_sort_key way) {
  bool seen[MOST] = {false};
  for (size_t i = 0; i < ways->in->item_count; i++) {
    uint32_t index = ways->order[i].item;
    require(index < ways->in->item_count && !seen[index]);
    seen[index] = true;
    if (i == 0) continue;
    require(ways->order[i - 1].key != ways->order[i].key ||
            ways->in->items[ways->order[i - 1].item].first <=
                ways->in->items[index].first);
    require(rank_in(ways->in, ways->order[i - 1].item, way) >=
            rank_in(ways->in, index, way));
  }
}

TEST(orders_are_what_they_are_called) {
  for (uint64_t seed = 0; seed < SCENES; seed++) {
    scene s;
    tarn__plan_sort_keys ways;
    make_scene(&s, seed);
    assert_ok(tarn__plan_sort_keys_make(&s.in, &s.memory, &ways));
    for (int way = 0; way < TARN__PLAN_SORT_KEYS; way++) {
      tarn__plan_sort_keys_order(&ways, (tarn__plan_sort_key)way);
      check_order(&ways, (tarn__plan_sort_key)way);
    }
    close_scene(&s);
  }
}

// --- plans -------------------------------------------------------------------

TEST(each_plan_is_one) {
  for (uint64_t seed = 0; seed < SCENES; seed++) {
    scene s;
    uint64_t offsets[MOST];
    uint64_t height = UINT64_MAX;
    atomic_bool asked;
    tarn__plan_stop stop = never(&asked);
    make_scene(&s, seed);
    assert_ok(tarn__plan_greedy(&s.in, s.in.bound, &stop, offsets, &height));
    check_plan(&s.in, offsets);
    require(height == tarn__plan_instance_height(&s.in, offsets));
    require(height >= s.in.bound);
    close_scene(&s);
  }
}

TEST(one_pass_makes_a_plan) {
  for (uint64_t seed = 0; seed < SCENES; seed++) {
    scene s;
    uint64_t offsets[MOST];
    make_scene(&s, seed);
    assert_ok(tarn__plan_one_pass(&s.in, offsets));
    check_plan(&s.in, offsets);
    close_scene(&s);
  }
}

TEST(a_plan_that_is_there_only_gets_better) {
  for (uint64_t seed = 0; seed < SCENES; seed++) {
    scene s;
    uint64_t offsets[MOST];
    uint64_t before[MOST];
    atomic_bool asked;
    tarn__plan_stop stop = never(&asked);
    make_scene(&s, seed);
    assert_ok(tarn__plan_one_pass(&s.in, offsets));
    memcpy(before, offsets, sizeof before);
    uint64_t first = tarn__plan_instance_height(&s.in, offsets);
    uint64_t height = first;
    uint64_t target = below(&s, 2) == 0 ? s.in.bound : first;
    assert_ok(tarn__plan_greedy(&s.in, target, &stop, offsets, &height));
    require(height == tarn__plan_instance_height(&s.in, offsets));
    require(height <= first);
    check_plan(&s.in, offsets);
    if (height == first) {
      require(memcmp(before, offsets, s.in.item_count * sizeof *offsets) == 0);
    }
    close_scene(&s);
  }
}

TEST(no_items_have_no_height) {
  tarn_plan_problem problem = {.struct_size = sizeof problem};
  tarn__plan_instance in;
  uint64_t height = UINT64_MAX;
  atomic_bool asked;
  tarn__plan_stop stop = never(&asked);
  assert_ok(tarn__plan_instance_make(&problem, NULL, NULL, &in));
  assert_ok(tarn__plan_greedy(&in, 0, &stop, NULL, &height));
  ck_assert_uint_eq(height, 0);
  tarn__plan_instance_free(&in);
}

// --- moves -------------------------------------------------------------------

static tarn_status move_on(const tarn__plan_instance *in, uint64_t limit,
                           uint64_t *offsets, uint64_t *height,
                           uint64_t *nodes) {
  tarn__plan_memory memory = {0};
  tarn__plan_moves *moves;
  atomic_bool asked;
  tarn__plan_stop stop = never(&asked);
  tarn__plan_moves_run run = {
      .target = in->bound, .node_limit = limit, .stop = &stop};
  tarn_status status = tarn__plan_moves_create(in, &memory, &moves);
  if (status == TARN_OK) {
    status = tarn__plan_moves_lower(moves, &run, offsets, height, nodes);
  }
  tarn__plan_memory_free(&memory);
  return status;
}

// What moves make of a plan is one, no higher, and the same each time.
TEST(moves_only_lower_a_plan) {
  size_t lower = 0;
  for (uint64_t seed = 0; seed < SCENES; seed++) {
    scene s;
    uint64_t offsets[MOST];
    uint64_t again[MOST];
    uint64_t nodes[2];
    make_scene(&s, seed);
    assert_ok(tarn__plan_one_pass(&s.in, offsets));
    memcpy(again, offsets, sizeof again);
    uint64_t first = tarn__plan_instance_height(&s.in, offsets);
    uint64_t height[2] = {first, first};
    uint64_t limit = 1 + below(&s, 300);
    assert_ok(move_on(&s.in, limit, offsets, &height[0], &nodes[0]));
    check_plan(&s.in, offsets);
    require(height[0] == tarn__plan_instance_height(&s.in, offsets));
    require(height[0] <= first && height[0] >= s.in.bound);
    require(nodes[0] <= limit);
    lower += height[0] < first;
    assert_ok(move_on(&s.in, limit, again, &height[1], &nodes[1]));
    require(height[0] == height[1] && nodes[0] == nodes[1]);
    require(memcmp(offsets, again, s.in.item_count * sizeof *again) == 0);
    close_scene(&s);
  }
  ck_assert_uint_gt(lower, SCENES / 4);
}

// --- too little memory -------------------------------------------------------

static void plan_small(void *context) {
  scene *s = context;
  uint64_t offsets[MOST];
  uint64_t height = UINT64_MAX;
  atomic_bool asked;
  tarn__plan_stop stop = never(&asked);
  tarn_status status =
      tarn__plan_greedy(&s->in, s->in.bound, &stop, offsets, &height);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require(status == TARN_E_NOMEM || height != UINT64_MAX);
  if (height == UINT64_MAX) return;
  check_plan(&s->in, offsets);
  require(height == tarn__plan_instance_height(&s->in, offsets));
}

static void pass_small(void *context) {
  scene *s = context;
  uint64_t offsets[MOST];
  tarn_status status = tarn__plan_one_pass(&s->in, offsets);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  if (status == TARN_OK) check_plan(&s->in, offsets);
}

static void move_small(void *context) {
  scene *s = context;
  uint64_t offsets[MOST];
  uint64_t nodes;
  if (tarn__plan_one_pass(&s->in, offsets) != TARN_OK) return;
  uint64_t height = tarn__plan_instance_height(&s->in, offsets);
  tarn_status status = move_on(&s->in, 100, offsets, &height, &nodes);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  check_plan(&s->in, offsets);
  require(height == tarn__plan_instance_height(&s->in, offsets));
}

TEST(too_little_memory_is_said) {
  for (uint64_t seed = 0; seed < 20; seed++) {
    scene s;
    make_scene(&s, seed);
    ck_assert_uint_gt(faults_sweep(plan_small, &s), 0);
    ck_assert_uint_gt(faults_sweep(pass_small, &s), 0);
    ck_assert_uint_gt(faults_sweep(move_small, &s), 0);
    close_scene(&s);
  }
}

int main(void) {
  faults_install();
  return run_tests();
}
