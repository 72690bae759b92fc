// A stream's queue: operations in order, run by one thread at a time.
//
//                 running        first              last
//   done = 41     [ op 42 ]      [ op 43 ]-[ 44 ]-[ op 45 ]     queued = 45
//                    |                                 ^
//           the worker, or a caller                 submit
//           that waits for a ticket
//
// An operation's number is its ticket. Operations run in order, so ticket 44 is
// done when done >= 44; an event is no more than that comparison. A thread that
// waits for a ticket runs operations itself while no other thread runs the
// queue, so that queueing a copy and waiting for it needs no thread switch.
//
// Invariants, whenever the lock is free:
//   * done <= queued, and both only rise; queued - done operations are in
//     |first| .. |last| and |running| together. Idle is done == queued.
//   * running is not NULL while a thread runs it without the lock; no other
//     thread starts an operation before that thread has the lock again.
//   * If first is not NULL and running is, the worker has been woken. (Where
//     no thread can be had, every submit runs the queue up to its own ticket.)
//   * No sleeper of |progress| waits for less than |awaited|.
//
// A wait first reads |done| without the lock, which is enough for operations
// that are done already. |queued| is read likewise, since a wait covers only
// the operations queued before the call.
//
// Waiting in a stream for another one cannot deadlock: a wait is for operations
// that were queued before it, so of all that are not done the oldest waits for
// nothing; it is the first of its queue, and its worker is awake.
#include <signal.h>

#include "base/hostmem.h"
#include "queue.h"

// Done operations kept per stream for the next ones, so that a steady stream
// allocates nothing. 28 KiB: two hundred in flight is a busy stream.
enum { SPARES_MAX = 224 };

static void lock_stream(C_Stream stream) {
  pthread_mutex_lock(&stream->lock);
}

static void unlock_stream(C_Stream stream) {
  pthread_mutex_unlock(&stream->lock);
}

// --- operations ------------------------------------------------------------

static tarn__common_queue_op *take_op(C_Stream stream) {
  tarn__common_queue_op *op = stream->spare;
  if (op == NULL) return tarn__host_alloc(sizeof *op);
  stream->spare = op->next;
  stream->spares--;
  return op;
}

// Under the lock to the last: a forked child must find the mark of |running|
// either held or gone with it.
static void keep_op(C_Stream stream, tarn__common_queue_op *op) {
  tarn__queue_stream_drop(op->mark.stream);
  tarn__host_free(op->owned, op->owned_size);
  if (stream->spares == SPARES_MAX) {
    tarn__host_free(op, sizeof *op);
    return;
  }
  op->mark.stream = NULL;
  op->owned = NULL;
  op->next = stream->spare;
  stream->spare = op;
  stream->spares++;
}

static void free_ops(tarn__common_queue_op *op) {
  while (op != NULL) {
    tarn__common_queue_op *next = op->next;
    tarn__queue_stream_drop(op->mark.stream);
    tarn__host_free(op->owned, op->owned_size);
    tarn__host_free(op, sizeof *op);
    op = next;
  }
}

// The two counts change under the lock only, so that no addition is lost.
static void count_up(_Atomic(uint64_t) *count) {
  uint64_t before = atomic_load_explicit(count, memory_order_relaxed);
  atomic_store_explicit(count, before + 1, memory_order_release);
}

static uint64_t read_count(const _Atomic(uint64_t) *count) {
  return atomic_load_explicit(count, memory_order_acquire);
}

static bool is_done(const struct C_Stream_st *stream, uint64_t ticket) {
  return read_count(&stream->done) >= ticket;
}

static void append(C_Stream stream, tarn__common_queue_op *op) {
  op->next = NULL;
  if (stream->first == NULL) {
    stream->first = op;
  } else {
    stream->last->next = op;
  }
  stream->last = op;
  count_up(&stream->queued);
}

static tarn__common_queue_op *take_first(C_Stream stream) {
  tarn__common_queue_op *op = stream->first;
  stream->first = op->next;
  op->next = NULL;
  return op;
}

// --- running, all with the lock held ---------------------------------------

static void rouse_sleepers(C_Stream stream) {
  stream->awaited = UINT64_MAX;
  pthread_cond_broadcast(&stream->progress);
}

