// Hand-made files of Tarn's own format: the meaning of each record.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log_kit.h"

// --- events ----------------------------------------------------------------

TEST(events_have_all_their_fields) {
  tarn__trace_log_event event = {.kind = TARN__LOG_ALLOC,
                                 .number = 7,
                                 .time_us = UINT64_MAX,
                                 .address = 4096,
                                 .size = 100,
                                 .stack = 5,
                                 .tag = 9,
                                 .stream = UINT64_MAX,
                                 .device = 255};
  log_page(&file, 77);
  log_text(&file, 9, "weights");
  log_text(&file, 8, "main.c");
  LOG_DEFINE(&file, TARN__LOG_FRAME, 3, 8, 9, 12);
  LOG_DEFINE(&file, TARN__LOG_STACK, 5, 2, 3, 3);
  log_put(&file, event);
  event = (tarn__trace_log_event){.kind = TARN__LOG_FREE,
                                  .number = 8,
                                  .time_us = 3,
                                  .address = 4096,
                                  .device = 255};
  log_put(&file, event);
  log_header(&file)->lost = 6;
  read_made();
  ck_assert_str_eq(trace->format, "tarn");
  ck_assert_uint_eq(trace->device, 255);
  ck_assert_uint_eq(trace->device_count, 1);
  ck_assert_uint_eq(trace->lost_count, 6);
  ck_assert_int_eq(trace->unfinished, false);
  const tarn_trace_event *got = assert_event(0, TARN_TRACE_ALLOC, 4096, 100);
  ck_assert_uint_eq(got->time_us, UINT64_MAX);
  ck_assert_uint_eq(got->stream, UINT64_MAX);
  ck_assert_uint_eq(got->thread, 77);
  ck_assert_str_eq(trace->tags[got->tag], "weights");
  ck_assert_uint_eq(trace->stacks[got->stack].count, 2);
  assert_frame(0, "main.c", "weights", 12);
  got = assert_event(1, TARN_TRACE_FREE, 4096, 100);
  ck_assert_uint_eq(got->time_us, 3);
  ck_assert_uint_eq(got->block, 0);
  ck_assert_uint_eq(got->stack, TARN_TRACE_NO_STACK);
}

// Pages of two threads, each ahead of the other by turns, in the wrong order.
TEST(events_of_all_pages_come_in_the_order_of_their_numbers) {
  enum { PAGES = 40, EVENTS = 200, ALL = PAGES * EVENTS };
  for (uint64_t page = PAGES; page-- > 0;) {
    log_page(&file, (uint32_t)page + 1);
    for (uint64_t i = 0; i < EVENTS; i++) {
      uint64_t number = i * PAGES + (page * 7 + i) % PAGES;
      log_event(&file, TARN__LOG_ALLOC, number, number + 1, number + 1);
    }
  }
  read_made();
  ck_assert_uint_eq(trace->event_count, ALL);
  for (size_t i = 0; i < ALL; i++)
    require(trace->events[i].size == i + 1);
}

TEST(a_thread_may_change_within_a_page) {
  log_page(&file, 1);
  log_event(&file, TARN__LOG_ALLOC, 1, 1, 1);
  LOG_DEFINE(&file, TARN__LOG_THREAD, UINT32_MAX);
  log_event(&file, TARN__LOG_ALLOC, 2, 2, 1);
  LOG_DEFINE(&file, TARN__LOG_THREAD, 0);
  log_event(&file, TARN__LOG_ALLOC, 3, 3, 1);
  log_page(&file, 4);
  log_event(&file, TARN__LOG_ALLOC, 4, 4, 1);
  read_made();
  ck_assert_uint_eq(trace->events[0].thread, 1);
  ck_assert_uint_eq(trace->events[1].thread, UINT32_MAX);
  ck_assert_uint_eq(trace->events[2].thread, 0);
  ck_assert_uint_eq(trace->events[3].thread, 4);
}

