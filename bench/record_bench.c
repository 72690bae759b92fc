// Runs of the work with and without the recorder, and runs that are killed.
#include "record_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kit/process.h"
#include "kit/tool.h"
#include "probe.h"
#include "record_python.h"
#include "tarn/tarn.h"

enum { KILLS = 10, PYTHON_PART = 20 };

typedef enum figure {
  TOUCHED_NONE,
  TOUCHED_PLAIN,
  TOUCHED_STACKS,
  BARE_NONE,
  BARE_PLAIN,
  BARE_STACKS,
  BARE_MORE,
  EVENT_BYTES,
  PYTHON,
  PYTHON_STACKS,
  PYTHON_FRAMES,
  PYTHON_MEMRAY,
  KILLED,
} figure;

static const bench_figure figures[RECORD_BENCH_FIGURES] = {
    {"touched", "ns", "an allocation that is written to, not recorded", NAN,
     SHEET_AT_MOST},
    {"touched_no_stacks", "of touched", "the same, recorded without stacks",
     1.05, SHEET_AT_MOST},
    {"touched_stacks", "of touched", "the same, recorded with stacks", 1.15,
     SHEET_AT_MOST},
    {"bare", "ns", "an allocation that nothing touches, not recorded", NAN,
     SHEET_AT_MOST},
    {"bare_no_stacks", "of bare", "the same, recorded without stacks", NAN,
     SHEET_AT_MOST},
    {"bare_stacks", "of bare", "the same, recorded with stacks", NAN,
     SHEET_AT_MOST},
    {"stacks", "ns", "what recording with stacks adds to that", NAN,
     SHEET_AT_MOST},
    {"event", "bytes", "of the file, for each event of it, with stacks", NAN,
     SHEET_AT_MOST},
    {"python", "ns", "an allocation of a Python program, not recorded", NAN,
     SHEET_AT_MOST},
    {"python_stacks", "of python", "the same, recorded without Python's frames",
     NAN, SHEET_AT_MOST},
    {"python_frames", "of python_stacks", "the same, recorded with them", 1.2,
     SHEET_AT_MOST},
    {"python_memray", "of python_stacks", "the same under memray", NAN,
     SHEET_AT_MOST},
    {"killed", "bytes", "the most that was missing of ten that were killed",
     4096, SHEET_AT_MOST},
};

const bench_figure *record_bench_figure_at(size_t index) {
  return &figures[index];
}

typedef enum way { NONE, PLAIN, STACKS, WAYS } way;

typedef struct runner {
  const record_bench *bench;
  record_bench_result *result;
  char folder[RECORD_BENCH_TEXT];
  char out[RECORD_BENCH_TEXT + 16];
  double *ns[WAYS];  // of an allocation, in each pass
  double *spare;     // as many
} runner;

static bool fail(const runner *r, const char *what, const char *why) {
  snprintf(r->result->failed, sizeof r->result->failed, "%.64s: %.180s", what,
           why);
  return false;
}

// ---------------------------------------------------------------------------
// A run
// ---------------------------------------------------------------------------

typedef struct run_context {
  const runner *runner;
  way how;
} run_context;

// In the new process.
static void set_recorder(void *context) {
  const run_context *c = context;
  if (c->how == NONE) return;
  setenv("LD_PRELOAD", c->runner->bench->recorder, 1);
  setenv("TARN_RECORD_OUT", c->runner->out, 1);
  setenv("TARN_RECORD_THRESHOLD", "65536", 1);
  setenv("TARN_RECORD_STACKS", c->how == STACKS ? "1" : "0", 1);
  unsetenv("TARN_RECORD_PID");
}

static pid_t start(const runner *r, way how, const char *work, int out_fd) {
  char allocations[32];
  const char *words[] = {r->bench->program, "bench", "record",
                         "--work",          work,    "--allocations",
                         allocations,       NULL};
  run_context c = {r, how};
  process_spec spec = {
      .words = words, .prepare = set_recorder, .context = &c, .out = out_fd};
  snprintf(allocations, sizeof allocations, "%llu",
           (unsigned long long)r->bench->allocations);
  (void)unlink(r->out);
  return process_start(&spec);
}

// Whether the recorder has recorded: without a file there is no cost of one.
static bool has_recorded(const runner *r, const char *work) {
  struct stat file;
  if (stat(r->out, &file) == 0 && file.st_size > 0) return true;
  return fail(r, work, "the recorder has written nothing");
}