// Sleeps until |ticket| may be done; as for any condition, look again.
static void sleep_for(C_Stream stream, uint64_t ticket) {
  if (ticket < stream->awaited) stream->awaited = ticket;
  pthread_cond_wait(&stream->progress, &stream->lock);
}

// Runs the first operation, without the lock.
static void run_first(C_Stream stream) {
  tarn__common_queue_op *op = take_first(stream);
  stream->running = op;
  unlock_stream(stream);
  op->run(op);
  lock_stream(stream);
  stream->running = NULL;
  count_up(&stream->done);
  keep_op(stream, op);
  if (is_done(stream, stream->awaited)) rouse_sleepers(stream);
}

// Leaves the rest to the worker or, without one, to waiting threads.
static void hand_on(C_Stream stream) {
  if (stream->first == NULL || stream->running != NULL) return;
  if (stream->has_worker) {
    pthread_cond_signal(&stream->work);
  } else {
    rouse_sleepers(stream);
  }
}

// Not an operation further than |ticket|: those behind it may wait for a
// stream whose operation this very thread is in.
static void run_until(C_Stream stream, uint64_t ticket) {
  while (!is_done(stream, ticket)) {
    if (stream->running == NULL) {
      run_first(stream);
    } else {
      sleep_for(stream, ticket);
    }
  }
  hand_on(stream);
}

// --- the worker ------------------------------------------------------------

static void *work(void *context) {
  C_Stream stream = context;
  lock_stream(stream);
  while (stream->first != NULL || !stream->closing) {
    if (stream->first != NULL && stream->running == NULL) {
      run_first(stream);
    } else {
      pthread_cond_wait(&stream->work, &stream->lock);
    }
  }
  unlock_stream(stream);
  return NULL;
}

// Starts the worker if there is none; false if the system has no thread left.
// Signals are blocked in it: the program's handlers run on its own threads.
static bool want_worker(C_Stream stream) {
  if (stream->has_worker) return true;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  stream->has_worker = pthread_create(&stream->worker, NULL, work, stream) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return stream->has_worker;
}

// Makes sure that |op|, the newest, will run. The worker needs a signal only
// for the first operation of a queue that no thread runs; otherwise it is
// awake, or the running thread goes on with |op|.
static void see_to(C_Stream stream, const tarn__common_queue_op *op) {
  if (!want_worker(stream)) {
    run_until(stream, read_count(&stream->queued));
  } else if (stream->running == NULL && stream->first == op) {
    pthread_cond_signal(&stream->work);
  }
}

static C_Status queue_op(C_Stream stream, const tarn__common_queue_op *op) {
  tarn__common_queue_op *queued = take_op(stream);
  if (queued == NULL) return tarn__wordless(C_FAILED);
  *queued = *op;
  append(stream, queued);
  see_to(stream, queued);
  return C_SUCCESS;
}

// An operation that was not queued has no ticket, unless it fails: then marks
// from before it must differ from those behind it.
static void run_briefly(C_Stream stream, const tarn__common_queue_op *op) {
  op->run(op);
  tarn__host_free(op->owned, op->owned_size);
  if (stream->failed_at > read_count(&stream->queued)) {
    count_up(&stream->queued);
    count_up(&stream->done);
  }
}

// Under the lock even when the stream is idle: two threads that call at the
// same time have no order, but what they ask for must not run at once.
C_Status tarn__queue_submit(C_Stream stream, const tarn__common_queue_op *op) {
  C_Status status = C_SUCCESS;
  lock_stream(stream);
  if (op->brief && tarn__queue_is_idle(stream)) {
    run_briefly(stream, op);
  } else {
    status = queue_op(stream, op);
  }
  unlock_stream(stream);
  return status;
}

// Operations of a stream run one at a time, so there is one writer. Readers
// have seen |failure|, which is set after the text.
void tarn__queue_fail(C_Stream stream, C_Status failure, const char *why) {
  if (atomic_load_explicit(&stream->failure, memory_order_relaxed) !=
      C_SUCCESS) {
    return;
  }
  tarn__text_copy(why, stream->why, sizeof stream->why);
  stream->failed_at = read_count(&stream->done) + 1;
  atomic_store_explicit(&stream->failure, failure, memory_order_release);
}

