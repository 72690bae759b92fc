// `tarn record`: what becomes of a program that is recorded, and of the files
// that it leaves. The program is support/record_program.c.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/run.h"
#include "support/tool_assert.h"
#include "tarn/trace.h"

#define MIB UINT64_C(1048576)

static char out[512];  // where traces go

static void set_up(void) {
  tool_files_begin();
  snprintf(out, sizeof out, "%s", tool_file("x.tarn"));
  setenv("TARN_RECORD_LIBRARY", TARN_RECORD_SO, 1);
}

static void tear_down(void) {
  tool_files_end();
}

#define record(...) tool_run("record", "--out", out, TARN_PROGRAM, __VA_ARGS__)

static bool is_there(const char *path) {
  return access(path, F_OK) == 0;
}

// Frees |o|.
static void assert_ended(tool_output o, int status, const char *says) {
  ck_assert_msg(o.status == status, "exit %d: %s", o.status, o.err);
  assert_contains(o.err, says);
  tool_output_free(&o);
}

static tarn_trace *read_out(void) {
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_read(out, NULL, &trace));
  ck_assert_ptr_nonnull(trace);
  ck_assert_str_eq(trace->format, "tarn");
  return trace;
}

// The only block of |size| bytes.
static const tarn_trace_block *block_of(const tarn_trace *trace,
                                        uint64_t size) {
  const tarn_trace_block *found = NULL;
  for (size_t i = 0; i < trace->block_count; i++) {
    if (trace->blocks[i].size != size) continue;
    ck_assert_ptr_null(found);
    found = &trace->blocks[i];
  }
  ck_assert_msg(found != NULL, "no block of %llu bytes",
                (unsigned long long)size);
  return found;
}

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

START_TEST(records_what_is_large) {
  tool_output o = record("small", "keep");
  ck_assert_msg(o.status == 0, "exit %d: %s", o.status, o.err);
  ck_assert_str_eq(o.out, "");
  assert_contains(o.err, "x.tarn: 1 event, live peak 1.00 MiB, file of ");
  assert_contains(o.err, "tarn record: next: tarn why ");
  tool_output_free(&o);
  tarn_trace *trace = read_out();
  ck_assert_uint_eq(trace->event_count, 1);
  ck_assert_uint_eq(trace->live_peak_bytes, MIB);
  ck_assert_uint_eq(block_of(trace, MIB)->died, TARN_TRACE_NEVER);
  tarn_trace_destroy(trace);
}
END_TEST

