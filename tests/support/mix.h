// mix.h - numbers that look random and are the same for all who ask: processes
// that must agree on what comes next draw alike, each for itself.
#ifndef TARN_TESTS_SUPPORT_MIX_H_
#define TARN_TESTS_SUPPORT_MIX_H_

#include <stdint.h>

// 64 bits of which each depends on all of |a| and |b|.
static inline uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 31) * 0x94d049bb133111eb;
  return x ^ x >> 29;
}

#endif  // TARN_TESTS_SUPPORT_MIX_H_
