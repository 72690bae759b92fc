// The log callback: one for the process, behind one lock.
#include <pthread.h>
#include <stdio.h>

#include "base/os.h"
#include "base/status.h"

static struct {
  pthread_mutex_t lock;  // guards all below, and one call at a time; taken
                         // around a fork
  tarn_log_fn *log;
  void *context;
  tarn_log_level level;
} sink = {.lock = PTHREAD_MUTEX_INITIALIZER};

TARN__LOCK_AROUND_FORKS(LAST, sink, &sink.lock, unlock_sink)

void tarn_log_set(tarn_log_fn *log, void *context, tarn_log_level level) {
  lock_sink();
  sink.log = log;
  sink.context = context;
  sink.level = level;
  unlock_sink();
}

void tarn__log(tarn_log_level level, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);

  lock_sink();
  if (sink.log != NULL && level <= sink.level) {
    sink.log(sink.context, level, text);
  }
  unlock_sink();
}
