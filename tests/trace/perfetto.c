// Chrome trace events: valid JSON, and the content of each.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/faults.h"
#include "support/json_check.h"
#include "support/run.h"
#include "support/trace_written.h"

static written w;
static tarn_trace *trace;

static void write_it(void) {
  w = written_make(trace, TARN_TRACE_FORMAT_PERFETTO);
  ck_assert(json_valid(w.bytes));
}

static void end(void) {
  written_free(&w);
  tarn_trace_destroy(trace);
  trace = NULL;
}

// By hand: with ASan functions of strings look at all that follows, each time.
static size_t count(const char *part) {
  size_t found = 0;
  size_t length = strlen(part);
  const char *end = w.bytes + strlen(w.bytes);
  for (const char *at = w.bytes; (size_t)(end - at) >= length; at++)
    found += memcmp(at, part, length) == 0;
  return found;
}

static void assert_has(const char *part) {
  ck_assert_msg(strstr(w.bytes, part) != NULL, "no %s in %s", part, w.bytes);
}

TEST_LOOP(every_block_begins_and_ends, 8) {
  assert_ok(tarn_trace_make(tarn_trace_workload((size_t)_i), &trace));
  write_it();
  ck_assert_uint_eq(count("{\"ph\":\"b\""), trace->block_count);
  ck_assert_uint_eq(count("{\"ph\":\"e\""), trace->block_count);
  ck_assert_uint_eq(count("\"live bytes\""), trace->event_count + 1);
  ck_assert_uint_eq(count("\"reserved bytes\""), 0);
  char peak[64];
  snprintf(peak, sizeof peak, "{\"bytes\":%llu}}",
           (unsigned long long)trace->live_peak_bytes);
  assert_has(peak);
  // Without a clock an event's number is its time.
  assert_has("{\"ph\":\"b\",\"pid\":1,\"tid\":2,\"ts\":0,");
  assert_has("\"thread_name\",\"args\":{\"name\":\"stream 0\"}");
  end();
}

TEST(all_kinds_are_shown) {
  trace = built_of_all();
  write_it();
  ck_assert_uint_eq(count("{\"ph\":\"b\""), trace->block_count);
  ck_assert_uint_eq(count("{\"ph\":\"e\""), trace->block_count);
  ck_assert_uint_eq(count("\"s\":\"g\""), 1);
  ck_assert_uint_eq(count("\"tid\":0,"), 0);  // some viewers take it for 1
  assert_has(
      "\"s\":\"g\",\"name\":\"out of memory\",\"args\":{\"bytes\":"
      "1099511627776}}");
  assert_has("\"process_name\",\"args\":{\"name\":\"all \\\"kinds\\\"\"}}");
  assert_has("\"name\":\"stream 7\"");
  // By its tag, by its frame, by its size.
  assert_has(
      "\"id\":\"0x2\",\"name\":\"weights\",\"args\":{\"bytes\":4096,"
      "\"address\":\"0x1000\",\"tag\":\"weights\",\"stack\":0}}");
  // A stack is written once, however many blocks have it.
  assert_has(
      "\"s\":\"t\",\"name\":\"stack 0\",\"args\":{\"stack\":[\"forward "
      "net.py:10\",\"<module> main.py:1\"]}}");
  ck_assert_uint_eq(count("\"stack 0\""), 1);
  assert_has(
      "\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"stacks\"");
  assert_has("\"name\":\"forward net.py:10\"");
  assert_has("\"name\":\"up to 2 KiB\"");
  // What is not Python's is left out in front of what is.
  assert_has("\"bytes\":4097,\"address\":\"0x9000\",\"stack\":1");
  assert_has("\"stack 1\",\"args\":{\"stack\":[\"<module> main.py:1\"]");
  // 0x4000 at the end; the events took 0x4000 - 0x200 of it.
  assert_has("\"name\":\"reserved bytes\",\"args\":{\"bytes\":512}}");
  assert_has("\"name\":\"reserved bytes\",\"args\":{\"bytes\":16896}}");
  assert_has("\"name\":\"reserved bytes\",\"args\":{\"bytes\":16384}}");
  end();
}

static void one_block(const char *name, const tarn_trace_frame *frames,
                      size_t depth, uint64_t size) {
  tarn_trace_builder *builder = NULL;
  uint32_t stack = 0;
  assert_ok(tarn_trace_builder_create(name, &builder));
  assert_ok(tarn_trace_builder_stack(builder, frames, depth, &stack));
  assert_ok(tarn_trace_builder_event(
      builder, &(tarn_trace_event){.kind = TARN_TRACE_ALLOC,
                                   .address = 4096,
                                   .size = size,
                                   .stack = stack}));
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  write_it();
}

TEST(strange_texts_are_escaped) {
  one_block("\x01\x1f\"\\/\x7f\xff",
            &(tarn_trace_frame){.file = "</script>\t\xc3",
                                .function = "\n\xe2"
                                            "\x82\xac"},
            1, 1);
  assert_has("\"name\":\"\\u0001\\u001f\\\"\\\\/\x7f\xef\xbf\xbd\"");
  assert_has("\"name\":\"\\u000a\xe2\x82\xac </script>\\u0009\xef\xbf\xbd\"");
  end();
}

