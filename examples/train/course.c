// A step: while its batch is computed with, the next one is gathered.
//
//   batch t + 1   begin ............................. end
//   batch t             forward backward                  sums  descend
//
// What fails at one rank alone is told to all by tarn_comm_agree, so that all
// leave the course at the same point, with the same text.
#include "course.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "job/try.h"

static const double RATE = 0.2;  // of learning, at first; it falls to 0

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Adds the time since |*since| to |*sum|, and begins anew.
static void clock_into(double *sum, double *since) {
  double now = seconds();
  *sum += now - *since;
  *since = now;
}

// --- results of all ranks --------------------------------------------------

// The mean of the losses of all slices, added in their order.
static tarn_status mean_loss(const course *c, const mlp_outcome *own,
                             double *out_loss) {
  double all[SLICES][SLICES], sum = 0;
  size_t ranks = tarn_comm_size(c->comm);
  TRY(tarn_comm_allgather(c->comm, own->loss, sizeof own->loss, all));
  for (size_t r = 0; r < ranks; r++)
    for (size_t i = 0; i < share_of(r, ranks).count; i++)
      sum += all[r][i];
  *out_loss = sum / SLICES;
  return TARN_OK;
}

enum { MOST_SUMS = CLASSES + 1 };

// Replaces each of |count| numbers by its sum over the ranks.
static tarn_status sum_up(const course *c, double *numbers, size_t count) {
  double all[SLICES * MOST_SUMS];
  size_t ranks = tarn_comm_size(c->comm);
  TRY(tarn_comm_allgather(c->comm, numbers, count * sizeof *numbers, all));
  for (size_t i = 0; i < count; i++) {
    numbers[i] = 0;
    for (size_t r = 0; r < ranks; r++)
      numbers[i] += all[r * count + i];
  }
  return TARN_OK;
}

// --- steps -----------------------------------------------------------------

// Some ten times, and at the end: the same steps at each rank, since the loss
// is of all of them.
static bool is_told(const course *c, size_t step) {
  size_t stride = c->steps < 10 ? 1 : c->steps / 10;
  return (step + 1) % stride == 0 || step + 1 == c->steps;
}

static tarn_status tell(const course *c, size_t step,
                        const mlp_outcome *outcome) {
  double loss;
  if (!is_told(c, step)) return TARN_OK;
  TRY(mean_loss(c, outcome, &loss));
  if (c->progress == NULL) return TARN_OK;
  fprintf(c->progress, "step %4zu of %zu: loss %.4f\n", step + 1, c->steps,
          loss);
  fflush(c->progress);
  return TARN_OK;
}

static tarn_status fetch_now(const course *c, row_set set, size_t number) {
  TRY(loader_begin_batch(c->from, set, number));
  return loader_end_batch(c->from, number);
}

// Computes with batch |step|; batch |step| + 1 is on its way meanwhile, if it
// is to be prefetched.
static tarn_status work(const course *c, size_t step, mlp_outcome *outcome,
                        course_times *times) {
  double clock = seconds();
  bool ahead = c->prefetch && step + 1 < c->steps;
  if (!c->prefetch) TRY(fetch_now(c, TRAINING, step));
  if (ahead) TRY(loader_begin_batch(c->from, TRAINING, step + 1));
  clock_into(&times->batches, &clock);
  tarn_synced *rows = loader_rows(c->from, step);
  tarn_status status = mlp_forward(c->net, rows, outcome);
  if (status == TARN_OK)
    status = mlp_backward(c->net, rows, gradients_slices(c->slopes),
                          c->slopes->stride);
  clock_into(&times->compute, &clock);
  // Where only this rank failed, the others wait for it in this.
  if (ahead) status = first_of(status, loader_end_batch(c->from, step + 1));
  clock_into(&times->batches, &clock);
  status = tarn_comm_agree(c->comm, status);
  clock_into(&times->sums, &clock);
  return status;
}

static tarn_status learn(const course *c, size_t step, course_times *times) {
  const float *mean;
  double clock = seconds();
  double rate = RATE * (1 - (double)step / (double)c->steps);
  TRY(gradients_mean(c->slopes, &mean));
  clock_into(&times->sums, &clock);
  tarn_status status = mlp_descend(c->net, mean, rate);
  clock_into(&times->compute, &clock);
  return tarn_comm_agree(c->comm, status);
}

static tarn_status run_step(const course *c, size_t step, course_times *times) {
  mlp_outcome outcome;
  double clock = seconds();
  TRY(work(c, step, &outcome, times));
  TRY(learn(c, step, times));
  TRY(tell(c, step, &outcome));
  clock_into(&times->steps, &clock);
  return TARN_OK;
}

