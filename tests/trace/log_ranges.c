// Files of Tarn's own format, made by hand: raw stacks and the modules that
// they lead into, and mappings that are cut up.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log_kit.h"
#include "support/mix.h"

// --- raw stacks ------------------------------------------------------------

// An alloc whose stack is one return address, |next|.
static void raw_event(uint64_t number, uint64_t next) {
  LOG_DEFINE(&file, TARN__LOG_RAW_STACK, number, 1, next << 1);
  log_put(&file, (tarn__trace_log_event){.kind = TARN__LOG_ALLOC,
                                         .number = number,
                                         .address = number,
                                         .size = 1,
                                         .stack = number});
}

TEST(return_addresses_are_found_in_modules) {
  log_page(&file, 1);
  log_text(&file, 1, "/lib/a.so");
  LOG_DEFINE(&file, TARN__LOG_MODULE, 1, 1, 0x1000, 0x100, 0xc00, 0);
  raw_event(1, 0x1000);  // the call's end is the module's begin: not in it
  raw_event(2, 0x1001);
  raw_event(3, 0x1100);
  raw_event(4, 0x1101);
  raw_event(5, 0);
  read_made();
  assert_frame(0, "", "0xfff", 0);
  assert_frame(1, "/lib/a.so", "+0x400", 0);
  assert_frame(2, "/lib/a.so", "+0x4ff", 0);
  assert_frame(3, "", "0x1100", 0);
  assert_frame(4, "", "0xffffffffffffffff", 0);
}

TEST(a_raw_stack_has_all_its_frames) {
  tarn__trace_log_event event = {.kind = TARN__LOG_ALLOC,
                                 .number = 1,
                                 .address = 1,
                                 .size = 1,
                                 .stack = 1};
  log_page(&file, 1);
  LOG_DEFINE(&file, TARN__LOG_RAW_STACK, 1, 3, 0x20, 0x20, 0x1f);
  log_put(&file, event);
  read_made();
  const tarn_trace_stack *stack = &trace->stacks[trace->events[0].stack];
  ck_assert_uint_eq(stack->count, 3);
  const uint32_t *frames = trace->frame_indices + stack->first;
  ck_assert_str_eq(trace->frames[frames[0]].function, "0xf");
  ck_assert_str_eq(trace->frames[frames[1]].function, "0x1f");
  ck_assert_str_eq(trace->frames[frames[2]].function, "0xf");
  ck_assert_uint_eq(frames[0], frames[2]);
}

// Frames stand between addresses, and these differ from each other.
TEST(a_mixed_stack_has_both_in_their_order) {
  tarn__trace_log_event event = {.kind = TARN__LOG_ALLOC,
                                 .number = 1,
                                 .address = 1,
                                 .size = 1,
                                 .stack = 1};
  log_page(&file, 1);
  log_text(&file, 1, "/lib/a.so");
  log_text(&file, 2, "train.py");
  log_text(&file, 3, "forward");
  LOG_DEFINE(&file, TARN__LOG_MODULE, 1, 1, 0x1000, 0x100, 0xc00, 0);
  LOG_DEFINE(&file, TARN__LOG_FRAME, 7, 2, 3, 12);
  LOG_DEFINE(&file, TARN__LOG_MIXED_STACK, 1, 4,
             tarn__log_mixed_address(0x1011, 0), tarn__log_mixed_frame(7),
             tarn__log_mixed_address(0x21, 0x1011), tarn__log_mixed_frame(8));
  log_put(&file, event);
  read_made();
  const tarn_trace_stack *stack = &trace->stacks[trace->events[0].stack];
  ck_assert_uint_eq(stack->count, 4);
  const uint32_t *frames = trace->frame_indices + stack->first;
  ck_assert_str_eq(trace->frames[frames[0]].file, "/lib/a.so");
  ck_assert_str_eq(trace->frames[frames[0]].function, "+0x410");
  ck_assert_str_eq(trace->frames[frames[1]].file, "train.py");
  ck_assert_str_eq(trace->frames[frames[1]].function, "forward");
  ck_assert_uint_eq(trace->frames[frames[1]].line, 12);
  ck_assert_str_eq(trace->frames[frames[2]].function, "0x20");
  ck_assert_str_eq(trace->frames[frames[3]].file, "");  // not defined
}

// At one address: a from event 10 on, b from 20 on, which is shorter; c was
// noticed after its first use.
TEST(the_module_of_the_moment_counts) {
  log_page(&file, 1);
  log_text(&file, 1, "a");
  log_text(&file, 2, "b");
  log_text(&file, 3, "c");
  LOG_DEFINE(&file, TARN__LOG_MODULE, 3, 3, 0x5000, 0x100, 0x5000, 25);
  LOG_DEFINE(&file, TARN__LOG_MODULE, 2, 2, 0x1000, 0x80, 0x1000, 20);
  LOG_DEFINE(&file, TARN__LOG_MODULE, 1, 1, 0x1000, 0x100, 0x1000, 10);
  raw_event(5, 0x1011);  // before all: that which appeared first
  raw_event(19, 0x1011);
  raw_event(20, 0x1011);
  raw_event(21, 0x1091);
  raw_event(22, 0x5011);
  read_made();
  assert_frame(0, "a", "+0x10", 0);
  assert_frame(1, "a", "+0x10", 0);
  assert_frame(2, "b", "+0x10", 0);
  assert_frame(3, "a", "+0x90", 0);
  assert_frame(4, "c", "+0x10", 0);
}

