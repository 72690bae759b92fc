// settings.h - what the environment says, read once, before main.
//
//   TARN_PRELOAD_FROM    bytes of the smallest request that Tarn's pool serves;
//                        0: none is
//   TARN_PRELOAD_REPORT  "-": a line on stderr when the process exits; else the
//                        file that gets a line of JSON
//   TARN_PRELOAD_WHY     SIGNAL or SIGNAL:FILE: a snapshot for `tarn why` at
//                        that signal
//   TARN_POOL            the pool's strategy
#ifndef TARN_PRELOAD_SETTINGS_H_
#define TARN_PRELOAD_SETTINGS_H_

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { SETTINGS_FROM = 65536 };

// The smallest request that is the pool's. SIZE_MAX: none is, as before the
// environment was read.
extern _Atomic size_t settings_from;

typedef struct settings {
  size_t from;            // what settings_from becomes
  char report[PATH_MAX];  // "": no report
  int why_signal;         // 0: none
  char why_file[PATH_MAX];
} settings;

// Reads them. What is wrong is said on stderr, and is as if it were not set.
void settings_read(void);
const settings *settings_now(void);

// Whether a request of |size| bytes is the pool's.
static inline bool settings_wants(size_t size) {
  return __builtin_expect(
      size >= atomic_load_explicit(&settings_from, memory_order_relaxed), 0);
}

// "libtarn-malloc: text" on stderr, in one write, without memory of the heap.
void settings_say(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#endif  // TARN_PRELOAD_SETTINGS_H_
