// The log callback: one for the process, behind one lock.
#include <pthread.h>
#include <stdio.h>

#include "base/status.h"

static struct {
  pthread_mutex_t lock;  // guards all below, and one call at a time
  tarn_log_fn *log;
  void *context;
  tarn_log_level level;
} sink = {.lock = PTHREAD_MUTEX_INITIALIZER};

void tarn_log_set(tarn_log_fn *log, void *context, tarn_log_level level) {
  pthread_mutex_lock(&sink.lock);
  sink.log = log;
  sink.context = context;
  sink.level = level;
  pthread_mutex_unlock(&sink.lock);
}

void tarn__log(tarn_log_level level, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);

  pthread_mutex_lock(&sink.lock);
  if (sink.log != NULL && level <= sink.level) {
    sink.log(sink.context, level, text);
  }
  pthread_mutex_unlock(&sink.lock);
}
