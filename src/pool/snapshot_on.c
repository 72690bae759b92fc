// Snapshots that are set up beforehand: at a refusal with TARN_FULL, and at a
// signal.
//
// At a refusal: a failed snapshot is reported only to the log, and changes
// neither the request's status nor its text. One is written at a time, of
// whichever pool; a thread with another one waits, without the lock of a pool.
//
// At a signal: a handler wakes a thread, which writes.
//
//   signal ─► handler: sem_post ─► thread: a file of each pool
//
// Signals that arrive while files are written cause one more snapshot of each
// pool, however many they were. A child of fork keeps the handler, which has no
// effect until the child asks for a thread of its own: otherwise a signal sent
// to both processes would end the child.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"

static const char VARIABLE[] = "TARN_SNAPSHOT_ON_FULL";
uint64_t tarn__full_shot_period_ns = 1000000000u;

struct tarn__pool_full_shot {
  tarn__pool_picture picture;
  tarn_trace_format format;
  char *path;
};

// Guards all below; taken around a fork. No other lock is taken under it.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;  // a flag has ended

static struct {
  bool is_set;       // by the program, or as the environment says
  uint64_t setting;  // counts how often
  tarn_trace_format format;
  char *path;  // NULL: no snapshot is wanted
  bool busy;   // a thread writes
} wish;

static sem_t told;  // by the handler

static struct {
  int signal;               // the signal that has the handler; 0: no signal
  struct sigaction before;  // the previous handler
  tarn_trace_format format;
  char *path;
  bool running;   // there is a thread
  bool stopping;  // and some other waits for its end
  pthread_t thread;
} watch;

static void enter(void) {
  pthread_mutex_lock(&lock);
}

static void leave(void) {
  pthread_mutex_unlock(&lock);
}

// Waits until |*flag|, which the lock guards, has ended.
static void await_end(const bool *flag) {
  while (*flag)
    pthread_cond_wait(&changed, &lock);
}

// A thread that writes is the parent's, and so is the signal's thread.
static void begin_child(void) {
  wish.busy = watch.running = watch.stopping = false;
  pthread_cond_init(&changed, NULL);
  leave();
}

TARN__WATCH_FORKS_LAST static void watch_forks(void) {
  sem_init(&told, 0, 0);
  pthread_atfork(enter, leave, begin_child);
}

// --- at a refusal: settings ------------------------------------------------

// |path| NULL: no snapshots.
static tarn_status set(tarn_trace_format format, const char *path) {
  char *copy = path != NULL ? tarn__host_text(path) : NULL;
  if (path != NULL && copy == NULL) return TARN_E_NOMEM;
  tarn__host_free_text(wish.path);
  wish.path = copy;
  wish.format = format;
  wish.setting++;
  wish.is_set = true;
  return TARN_OK;
}

// Programs that run with rights beyond their user's write no file at his wish.
static tarn_status set_by_environment(void) {
  const char *path = secure_getenv(VARIABLE);
  if (path == NULL || *path == '\0') return set(TARN_TRACE_FORMAT_TARN, NULL);
  tarn_status status =
      tarn__snapshot_check(TARN_TRACE_FORMAT_TARN, path, false);
  if (status != TARN_OK) {
    return tarn__fail(status, "%s: %s", VARIABLE, tarn_last_error());
  }
  return set(TARN_TRACE_FORMAT_TARN, path);
}

tarn_status tarn__full_shots_begin(void) {
  enter();
  tarn_status status = wish.is_set ? TARN_OK : set_by_environment();
  leave();
  return status;
}

tarn_status tarn_pool_snapshot_on_full(tarn_trace_format format,
                                       const char *path) {
  TARN__TRY(tarn__not_in_callback());
  if (path != NULL) {
    TARN__TRY(tarn__snapshot_check(format, path, false));
  }
  enter();
  tarn_status status = set(format, path);
  leave();
  return status;
}

// --- taking ----------------------------------------------------------------

