// settings.h - the recorder's settings, from the environment.
//
//   TARN_RECORD_OUT        the file; without it nothing is recorded
//   TARN_RECORD_THRESHOLD  bytes of the smallest allocation that is recorded
//   TARN_RECORD_STACKS     0: without stacks
//   TARN_RECORD_PYTHON     0: stacks without frames of Python
//   TARN_RECORD_FRAMES     the most frames of a stack, and as many of Python
//   TARN_RECORD_PID        the process whose file is TARN_RECORD_OUT itself;
//                          without it, the first that has something to write
//
// All are read once, before main.
#ifndef TARN_RECORD_SETTINGS_H_
#define TARN_RECORD_SETTINGS_H_

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { SETTINGS_THRESHOLD = 65536, SETTINGS_FRAMES = 64 };

typedef struct settings {
  // Of the smallest allocation that counts; SIZE_MAX: nothing is recorded, as
  // before the recorder has begun.
  size_t threshold;
  // Of the smallest that is looked at more closely: |threshold|, or less while
  // Python is waited for.
  _Atomic size_t watched;
  bool stacks;
  bool python;
  int frames;
  pid_t first;         // 0: not set
  char out[PATH_MAX];  // absolute
} settings;

extern settings record_settings;

// From the next allocation on, whatever its size, python_frames_prepare is
// called, until it says that there is nothing to wait for.
static inline void settings_watch_all(void) {
  atomic_store(&record_settings.watched, 1);
}

bool settings_look(size_t size);

// Whether an allocation of |size| bytes is to be written down.
static inline bool settings_wants(size_t size) {
  size_t least =
      atomic_load_explicit(&record_settings.watched, memory_order_relaxed);
  return __builtin_expect(size >= least, 0) && settings_look(size);
}

#endif  // TARN_RECORD_SETTINGS_H_