TEST(other_kinds_are_kept) {
  log_page(&file, 1);
  for (uint64_t kind = 3; kind <= 9; kind++) {
    if (kind == 3) log_event(&file, TARN__LOG_OLD, 0, 4096, 11);
    log_event(&file, (tarn__trace_log_kind)kind, kind, 4096, kind);
  }
  log_event(&file, TARN__LOG_SEGMENT, 9, 1 << 20, 2 << 20);
  read_made();
  ck_assert_uint_eq(trace->event_count, 7);
  assert_event(0, TARN_TRACE_FREE_REQUESTED, 4096, 11);
  for (size_t i = 1; i < 7; i++)
    assert_event(i, (tarn_trace_kind)(i + 3), 4096, i + 3);
  ck_assert_uint_eq(trace->baseline_count, 1);
  ck_assert_uint_eq(trace->baseline_bytes, 11);
  ck_assert_uint_eq(trace->segment_count, 1);
  ck_assert_uint_eq(trace->segments[0].size, 2 << 20);
}

TEST(frees_of_what_nobody_knows_are_counted) {
  log_page(&file, 1);
  log_event(&file, TARN__LOG_FREE, 1, 4096, 0);
  log_event(&file, TARN__LOG_UNMAP, 2, 8192, 4096);
  log_event(&file, TARN__LOG_ALLOC, 3, 4096, 5);
  log_event(&file, TARN__LOG_FREE, 4, 4096, 0);
  log_event(&file, TARN__LOG_FREE, 5, 4096, 0);
  log_event(&file, (tarn__trace_log_kind)TARN_TRACE_FREE_REQUESTED, 6, 4096, 0);
  read_made();
  ck_assert_uint_eq(trace->unknown_count, 4);
  ck_assert_uint_eq(trace->event_count, 2);
}

// A birth where a block lives is a contradiction, unless events are missing.
TEST_LOOP(where_events_are_missing_a_birth_ends_what_lived_there, 3) {
  log_page(&file, 1);
  log_event(&file, _i == 2 ? TARN__LOG_MAP : TARN__LOG_ALLOC, 1, 4096, 5);
  log_event(&file, TARN__LOG_ALLOC, _i == 0 ? 2 : 3, 4096, 6);
  log_event(&file, TARN__LOG_FREE, _i == 0 ? 3 : 4, 4096, 0);
  if (_i == 0) log_header(&file)->lost = 1;
  read_made();
  ck_assert_uint_eq(trace->event_count, 4);
  assert_event(0, TARN_TRACE_ALLOC, 4096, 5);
  assert_event(1, TARN_TRACE_FREE, 4096, 5);
  assert_event(2, TARN_TRACE_ALLOC, 4096, 6);
  assert_event(3, TARN_TRACE_FREE, 4096, 6);
  ck_assert_uint_eq(trace->unknown_count, 0);
}

// --- names -----------------------------------------------------------------

TEST(definitions_may_come_last) {
  tarn__trace_log_event event = {.kind = TARN__LOG_ALLOC,
                                 .number = 1,
                                 .address = 1,
                                 .size = 1,
                                 .stack = 1,
                                 .tag = 1};
  log_page(&file, 1);
  log_put(&file, event);
  log_page(&file, 1);
  LOG_DEFINE(&file, TARN__LOG_STACK, 1, 1, 1);
  LOG_DEFINE(&file, TARN__LOG_FRAME, 1, 1, 1, 3);
  log_text(&file, 1, "late");
  log_text(&file, 1, "too late");
  LOG_DEFINE(&file, TARN__LOG_FRAME, 1, 1, 1, 4);
  LOG_DEFINE(&file, TARN__LOG_STACK, 1, 0);
  read_made();
  assert_frame(0, "late", "late", 3);
  ck_assert_str_eq(trace->tags[trace->events[0].tag], "late");
}

// In any order, with holes between them.
TEST(numbers_of_definitions_may_be_any) {
  enum { NAMES = 200 };
  char text[24];
  log_page(&file, 1);
  for (uint64_t i = 0; i < NAMES; i++) {
    uint64_t number = (i * 77 % NAMES + 1) * UINT64_C(0x0101010101010101);
    snprintf(text, sizeof text, "%llx", (unsigned long long)number);
    log_text(&file, number, text);
    log_put(&file, (tarn__trace_log_event){.kind = TARN__LOG_ALLOC,
                                           .number = i,
                                           .address = i + 1,
                                           .size = 1,
                                           .tag = number});
  }
  read_made();
  ck_assert_uint_eq(trace->tag_count, NAMES + 1);
  for (uint64_t i = 0; i < NAMES; i++) {
    uint64_t number = (i * 77 % NAMES + 1) * UINT64_C(0x0101010101010101);
    snprintf(text, sizeof text, "%llx", (unsigned long long)number);
    ck_assert_str_eq(trace->tags[trace->events[i].tag], text);
  }
}