const char *tarn__queue_why(C_Stream stream) {
  bool failed =
      atomic_load_explicit(&stream->failure, memory_order_acquire) != C_SUCCESS;
  return failed ? stream->why : "";
}

// --- marks -----------------------------------------------------------------

tarn__common_queue_mark tarn__queue_mark_now(C_Stream stream) {
  return (tarn__common_queue_mark){stream, read_count(&stream->queued)};
}

bool tarn__queue_mark_reached(tarn__common_queue_mark mark) {
  return mark.stream == NULL || is_done(mark.stream, mark.ticket);
}

C_Status tarn__queue_mark_outcome(tarn__common_queue_mark mark) {
  if (mark.stream == NULL) return C_SUCCESS;
  C_Status failure =
      atomic_load_explicit(&mark.stream->failure, memory_order_acquire);
  bool before = failure != C_SUCCESS && mark.stream->failed_at <= mark.ticket;
  return before ? failure : C_SUCCESS;
}

void tarn__queue_mark_help(tarn__common_queue_mark mark) {
  if (tarn__queue_mark_reached(mark)) return;
  lock_stream(mark.stream);
  run_until(mark.stream, mark.ticket);
  unlock_stream(mark.stream);
}

void tarn__queue_mark_await(tarn__common_queue_mark mark) {
  if (tarn__queue_mark_reached(mark)) return;
  lock_stream(mark.stream);
  while (!is_done(mark.stream, mark.ticket))
    sleep_for(mark.stream, mark.ticket);
  unlock_stream(mark.stream);
}

// --- beginning and end -----------------------------------------------------

C_Stream tarn__queue_stream_open(void) {
  C_Stream stream = tarn__host_alloc(sizeof *stream);
  if (stream == NULL) return NULL;
  atomic_init(&stream->holds, 1);
  atomic_init(&stream->failure, C_SUCCESS);
  pthread_mutex_init(&stream->lock, NULL);
  pthread_cond_init(&stream->work, NULL);
  pthread_cond_init(&stream->progress, NULL);
  stream->awaited = UINT64_MAX;
  return stream;
}

// Other threads may still read the stream, through marks that they hold.
static void finish(C_Stream stream) {
  lock_stream(stream);
  run_until(stream, read_count(&stream->queued));
  free_ops(stream->spare);
  stream->spare = NULL;
  stream->closing = true;
  pthread_cond_signal(&stream->work);
  unlock_stream(stream);
  if (stream->has_worker) pthread_join(stream->worker, NULL);
}

// In a forked child: frees what waited, and what the worker was at, which is
// not there to come back to it. Where the lock is taken, its owner stayed in
// the parent half way through a change: then the operations are left behind,
// for a child may lose a few bytes but not free them twice.
static void abandon(C_Stream stream) {
  if (pthread_mutex_trylock(&stream->lock) != 0) return;
  free_ops(stream->first);
  free_ops(stream->running);
  free_ops(stream->spare);
  stream->first = stream->running = stream->spare = NULL;
  unlock_stream(stream);
}

void tarn__queue_stream_close(C_Stream stream) {
  if (tarn__queue_is_stale(&stream->entry)) {
    abandon(stream);
  } else {
    finish(stream);
  }
  tarn__queue_stream_drop(stream);
}

void tarn__queue_stream_hold(C_Stream stream) {
  atomic_fetch_add_explicit(&stream->holds, 1, memory_order_relaxed);
}

void tarn__queue_stream_drop(C_Stream stream) {
  if (stream == NULL) return;
  if (atomic_fetch_sub_explicit(&stream->holds, 1, memory_order_acq_rel) != 1) {
    return;
  }
  // In a child, destroying a condition would wait for sleepers long gone.
  if (!tarn__queue_is_stale(&stream->entry)) {
    pthread_cond_destroy(&stream->progress);
    pthread_cond_destroy(&stream->work);
    pthread_mutex_destroy(&stream->lock);
  }
  tarn__host_free(stream, sizeof *stream);
}
