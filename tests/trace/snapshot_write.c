// PyTorch snapshots that are written: read back they are the same trace, and
// Python reads them too.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/faults.h"
#include "support/run.h"
#include "support/tool_run.h"
#include "support/trace_written.h"

#ifndef TARN_SHARED_DATA
#define TARN_SHARED_DATA "../shared/data"
#endif

static tarn_trace *again(const tarn_trace *trace) {
  tarn_trace *read = written_again(trace, TARN_TRACE_FORMAT_PYTORCH);
  ck_assert_str_eq(read->format, "pytorch-snapshot");
  return read;
}

// --- there and back --------------------------------------------------------

TEST_LOOP(workloads_come_back, 8) {
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_make(tarn_trace_workload((size_t)_i), &trace));
  tarn_trace *read = again(trace);
  assert_same_trace(trace, read, false);
  ck_assert_uint_eq(read->segment_count, 0);  // nothing is alive at the end
  tarn_trace_destroy(read);
  tarn_trace_destroy(trace);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

TEST(all_kinds_come_back) {
  tarn_trace *trace = built_of_all();
  tarn_trace *read = again(trace);
  assert_same_trace(trace, read, true);
  ck_assert_uint_eq(read->segment_count, 2);  // 0x9000 is in none
  ck_assert_uint_eq(read->segments[0].size, 0x4000);
  ck_assert_uint_eq(read->segments[1].address, 0x9000);
  ck_assert_uint_eq(read->segments[1].size, 0x1200);
  ck_assert_uint_eq(read->segments[1].stream, 7);
  ck_assert_uint_eq(read->ignored_count, 0);
  // Written again it is the same to the byte.
  written first = written_make(read, TARN_TRACE_FORMAT_PYTORCH);
  tarn_trace *third = again(read);
  written second = written_make(third, TARN_TRACE_FORMAT_PYTORCH);
  ck_assert_uint_eq(first.size, second.size);
  ck_assert_mem_eq(first.bytes, second.bytes, first.size);
  written_free(&second);
  written_free(&first);
  tarn_trace_destroy(third);
  tarn_trace_destroy(read);
  tarn_trace_destroy(trace);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

TEST_LOOP(real_snapshots_come_back, 2) {
  static const char *const names[] = {"torch-gpt-medium-128-training.pickle",
                                      "torch-gpt-medium-512-inference.pickle"};
  const char *data = getenv("TARN_TEST_DATA");
  char path[4096];
  tarn_trace *trace = NULL;
  snprintf(path, sizeof path, "%s/traces/%s",
           data != NULL ? data : TARN_SHARED_DATA, names[_i]);
  if (access(path, R_OK) != 0) {
    note_skipped(names[_i], "not in TARN_TEST_DATA nor beside the project");
    return;
  }
  assert_ok(tarn_trace_read(path, NULL, &trace));
  tarn_trace *read = again(trace);
  assert_same_trace(trace, read, true);
  ck_assert_uint_eq(read->segment_count, trace->segment_count);
  ck_assert_mem_eq(read->segments, trace->segments,
                   trace->segment_count * sizeof *trace->segments);
  tarn_trace_destroy(read);
  tarn_trace_destroy(trace);
}

TEST(nothing_comes_back) {
  tarn_trace_builder *builder = NULL;
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_builder_create("empty", &builder));
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  tarn_trace *read = again(trace);
  assert_same_trace(trace, read, true);
  tarn_trace_destroy(read);
  tarn_trace_destroy(trace);
}

