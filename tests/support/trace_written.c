// Traces into bytes and back.
#include "support/trace_written.h"

#include <stdlib.h>
#include <string.h>

#include "support/faults.h"
#include "support/run.h"

tarn_status written_sink(void *context, const void *bytes, size_t size) {
  written *w = context;
  w->calls++;
  if (w->calls == w->fails_at) return TARN_E_TIMEOUT;
  char *grown = realloc(w->bytes, w->size + size + 1);
  require(grown != NULL);
  memcpy(grown + w->size, bytes, size);
  w->bytes = grown;
  w->size += size;
  w->bytes[w->size] = '\0';
  return TARN_OK;
}

written written_make(const tarn_trace *trace, tarn_trace_format format) {
  written w = {0};
  assert_ok(tarn_trace_write_to(trace, format, written_sink, &w));
  return w;
}

void written_free(written *w) {
  free(w->bytes);
  *w = (written){0};
}

tarn_trace *written_again(const tarn_trace *trace, tarn_trace_format format) {
  tarn_trace *again = NULL;
  written w = written_make(trace, format);
  assert_ok(tarn_trace_read_bytes(w.bytes, w.size, "again", NULL, &again));
  written_free(&w);
  return again;
}

tarn_status read_exactly(const char *name, const void *bytes, size_t size,
                         const tarn_trace_options *options,
                         tarn_trace **out_trace) {
  char *own = malloc(size);
  require(own != NULL || size == 0);
  if (size != 0) memcpy(own, bytes, size);
  faults_peak_reset();
  size_t before = faults_peak();
  tarn_status status =
      tarn_trace_read_bytes(own, size, name, options, out_trace);
  require(faults_peak() - before <= 64 * size + (1 << 20));
  require((status == TARN_OK) == (*out_trace != NULL));
  free(own);
  return status;
}

// --- side by side ----------------------------------------------------------

static bool same_frame(const tarn_trace_frame *a, const tarn_trace_frame *b) {
  return strcmp(a->file, b->file) == 0 &&
         strcmp(a->function, b->function) == 0 && a->line == b->line;
}

static bool same_stack(const tarn_trace *a, uint32_t in_a, const tarn_trace *b,
                       uint32_t in_b) {
  if (in_a == TARN_TRACE_NO_STACK || in_b == TARN_TRACE_NO_STACK) {
    return in_a == in_b;
  }
  tarn_trace_stack of_a = a->stacks[in_a];
  tarn_trace_stack of_b = b->stacks[in_b];
  if (of_a.count != of_b.count) return false;
  for (uint32_t i = 0; i < of_a.count; i++) {
    if (!same_frame(&a->frames[a->frame_indices[of_a.first + i]],
                    &b->frames[b->frame_indices[of_b.first + i]])) {
      return false;
    }
  }
  return true;
}

static void assert_same_event(const tarn_trace *a, const tarn_trace *b,
                              size_t i, bool places) {
  const tarn_trace_event *of_a = &a->events[i];
  const tarn_trace_event *of_b = &b->events[i];
  require(of_a->kind == of_b->kind);
  require(of_a->block == of_b->block);
  require(of_a->size == of_b->size);
  require(of_a->time_us == of_b->time_us);
  require(of_a->stream == of_b->stream);
  require(!places || of_a->address == of_b->address);
  require(strcmp(a->tags[of_a->tag], b->tags[of_b->tag]) == 0);
  require(same_stack(a, of_a->stack, b, of_b->stack));
}

static void assert_same_block(const tarn_trace *a, const tarn_trace *b,
                              size_t i, bool places) {
  const tarn_trace_block *of_a = &a->blocks[i];
  const tarn_trace_block *of_b = &b->blocks[i];
  require(of_a->size == of_b->size);
  require(of_a->stream == of_b->stream);
  require(of_a->born == of_b->born);
  require(of_a->died == of_b->died);
  require(!places || of_a->address == of_b->address);
  require(strcmp(a->tags[of_a->tag], b->tags[of_b->tag]) == 0);
  require(same_stack(a, of_a->stack, b, of_b->stack));
}

