// A thread for each engine looks, at times, whether the call that it saw last
// is still the same:
//
//   call     | Isend |   | Testsome ......................
//   number       1             2
//   looks      ^     ^     ^       ^       ^       ^       ^
//   same       0     0     0       1       2       3       prints, ends
//
// Looks are counted, not time: a process that was stopped is not blamed for it.
#include "guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { LOOKS = 32, LEAST_MS = 1000, LAST_SECONDS = 2 };
static const uint64_t MOST_MS = 1000000000;

struct tarn__guard {
  pthread_t thread;
  pid_t owner;
  pthread_mutex_t lock;  // guards |stops|
  pthread_cond_t changed;
  bool stops;
  uint64_t limit_ms;
  size_t rank;
  _Atomic(const char *) call;  // NULL: none
  atomic_uint number;          // of calls
};

// --- the end of a process --------------------------------------------------

// Nothing of stdio, whose locks other threads may hold for ever.
static void print(const tarn__guard *g, const char *call) {
  char line[160];
  int size = snprintf(line, sizeof line,
                      "tarn: rank %zu: %s has not returned within %llu ms: "
                      "this process ends\n",
                      g->rank, call, (unsigned long long)g->limit_ms);
  if (size > 0) (void)!write(STDERR_FILENO, line, (size_t)size);
}

// Threads of the library take no signals of the program's.
static bool start(pthread_t *thread, void *(*run)(void *), void *context) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = pthread_create(thread, NULL, run, context) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started;
}

// --- one engine ------------------------------------------------------------

static struct timespec later(uint64_t ms) {
  struct timespec at;
  (void)clock_gettime(CLOCK_MONOTONIC, &at);
  uint64_t ns = (uint64_t)at.tv_nsec + ms % 1000 * 1000000;
  at.tv_sec += (time_t)(ms / 1000 + ns / 1000000000);
  at.tv_nsec = (long)(ns % 1000000000);
  return at;
}

// Whether the guard is to go on, after a while.
static bool pause_for(tarn__guard *g, uint64_t ms) {
  const struct timespec end = later(ms);
  int result = 0;
  pthread_mutex_lock(&g->lock);
  while (!g->stops && result == 0)
    result = pthread_cond_timedwait(&g->changed, &g->lock, &end);
  bool goes_on = !g->stops;
  pthread_mutex_unlock(&g->lock);
  return goes_on;
}

static void *watch(void *context) {
  tarn__guard *g = context;
  unsigned last = 0;
  unsigned same = 0;
  while (pause_for(g, g->limit_ms / LOOKS)) {
    const char *call = atomic_load(&g->call);
    unsigned number = atomic_load(&g->number);
    same = call != NULL && number == last ? same + 1 : 0;
    last = number;
    if (same < LOOKS) continue;
    print(g, call);
    sleep(LAST_SECONDS);
    _exit(EXIT_FAILURE);
  }
  return NULL;
}

static uint64_t limit_of(uint64_t timeout_ms) {
  uint64_t ms = timeout_ms < MOST_MS ? timeout_ms : MOST_MS;
  ms += ms / 10;
  return ms > LEAST_MS ? ms : LEAST_MS;
}

static void init_condition(pthread_cond_t *condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

tarn__guard *tarn__guard_create(uint64_t timeout_ms, size_t rank) {
  tarn__guard *g = calloc(1, sizeof *g);
  if (g == NULL) return NULL;
  g->owner = getpid();
  g->limit_ms = limit_of(timeout_ms);
  g->rank = rank;
  pthread_mutex_init(&g->lock, NULL);
  init_condition(&g->changed);
  if (start(&g->thread, watch, g)) return g;
  free(g);
  return NULL;
}

void tarn__guard_destroy(tarn__guard *g) {
  if (g == NULL) return;
  if (g->owner == getpid()) {
    pthread_mutex_lock(&g->lock);
    g->stops = true;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->thread, NULL);
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
  }
  free(g);
}

void tarn__guard_enter(tarn__guard *g, const char *call) {
  atomic_fetch_add_explicit(&g->number, 1, memory_order_relaxed);
  atomic_store_explicit(&g->call, call, memory_order_release);
}

void tarn__guard_leave(tarn__guard *g) {
  atomic_store_explicit(&g->call, NULL, memory_order_release);
}

// --- the last calls --------------------------------------------------------

typedef struct ending {
  unsigned seconds;
  int status;
} ending;

static void *end_late(void *context) {
  const ending *own = context;
  sleep(own->seconds);
  _exit(own->status);
}

void tarn__guard_end_within(unsigned seconds, int status) {
  static ending own;
  pthread_t thread;
  own = (ending){seconds, status};
  if (start(&thread, end_late, &own)) (void)pthread_detach(thread);
}
