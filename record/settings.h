// settings.h - the recorder's settings, from the environment.
//
//   TARN_RECORD_OUT        the file; without it nothing is recorded
//   TARN_RECORD_THRESHOLD  bytes of the smallest allocation that is recorded
//   TARN_RECORD_STACKS     0: without stacks
//   TARN_RECORD_FRAMES     the most frames of a stack
//   TARN_RECORD_PID        the process whose file is TARN_RECORD_OUT itself;
//                          without it, the first that has something to write
//
// All are read once, before main.
#ifndef TARN_RECORD_SETTINGS_H_
#define TARN_RECORD_SETTINGS_H_

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { SETTINGS_THRESHOLD = 65536, SETTINGS_FRAMES = 64 };

typedef struct settings {
  // Of the smallest allocation that counts; SIZE_MAX: nothing is recorded, as
  // before the recorder has begun.
  size_t threshold;
  bool stacks;
  int frames;
  pid_t first;         // 0: not set
  char out[PATH_MAX];  // absolute
} settings;

extern settings record_settings;

// Whether an allocation of |size| bytes is to be written down.
static inline bool settings_wants(size_t size) {
  return __builtin_expect(size >= record_settings.threshold, 0) &&
         record_settings.threshold != (size_t)-1;
}

#endif  // TARN_RECORD_SETTINGS_H_
