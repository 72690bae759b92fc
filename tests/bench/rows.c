// The parts of a row of `tarn bench pool`: its process, its requests,
// percentiles, what it holds.
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/pool_bench.h"
#include "kit/child.h"
#include "kit/requests.h"
#include "support/run.h"

#define TOO_MANY ((size_t)1 << 60)  // bytes: every allocator refuses

static void assert_contains(const char *text, const char *part) {
  ck_assert_msg(strstr(text, part) != NULL, "'%s' is not in '%s'", part, text);
}

// --- the process of a row --------------------------------------------------

static const child_limits none;

static void answer(void *context, void *out_result) {
  *(int *)out_result = *(int *)context + 1;
}

static void leave(void *context, void *out_result) {
  (void)out_result;
  _exit(*(int *)context);
}

static void be_killed(void *context, void *out_result) {
  (void)out_result;
  raise(*(int *)context);
}

TEST(a_child_answers) {
  char why[CHILD_TEXT_SIZE] = "";
  int what = 6, result = 0;
  ck_assert(child_run(answer, &what, none, &result, sizeof result, why));
  ck_assert_int_eq(result, 7);
}

TEST(a_child_that_does_not_answer) {
  char why[CHILD_TEXT_SIZE] = "";
  int status = 3, result = 1;
  ck_assert(!child_run(leave, &status, none, &result, sizeof result, why));
  assert_contains(why, "no result: the process ended with status 3");
  ck_assert_int_eq(result, 0);
  status = 0;
  ck_assert(!child_run(leave, &status, none, &result, sizeof result, why));
  assert_contains(why, "no result: the process ended with status 0");
}

TEST(a_child_that_is_killed) {
  char why[CHILD_TEXT_SIZE] = "";
  int number = SIGKILL, result = 1;
  ck_assert(!child_run(be_killed, &number, none, &result, sizeof result, why));
  assert_contains(why, "no result: the process was ended by signal 9 (");
  ck_assert_int_eq(result, 0);
}

// More than a pipe holds: the child must not wait for its own end.
typedef struct large {
  char bytes[1 << 20];
} large;

static void fill(void *context, void *out_result) {
  memset(((large *)out_result)->bytes, *(int *)context, sizeof(large));
}

TEST(a_large_answer) {
  char why[CHILD_TEXT_SIZE] = "";
  int value = 5;
  large *result = malloc(sizeof *result);
  ck_assert_ptr_nonnull(result);
  ck_assert(child_run(fill, &value, none, result, sizeof *result, why));
  ck_assert_int_eq(result->bytes[sizeof result->bytes - 1], 5);
  free(result);
}

// --- requests --------------------------------------------------------------

// Three blocks, of 64, 1 and 64 bytes; an event that is no request.
static tarn_trace_block blocks[] = {{.size = 64}, {.size = 1}, {.size = 64}};
static tarn_trace_event events[] = {
    {.kind = TARN_TRACE_ALLOC, .block = 0},
    {.kind = TARN_TRACE_ALLOC, .block = 1},
    {.kind = TARN_TRACE_SNAPSHOT, .block = TARN_TRACE_NO_BLOCK},
    {.kind = TARN_TRACE_FREE, .block = 0},
    {.kind = TARN_TRACE_FREE_REQUESTED, .block = 1},
    {.kind = TARN_TRACE_ALLOC, .block = 2},
    {.kind = TARN_TRACE_FREE, .block = 1},
    {.kind = TARN_TRACE_FREE, .block = 2},
};
static const tarn_trace small = {.name = "small",
                                 .events = events,
                                 .event_count = 8,
                                 .blocks = blocks,
                                 .block_count = 3,
                                 .request_count = 6,
                                 .live_peak_bytes = 65};

static void assert_request(const request *r, uint32_t slot, uint32_t rank,
                           size_t size) {
  ck_assert_uint_eq(r->slot, slot);
  ck_assert_uint_eq(r->size_rank, rank);
  ck_assert_uint_eq(r->size, size);
}

