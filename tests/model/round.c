// Rounds: times of use, steps left out, the order of time, bytes in place,
// streams that pass memory on, and no allocation.

#include "run_kit.h"
#include "support/faults.h"
#include "support/hold.h"

// --- lifetimes -------------------------------------------------------------

typedef struct life {
  const net *n;
  uint64_t now;  // UINT64_MAX: no round
  tarn_place place;
  size_t seen;
} life;

// Allowed from its first to its last time and at no other; what begins holds
// nothing.
static tarn_status try_slot(void *context, const tarn_model_slot *slot) {
  life *l = context;
  tarn_synced *buffer =
      slot->part == TARN_DATA ? slot->tensor->data : slot->tensor->diff;
  bool in_time = slot->first <= l->now && l->now <= slot->last;
  tarn_access a;
  l->seen++;
  if (!in_time || l->now == UINT64_MAX) {
    net_refused(buffer, l->place);
    assert_error_says("its lifetime in the plan has not begun or is over");
    return TARN_OK;
  }
  if (slot->first == l->now) {
    assert_status(
        tarn_synced_begin(buffer, 0, TARN_ALL, l->place, TARN_READ, NULL, &a),
        TARN_E_STATE);
    assert_error_says("invalidated");
  }
  net_write(buffer, slot->size, l->place, NULL, 3);
  net_expect(buffer, slot->size, l->place, 3);
  return TARN_OK;
}

static void try_all(life *l, uint64_t now) {
  l->now = now;
  l->seen = 0;
  assert_ok(tarn_model_each_slot(l->n->model, try_slot, l));
  ck_assert_uint_gt(l->seen, 4);
}

static void enter_at(const net *n, uint64_t time) {
  bool forward = time < NET_STEPS;
  size_t step = (size_t)(forward ? time : 2 * NET_STEPS - 1 - time);
  net_enter(n, step, forward ? TARN_FORWARD : TARN_BACKWARD);
}

// Every part, at every time of three rounds, the second of which leaves out
// two of three steps.
TEST_PLACES_OF_NET(test_each_part_in_its_time) {
  net n = net_placed((net_where)_i, gpu);
  life l = {.n = &n};
  for (int round = 0; round < 3; round++) {
    l.place = round == 1 ? tarn_place_on(gpu) : TARN_HOST;
    try_all(&l, UINT64_MAX);
    for (uint64_t time = 0; time < 2 * NET_STEPS; time++) {
      if (round == 1 && time % 3 != 1) continue;
      enter_at(&n, time);
      try_all(&l, time);
      enter_at(&n, time);  // once more is no step
    }
    assert_ok(tarn_model_leave(n.model));
  }
  try_all(&l, UINT64_MAX);
  assert_ok(tarn_model_destroy(n.model));
  all_is_back();
}

TEST(test_an_inference_has_no_way_back) {
  net n = net_make();
  tarn_model_plan_options options = {.struct_size = sizeof options,
                                     .mode = TARN_INFER};
  assert_ok(tarn_model_plan(n.model, &options));
  assert_ok(tarn_model_place(n.model));
  life l = {.n = &n, .place = TARN_HOST};
  ck_assert_ptr_null(n.y[0]->diff);
  ck_assert_ptr_null(n.in[1]->diff);
  ck_assert_ptr_null(n.mask[0]->data);
  ck_assert_ptr_null(n.w[0]->diff);
  ck_assert_ptr_null(n.m->data);
  ck_assert_ptr_nonnull(n.w[0]->data);
  for (int round = 0; round < 2; round++) {
    for (size_t i = 0; i < NET_STEPS; i++) {
      net_enter(&n, i, TARN_FORWARD);
      l.now = i;
      assert_ok(tarn_model_each_slot(n.model, try_slot, &l));
    }
    assert_status(tarn_model_enter(n.step[3], TARN_BACKWARD), TARN_E_STATE);
    assert_error_says(
        "step 's3': the plan is for inference and has no "
        "backward pass");
    tarn_synced *buffer = NULL;
    assert_status(tarn_step_push(n.step[3], TARN_DTYPE_I8, 1, false, &buffer),
                  TARN_E_STATE);
    ck_assert_ptr_null(buffer);
    net_expect(n.y[3]->data, tarn_tensor_size(n.y[3]), TARN_HOST, 3);
  }
  assert_ok(tarn_model_destroy(n.model));
}

// --- the order of time -----------------------------------------------------

