// The beam: plans that hold, on small problems of every kind and on real ones.
#include <math.h>

#include "bench/plan_packings.h"
#include "plan_model.h"
#include "search_kit.h"
#include "support/faults.h"

enum {
  MOST_BYTES = 1 << 20,
  SCENES = 2000,
  BUFFERS = 7,
  KINDS = TARN__PLAN_OF_SKYLINES + 1,
};

static tarn__plan_run run_of(uint64_t capacity, uint32_t width) {
  return (tarn__plan_run){.capacity = capacity, .width = width, .ease = 8};
}

// A beam on an instance, and what its last run found.
typedef struct bed {
  field f;
  tarn__plan_beam *beam;
  tarn__plan_outcome outcome;
  uint64_t nodes;
} bed;

static void open_bed(bed *b, tarn__plan_beam_kind kind, uint32_t width) {
  assert_ok(tarn__plan_beam_create(&b->f.near, kind, width, 8 * MOST_BYTES,
                                   &b->f.memory, &b->beam));
}

static tarn__plan_outcome run_bed(bed *b, tarn__plan_run run,
                                  uint64_t *offsets) {
  tarn__plan_stop stop = never();
  if (run.stop == NULL) run.stop = &stop;
  tarn__plan_beam_run(b->beam, &run, offsets, &b->outcome, &b->nodes);
  return b->outcome;
}

// |offsets|: in bytes, by buffer.
static tarn__plan_outcome try_scene(const model_scene *scene,
                                    tarn__plan_beam_kind kind,
                                    uint64_t capacity, uint64_t *offsets) {
  bed b;
  uint64_t units[MODEL_MOST] = {0};
  open_field(&scene->problem, NULL, &b.f);
  open_bed(&b, kind, 64);
  run_bed(&b, run_of(capacity / b.f.in.unit, 64), units);
  for (size_t i = 0; i < b.f.in.buffer_count; i++) {
    offsets[i] = units[b.f.in.item_of[i]] * b.f.in.unit;
  }
  close_field(&b.f);
  return b.outcome;
}

typedef struct tally {
  size_t possible;
  size_t found;
} tally;

// A plan that is found at the least height is one, and none is found below.
// Pairs are not merged, so the least height with merged pairs may be out of a
// beam's reach: none of the scenes has any.
static void try_least(const model_scene *scene, tarn__plan_beam_kind kind,
                      tally *sum) {
  uint64_t height = 0;
  uint64_t least = model_least(scene, (1U << scene->problem.count) - 1);
  if (least == UINT64_MAX || scene->problem.count == 0) return;
  uint64_t offsets[MODEL_MOST];
  sum->possible++;
  if (try_scene(scene, kind, least, offsets) == TARN__PLAN_FOUND) {
    sum->found++;
    require(model_is_plan(&scene->problem, offsets, NULL, &height));
    require(height == least);
  }
  if (least == 1) return;
  require(try_scene(scene, kind, least - 1, offsets) == TARN__PLAN_STOPPED);
}

static tally try_scenes(tarn__plan_beam_kind kind, unsigned without) {
  tally sum = {0};
  for (uint64_t seed = 1; seed <= SCENES; seed++) {
    model_scene scene;
    model_make(&scene, seed, BUFFERS, (unsigned)seed % MODEL_KINDS & ~without);
    try_least(&scene, kind, &sum);
  }
  ck_assert_uint_gt(sum.possible, SCENES / 2);
  return sum;
}

// So wide a beam leaves hardly a state of so few buffers out.
TEST(plans_hold) {
  tally sum = try_scenes(TARN__PLAN_OF_SPOTS, MODEL_PAIRED);
  ck_assert_uint_eq(sum.found, sum.possible);
}

// Skylines leave out states in which an item comes below what is down already.
// They are not used where anything is fixed.
TEST(plans_of_skylines_hold) {
  tally sum = try_scenes(TARN__PLAN_OF_SKYLINES, MODEL_PAIRED | MODEL_FIXED);
  ck_assert_uint_gt(sum.found, sum.possible / 10 * 9);
}

