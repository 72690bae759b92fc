// Charges: what others took of the device, counted in its pool.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "events_kit.h"
#include "support/child.h"
#include "support/effort.h"
#include "support/faults.h"
#include "support/threads.h"
#include "tarn/snapshot.h"

#define MIBS(count) ((size_t)(count) << 20)

static size_t charged_under(tarn_pool *pool, tarn_tag tag) {
  return tag_stats_of(pool, tag).charged_bytes;
}

// --- statistics ------------------------------------------------------------

TEST(charges_are_counted_by_tag) {
  tarn_pool *pool = own_pool_with(TARN_HOST, "page_unit_pool", 0, 0);
  tarn_tag whole = tag_of("whole");
  assert_ok(tarn_pool_charge(pool, 1000, whole));
  assert_ok(tarn_pool_charge(pool, 500, 0));
  assert_ok(tarn_pool_charge(pool, 24, whole));
  tarn_pool_stats stats = stats_of(pool);
  ck_assert_uint_eq(stats.charged_bytes, 1524);
  ck_assert_uint_eq(stats.reserved_bytes, 0);
  ck_assert_uint_eq(stats.live_bytes, 0);
  ck_assert_uint_eq(stats.device_allocs, 0);
  ck_assert_uint_eq(charged_under(pool, whole), 1024);
  ck_assert_uint_eq(charged_under(pool, 0), 500);
  ck_assert_uint_eq(tag_stats_of(pool, whole).live_blocks, 0);
  assert_ok(tarn_pool_discharge(pool, 1020, whole));
  assert_ok(tarn_pool_discharge(pool, 500, 0));
  ck_assert_uint_eq(stats_of(pool).charged_bytes, 4);
  ck_assert_uint_eq(stats_of(pool).charged_peak_bytes, 1524);
  assert_ok(tarn_pool_reset_peaks(pool));
  ck_assert_uint_eq(stats_of(pool).charged_peak_bytes, 4);
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_discharge(pool, 4, whole));
}

// Whether or not tags of blocks are counted, and with the counts of whole
// memory.
TEST(charges_hold_whatever_is_counted) {
  tarn_pool *pool = own_pool_with(TARN_HOST, "arena_pool", 0, 0);
  tarn_tag tag = tag_of("uncounted");
  assert_ok(tarn_pool_account(pool, 0));
  assert_ok(tarn_pool_charge(pool, 77, tag));
  tarn_block block = take_tagged(pool, 100, tag);
  assert_ok(tarn_pool_account(pool, TARN_COUNT_DEFAULT));
  ck_assert_uint_eq(charged_under(pool, tag), 77);
  ck_assert_uint_eq(tag_stats_of(pool, tag).live_bytes, 0);
  give(block);
  assert_ok(tarn_pool_discharge(pool, 77, tag));
}

TEST(what_is_not_charged_cannot_be_discharged) {
  tarn_pool *pool = own_pool_with(TARN_HOST, "page_unit_pool", 0, 0);
  tarn_tag whole = tag_of("whole");
  tarn_tag other = tag_of("other");
  assert_ok(tarn_pool_charge(pool, 100, whole));
  tarn_pool_stats before = stats_of(pool);
  assert_status(tarn_pool_discharge(pool, 101, whole), TARN_E_INVALID);
  assert_error_says("101 bytes");
  assert_error_says("'whole' 100");
  assert_status(tarn_pool_discharge(pool, 1, other), TARN_E_INVALID);
  assert_status(tarn_pool_discharge(pool, 1, other + 1), TARN_E_INVALID);
  assert_error_says("there is no tag");
  assert_status(tarn_pool_charge(pool, 1, other + 1), TARN_E_INVALID);
  assert_status(tarn_pool_charge(pool, 1, UINT32_MAX), TARN_E_INVALID);
  assert_status(tarn_pool_charge(NULL, 1, whole), TARN_E_INVALID);
  assert_status(tarn_pool_discharge(NULL, 1, whole), TARN_E_INVALID);
  assert_ok(tarn_pool_charge(pool, 0, whole));
  assert_ok(tarn_pool_discharge(pool, 0, other));
  assert_same_stats(before, stats_of(pool));
  assert_ok(tarn_pool_discharge(pool, 100, whole));
}