static bool time_run(const runner *r, way how, const char *work,
                     double *out_ns) {
  process_use use = {0};
  pid_t pid = start(r, how, work, 0);
  if (pid < 0) return fail(r, work, strerror(errno));
  int status = process_wait(pid, 0, &use);
  *out_ns = use.cpu * 1e9 / (double)r->bench->allocations;
  if (status != 0) return fail(r, work, "it did not end as it should");
  return how == NONE || has_recorded(r, work);
}

// ---------------------------------------------------------------------------
// Passes
// ---------------------------------------------------------------------------

static void tell_step(const runner *r, const char *what) {
  if (r->bench->step != NULL) r->bench->step(r->bench->context, what);
}

static bool run_pass(const runner *r, const char *work, size_t pass) {
  for (size_t i = 0; i < WAYS; i++) {
    way how = (way)(pass % 2 == 0 ? i : WAYS - 1 - i);
    tell_step(r, work);
    if (!time_run(r, how, work, &r->ns[how][pass])) return false;
  }
  return true;
}

static double median_ratio(const runner *r, way how) {
  for (size_t i = 0; i < r->bench->passes; i++)
    r->spare[i] = r->ns[how][i] / r->ns[NONE][i];
  return probe_median(r->spare, r->bench->passes);
}

static double median_more(const runner *r) {
  for (size_t i = 0; i < r->bench->passes; i++)
    r->spare[i] = r->ns[STACKS][i] - r->ns[NONE][i];
  return probe_median(r->spare, r->bench->passes);
}

// |first|: of the three figures of the work. A median sorts what it is given,
// so that of the time comes last.
static bool run_work(const runner *r, const char *work, figure first) {
  double *values = r->result->values;
  for (size_t i = 0; i < r->bench->passes; i++) {
    if (!run_pass(r, work, i)) return false;
  }
  values[first + PLAIN] = median_ratio(r, PLAIN);
  values[first + STACKS] = median_ratio(r, STACKS);
  if (first == BARE_NONE) values[BARE_MORE] = median_more(r);
  values[first] = probe_median(r->ns[NONE], r->bench->passes);
  return true;
}

// ---------------------------------------------------------------------------
// Killing
// ---------------------------------------------------------------------------

// The last number that it reported, when it was killed after |wanted|.
static uint64_t listen(int fd, pid_t pid, uint64_t wanted) {
  uint64_t told = 0;
  uint64_t next;
  while (read(fd, &next, sizeof next) == (ssize_t)sizeof next) {
    told = next;
    if (told == wanted) (void)kill(pid, SIGKILL);
  }
  return told;
}

static bool kill_after(const runner *r, uint64_t wanted, uint64_t *out_told) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(r, "told", strerror(errno));
  pid_t pid = start(r, STACKS, "told", ends[1]);
  close(ends[1]);
  *out_told = pid > 0 ? listen(ends[0], pid, wanted) : 0;
  close(ends[0]);
  if (pid > 0) (void)process_wait(pid, 0, NULL);
  return *out_told >= wanted || fail(r, "told", "it ended too soon");
}

// Bytes of all events that were reported but are not in the file, if each has
// as many as those in the file.
static bool count_lost(const runner *r, uint64_t told) {
  tarn_trace *trace = NULL;
  double *values = r->result->values;
  if (tarn_trace_read(r->out, NULL, &trace) != TARN_OK)
    return fail(r, "told", tarn_last_error());
  uint64_t found = trace->request_count;
  double missing = told > found ? (double)(told - found) : 0;
  double lost = missing * values[EVENT_BYTES];
  if (isnan(values[KILLED]) || lost > values[KILLED]) values[KILLED] = lost;
  tarn_trace_destroy(trace);
  return true;
}

static bool run_kills(const runner *r) {
  tell_step(r, "killed");
  for (uint64_t i = 0; i < KILLS; i++) {
    uint64_t told = 0;
    if (!kill_after(r, 1 + i * i * 397, &told) || !count_lost(r, told))
      return false;
  }
  return true;
}

// Of a run that ended, whose file has no pages to spare.
static bool weigh_events(const runner *r) {
  double ns;
  struct stat file;
  if (!time_run(r, STACKS, "bare", &ns)) return false;
  if (stat(r->out, &file) != 0) return fail(r, "bare", strerror(errno));
  r->result->values[EVENT_BYTES] =
      (double)file.st_size / (2 * (double)r->bench->allocations);
  return true;
}

// ---------------------------------------------------------------------------
// Python
// ---------------------------------------------------------------------------

