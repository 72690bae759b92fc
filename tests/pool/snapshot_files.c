// Snapshots into files: their paths, their formats, one pool and all of them.
#include <sys/stat.h>

#include "snapshot_kit.h"
#include "support/faults.h"

// Two tagged blocks and a freed one in a pool of the host.
static tarn_pool *pool;
static tarn_block kept[2];

static void install(void) {
  make_folder();
  pool = host_pool("page_unit_pool");
  assert_ok(tarn_pool_account(pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  kept[0] = take_tagged(pool, 70000, tag_of("weights"));
  kept[1] = take_tagged(pool, 300, tag_of("activations"));
  give(take(pool, 5000));
}

static void tear_down(void) {
  give(kept[0]);
  give(kept[1]);
  assert_ok(tarn__front_check(pool));
  remove_folder();
}

// --- formats ---------------------------------------------------------------

static void check_same(const tarn_trace *a, const tarn_trace *b) {
  ck_assert_uint_eq(a->block_count, b->block_count);
  ck_assert_uint_eq(live_bytes_in(a), live_bytes_in(b));
  ck_assert_uint_eq(a->live_peak_bytes, b->live_peak_bytes);
  ck_assert_uint_eq(a->segment_count, b->segment_count);
  ck_assert_uint_eq(a->request_count, b->request_count);
}

TEST_RANGE(a_file_says_what_the_trace_does, TARN_TRACE_FORMAT_TARN,
           TARN_TRACE_FORMAT_PYTORCH + 1) {
  tarn_trace *trace = NULL;
  assert_ok(tarn_pool_trace(pool, &trace));
  assert_ok(tarn_pool_snapshot(pool, (tarn_trace_format)_i, path_of("one")));
  ck_assert_uint_eq(count_files(), 1);
  tarn_trace *again = read_snapshot("one");
  check_same(trace, again);
  tarn_trace_destroy(trace);
  tarn_trace_destroy(again);
}

TEST(the_own_format_keeps_all) {
  tarn_trace *trace = NULL;
  assert_ok(tarn_pool_trace(pool, &trace));
  assert_ok(tarn_pool_snapshot(pool, TARN, path_of("one")));
  tarn_trace *again = read_snapshot("one");
  ck_assert_uint_eq(again->event_count, trace->event_count);
  for (size_t i = 0; i < trace->event_count; i++) {
    require(again->events[i].kind == trace->events[i].kind);
    require(again->events[i].address == trace->events[i].address);
    require(again->events[i].size == trace->events[i].size);
  }
  for (size_t i = 0; i < trace->block_count; i++) {
    require(strcmp(again->tags[again->blocks[i].tag],
                   trace->tags[trace->blocks[i].tag]) == 0);
  }
  tarn_trace_destroy(trace);
  tarn_trace_destroy(again);
}

TEST(perfetto_is_written) {
  assert_ok(tarn_pool_snapshot(pool, TARN_TRACE_FORMAT_PERFETTO,
                               path_of("one.json")));
  ck_assert(is_there("one.json"));
}

TEST(a_file_is_replaced_whole) {
  assert_ok(tarn_pool_snapshot(pool, TARN, path_of("one")));
  tarn_block more = take(pool, 1 << 20);
  assert_ok(tarn_pool_snapshot(pool, TARN, path_of("one")));
  ck_assert_uint_eq(count_files(), 1);
  tarn_trace *trace = read_snapshot("one");
  ck_assert_uint_eq(live_bytes_in(trace), stats_of(pool).live_bytes);
  tarn_trace_destroy(trace);
  give(more);
}

// --- paths -----------------------------------------------------------------

TEST(letters_become_what_they_stand_for) {
  char name[100];
  assert_ok(tarn_pool_snapshot(pool, TARN, path_of("%d-%p-%n-%%.tarn")));
  snprintf(name, sizeof name, "cpu:0-%ld-0-%%.tarn", (long)getpid());
  ck_assert_msg(is_there(name), "no %s", name);
  assert_ok(tarn_pool_snapshot(pool, TARN, path_of("%n%n%%%%n")));
  ck_assert(is_there("11%%n"));
  assert_ok(tarn_pool_snapshot(pool, TARN, path_of("again")));
  assert_ok(tarn_pool_snapshot(pool, TARN, path_of("%n")));
  ck_assert(is_there("3"));
  ck_assert_uint_eq(count_files(), 4);
}

static void refuse_format(tarn_trace_format format, const char *path,
                          const char *part) {
  assert_status(tarn_pool_snapshot(pool, format, path), TARN_E_INVALID);
  assert_error_says(part);
  assert_status(tarn_pool_snapshot_all(format, path), TARN_E_INVALID);
  assert_error_says(part);
  if (path == NULL) return;
  assert_status(tarn_pool_snapshot_on_full(format, path), TARN_E_INVALID);
  assert_error_says(part);
  assert_status(tarn_pool_snapshot_on_signal(10, format, path), TARN_E_INVALID);
  assert_error_says(part);
}

TEST(other_letters_and_formats_are_refused) {
  refuse_format(TARN, NULL, "no path");
  refuse_format(TARN, "", "no path");
  refuse_format(TARN, path_of("%x%n"), "%x");
  refuse_format(TARN, path_of("%n%"), "single %");
  refuse_format(TARN, path_of("%n%%%"), "single %");
  refuse_format(TARN, path_of("%D%n"), "%D");
  refuse_format((tarn_trace_format)0, path_of("%n"), "format");
  refuse_format((tarn_trace_format)4, path_of("%n"), "format");
  refuse_format((tarn_trace_format)-1, path_of("%n"), "format");
  assert_status(tarn_pool_snapshot(NULL, TARN, path_of("one")), TARN_E_INVALID);
  ck_assert_uint_eq(count_files(), 0);
}

TEST(what_cannot_be_written_is_said) {
  assert_status(tarn_pool_snapshot(pool, TARN, path_of("no/such/folder")),
                TARN_E_IO);
  assert_error_says("no/such/folder");
  assert_status(tarn_pool_snapshot(pool, TARN, "/dev/full"), TARN_E_IO);
  assert_error_says("/dev/full");
  ck_assert_uint_eq(count_files(), 0);
}

// --- all pools -------------------------------------------------------------

TEST_LOOP(each_pool_gets_a_file, TEST_DEVICES) {
  tarn_device *device = open_device_with(_i, TEST_NEEDS_DISCRETE);
  if (device == NULL) return;
  char name[32];
  snprintf(name, sizeof name, "1-%s", test_devices[_i]);
  tarn_pool *own = NULL;
  assert_ok(tarn_pool_create(tarn_place_on(device), NULL, &own));
  tarn_block block = take(own, 12345);
  assert_ok(tarn_pool_snapshot_all(TARN, path_of("%n-%d")));
  ck_assert_uint_eq(count_files(), 2);
  tarn_trace *first = read_snapshot("0-cpu:0");
  tarn_trace *second = read_snapshot(name);
  ck_assert_uint_eq(live_bytes_in(first), stats_of(pool).live_bytes);
  ck_assert_uint_eq(live_bytes_in(second), 12345);
  tarn_trace_destroy(first);
  tarn_trace_destroy(second);
  give(block);
  assert_ok(tarn_pool_destroy(own));
  assert_ok(tarn_pool_snapshot_all(TARN, path_of("%n-after")));
  ck_assert_uint_eq(count_files(), 3);
}

TEST(all_pools_are_not_to_have_one_file) {
  assert_status(tarn_pool_snapshot_all(TARN, path_of("all-%d")),
                TARN_E_INVALID);
  assert_error_says("%n");
  ck_assert_uint_eq(count_files(), 0);
}

// The first failure is told, and what can be written is.
TEST_LOOP(the_others_are_written_all_the_same, TEST_DEVICES) {
  const char *name = test_devices[_i];
  tarn_device *device = open_device_with(_i, TEST_NEEDS_DISCRETE);
  if (device == NULL) return;
  char file[32];
  snprintf(file, sizeof file, "%s/1", name);
  tarn_pool *own = NULL;
  assert_ok(tarn_pool_create(tarn_place_on(device), NULL, &own));
  ck_assert_int_eq(mkdir(path_of(name), 0700), 0);
  assert_status(tarn_pool_snapshot_all(TARN, path_of("%d/%n")), TARN_E_IO);
  assert_error_says("cpu:0/0");
  ck_assert(is_there(file));
  ck_assert_int_eq(unlink(path_of(file)), 0);
  ck_assert_int_eq(rmdir(path_of(name)), 0);
  assert_ok(tarn_pool_destroy(own));
}

// --- faults ----------------------------------------------------------------

static void write_scenario(void *context) {
  (void)context;
  tarn_pool_stats before = stats_of(pool);
  size_t files = count_files();
  tarn_status status = tarn_pool_snapshot(pool, TARN, path_of("%p-%n"));
  if (status != TARN_OK) assert_status(status, TARN_E_NOMEM);
  ck_assert_uint_eq(count_files(), files + (status == TARN_OK ? 1 : 0));
  assert_same_stats(before, stats_of(pool));
  assert_ok(tarn__front_check(pool));
}

TEST(no_host_memory_means_no_file) {
  ck_assert_uint_gt(faults_sweep(write_scenario, NULL), 20);
}

static void all_scenario(void *context) {
  (void)context;
  tarn_status status = tarn_pool_snapshot_all(TARN, path_of("all-%n"));
  if (status != TARN_OK) assert_status(status, TARN_E_NOMEM);
}

TEST(nor_with_all_pools) {
  ck_assert_uint_gt(faults_sweep(all_scenario, NULL), 20);
}

FIXTURE(install, tear_down);

int main(void) {
  faults_install();
  return run_tests();
}
