// Pools and adopted streams: no memory is handed out while a stream that was
// given back still works in it.
//
// An oracle keeps a word for each granule of the device's addresses. What is
// queued on a stream marks a block's granules when it begins, works for a
// while, and clears them; it finds them clear, or two blocks were in use at one
// place at one time. Streams of sim run what is queued on threads of their own.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "device/device.h"
#include "support/effort.h"
#include "support/hold.h"
#include "support/mix.h"
#include "support/run.h"
#include "support/strategy.h"
#include "tarn/pool.h"
#include "tarn/sim.h"

enum {
  GRANULE = 256,
  GRANULES = 1 << 21,  // 512 MiB of addresses
  CAPACITY = 32 << 20,
};

static const char *const strategies[] = {
    "arena_pool",     "arena_pool:page=64K,small=4K",
    "page_unit_pool", "buddy_pool:min=4K",
    "async_pool",     "no_pool",
};
enum { STRATEGIES = sizeof strategies / sizeof strategies[0] };

// --- the oracle ------------------------------------------------------------

static _Atomic(uint32_t) in_use[GRANULES];
static atomic_size_t overlaps;
static atomic_size_t uses;

typedef struct use {
  tarn_block block;
  uint32_t id;  // not 0
  uint32_t work_ns;
} use;

static bool change(const use *u, uint32_t from, uint32_t to) {
  size_t first = (size_t)(u->block.address / GRANULE);
  size_t count = (u->block.size + GRANULE - 1) / GRANULE;
  bool right = true;
  for (size_t i = first; i < first + count; i++) {
    uint32_t found = from;
    right = atomic_compare_exchange_strong(&in_use[i % GRANULES], &found, to) &&
            right;
  }
  return right;
}

static void work(void *context, tarn_status status) {
  use *u = context;
  bool right = status == TARN_OK && change(u, 0, u->id);
  struct timespec time = {.tv_nsec = u->work_ns};
  if (u->work_ns > 0) (void)nanosleep(&time, NULL);
  if (!right || !change(u, u->id, 0)) atomic_fetch_add(&overlaps, 1);
  free(u);
}

static bool queue_use(tarn_stream *stream, const tarn_block *block,
                      uint32_t work_ns) {
  use *u = malloc(sizeof *u);
  if (u == NULL) return false;
  uint32_t id = (uint32_t)atomic_fetch_add(&uses, 1) + 1;
  *u = (use){.block = *block, .id = id, .work_ns = work_ns};
  if (tarn_stream_add_callback(stream, work, u) == TARN_OK) return true;
  free(u);
  return false;
}

// --- the runtime's streams -------------------------------------------------

static tarn_device *sim;
static tarn_pool *pool;

static C_Stream native_stream(void) {
  C_Stream native = NULL;
  ck_assert_int_eq(sim->abi->create_stream(&sim->handle, &native), C_SUCCESS);
  return native;
}

static void end_native_stream(C_Stream native) {
  ck_assert_int_eq(sim->abi->destroy_stream(&sim->handle, native), C_SUCCESS);
}

static tarn_stream *adopt(C_Stream native) {
  tarn_stream *stream = NULL;
  return tarn_stream_adopt(sim, native, &stream) == TARN_OK ? stream : NULL;
}

static void check_and_close(void *unused) {
  (void)unused;
  char text[256];
  assert_ok(tarn_device_synchronize(sim));
  ck_assert_uint_eq(tarn__departed_count(sim), 0);
  ck_assert_uint_eq(atomic_load(&overlaps), 0);
  ck_assert_msg(tarn_sim_misuses(text, sizeof text) == 0, "%s", text);
  assert_ok(tarn_device_close(sim));
}

static void begin(const char *strategy) {
  tarn_sim_options options = {.struct_size = sizeof options,
                              .capacity = CAPACITY};
  assert_ok(tarn_sim_configure(&options));
  assert_ok(tarn_device_open("sim:0", &sim));
  assert_ok(use_strategy(tarn_place_on(sim), strategy));
  assert_ok(tarn_pool_of(tarn_place_on(sim), &pool));
  after_test(check_and_close, NULL);
}

// --- one stream that is held up --------------------------------------------