TEST(test_no_step_back) {
  net n = net_placed(AT_HOST, NULL);
  net_enter(&n, 2, TARN_FORWARD);  // a round may begin anywhere
  net_write(n.y[2]->data, 8, TARN_HOST, NULL, 5);
  assert_status(tarn_model_enter(n.step[1], TARN_FORWARD), TARN_E_STATE);
  assert_error_says(
      "step 's1' forward: a step back in time; a round begins "
      "with the first step forward");
  net_expect(n.y[2]->data, 8, TARN_HOST, 5);
  net_enter(&n, 1, TARN_BACKWARD);
  assert_status(tarn_model_enter(n.step[3], TARN_BACKWARD), TARN_E_STATE);
  assert_error_says("step 's3' backward: a step back in time");
  assert_status(tarn_model_enter(n.step[3], TARN_FORWARD), TARN_E_STATE);
  net_enter(&n, 0, TARN_FORWARD);  // a new round, from wherever
  net_enter(&n, 0, TARN_FORWARD);
  net_enter(&n, 3, TARN_FORWARD);
  net_enter(&n, 0, TARN_FORWARD);
  assert_ok(tarn_model_leave(n.model));
  assert_ok(tarn_model_leave(n.model));
  net_enter(&n, 2, TARN_BACKWARD);
  assert_ok(tarn_model_destroy(n.model));
}

TEST(test_wrong_steps) {
  net n = net_placed(AT_HOST, NULL);
  net other = net_make();
  assert_status(tarn_model_enter(NULL, TARN_FORWARD), TARN_E_INVALID);
  assert_status(tarn_model_enter(n.step[0], (tarn_pass)7), TARN_E_INVALID);
  assert_error_says("step 's0': no pass 7");
  assert_status(tarn_model_enter(other.step[0], TARN_FORWARD), TARN_E_STATE);
  assert_error_says("it is not placed");
  assert_ok(tarn_model_leave(other.model));
  assert_ok(tarn_model_destroy(other.model));
  assert_ok(tarn_model_destroy(n.model));
}

// Nothing has changed when an access is in the way: not the parts that would
// have ended, nor those that would have begun.
TEST(test_an_open_access_is_in_the_way) {
  net n = net_placed(AT_HOST, NULL);
  tarn_access a;
  for (int size = 0; size < 2; size++) {
    net_enter(&n, 0, TARN_FORWARD);
    net_write(n.y[0]->data, 16, TARN_HOST, NULL, 1);
    net_enter(&n, 3, TARN_FORWARD);
    net_write(n.y[3]->data, 16, TARN_HOST, NULL, 4);
    net_enter(&n, 2, TARN_BACKWARD);
    net_write(n.y[2]->diff, 16, TARN_HOST, NULL, 2);
    net_write(n.y[1]->diff, 16, TARN_HOST, NULL, 3);
    assert_ok(tarn_synced_begin(n.y[1]->diff, 0, size == 0 ? 0 : 8, TARN_HOST,
                                TARN_READ, NULL, &a));
    assert_status(tarn_model_enter(n.step[0], TARN_BACKWARD), TARN_E_STATE);
    assert_error_says("'y1': an access to it is open");
    assert_status(tarn_model_enter(n.step[0], TARN_FORWARD), TARN_E_STATE);
    assert_status(tarn_model_leave(n.model), TARN_E_STATE);
    net_expect(n.y[2]->diff, 16, TARN_HOST, 2);
    net_expect(n.y[0]->data, 16, TARN_HOST, 1);
    net_refused(n.y[0]->diff, TARN_HOST);
    assert_ok(tarn_synced_end(&a));
    net_enter(&n, 0, TARN_BACKWARD);
    net_refused(n.y[1]->diff, TARN_HOST);
  }
  assert_ok(tarn_model_destroy(n.model));
}

// --- in place --------------------------------------------------------------

typedef struct pair {
  tarn_model *model;
  tarn_tensor *a, *b;
  tarn_step *step[3];
} pair;

enum { ROW = 4096 };

// a is written by step 0, b takes its place in step 1, step 2 reads it.
static pair make_pair(tarn_place home) {
  static const int64_t row[] = {ROW};
  pair p = {.model = NULL};
  assert_ok(tarn_model_create(NULL, &p.model));
  assert_ok(tarn_model_add(p.model, TARN_OUTPUT, "a", TARN_DTYPE_U8,
                           (tarn_shape){row, 1}, &p.a));
  assert_ok(tarn_model_add(p.model, TARN_OUTPUT, "b", TARN_DTYPE_U8,
                           (tarn_shape){row, 1}, &p.b));
  for (size_t i = 0; i < 3; i++) {
    char name[] = {(char)('0' + i), '\0'};
    assert_ok(tarn_model_step(p.model, name, &p.step[i]));
  }
  assert_ok(tarn_step_writes(p.step[0], TARN_FORWARD, p.a, TARN_DATA));
  assert_ok(tarn_step_replaces(p.step[1], TARN_FORWARD, p.a, TARN_DATA, p.b,
                               TARN_DATA));
  assert_ok(tarn_step_reads(p.step[2], TARN_FORWARD, p.b, TARN_DATA));
  tarn_model_plan_options options = {.struct_size = sizeof options,
                                     .home = home};
  assert_ok(tarn_model_plan(p.model, &options));
  assert_ok(tarn_model_place(p.model));
  ck_assert(tarn_model_is_in_place(p.model, p.a, TARN_DATA, p.b, TARN_DATA));
  return p;
}