TEST_LOOP(merged_pairs_are_one, KINDS) {
  tarn__plan_beam_kind kind = (tarn__plan_beam_kind)_i;
  const tarn_plan_buffer buffers[] = {
      {.first = 0, .last = 3, .size = 4},
      {.first = 2, .last = 5, .size = 6},
      {.first = 1, .last = 4, .size = 2},
  };
  const tarn_plan_pair pair = {0, 1};
  const bool merged = true;
  tarn_plan_problem problem = {.struct_size = sizeof problem,
                               .buffers = buffers,
                               .count = 3,
                               .pairs = &pair,
                               .pair_count = 1};
  uint64_t offsets[3] = {9, 9, 9};
  bed b;
  open_field(&problem, &merged, &b.f);
  ck_assert_uint_eq(b.f.in.item_count, 2);
  open_bed(&b, kind, 4);
  tarn__plan_run run = run_of(8 / b.f.in.unit, 4);
  ck_assert_int_eq(run_bed(&b, run, offsets), TARN__PLAN_FOUND);
  ck_assert_uint_eq(tarn__plan_instance_height(&b.f.in, offsets),
                    8 / b.f.in.unit);
  ck_assert_uint_gt(b.nodes, 0);
  close_field(&b.f);
}

// --- a larger one ------------------------------------------------------------

enum { MANY = 200, WIDTH = 16, SCALE = 1 << 20 };

static tarn_plan_buffer many[MANY];

static void scatter(void) {
  uint64_t state = 7;
  for (size_t i = 0; i < MANY; i++) {
    uint64_t first = model_random(&state, 60);
    many[i] =
        (tarn_plan_buffer){.first = first,
                           .last = first + 1 + model_random(&state, 20),
                           .size = (1 + model_random(&state, 50)) << (i % 40)};
  }
}

// As skylines are for: no room is left in any step.
static void cut_up(void) {
  plan_packing made = plan_packing_make((plan_packing_spec){MANY, 300, 1});
  for (size_t i = 0; i < MANY; i++) {
    many[i] = made.buffers[i];
    many[i].size *= SCALE;
  }
  plan_packing_free(&made);
}

static const tarn_plan_problem many_problem = {
    .struct_size = sizeof many_problem, .buffers = many, .count = MANY};

static void open_many(field *f, tarn__plan_beam_kind kind) {
  if (kind == TARN__PLAN_OF_SKYLINES) {
    cut_up();
  } else {
    scatter();
  }
  open_field(&many_problem, NULL, f);
  ck_assert_int_eq(tarn__plan_is_tight(&f->in), kind == TARN__PLAN_OF_SKYLINES);
}

// At which each kind finds a plan.
static uint64_t found_within(const bed *b, tarn__plan_beam_kind kind) {
  uint64_t bound = b->f.in.bound;
  return kind == TARN__PLAN_OF_SKYLINES ? bound : bound / 8 * 9;
}

// Sizes far beyond 32 bits are counted coarsely, but lie exactly.
TEST_LOOP(large_sizes_lie_exactly, KINDS) {
  tarn__plan_beam_kind kind = (tarn__plan_beam_kind)_i;
  uint64_t offsets[MANY];
  uint64_t height;
  bed b;
  open_many(&b.f, kind);
  ck_assert_uint_ge(b.f.in.bound * b.f.in.unit, UINT64_C(1) << 40);
  open_bed(&b, kind, WIDTH);
  tarn__plan_run run = run_of(found_within(&b, kind), WIDTH);
  ck_assert_int_eq(run_bed(&b, run, offsets), TARN__PLAN_FOUND);
  for (size_t i = 0; i < MANY; i++)
    offsets[i] *= b.f.in.unit;
  assert_ok(tarn_plan_verify(&many_problem, offsets, NULL, &height));
  ck_assert_uint_le(height, run.capacity * b.f.in.unit);
  close_field(&b.f);
}

TEST_LOOP(the_same_again, KINDS) {
  tarn__plan_beam_kind kind = (tarn__plan_beam_kind)_i;
  uint64_t offsets[2][MANY];
  uint64_t nodes[2];
  bed b;
  open_many(&b.f, kind);
  open_bed(&b, kind, WIDTH);
  for (int i = 0; i < 2; i++) {
    tarn__plan_run run = run_of(found_within(&b, kind), WIDTH);
    run.seed = 3;
    ck_assert_int_eq(run_bed(&b, run, offsets[i]), TARN__PLAN_FOUND);
    nodes[i] = b.nodes;
    // Another run in between leaves nothing behind.
    run.capacity = b.f.in.bound;
    run.order = TARN__PLAN_BY_AREA;
    uint64_t other[MANY];
    run_bed(&b, run, other);
  }
  ck_assert_uint_eq(nodes[0], nodes[1]);
  ck_assert_mem_eq(offsets[0], offsets[1], sizeof offsets[0]);
  close_field(&b.f);
}