START_TEST(threshold_says_what_is_large) {
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
END_TEST

START_TEST(file_can_be_replayed) {
  tool_output o = record("keep", "small", "inlined");
  ck_assert_int_eq(o.status, 0);
  tool_output_free(&o);
  o = tool_run("replay", out, "-o", "csv");
  ck_assert_msg(o.status == 0, "exit %d: %s", o.status, o.err);
  assert_contains(o.out, "x.tarn,arena_pool");
  tool_output_free(&o);
}
END_TEST

// --- names -----------------------------------------------------------------

static uint32_t keep_line(void) {
  tool_output o =
      tool_run("record", "--out", tool_file("line.tarn"), TARN_PROGRAM, "line");
  ck_assert_int_eq(o.status, 0);
  uint32_t line = (uint32_t)strtoul(o.out, NULL, 10);
  ck_assert_uint_gt(line, 0);
  tool_output_free(&o);
  return line;
}

#ifdef TARN_HAS_LIBDW
START_TEST(frames_have_function_file_and_line) {
  assert_ended(record("keep"), 0, "1 event");
  tarn_trace *trace = read_out();
  const tarn_trace_frame *frame = frame_of(trace, MIB, 0);
  ck_assert_str_eq(frame->function, "keep_one");
  ck_assert_msg(ends_with(frame->file, "/record_program.c"), "%s", frame->file);
  ck_assert_uint_eq(frame->line, keep_line());
  tarn_trace_destroy(trace);
}
END_TEST

START_TEST(inlined_functions_have_frames) {
  assert_ended(record("inlined"), 0, "1 event");
  tarn_trace *trace = read_out();
  ck_assert_str_eq(frame_of(trace, 2 * MIB, 0)->function, "take_two");
  const tarn_trace_frame *outer = frame_of(trace, 2 * MIB, 1);
  ck_assert_str_eq(outer->function, "calls_inlined");
  ck_assert_msg(ends_with(outer->file, "/record_program.c"), "%s", outer->file);
  ck_assert_uint_gt(outer->line, frame_of(trace, 2 * MIB, 0)->line);
  tarn_trace_destroy(trace);
}
END_TEST

// What turns the order of letters around on a terminal, in UTF-8.
static const char turn[] = {(char)0xe2, (char)0x80, (char)0xae, '\0'};

START_TEST(hostile_names_stay_in_the_file) {
  char name[32];
  snprintf(name, sizeof name, "evil_%seman", turn);
  tool_output o = record("hostile");
  ck_assert_int_eq(o.status, 0);
  ck_assert_ptr_null(strstr(o.err, turn));
  tool_output_free(&o);
  tarn_trace *trace = read_out();
  ck_assert_str_eq(frame_of(trace, 3 * MIB, 0)->function, name);
  tarn_trace_destroy(trace);
}
END_TEST
#else
START_TEST(without_libdw_it_says_so) {
  assert_ended(record("keep"), 0, "built without libdw");
}
END_TEST
#endif

START_TEST(no_symbols_keeps_offsets) {
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
END_TEST

START_TEST(no_stacks_records_none) {
  assert_ended(
      tool_run("record", "--no-stacks", "--out", out, TARN_PROGRAM, "keep"), 0,
      "1 event");
  tarn_trace *trace = read_out();
  ck_assert_uint_eq(block_of(trace, MIB)->stack, TARN_TRACE_NO_STACK);
  tarn_trace_destroy(trace);
}
END_TEST

START_TEST(hostile_program_is_neutralised) {
  char evil[512];
  snprintf(evil, sizeof evil, "%s", tool_file("evil\033[31m"));
  ck_assert_int_eq(symlink(TARN_PROGRAM, evil), 0);
  tool_output o = tool_run("record", "--out", out, evil, "kill");
  ck_assert_int_eq(o.status, 137);
  ck_assert_ptr_null(strchr(o.err, '\033'));
  assert_contains(o.err, "evil?[31m was ended by signal 9");
  tool_output_free(&o);
}
END_TEST

// --- how it ends -----------------------------------------------------------

START_TEST(status_is_the_programs) {
  tool_output o = record("keep", "exit7");
  ck_assert_int_eq(o.status, 7);
  assert_contains(o.err, "1 event");
  tool_output_free(&o);
  o = tool_run("record", "--out", tool_file("y.tarn"), "sh", "-c",
               "kill -TERM $$");
  ck_assert_int_eq(o.status, 128 + SIGTERM);
  assert_contains(o.err, "ended by signal 15 (Terminated)");
  tool_output_free(&o);
}
END_TEST

START_TEST(words_behind_the_program_are_its_own) {
  tool_output o =
      tool_run("record", "--out", out, "echo", "--out", "-x", "--", "--help");
  ck_assert_int_eq(o.status, 0);
  ck_assert_str_eq(o.out, "--out -x -- --help\n");
  tool_output_free(&o);
}
END_TEST

START_TEST(killed_program_leaves_a_trace) {
  assert_ended(record("keep", "inlined", "kill", "hostile"), 137,
               "2 events, live peak 3.00 MiB");
  tarn_trace *trace = read_out();
  block_of(trace, MIB);
  block_of(trace, 2 * MIB);
  tarn_trace_destroy(trace);
  struct stat file;
  ck_assert_int_eq(stat(out, &file), 0);
  ck_assert_int_lt(file.st_size, 65536);  // without the room it had in store
}
END_TEST

START_TEST(sigpipe_ends_the_program) {
  tool_output o =
      tool_run("record", "--out", out, "sh", "-c", "kill -PIPE $$; exit 3");
  ck_assert_int_eq(o.status, 128 + SIGPIPE);
  tool_output_free(&o);
}
END_TEST

// The tool as a child that can be sent signals; its stdout is on |*out_read|.
static pid_t start_waiting(int *out_read) {
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  pid_t pid = fork();
  ck_assert_int_ge(pid, 0);
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl(TARN_TOOL, "tarn", "record", "--out", out, TARN_PROGRAM, "keep",
          "wait", (char *)NULL);
    _exit(99);
  }
  close(ends[1]);
  *out_read = ends[0];
  return pid;
}

// A signal for the tool is one for the program, which leaves its trace.
static void check_passed_on(int number) {
  char word[6] = "";
  int from = -1, status = 0;
  pid_t pid = start_waiting(&from);
  ck_assert_int_eq(read(from, word, 5), 5);
  ck_assert_str_eq(word, "ready");
  ck_assert_int_eq(kill(pid, number), 0);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  close(from);
  ck_assert(WIFEXITED(status));
  ck_assert_int_eq(WEXITSTATUS(status), 128 + number);
  tarn_trace *trace = read_out();
  ck_assert_uint_eq(trace->live_peak_bytes, MIB);
  tarn_trace_destroy(trace);
}

START_TEST(terminate_is_passed_on) {
  check_passed_on(SIGTERM);
}
END_TEST

START_TEST(interrupt_is_passed_on) {
  check_passed_on(SIGINT);
}
END_TEST

// --- children --------------------------------------------------------------

START_TEST(children_have_files_of_their_own) {
  tool_output o = record("inlined", "child");
  ck_assert_int_eq(o.status, 0);
  const char *child = strstr(o.err, "x.tarn.");
  ck_assert_ptr_nonnull(child);
  char path[1024];
  snprintf(path, sizeof path, "%s.%lu", out, strtoul(child + 7, NULL, 10));
  tool_output_free(&o);
  tarn_trace *trace = read_out();
  ck_assert_uint_eq(trace->live_peak_bytes, 2 * MIB);
  tarn_trace_destroy(trace);
  assert_ok(tarn_trace_read(path, NULL, &trace));
  ck_assert_uint_eq(trace->live_peak_bytes, MIB);
  tarn_trace_destroy(trace);
}
END_TEST

START_TEST(only_file_takes_the_name) {
  tool_output o = record("child");
  ck_assert_int_eq(o.status, 0);
  assert_contains(o.err, "x.tarn: 1 event");
  tool_output_free(&o);
  tarn_trace *trace = read_out();
  ck_assert_uint_eq(trace->live_peak_bytes, MIB);
  tarn_trace_destroy(trace);
}
END_TEST

START_TEST(running_child_keeps_its_file) {
  int ends[2], saved = dup(STDIN_FILENO);
  ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
  dup2(ends[0], STDIN_FILENO);
  tool_output o = record("inlined", "orphan");
  ck_assert_int_eq(o.status, 0);
  assert_contains(o.err, "its process still runs");
  assert_contains(o.err, "x.tarn: 1 event");
  tool_output_free(&o);
  close(ends[1]);
  dup2(saved, STDIN_FILENO);
  close(ends[0]);
  close(saved);
}
END_TEST

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
START_TEST(devices_have_files_of_their_own) {
  char path[600];
  tool_output o =
      tool_run("record", "--out", out, TARN_VICTIM, "plugin", TARN_TWIN_PLUGIN);
  ck_assert_msg(o.status == 0, "exit %d: %s", o.status, o.err);
  assert_contains(o.err, "x.tarn.device-2: 2 events, live peak 97.65 KiB");
  tool_output_free(&o);
  snprintf(path, sizeof path, "%s.device-2", out);
  ck_assert_uint_eq(peak_of(path), 100002);
  snprintf(path, sizeof path, "%s.device-1", out);
  ck_assert_uint_eq(peak_of(path), 100000 + 100001);
  ck_assert_uint_ge(peak_of(out), 100000);
}
END_TEST

// --- what is refused -------------------------------------------------------

START_TEST(missing_program_is_127) {
  assert_ended(tool_run("record", "--out", out, "tarn-no-such-program"), 127,
               "tarn-no-such-program: No such file or directory");
  ck_assert(!is_there(out));
}
END_TEST

START_TEST(what_cannot_be_run_is_126) {
  assert_ended(tool_run("record", "--out", out, "/dev/null"), 126,
               "/dev/null: Permission denied");
}
END_TEST

START_TEST(missing_library_is_said) {
  setenv("TARN_RECORD_LIBRARY", "/nowhere/libtarn-record.so", 1);
  tool_output o = record("keep");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "TARN_RECORD_LIBRARY: /nowhere/libtarn-record.so: ");
  tool_output_free(&o);
  ck_assert(!is_there(out));
}
END_TEST