TEST(test_in_place) {
  pair p = make_pair(TARN_HOST);
  for (int round = 0; round < 3; round++) {
    tarn_access from;
    tarn_access to;
    assert_ok(tarn_model_enter(p.step[0], TARN_FORWARD));
    net_refused(p.b->data, TARN_HOST);
    net_write(p.a->data, ROW, TARN_HOST, NULL, 40);
    assert_ok(tarn_model_enter(p.step[1], TARN_FORWARD));
    assert_ok(tarn_synced_begin(p.a->data, 0, TARN_ALL, TARN_HOST, TARN_READ,
                                NULL, &from));
    assert_ok(tarn_synced_begin(p.b->data, 0, TARN_ALL, TARN_HOST,
                                TARN_WRITE_DISCARD, NULL, &to));
    ck_assert_ptr_eq(from.pointer, to.pointer);
    unsigned char *bytes = to.pointer;
    for (size_t i = 0; i < ROW; i++) {
      require(bytes[i] == 40);
      bytes[i]++;
    }
    assert_ok(tarn_synced_end(&to));
    assert_ok(tarn_synced_end(&from));
    assert_ok(tarn_model_enter(p.step[2], TARN_FORWARD));
    net_refused(p.a->data, TARN_HOST);
    net_expect(p.b->data, ROW, TARN_HOST, 41);
  }
  assert_ok(tarn_model_destroy(p.model));
}

// --- streams ---------------------------------------------------------------

// Queues copies of |from| to |buffer|, on |stream|, without waiting.
static void queue_write(tarn_synced *buffer, const unsigned char *from,
                        tarn_stream *stream) {
  tarn_access a;
  assert_ok(tarn_synced_begin(buffer, 0, TARN_ALL, tarn_place_on(gpu),
                              TARN_WRITE_DISCARD, stream, &a));
  assert_ok(tarn_copy_h2d(gpu, a.address, from, a.size, stream));
  assert_ok(tarn_synced_end(&a));
}

static void queue_read(tarn_synced *buffer, unsigned char *to,
                       tarn_stream *stream) {
  tarn_access a;
  assert_ok(tarn_synced_begin(buffer, 0, TARN_ALL, tarn_place_on(gpu),
                              TARN_READ, stream, &a));
  for (int i = 0; i < 3; i++)  // one late is enough
    assert_ok(tarn_copy_d2h(gpu, to, a.address, a.size, stream));
  assert_ok(tarn_synced_end(&a));
}

static void assert_all(const unsigned char *bytes, unsigned char value) {
  for (size_t i = 0; i < ROW; i++)
    require(bytes[i] == value);
}

// Streams that lag. One reads the giver while it may, another writes the taker
// a step later, and another part has the bytes after that.
TEST(test_streams_hand_memory_over) {
  static unsigned char ones[ROW], twos[ROW], threes[ROW], read[3][ROW];
  memset(ones, 1, ROW);
  memset(twos, 2, ROW);
  memset(threes, 3, ROW);
  open_sim(SIM_MIB, 300000);
  tarn_stream *s[2];
  for (size_t i = 0; i < 2; i++)
    assert_ok(tarn_stream_create(gpu, &s[i]));
  pair p = make_pair(tarn_place_on(gpu));
  for (int round = 0; round < 3; round++) {
    memset(read, 0, sizeof read);
    assert_ok(tarn_model_enter(p.step[0], TARN_FORWARD));
    queue_write(p.a->data, ones, s[0]);
    assert_ok(tarn_model_enter(p.step[1], TARN_FORWARD));
    queue_read(p.a->data, read[0], s[0]);
    assert_ok(tarn_model_enter(p.step[2], TARN_FORWARD));
    queue_write(p.b->data, twos, s[1]);
    queue_read(p.b->data, read[1], s[1]);
    assert_ok(tarn_model_enter(p.step[0], TARN_FORWARD));
    queue_write(p.a->data, threes, s[0]);
    queue_read(p.a->data, read[2], s[1]);
    assert_ok(tarn_stream_synchronize(s[0]));
    assert_ok(tarn_stream_synchronize(s[1]));
    assert_all(read[0], 1);
    assert_all(read[1], 2);
    assert_all(read[2], 3);
  }
  // The host waits as well.
  queue_read(p.a->data, read[0], s[0]);
  assert_ok(tarn_model_enter(p.step[1], TARN_FORWARD));
  assert_ok(tarn_model_enter(p.step[2], TARN_FORWARD));
  net_write(p.b->data, ROW, tarn_place_on(gpu), NULL, 9);
  assert_ok(tarn_stream_synchronize(s[0]));
  assert_all(read[0], 3);
  for (size_t i = 0; i < 2; i++)
    assert_ok(tarn_stream_destroy(s[i]));
  assert_ok(tarn_model_destroy(p.model));
  all_is_back();
}

