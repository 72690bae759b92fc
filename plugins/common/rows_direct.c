// Gather and scatter where every address is a pointer. A call is planned once,
// and cut into shares, each for a thread of its own.
//
//   gather        positions  [ share 0 ][ share 1 ][ share 2 ]
//   the others    rows       0 1 0 2 1 0 2 0 ...
//
// A gather is cut by position, since each dense row is written once. Scatters
// are cut by row, so that no two threads write the same one, and equal indices
// keep their order: each share reads all positions.
#include "common/rows_direct.h"

#include <pthread.h>
#include <signal.h>

#include "base/status.h"

enum {
  SHARE_LEAST = 512 << 10,  // bytes that are worth a thread
  MOST_THREADS = 64,
};

// Rows of a library that is older than this plug-in end before the field.
static uint32_t threads_of(const tarn_rows *rows) {
  bool is_there = rows->struct_size >= TARN__SIZE_UP_TO(tarn_rows, threads);
  uint32_t threads = is_there ? rows->threads : 0;
  return threads < MOST_THREADS ? threads : MOST_THREADS;
}

static uint32_t shares_of(const tarn__rows_plan *plan) {
  uint32_t threads = threads_of(plan->rows);
  size_t bytes = plan->table_bytes + plan->dense_bytes;
  if (threads < 2 || bytes == 0) return 1;
  size_t each = SHARE_LEAST / bytes + 1;  // rows
  size_t most = plan->rows->index_count / each;
  if (most < threads) threads = (uint32_t)most;
  return threads < 2 ? 1 : threads;
}

static void cut(const tarn__rows_plan *plan, tarn__common_rows_share *shares,
                uint32_t count) {
  bool gathers = plan->action == TARN__ROWS_GATHER;
  size_t all = plan->rows->index_count;
  for (uint32_t i = 0; i < count; i++) {
    tarn__common_rows_share *share = &shares[i];
    *share = (tarn__common_rows_share){
        .plan = plan, .end = all, .of = 1, .fault = {0, SIZE_MAX}};
    if (gathers) {
      share->first = all / count * i + (i < all % count ? i : all % count);
      share->end = share->first + all / count + (i < all % count);
    } else {
      share->number = i;
      share->of = count;
    }
  }
}

// --- threads of one call ---------------------------------------------------

static void *help(void *share) {
  tarn__rows_share_run(share);
  return NULL;
}

// Creates a thread for each share but the first, and sets |started| where the
// system gives one. Signals are blocked in them: the program's handlers run on
// its own threads.
static void start(tarn__common_rows_share *shares, uint32_t count,
                  pthread_t *threads, bool *started) {
  sigset_t all;
  sigset_t before;
  if (count < 2) return;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (uint32_t i = 1; i < count; i++)
    started[i] = pthread_create(&threads[i], NULL, help, &shares[i]) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

// Does the first share, and those without a thread, in this thread. Returns
// when all are done.
static void run_all(tarn__common_rows_share *shares, uint32_t count) {
  pthread_t threads[MOST_THREADS];
  bool started[MOST_THREADS];
  start(shares, count, threads, started);
  tarn__rows_share_run(&shares[0]);
  for (uint32_t i = 1; i < count; i++) {
    if (started[i]) {
      pthread_join(threads[i], NULL);
    } else {
      tarn__rows_share_run(&shares[i]);
    }
  }
}

// --- the call --------------------------------------------------------------

tarn_status tarn__rows_direct(tarn__rows_action action, const tarn_rows *rows,
                              char *text, size_t text_size) {
  tarn__common_rows_share shares[MOST_THREADS];
  tarn__rows_plan plan = tarn__rows_choose(action, rows);
  uint32_t count = shares_of(&plan);
  cut(&plan, shares, count);
  run_all(shares, count);
  tarn__common_rows_fault first = shares[0].fault;
  for (uint32_t i = 1; i < count; i++) {
    if (shares[i].fault.position < first.position) first = shares[i].fault;
  }
  if (first.position == SIZE_MAX) return TARN_OK;
  tarn__rows_say_bad(rows, first.index, first.position, text, text_size);
  return TARN_E_INVALID;
}
