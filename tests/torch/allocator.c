// The two functions that PyTorch is given by name, and its hooks: blocks on
// streams, and what happens where there is no room or no such block.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "kit.h"
#include "support/hold.h"
#include "support/tool_run.h"

enum { SIZE = 300000, STREAMS = 260 };

// --- blocks ----------------------------------------------------------------

TEST_SET_ON(blocks_come_and_go_on_a_stream, 0, serve_on) {
  tarn_stream *stream = stream_on(device);
  void *first = take(SIZE, native(stream));
  void *second = take(SIZE, native(stream));
  ck_assert_ptr_ne(first, second);
  ck_assert_uint_eq(stats_of_torch().blocks, 2);
  ck_assert_uint_ge(stats_of_torch().live, 2 * SIZE);
  give(first, native(stream));
  give(second, native(stream));
  tarn_torch_stats stats = stats_of_torch();
  ck_assert_uint_eq(stats.blocks, 0);
  ck_assert_uint_eq(stats.live, 0);
  ck_assert_uint_ge(stats.live_peak, 2 * SIZE);
  ck_assert_uint_eq(stats.allocs, 2);
  ck_assert_uint_eq(stats.frees, 2);
}

TEST_SET_ON(a_freed_block_is_reused_on_its_stream_at_once, 0, serve_on) {
  tarn_stream *stream = stream_on(device);
  void *block = take(SIZE, native(stream));
  give(block, native(stream));
  uint64_t before = stats_of_torch().device_allocs;
  void *again = take(SIZE, native(stream));
  ck_assert_ptr_eq(again, block);
  ck_assert_uint_eq(stats_of_torch().device_allocs, before);
  give(again, native(stream));
}

// PyTorch asks for them where a tensor is empty, and never frees NULL.
TEST_SET_ON(a_size_of_0_is_null_and_no_request, 0, serve_on) {
  char text[CAUGHT_TEXT];
  ck_assert_ptr_null(alloc_caught(0, 0, NULL, text));
  ck_assert_str_eq(text, "");
  ck_assert_ptr_null(tarn_torch_alloc_or_null(0, 0, NULL));
  tarn_torch_free(NULL, 0, 0, NULL);
  ck_assert_uint_eq(stats_of_torch().allocs, 0);
  ck_assert_uint_eq(stats_of_torch().failures, 0);
}

TEST_LOOP_ON_LIBRARY(the_default_stream_is_null, 1, TEST_NEEDS_STREAMS,
                     serve_on) {
  char text[CAUGHT_TEXT];
  void *block = alloc_caught(SIZE, 0, NULL, text);
  if ((tarn_device_extensions(device) & TARN_EXTENSION_DEFAULT_STREAM) == 0) {
    ck_assert_ptr_null(block);
    assert_says(text, "default_stream");
    return;
  }
  tarn_stream *stream = NULL;
  ck_assert_str_eq(text, "");
  assert_ok(tarn_stream_adopt(device, NULL, &stream));
  hold held;
  hold_begin(&held, stream);
  give(block, NULL);
  tarn_stream *other = stream_on(device);
  void *again = take(SIZE, native(other));
  bool is_same = again == block;  // then it waits for the default stream
  tarn_status status = tarn_stream_query(other);
  hold_end(&held);
  assert_ok(tarn_stream_synchronize(stream));
  ck_assert_int_eq(status, is_same ? TARN_PENDING : TARN_OK);
  give(again, native(other));
  assert_ok(tarn_stream_destroy(stream));
}

// More than are kept: the rest is adopted for each call.
TEST_LOOP_ON_LIBRARY(any_number_of_streams, 1, TEST_NEEDS_STREAMS, serve_on) {
  void *blocks[STREAMS];
  tarn_stream *streams[STREAMS];
  for (int i = 0; i < STREAMS; i++) {
    assert_ok(tarn_stream_create(device, &streams[i]));
    blocks[i] = take(SIZE, native(streams[i]));
  }
  for (int i = 0; i < STREAMS; i++) {
    give(blocks[i], native(streams[i]));
    blocks[i] = take(SIZE, native(streams[i]));
    tarn_torch_record_stream(blocks[i], native(streams[STREAMS - 1 - i]));
  }
  ck_assert_uint_eq(stats_of_torch().blocks, STREAMS);
  for (int i = 0; i < STREAMS; i++)
    give(blocks[i], native(streams[i]));
  ck_assert_uint_eq(stats_of_torch().blocks, 0);
  for (int i = 0; i < STREAMS; i++)
    assert_ok(tarn_stream_destroy(streams[i]));
}

