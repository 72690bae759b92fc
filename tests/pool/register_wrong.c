// Strategies of programs that do it wrong: what becomes of their answers, their
// questions, and of memory that they do not give back.
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "kit.h"
#include "support/strategy.h"
#include "tarn/strategy.h"

enum { WRONG_NONE, WRONG_ZERO, WRONG_SHORT, WRONG_ODD, WRONG_TWICE };
static int wrong;
static tarn_chunk *only;

static tarn_status bad_take(void *self, const tarn_source *source,
                            const tarn_request *request,
                            tarn_suballocation *out) {
  (void)self;
  if (only == NULL) {
    tarn_status status = source->grow(source, 64 * KIB, request->align, &only);
    if (status != TARN_OK) return status;
  }
  *out = (tarn_suballocation){only->address, only->size, 0, NULL};
  if (wrong == WRONG_ZERO) out->address = 0;
  if (wrong == WRONG_SHORT) out->size = request->size - 1;
  if (wrong == WRONG_ODD) out->address++;
  return TARN_OK;
}

static tarn_status bad_give(void *self, const tarn_source *source,
                            const tarn_suballocation *memory) {
  (void)self;
  (void)source;
  (void)memory;
  return TARN_OK;
}

static tarn_status bad_trim(void *self, const tarn_source *source) {
  tarn_chunk *none = NULL;
  (void)self;
  ck_assert_int_eq(source->grow(source, 64, 64, &none), TARN_E_STATE);
  ck_assert_ptr_null(none);
  tarn_status status = source->shrink(source, only);
  only = NULL;
  return status;
}

static const tarn_strategy bad = {.struct_size = sizeof bad,
                                  .name = "bad_pool",
                                  .take = bad_take,
                                  .give = bad_give,
                                  .trim = bad_trim};

TEST(answers_that_are_wrong) {
  assert_ok(tarn_pool_register(&bad));
  tarn_pool *pool = host_pool("bad_pool");
  for (wrong = WRONG_ZERO; wrong <= WRONG_ODD; wrong++) {
    refuse(pool, 100, 0, TARN_E_CORRUPT);
    assert_error_says("bad_pool");
    assert_ok(tarn__front_check(pool));
  }
  tarn_block block = take(pool, 100);
  refuse(pool, 100, 0, TARN_E_CORRUPT);
  assert_error_says("where a block stands");
  give(block);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  ck_assert_uint_eq(stats_of(pool).failures, 4);
}

static tarn_status early_init(void *self, const tarn_source *source,
                              const tarn_strategy_options *options) {
  tarn_chunk *none = NULL;
  size_t value = 0;
  (void)self;
  ck_assert_int_eq(source->grow(source, 64, 64, &none), TARN_E_STATE);
  ck_assert_int_eq(source->wait(source, 0), TARN_E_STATE);
  ck_assert_int_eq(source->shrink(source, NULL), TARN_E_STATE);
  ck_assert(tarn_place_equal(source->place, TARN_HOST));
  ck_assert_int_eq(options->size(options, "x", 7, &value), TARN_OK);
  ck_assert_uint_eq(value, 7);
  return source->refuse(source, TARN_E_UNSUPPORTED, "not\ntoday");
}

TEST(calls_out_of_turn) {
  tarn_strategy early = bad;
  early.name = "early_pool";
  early.init = early_init;
  assert_ok(tarn_pool_register(&early));
  assert_status(use_strategy(TARN_HOST, "early_pool"), TARN_E_UNSUPPORTED);
  ck_assert_str_eq(tarn_last_error(), "early_pool: not?today");
}

static tarn_status odd_take(void *self, const tarn_source *source,
                            const tarn_request *request,
                            tarn_suballocation *out) {
  tarn_chunk *chunk = NULL;
  (void)self;
  (void)request;
  (void)out;
  ck_assert_int_eq(source->grow(source, 0, 64, &chunk), TARN_E_INVALID);
  ck_assert_int_eq(source->grow(source, 64, 0, &chunk), TARN_E_INVALID);
  ck_assert_int_eq(source->grow(source, 64, 48, &chunk), TARN_E_INVALID);
  ck_assert_ptr_null(chunk);
  ck_assert_int_eq(source->wait(source, 0), TARN_OK);
  ck_assert_int_eq(source->shrink(source, NULL), TARN_OK);
  return source->refuse(source, TARN_FULL, NULL);
}