TEST(sums_do_not_overflow) {
  tarn_pool *pool = own_pool_with(TARN_HOST, "page_unit_pool", 0, 0);
  tarn_block block = take(pool, 100);
  assert_status(tarn_pool_charge(pool, SIZE_MAX, 0), TARN_FULL);
  assert_error_says("exceeds the address space");
  assert_ok(tarn_pool_charge(pool, SIZE_MAX - MIBS(1), 0));
  assert_status(tarn_pool_charge(pool, MIBS(1), 0), TARN_FULL);
  refuse(pool, MIBS(1), 0, TARN_FULL);
  assert_ok(tarn_pool_discharge(pool, SIZE_MAX - MIBS(1), 0));
  give(block);
}

// --- the limit -------------------------------------------------------------

TEST(charges_count_against_the_limit) {
  tarn_tag whole = tag_of("whole");
  for (int i = 0; i < ALL_STRATEGIES; i++) {
    tarn_pool *pool = own_pool_with(TARN_HOST, any_strategy(i), MIBS(16), 0);
    assert_ok(tarn_pool_charge(pool, MIBS(12), whole));
    refuse(pool, MIBS(5), 0, TARN_FULL);
    assert_error_says("12.00 MiB (12582912 bytes) charged besides");
    assert_error_says("most: whole (0)");
    assert_ok(tarn_pool_discharge(pool, MIBS(12), whole));
    tarn_block block = take(pool, MIBS(5));
    assert_ok(tarn__front_check(pool));
    tarn_pool_stats before = stats_of(pool);
    assert_status(tarn_pool_charge(pool, MIBS(12), whole), TARN_FULL);
    assert_error_says("no room for 12.00 MiB (12582912 bytes) for whole");
    assert_error_says("limit of 16.00 MiB (16777216 bytes)");
    ck_assert_uint_eq(stats_of(pool).failures, before.failures + 1);
    ck_assert_uint_eq(stats_of(pool).charged_bytes, 0);
    ck_assert_uint_eq(charged_under(pool, whole), 0);
    give(block);
    end_own(pool);
  }
}

