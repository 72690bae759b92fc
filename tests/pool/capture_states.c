// Pools that graphs are captured with: what is allowed when, what happens
// without host memory, and several threads in one capture.
#include <pthread.h>
#include <stdatomic.h>

#include "capture_kit.h"
#include "support/faults.h"

// --- states, cell by cell --------------------------------------------------

typedef struct cell {
  tarn_status begin, end, release, take, trim, destroy;
} cell;

// The fourth is on sim only, which has streams that capture unasked.
static const cell cells[] = {
    // no capture, a capture, a graph, a capture that was noticed
    {TARN_OK, TARN_E_STATE, TARN_OK, TARN_OK, TARN_OK, TARN_OK},
    {TARN_E_STATE, TARN_OK, TARN_E_STATE, TARN_OK, TARN_E_STATE, TARN_E_STATE},
    {TARN_OK, TARN_E_STATE, TARN_OK, TARN_E_STATE, TARN_E_STATE, TARN_OK},
    {TARN_OK, TARN_E_STATE, TARN_E_STATE, TARN_OK, TARN_E_STATE, TARN_E_STATE},
};
enum { STATES = sizeof cells / sizeof *cells, NOTICED = 3 };

// While sim captures it gives no memory: some is there before.
static void enter(int device, int state) {
  open_with(device, "page_unit_pool");
  if (state == NOTICED) {
    tarn_block first = take(pool, 100);
    give(take(pool, 100));
    give(first);
    tarn_sim_capture(tarn_stream_native(a));
    give_on(take_on(pool, 100, a), a);
    return;
  }
  if (state > 0) begin();
  if (state > 1) end();
}

static void leave(void) {
  tarn_sim_capture(NULL);
  if (pool->capture == TARN__CAPTURE_RUNNING) end();
  if (pool->deferred != NULL) release();
  close_all();
}

TEST_LOOP(each_state_allows_what_it_allows, TEST_DEVICES) {
  bool is_sim = strcmp(test_devices[_i], "sim:0") == 0;
  for (int state = 0; state < (is_sim ? STATES : NOTICED); state++) {
    const cell *c = &cells[state];
    enter(_i, state);
    assert_status(tarn_pool_begin_capture(pool), c->begin);
    leave();
    enter(_i, state);
    assert_status(tarn_pool_end_capture(pool), c->end);
    leave();
    enter(_i, state);
    assert_status(tarn_pool_end_graphs(pool), c->release);
    leave();
    enter(_i, state);
    tarn_block block;
    uint64_t failures = stats_of(pool).failures;
    assert_status(tarn_pool_alloc(pool, 100, 0, a, &block), c->take);
    ck_assert_uint_eq(stats_of(pool).failures - failures, c->take != TARN_OK);
    if (c->take == TARN_OK) give_on(block, a);
    leave();
    enter(_i, state);
    assert_status(tarn_pool_trim(pool, 0), c->trim);
    leave();
    enter(_i, state);
    if (c->destroy != TARN_OK) {
      assert_status(tarn_pool_destroy(pool), c->destroy);
      assert_error_says("a capture is under way");
    }
    if (state != NOTICED && c->destroy == TARN_OK) {
      close_all();
    } else {
      leave();
    }
  }
}

TEST(only_pools_for_it_are_captured_with) {
  tarn_pool *shared = host_pool("page_unit_pool");
  assert_status(tarn_pool_begin_capture(shared), TARN_E_UNSUPPORTED);
  assert_error_says("TARN_POOL_DEFER");
  assert_status(tarn_pool_end_capture(shared), TARN_E_UNSUPPORTED);
  assert_status(tarn_pool_end_graphs(shared), TARN_E_UNSUPPORTED);
  assert_status(tarn_pool_begin_capture(NULL), TARN_E_INVALID);
  assert_status(tarn_pool_end_capture(NULL), TARN_E_INVALID);
  assert_status(tarn_pool_end_graphs(NULL), TARN_E_INVALID);
}

TEST(a_strategy_that_gives_back_is_refused) {
  static const char *const others[] = {"no_pool", "async_pool", "buddy_pool"};
  for (int i = 0; i < 3; i++) {
    tarn_pool_options options = {.struct_size = sizeof options,
                                 .strategy = others[i],
                                 .flags = TARN_POOL_DEFER};
    tarn_pool *none = NULL;
    assert_status(tarn_pool_create(TARN_HOST, &options, &none),
                  TARN_E_UNSUPPORTED);
    assert_error_says(others[i]);
    ck_assert_ptr_null(none);
  }
  open_with(0, "page_unit_pool");
  assert_status(tarn_pool_set_strategy(pool, "arena_pool"), TARN_E_UNSUPPORTED);
}