static void report(void) {
  tarn__log(TARN_LOG_WARN, "pool: no snapshot of a refused request: %s",
            tarn_last_error());
}

static void discard(tarn__pool_full_shot *shot) {
  tarn__picture_deinit(&shot->picture);
  tarn__host_free_text(shot->path);
  tarn__host_free(shot, sizeof *shot);
}

// Whether a snapshot is wanted now: the first since this was asked for, or
// again after a while.
static bool is_due(tarn__pool_full_shots *shots, uint64_t setting) {
  uint64_t now = tarn__os_now_ns();
  if (shots->setting == setting &&
      now - shots->time_ns < tarn__full_shot_period_ns) {
    return false;
  }
  *shots = (tarn__pool_full_shots){.setting = setting, .time_ns = now};
  return true;
}

// An empty shot with its path, if one is due, as |*out_due| says. NULL: none is
// due, or no host memory. The path is NULL if there is no host memory for it.
static tarn__pool_full_shot *begin_shot(tarn_pool *pool, bool *out_due) {
  tarn__pool_full_shot *shot = NULL;
  enter();
  *out_due = wish.path != NULL && is_due(&pool->full_shots, wish.setting);
  if (*out_due) shot = tarn__host_alloc(sizeof *shot);
  if (shot != NULL) {
    shot->format = wish.format;
    shot->path = tarn__host_text(wish.path);
  }
  leave();
  return shot;
}

tarn__pool_full_shot *tarn__full_shot_take(tarn_pool *pool,
                                           const tarn__pool_refusal *refusal) {
  tarn__failure said = tarn__failure_of(TARN_FULL);
  bool due = false;
  tarn__pool_full_shot *shot = begin_shot(pool, &due);
  if (!due) return NULL;
  tarn_status status = shot != NULL && shot->path != NULL
                           ? tarn__picture_take(pool, refusal, &shot->picture)
                           : TARN_E_NOMEM;
  if (status == TARN_OK) return shot;
  report();
  if (shot != NULL) discard(shot);
  (void)tarn__failure_tell(&said);
  return NULL;
}

// --- writing ---------------------------------------------------------------

// One picture is written at a time.
static void take_turn(void) {
  enter();
  await_end(&wish.busy);
  wish.busy = true;
  leave();
}

static void end_turn(void) {
  enter();
  wish.busy = false;
  pthread_cond_broadcast(&changed);
  leave();
}

void tarn__full_shot_write(tarn__pool_full_shot *shot) {
  if (shot == NULL) return;
  tarn__failure said = tarn__failure_of(TARN_FULL);
  take_turn();
  tarn_status status =
      tarn__snapshot_write_picture(&shot->picture, shot->format, shot->path);
  end_turn();
  if (status != TARN_OK) report();
  discard(shot);
  (void)tarn__failure_tell(&said);
}

// --- at a signal: the thread -----------------------------------------------

static void forget_signals(void) {
  while (sem_trywait(&told) == 0)
    continue;
}

// Signals that arrived together count as one.
static void await_signal(void) {
  while (sem_wait(&told) != 0 && errno == EINTR)
    continue;
  forget_signals();
}

// A copy of the path, which may change during the call. False: the thread has
// to end.
static bool read_wish(tarn_trace_format *out_format, char **out_path) {
  enter();
  bool goes_on = !watch.stopping;
  *out_format = watch.format;
  *out_path = goes_on ? tarn__host_text(watch.path) : NULL;
  leave();
  return goes_on;
}

static void *write_when_told(void *unused) {
  (void)unused;
  for (;;) {
    char *path = NULL;
    tarn_trace_format format = TARN_TRACE_FORMAT_TARN;
    await_signal();
    if (!read_wish(&format, &path)) return NULL;
    tarn_status status =
        path != NULL ? tarn_pool_snapshot_all(format, path) : TARN_E_NOMEM;
    if (status != TARN_OK) {
      tarn__log(TARN_LOG_WARN, "pool: no snapshot at a signal: %s",
                tarn_last_error());
    }
    tarn__host_free_text(path);
  }
}

