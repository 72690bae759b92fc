// Runs programs under allocators, pass by pass, and takes the medians.
#include "preload_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kit/process.h"
#include "kit/tool.h"
#include "probe.h"

enum { STEPS_MOST = 4096 };

// Sonames of the allocators, as they are preloaded, and Debian's packages.
typedef struct library {
  const char *allocator;
  const char *sonames[3];
  const char *package;
} library;

static const library libraries[] = {
    {"jemalloc", {"libjemalloc.so.2"}, "libjemalloc2"},
    {"tcmalloc", {"libtcmalloc_minimal.so.4"}, "libtcmalloc-minimal4"},
    {"mimalloc",
     {"libmimalloc.so.2.0", "libmimalloc.so.2", "libmimalloc.so.3"},
     "libmimalloc2.0"},
};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

// What a column preloads, and why it cannot.
typedef struct column {
  const char *preloaded;
  char missing[PRELOAD_TEXT];  // "": it can
} column;

// A program's command line, and why it cannot be run.
typedef struct row {
  preload_words words;
  char missing[PRELOAD_TEXT];  // "": it can
} row;

typedef struct runner {
  const preload_bench *bench;
  column *columns;
  row *rows;
  char folder[PRELOAD_TEXT];
  char report[PRELOAD_TEXT + 16];
  double *steps;   // seconds of each
  double *spare;   // one value of each pass
  double *values;  // of program, column, value, pass
} runner;

// --- one process -----------------------------------------------------------

typedef struct run_context {
  const char *preloaded;  // NULL: nothing
  const char *pool;
  const char *report;
  uint64_t threads;  // of libraries for matrices, which yield while they wait
} run_context;

static void set_threads(uint64_t threads) {
  static const char *const names[] = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS",
                                      "MKL_NUM_THREADS"};
  char text[32];
  snprintf(text, sizeof text, "%llu", (unsigned long long)threads);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    setenv(names[i], text, 1);
}

// In the new process.
static void set_allocator(void *context) {
  const run_context *c = context;
  unsetenv("LD_PRELOAD");
  unsetenv("TARN_POOL");
  unsetenv("TARN_PRELOAD_FROM");
  if (c->threads != 0) set_threads(c->threads);
  if (c->preloaded != NULL) setenv("LD_PRELOAD", c->preloaded, 1);
  if (c->pool != NULL) setenv("TARN_POOL", c->pool, 1);
  if (c->report != NULL) setenv("TARN_PRELOAD_REPORT", c->report, 1);
}

static int run_quietly(const char *const *words, run_context *c) {
  process_spec spec = {.words = words,
                       .prepare = set_allocator,
                       .context = c,
                       .out = PROCESS_NOWHERE,
                       .err = PROCESS_NOWHERE};
  pid_t pid = process_start(&spec);
  return pid > 0 ? process_wait(pid, 0, NULL) : -1;
}

// What its steps have told.
typedef struct steps {
  size_t count;
  double first_faults;
  double last_faults;
} steps;

static steps read_steps(runner *r, int fd) {
  char line[512];
  steps s = {0};
  FILE *in = fdopen(fd, "r");
  if (in == NULL) {
    close(fd);
    return s;
  }
  while (fgets(line, sizeof line, in) != NULL) {
    double seconds = 0;
    double faults = 0;
    if (sscanf(line, "step %lf %lf", &seconds, &faults) != 2) continue;
    if (s.count == 0) s.first_faults = faults;
    s.last_faults = faults;
    if (s.count < STEPS_MOST) r->steps[s.count++] = seconds;
  }
  fclose(in);
  return s;
}

// --- the values of a run ---------------------------------------------------

static void note_steps(runner *r, const steps *s, double *values) {
  values[PRELOAD_FIRST_S] = s->count > 0 ? r->steps[0] : NAN;
  values[PRELOAD_SECOND_S] = s->count > 1 ? r->steps[1] : NAN;
  values[PRELOAD_STEADY_S] =
      s->count > 2 ? probe_median(r->steps + 2, s->count - 2) : NAN;
  if (s->count > 0) values[PRELOAD_FAULTS] = s->last_faults - s->first_faults;
}