// --- streams that use a block too ------------------------------------------

// The status of |own| when a block was freed on it that |other| still uses.
static tarn_status freed_under(tarn_stream *own, tarn_stream *other,
                               bool is_recorded) {
  hold held;
  void *block = take(SIZE, native(own));
  hold_begin(&held, other);
  if (is_recorded) tarn_torch_record_stream(block, native(other));
  give(block, native(own));
  void *again = take(SIZE, native(own));
  tarn_status status = tarn_stream_query(own);
  ck_assert_ptr_eq(again, block);
  hold_end(&held);
  assert_ok(tarn_stream_synchronize(other));
  assert_ok(tarn_stream_synchronize(own));
  give(again, native(own));
  return status;
}

TEST_LOOP_ON_LIBRARY(without_record_stream_memory_is_reused_at_once, 1,
                     TEST_NEEDS_STREAMS, serve_on) {
  tarn_stream *own = stream_on(device);
  tarn_stream *other = stream_on(device);
  assert_status(freed_under(own, other, false), TARN_OK);
}

TEST_LOOP_ON_LIBRARY(with_record_stream_it_waits_and_the_host_does_not, 1,
                     TEST_NEEDS_STREAMS, serve_on) {
  tarn_stream *own = stream_on(device);
  tarn_stream *other = stream_on(device);
  assert_status(freed_under(own, other, true), TARN_PENDING);
}

// --- hooks -----------------------------------------------------------------

TEST_SET_ON(a_reset_gives_idle_memory_back, 0, serve_on) {
  tarn_stream *stream = stream_on(device);
  give(take(SIZE, native(stream)), native(stream));
  ck_assert_uint_gt(stats_of_torch().reserved, 0);
  tarn_torch_reset();
  ck_assert_uint_eq(stats_of_torch().reserved, 0);
  ck_assert_uint_gt(stats_of_torch().reserved_peak, 0);
  assert_ok(tarn_torch_reset_peaks(0));
  ck_assert_uint_eq(stats_of_torch().reserved_peak, 0);
}

TEST_SET_ON(the_base_of_a_block_holds_it, 0, serve_on) {
  tarn_stream *stream = stream_on(device);
  char *block = take(SIZE, native(stream));
  size_t size = 0;
  char *base = tarn_torch_base_alloc(block, &size);
  ck_assert(base <= block);
  ck_assert_uint_ge(size, (size_t)(block - base) + SIZE);
  size_t again = 0;
  ck_assert_ptr_eq(tarn_torch_base_alloc(block + SIZE - 1, &again), base);
  ck_assert_ptr_eq(tarn_torch_base_alloc(block, NULL), base);
  give(block, native(stream));
  ck_assert_ptr_eq(tarn_torch_base_alloc(&size, &again), &size);
  ck_assert_uint_eq(again, 0);
}

// --- no room ---------------------------------------------------------------

TEST_SET_ON(no_room_is_an_exception_or_null, 0, serve_on) {
  char text[CAUGHT_TEXT];
  tarn_stream *stream = stream_on(device);
  assert_ok(tarn_pool_limit(pool_of_torch(), 8 << 20));
  ck_assert_ptr_null(alloc_caught(16 << 20, 0, native(stream), text));
  assert_says(text, "limit");
  assert_says(tarn_torch_last_error(), text);
  ck_assert_ptr_null(tarn_torch_alloc_or_null(16 << 20, 0, native(stream)));
  ck_assert_uint_eq(stats_of_torch().failures, 2);
  void *block = tarn_torch_alloc_or_null(SIZE, 0, native(stream));
  ck_assert_ptr_nonnull(block);
  give(block, native(stream));
}

TEST_SET_ON(a_fraction_of_the_memory_is_the_limit, 0, serve_on) {
  size_t total = 0;
  size_t available = 0;
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_device_memory(device, &total, &available));
  tarn_torch_memory_fraction(0.5, 0);
  assert_ok(tarn_pool_query(pool_of_torch(), &stats));
  ck_assert_uint_ge(stats.limit_bytes, total / 2 - 1);
  ck_assert_uint_le(stats.limit_bytes, total / 2 + 1);
}

