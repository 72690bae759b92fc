// Traces written in Tarn's own format and read again: nothing of them is lost.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/faults.h"
#include "support/mix.h"
#include "support/run.h"
#include "support/trace_written.h"
#include "trace/log.h"

#ifndef TARN_SHARED_DATA
#define TARN_SHARED_DATA "../shared/data"
#endif

static written write_trace(const tarn_trace *trace) {
  return written_make(trace, TARN_TRACE_FORMAT_TARN);
}

// --- equal -----------------------------------------------------------------

static void assert_events_equal(const tarn_trace *a, const tarn_trace *b) {
  ck_assert_uint_eq(a->event_count, b->event_count);
  for (size_t i = 0; i < a->event_count; i++) {
    const tarn_trace_event *one = &a->events[i];
    const tarn_trace_event *other = &b->events[i];
    require(one->kind == other->kind);
    require(one->block == other->block);
    require(one->address == other->address);
    require(one->size == other->size);
    require(one->time_us == other->time_us);
    require(one->stream == other->stream);
    require(one->stack == other->stack);
    require(one->tag == other->tag);
    require(one->thread == other->thread);
    require(one->reserved == other->reserved);
  }
}

static void assert_blocks_equal(const tarn_trace *a, const tarn_trace *b) {
  ck_assert_uint_eq(a->block_count, b->block_count);
  ck_assert_uint_eq(a->baseline_count, b->baseline_count);
  for (size_t i = 0; i < a->block_count; i++) {
    const tarn_trace_block *one = &a->blocks[i];
    const tarn_trace_block *other = &b->blocks[i];
    require(one->size == other->size);
    require(one->address == other->address);
    require(one->stream == other->stream);
    require(one->born == other->born);
    require(one->died == other->died);
    require(one->stack == other->stack);
    require(one->tag == other->tag);
  }
}

static void assert_names_equal(const tarn_trace *a, const tarn_trace *b) {
  ck_assert_uint_eq(a->frame_count, b->frame_count);
  ck_assert_uint_eq(a->frame_index_count, b->frame_index_count);
  ck_assert_uint_eq(a->stack_count, b->stack_count);
  ck_assert_uint_eq(a->tag_count, b->tag_count);
  for (size_t i = 0; i < a->frame_count; i++) {
    require(strcmp(a->frames[i].file, b->frames[i].file) == 0);
    require(strcmp(a->frames[i].function, b->frames[i].function) == 0);
    require(a->frames[i].line == b->frames[i].line);
  }
  for (size_t i = 0; i < a->frame_index_count; i++)
    require(a->frame_indices[i] == b->frame_indices[i]);
  for (size_t i = 0; i < a->stack_count; i++) {
    require(a->stacks[i].first == b->stacks[i].first);
    require(a->stacks[i].count == b->stacks[i].count);
  }
  for (size_t i = 0; i < a->tag_count; i++)
    require(strcmp(a->tags[i], b->tags[i]) == 0);
}

static void assert_sums_equal(const tarn_trace *a, const tarn_trace *b) {
  ck_assert_uint_eq(a->segment_count, b->segment_count);
  for (size_t i = 0; i < a->segment_count; i++) {
    require(a->segments[i].address == b->segments[i].address);
    require(a->segments[i].size == b->segments[i].size);
    require(a->segments[i].stream == b->segments[i].stream);
  }
  ck_assert_uint_eq(a->request_count, b->request_count);
  ck_assert_uint_eq(a->baseline_bytes, b->baseline_bytes);
  ck_assert_uint_eq(a->live_peak_bytes, b->live_peak_bytes);
  ck_assert_uint_eq(a->live_peak_event, b->live_peak_event);
  ck_assert_uint_eq(a->device, b->device);
  ck_assert_uint_eq(a->ignored_bytes, b->ignored_bytes);
  ck_assert_uint_eq(a->ignored_count, b->ignored_count);
  ck_assert_uint_eq(a->unknown_count, b->unknown_count);
  ck_assert_uint_eq(a->lost_count, b->lost_count);
  ck_assert_int_eq(a->unfinished, b->unfinished);
}

// Writes, reads and compares; |device_count| is 1 in a copy, which has only
// the device that was read.
static void assert_survives(tarn_trace *trace) {
  tarn_trace *copy = NULL;
  written all = write_trace(trace);
  ck_assert_uint_eq(all.size % TARN__LOG_PAGE, 0);
  assert_ok(read_exactly("copy", all.bytes, all.size, NULL, &copy));
  printf("%s: %zu events, %zu bytes, %.1f bytes an event\n", trace->name,
         trace->event_count, all.size,
         (double)all.size / (double)trace->event_count);
  ck_assert_str_eq(copy->name, "copy");
  ck_assert_str_eq(copy->format, "tarn");
  ck_assert_uint_eq(copy->device_count, 1);
  assert_names_equal(trace, copy);
  assert_events_equal(trace, copy);
  assert_blocks_equal(trace, copy);
  assert_sums_equal(trace, copy);
  tarn_trace_destroy(copy);
  tarn_trace_destroy(trace);
  written_free(&all);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// --- what is written -------------------------------------------------------

TEST_LOOP(workloads_survive, 8) {
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_make(tarn_trace_workload((size_t)_i), &trace));
  assert_survives(trace);
}

