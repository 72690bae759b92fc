// The life of a recording: it begins before main, begins anew in a child of
// fork, and ends at exit.
//
// A child is known by the kernel's own mark, not by pthread_atfork: that would
// run behind others, which may allocate, and not at all where a program calls
// the kernel itself. So it begins anew at its first event, if it has one.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/events.h"
#include "record/file.h"
#include "record/python_frames.h"
#include "record/real.h"
#include "record/settings.h"
#include "record/slots.h"
#include "record/stacks.h"
#include "record/texts.h"

// ---------------------------------------------------------------------------
// Settings
// ---------------------------------------------------------------------------

// Of the environment; |otherwise| where it says nothing, or no number.
static uint64_t number_of(const char *name, uint64_t otherwise) {
  const char *text = secure_getenv(name);
  char *end;
  if (text == NULL || *text < '0' || *text > '9') return otherwise;
  uint64_t number = strtoull(text, &end, 10);
  return *end == '\0' ? number : otherwise;
}

// A program may change its folder before it has something to record.
static bool read_out(void) {
  const char *out = secure_getenv("TARN_RECORD_OUT");
  char *at = record_settings.out;
  size_t room = sizeof record_settings.out;
  if (out == NULL || *out == '\0') return false;
  if (*out == '/') return (size_t)snprintf(at, room, "%s", out) < room;
  if (getcwd(at, room) == NULL) return false;
  size_t used = strlen(at);
  return (size_t)snprintf(at + used, room - used, "/%s", out) < room - used;
}

static uint64_t at_least_one(uint64_t number) {
  return number > 0 ? number : 1;
}

static void read_settings(void) {
  uint64_t frames =
      at_least_one(number_of("TARN_RECORD_FRAMES", SETTINGS_FRAMES));
  record_settings.stacks = number_of("TARN_RECORD_STACKS", 1) != 0;
  record_settings.python = number_of("TARN_RECORD_PYTHON", 1) != 0;
  record_settings.frames =
      (int)(frames < TARN__LOG_MOST_FRAMES ? frames : TARN__LOG_MOST_FRAMES);
  record_settings.first = (pid_t)number_of("TARN_RECORD_PID", 0);
}

// ---------------------------------------------------------------------------
// What counts
// ---------------------------------------------------------------------------

bool settings_look(size_t size) {
  size_t threshold = record_settings.threshold;
  if (!python_frames_prepare() &&
      atomic_load(&record_settings.watched) != threshold) {
    atomic_store(&record_settings.watched, threshold);
  }
  return size >= threshold && threshold != SIZE_MAX;
}

// ---------------------------------------------------------------------------
// From begin to end
// ---------------------------------------------------------------------------

// Nothing is recorded before the last line.
__attribute__((constructor)) static void begin(void) {
  if (real()->dlsym == NULL || !read_out()) return;
  read_settings();
  if (!file_begin()) (void)pthread_atfork(NULL, NULL, events_forget);
  slots_begin();
  texts_begin();
  stacks_begin();
  bool waits =
      record_settings.stacks && record_settings.python && python_frames_begin();
  record_settings.threshold =
      at_least_one(number_of("TARN_RECORD_THRESHOLD", SETTINGS_THRESHOLD));
  atomic_store(&record_settings.watched, waits ? 1 : record_settings.threshold);
}

__attribute__((destructor)) static void end(void) {
  events_finish();
}