static tarn_status run_steps(const course *c, course_times *out_times) {
  course_times first = {0};
  *out_times = (course_times){0};
  if (c->prefetch) TRY(fetch_now(c, TRAINING, 0));
  for (size_t step = 0; step < c->steps; step++)
    TRY(run_step(c, step, step == 0 && c->steps > 1 ? &first : out_times));
  return TARN_OK;
}

static tarn_status mean_times(const course *c, course_times *times) {
  double ranks = (double)tarn_comm_size(c->comm);
  double sums[] = {times->steps, times->compute, times->batches, times->sums};
  TRY(sum_up(c, sums, sizeof sums / sizeof *sums));
  *times = (course_times){sums[0] / ranks, sums[1] / ranks, sums[2] / ranks,
                          sums[3] / ranks};
  return TARN_OK;
}

// --- bytes -----------------------------------------------------------------

static tarn_status add_traffic(void *context, const tarn_traffic *traffic) {
  double *sums = context;
  sums[0] += (double)traffic->bytes_moved;
  sums[1] += (double)traffic->bytes_valid;
  sums[1] += (double)traffic->bytes_discarded;
  sums[1] += (double)traffic->bytes_outside;
  return TARN_OK;
}

static tarn_status count_traffic(const course *c, course_result *out) {
  double sums[2] = {0};
  tarn_status status = tarn_synced_traffic(NULL, add_traffic, sums);
  TRY(tarn_comm_agree(c->comm, status));
  TRY(sum_up(c, sums, 2));
  out->moved = (uint64_t)sums[0];
  out->avoided = (uint64_t)sums[1];
  return TARN_OK;
}

static tarn_status train(const course *c, course_result *out) {
  TRY(tarn_synced_traffic_reset(NULL));
  TRY(run_steps(c, &out->times));
  TRY(count_traffic(c, out));
  return mean_times(c, &out->times);
}

// --- rows that were held out -----------------------------------------------

typedef struct tally {
  double loss;                 // sum over batches
  double counts[CLASSES + 1];  // of labels, and of correct answers
} tally;

static tarn_status examine(const course *c, size_t number, tally *sums) {
  mlp_outcome outcome;
  double loss;
  TRY(fetch_now(c, HELD_OUT, number));
  tarn_status status =
      mlp_forward(c->net, loader_rows(c->from, number), &outcome);
  TRY(tarn_comm_agree(c->comm, status));
  TRY(mean_loss(c, &outcome, &loss));
  sums->loss += loss;
  for (size_t i = 0; i < CLASSES; i++)
    sums->counts[i] += (double)outcome.labels[i];
  sums->counts[CLASSES] += (double)outcome.correct;
  return TARN_OK;
}

// A rule that does not look at features can only guess, and the best guess is
// the most frequent class. Labels have nothing to do with the numbers of rows,
// so that in the long run no rule is right more often than that class is there;
// and in |count| rows, five standard deviations more often in one of three
// million tries.
static double bound_of(const double labels[CLASSES], double count) {
  double most = 0;
  for (size_t i = 0; i < CLASSES; i++)
    most = labels[i] > most ? labels[i] : most;
  double part = most / count;
  return part + 5 * sqrt(part * (1 - part) / count);
}

static tarn_status hold_out(const course *c, course_result *out) {
  tally sums = {0};
  for (size_t i = 0; i < HELD_OUT_BATCHES; i++)
    TRY(examine(c, i, &sums));
  TRY(sum_up(c, sums.counts, CLASSES + 1));
  double count = (double)(HELD_OUT_BATCHES * c->from->batch);
  out->loss = sums.loss / HELD_OUT_BATCHES;
  out->accuracy = sums.counts[CLASSES] / count;
  out->bound = bound_of(sums.counts, count);
  return TARN_OK;
}

// --- gathers ---------------------------------------------------------------

// How fast rows come where there is nothing else to do.
static tarn_status time_gathers(const course *c, course_result *out) {
  double sums[2] = {0, GATHERS * (double)loader_batch_size(c->from)};
  TRY(tarn_comm_barrier(c->comm));
  double clock = seconds();
  for (size_t i = 0; i < GATHERS; i++)
    TRY(fetch_now(c, TRAINING, i));
  clock_into(&sums[0], &clock);
  TRY(sum_up(c, sums, 2));
  out->gather_seconds = sums[0] / (double)tarn_comm_size(c->comm);
  out->gather_bytes = sums[1];
  return TARN_OK;
}

tarn_status course_run(const course *c, course_result *out) {
  *out = (course_result){0};
  TRY(train(c, out));
  TRY(hold_out(c, out));
  return time_gathers(c, out);
}