// --- without host memory ---------------------------------------------------

static void free_some(tarn_block *blocks, size_t count) {
  tarn_stream *streams[] = {a, b};
  for (size_t i = 0; i < count; i++) {
    if (blocks[i].pool == NULL) continue;
    assert_ok(tarn_pool_free(&blocks[i], streams[i % 2]));
    blocks[i].pool = NULL;
  }
}

// Whatever fails, nothing goes back before it may, and all is counted.
static void capture_and_release(void *context) {
  (void)context;
  tarn_block blocks[12] = {0};
  uint64_t given_back = stats_of(pool).device_frees;
  begin();
  for (size_t i = 0; i < 12; i++) {
    tarn_status status =
        tarn_pool_alloc(pool, 1 + i / 6 * 9999, 0, i % 3 ? a : b, &blocks[i]);
    require(status != TARN_E_STATE && status != TARN_E_INVALID);
  }
  free_some(blocks, 10);
  tarn_status status = tarn_pool_end_capture(pool);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  free_some(blocks, 12);
  assert_ok(tarn__front_check(pool));
  ck_assert_uint_eq(stats_of(pool).device_frees, given_back);
  release();
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_trim(pool, 0));
}

TEST_LOOP(nothing_leaves_without_host_memory, CASES_ON_DEVICES) {
  faults_install();
  open_case(_i);
  (void)frees_at_first();
  capture_and_release(NULL);  // so that streams and tables are known
  size_t struck = 0;
  for (size_t n = 1;; n++) {
    faults_arm(n, FAULTS_ONCE);
    capture_and_release(NULL);
    if (!faults_disarm()) break;
    struck++;
  }
  ck_assert_uint_gt(struck, device_has(p.device, TEST_NEEDS_RANGES) ? 3 : 0);
}

// --- threads ---------------------------------------------------------------

// The smallest device has room for the blocks of all rounds: in a capture the
// free of a block by another stream is put off, and that may be each of them.
enum { ROUNDS = 2000, BOX = 64, LARGEST = 16000 };
static atomic_int wrong;
static struct {
  pthread_mutex_t lock;  // guards the rest
  tarn_block blocks[BOX];
  size_t count;
} box = {.lock = PTHREAD_MUTEX_INITIALIZER};

// Puts |block| in and takes another out, perhaps of the other thread.
static bool swap(tarn_block *block, unsigned at) {
  pthread_mutex_lock(&box.lock);
  bool full = box.count == BOX;
  if (full) {
    tarn_block other = box.blocks[at % BOX];
    box.blocks[at % BOX] = *block;
    *block = other;
  } else {
    box.blocks[box.count++] = *block;
  }
  pthread_mutex_unlock(&box.lock);
  return full;
}

static void *take_and_give(void *context) {
  tarn_stream *stream = context;
  for (unsigned i = 0; i < ROUNDS; i++) {
    tarn_block block;
    size_t size = 1 + (i * 2654435761u) % LARGEST;
    bool right = tarn_pool_alloc(pool, size, 0, stream, &block) == TARN_OK;
    if (right && swap(&block, i * 40503u)) {
      right = tarn_pool_free(&block, stream) == TARN_OK;
    }
    if (!right) atomic_fetch_add(&wrong, 1);
  }
  return NULL;
}

TEST_LOOP(threads_capture_together, CASES_ON_DEVICES) {
  open_case(_i);
  pthread_t threads[2];
  box.count = 0;
  uint64_t device_frees = frees_at_first();
  uint64_t frees = stats_of(pool).frees;
  begin();
  ck_assert_int_eq(pthread_create(&threads[0], NULL, take_and_give, a), 0);
  ck_assert_int_eq(pthread_create(&threads[1], NULL, take_and_give, b), 0);
  for (int j = 0; j < 2; j++)
    pthread_join(threads[j], NULL);
  ck_assert_int_eq(atomic_load(&wrong), 0);
  assert_ok(tarn__front_check(pool));
  end();
  while (box.count > 0)
    give(box.blocks[--box.count]);
  ck_assert_uint_eq(stats_of(pool).stream_crossings, 0);
  ck_assert_uint_eq(stats_of(pool).frees, frees + (uint64_t)2 * ROUNDS);
  ck_assert_uint_eq(stats_of(pool).device_frees, device_frees);
}
