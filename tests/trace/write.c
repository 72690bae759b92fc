// Writing traces: wrong use, failing sinks, and files that are complete or
// absent.
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/effort.h"
#include "support/faults.h"
#include "support/run.h"
#include "support/tool_run.h"
#include "support/trace_written.h"
#include "trace/writers.h"

static const tarn_trace_format formats[] = {TARN_TRACE_FORMAT_TARN,
                                            TARN_TRACE_FORMAT_PYTORCH,
                                            TARN_TRACE_FORMAT_PERFETTO};
enum { FORMATS = sizeof formats / sizeof *formats };

static tarn_trace *trace;

static void begin(void) {
  tool_files_begin();
  trace = NULL;
  assert_ok(tarn_trace_make("@random", &trace));
}

static void end(void) {
  tarn_trace_destroy(trace);
  ck_assert_uint_eq(tarn_host_memory(), 0);
  tool_files_end();
}

static size_t files_there(void) {
  glob_t found = {0};
  int error = glob(tool_file("*"), 0, NULL, &found);
  size_t count = error == 0 ? found.gl_pathc : 0;
  globfree(&found);
  return count;
}

// --- wrong use -------------------------------------------------------------

TEST(names_of_formats) {
  ck_assert_str_eq(tarn_trace_format_name(TARN_TRACE_FORMAT_TARN), "tarn");
  ck_assert_str_eq(tarn_trace_format_name(TARN_TRACE_FORMAT_PYTORCH),
                   "pytorch");
  ck_assert_str_eq(tarn_trace_format_name(TARN_TRACE_FORMAT_PERFETTO),
                   "perfetto");
  ck_assert_ptr_null(tarn_trace_format_name((tarn_trace_format)0));
  ck_assert_ptr_null(tarn_trace_format_name((tarn_trace_format)4));
  ck_assert_ptr_null(tarn_trace_format_name((tarn_trace_format)-1));
}

TEST(wrong_arguments) {
  const tarn_trace_format none = (tarn_trace_format)9;
  const tarn_trace_format format = TARN_TRACE_FORMAT_PYTORCH;
  written w = {0};
  assert_status(tarn_trace_write(NULL, format, "x"), TARN_E_INVALID);
  assert_error_says("NULL");
  assert_status(tarn_trace_write(trace, format, NULL), TARN_E_INVALID);
  assert_status(tarn_trace_write(trace, none, tool_file("x")), TARN_E_INVALID);
  assert_error_says("no format has the number 9");
  assert_status(tarn_trace_write_to(NULL, format, written_sink, &w),
                TARN_E_INVALID);
  assert_status(tarn_trace_write_to(trace, format, NULL, &w), TARN_E_INVALID);
  assert_status(tarn_trace_write_to(trace, none, written_sink, &w),
                TARN_E_INVALID);
  ck_assert_uint_eq(w.calls, 0);
  ck_assert_uint_eq(files_there(), 0);
}

// --- sinks -----------------------------------------------------------------

static size_t largest;

static tarn_status measure(void *context, const void *bytes, size_t size) {
  if (size > largest) largest = size;
  return written_sink(context, bytes, size);
}

TEST_LOOP(pieces_are_small, FORMATS) {
  written w = {0};
  largest = 0;
  assert_ok(tarn_trace_write_to(trace, formats[_i], measure, &w));
  ck_assert_uint_gt(w.calls, 1);
  ck_assert_uint_le(largest, 64 << 10);
  written_free(&w);
}

// The call that fails is the last, and its status is the whole's. Where that is
// dear, every seventh call and the last ones.
TEST_LOOP(a_sink_fails_at_every_call, FORMATS) {
  enum { STEP = EFFORT(1, 7) };
  written whole = written_make(trace, formats[_i]);
  ck_assert_uint_gt(whole.calls, 1);
  for (size_t n = 1; n <= whole.calls;
       n += n + STEP <= whole.calls ? STEP : 1) {
    written w = {.fails_at = n};
    assert_status(tarn_trace_write_to(trace, formats[_i], written_sink, &w),
                  TARN_E_TIMEOUT);
    ck_assert_uint_eq(w.calls, n);
    ck_assert_mem_eq(w.bytes == NULL ? "" : w.bytes, whole.bytes, w.size);
    written_free(&w);
  }
  written_free(&whole);
}

