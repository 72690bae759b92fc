// Rows, one after the other: each file for each part, packings, models.
#include "plan_bench.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kit/tool.h"
#include "plan_models.h"
#include "plan_peer.h"
#include "plan_sums.h"

enum { PATH_SIZE = 4096 };

static const double wide_seconds = 2;
static const double narrow_seconds = 20;
static const double early_over_bound = 1.12;
static const double large_over_bound = 1.01;

typedef struct course {
  const plan_bench *bench;
  plan_bench_result *out;
  size_t room;
  size_t total;  // rows that there will be
  char **files;  // names in the folder, sorted
  size_t file_count;
  char plan[PATH_SIZE];  // a file that plans are written to
} course;

const char *plan_bench_part_name(size_t index) {
  static const char *const names[] = {"fit",  "early",  "low",
                                      "wide", "narrow", "large"};
  return index < PLAN_BENCH_PARTS ? names[index] : NULL;
}

static bool fail(course *c, const char *what, const char *why) {
  snprintf(c->out->why, sizeof c->out->why, "%.150s: %.100s", what, why);
  return false;
}

// ---------------------------------------------------------------------------
// Rows
// ---------------------------------------------------------------------------

static plan_bench_row *add_row(course *c, plan_bench_part part,
                               const char *name) {
  plan_bench_result *out = c->out;
  if (out->count == c->room) {
    size_t room = c->room == 0 ? 64 : c->room * 2;
    plan_bench_row *rows = tool_array(room, sizeof *rows);
    if (out->count > 0) memcpy(rows, out->rows, out->count * sizeof *rows);
    free(out->rows);
    out->rows = rows;
    c->room = room;
  }
  plan_bench_row *row = &out->rows[out->count++];
  row->part = part;
  row->peer_seconds = row->peer_peak = NAN;
  snprintf(row->name, sizeof row->name, "%s", name);
  if (c->bench->step != NULL) {
    c->bench->step(c->bench->context, c->total, row->name);
  }
  return row;
}

static void run_row(course *c, plan_bench_row *row, const plan_job *job) {
  row->limit = job->seconds;
  row->took = plan_job_run(job);
  if (row->took.failed[0] != '\0') c->out->failed++;
}

static void run_peer(course *c, plan_bench_row *row, const char *path) {
  plan_peer peer = {.program = c->bench->peer,
                    .input = path,
                    .output = c->plan,
                    .capacity = row->took.wanted,
                    .seconds = c->bench->seconds};
  plan_peer_result took = plan_peer_run(&peer);
  row->has_peer = true;
  row->peer_seconds = took.seconds;
  row->peer_peak = took.peak;
  memcpy(row->peer_failed, took.failed, sizeof row->peer_failed);
}

// ---------------------------------------------------------------------------
// Files
// ---------------------------------------------------------------------------

// The number in front of ".csv", with a dot in front of it; 0: no number.
static uint64_t capacity_in(const char *name) {
  const char *end = name + strlen(name) - strlen(".csv");
  const char *digits = end;
  while (digits > name && digits[-1] >= '0' && digits[-1] <= '9')
    digits--;
  bool is_number = digits < end && digits > name && digits[-1] == '.';
  return is_number ? strtoull(digits, NULL, 10) : 0;
}

// Heights above the bound that count as reached: the lowest that were known of
// google/minimalloc's. The first is proved, the others are not.
static uint64_t known_height(const char *name) {
  static const struct {
    const char *name;
    uint64_t height;
  } known[] = {{"C.1048576.csv", 1039360},
               {"D.1048576.csv", 1024000},
               {"J.1048576.csv", 1025024}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(name, known[i].name) == 0) return known[i].height;
  }
  return 0;
}

static void fit_file(course *c, const char *name, const char *path) {
  plan_bench_row *row = add_row(c, PLAN_BENCH_FIT, name);
  plan_job job = {.path = path,
                  .fit = true,
                  .wanted = capacity_in(name),
                  .over_bound = 1,
                  .seconds = c->bench->seconds,
                  .output = c->plan};
  row->has_capacity = job.wanted != 0;
  run_row(c, row, &job);
  if (c->bench->peer != NULL) run_peer(c, row, path);
}

static void early_file(course *c, const char *name, const char *path) {
  plan_job job = {
      .path = path, .over_bound = early_over_bound, .seconds = PLAN_JOB_EARLY};
  run_row(c, add_row(c, PLAN_BENCH_EARLY, name), &job);
}

static void lower_file(course *c, const char *name, const char *path) {
  plan_job job = {.path = path,
                  .wanted = known_height(name),
                  .over_bound = 1,
                  .seconds = c->bench->seconds};
  run_row(c, add_row(c, PLAN_BENCH_LOW, name), &job);
}

static void run_files(course *c, plan_bench_part part,
                      void (*run)(course *, const char *, const char *)) {
  char path[PATH_SIZE];
  for (size_t i = 0; i < c->file_count && c->bench->parts[part]; i++) {
    snprintf(path, sizeof path, "%s/%s", c->bench->folder, c->files[i]);
    run(c, c->files[i], path);
  }
}

