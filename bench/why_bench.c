// Processes that read a snapshot, timed from outside.
//
// The measuring process stays small: its children begin with its pages.
#include "why_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <tarn/trace.h>
#include <unistd.h>

#include "kit/process.h"

enum { PATH_SIZE = 4096, PASSES_MOST = 101 };

static const bench_figure figures[WHY_BENCH_ROWS] = {
    {"opcodes", "", "of the snapshot that is made", NAN, SHEET_AT_MOST},
    {"file", "bytes", "its size", NAN, SHEET_AT_MOST},
    {"read_wall", "s", "tarn_trace_read and tarn_trace_destroy", NAN,
     SHEET_AT_MOST},
    {"read_cpu", "s", "... of the processor", NAN, SHEET_AT_MOST},
    {"read_peak", "bytes", "most that was resident", NAN, SHEET_AT_MOST},
    {"read_opcode", "ns", "read_cpu, by opcode", NAN, SHEET_AT_MOST},
    {"read_peak_byte", "bytes", "read_peak, by byte of the file", NAN,
     SHEET_AT_MOST},
    {"why_wall", "s", "tarn why FILE -o json", 1.0, SHEET_AT_MOST},
    {"why_cpu", "s", "... of the processor", NAN, SHEET_AT_MOST},
    {"why_peak", "bytes", "most that was resident", 400e6, SHEET_AT_MOST},
};

const bench_figure *why_bench_figure_at(why_bench_row row) {
  return &figures[row];
}

typedef struct course {
  const why_bench *bench;
  char path[PATH_SIZE];
  why_bench_result result;
} course;

static bool fail(course *c, const char *what, const char *why) {
  snprintf(c->result.failed, sizeof c->result.failed, "%.150s: %.100s", what,
           why);
  return false;
}

// ---------------------------------------------------------------------------
// Processes
// ---------------------------------------------------------------------------

static bool run_once(course *c, const char *what, const process_spec *spec,
                     process_use *out) {
  char why[PROCESS_TEXT_SIZE];
  pid_t pid = process_start(spec);
  if (pid < 0) return fail(c, what, strerror(errno));
  int status = process_wait(pid, 0, out);
  return process_did_well(status) ||
         fail(c, what, process_explain(status, why));
}

static int compare_doubles(const void *a, const void *b) {
  const double *x = a;
  const double *y = b;
  return (*x > *y) - (*x < *y);
}

static double median(double *values, size_t count) {
  qsort(values, count, sizeof *values, compare_doubles);
  return values[count / 2];
}

// The medians of wall and processor, and the highest peak, into three rows from
// |first| on.
static bool run_often(course *c, const char *what, const process_spec *spec,
                      why_bench_row first) {
  double wall[PASSES_MOST];
  double cpu[PASSES_MOST];
  double *values = c->result.values + first;
  double peak = 0;
  size_t passes = c->bench->passes;
  for (size_t i = 0; i < passes; i++) {
    process_use one;
    if (!run_once(c, what, spec, &one)) return false;
    wall[i] = one.wall;
    cpu[i] = one.cpu;
    peak = one.peak > peak ? one.peak : peak;
  }
  values[0] = median(wall, passes);
  values[1] = median(cpu, passes);
  values[2] = peak;
  return true;
}

// ---------------------------------------------------------------------------
// What they do
// ---------------------------------------------------------------------------

typedef struct made {
  char failed[CHILD_TEXT_SIZE];
} made;

static void write_snapshot(void *context, void *out_result) {
  const course *c = context;
  made *out = out_result;
  if (why_trace_write(c->bench->opcodes, c->path) == TARN_OK) return;
  snprintf(out->failed, sizeof out->failed, "%s", tarn_last_error());
}

static bool make_snapshot(course *c) {
  const char *what = "making the snapshot";
  char why[CHILD_TEXT_SIZE];
  made result;
  if (!child_run(write_snapshot, c, (child_limits){0}, &result, sizeof result,
                 why)) {
    return fail(c, what, why);
  }
  return result.failed[0] == '\0' || fail(c, what, result.failed);
}

static int read_snapshot(void *context) {
  const course *c = context;
  tarn_trace *trace = NULL;
  bool done = tarn_trace_read(c->path, NULL, &trace) == TARN_OK;
  tarn_trace_destroy(trace);
  return done ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------
// The whole
// ---------------------------------------------------------------------------

static bool name_file(course *c) {
  const char *folder = getenv("TMPDIR");
  if (c->bench->keep != NULL) {
    snprintf(c->path, sizeof c->path, "%s", c->bench->keep);
    return true;
  }
  snprintf(c->path, sizeof c->path, "%s/tarn-why-XXXXXX",
           folder != NULL ? folder : "/tmp");
  int fd = mkstemp(c->path);
  if (fd < 0) return fail(c, c->path, strerror(errno));
  close(fd);
  return true;
}

static bool look_at_file(course *c) {
  struct stat info;
  int fd = open(c->path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(c, c->path, strerror(errno));
  bool known = fstat(fd, &info) == 0;
  size_t size = known ? (size_t)info.st_size : 0;
  void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (bytes == MAP_FAILED) return fail(c, c->path, strerror(errno));
  c->result.values[WHY_BENCH_OPCODES] = (double)why_trace_opcodes(bytes, size);
  c->result.values[WHY_BENCH_FILE] = (double)size;
  munmap(bytes, size);
  return true;
}

static bool measure(course *c) {
  double *values = c->result.values;
  const char *words[] = {"/proc/self/exe", "why", c->path, "-o", "json", NULL};
  process_spec reading = {.run = read_snapshot, .context = c};
  process_spec asking = {.words = words, .out = PROCESS_NOWHERE};
  if (!make_snapshot(c) || !look_at_file(c) ||
      !run_often(c, "reading it", &reading, WHY_BENCH_READ_WALL)) {
    return false;
  }
  values[WHY_BENCH_READ_PER_OPCODE] =
      values[WHY_BENCH_READ_CPU] * 1e9 / values[WHY_BENCH_OPCODES];
  values[WHY_BENCH_READ_PER_BYTE] =
      values[WHY_BENCH_READ_PEAK] / values[WHY_BENCH_FILE];
  return run_often(c, "tarn why", &asking, WHY_BENCH_WHY_WALL);
}

why_bench_result why_bench_run(const why_bench *bench) {
  course c = {.bench = bench};
  for (size_t i = 0; i < WHY_BENCH_ROWS; i++)
    c.result.values[i] = NAN;
  if (!name_file(&c)) return c.result;
  (void)measure(&c);
  if (bench->keep == NULL) (void)unlink(c.path);
  return c.result;
}