// --- what a round takes ----------------------------------------------------

// After a few rounds that warm up: no call to a pool, and none to the
// library's own allocator.
static void assert_takes_nothing(const net *n, tarn_place place,
                                 tarn_stream *stream) {
  enum { WARM_UP = 5, ROUNDS = 20 };
  for (unsigned char i = 0; i < WARM_UP; i++)
    net_round(n, place, stream, (unsigned char)(i * 11));
  uint64_t host = stats_of(TARN_HOST).allocs;
  uint64_t pinned = stats_of((tarn_place){gpu, TARN_PLACE_HOST}).allocs;
  uint64_t device = stats_of(tarn_place_on(gpu)).allocs;
  size_t held = tarn_host_memory();
  size_t before = faults_calls();
  ck_assert_uint_gt(before, 0);  // they are counted
  for (unsigned char i = 0; i < ROUNDS; i++)
    net_round(n, place, stream, (unsigned char)(i * 7));
  size_t taken = faults_calls() - before;
  ck_assert_uint_eq(taken, 0);
  ck_assert_uint_eq(tarn_host_memory(), held);
  ck_assert_uint_eq(stats_of(TARN_HOST).allocs, host);
  ck_assert_uint_eq(stats_of((tarn_place){gpu, TARN_PLACE_HOST}).allocs,
                    pinned);
  ck_assert_uint_eq(stats_of(tarn_place_on(gpu)).allocs, device);
}

TEST_LOOP_ON_LIBRARY(test_a_round_takes_nothing, 2 * NET_PLACES,
                     TEST_NEEDS_DISCRETE, use_gpu) {
  net n = net_placed((net_where)(_i / 2), gpu);
  assert_takes_nothing(&n, _i % 2 == 0 ? TARN_HOST : tarn_place_on(gpu), NULL);
  assert_ok(tarn_model_destroy(n.model));
  all_is_back();
}

// On a stream that is at the end of each step already: the next step would
// remember what is under way.
TEST_LOOP(test_a_round_on_a_stream_takes_nothing, 2 * NET_PLACES) {
  open_sim(SIM_MIB, 0);
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(gpu, &stream));
  net n = net_placed((net_where)(_i / 2), gpu);
  assert_takes_nothing(&n, _i % 2 == 0 ? TARN_HOST : tarn_place_on(gpu),
                       stream);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_model_destroy(n.model));
  all_is_back();
}

// --- faults ----------------------------------------------------------------

// Streams make it take memory to enter a step: without any nothing has
// changed, and the same call goes on when there is some again.
TEST(test_no_memory_to_enter) {
  static unsigned char ones[ROW];
  open_sim(SIM_MIB, 0);
  hold held;
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(gpu, &stream));
  hold_begin(&held, stream);
  pair p = make_pair(tarn_place_on(gpu));
  size_t refused = 0;
  for (size_t n = 1; n < 12; n++) {
    for (size_t i = 0; i < 3; i++) {
      tarn_tensor *now = i == 0 ? p.a : p.b;
      faults_arm(n, FAULTS_FROM_NOW);
      tarn_status status = tarn_model_enter(p.step[i], TARN_FORWARD);
      faults_disarm();
      if (status != TARN_OK) {
        assert_status(status, TARN_E_NOMEM);
        refused++;
        if (i == 1) net_refused(p.b->data, TARN_HOST);
        if (i == 1) queue_write(p.a->data, ones, stream);
        assert_ok(tarn_model_enter(p.step[i], TARN_FORWARD));
      }
      queue_write(now->data, ones, stream);
    }
  }
  hold_end(&held);
  ck_assert_uint_gt(refused, 1);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_model_destroy(p.model));
  all_is_back();
}

// Host memory is counted from the first on.
int main(void) {
  faults_install();
  return run_tests();
}
