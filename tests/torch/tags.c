// Tags: what they count, sleep by tag, and snapshots that `tarn why` reads.
#include "kit.h"
#include "support/threads.h"
#include "support/tool_assert.h"
#include "tarn/account.h"

enum { SIZE = 1 << 20, MOST = 32 };

FIXTURE(tool_files_begin, tool_files_end);

static void push(const char *name) {
  assert_ok(tarn_torch_tag_push(name));
}

static void pop(void) {
  assert_ok(tarn_torch_tag_pop());
}

static size_t live_of(const char *name) {
  tarn_tag tag = 0;
  tarn_pool_tag_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_pool_tag(name, &tag));
  assert_ok(tarn_pool_query_tag(pool_of_torch(), tag, &stats));
  return stats.live_bytes;
}

TEST_SET_ON(the_newest_tag_counts, 0, serve_on) {
  void *stream = native(stream_on(device));
  push("weights");
  void *weight = take(SIZE, stream);
  push("scratch");
  void *scratch = take(2 * SIZE, stream);
  pop();
  void *other = take(SIZE, stream);
  pop();
  void *none = take(SIZE, stream);
  ck_assert_uint_eq(live_of("weights"), 2 * SIZE);
  ck_assert_uint_eq(live_of("scratch"), 2 * SIZE);
  give(weight, stream);
  give(scratch, stream);
  give(other, stream);
  give(none, stream);
  ck_assert_uint_eq(live_of("weights"), 0);
}

static void *allocate_untagged(void *stream) {
  return tarn_torch_alloc_or_null(SIZE, 0, stream);
}

TEST_SET_ON(tags_are_of_a_thread, 0, serve_on) {
  void *block = NULL;
  void *stream = native(stream_on(device));
  push("weights");
  pthread_t thread = start_thread(allocate_untagged, stream);
  ck_assert_int_eq(pthread_join(thread, &block), 0);
  pop();
  ck_assert_ptr_nonnull(block);
  ck_assert_uint_eq(live_of("weights"), 0);
  give(block, stream);
}

TEST(tags_have_an_end_at_both_ends) {
  assert_status(tarn_torch_tag_pop(), TARN_E_STATE);
  assert_says(tarn_torch_last_error(), "no tag");
  assert_status(tarn_torch_tag_push(""), TARN_E_INVALID);
  assert_status(tarn_torch_tag_push(NULL), TARN_E_INVALID);
  for (int i = 0; i < MOST; i++)
    push("deep");
  assert_status(tarn_torch_tag_push("deeper"), TARN_E_STATE);
  assert_says(tarn_torch_last_error(), "32 tags");
  for (int i = 0; i < MOST; i++)
    pop();
  assert_status(tarn_torch_tag_pop(), TARN_E_STATE);
}

// --- sleep -----------------------------------------------------------------

static char before[4 * SIZE];
static char after[4 * SIZE];

TEST_LOOP_ON_LIBRARY(a_tag_sleeps_and_wakes_with_what_it_held, 1,
                     TEST_NEEDS_RANGES, serve_on) {
  tarn_stream *stream = stream_on(device);
  push("weights");
  void *weights = take(sizeof before, native(stream));
  pop();
  memset(before, 'w', sizeof before);
  assert_ok(tarn_copy_h2d(device, tarn_addr_of(weights), before, sizeof before,
                          NULL));
  uint64_t reserved = stats_of_torch().reserved;
  assert_ok(tarn_torch_sleep(0, "weights", 1));
  tarn_torch_stats stats = stats_of_torch();
  ck_assert_uint_gt(stats.asleep, 0);
  ck_assert_uint_eq(stats.reserved, reserved - stats.asleep);
  assert_ok(tarn_torch_wake(0, "weights"));
  ck_assert_uint_eq(stats_of_torch().asleep, 0);
  assert_ok(
      tarn_copy_d2h(device, after, tarn_addr_of(weights), sizeof after, NULL));
  ck_assert_int_eq(memcmp(before, after, sizeof before), 0);
  assert_ok(tarn_torch_sleep(0, "weights", 0));
  give(weights, native(stream));
  ck_assert_uint_eq(stats_of_torch().asleep, 0);
}

TEST_SET_ON(a_tag_without_a_name_does_not_sleep, 0, serve_on) {
  assert_status(tarn_torch_sleep(0, "", 1), TARN_E_INVALID);
  assert_status(tarn_torch_wake(0, NULL), TARN_E_INVALID);
  ck_assert_str_ne(tarn_torch_last_error(), "");
}

// --- snapshots -------------------------------------------------------------

TEST_SET_ON(why_reads_a_snapshot, 0, serve_on) {
  void *stream = native(stream_on(device));
  const char *path = tool_file("snapshot.tarn");
  push("weights");
  void *block = take(SIZE, stream);
  pop();
  assert_ok(tarn_torch_snapshot(0, path));
  tool_output o = tool_did("why", path);
  assert_contains(o.out, "weights");
  assert_status(tarn_torch_snapshot(0, "/nowhere/at/all"), TARN_E_IO);
  assert_says(tarn_torch_last_error(), "/nowhere/at/all");
  give(block, stream);
}

// With events the file tells of what was freed, too.
TEST_SET_ON(why_reads_what_was_recorded, 0, serve_on) {
  void *stream = native(stream_on(device));
  const char *path = tool_file("recorded.tarn");
  assert_ok(tarn_pool_account(pool_of_torch(),
                              TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  push("activations");
  give(take(SIZE, stream), stream);
  pop();
  assert_ok(tarn_torch_snapshot(0, path));
  tool_output o = tool_did("why", path);
  assert_contains(o.out, "activations");
}
