// Gathers that go on beside the program: in a thread, over a communicator of
// their own, so that the program may call other collectives meanwhile.
//
//   begin   arguments and indices are looked at, by all ranks together
//           a thread moves the rows
//   end     waits for the thread
//
// Where the engine of the communicator may be called by one thread alone, or
// there is no thread, the end moves the rows.
#include <assert.h>
#include <pthread.h>
#include <signal.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "whole/rows.h"

struct tarn_whole_fetch {
  uint32_t generation;  // of forks
  tarn_whole *whole;
  tarn__whole_rows_order order;
  bool has_thread;
  pthread_t thread;
  tarn__failure failure;  // of the rows
};

// --- moving ----------------------------------------------------------------

static void move(tarn_whole_fetch *fetch) {
  tarn_whole *whole = fetch->whole;
  tarn_status status = whole->mapped ? tarn__rows_move_mapped(&fetch->order)
                                     : tarn__exchange_go(whole->exchange_beside,
                                                         whole, &fetch->order);
  tarn__failure_note(&fetch->failure, status);
}

static void *work(void *context) {
  move(context);
  return NULL;
}

// Signals are blocked in it: the program's handlers run on its own threads.
static void start(tarn_whole_fetch *fetch) {
  sigset_t all;
  sigset_t before;
  const tarn_whole *whole = fetch->whole;
  if (!whole->mapped && !tarn__comm_is_for_any_thread(whole->beside)) return;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  fetch->has_thread = pthread_create(&fetch->thread, NULL, work, fetch) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

// --- beginning -------------------------------------------------------------

tarn_status tarn__fetch_check(const tarn_whole *whole) {
  if (whole->fetch == NULL) return TARN_OK;
  return tarn__fail(TARN_E_STATE,
                    "whole %llu: a gather that was begun has not ended",
                    (unsigned long long)whole->serial);
}

static tarn_status make(tarn_whole *whole, const tarn__whole_rows_order *order,
                        tarn_whole_fetch **out_fetch) {
  tarn_whole_fetch *made = tarn__host_alloc(sizeof *made);
  if (made == NULL) return TARN_E_NOMEM;
  made->generation = tarn__os_generation();
  made->whole = whole;
  made->order = *order;
  *out_fetch = made;
  return TARN_OK;
}

// Goes to all ranks, whatever |status| is at this one.
static tarn_status prepare(tarn_whole *whole,
                           const tarn__whole_subject *subject,
                           const tarn__whole_rows_order *order,
                           tarn_status status) {
  tarn__failure own = tarn__failure_of(status);
  if (whole->mapped) return tarn__whole_say_call(subject, status);
  if (whole->beside == NULL) {
    TARN__TRY(tarn_comm_split(whole->comm, 0, 0, &whole->beside));
  }
  return tarn__exchange_prepare(whole, whole->beside, subject, order,
                                tarn__failure_tell(&own),
                                &whole->exchange_beside);
}

tarn_status tarn_whole_gather_begin(const tarn_whole_tensor *table,
                                    const tarn_whole_rows *rows,
                                    tarn_whole_fetch **out_fetch) {
  tarn__whole_rows_order order;
  tarn_whole_fetch *made = NULL;
  if (out_fetch != NULL) *out_fetch = NULL;
  if (table == NULL) return tarn__fail(TARN_E_INVALID, "whole rows: NULL");
  tarn_whole *whole = table->whole;
  TARN__TRY(tarn__whole_check(whole));
  // Its thread uses the communicator of these gathers.
  TARN__TRY(tarn__fetch_check(whole));
  tarn__whole_subject subject =
      tarn__whole_subject_of(TARN__WHOLE_GATHER_BEGIN, whole);
  tarn_status status =
      tarn__rows_order_read(TARN__ROWS_GATHER, table, rows, NULL, &order);
  if (status == TARN_OK && out_fetch == NULL) {
    status = tarn__fail(TARN_E_INVALID, "whole rows: NULL");
  }
  if (status == TARN_OK) status = make(whole, &order, &made);
  status = prepare(whole, &subject, &order, status);
  if (status != TARN_OK) {
    tarn__host_free(made, sizeof *made);
    return status;
  }
  assert(made != NULL && out_fetch != NULL);
  whole->fetch = *out_fetch = made;
  start(made);
  return TARN_OK;
}

// --- the end ---------------------------------------------------------------

tarn_status tarn_whole_gather_end(tarn_whole_fetch *fetch) {
  if (fetch == NULL) return TARN_OK;
  TARN__TRY(tarn__not_in_callback());
  if (fetch->generation != tarn__os_generation())
    return tarn__fail(TARN_E_STATE, "a gather was begun before the fork");
  if (fetch->has_thread) {
    pthread_join(fetch->thread, NULL);
  } else {
    move(fetch);
  }
  fetch->whole->fetch = NULL;
  tarn_status status = tarn__failure_tell(&fetch->failure);
  tarn__host_free(fetch, sizeof *fetch);
  return status;
}

void tarn__fetch_end(tarn_whole *whole, bool after_fork) {
  tarn__exchange_end(whole->exchange_beside, after_fork);
  (void)tarn_comm_destroy(whole->beside);
}