TEST(requests_of_a_trace) {
  request_list list = requests_make(&small);
  ck_assert_uint_eq(list.count, 6);
  ck_assert_uint_eq(list.slot_count, 3);
  ck_assert_uint_eq(list.rank_count, 2);
  assert_request(&list.items[0], 0, 1, 64);
  assert_request(&list.items[1], 1, 0, 1);
  assert_request(&list.items[2], 0, 1, 0);
  assert_request(&list.items[3], 2, 1, 64);
  assert_request(&list.items[4], 1, 0, 0);
  assert_request(&list.items[5], 2, 1, 0);
  requests_deinit(&list);
  ck_assert_uint_eq(list.count, 0);
}

TEST(percentiles) {
  uint64_t ticks[] = {50, 10, 40, 20, 30};
  stopwatch_sort(ticks, 5);
  ck_assert_uint_eq(stopwatch_percentile(ticks, 5, 50), 30);
  ck_assert_uint_eq(stopwatch_percentile(ticks, 5, 99), 50);
  ck_assert_uint_eq(stopwatch_percentile(ticks, 5, 20), 10);
  ck_assert_uint_eq(stopwatch_percentile(ticks, 5, 0), 10);
  ck_assert_uint_eq(stopwatch_percentile(ticks, 0, 50), 0);
}

// --- one row ---------------------------------------------------------------

static pool_bench_result run_small(const request_list *list, const char *name) {
  stopwatch watch = {.ns_per_tick = 1};
  pool_bench bench = {.requests = list,
                      .live_peak_bytes = small.live_peak_bytes,
                      .watch = &watch,
                      .name = name,
                      .threads = 1,
                      .passes = 2};
  return pool_bench_run(&bench);
}

// 64 bytes are reused: two blocks of 64 bytes and one of 1 are never out at
// once. The free list rounds up to 64.
// Slots of their own, ranks of all sizes, threads if one of them names some.
TEST(requests_of_several_traces) {
  tarn_trace *server = NULL;
  const tarn_trace *both[2] = {&small};
  assert_ok(tarn_trace_make("@serving", &server));
  both[1] = server;
  request_list one = requests_make(&small);
  request_list list = requests_join(both, 2);
  ck_assert_uint_eq(list.count, one.count + server->request_count);
  ck_assert_uint_eq(list.slot_count, one.slot_count + server->block_count);
  ck_assert_ptr_null(one.threads);
  ck_assert_ptr_nonnull(list.threads);
  for (size_t i = 0; i < one.count; i++) {
    ck_assert_uint_eq(list.items[i].slot, one.items[i].slot);
    ck_assert_uint_eq(list.items[i].size, one.items[i].size);
    ck_assert_uint_eq(list.threads[i], 0);
  }
  for (size_t i = 0; i < server->request_count; i++) {
    const request *r = &list.items[one.count + i];
    ck_assert_uint_eq(r->slot, one.slot_count + server->events[i].block);
    ck_assert_uint_lt(r->size_rank, list.rank_count);
    ck_assert_uint_eq(list.threads[one.count + i], server->events[i].thread);
  }
  requests_deinit(&list);
  requests_deinit(&one);
  tarn_trace_destroy(server);
}

TEST(what_a_row_holds) {
  request_list list = requests_make(&small);
  pool_bench_result result = run_small(&list, "free_list");
  ck_assert_str_eq(result.failed, "");
  ck_assert_double_eq_tol(result.reserved_over_live, 128.0 / 65, 1e-9);
  result = run_small(&list, "page_unit_pool");
  ck_assert_str_eq(result.failed, "");
  ck_assert_double_eq_tol(result.reserved_over_live, 8192.0 / 65, 1e-9);
  requests_deinit(&list);
}

TEST(a_request_is_refused) {
  static const char *const names[] = {"free_list", "no_pool", "page_unit_pool"};
  request_list list = requests_make(&small);
  list.items[1].size = TOO_MANY;
  for (size_t i = 0; i < 3; i++) {
    pool_bench_result result = run_small(&list, names[i]);
    ck_assert_str_ne(result.failed, "");
    ck_assert(isnan(result.pair_ns) && isnan(result.iteration_ms[0]));
  }
  assert_contains(run_small(&list, "no_pool").failed, "a request was refused");
  assert_contains(run_small(&list, "abacus").failed, "nothing has this name");
  requests_deinit(&list);
}
