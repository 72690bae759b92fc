// Segments of written snapshots: the trace's own, and new ones for its living
// blocks.
#include "support/run.h"
#include "support/trace_written.h"

typedef struct held_block {
  uint64_t address;
  uint64_t size;
  uint64_t stream;
} held_block;

static tarn_trace *build_held(const held_block *blocks, size_t count,
                              const tarn_trace_segment *segments,
                              size_t segment_count) {
  tarn_trace_builder *builder = NULL;
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_builder_create("held", &builder));
  for (size_t i = 0; i < count; i++) {
    tarn_trace_block block = {.address = blocks[i].address,
                              .size = blocks[i].size,
                              .stream = blocks[i].stream,
                              .stack = TARN_TRACE_NO_STACK};
    assert_ok(tarn_trace_builder_held(builder, &block));
  }
  for (size_t i = 0; i < segment_count; i++)
    assert_ok(tarn_trace_builder_segment(builder, &segments[i]));
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  return trace;
}

static void assert_segments(const tarn_trace *trace,
                            const tarn_trace_segment *want, size_t count) {
  tarn_trace *read = written_again(trace, TARN_TRACE_FORMAT_PYTORCH);
  ck_assert_uint_eq(read->block_count, trace->block_count);
  ck_assert_uint_eq(read->live_peak_bytes, trace->live_peak_bytes);
  ck_assert_uint_eq(read->segment_count, count);
  for (size_t i = 0; i < count; i++) {
    ck_assert_uint_eq(read->segments[i].address, want[i].address);
    ck_assert_uint_eq(read->segments[i].size, want[i].size);
    ck_assert_uint_eq(read->segments[i].stream, want[i].stream);
  }
  tarn_trace_destroy(read);
}

TEST(neighbours_share_a_made_segment) {
  const uint64_t mib = 1 << 20;
  tarn_trace *trace = build_held(
      (held_block[]){{8 * mib, 100, 0},
                     {1 * mib, 512, 0},
                     {1 * mib + 600, 100, 0},  // in the first one's rounding
                     {3 * mib, 100, 0},
                     {5 * mib + 100, 1, 0},  // just too far from the last
                     {8 * mib + 512, 5, 1},  // another stream
                     {8 * mib + 520, 5, 1}},
      7, NULL, 0);
  assert_segments(trace,
                  (tarn_trace_segment[]){
                      {.address = mib, .size = 2 * mib + 512},
                      {.address = 5 * mib + 100, .size = 512},
                      {.address = 8 * mib, .size = 512},
                      {.address = 8 * mib + 512, .size = 520, .stream = 1}},
                  4);
  tarn_trace_destroy(trace);
}

// Beside the trace's segments, in their order: what sticks out, what overlaps.
TEST(what_has_no_segment_gets_one) {
  tarn_trace *trace =
      build_held((held_block[]){{0x1000, 0x100, 0},
                                {0x1080, 0x100, 0},   // within the one before
                                {0x1f00, 0x101, 0},   // beyond the end
                                {0x8000, 0x1000, 0},  // all of a segment
                                {0x900, 0x10, 0}},    // below all
                 5,
                 (tarn_trace_segment[]){{.address = 0x8000, .size = 0x1000},
                                        {.address = 0x1000, .size = 0x1000}},
                 2);
  assert_segments(trace,
                  (tarn_trace_segment[]){{.address = 0x8000, .size = 0x1000},
                                         {.address = 0x1000, .size = 0x1000},
                                         {.address = 0x900, .size = 0x200},
                                         {.address = 0x1080, .size = 0x200},
                                         {.address = 0x1f00, .size = 0x200}},
                  5);
  tarn_trace_destroy(trace);
}

TEST(the_end_of_the_address_space) {
  const uint64_t top = UINT64_MAX - 100;
  tarn_trace *trace = build_held((held_block[]){{top, 100, 0}}, 1, NULL, 0);
  assert_segments(trace, (tarn_trace_segment[]){{.address = top, .size = 100}},
                  1);
  tarn_trace_destroy(trace);
}
