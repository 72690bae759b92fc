// Threads that live as long as one call.
#include <pthread.h>
#include <signal.h>

#include "common/rows_direct.h"

typedef struct helper {
  void (*work)(void *thing);
  void *thing;
  pthread_t thread;
  bool started;
} helper;

static void *help(void *user) {
  helper *h = user;
  h->work(h->thing);
  return NULL;
}

// Signals are blocked in them: the program's handlers run on its own threads.
static void start(helper *helpers, size_t count) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (size_t i = 0; i < count; i++) {
    helper *h = &helpers[i];
    h->started = pthread_create(&h->thread, NULL, help, h) == 0;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void finish(helper *helpers, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (helpers[i].started) {
      pthread_join(helpers[i].thread, NULL);
    } else {
      helpers[i].work(helpers[i].thing);
    }
  }
}

void tarn__rows_on_threads(void (*work)(void *thing), void *things, size_t size,
                           size_t count) {
  helper helpers[TARN__ROWS_THREADS - 1];
  unsigned char *thing = things;
  for (size_t i = 1; i < count; i++) {
    helpers[i - 1] = (helper){.work = work, .thing = thing + i * size};
  }
  start(helpers, count - 1);
  work(things);
  finish(helpers, count - 1);
}
