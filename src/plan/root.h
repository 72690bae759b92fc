// root.h - square roots without libm, which the library does not link.
#ifndef TARN_PLAN_ROOT_H_
#define TARN_PLAN_ROOT_H_

#include <stdint.h>
#include <string.h>

// The square root of |x|, which is 0 or above 2^-1000 and finite, to the last
// bit or two; the same on every machine.
//
// Half the exponent is a guess within 6%, and each step of Newton's doubles the
// digits that are right.
static inline double tarn__plan_root(double x) {
  enum { STEPS = 4 };
  const uint64_t half_bias = UINT64_C(0x1FF8) << 48;
  uint64_t bits = 0;
  double root = 0;
  if (!(x > 0)) return 0;
  memcpy(&bits, &x, sizeof bits);
  bits = (bits >> 1) + half_bias;
  memcpy(&root, &bits, sizeof root);
  for (int i = 0; i < STEPS; i++)
    root = (root + x / root) / 2;
  return root;
}

#endif  // TARN_PLAN_ROOT_H_
