// A step of a rank:
//
//   pairs ─► rows of users, rows of items ─► gather ─► slices learn ─► apply
//
// The sums of gradients are made in the order of ranks and of slices: what is
// learned is the same, to the last bit, with any number of ranks, and whether
// it was killed in between or not.
#include "course.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "job/try.h"

enum { HELD_OUT_PAIRS = 8192, ROWS_OF_EXAM = 3 };

// A run of numbers that this rank has.
typedef struct share {
  size_t first;
  size_t count;
} share;

// What a batch, or an exam, needs.
typedef struct desk {
  share own;  // of the batch
  pair *pairs;
  int64_t *rows;
  vector *vectors;
} desk;

static share share_of(const course *c, size_t all) {
  size_t rank = tarn_comm_rank(c->comm), ranks = tarn_comm_size(c->comm);
  size_t first = all * rank / ranks;
  return (share){first, all * (rank + 1) / ranks - first};
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// --- numbers of all ranks ----------------------------------------------------

enum { MOST_SUMS = 8 };

// Replaces each of |count| numbers by its sum over the ranks.
static tarn_status sum_up(const course *c, double *numbers, size_t count) {
  double all[OPTIONS_MOST_RANKS * MOST_SUMS];
  TRY(tarn_comm_allgather(c->comm, numbers, count * sizeof *numbers, all));
  for (size_t i = 0; i < count; i++) {
    numbers[i] = 0;
    for (size_t r = 0; r < tarn_comm_size(c->comm); r++)
      numbers[i] += all[r * count + i];
  }
  return TARN_OK;
}

// What the disks of all ranks did so far.
static tarn_status count_blocks(const course *c, course_tally *out) {
  tarn_disk_info info = {.struct_size = sizeof info};
  TRY(tarn_comm_agree(c->comm, tarn_disk_query(c->table->disk, &info)));
  double sums[] = {(double)(info.asked - info.hits), (double)info.blocks_read,
                   (double)info.blocks_written};
  TRY(sum_up(c, sums, sizeof sums / sizeof *sums));
  out->missed = sums[0];
  out->blocks_read = sums[1];
  out->blocks_written = sums[2];
  return TARN_OK;
}

static course_tally less(course_tally a, course_tally b) {
  return (course_tally){.missed = a.missed - b.missed,
                        .blocks_read = a.blocks_read - b.blocks_read,
                        .blocks_written = a.blocks_written - b.blocks_written};
}

// --- steps -------------------------------------------------------------------

static void draw(const course *c, const desk *d, size_t step) {
  const table *t = c->table;
  size_t count = d->own.count;
  for (size_t i = 0; i < count; i++) {
    uint64_t number = (uint64_t)step * t->batch + d->own.first + i;
    d->pairs[i] = world_pair(&t->of, false, number);
    d->rows[i] = table_user(d->pairs[i].user);
    d->rows[count + i] = table_item(t, d->pairs[i].item);
  }
}

static tarn_status run_step(const course *c, const desk *d, size_t step,
                            double *io_loss) {
  size_t count = d->own.count;
  vector *users = d->vectors, *items = d->vectors + count;
  draw(c, d, step);
  TRY(table_gather(c->table, d->rows, 2 * count, d->vectors));
  for (size_t i = 0; i < count; i += SLICE)
    *io_loss += towers_learn(d->pairs + i, users + i, items + i);
  return table_learn(c->table, d->rows, 2 * count, d->vectors);
}

// Up to the next flush, and that.
static tarn_status run_some(const course *c, const desk *d, size_t until,
                            course_tally *out) {
  course_tally before, after;
  double loss = 0, begin = seconds();
  size_t from = c->table->step;
  TRY(count_blocks(c, &before));
  for (size_t step = from; step < until; step++)
    TRY(run_step(c, d, step, &loss));
  TRY(table_flush(c->table, until));
  double pairs = (double)(until - from) * c->table->batch;
  double time = seconds() - begin;
  TRY(count_blocks(c, &after));
  TRY(sum_up(c, &loss, 1));
  *out = less(after, before);
  out->rows = 2 * pairs;
  out->loss = loss / pairs;
  out->seconds = time;
  return TARN_OK;
}

static void tell(const course *c, const course_tally *some) {
  if (c->progress == NULL) return;
  fprintf(c->progress,
          "step %5zu of %zu: loss %.4f, %.0f rows/s, %.1f %% of them in "
          "memory, %.3f blocks read for one; flushed\n",
          c->table->step, c->steps, some->loss, some->rows / some->seconds,
          100 * (1 - some->missed / some->rows),
          some->blocks_read / some->rows);
  fflush(c->progress);
}

static void add(course_tally *sum, const course_tally *some) {
  double rows = sum->rows + some->rows;
  sum->loss = (sum->loss * sum->rows + some->loss * some->rows) / rows;
  sum->rows = rows;
  sum->seconds += some->seconds;
  sum->missed += some->missed;
  sum->blocks_read += some->blocks_read;
  sum->blocks_written += some->blocks_written;
}

// Flushes are at the same steps, wherever it begins.
static tarn_status train(const course *c, const desk *d, course_tally *out) {
  *out = (course_tally){0};
  while (c->table->step < c->steps) {
    course_tally some;
    size_t until = (c->table->step / c->flush + 1) * c->flush;
    TRY(run_some(c, d, until < c->steps ? until : c->steps, &some));
    tell(c, &some);
    add(out, &some);
  }
  return TARN_OK;
}

// --- pairs that were held out ------------------------------------------------

static double win(double taken, double shown) {
  return taken > shown ? 1 : taken < shown ? 0 : .5;
}

// Rows of the user, of the item that was taken, and of one that was shown.
static tarn_status examine(const course *c, const desk *d, double wins[2]) {
  const world *of = &c->table->of;
  share own = share_of(c, HELD_OUT_PAIRS);
  for (size_t i = 0; i < own.count; i++) {
    d->pairs[i] = world_pair(of, true, own.first + i);
    d->rows[ROWS_OF_EXAM * i] = table_user(d->pairs[i].user);
    d->rows[ROWS_OF_EXAM * i + 1] = table_item(c->table, d->pairs[i].item);
    d->rows[ROWS_OF_EXAM * i + 2] =
        table_item(c->table, world_item(of, own.first + i));
  }
  TRY(table_gather(c->table, d->rows, ROWS_OF_EXAM * own.count, d->vectors));
  wins[0] = wins[1] = 0;
  for (size_t i = 0; i < own.count; i++) {
    vector *v = d->vectors + ROWS_OF_EXAM * i;
    const pair shown = {d->pairs[i].user, world_item(of, own.first + i)};
    wins[0] += win(towers_score(&v[0], &v[1]), towers_score(&v[0], &v[2]));
    wins[1] += win(world_likeness(of, d->pairs[i]), world_likeness(of, shown));
  }
  return sum_up(c, wins, 2);
}

// Five standard deviations of as many tosses of a coin.
static tarn_status find_auc(const course *c, const desk *d, course_auc *out) {
  double wins[2];
  TRY(examine(c, d, wins));
  out->learned = wins[0] / HELD_OUT_PAIRS;
  out->hidden = wins[1] / HELD_OUT_PAIRS;
  out->bound = .5 + 5 * .5 / sqrt(HELD_OUT_PAIRS);
  return TARN_OK;
}

// --- all ---------------------------------------------------------------------

static tarn_status make_desk(const course *c, desk *d) {
  share slices = share_of(c, c->table->batch / SLICE);
  size_t exam = share_of(c, HELD_OUT_PAIRS).count;
  d->own = (share){slices.first * SLICE, slices.count * SLICE};
  size_t pairs = d->own.count > exam ? d->own.count : exam;
  d->pairs = calloc(pairs, sizeof *d->pairs);
  d->rows = calloc(ROWS_OF_EXAM * pairs, sizeof *d->rows);
  d->vectors = calloc(ROWS_OF_EXAM * pairs, sizeof *d->vectors);
  if (d->pairs != NULL && d->rows != NULL && d->vectors != NULL) return TARN_OK;
  return tarn_fail(TARN_E_NOMEM, "no memory for a batch");
}

static tarn_status run(const course *c, desk *d, course_result *out) {
  TRY(tarn_comm_agree(c->comm, make_desk(c, d)));
  out->from = c->table->step;
  TRY(find_auc(c, d, &out->before));
  TRY(train(c, d, &out->all));
  return find_auc(c, d, &out->after);
}

tarn_status course_run(const course *c, course_result *out) {
  desk d = {.pairs = NULL};
  *out = (course_result){0};
  tarn_status status = run(c, &d, out);
  free(d.pairs);
  free(d.rows);
  free(d.vectors);
  return status;
}