TEST_LOOP(real_snapshots_survive, 2) {
  static const char *const names[] = {"torch-gpt-medium-128-training.pickle",
                                      "torch-gpt-medium-512-inference.pickle"};
  char path[512];
  tarn_trace *trace = NULL;
  const char *data = getenv("TARN_TEST_DATA");
  snprintf(path, sizeof path, "%s/traces/%s",
           data != NULL ? data : TARN_SHARED_DATA, names[_i]);
  if (access(path, R_OK) != 0) {
    note_skipped(names[_i], "not in TARN_TEST_DATA nor beside the project");
    return;
  }
  assert_ok(tarn_trace_read(path, NULL, &trace));
  assert_survives(trace);
}

enum { SLOTS = 64, NAMES = 40 };

typedef struct maker {
  tarn_trace_builder *builder;
  uint64_t random;
  uint32_t stacks[NAMES];
  uint32_t tags[NAMES];
  uint64_t sizes[SLOTS];  // of what lives in each slot; 0: nothing
} maker;

static uint64_t draw(maker *m, uint64_t end) {
  m->random = mix(m->random, 0);
  return m->random % end;
}

// Unused names among them, in an order of their own.
static void make_names(maker *m) {
  char text[3000];
  for (uint32_t i = 0; i < NAMES; i++) {
    tarn_trace_frame frames[5];
    memset(text, 'a' + (int)(i % 26), sizeof text);
    text[i == 7 ? 2048 : i] = '\0';
    for (uint32_t j = 0; j < 5; j++)
      frames[j] = (tarn_trace_frame){text, j == 0 ? "f" : "g", i * j};
    assert_ok(
        tarn_trace_builder_stack(m->builder, frames, i % 5 + 1, &m->stacks[i]));
    snprintf(text, sizeof text, "tag %u\x1b\xff", NAMES - i);
    assert_ok(tarn_trace_builder_tag(m->builder, text, &m->tags[i]));
  }
}

static tarn_trace_event make_event(maker *m, size_t slot) {
  return (tarn_trace_event){
      .address = (slot + 1) << 32 | slot,
      .time_us = draw(m, 2) == 0 ? draw(m, UINT64_MAX) : 1000,
      .stream = draw(m, 3) == 0 ? draw(m, UINT64_MAX) : 0,
      .stack =
          draw(m, 4) == 0 ? TARN_TRACE_NO_STACK : m->stacks[draw(m, NAMES / 2)],
      .tag = draw(m, 4) == 0 ? TARN_TRACE_NO_TAG : m->tags[draw(m, NAMES / 2)],
      .thread = (uint32_t)draw(m, 3) * 0x7fffffff};
}

static void make_request(maker *m) {
  size_t slot = (size_t)draw(m, SLOTS);
  tarn_trace_event event = make_event(m, slot);
  event.kind = TARN_TRACE_ALLOC;
  event.size = draw(m, 1 << 20) + 1;
  if (m->sizes[slot] != 0) {
    event.kind = draw(m, 3) == 0 ? TARN_TRACE_FREE_REQUESTED : TARN_TRACE_FREE;
    event.size = m->sizes[slot];
  }
  if (event.kind == TARN_TRACE_ALLOC) m->sizes[slot] = event.size;
  if (event.kind == TARN_TRACE_FREE) m->sizes[slot] = 0;
  assert_ok(tarn_trace_builder_event(m->builder, &event));
}

static void make_other(maker *m) {
  tarn_trace_event event = make_event(m, SLOTS + 1);
  event.kind = (tarn_trace_kind)(TARN_TRACE_SEGMENT_ALLOC + draw(m, 6));
  event.size = draw(m, UINT64_MAX);
  assert_ok(tarn_trace_builder_event(m->builder, &event));
}

static void make_old(maker *m, size_t slot) {
  m->sizes[slot] = slot + 1;
  tarn_trace_block block = {.address = (slot + 1) << 32 | slot,
                            .size = slot + 1,
                            .stream = slot,
                            .stack = m->stacks[slot],
                            .tag = m->tags[slot]};
  assert_ok(tarn_trace_builder_old(m->builder, &block));
}

static tarn_trace *make_random(uint64_t seed, size_t events) {
  maker m = {.random = seed};
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_builder_create("random", &m.builder));
  make_names(&m);
  for (size_t slot = 0; slot < 10; slot++)
    make_old(&m, slot);
  for (size_t i = 0; i < events; i++) {
    if (draw(&m, 10) == 0) make_other(&m);
    make_request(&m);
  }
  for (uint64_t i = 1; i < 4; i++) {
    assert_ok(tarn_trace_builder_segment(
        m.builder,
        &(tarn_trace_segment){.address = i << 60, .size = i, .stream = i}));
  }
  tarn_trace_builder_lost(m.builder, seed);
  assert_ok(tarn_trace_builder_finish(m.builder, &trace));
  return trace;
}