// Signals are blocked in it: the program's handlers run on its own threads.
// Those that came while there was no thread are over.
static tarn_status start(void) {
  sigset_t all;
  sigset_t before;
  if (watch.running) return TARN_OK;
  forget_signals();
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&watch.thread, NULL, write_when_told, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  watch.running = error == 0;
  if (error == 0) return TARN_OK;
  return tarn__fail(TARN_E_NOMEM,
                    "snapshot: no thread to wait for the signal: error %d",
                    error);
}

// The lock is released while the thread ends.
static void stop(void) {
  pthread_t thread = watch.thread;
  watch.stopping = true;
  sem_post(&told);
  leave();
  pthread_join(thread, NULL);
  enter();
  watch.running = watch.stopping = false;
  pthread_cond_broadcast(&changed);
}

// --- the handler -----------------------------------------------------------

static void tell(int signal) {
  (void)signal;
  int error = errno;
  (void)sem_post(&told);
  errno = error;
}

// Not the signals of faults: the thread cannot go on after them.
static bool is_fault(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE ||
         signal == SIGILL || signal == SIGTRAP || signal == SIGABRT ||
         signal == SIGSYS;
}

static tarn_status check_signal(int signal) {
  struct sigaction now;
  bool can = signal != SIGKILL && signal != SIGSTOP && !is_fault(signal) &&
             sigaction(signal, NULL, &now) == 0;
  if (can) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "snapshot: signal %d cannot be caught",
                    signal);
}

static void install(int signal) {
  struct sigaction action = {.sa_handler = tell, .sa_flags = SA_RESTART};
  if (signal == watch.signal) return;
  sigfillset(&action.sa_mask);
  (void)sigaction(signal, &action, &watch.before);
  watch.signal = signal;
}

// Unless the program has put something else there since.
static void uninstall(void) {
  struct sigaction now;
  if (watch.signal == 0) return;
  bool ours = sigaction(watch.signal, NULL, &now) == 0 &&
              (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == tell;
  if (ours) (void)sigaction(watch.signal, &watch.before, NULL);
  watch.signal = 0;
}

// --- beginning and end -----------------------------------------------------

static void set_path(tarn_trace_format format, char *path) {
  tarn__host_free_text(watch.path);
  watch.path = path;
  watch.format = format;
}

// In a child the parent's signal goes, since no thread is there for it. The
// thread is there before the handler, so that no signal of the program's is
// lost if it cannot be had.
static tarn_status begin_locked(int signal, tarn_trace_format format,
                                char *path) {
  if (watch.running && watch.signal != signal) {
    return tarn__fail(TARN_E_STATE, "snapshot: signal %d is set already",
                      watch.signal);
  }
  TARN__TRY(start());
  if (watch.signal != signal) uninstall();
  install(signal);
  set_path(format, path);
  return TARN_OK;
}

static tarn_status begin(int signal, tarn_trace_format format,
                         const char *path) {
  TARN__TRY(tarn__snapshot_check(format, path, true));
  TARN__TRY(check_signal(signal));
  char *copy = tarn__host_text(path);
  if (copy == NULL) return TARN_E_NOMEM;
  enter();
  await_end(&watch.stopping);
  tarn_status status = begin_locked(signal, format, copy);
  leave();
  if (status != TARN_OK) tarn__host_free_text(copy);
  return status;
}

static void end(void) {
  enter();
  await_end(&watch.stopping);
  uninstall();
  if (watch.running) stop();
  set_path(TARN_TRACE_FORMAT_TARN, NULL);
  leave();
}

tarn_status tarn_pool_snapshot_on_signal(int signal, tarn_trace_format format,
                                         const char *path) {
  TARN__TRY(tarn__not_in_callback());
  if (path != NULL) return begin(signal, format, path);
  end();
  return TARN_OK;
}