TEST(questions_that_are_wrong) {
  tarn_strategy odd = bad;
  odd.name = "odd_pool";
  odd.take = odd_take;
  assert_ok(tarn_pool_register(&odd));
  refuse(host_pool("odd_pool"), 100, 0, TARN_FULL);
}

// It keeps what it ought to give back: that is told, and mended.
static int told;

static void hear(void *context, tarn_log_level level, const char *message) {
  (void)context;
  if (level == TARN_LOG_WARN && strstr(message, "forget_pool") != NULL) told++;
}

static tarn_status no_trim(void *self, const tarn_source *source) {
  (void)self;
  (void)source;
  return TARN_OK;
}

TEST(memory_that_is_not_given_back) {
  tarn_strategy forgets = bad;
  forgets.name = "forget_pool";
  forgets.trim = no_trim;
  tarn_log_set(hear, NULL, TARN_LOG_WARN);
  assert_ok(tarn_pool_register(&forgets));
  tarn_pool *pool = host_pool("forget_pool");
  give(take(pool, 100));
  assert_ok(use_strategy(TARN_HOST, "forget_pool"));
  ck_assert_int_eq(told, 1);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  only = NULL;
  tarn_block block = take(pool, 100);
  assert_ok(use_strategy(TARN_HOST, "page_unit_pool"));
  ck_assert_int_eq(told, 1);
  give(block);
  ck_assert_int_eq(told, 2);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  ck_assert(tarn_list_empty(&pool->replaced));
  tarn_log_set(NULL, NULL, TARN_LOG_WARN);
}

// It is replaced while it holds a chunk that its take comes to nothing with: it
// is asked once more for all that it has.
static sem_t inside;
static uint64_t gated;  // serial of a stream that is held up

static tarn_status slow_take(void *self, const tarn_source *source,
                             const tarn_request *request,
                             tarn_suballocation *out) {
  tarn_chunk *mine = NULL;
  (void)self;
  (void)out;
  tarn_status status = source->grow(source, 4096, request->align, &mine);
  sem_post(&inside);
  if (status == TARN_OK) status = source->wait(source, gated);
  only = mine;
  if (status != TARN_OK) return status;
  return source->refuse(source, TARN_E_DEVICE, "too late");
}

static tarn_status slow_trim(void *self, const tarn_source *source) {
  tarn_chunk *mine = only;
  (void)self;
  only = NULL;
  return source->shrink(source, mine);
}

static void pass_gate(void *gate, tarn_status status) {
  (void)status;
  while (sem_wait(gate) != 0)
    continue;
}

static atomic_int mistakes;

static void *take_slowly(void *unused) {
  tarn_pool *pool = NULL;
  tarn_block none;
  (void)unused;
  bool right = tarn_pool_of(TARN_HOST, &pool) == TARN_OK &&
               tarn_pool_alloc(pool, 100, 0, NULL, &none) == TARN_E_DEVICE;
  if (!right) atomic_fetch_add(&mistakes, 1);
  return NULL;
}

TEST(replaced_while_it_grows) {
  pthread_t taker;
  sem_t gate;
  tarn_strategy slow = bad;
  slow.name = "slow_pool";
  slow.take = slow_take;
  slow.trim = slow_trim;
  sem_init(&inside, 0, 0);
  sem_init(&gate, 0, 0);
  assert_ok(tarn_pool_register(&slow));
  tarn_pool *pool = host_pool("slow_pool");
  tarn_device *cpu = open_device("cpu:0");
  tarn_stream *stream = stream_of(cpu);
  assert_ok(tarn_stream_add_callback(stream, pass_gate, &gate));
  gated = tarn_stream_serial(stream);
  tarn_log_set(hear, NULL, TARN_LOG_WARN);
  pthread_create(&taker, NULL, take_slowly, NULL);
  while (sem_wait(&inside) != 0)
    continue;
  assert_ok(use_strategy(TARN_HOST, "page_unit_pool"));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 4096);
  sem_post(&gate);
  pthread_join(taker, NULL);
  ck_assert_int_eq(atomic_load(&mistakes), 0);
  ck_assert_int_eq(told, 0);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  ck_assert(tarn_list_empty(&pool->replaced));
  tarn_log_set(NULL, NULL, TARN_LOG_WARN);
}