static bool overlap(const tarn_block *a, const tarn_block *b) {
  return a->address < b->address + b->size && b->address < a->address + a->size;
}

// Of two requests of that size there is room for one only, more or less: the
// second gets the memory of the first, and then stands behind it, or gets other
// memory.
static void take_again(size_t size) {
  static hold held;
  tarn_block first;
  tarn_block second;
  C_Stream native = native_stream();
  C_Stream other = native_stream();
  tarn_stream *stream = adopt(native);
  tarn_stream *next = adopt(other);
  assert_ok(tarn_pool_alloc(pool, size, 0, stream, &first));
  hold_begin(&held, stream);
  ck_assert(queue_use(stream, &first, 1000));
  assert_ok(tarn_pool_free(&first, stream));
  assert_ok(tarn_stream_destroy(stream));
  tarn_status status = tarn_pool_alloc(pool, size, 0, next, &second);
  if (status == TARN_OK) {
    ck_assert(queue_use(next, &second, 0));
    bool waits = tarn_stream_query(next) == TARN_PENDING;
    ck_assert(waits || !overlap(&first, &second));
  } else {
    assert_status(status, TARN_FULL);
  }
  hold_end(&held);
  if (status == TARN_OK) assert_ok(tarn_pool_free(&second, next));
  assert_ok(tarn_stream_destroy(next));
  assert_ok(tarn_device_synchronize(sim));
  end_native_stream(native);
  end_native_stream(other);
}

// no_pool and async_pool wait for a stream whose memory goes back, or queue it
// there: a stream that is held up would hold up the test.
TEST_LOOP(what_a_departed_stream_uses_is_not_given_away, STRATEGIES) {
  if (strcmp(strategies[_i], "no_pool") == 0) return;
  begin(strategies[_i]);
  take_again(1000);
  take_again(100 << 10);
  take_again(CAPACITY / 4);
}

// The host waits for what is left, as for any stream.
static void *let_go_soon(void *context) {
  struct timespec time = {.tv_nsec = 20000000};
  (void)nanosleep(&time, NULL);
  hold_end(context);
  return NULL;
}

TEST(the_host_waits_for_a_departed_stream) {
  static hold held;
  pthread_t thread;
  tarn_block block;
  tarn_block again;
  begin("arena_pool");
  C_Stream native = native_stream();
  tarn_stream *stream = adopt(native);
  assert_ok(tarn_pool_alloc(pool, CAPACITY / 4 * 3, 0, stream, &block));
  hold_begin(&held, stream);
  ck_assert(queue_use(stream, &block, 0));
  assert_ok(tarn_pool_free(&block, stream));
  assert_ok(tarn_stream_destroy(stream));
  ck_assert_int_eq(pthread_create(&thread, NULL, let_go_soon, &held), 0);
  assert_ok(tarn_pool_alloc(pool, CAPACITY / 4 * 3, 0, NULL, &again));
  ck_assert_uint_eq(tarn__departed_count(sim), 0);
  use host = {.block = again, .id = UINT32_MAX};
  ck_assert(change(&host, 0, host.id));
  ck_assert(change(&host, host.id, 0));
  assert_ok(tarn_pool_free(&again, NULL));
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  end_native_stream(native);
}

// Freed by the host while two streams use it, of which one has departed: the
// other can be put behind that one, and not the other way round.
TEST(a_departed_stream_does_not_wait_for_others) {
  static hold held;
  tarn_block block;
  tarn_block again;
  begin("arena_pool");
  C_Stream native = native_stream();
  C_Stream other = native_stream();
  tarn_stream *stream = adopt(native);
  tarn_stream *second = adopt(other);
  assert_ok(tarn_pool_alloc(pool, 1 << 20, 0, stream, &block));
  hold_begin(&held, stream);
  ck_assert(queue_use(stream, &block, 0));
  assert_ok(tarn_stream_join(second, tarn_stream_serial(stream)));
  ck_assert(queue_use(second, &block, 0));
  assert_ok(tarn_block_use_on(&block, second));
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_pool_free(&block, NULL));  // nor does the host wait
  assert_ok(tarn_pool_alloc(pool, 1 << 20, 0, second, &again));
  ck_assert(queue_use(second, &again, 0));
  assert_status(tarn_stream_query(second), TARN_PENDING);
  hold_end(&held);
  assert_ok(tarn_pool_free(&again, second));
  assert_ok(tarn_stream_destroy(second));
  assert_ok(tarn_device_synchronize(sim));
  end_native_stream(native);
  end_native_stream(other);
}