static tarn_status take_nothing(void *context, const void *bytes, size_t size) {
  (void)bytes;
  *(size_t *)context += size;
  return TARN_OK;
}

// Any sizes add up; what is larger than the room goes through it in pieces.
TEST(gathering) {
  static char large[3 * TARN__SINK_BYTES + 5];
  size_t taken = 0;
  tarn__trace_sink sink;
  assert_ok(tarn__sink_init(&sink, take_nothing, &taken));
  tarn__sink_put(&sink, NULL, 0);
  tarn__sink_byte(&sink, 'a');
  tarn__sink_put(&sink, large, sizeof large);
  tarn__sink_format(&sink, "%d%s", 12, "3");
  tarn__sink_put(&sink, large, TARN__SINK_BYTES);
  ck_assert_uint_eq(sink.written, 1 + sizeof large + 3 + TARN__SINK_BYTES);
  ck_assert_uint_lt(taken, sink.written);
  uint64_t sum = sink.written;
  assert_ok(tarn__sink_finish(&sink));
  ck_assert_uint_eq(taken, sum);
}

// --- files -----------------------------------------------------------------

static void assert_whole(const char *path, tarn_trace_format format) {
  written w = written_make(trace, format);
  char *text = NULL;
  FILE *in = fopen(path, "rb");
  ck_assert_ptr_nonnull(in);
  text = malloc(w.size + 1);
  ck_assert_ptr_nonnull(text);
  ck_assert_uint_eq(fread(text, 1, w.size + 1, in), w.size);
  ck_assert_mem_eq(text, w.bytes, w.size);
  fclose(in);
  free(text);
  written_free(&w);
}

TEST_LOOP(a_file_is_made_and_replaced, FORMATS) {
  struct stat before;
  struct stat after;
  const char *path = tool_file("trace");
  assert_ok(tarn_trace_write(trace, formats[_i], path));
  assert_whole(path, formats[_i]);
  ck_assert_int_eq(stat(path, &before), 0);
  // A reader that has the old file open goes on reading it.
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ck_assert_int_ge(fd, 0);
  assert_ok(tarn_trace_write(trace, formats[_i], path));
  ck_assert_int_eq(stat(path, &after), 0);
  ck_assert(before.st_ino != after.st_ino);
  ck_assert_int_eq(fstat(fd, &after), 0);
  ck_assert_int_eq(after.st_size, before.st_size);
  close(fd);
  ck_assert_uint_eq(files_there(), 1);
}

// Also one to a file that is open, as /dev/stdout may be.
TEST_LOOP(a_link_stays_one, 2) {
  struct stat info;
  char *target = strdup(tool_file("target"));
  ck_assert_ptr_nonnull(target);
  int fd = open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ck_assert_int_ge(fd, 0);
  char name[64];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  const char *to = _i == 0 ? "target" : name;
  ck_assert_int_eq(symlink(to, tool_file("link")), 0);
  assert_ok(
      tarn_trace_write(trace, TARN_TRACE_FORMAT_PYTORCH, tool_file("link")));
  close(fd);
  ck_assert_int_eq(lstat(tool_file("link"), &info), 0);
  ck_assert(S_ISLNK(info.st_mode));
  ck_assert_int_eq(lstat(target, &info), 0);
  ck_assert(S_ISREG(info.st_mode));
  assert_whole(target, TARN_TRACE_FORMAT_PYTORCH);
  ck_assert_uint_eq(files_there(), 2);
  free(target);
}

TEST(a_link_to_nothing) {
  ck_assert_int_eq(symlink("nothing", tool_file("link")), 0);
  assert_status(
      tarn_trace_write(trace, TARN_TRACE_FORMAT_PYTORCH, tool_file("link")),
      TARN_E_IO);
  assert_error_says("link: cannot follow the link: No such file");
  ck_assert_uint_eq(files_there(), 1);
}