// The last number of |key| in the report.
static double reported(const char *path, const char *key) {
  char line[1024];
  char quoted[64];
  double value = NAN;
  FILE *in = fopen(path, "r");
  snprintf(quoted, sizeof quoted, "\"%s\": ", key);
  while (in != NULL && fgets(line, sizeof line, in) != NULL) {
    const char *at = strstr(line, quoted);
    if (at != NULL) value = strtod(at + strlen(quoted), NULL);
  }
  if (in != NULL) fclose(in);
  return value;
}

static void note_use(const process_use *use, double *values) {
  values[PRELOAD_CPU_S] = use->cpu;
  values[PRELOAD_SYSTEM_S] = use->system;
  values[PRELOAD_FAULTS] = use->faults;
  values[PRELOAD_PEAK] = use->peak;
}

static bool fail(preload_result *out, const char *text) {
  snprintf(out->failed, sizeof out->failed, "%s", text);
  return false;
}

static bool run_once(runner *r, const char *const *words, run_context *c,
                     double *values, preload_result *out) {
  int ends[2];
  char why[PROCESS_TEXT_SIZE];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(out, strerror(errno));
  (void)unlink(r->report);
  process_spec spec = {
      .words = words, .prepare = set_allocator, .context = c, .out = ends[1]};
  double begin = process_clock();
  pid_t pid = process_start(&spec);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return fail(out, strerror(errno));
  }
  process_use use = {0};
  steps s = read_steps(r, ends[0]);
  int status = process_wait(pid, 0, &use);
  note_use(&use, values);
  values[PRELOAD_RUN_S] = process_clock() - begin;
  values[PRELOAD_SHARE] =
      reported(r->report, "hits") / reported(r->report, "allocs");
  note_steps(r, &s, values);
  return process_did_well(status) || fail(out, process_explain(status, why));
}

// --- what there is ---------------------------------------------------------

// Whether |soname| can be preloaded, into this tool.
static bool is_there(const runner *r, const char *soname) {
  const char *words[] = {
      r->bench->scale.tool, "bench", "preload", "--work", "probe", NULL};
  run_context c = {.preloaded = soname};
  return process_did_well(run_quietly(words, &c));
}

static void find_library(const runner *r, const library *l, column *out) {
  for (size_t i = 0; i < 3 && l->sonames[i] != NULL; i++) {
    out->preloaded = l->sonames[i];
    if (is_there(r, l->sonames[i])) return;
  }
  snprintf(out->missing, sizeof out->missing, "not installed: %s (package %s)",
           l->sonames[0], l->package);
}

static void find_column(const runner *r, const preload_column *from,
                        column *out) {
  for (size_t i = 0; i < LIBRARIES; i++) {
    if (strcmp(libraries[i].allocator, from->allocator) == 0) {
      find_library(r, &libraries[i], out);
    }
  }
  if (strcmp(from->allocator, "tarn") != 0) return;
  out->preloaded = r->bench->heap;
  if (is_there(r, out->preloaded)) return;
  snprintf(out->missing, sizeof out->missing, "%s cannot be preloaded",
           out->preloaded);
}

static void find_row(const runner *r, const char *name, row *out) {
  preload_words *check = tool_array(1, sizeof *check);
  run_context c = {.preloaded = NULL};
  const char *missing = "";
  preload_program(name, &r->bench->scale, &out->words, check, &missing);
  if (check->count > 0 && !process_did_well(run_quietly(check->words, &c))) {
    snprintf(out->missing, sizeof out->missing, "%s", missing);
  }
  free(check);
}

// --- passes ----------------------------------------------------------------

static double *values_at(const runner *r, size_t program, size_t at,
                         uint64_t pass) {
  size_t cell = program * r->bench->column_count + at;
  return r->values + (cell * r->bench->passes + pass) * PRELOAD_VALUES;
}