TEST_LOOP(idle_memory_makes_room, ALL_STRATEGIES) {
  tarn_pool *pool = own_pool_with(TARN_HOST, any_strategy(_i), MIBS(16), 0);
  give(take(pool, MIBS(12)));
  assert_ok(tarn_pool_charge(pool, MIBS(16), 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  assert_status(tarn_pool_charge(pool, 1, 0), TARN_FULL);
  assert_ok(tarn__front_check(pool));
  assert_ok(tarn_pool_discharge(pool, MIBS(16), 0));
}

// The limit was lowered below what is charged: nothing fits, nothing breaks.
TEST(a_limit_may_be_below_the_charges) {
  tarn_pool *pool = own_pool_with(TARN_HOST, "arena_pool", 0, 0);
  assert_ok(tarn_pool_charge(pool, MIBS(8), 0));
  assert_ok(tarn_pool_limit(pool, MIBS(4)));
  refuse(pool, 1, 0, TARN_FULL);
  assert_status(tarn_pool_charge(pool, 1, 0), TARN_FULL);
  assert_ok(tarn_pool_discharge(pool, MIBS(8), 0));
  give(take(pool, 1));
}

static bool let_go(tarn_pool *pool, const tarn_pool_need *need, void *context) {
  tarn_tag *tag = context;
  require(need->charged_bytes == 900 && need->size == 200);
  return tarn_pool_discharge(pool, 900, *tag) == TARN_OK;
}

TEST(the_program_is_asked_for_room) {
  tarn_pool *pool = own_pool_with(TARN_HOST, "page_unit_pool", 1000, 0);
  tarn_tag tag = tag_of("old");
  assert_ok(tarn_pool_charge(pool, 900, tag));
  assert_ok(tarn_pool_on_full(pool, let_go, &tag));
  assert_ok(tarn_pool_charge(pool, 200, 0));
  ck_assert_uint_eq(stats_of(pool).charged_bytes, 200);
  ck_assert_uint_eq(stats_of(pool).failures, 0);
  assert_ok(tarn_pool_discharge(pool, 200, 0));
}

// --- ends ------------------------------------------------------------------

TEST(a_pool_with_charges_cannot_end) {
  tarn_pool *pool = own_pool_with(TARN_HOST, "arena_pool", 0, 0);
  tarn_tag tag = tag_of("table");
  assert_ok(tarn_pool_charge(pool, 4096, tag));
  assert_status(tarn_pool_destroy(pool), TARN_E_STATE);
  assert_error_says("4.00 KiB (4096 bytes) charged besides: table (0)");
  assert_ok(tarn_pool_discharge(pool, 4096, tag));
}

TEST_LOOP(a_device_with_charges_cannot_close, TEST_DEVICES) {
  tarn_device *device = open_device_with(_i, TEST_NEEDS_DISCRETE);
  if (device == NULL) return;
  tarn_pool *pool = pool_at(tarn_place_on(device));
  tarn_tag tag = tag_of("table");
  assert_ok(tarn_pool_charge(pool, 4096, tag));
  assert_status(tarn_device_close(device), TARN_E_STATE);
  assert_error_says(test_devices[_i]);
  assert_error_says(": cannot close");
  assert_error_says("4.00 KiB (4096 bytes) charged besides: table (0)");
  assert_ok(tarn_pool_discharge(pool, 4096, tag));
}

static int use_the_parent_s(tarn_pool *pool) {
  if (tarn_pool_charge(pool, 1, 0) != TARN_E_STATE) return 1;
  if (tarn_pool_discharge(pool, 1, 0) != TARN_E_STATE) return 2;
  return tarn_pool_destroy(pool) == TARN_OK ? 0 : 3;
}

TEST(a_child_cannot_charge_its_parent_s_pool) {
  tarn_pool *pool = own_pool_with(TARN_HOST, "arena_pool", 0, 0);
  assert_ok(tarn_pool_charge(pool, 10, 0));
  pid_t child = fork();
  if (child == 0) {
    child_begin(30);
    _exit(use_the_parent_s(pool));
  }
  assert_child_ended_well(child);
  ck_assert_uint_eq(stats_of(pool).charged_bytes, 10);
  assert_ok(tarn_pool_discharge(pool, 10, 0));
}

// --- what is told ----------------------------------------------------------

TEST(charges_are_events) {
  tarn_pool *pool = own_pool_with(TARN_HOST, "page_unit_pool", 1000, 0);
  tarn_tag tag = tag_of("table");
  const tarn_pool_event expected[] = {
      {.kind = TARN_POOL_EVENT_CHARGE, .size = 600},
      {.kind = TARN_POOL_EVENT_FAIL, .size = 401, .status = TARN_FULL},
      {.kind = TARN_POOL_EVENT_DISCHARGE, .size = 600},
  };
  assert_ok(tarn_pool_account(pool, TARN_COUNT_EVENTS));
  assert_ok(tarn_pool_charge(pool, 600, tag));
  assert_status(tarn_pool_charge(pool, 401, tag), TARN_FULL);
  assert_ok(tarn_pool_discharge(pool, 600, tag));
  ck_assert_uint_eq(read_all(pool), 3);
  for (size_t i = 0; i < 3; i++) {
    ck_assert_int_eq(seen[i].kind, expected[i].kind);
    ck_assert_uint_eq(seen[i].size, expected[i].size);
    ck_assert_int_eq(seen[i].status, expected[i].status);
    ck_assert_uint_eq(seen[i].tag, tag);
    ck_assert_uint_eq(seen[i].address, 0);
  }
}

// A trace knows of no charges, but of the refusal of one.
TEST(a_trace_is_without_charges) {
  tarn_pool *pool = own_pool_with(TARN_HOST, "page_unit_pool", 10000, 0);
  tarn_trace *trace = NULL;
  assert_ok(tarn_pool_account(pool, TARN_COUNT_EVENTS));
  assert_ok(tarn_pool_charge(pool, 600, 0));
  assert_status(tarn_pool_charge(pool, 10000, 0), TARN_FULL);
  assert_ok(tarn_pool_trace(pool, &trace));
  ck_assert_uint_eq(trace->event_count, 2);
  ck_assert_int_eq(trace->events[0].kind, TARN_TRACE_OOM);
  ck_assert_uint_eq(trace->events[0].size, 10000);
  ck_assert_int_eq(trace->events[1].kind, TARN_TRACE_SNAPSHOT);
  tarn_trace_destroy(trace);
  assert_ok(tarn_pool_discharge(pool, 600, 0));
}

TEST(a_refused_charge_is_worth_a_snapshot) {
  char path[] = "/tmp/tarn-test-XXXXXX";
  int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  close(fd);
  assert_ok(tarn_pool_snapshot_on_full(TARN_TRACE_FORMAT_TARN, path));
  tarn_pool *pool = own_pool_with(TARN_HOST, "page_unit_pool", 1000, 0);
  assert_status(tarn_pool_charge(pool, 1001, 0), TARN_FULL);
  assert_ok(tarn_pool_snapshot_on_full(TARN_TRACE_FORMAT_TARN, NULL));
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_read(path, NULL, &trace));
  ck_assert_int_eq(trace->events[0].kind, TARN_TRACE_OOM);
  ck_assert_uint_eq(trace->events[0].size, 1001);
  tarn_trace_destroy(trace);
  ck_assert_int_eq(unlink(path), 0);
}

// --- faults and threads ----------------------------------------------------

enum { TAGS = 100 };
static tarn_tag many[TAGS];
static const size_t BEYOND = 64 << 10;  // the limit: more than is charged

// The counts of a tag are the only memory that a charge takes.
static void charge_under_many(void *context) {
  tarn_pool *pool = NULL;
  (void)context;
  tarn_pool_options options = {.struct_size = sizeof options, .limit = BEYOND};
  if (tarn_pool_create(TARN_HOST, &options, &pool) != TARN_OK) return;
  size_t charged = 0;
  for (size_t i = 0; i < TAGS; i += 9) {
    tarn_status status = tarn_pool_charge(pool, 10, many[i]);
    require(status == TARN_OK || status == TARN_E_NOMEM);
    if (status == TARN_OK) charged += 10;
    require(charged_under(pool, many[i]) == (status == TARN_OK ? 10 : 0));
  }
  require(tarn_pool_charge(pool, BEYOND, 0) != TARN_OK || charged == 0);
  require(tarn__front_check(pool) == TARN_OK);
  for (size_t i = 0; i < TAGS; i += 9)
    (void)tarn_pool_discharge(pool, 10, many[i]);
  (void)tarn_pool_discharge(pool, BEYOND, 0);
  require(stats_of(pool).charged_bytes == 0);
  require(tarn_pool_destroy(pool) == TARN_OK);
}

TEST(no_fault_leaves_a_charge_behind) {
  char name[16];
  for (size_t i = 0; i < TAGS; i++) {
    snprintf(name, sizeof name, "tag %zu", i);
    many[i] = tag_of(name);
  }
  charge_under_many(NULL);  // what the device keeps from now on
  ck_assert_uint_ge(faults_sweep(charge_under_many, NULL), 8);
}

enum { WORKERS = 4, ROUNDS = EFFORT(4000, 800) };
static const size_t PIECE = 256 << 10;
static const size_t LIMIT = (size_t)2 << 20;
static atomic_int wrong;

static void charge_and_look(tarn_pool *pool, tarn_tag tag) {
  if (tarn_pool_charge(pool, 3 * PIECE, tag) != TARN_OK) return;
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  bool held = tarn_pool_query(pool, &stats) == TARN_OK &&
              stats.charged_bytes >= 3 * PIECE &&
              stats.charged_bytes + stats.reserved_bytes <= LIMIT;
  if (tarn_pool_discharge(pool, 3 * PIECE, tag) != TARN_OK || !held) {
    atomic_fetch_add(&wrong, 1);
  }
}

static void take_and_give(tarn_pool *pool) {
  tarn_block block;
  if (tarn_pool_alloc(pool, 2 * PIECE, 0, NULL, &block) != TARN_OK) return;
  if (tarn_pool_free(&block, NULL) != TARN_OK) atomic_fetch_add(&wrong, 1);
}

static void *work(void *context) {
  tarn_pool *pool = context;
  tarn_tag tag = 0;
  if (tarn_pool_tag("worker", &tag) != TARN_OK) atomic_fetch_add(&wrong, 1);
  for (int i = 0; i < ROUNDS; i++) {
    charge_and_look(pool, tag);
    take_and_give(pool);
  }
  return NULL;
}

TEST(threads_never_pass_the_limit_together) {
  tarn_pool *pool = own_pool_with(TARN_HOST, "page_unit_pool", LIMIT, 0);
  run_threads_on(work, WORKERS, pool);
  ck_assert_int_eq(atomic_load(&wrong), 0);
  ck_assert_uint_eq(stats_of(pool).charged_bytes, 0);
  ck_assert_uint_ge(stats_of(pool).charged_peak_bytes, 3 * PIECE);
}

int main(void) {
  faults_install();
  return run_tests();
}