TEST_LOOP(made_traces_survive, 3) {
  assert_survives(make_random(0x9e3779b97f4a7c15u + (uint64_t)_i, 20000));
}

// Frees that were passed over, blocks that were ignored, a free first.
TEST(what_was_counted_survives) {
  tarn_trace_builder *builder = NULL;
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_builder_create("counted", &builder));
  const tarn_trace_event events[] = {
      {.kind = TARN_TRACE_FREE, .address = 1, .stack = TARN_TRACE_NO_STACK},
      {.kind = TARN_TRACE_FREE,
       .address = 2,
       .size = 5,
       .stack = TARN_TRACE_NO_STACK},
      {.kind = TARN_TRACE_ALLOC,
       .address = 0,
       .size = 7,
       .stack = TARN_TRACE_NO_STACK},
  };
  for (size_t i = 0; i < 3; i++)
    assert_ok(tarn_trace_builder_event(builder, &events[i]));
  assert_ok(tarn_trace_builder_held(
      builder, &(tarn_trace_block){
                   .address = 2, .size = 9, .stack = TARN_TRACE_NO_STACK}));
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  ck_assert_uint_eq(trace->unknown_count, 1);
  ck_assert_uint_eq(trace->ignored_bytes, 9);
  ck_assert_uint_eq(trace->baseline_count, 1);
  assert_survives(trace);
}

TEST(an_empty_trace_survives) {
  tarn_trace_builder *builder = NULL;
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_builder_create("", &builder));
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  written all = write_trace(trace);
  ck_assert_uint_eq(all.size, TARN__LOG_PAGE);
  written_free(&all);
  tarn_trace *copy = written_again(trace, TARN_TRACE_FORMAT_TARN);
  ck_assert_uint_eq(copy->event_count, 0);
  ck_assert_uint_eq(copy->tag_count, 1);
  ck_assert_uint_eq(copy->live_peak_event, TARN_TRACE_BASELINE);
  tarn_trace_destroy(copy);
  tarn_trace_destroy(trace);
}

// Beyond what the format holds: texts and stacks are cut, at their ends.
TEST(what_is_too_long_is_cut) {
  enum { FRAMES = 1000, TEXT = 5000 };
  char text[TEXT + 1];
  tarn_trace_frame frames[FRAMES];
  tarn_trace_builder *builder = NULL;
  tarn_trace *trace = NULL;
  tarn_trace *copy = NULL;
  uint32_t stack = 0;
  memset(text, 'x', TEXT);
  text[TEXT] = '\0';
  for (uint32_t i = 0; i < FRAMES; i++)
    frames[i] = (tarn_trace_frame){text, "f", i};
  assert_ok(tarn_trace_builder_create(text, &builder));
  assert_ok(tarn_trace_builder_stack(builder, frames, FRAMES, &stack));
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  copy = written_again(trace, TARN_TRACE_FORMAT_TARN);
  ck_assert_uint_eq(copy->frame_count, FRAMES);
  ck_assert_uint_eq(strlen(copy->frames[0].file), TARN__LOG_MOST_TEXT);
  ck_assert_uint_eq(copy->stacks[0].count, TARN__LOG_MOST_FRAMES);
  ck_assert_uint_eq(copy->frames[copy->frame_indices[255]].line, 255);
  tarn_trace_destroy(copy);
  tarn_trace_destroy(trace);
}

// --- failures --------------------------------------------------------------

static tarn_status refuse_third(void *context, const void *from, size_t size) {
  size_t *calls = context;
  (void)from;
  ck_assert_uint_le(size, 1 << 16);
  return ++*calls == 3 ? TARN_E_STATE : TARN_OK;
}

TEST(a_sink_that_refuses_ends_the_writing) {
  size_t calls = 0;
  tarn_trace *trace = make_random(1, 50000);
  assert_status(
      tarn_trace_write_to(trace, TARN_TRACE_FORMAT_TARN, refuse_third, &calls),
      TARN_E_STATE);
  ck_assert_uint_eq(calls, 3);
  tarn_trace_destroy(trace);
}

static void copy_scenario(void *context) {
  tarn_trace *copy = NULL;
  written all = {0};
  tarn_status status =
      tarn_trace_write_to(context, TARN_TRACE_FORMAT_TARN, written_sink, &all);
  ck_assert(status == TARN_OK || status == TARN_E_NOMEM);
  if (status == TARN_OK) {
    status = tarn_trace_read_bytes(all.bytes, all.size, "swept", NULL, &copy);
    ck_assert(status == TARN_OK || status == TARN_E_NOMEM);
    ck_assert((status == TARN_OK) == (copy != NULL));
  }
  tarn_trace_destroy(copy);
  written_free(&all);
}

TEST(every_failing_allocation_is_survived) {
  tarn_trace *trace = make_random(5, 300);
  size_t faults = faults_sweep(copy_scenario, trace);
  printf("log: %zu faults while writing and reading, 0 leaks\n", faults);
  ck_assert_uint_gt(faults, 40);
  tarn_trace_destroy(trace);
}

int main(void) {
  faults_install();
  return run_tests();
}
