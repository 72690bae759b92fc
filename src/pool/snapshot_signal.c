// Snapshots by signal: a handler that wakes a thread, and the thread.
//
//   signal ─► handler: sem_post ─► thread: a file of each pool
//
// Signals that come while files are being written make one more of each pool
// afterwards, however many they were. The handler stays with a child of fork,
// where it does nothing until the child asks for a thread of its own: else a
// signal sent to both would end the child.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/snapshot.h"

static sem_t told;  // by the handler

static struct {
  pthread_mutex_t lock;    // guards all below; taken around a fork, and nothing
                           // is taken under it
  pthread_cond_t changed;  // |stopping| has ended
  int signal;              // that has the handler; 0: none
  struct sigaction before;  // what it did until then
  tarn_trace_format format;
  char *path;
  bool running;   // there is a thread
  bool stopping;  // and some other waits for its end
  pthread_t thread;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .changed = PTHREAD_COND_INITIALIZER};

static void lock_watch(void) {
  pthread_mutex_lock(&watch.lock);
}

static void unlock_watch(void) {
  pthread_mutex_unlock(&watch.lock);
}

// The thread is the parent's.
static void forget_thread(void) {
  watch.running = watch.stopping = false;
  pthread_cond_init(&watch.changed, NULL);
  unlock_watch();
}

TARN__WATCH_FORKS_LAST static void watch_forks(void) {
  sem_init(&told, 0, 0);
  pthread_atfork(lock_watch, unlock_watch, forget_thread);
}

// --- the thread ------------------------------------------------------------

static void forget_signals(void) {
  while (sem_trywait(&told) == 0)
    continue;
}

// Those that came together are one.
static void await_signal(void) {
  while (sem_wait(&told) != 0 && errno == EINTR)
    continue;
  forget_signals();
}

// A copy of the path, for it may change meanwhile. False: the thread is to end.
static bool read_wish(tarn_trace_format *out_format, char **out_path) {
  lock_watch();
  bool goes_on = !watch.stopping;
  *out_format = watch.format;
  *out_path = goes_on ? tarn__host_text(watch.path) : NULL;
  unlock_watch();
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

// the lock is released while the thread ends.
static void stop(void) {
  pthread_t thread = watch.thread;
  watch.stopping = true;
  sem_post(&told);
  unlock_watch();
  pthread_join(thread, NULL);
  lock_watch();
  watch.running = watch.stopping = false;
  pthread_cond_broadcast(&watch.changed);
}

// --- the handler -----------------------------------------------------------

static void tell(int signal) {
  (void)signal;
  int error = errno;
  (void)sem_post(&told);
  errno = error;
}

// Those that say that something is broken: to go on after them does not help.
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

static void wait_for_stop(void) {
  while (watch.stopping)
    pthread_cond_wait(&watch.changed, &watch.lock);
}

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
  tarn_status status = start();
  if (status != TARN_OK) return status;
  if (watch.signal != signal) uninstall();
  install(signal);
  set_path(format, path);
  return TARN_OK;
}

static tarn_status begin(int signal, tarn_trace_format format,
                         const char *path) {
  tarn_status status = tarn__snapshot_check(format, path, true);
  if (status == TARN_OK) status = check_signal(signal);
  if (status != TARN_OK) return status;
  char *copy = tarn__host_text(path);
  if (copy == NULL) return TARN_E_NOMEM;
  lock_watch();
  wait_for_stop();
  status = begin_locked(signal, format, copy);
  unlock_watch();
  if (status != TARN_OK) tarn__host_free_text(copy);
  return status;
}

static void end(void) {
  lock_watch();
  wait_for_stop();
  uninstall();
  if (watch.running) stop();
  set_path(TARN_TRACE_FORMAT_TARN, NULL);
  unlock_watch();
}

tarn_status tarn_pool_snapshot_on_signal(int signal, tarn_trace_format format,
                                         const char *path) {
  tarn_status status = tarn__not_in_callback();
  if (status != TARN_OK) return status;
  if (path != NULL) return begin(signal, format, path);
  end();
  return TARN_OK;
}