void assert_same_trace(const tarn_trace *a, const tarn_trace *b, bool places) {
  ck_assert_uint_eq(a->event_count, b->event_count);
  ck_assert_uint_eq(a->block_count, b->block_count);
  ck_assert_uint_eq(a->baseline_count, b->baseline_count);
  ck_assert_uint_eq(a->request_count, b->request_count);
  ck_assert_uint_eq(a->baseline_bytes, b->baseline_bytes);
  ck_assert_uint_eq(a->live_peak_bytes, b->live_peak_bytes);
  ck_assert_uint_eq(a->live_peak_event, b->live_peak_event);
  for (size_t i = 0; i < a->event_count; i++)
    assert_same_event(a, b, i, places);
  for (size_t i = 0; i < a->block_count; i++)
    assert_same_block(a, b, i, places);
}

// --- a trace in few words --------------------------------------------------

uint32_t built_stack(tarn_trace_builder *builder, const char *file,
                     const char *function, uint32_t line) {
  uint32_t stack = 0;
  tarn_trace_frame frames[2] = {
      {.file = file, .function = function, .line = line},
      {.file = "main.py", .function = "<module>", .line = 1}};
  assert_ok(tarn_trace_builder_stack(builder, frames, 2, &stack));
  return stack;
}

uint32_t built_tag(tarn_trace_builder *builder, const char *name) {
  uint32_t tag = 0;
  assert_ok(tarn_trace_builder_tag(builder, name, &tag));
  return tag;
}

void built_event(tarn_trace_builder *builder, tarn_trace_kind kind,
                 uint64_t address, uint64_t size, uint32_t stack,
                 uint32_t tag) {
  static uint64_t time_us = 1000;
  tarn_trace_event event = {.kind = kind,
                            .address = address,
                            .size = size,
                            .time_us = time_us++,
                            .stream = address == 0x9000 ? 7 : 0,
                            .stack = stack,
                            .tag = tag};
  assert_ok(tarn_trace_builder_event(builder, &event));
}

static void hold(tarn_trace_builder *builder, uint64_t address, uint64_t size,
                 uint32_t stack, uint32_t tag) {
  tarn_trace_block block = {
      .address = address, .size = size, .stack = stack, .tag = tag};
  assert_ok(tarn_trace_builder_held(builder, &block));
}

tarn_trace *built_of_all(void) {
  const uint32_t none = TARN_TRACE_NO_STACK;
  tarn_trace_builder *builder = NULL;
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_builder_create("all \"kinds\"", &builder));
  uint32_t net = built_stack(builder, "net.py", "forward", 10);
  uint32_t odd = built_stack(builder, "a\"b\\c\n", "\xc3\xa9<script>", 0);
  uint32_t weights = built_tag(builder, "weights");
  built_event(builder, TARN_TRACE_SEGMENT_ALLOC, 0x1000, 0x4000, none, 0);
  built_event(builder, TARN_TRACE_ALLOC, 0x1000, 0x1000, net, weights);
  built_event(builder, TARN_TRACE_ALLOC, 0x9000, 0x1001, odd, 0);
  built_event(builder, TARN_TRACE_ALLOC, 0x2000, 77, none, weights);
  built_event(builder, TARN_TRACE_FREE_REQUESTED, 0x1000, 0x1000, none, 0);
  built_event(builder, TARN_TRACE_FREE, 0x1000, 0x1000, none, 0);
  built_event(builder, TARN_TRACE_OOM, 4096, UINT64_C(1) << 40, net, 0);
  built_event(builder, TARN_TRACE_FREE, UINT64_MAX - 0xfff, 0x800, none, 0);
  built_event(builder, TARN_TRACE_ALLOC, 0x1000, 0x800, net, 0);
  built_event(builder, TARN_TRACE_FREE_REQUESTED, 0x1000, 0x800, none, 0);
  built_event(builder, TARN_TRACE_SEGMENT_MAP, 0x5000, 0x200, none, 0);
  built_event(builder, TARN_TRACE_SEGMENT_UNMAP, 0x5000, 0x200, none, 0);
  built_event(builder, TARN_TRACE_SEGMENT_FREE, 0x7000, 0x200, none, 0);
  built_event(builder, TARN_TRACE_SNAPSHOT, 0, 0, none, 0);
  hold(builder, 0x3000, 0x300, odd, weights);
  assert_ok(tarn_trace_builder_segment(
      builder, &(tarn_trace_segment){.address = 0x1000, .size = 0x4000}));
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  return trace;
}