// The stack that a block of the baseline was born with goes with its death.
TEST(old_blocks_show_their_stack) {
  tarn_trace_builder *builder = NULL;
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_builder_create("old", &builder));
  uint32_t stack = built_stack(builder, "old.py", "load", 3);
  uint32_t tag = built_tag(builder, "weights");
  assert_ok(tarn_trace_builder_old(
      builder, &(tarn_trace_block){
                   .address = 4096, .size = 64, .stack = stack, .tag = tag}));
  assert_ok(tarn_trace_builder_event(
      builder, &(tarn_trace_event){.kind = TARN_TRACE_FREE,
                                   .address = 4096,
                                   .stack = TARN_TRACE_NO_STACK}));
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  tarn_trace *read = again(trace);
  ck_assert_uint_eq(read->baseline_count, 1);
  ck_assert_uint_eq(read->blocks[0].size, 64);
  ck_assert_str_eq(read->tags[read->blocks[0].tag], "weights");
  ck_assert_uint_ne(read->events[0].stack, TARN_TRACE_NO_STACK);
  const tarn_trace_stack *shown = &read->stacks[read->events[0].stack];
  ck_assert_uint_eq(shown->count, 2);  // the tag is none of them
  ck_assert_str_eq(read->frames[read->frame_indices[shown->first]].function,
                   "load");
  tarn_trace_destroy(read);
  tarn_trace_destroy(trace);
}

// Python refuses a text that is no UTF-8, so none is written.
TEST(stray_bytes_are_replaced) {
  tarn_trace_builder *builder = NULL;
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_builder_create("stray", &builder));
  uint32_t stack =
      built_stack(builder,
                  "\xff"
                  "a\xc0\x80\xed\xa0\x80.py\xe2\x82",
                  "\xf4\x8f\xbf\xbf\xf4\x90\x80\x80\xe0\x80\x80", 1);
  built_event(builder, TARN_TRACE_ALLOC, 4096, 1, stack, 0);
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  tarn_trace *read = again(trace);
  const tarn_trace_frame *frame =
      &read->frames[read->frame_indices[read->stacks[0].first]];
#define U "\xef\xbf\xbd"
  ck_assert_str_eq(frame->file, U "a" U U U U U ".py" U U);
  ck_assert_str_eq(frame->function, "\xf4\x8f\xbf\xbf" U U U U U U U);
  tarn_trace_destroy(read);
  tarn_trace_destroy(trace);
}

// Texts of 255, 256 and 100,000 bytes; numbers of all widths.
TEST(sizes_of_texts_and_numbers) {
  static const uint64_t numbers[] = {1,
                                     255,
                                     256,
                                     65535,
                                     65536,
                                     INT32_MAX,
                                     UINT64_C(1) << 31,
                                     UINT32_MAX,
                                     UINT64_C(1) << 55,
                                     (UINT64_C(1) << 63) - 1,
                                     UINT64_C(1) << 63,
                                     UINT64_MAX};
  static const size_t lengths[] = {0, 1, 255, 256, 100000};
  enum { NUMBERS = sizeof numbers / sizeof *numbers, LONGEST = 100000 };
  static char text[LONGEST + 1];
  tarn_trace_builder *builder = NULL;
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_builder_create("wide", &builder));
  memset(text, 'x', LONGEST);
  for (size_t i = 0; i < NUMBERS; i++) {
    size_t length = lengths[i % 5];
    uint32_t stack = 0;
    text[length] = '\0';
    assert_ok(tarn_trace_builder_stack(
        builder, &(tarn_trace_frame){.file = text, .line = (uint32_t)i}, 1,
        &stack));
    text[length] = 'x';
    tarn_trace_event event = {.kind = TARN_TRACE_OOM,
                              .size = numbers[i],
                              .address = numbers[i],
                              .stream = numbers[NUMBERS - 1 - i],
                              .time_us = numbers[i],
                              .stack = stack};
    assert_ok(tarn_trace_builder_event(builder, &event));
  }
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  tarn_trace *read = again(trace);
  assert_same_trace(trace, read, true);
  tarn_trace_destroy(read);
  tarn_trace_destroy(trace);
}

// Lists of more than one batch, in events, in a segment and in a stack.
TEST(long_lists) {
  enum { COUNT = 2500 };
  static tarn_trace_frame frames[COUNT];
  tarn_trace_builder *builder = NULL;
  tarn_trace *trace = NULL;
  uint32_t stack = 0;
  for (uint32_t i = 0; i < COUNT; i++)
    frames[i] = (tarn_trace_frame){.file = "deep.py", .line = i};
  assert_ok(tarn_trace_builder_create("long", &builder));
  assert_ok(tarn_trace_builder_stack(builder, frames, COUNT, &stack));
  for (uint64_t i = 1; i <= COUNT; i++)
    built_event(builder, TARN_TRACE_ALLOC, i << 13, 512, stack, 0);
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  tarn_trace *read = again(trace);
  assert_same_trace(trace, read, true);
  ck_assert_uint_eq(read->segment_count, 1);
  ck_assert_uint_eq(read->segments[0].size, (COUNT - 1) * 8192 + 512);
  tarn_trace_destroy(read);
  tarn_trace_destroy(trace);
}

