// recommend - a recommender whose table is four times as large as the memory
// that it is given.
//
//   build/examples/recommend
//   build/tarn run -n 2 -- build/examples/recommend -o json
//
// Users and items have vectors in a table on disks (table.c, tarn/disk.h). They
// learn from pairs of a user and an item that the user has taken (towers.c),
// which are made up by hidden vectors (world.c), and are tried on pairs that
// were held out (course.c). Every some steps all is flushed. A training that
// was killed, at whatever moment, goes on from the last flush when it is
// started again, and comes to the same.
#include <stdio.h>

#include "course.h"
#include "job/job.h"
#include "job/try.h"

typedef struct run {
  options of;
  tarn_comm *comm;
  table table;
} run;

static bool is_first(const run *r) {
  return tarn_comm_rank(r->comm) == 0;
}

static double mib(double bytes) {
  return bytes / (1 << 20);
}

// --- what is told ------------------------------------------------------------

static void tell_begin(const run *r, FILE *to) {
  if (r->table.step == 0) {
    fprintf(to, "begins: no step was flushed before\n");
  } else {
    fprintf(to, "goes on from step %zu, which was flushed\n", r->table.step);
  }
  fflush(to);
}

static void tell_people(const run *r, const tarn_disk_info *info,
                        const course_result *of) {
  const course_tally *all = &of->all;
  size_t ranks = tarn_comm_size(r->comm);
  printf(
      "\nheld out   AUC %.4f before, %.4f now; chance at most %.4f, the "
      "hidden vectors %.4f\n",
      of->before.learned, of->after.learned, of->after.bound, of->after.hidden);
  printf(
      "table      %zu vectors, %.1f MiB with their states; %.1f MiB of "
      "memory at each of %zu ranks\n",
      r->of.users + r->of.items,
      mib((double)info->record * (double)(r->of.users + r->of.items + 1)),
      mib((double)info->memory), ranks);
  if (all->rows == 0) return;
  printf(
      "speed      %.0f rows/s, %.1f %% of them in memory; blocks read "
      "%.0f, written %.0f\n",
      all->rows / all->seconds, 100 * (1 - all->missed / all->rows),
      all->blocks_read, all->blocks_written);
}

// JSON has no NaN.
static void print_ratio(const char *key, double a, double b) {
  if (b > 0) printf(",\"%s\":%.17g", key, a / b);
  if (b <= 0) printf(",\"%s\":null", key);
}

static void tell_json(const run *r, const tarn_disk_info *info,
                      const course_result *of) {
  const course_tally *all = &of->all;
  printf("{\"ranks\":%zu,\"from\":%zu,\"steps\":%zu", tarn_comm_size(r->comm),
         of->from, r->table.step);
  print_ratio("loss", all->loss * all->rows, all->rows);
  printf(
      ",\"auc_before\":%.17g,\"auc\":%.17g,\"auc_hidden\":%.17g,"
      "\"auc_bound\":%.17g",
      of->before.learned, of->after.learned, of->after.hidden, of->after.bound);
  print_ratio("rows_per_s", all->rows, all->seconds);
  print_ratio("hits", all->rows - all->missed, all->rows);
  printf(
      ",\"blocks_read\":%.0f,\"blocks_written\":%.0f,\"table_bytes\":%zu,"
      "\"memory_bytes\":%zu}\n",
      all->blocks_read, all->blocks_written,
      info->record * (r->of.users + r->of.items + 1), info->memory);
}

static tarn_status tell(const run *r, const course_result *result) {
  tarn_disk_info info = {.struct_size = sizeof info};
  if (!is_first(r)) return TARN_OK;
  TRY(tarn_disk_query(r->table.disk, &info));
  if (r->of.json)
    tell_json(r, &info, result);
  else
    tell_people(r, &info, result);
  return TARN_OK;
}

// --- from begin to end -------------------------------------------------------

static tarn_status work(void *context, tarn_comm *comm) {
  run *r = context;
  course_result result;
  r->comm = comm;
  if (tarn_comm_size(r->comm) > OPTIONS_MOST_RANKS)
    return tarn_fail(TARN_E_INVALID, "at most 64 ranks");
  TRY(table_open(&r->table, r->comm, &r->of));
  course c = {.comm = r->comm,
              .table = &r->table,
              .steps = r->of.steps,
              .flush = r->of.flush};
  if (is_first(r)) c.progress = r->of.json ? stderr : stdout;
  if (is_first(r)) tell_begin(r, c.progress);
  TRY(course_run(&c, &result));
  return tarn_comm_agree(r->comm, tell(r, &result));
}

static tarn_status end(void *context) {
  run *r = context;
  return table_close(&r->table);
}

int main(int argc, char **argv) {
  run r = {.of = options_read(argc, argv)};
  return job_main(&(job){.name = "recommend",
                         .wrong = r.of.wrong,
                         .help = r.of.help,
                         .tell_help = options_help,
                         .work = work,
                         .end = end,
                         .run = &r});
}
