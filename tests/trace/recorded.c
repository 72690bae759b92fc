// The recorded traces that are part of the project: they are read, hold what
// data/README.md says, and no path of the machine that they were made on.
#include <string.h>
#include <sys/stat.h>

#include "support/run.h"
#include "tarn/trace.h"

#define NUMPY TARN_DATA "/traces/numpy-steps.tarn"
#define TRAIN TARN_DATA "/traces/train-step.tarn"

static tarn_trace *read_trace(const char *path) {
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_read(path, NULL, &trace));
  ck_assert_ptr_nonnull(trace);
  ck_assert_str_eq(trace->format, "tarn");
  ck_assert_uint_eq(trace->lost_count, 0);
  ck_assert(!trace->unfinished);
  return trace;
}

static size_t count_frames(const tarn_trace *trace, const char *function) {
  size_t count = 0;
  for (size_t i = 0; i < trace->frame_count; i++)
    count += strcmp(trace->frames[i].function, function) == 0;
  return count;
}

static bool starts_with(const char *text, const char *begin) {
  return strncmp(text, begin, strlen(begin)) == 0;
}

static void assert_neutral(const tarn_trace *trace) {
  for (size_t i = 0; i < trace->frame_count; i++) {
    const char *file = trace->frames[i].file;
    ck_assert_msg(starts_with(file, "/lib") || starts_with(file, "/usr/lib/") ||
                      starts_with(file, "/usr/bin/") ||
                      starts_with(file, "[") || *file == '\0',
                  "frame %zu is of %s", i, file);
  }
}

static void assert_small(const char *path) {
  struct stat file;
  ck_assert_int_eq(stat(path, &file), 0);
  ck_assert_int_le(file.st_size, 300000);
}

TEST(numpy_steps) {
  tarn_trace *trace = read_trace(NUMPY);
  ck_assert_uint_eq(trace->event_count, 787);
  ck_assert_uint_eq(trace->live_peak_bytes, 160322720);
  ck_assert_uint_gt(count_frames(trace, "PyObject_Vectorcall"), 0);
  assert_neutral(trace);
  assert_small(NUMPY);
  tarn_trace_destroy(trace);
}

TEST(train_step) {
  tarn_trace *trace = read_trace(TRAIN);
  ck_assert_uint_eq(trace->event_count, 999);
  ck_assert_uint_eq(trace->live_peak_bytes >> 20, 203);
  ck_assert_uint_gt(count_frames(trace, "c10::alloc_cpu(unsigned long)"), 0);
  assert_neutral(trace);
  assert_small(TRAIN);
  tarn_trace_destroy(trace);
}