// A trace of device 3 is read as device 3; one that no snapshot can name is 0.
TEST(devices) {
  tarn_trace *trace = built_of_all();
  for (uint32_t device = 3; device < 1000; device += 500) {
    trace->device = device;
    tarn_trace *read = again(trace);
    ck_assert_uint_eq(read->device, device < 256 ? device : 0);
    ck_assert_uint_eq(read->device_count, 1);
    assert_same_trace(trace, read, true);
    tarn_trace_destroy(read);
  }
  tarn_trace_destroy(trace);
}

// A function that has the tag's file is a frame if it has a line or no name.
TEST(frames_like_tags) {
  tarn_trace_builder *builder = NULL;
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_builder_create("like", &builder));
  const tarn_trace_frame frames[] = {
      {.file = "tag", .function = "f", .line = 1},
      {.file = "tag", .function = ""},
      {.file = "tag", .function = "weights"}};
  for (size_t i = 0; i < 3; i++) {
    uint32_t stack = 0;
    assert_ok(tarn_trace_builder_stack(builder, &frames[i], 1, &stack));
    built_event(builder, TARN_TRACE_ALLOC, 4096 * (i + 1), 1, stack, 0);
  }
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  tarn_trace *read = again(trace);
  ck_assert_uint_eq(read->blocks[0].tag, 0);
  ck_assert_uint_eq(read->blocks[1].tag, 0);
  ck_assert_uint_ne(read->blocks[1].stack, TARN_TRACE_NO_STACK);
  ck_assert_str_eq(read->tags[read->blocks[2].tag], "weights");
  ck_assert_uint_eq(read->blocks[2].stack, TARN_TRACE_NO_STACK);
  ck_assert_uint_eq(read->tag_count, 2);
  tarn_trace_destroy(read);
  tarn_trace_destroy(trace);
}

// --- Python ----------------------------------------------------------------

static const char script[] =
    "import pickle, sys\n"
    "d = pickle.load(open(sys.argv[1], 'rb'))\n"
    "events = d['device_traces'][0]\n"
    "live = peak = 0\n"
    "base = sum(b['requested_size'] for s in d['segments']\n"
    "           for b in s['blocks'] if b['state'].startswith('active'))\n"
    "for e in events:\n"
    "    live += {'alloc': 1, 'free_completed': -1}.get(e['action'], 0)\\\n"
    "            * e['size']\n"
    "live = base - live\n"  // what must have lived at first
    "print(len(events), live, end=' ')\n"
    "for e in events:\n"
    "    live += {'alloc': 1, 'free_completed': -1}.get(e['action'], 0)\\\n"
    "            * e['size']\n"
    "    peak = max(peak, live)\n"
    "    assert all(set(f) == {'filename', 'line', 'name'}\n"
    "               for f in e['frames'])\n"
    "for s in d['segments']:\n"
    "    at = s['address']\n"
    "    for b in s['blocks']:\n"
    "        assert b['address'] == at and b['size'] >= b['requested_size']\n"
    "        at += b['size']\n"
    "    assert at == s['address'] + s['total_size']\n"
    "    sums = [sum(b[k] for b in s['blocks'] if b['state'] in states)\n"
    "            for k, states in (\n"
    "              ('size', ['active_allocated']),\n"
    "              ('size', ['active_allocated', 'active_pending_free']),\n"
    "              ('requested_size',\n"
    "               ['active_allocated', 'active_pending_free']))]\n"
    "    assert sums == [s['allocated_size'], s['active_size'],\n"
    "                    s['requested_size']]\n"
    "    assert s['segment_type'] in ('small', 'large')\n"
    "print(peak, len(d['segments']))\n";