// --- what is wrong ---------------------------------------------------------

static const char *path;

static void begin_files(void) {
  tool_files_begin();
  path = tool_file("stderr");
}

FIXTURE(begin_files, tool_files_end);

// stderr is the file at |path| from now on.
static int divert(void) {
  int kept = dup(STDERR_FILENO);
  ck_assert_ptr_nonnull(freopen(path, "w", stderr));
  return kept;
}

static const char *restore(int kept) {
  ck_assert_int_eq(fflush(stderr), 0);
  ck_assert_int_ne(dup2(kept, STDERR_FILENO), -1);
  ck_assert_int_eq(close(kept), 0);
  return tool_read_file(path);
}

TEST_SET_ON(a_wrong_free_changes_nothing_and_is_said_once, 0, serve_on) {
  static char stranger[64];
  tarn_stream *stream = stream_on(device);
  void *block = take(SIZE, native(stream));
  int kept = divert();
  give(stranger, native(stream));
  give(stranger + 1, native(stream));
  tarn_torch_record_stream(stranger, native(stream));
  tarn_torch_memory_fraction(2, 0);
  const char *said = restore(kept);
  assert_says(said, "libtarn_torch: free of 0x");
  ck_assert_ptr_eq(strchr(said, '\n'), said + strlen(said) - 1);  // one line
  ck_assert_uint_eq(stats_of_torch().blocks, 1);
  give(block, native(stream));
  ck_assert_uint_eq(stats_of_torch().blocks, 0);
}

TEST_SET_ON(a_block_that_is_recorded_is_known, 0, serve_on) {
  tarn_stream *stream = stream_on(device);
  int kept = divert();
  tarn_torch_record_stream(NULL, native(stream));
  void *block = take(SIZE, native(stream));
  tarn_torch_record_stream(block, native(stream));
  give(block, native(stream));
  ck_assert_str_eq(restore(kept), "");
}

TEST(a_device_that_is_not_there_is_an_error_with_its_name) {
  char text[CAUGHT_TEXT];
  tarn_pool *pool = NULL;
  ck_assert_int_eq(setenv("TARN_TORCH_DEVICE", "nothing", 1), 0);
  ck_assert_ptr_null(alloc_caught(SIZE, 3, NULL, text));
  assert_says(text, "nothing:3");
  ck_assert_ptr_null(tarn_torch_alloc_or_null(SIZE, 3, NULL));
  assert_status(tarn_torch_pool(3, &pool), TARN_E_INVALID);
  assert_says(tarn_torch_last_error(), "nothing:3");
  ck_assert_ptr_null(pool);
}

TEST(what_does_not_fit_into_the_struct_is_an_error) {
  ck_assert_int_eq(setenv("TARN_TORCH_DEVICE", "sim", 1), 0);
  struct {
    tarn_torch_stats known;
    uint64_t newer;
  } larger = {.known = {.struct_size = sizeof larger}, .newer = 1};
  tarn_torch_stats stats = {.struct_size = 0};
  assert_ok(tarn_torch_query(0, &stats));
  assert_ok(tarn_torch_query(0, &larger.known));
  ck_assert_uint_eq(larger.newer, 0);
  stats.struct_size = 8;
  assert_status(tarn_torch_query(0, &stats), TARN_E_INVALID);
  assert_says(tarn_torch_last_error(), "struct_size");
  assert_status(tarn_torch_query(0, NULL), TARN_E_INVALID);
  assert_status(tarn_torch_pool(0, NULL), TARN_E_INVALID);
  assert_ok(tarn_torch_close());
}

TEST(the_type_is_cuda_where_nothing_is_said) {
  char text[CAUGHT_TEXT];
  ck_assert_int_eq(setenv("TARN_TORCH_DEVICE", "", 1), 0);
  ck_assert_ptr_null(alloc_caught(SIZE, -1, NULL, text));
  assert_says(text, "cuda:-1");
}

TEST(a_device_with_live_blocks_stays_open) {
  ck_assert_int_eq(setenv("TARN_TORCH_DEVICE", "sim", 1), 0);
  void *block = take(SIZE, NULL);
  assert_status(tarn_torch_close(), TARN_E_STATE);
  assert_says(tarn_torch_last_error(), "sim:0");
  give(block, NULL);
  assert_ok(tarn_torch_close());
}
