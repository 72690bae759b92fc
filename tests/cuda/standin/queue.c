// The thread of a stream: each has one from its first command until it is
// destroyed and empty; the streams that every context has, until they are
// empty.
//
//   standin_queue_add -> [ command | command | ... ] -> the thread
//
// The legacy stream, and those that are not non-blocking, wait for each other:
// a command notes up to where the others have to be over.
//
// A failure of work sticks to the context: whatever is queued on any of its
// streams fails too, and nothing but callbacks runs.
#include "queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "entry.h"
#include "faults.h"
#include "report.h"
#include "settings.h"

typedef struct condition {
  CUstream stream;  // held
  uint64_t number;
} condition;

struct standin_command {
  standin_command *next;
  const char *call;
  uint64_t number;
  tarn__cuda_result doomed;  // fails with this; 0: it runs
  condition *waits;
  size_t wait_count;
  standin_work *works;
  size_t work_count;
};

// Guarded by the lock of objects.
static bool held;
static bool has_last;   // a thread has ended, and was not joined
static pthread_t last;  // it; it joins the one that ended before
static bool has_exit;
static unsigned seed = 1;

CUstream standin_queue_handle(CUstream stream) {
  if (stream->is_legacy) return TARN__CU_STREAM_LEGACY;
  return stream->is_per_thread ? TARN__CU_STREAM_PER_THREAD : stream;
}

static bool is_blocking(const struct CUstream_st *stream) {
  return (stream->flags & TARN__CU_STREAM_NON_BLOCKING) == 0;
}

// --- what a command waits for ----------------------------------------------

typedef struct search {
  CUstream stream;  // of the command
  standin_command *command;
  bool failed;
} search;

static bool add_wait(standin_command *command, CUstream stream,
                     uint64_t number) {
  condition *grown = realloc(
      command->waits, (command->wait_count + 1) * sizeof *command->waits);
  if (grown == NULL) return false;
  command->waits = grown;
  grown[command->wait_count++] = (condition){stream, number};
  standin_use(stream);
  return true;
}

static bool orders(const struct CUstream_st *a, const struct CUstream_st *b) {
  if (a == b || a->context != b->context || a->life != b->life) return false;
  return (a->is_legacy || b->is_legacy) && is_blocking(a) && is_blocking(b);
}

static void add_order(void *object, void *context) {
  CUstream other = object;
  search *s = context;
  if (!orders(s->stream, other) || other->queued == other->finished) return;
  if (!add_wait(s->command, other, other->queued)) s->failed = true;
}

static bool add_orders(standin_command *command, CUstream stream) {
  search s = {stream, command, false};
  if (is_blocking(stream)) standin_each(STANDIN_STREAM, add_order, &s);
  return !s.failed;
}

static bool is_waiting(const standin_command *command) {
  for (size_t i = 0; i < command->wait_count; i++) {
    if (command->waits[i].stream->finished < command->waits[i].number) {
      return true;
    }
  }
  return false;
}

static bool can_begin(const struct CUstream_st *stream) {
  return stream->first != NULL && !held && !is_waiting(stream->first);
}

// --- running one -----------------------------------------------------------

static void end_command(standin_command *command) {
  for (size_t i = 0; i < command->wait_count; i++)
    standin_unuse(command->waits[i].stream);
  for (size_t i = 0; i < command->work_count; i++)
    standin_work_end(&command->works[i]);
  free(command->waits);
  free(command->works);
  free(command);
}

static tarn__cuda_result failure_before(const struct CUstream_st *stream) {
  tarn__cuda_result lost = standin_lost();
  if (lost != TARN__CU_SUCCESS) return lost;
  if (stream->life != stream->context->life) {
    return TARN__CU_ERROR_CONTEXT_IS_DESTROYED;
  }
  return stream->context->failure;
}

static bool is_of_host(const standin_task *task) {
  return task->action == STANDIN_CALLBACK ||
         task->action == STANDIN_HOST_FUNCTION;
}

static void run_work(CUstream stream, standin_work *work,
                     tarn__cuda_result failure) {
  if (failure == TARN__CU_SUCCESS) failure = standin_work_before(work);
  bool begun = failure == TARN__CU_SUCCESS;
  standin_unlock();
  standin_set_in_callback(is_of_host(&work->task));
  failure = standin_work_run(work, standin_queue_handle(stream), failure);
  standin_set_in_callback(false);
  standin_lock();
  if (begun) standin_work_after(work);
  bool is_gone = stream->life != stream->context->life;
  if (failure != TARN__CU_SUCCESS && !is_gone) {
    standin_context_fail(stream->context, failure);
  }
}

static void be_late(void) {
  uint64_t most = standin_number(STANDIN_LATE);
  if (most == 0) return;
  seed = seed * 1664525U + 1013904223U;
  useconds_t now = (useconds_t)((seed >> 8) % (most + 1));
  standin_unlock();
  usleep(now);
  standin_lock();
}