TEST(names_of_what_is_known) {
  one_block("file only", &(tarn_trace_frame){.file = "a.c", .line = 9}, 1, 1);
  assert_has("\"name\":\"a.c:9\"");
  end();
  one_block("function only", &(tarn_trace_frame){.function = "f"}, 1, 1);
  assert_has("\"name\":\"f\"");
  end();
  static const struct {
    uint64_t size;
    const char *name;
  } classes[] = {{1, "up to 1 B"},
                 {2, "up to 2 B"},
                 {1023, "up to 1 KiB"},
                 {1025, "up to 2 KiB"},
                 {1 << 20, "up to 1 MiB"},
                 {UINT64_C(1) << 62, "up to 4 EiB"},
                 {(UINT64_C(1) << 63) + 1, "up to 8 EiB"}};
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
    one_block("no stack", NULL, 0, classes[i].size);
    assert_has(classes[i].name);
    end();
  }
}

TEST(deep_stacks_are_cut) {
  enum { DEPTH = 100 };
  tarn_trace_frame frames[DEPTH];
  for (uint32_t i = 0; i < DEPTH; i++)
    frames[i] = (tarn_trace_frame){.file = "a.c", .function = "f", .line = i};
  frames[50].file = "b.py";
  one_block("deep", frames, DEPTH, 1);
  assert_has("\"name\":\"f b.py:50\"");
  assert_has("\"stack\":[\"f b.py:50\",\"f a.c:51\"");
  assert_has("\"f a.c:65\"]");
  end();
}

// A text of more than 64 bytes is written in full once.
TEST(long_texts_are_cut) {
  char function[101], file[201];
  memset(function, 'f', sizeof function);
  function[100] = '\0';
  memset(file, 'd', sizeof file);
  // The byte where it is cut is within a character.
  snprintf(file + 200 - 66, 67, "\xe2\x82\xac%.60s.py",
           "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd");
  one_block("long",
            &(tarn_trace_frame){.file = file, .function = function, .line = 7},
            1, 1);
  ck_assert_uint_eq(count("\"ph\":\"b\""), 1);
  assert_has("\"name\":\"text 1\",\"args\":{\"text\":\"ffff");
  assert_has("\"name\":\"text 2\",\"args\":{\"text\":\"dddd");
  ck_assert_uint_eq(count(function), 1);
  ck_assert_uint_eq(count(file), 1);
  function[64] = '\0';
  char want[512];
  snprintf(want, sizeof want, "\"name\":\"%s... (text 1) (text 2) ...%s:7\"",
           function, file + 200 - 63);
  assert_has(want);
  end();
}

// Threads hand in their events out of order.
TEST(time_never_goes_back) {
  static const uint64_t times[] = {500, 400, 600, 0};
  tarn_trace_builder *builder = NULL;
  assert_ok(tarn_trace_builder_create("clock", &builder));
  for (uint64_t i = 0; i < 4; i++)
    assert_ok(tarn_trace_builder_event(
        builder, &(tarn_trace_event){.kind = TARN_TRACE_ALLOC,
                                     .address = 4096 * (i + 1),
                                     .size = 1,
                                     .time_us = times[i],
                                     .stack = TARN_TRACE_NO_STACK}));
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  write_it();
  ck_assert_uint_eq(count("\"ts\":400,"), 0);
  ck_assert_uint_eq(count("\"ts\":0,"), 0);
  // The first counter, two births and two counters.
  ck_assert_uint_eq(count("\"ts\":500,"), 5);
  // Two births, two counters and all four ends.
  ck_assert_uint_eq(count("\"ts\":600,"), 8);
  end();
}

// Frees of more than there can have been, segments of more than 64 bits.
TEST(sums_stay_within_bounds) {
  tarn_trace_builder *builder = NULL;
  assert_ok(tarn_trace_builder_create("bounds", &builder));
  for (int i = 0; i < 2; i++) {
    built_event(builder, TARN_TRACE_SEGMENT_FREE, 4096, UINT64_MAX - 4096,
                TARN_TRACE_NO_STACK, 0);
  }
  built_event(builder, TARN_TRACE_SEGMENT_ALLOC, 4096, 1, TARN_TRACE_NO_STACK,
              0);
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  write_it();
  assert_has(
      "\"name\":\"reserved bytes\",\"args\":{\"bytes\":"
      "18446744073709551615}}");
  assert_has("\"name\":\"reserved bytes\",\"args\":{\"bytes\":4096}}");
  end();
}

TEST(nothing_is_json_too) {
  tarn_trace_builder *builder = NULL;
  assert_ok(tarn_trace_builder_create("", &builder));
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  write_it();
  ck_assert_uint_eq(count("\"ph\""), 2);  // the process, and no bytes
  end();
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

static void write_once(void *context) {
  written out = {0};
  tarn_status status = tarn_trace_write_to(context, TARN_TRACE_FORMAT_PERFETTO,
                                           written_sink, &out);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  written_free(&out);
}

TEST(no_memory) {
  trace = built_of_all();
  ck_assert_uint_ge(faults_sweep(write_once, trace), 4);
  tarn_trace_destroy(trace);
}

int main(void) {
  faults_install();
  return run_tests();
}
