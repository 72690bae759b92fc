// Threads that read and write, where there is no io_uring.
//
//   owner: turn ──► queued ──► a worker's call of the system ──► moved ──► turn
//
// Workers that have nothing to do sleep on |work|, an owner that has nothing to
// do on |news|, both by a count: it is read inside the lock, and whoever sleeps
// does not if it has changed since. Nobody makes a system call to wake those
// that do not sleep.
//
//   sleepers   workers that may be asleep, or are about to be: never fewer than
//              are. Whoever wakes some takes them off, since they may take long
//              to run.
//
// A worker that finds its work done by another one has been counted off, and
// counts itself again; one that was woken for no reason is counted twice, which
// costs a call that wakes nobody. tests/models/io_threads.pml models it.
//
// What is alone runs on the thread that waits for it, which saves two changes
// of threads.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/hostmem.h"
#include "base/io_mover.h"
#include "base/os.h"
#include "base/short_lock.h"
#include "base/status.h"

enum { STACK = 128 << 10 };

typedef struct threads {
  tarn__io_mover mover;
  // The owner's.
  size_t under_way;
  size_t most;  // workers
  size_t started;
  size_t room;  // elements of |workers|
  pthread_t *workers;

  tarn__short_lock lock;  // guards all below
  tarn_list queued;
  tarn_list moved;
  size_t sleepers;
  bool awaited;  // the owner sleeps until something is moved
  bool ending;
  _Atomic uint32_t work;
  _Atomic uint32_t news;
} threads;

static void enter(threads *t) {
  tarn__short_lock_enter(&t->lock);
}

static void leave(threads *t) {
  tarn__short_lock_leave(&t->lock);
}

// --- workers ---------------------------------------------------------------

static uint32_t read_count(_Atomic uint32_t *count) {
  return atomic_load_explicit(count, memory_order_relaxed);
}

// Inside the lock, after what is to be seen.
static void count_up(_Atomic uint32_t *count) {
  atomic_store_explicit(count, read_count(count) + 1, memory_order_relaxed);
}

// The next request, NULL at the end. Inside the lock, which is left meanwhile.
static tarn__io_request *await_work(threads *t) {
  while (tarn_list_empty(&t->queued)) {
    uint32_t number = read_count(&t->work);
    if (t->ending) return NULL;
    t->sleepers++;
    leave(t);
    tarn__os_park(&t->work, number);
    enter(t);
  }
  return tarn__io_first(&t->queued);
}

// Inside the lock. True: the owner is to be woken, outside of it.
static bool hand_back(threads *t, tarn__io_request *request) {
  bool awaited = t->awaited;
  tarn_list_add_tail(&t->moved, &request->node);
  t->awaited = false;
  if (awaited) count_up(&t->news);
  return awaited;
}

static void *work(void *context) {
  threads *t = context;
  tarn__io_request *request = NULL;
  enter(t);
  while ((request = await_work(t)) != NULL) {
    leave(t);
    tarn__io_call(request);
    enter(t);
    if (!hand_back(t, request)) continue;
    leave(t);
    tarn__os_unpark(&t->news, 1);
    enter(t);
  }
  leave(t);
  return NULL;
}

// Where much of a stack is taken by variables of threads, a small one is
// refused.
static bool create(threads *t, pthread_t *out_thread) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  bool created = pthread_attr_setstacksize(&small, STACK) == 0 &&
                 pthread_create(out_thread, &small, work, t) == 0;
  pthread_attr_destroy(&small);
  return created || pthread_create(out_thread, NULL, work, t) == 0;
}

// As many as what is under way could use. Signals are blocked in them: the
// program's handlers run on its own threads.
static void start_workers(threads *t) {
  sigset_t all;
  sigset_t before;
  size_t wanted = tarn__lesser(t->under_way, t->most);
  if (t->started >= wanted) return;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (t->started < wanted && create(t, &t->workers[t->started]))
    t->started++;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (t->started < wanted) t->most = t->started;
}

// --- the owner -------------------------------------------------------------

static size_t length(const tarn_list *list) {
  size_t count = 0;
  const tarn_list *node = NULL;
  tarn_list_for_each (node, list)
    count++;
  return count;
}

static void hand_over(threads *t, tarn_list *batch, size_t count) {
  enter(t);
  size_t wakes = tarn__lesser(count, t->sleepers);
  tarn__io_append(&t->queued, batch);
  t->sleepers -= wakes;
  if (wakes > 0) count_up(&t->work);
  leave(t);
  if (wakes > 0) tarn__os_unpark(&t->work, (int)wakes);
}

static void collect(threads *t, bool wait, tarn_list *done) {
  enter(t);
  while (wait && tarn_list_empty(&t->moved)) {
    uint32_t number = read_count(&t->news);
    t->awaited = true;
    leave(t);
    tarn__os_park(&t->news, number);
    enter(t);
  }
  t->awaited = false;
  t->under_way -= length(&t->moved);
  tarn__io_append(done, &t->moved);
  leave(t);
}

static void move_here(threads *t, tarn_list *from, tarn_list *done) {
  tarn__io_request *request = tarn__io_first(from);
  tarn__io_call(request);
  tarn_list_add_tail(done, &request->node);
  t->under_way--;
}

static void turn(tarn__io_mover *mover, tarn_list *batch, bool wait,
                 tarn_list *done) {
  threads *t = (threads *)mover;
  size_t count = length(batch);
  t->under_way += count;
  if (wait && count == 1 && t->under_way == 1) {
    move_here(t, batch, done);
    return;
  }
  if (count > 0) {
    hand_over(t, batch, count);
    start_workers(t);
  }
  if (t->started > 0) {
    collect(t, wait, done);
  } else if (t->under_way > 0) {
    move_here(t, &t->queued, done);
  }
}

// --- the mover -------------------------------------------------------------

static void end_workers(threads *t) {
  enter(t);
  t->ending = true;
  count_up(&t->work);
  leave(t);
  tarn__os_unpark(&t->work, INT32_MAX);
  for (size_t i = 0; i < t->started; i++)
    pthread_join(t->workers[i], NULL);
}

// A child has no workers, and the lock may be held by one that it lacks.
static void end(tarn__io_mover *mover, bool after_fork) {
  threads *t = (threads *)mover;
  if (!after_fork) end_workers(t);
  tarn__host_free_array(t->workers, t->room, sizeof *t->workers);
  tarn__host_free(t, sizeof *t);
}

tarn_status tarn__io_threads_begin(size_t depth, size_t workers,
                                   tarn__io_mover **out_mover) {
  *out_mover = NULL;
  threads *t = tarn__host_alloc(sizeof *t);
  if (t == NULL) return TARN_E_NOMEM;
  t->mover = (tarn__io_mover){
      .name = "threads", .depth = depth, .turn = turn, .end = end};
  t->room = t->most = tarn__lesser(depth, workers);
  t->workers = tarn__host_array(t->room, sizeof *t->workers);
  if (t->workers == NULL) {
    tarn__host_free(t, sizeof *t);
    return TARN_E_NOMEM;
  }
  tarn_list_init(&t->queued);
  tarn_list_init(&t->moved);
  *out_mover = &t->mover;
  return TARN_OK;
}