START_TEST(library_is_found_beside_the_tool) {
  unsetenv("TARN_RECORD_LIBRARY");
  assert_ended(record("keep"), 0, "1 event");
}
END_TEST

START_TEST(library_with_a_blank_is_refused) {
  const char *path = tool_file("a b.so");
  ck_assert_int_eq(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
  setenv("TARN_RECORD_LIBRARY", path, 1);
  assert_ended(record("keep"), 1, "with a blank or a colon");
}
END_TEST

START_TEST(file_is_not_overwritten) {
  FILE *mine = fopen(out, "w");
  ck_assert_ptr_nonnull(mine);
  fputs("mine", mine);
  fclose(mine);
  assert_ended(record("keep"), 1, "is there already and stays as it is");
  char *text = tool_read_file(out);
  ck_assert_str_eq(text, "mine");
  free(text);
}
END_TEST

START_TEST(file_that_cannot_be_made_is_refused) {
  snprintf(out, sizeof out, "/nowhere/x.tarn");
  assert_ended(record("keep"), 1, "/nowhere/x.tarn: No such file or directory");
}
END_TEST

START_TEST(without_out_no_name_is_taken_twice) {
  char here[512];
  ck_assert_ptr_nonnull(getcwd(here, sizeof here));
  ck_assert_int_eq(chdir(tool_file("")), 0);
  assert_ended(tool_run("record", TARN_PROGRAM, "keep"), 0,
               "next: tarn why tarn_record_program.tarn\n");
  assert_ended(tool_run("record", TARN_PROGRAM, "keep"), 0,
               "next: tarn why tarn_record_program-2.tarn\n");
  ck_assert(is_there("tarn_record_program.tarn"));
  ck_assert_int_eq(chdir(here), 0);
}
END_TEST

#ifdef TARN_STATIC_PROGRAM
START_TEST(static_program_is_said) {
  assert_ended(tool_run("record", "--out", out, TARN_STATIC_PROGRAM, "exit7"),
               7, "is linked statically");
}
END_TEST
#endif

START_TEST(wrong_use) {
  assert_misuse(tool_run("record"), "which program");
  assert_misuse(tool_run("record", "--"), "which program");
  assert_misuse(tool_run("record", "--threshold", "0", "true"), "--threshold");
  assert_misuse(tool_run("record", "--threshold", "x", "true"), "--threshold");
  assert_misuse(tool_run("record", "--nothing", "true"), "--nothing");
  assert_misuse(tool_run("record", "-o", "x", "true"), "'-o'");
}
END_TEST

int main(void) {
#ifdef TARN_SANITIZED
  return skip_program("tool_record",
                      "a sanitizer is to be the first that is loaded, and so "
                      "is the recorder");
#endif
  Suite *suite = suite_create("tool record");
  TCase *tcase = tcase_create("record");
  tcase_set_timeout(tcase, 120);
  tcase_add_checked_fixture(tcase, set_up, tear_down);
  const TTest *const tests[] = {
      records_what_is_large,
      threshold_says_what_is_large,
      file_can_be_replayed,
#ifdef TARN_HAS_LIBDW
      frames_have_function_file_and_line,
      inlined_functions_have_frames,
      hostile_names_stay_in_the_file,
#else
      without_libdw_it_says_so,
#endif
      no_symbols_keeps_offsets,
      no_stacks_records_none,
      hostile_program_is_neutralised,
      status_is_the_programs,
      words_behind_the_program_are_its_own,
      killed_program_leaves_a_trace,
      sigpipe_ends_the_program,
      terminate_is_passed_on,
      interrupt_is_passed_on,
      children_have_files_of_their_own,
      only_file_takes_the_name,
      running_child_keeps_its_file,
      devices_have_files_of_their_own,
      missing_program_is_127,
      what_cannot_be_run_is_126,
      missing_library_is_said,
      library_is_found_beside_the_tool,
      library_with_a_blank_is_refused,
      file_is_not_overwritten,
      file_that_cannot_be_made_is_refused,
      without_out_no_name_is_taken_twice,
#ifdef TARN_STATIC_PROGRAM
      static_program_is_said,
#endif
      wrong_use,
  };
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
    tcase_add_test(tcase, tests[i]);
  suite_add_tcase(suite, tcase);
  return run_suite(suite);
}
