// `tarn record`: the files that a recorded program leaves, and what is in them.
#include <fcntl.h>
#include <sys/stat.h>

#include "record_kit.h"

// Of the stack of the block of |size| bytes; innermost: 0.
static const tarn_trace_frame *frame_of(const tarn_trace *trace, uint64_t size,
                                        uint32_t index) {
  uint32_t number = block_of(trace, size)->stack;
  ck_assert_uint_ne(number, TARN_TRACE_NO_STACK);
  const tarn_trace_stack *stack = &trace->stacks[number];
  ck_assert_uint_lt(index, stack->count);
  return &trace->frames[trace->frame_indices[stack->first + index]];
}

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), least = strlen(end);
  return length >= least && strcmp(text + length - least, end) == 0;
}

// --- what it leaves --------------------------------------------------------

TEST(records_what_is_large) {
  tool_output o = tool_ended(0, record("small", "keep"));
  ck_assert_str_eq(o.out, "");
  assert_contains(o.err, "x.tarn: 1 event, live peak 1.00 MiB, file of ");
  assert_contains(o.err, "tarn record: next: tarn why ");
  tarn_trace *trace = read_out();
  ck_assert_uint_eq(trace->event_count, 1);
  ck_assert_uint_eq(trace->live_peak_bytes, MIB);
  ck_assert_uint_eq(block_of(trace, MIB)->died, TARN_TRACE_NEVER);
  tarn_trace_destroy(trace);
}

TEST(threshold_says_what_is_large) {
  assert_ended(tool_run("record", "--threshold=4K", "--out", out, "--",
                        TARN_PROGRAM, "small", "keep"),
               0, "3 events");
  tarn_trace *trace = read_out();
  ck_assert_uint_eq(trace->event_count, 3);
  ck_assert_uint_ne(block_of(trace, 10000)->died, TARN_TRACE_NEVER);
  tarn_trace_destroy(trace);
  assert_ended(tool_run("record", "--threshold", "2M", "--out",
                        tool_file("y.tarn"), TARN_PROGRAM, "keep"),
               0, "nothing was recorded: no allocation of 2.00 MiB or more");
  ck_assert(!is_there(tool_file("y.tarn")));
}

TEST(file_can_be_replayed) {
  tool_output o = tool_ended(0, record("keep", "small", "inlined"));
  o = tool_ends(0, "replay", out, "-o", "csv");
  assert_contains(o.out, "x.tarn,arena_pool");
}

// --- names -----------------------------------------------------------------

#ifdef TARN_HAS_LIBDW
static uint32_t keep_line(void) {
  tool_output o = tool_ends(0, "record", "--out", tool_file("line.tarn"),
                            TARN_PROGRAM, "line");
  uint32_t line = (uint32_t)strtoul(o.out, NULL, 10);
  ck_assert_uint_gt(line, 0);
  return line;
}

TEST(frames_have_function_file_and_line) {
  assert_ended(record("keep"), 0, "1 event");
  tarn_trace *trace = read_out();
  const tarn_trace_frame *frame = frame_of(trace, MIB, 0);
  ck_assert_str_eq(frame->function, "keep_one");
  ck_assert_msg(ends_with(frame->file, "/record_program.c"), "%s", frame->file);
  ck_assert_uint_eq(frame->line, keep_line());
  tarn_trace_destroy(trace);
}

static void assert_inlined_have_frames(const char *program) {
  (void)remove(out);
  assert_ended(tool_run("record", "--out", out, program, "inlined"), 0,
               "1 event");
  tarn_trace *trace = read_out();
  const tarn_trace_frame *inner = frame_of(trace, 2 * MIB, 0);
  const tarn_trace_frame *outer = frame_of(trace, 2 * MIB, 1);
  ck_assert_str_eq(inner->function, "take_two");
  ck_assert_msg(ends_with(inner->file, "/record_program.c"), "%s", inner->file);
  ck_assert_str_eq(outer->function, "calls_inlined");
  ck_assert_msg(ends_with(outer->file, "/record_program.c"), "%s", outer->file);
  ck_assert_uint_gt(outer->line, inner->line);
  tarn_trace_destroy(trace);
}

// With debug information as gcc writes it, and as clang does.
TEST(inlined_functions_have_frames) {
  assert_inlined_have_frames(TARN_PROGRAM);
  assert_inlined_have_frames(TARN_NO_ARANGES);
}

// What turns the order of letters around on a terminal, in UTF-8.
static const char turn[] = {(char)0xe2, (char)0x80, (char)0xae, '\0'};

TEST(hostile_names_stay_in_the_file) {
  char name[32];
  snprintf(name, sizeof name, "evil_%seman", turn);
  tool_output o = tool_ended(0, record("hostile"));
  ck_assert_ptr_null(strstr(o.err, turn));
  tarn_trace *trace = read_out();
  ck_assert_str_eq(frame_of(trace, 3 * MIB, 0)->function, name);
  tarn_trace_destroy(trace);
}
#else
TEST(without_libdw_it_says_so) {
  assert_ended(record("keep"), 0, "built without libdw");
}
#endif

TEST(no_symbols_keeps_offsets) {
  assert_ended(
      tool_run("record", "--no-symbols", "--out", out, TARN_PROGRAM, "keep"), 0,
      "1 event");
  tarn_trace *trace = read_out();
  const tarn_trace_frame *frame = frame_of(trace, MIB, 0);
  ck_assert_msg(strncmp(frame->function, "+0x", 3) == 0, "%s", frame->function);
  ck_assert_msg(ends_with(frame->file, "/tarn_record_program"), "%s",
                frame->file);
  ck_assert_uint_eq(frame->line, 0);
  tarn_trace_destroy(trace);
}