// Memory is given back before the command is over: who waits for it finds
// nothing held.
static void run_one(CUstream stream) {
  standin_command *command = stream->first;
  stream->running = true;
  be_late();
  standin_set_call(command->call);
  for (size_t i = 0; i < command->work_count; i++) {
    tarn__cuda_result failure = failure_before(stream);
    if (failure == TARN__CU_SUCCESS) failure = command->doomed;
    run_work(stream, &command->works[i], failure);
  }
  stream->first = command->next;
  if (stream->first == NULL) stream->last = NULL;
  uint64_t number = command->number;
  end_command(command);
  stream->finished = number;
  stream->running = false;
  standin_tell_all();
}

// --- the threads -----------------------------------------------------------
// Each is joined: sanitizers complain of a thread that is just ending when the
// program does.

static bool take_last(pthread_t *out) {
  bool had = has_last;
  *out = last;
  has_last = false;
  return had;
}

static void join_ended(void) {
  pthread_t ended;
  if (!take_last(&ended)) return;
  standin_unlock();
  pthread_join(ended, NULL);
  standin_lock();
}

// Before the sanitizer's own, which was added before.
static void join_at_exit(void) {
  if (standin_in_child()) return;
  standin_lock();
  standin_queues_settle();
  standin_unlock();
}

static bool goes_on(const struct CUstream_st *stream) {
  if (stream->first != NULL) return true;
  return !stream->object.is_destroyed && !stream->object.is_own;
}

// The thread holds the stream.
static void *work(void *argument) {
  CUstream stream = argument;
  standin_lock();
  while (goes_on(stream)) {
    if (can_begin(stream)) {
      run_one(stream);
    } else {
      standin_wait_any();
    }
  }
  stream->threaded = false;
  standin_unuse(stream);
  pthread_t before;
  bool had = take_last(&before);
  last = pthread_self();
  has_last = true;
  standin_tell_all();
  standin_unlock();
  if (had) pthread_join(before, NULL);
  return NULL;
}

static bool start_thread(CUstream stream) {
  if (stream->threaded) return true;
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, stream) != 0) return false;
  if (!has_exit) has_exit = atexit(join_at_exit) == 0;
  stream->threaded = true;
  standin_use(stream);
  return true;
}

static void append(CUstream stream, standin_command *command) {
  command->number = ++stream->queued;
  if (stream->last != NULL) {
    stream->last->next = command;
  } else {
    stream->first = command;
  }
  stream->last = command;
  standin_tell_all();
}

static void end_works(standin_work *works, size_t count) {
  for (size_t i = 0; i < count; i++)
    standin_work_end(&works[i]);
}

static standin_command *make_command(standin_work *works, size_t count) {
  standin_command *made = calloc(1, sizeof *made);
  standin_work *kept = malloc((count + 1) * sizeof *kept);
  if (made == NULL || kept == NULL) {
    end_works(works, count);
    free(made);
    free(kept);
    return NULL;
  }
  for (size_t i = 0; i < count; i++)
    kept[i] = works[i];
  *made = (standin_command){
      .call = standin_call(), .works = kept, .work_count = count};
  return made;
}

tarn__cuda_result standin_queue_add(CUstream stream, standin_work *works,
                                    size_t count, CUstream waits,
                                    uint64_t number) {
  standin_command *made = make_command(works, count);
  if (made == NULL) return TARN__CU_ERROR_OUT_OF_MEMORY;
  bool ok = add_orders(made, stream) &&
            (waits == NULL || add_wait(made, waits, number)) &&
            start_thread(stream);
  if (!ok) {
    end_command(made);
    return TARN__CU_ERROR_OUT_OF_MEMORY;
  }
  made->doomed = standin_next_command();
  append(stream, made);
  return TARN__CU_SUCCESS;
}

// --- waiting ---------------------------------------------------------------

void standin_queue_await(CUstream stream, uint64_t number) {
  while (stream->finished < number)
    standin_wait_any();
}

typedef struct question {
  CUstream stream;
  bool is_over;
} question;

static void ask(void *object, void *context) {
  CUstream other = object;
  question *q = context;
  bool counts =
      other == q->stream || (q->stream->is_legacy && orders(q->stream, other));
  if (counts && other->finished < other->queued) q->is_over = false;
}

bool standin_queue_is_over(CUstream stream) {
  question q = {stream, true};
  standin_each(STANDIN_STREAM, ask, &q);
  return q.is_over;
}

// --- for tests -------------------------------------------------------------

void standin_queue_hold(bool on) {
  held = on;
  standin_tell_all();
}

static void see_unsettled(void *object, void *context) {
  const struct CUstream_st *stream = object;
  bool *unsettled = context;
  bool ends = stream->threaded && !goes_on(stream);
  if (stream->running || ends || can_begin(stream)) *unsettled = true;
}

void standin_queues_settle(void) {
  for (;;) {
    bool unsettled = false;
    standin_each(STANDIN_STREAM, see_unsettled, &unsettled);
    if (!unsettled) break;
    standin_wait_any();
  }
  join_ended();
}

static void count_queued(void *object, void *context) {
  const struct CUstream_st *stream = object;
  size_t *count = context;
  *count += stream->queued - stream->finished;
}

size_t standin_queued_commands(void) {
  size_t count = 0;
  standin_each(STANDIN_STREAM, count_queued, &count);
  return count;
}
