// Captured graphs: each pool of PyTorch's has a Tarn pool of its own.
#include "kit.h"
#include "tarn/sim.h"

enum { SIZE = 300000, ID = 7, OTHER = 8 };

static void begin(unsigned long long id, void *stream) {
  char text[CAUGHT_TEXT];
  begin_caught(0, id, stream, text);
  ck_assert_str_eq(text, "");
}

TEST_LOOP_ON_LIBRARY(only_the_captured_stream_gets_the_graphs_memory, 1,
                     TEST_NEEDS_STREAMS, serve_on) {
  tarn_pool *pool = pool_of_torch();
  void *captured = native(stream_on(device));
  void *other = native(stream_on(device));
  begin(ID, captured);
  void *graphs = take(SIZE, captured);
  void *others = take(SIZE, other);
  end_graph(0, ID);
  void *later = take(SIZE, captured);
  ck_assert(!is_of(pool, graphs));
  ck_assert(is_of(pool, others));
  ck_assert(is_of(pool, later));
  ck_assert_uint_eq(stats_of_torch().blocks, 3);
  give(graphs, captured);
  give(others, other);
  give(later, captured);
  ck_assert_uint_eq(stats_of_torch().blocks, 0);
  release_graph(0, ID);
}

// In a capture a driver is asked for nothing that would end it.
TEST(a_capture_is_not_broken) {
  tarn_device *device = open_device("sim:0");
  serve_on(device);
  void *captured = native(stream_on(device));
  void *before = take(SIZE, captured);
  begin(ID, captured);
  tarn_sim_capture(captured);
  void *graphs = take(SIZE, captured);
  give(graphs, captured);
  ck_assert_ptr_eq(take(SIZE, captured), graphs);
  give(before, captured);
  give(graphs, captured);
  tarn_sim_capture(NULL);
  end_graph(0, ID);
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
  release_graph(0, ID);
  tarn_torch_reset();
  ck_assert_uint_eq(stats_of_torch().reserved, 0);
}

// A graph runs again and again: what it used must not be another's meanwhile.
TEST_LOOP_ON_LIBRARY(memory_stays_the_graphs_until_it_is_released, 1,
                     TEST_NEEDS_STREAMS, serve_on) {
  void *captured = native(stream_on(device));
  begin(ID, captured);
  give(take(SIZE, captured), captured);
  end_graph(0, ID);
  uint64_t held = stats_of_torch().reserved;
  ck_assert_uint_ge(held, SIZE);
  tarn_torch_reset();
  ck_assert_uint_eq(stats_of_torch().reserved, held);
  release_graph(0, ID);
  ck_assert_uint_eq(stats_of_torch().reserved, 0);
}

TEST_LOOP_ON_LIBRARY(a_released_pool_ends_with_its_last_block, 1,
                     TEST_NEEDS_STREAMS, serve_on) {
  void *captured = native(stream_on(device));
  begin(ID, captured);
  void *block = take(SIZE, captured);
  end_graph(0, ID);
  release_graph(0, ID);
  ck_assert_uint_eq(stats_of_torch().blocks, 1);
  give(block, captured);
  ck_assert_uint_ge(stats_of_torch().reserved, SIZE);
  tarn_torch_reset();
  ck_assert_uint_eq(stats_of_torch().reserved, 0);
}

TEST_LOOP_ON_LIBRARY(a_second_graph_uses_the_memory_of_the_first, 1,
                     TEST_NEEDS_STREAMS, serve_on) {
  void *captured = native(stream_on(device));
  begin(ID, captured);
  void *first = take(SIZE, captured);
  give(first, captured);
  end_graph(0, ID);
  begin(ID, captured);
  ck_assert_ptr_eq(take(SIZE, captured), first);
  give(first, captured);
  end_graph(0, ID);
  release_graph(0, ID);
}

TEST_LOOP_ON_LIBRARY(pools_of_graphs_share_nothing, 1, TEST_NEEDS_STREAMS,
                     serve_on) {
  void *one = native(stream_on(device));
  void *two = native(stream_on(device));
  begin(ID, one);
  begin(OTHER, two);
  void *first = take(SIZE, one);
  void *second = take(SIZE, two);
  tarn_torch_record_stream(first, one);
  end_graph(0, ID);
  end_graph(0, OTHER);
  give(second, two);
  release_graph(0, OTHER);
  ck_assert_uint_eq(stats_of_torch().blocks, 1);
  give(first, one);
  release_graph(0, ID);
  ck_assert_uint_eq(stats_of_torch().reserved, 0);
}

// A request out of another pool would have its memory reused under the graph.
TEST_LOOP_ON_LIBRARY(a_capture_that_cannot_begin_is_an_exception, 1,
                     TEST_NEEDS_STREAMS, serve_on) {
  char text[CAUGHT_TEXT];
  void *captured = native(stream_on(device));
  begin(ID, captured);
  begin_caught(0, ID, captured, text);
  assert_says(text, "a capture is under way");
  end_graph(0, ID);
  release_graph(0, ID);
  assert_ok(tarn_torch_close());
  ck_assert_int_eq(setenv("TARN_POOL", "no_pool", 1), 0);
  begin_caught(0, ID, captured, text);
  assert_says(text, "no_pool");
  ck_assert_int_eq(unsetenv("TARN_POOL"), 0);
}

TEST_LOOP_ON_LIBRARY(an_unknown_pool_is_none, 1, TEST_NEEDS_STREAMS, serve_on) {
  end_graph(0, OTHER);
  release_graph(0, OTHER);
  ck_assert_uint_eq(stats_of_torch().reserved, 0);
}

TEST_LOOP_ON_LIBRARY(a_filter_that_throws_is_heard_or_null, 1,
                     TEST_NEEDS_STREAMS, serve_on) {
  char text[CAUGHT_TEXT];
  void *stream = native(stream_on(device));
  begin_with_thrower(0, ID);
  ck_assert_ptr_null(alloc_caught(SIZE, 0, stream, text));
  ck_assert_str_eq(text, "the filter throws");
  ck_assert_ptr_null(tarn_torch_alloc_or_null(SIZE, 0, stream));
  end_graph(0, ID);
  give(take(SIZE, stream), stream);
  release_graph(0, ID);
}