// --- eight threads ---------------------------------------------------------

enum {
  THREADS = 8,
  NATIVES = 5,
  SLOTS = 16,
  TURNS = EFFORT(500, 200),
};

static C_Stream natives[NATIVES];
static atomic_size_t wrongs;

// Blocks on their way from one thread to another, and the stream on which each
// was used last; that may be gone by now.
static struct {
  pthread_mutex_t lock;
  tarn_block blocks[SLOTS];
  uint64_t serials[SLOTS];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void swap_with_table(size_t slot, tarn_block *block, uint64_t *serial) {
  pthread_mutex_lock(&table.lock);
  tarn_block other = table.blocks[slot];
  uint64_t last = table.serials[slot];
  table.blocks[slot] = *block;
  table.serials[slot] = *serial;
  *block = other;
  *serial = last;
  pthread_mutex_unlock(&table.lock);
}

static bool turn(uint64_t draw) {
  tarn_block block = {.pool = NULL};
  size_t size = (size_t)1 << (8 + draw % 10);
  tarn_stream *stream = adopt(natives[draw / 16 % NATIVES]);
  tarn_stream *second = adopt(natives[draw / 128 % NATIVES]);
  if (stream == NULL || second == NULL) return false;
  uint64_t serial = tarn_stream_serial(stream);
  tarn_status status = tarn_pool_alloc(pool, size, 0, stream, &block);
  if (status == TARN_FULL) block.pool = NULL;
  bool good = status == TARN_OK || status == TARN_FULL;
  if (block.pool != NULL)
    good = good && queue_use(stream, &block, (uint32_t)(draw % 3000));

  // Hand it on, and take another one over.
  swap_with_table(draw / 1024 % SLOTS, &block, &serial);
  if (block.pool != NULL) {
    good = good && tarn_stream_join(stream, serial) == TARN_OK &&
           queue_use(stream, &block, 0);
    if (draw / 65536 % 2 == 0) {
      good = good &&
             tarn_stream_join(second, tarn_stream_serial(stream)) == TARN_OK &&
             queue_use(second, &block, (uint32_t)(draw % 1000)) &&
             tarn_block_use_on(&block, second) == TARN_OK;
    }
    // The block was taken for the stream of another thread, which may be gone.
    // Freed by the host, one stream that uses it is put behind the other, while
    // threads give both back.
    bool by_host = draw / 131072 % 3 == 0;
    if (by_host) good = good && tarn_block_use_on(&block, stream) == TARN_OK;
    good = good && tarn_pool_free(&block, by_host ? NULL : stream) == TARN_OK;
  }
  good = tarn_stream_destroy(second) == TARN_OK && good;
  return tarn_stream_destroy(stream) == TARN_OK && good;
}

static void *take_turns(void *context) {
  uint64_t seed = (uint64_t)(uintptr_t)context;
  for (uint64_t i = 0; i < TURNS; i++)
    if (!turn(mix(seed, i))) atomic_fetch_add(&wrongs, 1);
  return NULL;
}

TEST_LOOP(eight_threads_adopt_and_give_back, STRATEGIES) {
  pthread_t threads[THREADS];
  begin(strategies[_i]);
  for (int i = 0; i < NATIVES; i++)
    natives[i] = native_stream();
  for (size_t i = 0; i < THREADS; i++) {
    void *seed = (void *)(uintptr_t)(i + 1);
    ck_assert_int_eq(pthread_create(&threads[i], NULL, take_turns, seed), 0);
  }
  for (size_t i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  assert_ok(tarn_device_synchronize(sim));
  for (size_t i = 0; i < SLOTS; i++) {
    if (table.blocks[i].pool != NULL) {
      assert_ok(tarn_pool_free(&table.blocks[i], NULL));
    }
  }
  for (int i = 0; i < NATIVES; i++)
    end_native_stream(natives[i]);
  ck_assert_uint_eq(atomic_load(&wrongs), 0);
  ck_assert_uint_gt(atomic_load(&uses), THREADS * TURNS);
}