TEST(a_module_without_bytes_or_path_is_no_trouble) {
  log_page(&file, 1);
  LOG_DEFINE(&file, TARN__LOG_MODULE, 1, 9, 0x1000, 0x100, 0x1001, 0);
  LOG_DEFINE(&file, TARN__LOG_MODULE, 2, 9, 0x1000, 0, 0, 1);
  raw_event(2, 0x1001);
  read_made();
  assert_frame(0, "", "+0xffffffffffffffff", 0);
}

// --- mappings --------------------------------------------------------------

TEST(what_is_left_of_a_mapping_lives_on) {
  log_page(&file, 3);
  log_text(&file, 1, "mapped");
  log_put(&file, (tarn__trace_log_event){.kind = TARN__LOG_MAP,
                                         .number = 1,
                                         .address = 0x10000,
                                         .size = 0x9000,
                                         .tag = 1,
                                         .stream = 4});
  log_event(&file, TARN__LOG_UNMAP, 2, 0x12000, 0x3000);
  log_event(&file, TARN__LOG_UNMAP, 3, 0x8000, 0x20000);
  read_made();
  ck_assert_uint_eq(trace->event_count, 6);
  assert_event(0, TARN_TRACE_ALLOC, 0x10000, 0x9000);
  assert_event(1, TARN_TRACE_FREE, 0x10000, 0x9000);
  assert_event(2, TARN_TRACE_ALLOC, 0x10000, 0x2000);
  const tarn_trace_event *rest =
      assert_event(3, TARN_TRACE_ALLOC, 0x15000, 0x4000);
  ck_assert_str_eq(trace->tags[rest->tag], "mapped");
  ck_assert_uint_eq(rest->stream, 4);
  ck_assert_uint_eq(rest->thread, 3);
  assert_event(4, TARN_TRACE_FREE, 0x10000, 0x2000);
  assert_event(5, TARN_TRACE_FREE, 0x15000, 0x4000);
  ck_assert_uint_eq(trace->unknown_count, 0);
}

TEST(mapping_over_a_mapping_unmaps_it) {
  log_page(&file, 1);
  log_event(&file, TARN__LOG_MAP, 1, 0x10000, 0x3000);
  log_event(&file, TARN__LOG_MAP, 2, 0x11000, 0x1000);
  log_event(&file, TARN__LOG_FREE, 3, 0x11000, 0);  // freed as a whole
  log_event(&file, TARN__LOG_UNMAP, 4, 0x11000, 0x1000);
  read_made();
  ck_assert_uint_eq(trace->event_count, 6);
  assert_event(1, TARN_TRACE_FREE, 0x10000, 0x3000);
  assert_event(2, TARN_TRACE_ALLOC, 0x10000, 0x1000);
  assert_event(3, TARN_TRACE_ALLOC, 0x12000, 0x1000);
  assert_event(4, TARN_TRACE_ALLOC, 0x11000, 0x1000);
  assert_event(5, TARN_TRACE_FREE, 0x11000, 0x1000);
  ck_assert_uint_eq(trace->unknown_count, 1);
}

// Against a model that knows of each page whether it is mapped.
TEST_LOOP(random_mappings_leave_what_a_model_says, 4) {
  enum { PAGES = 256, EVENTS = 20000 };
  bool mapped[PAGES] = {false};
  uint64_t state = 88172645463325252u + (uint64_t)_i;
  size_t count = 0;
  log_page(&file, 1);
  for (uint64_t i = 0; i < EVENTS; i++) {
    state = mix(state, i);
    size_t first = (size_t)(state % PAGES);
    size_t size = (size_t)(state >> 32) % 16 + 1;
    bool is_map = (state >> 48 & 1) != 0;
    if (first + size > PAGES) size = PAGES - first;
    memset(mapped + first, is_map, size);
    log_event(&file, is_map ? TARN__LOG_MAP : TARN__LOG_UNMAP, i,
              (first + 1) << 12, (uint64_t)size << 12);
  }
  read_made();
  for (size_t i = 0; i < trace->block_count; i++) {
    const tarn_trace_block *block = &trace->blocks[i];
    if (block->died != TARN_TRACE_NEVER) continue;
    for (size_t j = 0; j < block->size >> 12; j++) {
      require(mapped[(block->address >> 12) - 1 + j]);
      mapped[(block->address >> 12) - 1 + j] = false;
      count++;
    }
  }
  ck_assert_uint_gt(count, 0);
  for (size_t i = 0; i < PAGES; i++)
    require(!mapped[i]);
}

FIXTURE(begin, end);

int main(void) {
  faults_install();
  return run_tests();
}