static void put_file(const char *name, const void *bytes, size_t size) {
  FILE *out = fopen(tool_file(name), "wb");
  ck_assert_ptr_nonnull(out);
  ck_assert_uint_eq(fwrite(bytes, 1, size, out), size);
  ck_assert_int_eq(fclose(out), 0);
}

// What the script says of |trace|.
static void ask_python(const tarn_trace *trace, char *answer, size_t size) {
  char command[1024];
  char path[512];
  written w = written_make(trace, TARN_TRACE_FORMAT_PYTORCH);
  put_file("check.py", script, sizeof script - 1);
  put_file("trace.pickle", w.bytes, w.size);
  snprintf(path, sizeof path, "%s", tool_file("trace.pickle"));
  snprintf(command, sizeof command, "python3 '%s' '%s'", tool_file("check.py"),
           path);
  FILE *in = popen(command, "r");  // NOLINT(cert-env33-c): a path of our own
  ck_assert_ptr_nonnull(in);
  size_t got = fread(answer, 1, size - 1, in);
  answer[got] = '\0';
  ck_assert_int_eq(pclose(in), 0);
  written_free(&w);
}

static void assert_python_agrees(tarn_trace *trace, size_t segments) {
  char answer[256];
  char want[256];
  ask_python(trace, answer, sizeof answer);
  snprintf(want, sizeof want, "%zu %llu %llu %zu\n", trace->event_count,
           (unsigned long long)trace->baseline_bytes,
           (unsigned long long)trace->live_peak_bytes, segments);
  ck_assert_str_eq(answer, want);
  tarn_trace_destroy(trace);
}

TEST(python_reads_it) {
  tarn_trace *trace = NULL;
  if (system("python3 -c pass 2>/dev/null") != 0) {  // NOLINT(cert-env33-c)
    note_skipped("python_reads_it", "there is no python3");
    return;
  }
  tool_files_begin();
  assert_python_agrees(built_of_all(), 2);
  assert_ok(tarn_trace_make("@bert-layer", &trace));
  assert_python_agrees(trace, 0);
  tool_files_end();
}

// --- failures --------------------------------------------------------------

static void write_once(void *context) {
  written w = {0};
  tarn_status status =
      tarn_trace_write_to(context, TARN_TRACE_FORMAT_PYTORCH, written_sink, &w);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  written_free(&w);
}

TEST(no_memory) {
  tarn_trace *trace = built_of_all();
  ck_assert_uint_gt(faults_sweep(write_once, trace), 10);
  tarn_trace_destroy(trace);
  assert_ok(tarn_trace_make("@bert-layer", &trace));
  ck_assert_uint_gt(faults_sweep(write_once, trace), 10);
  tarn_trace_destroy(trace);
}

static tarn_trace *snapshot;

static void read_once(void *context) {
  const written *w = context;
  tarn_status status =
      tarn_trace_read_bytes(w->bytes, w->size, "again", NULL, &snapshot);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  tarn_trace_destroy(snapshot);
  snapshot = NULL;
}

// With tags, which the tests of the reader do not have.
TEST(no_memory_to_read_it) {
  tarn_trace *trace = built_of_all();
  written w = written_make(trace, TARN_TRACE_FORMAT_PYTORCH);
  ck_assert_uint_gt(faults_sweep(read_once, &w), 10);
  written_free(&w);
  tarn_trace_destroy(trace);
}

TEST(no_room_for_addresses) {
  tarn_trace_builder *builder = NULL;
  tarn_trace *trace = NULL;
  written w = {0};
  assert_ok(tarn_trace_builder_create("huge", &builder));
  built_event(builder, TARN_TRACE_ALLOC, 0, UINT64_MAX - 1, TARN_TRACE_NO_STACK,
              0);
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  assert_status(
      tarn_trace_write_to(trace, TARN_TRACE_FORMAT_PYTORCH, written_sink, &w),
      TARN_E_UNSUPPORTED);
  assert_error_says("huge: a block of 18446744073709551614 bytes");
  ck_assert_uint_eq(w.calls, 0);
  tarn_trace_destroy(trace);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

int main(void) {
  faults_install();
  return run_tests();
}