static void run_cell(runner *r, size_t program, size_t at, uint64_t pass,
                     preload_result *out) {
  const preload_bench *b = r->bench;
  bool tarn = strcmp(b->columns[at].allocator, "tarn") == 0;
  run_context c = {.preloaded = r->columns[at].preloaded,
                   .pool = b->columns[at].pool,
                   .report = tarn ? r->report : NULL,
                   .threads = b->scale.threads};
  if (out->failed[0] != '\0') return;
  if (b->step != NULL) b->step(b->context, b->programs[program]);
  (void)run_once(r, r->rows[program].words.words, &c,
                 values_at(r, program, at, pass), out);
}

static void run_pass(runner *r, uint64_t pass, preload_result *out) {
  const preload_bench *b = r->bench;
  for (size_t i = 0; i < b->program_count; i++) {
    for (size_t j = 0; j < b->column_count; j++) {
      size_t at = pass % 2 == 0 ? j : b->column_count - 1 - j;
      run_cell(r, i, at, pass, &out[i * b->column_count + at]);
    }
  }
}

static void take_medians(runner *r, size_t program, size_t at,
                         preload_result *out) {
  for (size_t value = 0; value < PRELOAD_VALUES; value++) {
    for (uint64_t pass = 0; pass < r->bench->passes; pass++)
      r->spare[pass] = values_at(r, program, at, pass)[value];
    out->values[value] =
        out->failed[0] == '\0' ? probe_median(r->spare, r->bench->passes) : NAN;
  }
}

// --- all of it -------------------------------------------------------------

static void find_all(runner *r, preload_result *out) {
  const preload_bench *b = r->bench;
  for (size_t i = 0; i < b->column_count; i++)
    find_column(r, &b->columns[i], &r->columns[i]);
  for (size_t i = 0; i < b->program_count; i++) {
    find_row(r, b->programs[i], &r->rows[i]);
    for (size_t j = 0; j < b->column_count; j++) {
      const char *missing = r->rows[i].missing[0] != '\0'
                                ? r->rows[i].missing
                                : r->columns[j].missing;
      snprintf(out[i * b->column_count + j].failed, PRELOAD_TEXT, "%s",
               missing);
    }
  }
}

static void run_all(runner *r, preload_result *out) {
  const preload_bench *b = r->bench;
  find_all(r, out);
  for (uint64_t pass = 0; pass < b->passes; pass++)
    run_pass(r, pass, out);
  for (size_t i = 0; i < b->program_count; i++) {
    for (size_t j = 0; j < b->column_count; j++)
      take_medians(r, i, j, &out[i * b->column_count + j]);
  }
}

static bool make_folder(runner *r) {
  const char *tmp = getenv("TMPDIR");
  snprintf(r->folder, sizeof r->folder, "%s/tarn-bench-XXXXXX",
           tmp != NULL ? tmp : "/tmp");
  if (mkdtemp(r->folder) == NULL) return false;
  snprintf(r->report, sizeof r->report, "%s/report", r->folder);
  return true;
}

static void fail_all(const preload_bench *b, const char *folder,
                     preload_result *out) {
  const char *why = strerror(errno);
  for (size_t i = 0; i < b->program_count * b->column_count; i++) {
    snprintf(out[i].failed, PRELOAD_TEXT, "%.180s: %.60s", folder, why);
    for (size_t value = 0; value < PRELOAD_VALUES; value++)
      out[i].values[value] = NAN;
  }
}

void preload_bench_run(const preload_bench *b, preload_result *out) {
  size_t cells = b->program_count * b->column_count;
  runner r = {.bench = b};
  if (!make_folder(&r)) {
    fail_all(b, r.folder, out);
    return;
  }
  r.steps = tool_array(STEPS_MOST, sizeof *r.steps);
  r.spare = tool_array(b->passes, sizeof *r.spare);
  r.values = tool_array(cells * b->passes * PRELOAD_VALUES, sizeof *r.values);
  r.columns = tool_array(b->column_count, sizeof *r.columns);
  r.rows = tool_array(b->program_count, sizeof *r.rows);
  run_all(&r, out);
  free(r.rows);
  free(r.columns);
  free(r.values);
  free(r.spare);
  free(r.steps);
  (void)unlink(r.report);
  (void)rmdir(r.folder);
}
