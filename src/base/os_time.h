// os_time.h - spans of time as the kernel takes them; for the files os*.c.
#ifndef TARN_BASE_OS_TIME_H_
#define TARN_BASE_OS_TIME_H_

#include <stdint.h>
#include <time.h>

static inline struct timespec tarn__os_timespec(uint64_t ns) {
  return (struct timespec){(time_t)(ns / 1000000000u),
                           (long)(ns % 1000000000u)};
}

#endif  // TARN_BASE_OS_TIME_H_