// ---------------------------------------------------------------------------
// The folder
// ---------------------------------------------------------------------------

static bool is_table(const char *name) {
  size_t length = strlen(name);
  return name[0] != '.' && length > 4 && strcmp(name + length - 4, ".csv") == 0;
}

static int compare_names(const void *a, const void *b) {
  char *const *x = a;
  char *const *y = b;
  return strcmp(*x, *y);
}

static void add_file(course *c, const char *name) {
  char **files = tool_array(c->file_count + 1, sizeof *files);
  if (c->file_count > 0) memcpy(files, c->files, c->file_count * sizeof *files);
  free(c->files);
  c->files = files;
  c->files[c->file_count++] = tool_text(name);
}

static bool list_files(course *c) {
  const char *folder = c->bench->folder;
  if (folder == NULL) return true;
  DIR *in = opendir(folder);
  if (in == NULL) return fail(c, folder, strerror(errno));
  for (struct dirent *entry; (entry = readdir(in)) != NULL;) {
    if (is_table(entry->d_name)) add_file(c, entry->d_name);
  }
  closedir(in);
  if (c->file_count == 0) return fail(c, folder, "there is no *.csv in it");
  qsort(c->files, c->file_count, sizeof *c->files, compare_names);
  return true;
}

static bool name_plan(course *c) {
  const char *folder = getenv("TMPDIR");
  if (folder == NULL) folder = "/tmp";
  snprintf(c->plan, sizeof c->plan, "%s/tarn-plan-XXXXXX", folder);
  int fd = mkstemp(c->plan);
  if (fd < 0) {
    c->plan[0] = '\0';
    return fail(c, folder, strerror(errno));
  }
  close(fd);
  return true;
}

// ---------------------------------------------------------------------------
// What is made
// ---------------------------------------------------------------------------

static void run_packing(course *c, plan_packing_spec spec) {
  char name[PLAN_PACKING_NAME];
  bool wide = plan_packing_is_wide(spec);
  plan_bench_part part = wide ? PLAN_BENCH_WIDE : PLAN_BENCH_NARROW;
  if (!c->bench->parts[part]) return;
  plan_job job = {.packing = &spec,
                  .over_bound = 1,
                  .seconds = wide ? wide_seconds : narrow_seconds};
  run_row(c, add_row(c, part, plan_packing_name(spec, name)), &job);
}

static void run_packings(course *c) {
  for (uint64_t round = 0; round < c->bench->rounds; round++) {
    for (size_t i = 0; i < PLAN_PACKINGS; i++)
      run_packing(c, plan_packing_at(i, round));
  }
}

// Larger ones are made for tests, and have no time.
static double seconds_for(const char *model) {
  if (strstr(model, "-2k") != NULL) return 1;
  if (strstr(model, "-20k") != NULL) return 1;
  if (strstr(model, "-60k") != NULL) return 3;
  return 0;
}

static void run_models(course *c) {
  const char *name;
  if (!c->bench->parts[PLAN_BENCH_LARGE]) return;
  for (size_t i = 0; (name = plan_models_name(i)) != NULL; i++) {
    plan_job job = {.model = name,
                    .over_bound = large_over_bound,
                    .seconds = seconds_for(name)};
    if (job.seconds > 0) run_row(c, add_row(c, PLAN_BENCH_LARGE, name), &job);
  }
}

// ---------------------------------------------------------------------------
// The whole
// ---------------------------------------------------------------------------

static size_t count_rows(const course *c) {
  const bool *parts = c->bench->parts;
  size_t count = 0;
  const char *name;
  for (size_t i = PLAN_BENCH_FIT; i <= PLAN_BENCH_LOW; i++)
    count += parts[i] ? c->file_count : 0;
  for (size_t i = 0; i < PLAN_PACKINGS; i++) {
    bool wide = plan_packing_is_wide(plan_packing_at(i, 0));
    bool chosen = parts[wide ? PLAN_BENCH_WIDE : PLAN_BENCH_NARROW];
    count += chosen ? c->bench->rounds : 0;
  }
  for (size_t i = 0; (name = plan_models_name(i)) != NULL; i++)
    count += parts[PLAN_BENCH_LARGE] && seconds_for(name) > 0;
  return count;
}

static void run_all(course *c) {
  c->total = count_rows(c);
  run_files(c, PLAN_BENCH_FIT, fit_file);
  run_files(c, PLAN_BENCH_EARLY, early_file);
  run_files(c, PLAN_BENCH_LOW, lower_file);
  run_packings(c);
  run_models(c);
}

plan_bench_result plan_bench_run(const plan_bench *bench) {
  plan_bench_result result = {0};
  course c = {.bench = bench, .out = &result};
  if (list_files(&c) && name_plan(&c)) run_all(&c);
  plan_sums(&result);
  if (c.plan[0] != '\0') (void)unlink(c.plan);
  for (size_t i = 0; i < c.file_count; i++)
    free(c.files[i]);
  free(c.files);
  return result;
}

void plan_bench_result_free(plan_bench_result *result) {
  free(result->rows);
  *result = (plan_bench_result){0};
}
