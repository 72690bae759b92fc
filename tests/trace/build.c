// The trace builder: every function, and every error.
#include <stdio.h>
#include <string.h>

#include "support/faults.h"
#include "support/run.h"
#include "tarn/trace_build.h"

static tarn_trace_builder *builder;
static tarn_trace *trace;

static void begin(void) {
  trace = NULL;
  assert_ok(tarn_trace_builder_create("my run", &builder));
}

static void end(void) {
  tarn_trace_builder_destroy(builder);
  tarn_trace_destroy(trace);
  builder = NULL;
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

static void finish(void) {
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  builder = NULL;
}

static tarn_status put(tarn_trace_kind kind, uint64_t address, uint64_t size) {
  return tarn_trace_builder_event(
      builder, &(tarn_trace_event){.kind = kind,
                                   .address = address,
                                   .size = size,
                                   .stack = TARN_TRACE_NO_STACK});
}

static tarn_trace_block block_of(uint64_t address, uint64_t size) {
  return (tarn_trace_block){
      .address = address, .size = size, .stack = TARN_TRACE_NO_STACK};
}

static tarn_status old(uint64_t address, uint64_t size) {
  tarn_trace_block block = block_of(address, size);
  return tarn_trace_builder_old(builder, &block);
}

static tarn_status hold(uint64_t address, uint64_t size) {
  tarn_trace_block block = block_of(address, size);
  return tarn_trace_builder_held(builder, &block);
}

// --- create, destroy -------------------------------------------------------

TEST(a_name_is_needed) {
  tarn_trace_builder *none = builder;
  assert_status(tarn_trace_builder_create(NULL, &none), TARN_E_INVALID);
  assert_error_says("name is NULL");
  ck_assert_ptr_null(none);
  tarn_trace_builder_destroy(NULL);
}

TEST(nothing_is_a_trace) {
  finish();
  ck_assert_str_eq(trace->name, "my run");
  ck_assert_str_eq(trace->format, "built");
  ck_assert_uint_eq(trace->struct_size, sizeof *trace);
  ck_assert_uint_eq(trace->event_count, 0);
  ck_assert_uint_eq(trace->block_count, 0);
  ck_assert_uint_eq(trace->stack_count, 0);
  ck_assert_uint_eq(trace->tag_count, 1);
  ck_assert_str_eq(trace->tags[0], "");
  ck_assert_uint_eq(trace->segment_count, 0);
  ck_assert_uint_eq(trace->live_peak_bytes, 0);
  ck_assert_uint_eq(trace->live_peak_event, TARN_TRACE_BASELINE);
  ck_assert_uint_eq(trace->lost_count, 0);
  ck_assert_uint_eq(trace->device_count, 1);
  ck_assert(!trace->unfinished);
}

// --- names -----------------------------------------------------------------

TEST(equal_stacks_are_one) {
  const tarn_trace_frame frames[] = {
      {.file = "a.c", .function = "f", .line = 1},
      {.file = NULL, .function = NULL, .line = 0},
      {.file = "", .function = "", .line = 0}};
  uint32_t first = 0;
  uint32_t again = 0;
  uint32_t other = 0;
  uint32_t none = 0;
  assert_ok(tarn_trace_builder_stack(builder, frames, 2, &first));
  assert_ok(tarn_trace_builder_stack(
      builder, (tarn_trace_frame[]){frames[0], frames[2]}, 2, &again));
  assert_ok(tarn_trace_builder_stack(builder, frames + 1, 1, &other));
  ck_assert_uint_eq(first, again);
  ck_assert_uint_ne(first, other);
  assert_ok(tarn_trace_builder_stack(builder, frames, 0, &none));
  ck_assert_uint_eq(none, TARN_TRACE_NO_STACK);
  assert_ok(tarn_trace_builder_stack(builder, NULL, 0, &none));
  ck_assert_uint_eq(none, TARN_TRACE_NO_STACK);
  assert_status(tarn_trace_builder_stack(builder, NULL, 1, &none),
                TARN_E_INVALID);
  assert_error_says("my run: frames is NULL");
  finish();
  ck_assert_uint_eq(trace->stack_count, 2);
  ck_assert_uint_eq(trace->frame_count, 2);
  ck_assert_uint_eq(trace->stacks[first].count, 2);
  const tarn_trace_frame *inner =
      &trace->frames[trace->frame_indices[trace->stacks[first].first]];
  ck_assert_str_eq(inner->file, "a.c");
  ck_assert_str_eq(inner->function, "f");
  ck_assert_uint_eq(inner->line, 1);
}

TEST(texts_are_copied) {
  char name[] = "weights";
  uint32_t tag = 0;
  uint32_t again = 0;
  assert_ok(tarn_trace_builder_tag(builder, name, &tag));
  name[0] = 'x';
  assert_ok(tarn_trace_builder_tag(builder, "weights", &again));
  ck_assert_uint_eq(tag, again);
  ck_assert_uint_eq(tag, 1);
  assert_ok(tarn_trace_builder_tag(builder, "", &again));
  ck_assert_uint_eq(again, TARN_TRACE_NO_TAG);
  again = 7;
  assert_ok(tarn_trace_builder_tag(builder, NULL, &again));
  ck_assert_uint_eq(again, TARN_TRACE_NO_TAG);
  finish();
  ck_assert_uint_eq(trace->tag_count, 2);
  ck_assert_str_eq(trace->tags[1], "weights");
}

TEST(names_of_others) {
  tarn_trace_event event = {.kind = TARN_TRACE_ALLOC, .address = 1, .size = 1};
  tarn_trace_block block = {.address = 1, .size = 1};
  assert_status(tarn_trace_builder_event(builder, &event), TARN_E_INVALID);
  assert_error_says("my run: no stack has the number 0");
  assert_status(tarn_trace_builder_old(builder, &block), TARN_E_INVALID);
  assert_status(tarn_trace_builder_held(builder, &block), TARN_E_INVALID);
  event.stack = block.stack = TARN_TRACE_NO_STACK;
  event.tag = block.tag = 1;
  assert_status(tarn_trace_builder_event(builder, &event), TARN_E_INVALID);
  assert_error_says("my run: no tag has the number 1");
  assert_status(tarn_trace_builder_old(builder, &block), TARN_E_INVALID);
  assert_status(tarn_trace_builder_held(builder, &block), TARN_E_INVALID);
  finish();
  ck_assert_uint_eq(trace->event_count, 0);
  ck_assert_uint_eq(trace->block_count, 0);
}

TEST(kinds_that_there_are_not) {
  assert_status(put((tarn_trace_kind)0, 1, 1), TARN_E_INVALID);
  assert_error_says("my run: 0 is not a kind of event");
  assert_status(put((tarn_trace_kind)10, 1, 1), TARN_E_INVALID);
  assert_error_says("10 is not a kind of event");
}

// --- events ----------------------------------------------------------------

TEST(events_become_blocks) {
  assert_ok(old(8192, 30));
  assert_ok(put(TARN_TRACE_ALLOC, 4096, 100));
  assert_ok(put(TARN_TRACE_FREE_REQUESTED, 4096, 0));  // that block's size
  assert_ok(put(TARN_TRACE_OOM, 0, 1000));
  assert_ok(put(TARN_TRACE_FREE, 4096, 100));
  assert_ok(put(TARN_TRACE_FREE, 512, 7));  // reveals one
  assert_ok(put(TARN_TRACE_FREE, 600, 0));  // of an unknown block
  assert_ok(put(TARN_TRACE_FREE_REQUESTED, 600, 0));
  assert_ok(put(TARN_TRACE_ALLOC, 4096, 50));
  tarn_trace_builder_lost(builder, 3);
  tarn_trace_builder_lost(builder, 4);
  finish();
  ck_assert_uint_eq(trace->event_count, 6);
  ck_assert_uint_eq(trace->block_count, 4);
  ck_assert_uint_eq(trace->baseline_count, 2);
  ck_assert_uint_eq(trace->baseline_bytes, 37);
  ck_assert_uint_eq(trace->unknown_count, 2);
  ck_assert_uint_eq(trace->lost_count, 7);
  ck_assert_uint_eq(trace->request_count, 4);
  ck_assert_uint_eq(trace->live_peak_bytes, 137);
  ck_assert_uint_eq(trace->live_peak_event, 0);
  ck_assert_uint_eq(trace->events[1].size, 100);
  ck_assert_uint_eq(trace->events[1].block, 2);
  ck_assert_uint_eq(trace->events[2].block, TARN_TRACE_NO_BLOCK);
  ck_assert_uint_eq(trace->blocks[0].address, 8192);
  ck_assert_uint_eq(trace->blocks[0].died, TARN_TRACE_NEVER);
  ck_assert_uint_eq(trace->blocks[1].died, 4);
  ck_assert_uint_eq(trace->blocks[2].died, 3);
  ck_assert_uint_eq(trace->blocks[3].born, 5);
}

static const struct wrong {
  tarn_trace_kind kinds[3];
  uint64_t addresses[3];
  uint64_t sizes[3];
  const char *text;
} wrongs[] = {
    {{TARN_TRACE_ALLOC, TARN_TRACE_ALLOC},
     {512, 512},
     {8, 9},
     "my run: event 1: an alloc of 9 bytes where a block of 8 lives at address "
     "0x200"},
    {{TARN_TRACE_ALLOC, TARN_TRACE_FREE, TARN_TRACE_FREE},
     {512, 512, 512},
     {8, 8, 8},
     "event 2: a free of a block freed before at address 0x200"},
    {{TARN_TRACE_ALLOC, TARN_TRACE_FREE, TARN_TRACE_FREE_REQUESTED},
     {512, 512, 512},
     {8, 8, 8},
     "freed before"},
    {{TARN_TRACE_ALLOC, TARN_TRACE_FREE},
     {512, 512},
     {8, 9},
     "a free of 9 bytes of a block of 8"},
    {{TARN_TRACE_ALLOC}, {512}, {0}, "event 0: a block of 0 bytes"},
    {{TARN_TRACE_ALLOC}, {UINT64_MAX}, {1}, "beyond the address space"},
    {{TARN_TRACE_FREE}, {UINT64_MAX}, {2}, "beyond the address space"},
    {{TARN_TRACE_ALLOC, TARN_TRACE_ALLOC},
     {1, 2},
     {UINT64_MAX - 1, 3},
     "more than 2^64 bytes are alive at once"},
};

TEST_LOOP(impossible_events, sizeof wrongs / sizeof *wrongs) {
  const struct wrong *wrong = &wrongs[_i];
  size_t last = 0;
  while (last < 2 && wrong->kinds[last + 1] != 0)
    last++;
  for (size_t i = 0; i < last; i++)
    assert_ok(put(wrong->kinds[i], wrong->addresses[i], wrong->sizes[i]));
  assert_status(
      put(wrong->kinds[last], wrong->addresses[last], wrong->sizes[last]),
      TARN_E_CORRUPT);
  assert_error_says(wrong->text);
  // What failed is not in the trace, and what was there stays.
  assert_ok(put(TARN_TRACE_ALLOC, 1 << 20, 1));
  finish();
  ck_assert_uint_eq(trace->event_count, last + 1);
}

// A free of a dead block without a size is a free of an unknown block.
TEST(a_free_without_size_of_the_dead) {
  assert_ok(put(TARN_TRACE_ALLOC, 512, 8));
  assert_ok(put(TARN_TRACE_FREE, 512, 0));
  assert_ok(put(TARN_TRACE_FREE, 512, 0));
  finish();
  ck_assert_uint_eq(trace->event_count, 2);
  ck_assert_uint_eq(trace->unknown_count, 1);
}

// --- what is there before and after ----------------------------------------

TEST(old_blocks) {
  assert_ok(old(4096, 10));
  assert_status(old(4096, 11), TARN_E_CORRUPT);
  assert_error_says("a second block of the baseline at address 0x1000");
  assert_status(old(1, 0), TARN_E_CORRUPT);
  assert_status(old(UINT64_MAX, 9), TARN_E_CORRUPT);
  assert_status(put(TARN_TRACE_ALLOC, 4096, 1), TARN_E_CORRUPT);
  assert_ok(put(TARN_TRACE_FREE, 4096, 0));
  finish();
  ck_assert_uint_eq(trace->block_count, 1);
  ck_assert_uint_eq(trace->baseline_bytes, 10);
  ck_assert_uint_eq(trace->blocks[0].born, TARN_TRACE_BASELINE);
  ck_assert_uint_eq(trace->blocks[0].died, 0);
}

TEST(held_blocks) {
  assert_ok(put(TARN_TRACE_ALLOC, 512, 8));
  assert_ok(put(TARN_TRACE_ALLOC, 1024, 9));
  assert_ok(put(TARN_TRACE_FREE, 1024, 9));
  assert_ok(hold(512, 8));      // is that one
  assert_ok(hold(1024, 90));    // born after the last event
  assert_ok(hold(8192, 1000));  // of the baseline
  assert_status(hold(8192, 1000), TARN_E_CORRUPT);
  assert_error_says("a second active block at address 0x2000");
  assert_status(hold(512, 8), TARN_E_CORRUPT);
  assert_status(hold(3, 0), TARN_E_CORRUPT);
  assert_status(hold(UINT64_MAX - 1, 2), TARN_E_CORRUPT);
  finish();
  ck_assert_uint_eq(trace->block_count, 3);
  ck_assert_uint_eq(trace->baseline_count, 1);
  ck_assert_uint_eq(trace->blocks[0].size, 1000);
  ck_assert_uint_eq(trace->ignored_count, 1);
  ck_assert_uint_eq(trace->ignored_bytes, 90);
  ck_assert_uint_eq(trace->live_peak_bytes, 1017);
}

TEST(segments) {
  tarn_trace_segment segment = {.address = 4096, .size = 512, .stream = 3};
  assert_ok(tarn_trace_builder_segment(builder, &segment));
  segment.size = 0;
  assert_status(tarn_trace_builder_segment(builder, &segment), TARN_E_INVALID);
  assert_error_says("my run: a segment of 0 bytes at address 0x1000");
  segment.size = UINT64_MAX - 4095;
  assert_status(tarn_trace_builder_segment(builder, &segment), TARN_E_INVALID);
  assert_error_says("a segment of 18446744073709547520 bytes");
  finish();
  ck_assert_uint_eq(trace->segment_count, 1);
  ck_assert_uint_eq(trace->segments[0].stream, 3);
}

TEST(fields_come_through) {
  uint32_t tag = 0;
  uint32_t stack = 0;
  assert_ok(tarn_trace_builder_tag(builder, "t", &tag));
  assert_ok(tarn_trace_builder_stack(builder, &(tarn_trace_frame){.file = "f"},
                                     1, &stack));
  tarn_trace_event event = {.kind = TARN_TRACE_ALLOC,
                            .address = 512,
                            .size = 8,
                            .time_us = 99,
                            .stream = 5,
                            .stack = stack,
                            .tag = tag,
                            .thread = 6};
  assert_ok(tarn_trace_builder_event(builder, &event));
  finish();
  event.block = 0;
  ck_assert_uint_eq(trace->events[0].time_us, 99);
  ck_assert_uint_eq(trace->events[0].stream, 5);
  ck_assert_uint_eq(trace->events[0].thread, 6);
  ck_assert_uint_eq(trace->events[0].tag, tag);
  ck_assert_uint_eq(trace->blocks[0].stack, stack);
  ck_assert_uint_eq(trace->blocks[0].tag, tag);
  ck_assert_uint_eq(trace->blocks[0].stream, 5);
  ck_assert_uint_eq(trace->blocks[0].address, 512);
}

// --- failures --------------------------------------------------------------

// Goes on after each failure: what failed must not show later.
static void build_once(void *context) {
  (void)context;
  tarn_trace_builder *made = NULL;
  tarn_trace *done = NULL;
  uint32_t stack = TARN_TRACE_NO_STACK;
  uint32_t tag = 0;
  size_t added = 0;
  if (tarn_trace_builder_create("sweep", &made) != TARN_OK) {
    require(made == NULL);
    return;
  }
  (void)!tarn_trace_builder_stack(
      made, (tarn_trace_frame[]){{.file = "a", .line = 1}, {.function = "b"}},
      2, &stack);
  (void)!tarn_trace_builder_tag(made, "tag", &tag);
  for (uint64_t i = 1; i < 40; i++) {
    tarn_trace_event event = {.kind = TARN_TRACE_ALLOC,
                              .address = i * 512,
                              .size = i,
                              .stack = stack,
                              .tag = tag};
    added += tarn_trace_builder_event(made, &event) == TARN_OK;
  }
  tarn_trace_block block = {.address = 1 << 20, .size = 5, .stack = stack};
  added += tarn_trace_builder_held(made, &block) == TARN_OK;
  (void)!tarn_trace_builder_segment(
      made, &(tarn_trace_segment){.address = 512, .size = 512});
  tarn_status status = tarn_trace_builder_finish(made, &done);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  require((status == TARN_OK) == (done != NULL));
  require(done == NULL || done->block_count == added);
  tarn_trace_destroy(done);
}

TEST(no_memory) {
  ck_assert_uint_gt(faults_sweep(build_once, NULL), 20);
}

FIXTURE(begin, end);

int main(void) {
  faults_install();
  return run_tests();
}