static bool run_python_pass(const runner *r, const record_python *p,
                            size_t pass, double *ns[]) {
  char why[RECORD_PYTHON_TEXT];
  for (int i = 0; i < RECORD_PYTHON_WAYS; i++) {
    int python = pass % 2 == 0 ? i : RECORD_PYTHON_WAYS - 1 - i;
    tell_step(r, "python");
    if (python == RECORD_PYTHON_MEMRAY && !p->has_memray) continue;
    if (!record_python_run(p, (record_python_way)python, &ns[python][pass],
                           why))
      return fail(r, "python", why);
  }
  return true;
}

static double median_over(const runner *r, const double *of,
                          const double *over) {
  for (size_t i = 0; i < r->bench->passes; i++)
    r->spare[i] = of[i] / over[i];
  return probe_median(r->spare, r->bench->passes);
}

static bool run_python_passes(const runner *r, const record_python *p,
                              double *ns[]) {
  double *values = r->result->values;
  for (size_t i = 0; i < r->bench->passes; i++) {
    if (!run_python_pass(r, p, i, ns)) return false;
  }
  const double *stacks = ns[RECORD_PYTHON_STACKS];
  values[PYTHON_STACKS] = median_over(r, stacks, ns[RECORD_PYTHON_NONE]);
  values[PYTHON_FRAMES] = median_over(r, ns[RECORD_PYTHON_FRAMES], stacks);
  if (p->has_memray)
    values[PYTHON_MEMRAY] = median_over(r, ns[RECORD_PYTHON_MEMRAY], stacks);
  values[PYTHON] = probe_median(ns[RECORD_PYTHON_NONE], r->bench->passes);
  return true;
}

static void miss(const runner *r, figure from, figure to, const char *what) {
  for (figure i = from; i <= to; i++) {
    snprintf(r->result->missing[i], RECORD_BENCH_TEXT, "not installed: %s",
             what);
  }
}

static bool run_python(const runner *r) {
  char why[RECORD_PYTHON_TEXT];
  double *ns[RECORD_PYTHON_WAYS];
  record_python p = {.recorder = r->bench->recorder,
                     .allocations = r->bench->allocations / PYTHON_PART};
  if (!record_python_begin(&p, r->folder, why)) {
    if (p.program[0] != '\0') return fail(r, "python", why);
    miss(r, PYTHON, PYTHON_MEMRAY, "python3");
    return true;
  }
  if (!p.has_memray) miss(r, PYTHON_MEMRAY, PYTHON_MEMRAY, "memray");
  for (size_t i = 0; i < RECORD_PYTHON_WAYS; i++)
    ns[i] = tool_array(r->bench->passes, sizeof(double));
  bool did = run_python_passes(r, &p, ns);
  for (size_t i = 0; i < RECORD_PYTHON_WAYS; i++)
    free(ns[i]);
  record_python_end(&p);
  return did;
}

// ---------------------------------------------------------------------------
// All of it
// ---------------------------------------------------------------------------

size_t record_bench_steps(const record_bench *bench) {
  return ((size_t)2 * WAYS + RECORD_PYTHON_WAYS) * bench->passes + 1;
}

static void run_all(runner *r) {
  if (run_work(r, "touched", TOUCHED_NONE) && run_work(r, "bare", BARE_NONE) &&
      weigh_events(r) && run_python(r)) {
    (void)run_kills(r);
  }
}

record_bench_result record_bench_run(const record_bench *bench) {
  record_bench_result result = {0};
  runner r = {.bench = bench, .result = &result};
  const char *tmp = getenv("TMPDIR");
  for (size_t i = 0; i < RECORD_BENCH_FIGURES; i++)
    result.values[i] = NAN;
  snprintf(r.folder, sizeof r.folder, "%s/tarn-bench-XXXXXX",
           tmp != NULL ? tmp : "/tmp");
  if (mkdtemp(r.folder) == NULL) {
    fail(&r, r.folder, strerror(errno));
    return result;
  }
  snprintf(r.out, sizeof r.out, "%s/trace", r.folder);
  for (size_t i = 0; i < WAYS; i++)
    r.ns[i] = tool_array(bench->passes, sizeof(double));
  r.spare = tool_array(bench->passes, sizeof(double));
  run_all(&r);
  for (size_t i = 0; i < WAYS; i++)
    free(r.ns[i]);
  free(r.spare);
  (void)unlink(r.out);
  (void)rmdir(r.folder);
  return result;
}