TEST_LOOP(limits_are_kept, KINDS) {
  tarn__plan_beam_kind kind = (tarn__plan_beam_kind)_i;
  atomic_bool asked = true;
  tarn__plan_stop late = {.asked = &nobody_asks};
  tarn__plan_stop told = {.deadline_ns = UINT64_MAX, .asked = &asked};
  const struct {
    uint64_t node_limit;
    tarn__plan_stop *stop;
    uint64_t most_nodes;
  } limits[] = {{100, NULL, 112},  // a state's choices are all looked at
                {0, &late, 100},
                {0, &told, 100}};
  bed b;
  open_many(&b.f, kind);
  open_bed(&b, kind, WIDTH);
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    uint64_t offsets[MANY] = {77};
    tarn__plan_run run = run_of(b.f.in.bound * 2, WIDTH);
    run.node_limit = limits[i].node_limit;
    run.stop = limits[i].stop;
    ck_assert_int_eq(run_bed(&b, run, offsets), TARN__PLAN_STOPPED);
    ck_assert_uint_eq(offsets[0], 77);
    ck_assert_uint_le(b.nodes, limits[i].most_nodes);
  }
  close_field(&b.f);
}

TEST_LOOP(too_large_is_said, KINDS) {
  tarn__plan_beam_kind kind = (tarn__plan_beam_kind)_i;
  bed b;
  open_many(&b.f, kind);
  assert_status(
      tarn__plan_beam_create(&b.f.near, kind, 8, 1000, &b.f.memory, &b.beam),
      TARN_FULL);
  ck_assert_ptr_null(b.beam);
  // As wide as there is room for.
  assert_ok(tarn__plan_beam_create(&b.f.near, kind, 1000000, MOST_BYTES,
                                   &b.f.memory, &b.beam));
  ck_assert_uint_gt(tarn__plan_beam_width(b.beam), 10);
  ck_assert_uint_lt(tarn__plan_beam_width(b.beam), 1000);
  close_field(&b.f);
}

TEST(tight_is_what_leaves_no_room) {
  tarn_plan_buffer buffers[] = {{.first = 0, .last = 1, .size = 512},
                                {.first = 1, .last = 2, .size = 512}};
  tarn_plan_problem problem = {
      .struct_size = sizeof problem, .buffers = buffers, .count = 2};
  const struct {
    uint64_t size;
    bool has_offset;
    bool tight;
  } seconds[] = {{512, false, true},
                 {506, false, true},
                 {480, false, false},
                 {512, true, false}};
  for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
    tarn__plan_instance in;
    buffers[1].size = seconds[i].size;
    buffers[1].flags = seconds[i].has_offset ? TARN_PLAN_FIXED : 0;
    assert_ok(tarn__plan_instance_make(&problem, NULL, NULL, &in));
    ck_assert_int_eq(tarn__plan_is_tight(&in), seconds[i].tight);
    tarn__plan_instance_free(&in);
  }
}

typedef struct scarce {
  field f;
  tarn__plan_beam_kind kind;
} scarce;

// A run needs no memory.
static void make_once(void *context) {
  const scarce *s = context;
  tarn__plan_memory memory = {0};
  tarn__plan_beam *beam;
  tarn_status status = tarn__plan_beam_create(&s->f.near, s->kind, 2,
                                              MOST_BYTES, &memory, &beam);
  ck_assert_int_eq(beam != NULL, status == TARN_OK);
  if (status != TARN_OK) assert_status(status, TARN_E_NOMEM);
  tarn__plan_memory_free(&memory);
}

TEST_LOOP(without_memory, KINDS) {
  scarce s = {.kind = (tarn__plan_beam_kind)_i};
  open_many(&s.f, s.kind);
  ck_assert_uint_gt(faults_sweep(make_once, &s), 5);
  close_field(&s.f);
}

// --- which search uses which beam ------------------------------------------

// A perfect packing that takes 89,290 nodes, with beams of skylines where no
// room is to be left. With beams of spots alone there is none within a million.
TEST(tight_problems_are_solved_with_skylines) {
  plan_packing made = plan_packing_make(
      (plan_packing_spec){.count = 200, .steps = 60, .seed = 3});
  tarn_plan_problem problem = {.struct_size = sizeof problem,
                               .buffers = made.buffers,
                               .count = made.count};
  tarn_plan_options options = {.struct_size = sizeof options,
                               .time_limit_s = INFINITY,
                               .node_limit = 200000};
  tarn_plan_info info = {.struct_size = sizeof info};
  tarn_plan *plan = NULL;
  assert_ok(tarn_plan_solve(&problem, &options, &plan));
  assert_ok(tarn_plan_query(plan, &info));
  ck_assert_int_eq(info.answer, TARN_PLAN_OPTIMAL);
  ck_assert_uint_eq(info.height, PLAN_PACKING_HEIGHT);
  ck_assert_uint_lt(info.nodes, options.node_limit);
  tarn_plan_destroy(plan);
  plan_packing_free(&made);
}

int main(void) {
  faults_install();
  return run_tests();
}