TEST(no_stacks_records_none) {
  assert_ended(
      tool_run("record", "--no-stacks", "--out", out, TARN_PROGRAM, "keep"), 0,
      "1 event");
  tarn_trace *trace = read_out();
  ck_assert_uint_eq(block_of(trace, MIB)->stack, TARN_TRACE_NO_STACK);
  tarn_trace_destroy(trace);
}

TEST(hostile_program_is_neutralised) {
  const char *evil = tool_file("evil\033[31m");
  ck_assert_int_eq(symlink(TARN_PROGRAM, evil), 0);
  tool_output o = tool_run("record", "--out", out, evil, "kill");
  ck_assert_int_eq(o.status, 137);
  ck_assert_ptr_null(strchr(o.err, '\033'));
  assert_contains(o.err, "evil?[31m was ended by signal 9");
}

// --- children --------------------------------------------------------------

TEST(children_have_files_of_their_own) {
  tool_output o = tool_ended(0, record("inlined", "child"));
  const char *child = strstr(o.err, "x.tarn.");
  ck_assert_ptr_nonnull(child);
  char path[1024];
  snprintf(path, sizeof path, "%s.%lu", out, strtoul(child + 7, NULL, 10));
  tarn_trace *trace = read_out();
  ck_assert_uint_eq(trace->live_peak_bytes, 2 * MIB);
  tarn_trace_destroy(trace);
  assert_ok(tarn_trace_read(path, NULL, &trace));
  ck_assert_uint_eq(trace->live_peak_bytes, MIB);
  tarn_trace_destroy(trace);
}

TEST(only_file_takes_the_name) {
  assert_ended(record("child"), 0, "x.tarn: 1 event");
  tarn_trace *trace = read_out();
  ck_assert_uint_eq(trace->live_peak_bytes, MIB);
  tarn_trace_destroy(trace);
}

// Finished, it has names, and no room to spare.
static void finish_when_it_has_ended(const char *child) {
  struct stat before, after;
  tarn_trace *trace = NULL;
  ck_assert_int_eq(stat(child, &before), 0);
  tool_output o = tool_run("record", "--finish", child);
  while (strstr(o.err, "still writes it") != NULL) {
    usleep(10000);
    o = tool_run("record", "--finish", child);
  }
  assert_ended(o, 0, ": 1 event, live peak 1.00 MiB");
  ck_assert_int_eq(stat(child, &after), 0);
  ck_assert_int_lt(after.st_size, before.st_size);
  assert_ok(tarn_trace_read(child, NULL, &trace));
#ifdef TARN_HAS_LIBDW
  ck_assert_str_eq(frame_of(trace, MIB, 0)->function, "keep_one");
#endif
  tarn_trace_destroy(trace);
}

// The shell records nothing; of its two children one holds 2 MiB.
TEST(largest_is_asked_about_next) {
  tool_output o =
      tool_run("record", "--out", out, "--", "/bin/sh", "-c",
               TARN_PROGRAM " keep; " TARN_PROGRAM " inlined; exit 0");
  ck_assert_int_eq(o.status, 0);
  const char *held = strstr(o.err, ": 1 event, live peak 2.00 MiB");
  const char *next = strstr(o.err, "next: tarn why ");
  ck_assert_msg(held != NULL && next != NULL, "%s", o.err);
  const char *begin = held;
  while (begin > o.err && begin[-1] != ' ')
    begin--;
  next += strlen("next: tarn why ");
  ck_assert_uint_eq(strcspn(next, "\n"), (size_t)(held - begin));
  ck_assert_int_eq(strncmp(next, begin, (size_t)(held - begin)), 0);
}

TEST(running_child_keeps_its_file) {
  int ends[2], saved = dup(STDIN_FILENO);
  ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
  dup2(ends[0], STDIN_FILENO);
  tool_output o = tool_ended(0, record("inlined", "orphan"));
  assert_contains(o.err, "its process still runs");
  assert_contains(o.err, "x.tarn: 1 event");
  const char *number = strstr(o.err, "x.tarn.");
  ck_assert_ptr_nonnull(number);
  char child[1024];
  snprintf(child, sizeof child, "%s.%lu", out, strtoul(number + 7, NULL, 10));
  assert_ended(tool_run("record", "--finish", child), 1, "still writes it");
  close(ends[1]);
  dup2(saved, STDIN_FILENO);
  close(ends[0]);
  close(saved);
  finish_when_it_has_ended(child);
}

// --- devices ---------------------------------------------------------------

static uint64_t peak_of(const char *path) {
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_read(path, NULL, &trace));
  ck_assert_uint_eq(trace->device_count, 1);
  uint64_t peak = trace->live_peak_bytes;
  tarn_trace_destroy(trace);
  return peak;
}

// Of the program: 100000 and 100001 bytes on device 1, 100002 on device 2. Its
// host has most events.
TEST(devices_have_files_of_their_own) {
  char path[600];
  assert_ended(
      tool_run("record", "--out", out, TARN_VICTIM, "plugin", TARN_TWIN_PLUGIN),
      0, "x.tarn.device-2: 2 events, live peak 97.65 KiB");
  snprintf(path, sizeof path, "%s.device-2", out);
  ck_assert_uint_eq(peak_of(path), 100002);
  snprintf(path, sizeof path, "%s.device-1", out);
  ck_assert_uint_eq(peak_of(path), 100000 + 100001);
  ck_assert_uint_ge(peak_of(out), 100000);
}