TEST(what_nothing_defines_is_none) {
  tarn__trace_log_event event = {.kind = TARN__LOG_ALLOC,
                                 .number = 1,
                                 .address = 1,
                                 .size = 1,
                                 .stack = 9,
                                 .tag = UINT64_MAX};
  log_page(&file, 1);
  log_put(&file, event);
  LOG_DEFINE(&file, TARN__LOG_FRAME, 1, 0, 7, 3);
  LOG_DEFINE(&file, TARN__LOG_STACK, 1, 2, 4, 1);
  LOG_DEFINE(&file, TARN__LOG_STACK, 2, 0);
  LOG_DEFINE(&file, TARN__LOG_TAG, 3);
  log_text(&file, 2, "");
  event = (tarn__trace_log_event){.kind = TARN__LOG_ALLOC,
                                  .number = 2,
                                  .address = 2,
                                  .size = 1,
                                  .stack = 1,
                                  .tag = 2};
  log_put(&file, event);
  event.number = event.address = 3;
  event.stack = 2;
  log_put(&file, event);
  read_made();
  ck_assert_uint_eq(trace->events[0].stack, TARN_TRACE_NO_STACK);
  ck_assert_uint_eq(trace->events[0].tag, TARN_TRACE_NO_TAG);
  assert_frame(1, "", "", 0);
  ck_assert_uint_eq(trace->stacks[trace->events[1].stack].count, 2);
  ck_assert_uint_eq(trace->events[1].tag, TARN_TRACE_NO_TAG);
  ck_assert_uint_eq(trace->events[2].stack, TARN_TRACE_NO_STACK);
  ck_assert_uint_eq(trace->tag_count, 1);
}

// --- devices ---------------------------------------------------------------

static void read_device(uint32_t device) {
  tarn_trace_options options = {.choose_device = true, .device = device};
  tarn_trace_destroy(trace);
  assert_ok(
      tarn_trace_read_bytes(file.bytes, file.size, "made", &options, &trace));
}

TEST(the_device_with_most_events_is_read) {
  tarn_trace_options options = {.choose_device = true, .device = 3};
  log_page(&file, 1);
  LOG_DEFINE(&file, TARN__LOG_DEVICE, 2, 5);
  for (uint64_t i = 0; i < 9; i++) {
    log_put(&file, (tarn__trace_log_event){.kind = TARN__LOG_ALLOC,
                                           .number = i,
                                           .address = 64,
                                           .size = i + 1,
                                           .device = i});
    if (i != 2) continue;
    log_put(
        &file,
        (tarn__trace_log_event){
            .kind = TARN__LOG_FREE, .number = 100, .address = 64, .device = 2});
    log_page(&file, 1);
  }
  log_put(&file, (tarn__trace_log_event){.kind = TARN__LOG_SEGMENT,
                                         .number = 9,
                                         .address = 64,
                                         .size = 5,
                                         .device = 10});
  read_made();
  ck_assert_uint_eq(trace->device, 2);
  ck_assert_uint_eq(trace->device_count, 10);
  ck_assert_uint_eq(trace->event_count, 2);
  assert_event(0, TARN_TRACE_ALLOC, 64, 3);
  ck_assert_uint_eq(trace->segment_count, 0);
  read_device(3);
  ck_assert_uint_eq(trace->event_count, 1);
  read_device(10);
  ck_assert_uint_eq(trace->segment_count, 1);
  for (options.device = 9; options.device < 2000; options.device += 1990) {
    tarn_trace *none = NULL;
    assert_status(
        tarn_trace_read_bytes(file.bytes, file.size, "made", &options, &none),
        TARN_E_INVALID);
    assert_error_says("made: device");
    assert_error_says("has no history");
  }
}

TEST(a_baseline_alone_says_which_device) {
  log_page(&file, 1);
  log_put(&file,
          (tarn__trace_log_event){
              .kind = TARN__LOG_OLD, .address = 64, .size = 5, .device = 4});
  read_made();
  ck_assert_uint_eq(trace->device, 4);
  ck_assert_uint_eq(trace->baseline_count, 1);
}

FIXTURE(begin, end);

int main(void) {
  faults_install();
  return run_tests();
}