TEST(modes_follow_the_mask) {
  struct stat info;
  mode_t old = umask(027);
  assert_ok(
      tarn_trace_write(trace, TARN_TRACE_FORMAT_PYTORCH, tool_file("trace")));
  umask(old);
  ck_assert_int_eq(stat(tool_file("trace"), &info), 0);
  ck_assert_int_eq(info.st_mode & 0777, 0640);
}

TEST_LOOP(no_such_folder, FORMATS) {
  assert_status(tarn_trace_write(trace, formats[_i], tool_file("no/trace")),
                TARN_E_IO);
  assert_error_says("no/trace: cannot make it: No such file");
  ck_assert_uint_eq(files_there(), 0);
}

TEST(a_folder_is_no_file) {
  ck_assert_int_eq(mkdir(tool_file("folder"), 0700), 0);
  assert_status(
      tarn_trace_write(trace, TARN_TRACE_FORMAT_PYTORCH, tool_file("folder")),
      TARN_E_IO);
  assert_error_says("folder: cannot write to it: Is a directory");
  ck_assert_uint_eq(files_there(), 1);
}

TEST(an_unwritable_folder) {
  if (geteuid() == 0) {
    note_skipped("an_unwritable_folder", "root may write anywhere");
    return;
  }
  ck_assert_int_eq(mkdir(tool_file("closed"), 0500), 0);
  assert_status(tarn_trace_write(trace, TARN_TRACE_FORMAT_PYTORCH,
                                 tool_file("closed/trace")),
                TARN_E_IO);
  assert_error_says("Permission denied");
}

// /dev/full is a disk without room; it is written to as it is.
TEST_LOOP(a_full_disk, FORMATS) {
  if (access("/dev/full", W_OK) != 0) {
    note_skipped("a_full_disk", "there is no /dev/full");
    return;
  }
  assert_status(tarn_trace_write(trace, formats[_i], "/dev/full"), TARN_E_IO);
  assert_error_says("/dev/full: cannot write to it: No space left on device");
}

static void *drain(void *context) {
  size_t *sum = context;
  char bytes[4096];
  int fd = open(tool_file("pipe"), O_RDONLY | O_CLOEXEC);
  ssize_t got = 0;
  while (fd >= 0 && (got = read(fd, bytes, sizeof bytes)) > 0)
    *sum += (size_t)got;
  if (fd >= 0) close(fd);
  return NULL;
}

TEST_LOOP(a_pipe_is_written_to, FORMATS) {
  pthread_t reader;
  struct stat info;
  size_t sum = 0;
  written w = written_make(trace, formats[_i]);
  ck_assert_int_eq(mkfifo(tool_file("pipe"), 0600), 0);
  char *path = strdup(tool_file("pipe"));
  ck_assert_ptr_nonnull(path);
  ck_assert_int_eq(pthread_create(&reader, NULL, drain, &sum), 0);
  assert_ok(tarn_trace_write(trace, formats[_i], path));
  ck_assert_int_eq(pthread_join(reader, NULL), 0);
  ck_assert_uint_eq(sum, w.size);
  ck_assert_int_eq(stat(path, &info), 0);
  ck_assert(S_ISFIFO(info.st_mode));
  free(path);
  written_free(&w);
}

// --- failures --------------------------------------------------------------

static void write_once(void *context) {
  const tarn_trace_format *format = context;
  tarn_status status = tarn_trace_write(trace, *format, tool_file("trace"));
  require(status == TARN_OK || status == TARN_E_NOMEM);
}

// After each failure the old file is there, and no other.
TEST_LOOP(no_memory, FORMATS) {
  tarn_trace_format format = formats[_i];
  assert_ok(tarn_trace_write(trace, format, tool_file("trace")));
  ck_assert_uint_gt(faults_sweep(write_once, &format), 4);
  assert_whole(tool_file("trace"), format);
  ck_assert_uint_eq(files_there(), 1);
}

FIXTURE(begin, end);

int main(void) {
  faults_install();
  return run_tests();
}
