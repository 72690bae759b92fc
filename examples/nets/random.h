// random.h - a small generator, the same on every machine, and the weights
// that a net starts with.
#ifndef TARN_EXAMPLES_NETS_RANDOM_H_
#define TARN_EXAMPLES_NETS_RANDOM_H_

#include <stddef.h>
#include <stdint.h>

#include "real.h"

// Any state is a good one; it goes on by a constant with each draw.
typedef struct net_random {
  uint64_t state;
} net_random;

// 64 bits (the SplitMix64 of Steele, Lea and Flood).
static inline uint64_t net_random_bits(net_random *random) {
  uint64_t z = random->state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// In [0, 1).
static inline double net_random_unit(net_random *random) {
  return (double)(net_random_bits(random) >> 11) * 0x1p-53;
}

// Of mean 0 and variance 1, nearly normal: the sum of four uniform numbers of
// 16 bits, all from one draw. Never beyond 3.47.
static inline double net_random_bell(net_random *random) {
  uint64_t bits = net_random_bits(random);
  uint64_t sum = (bits & 0xffff) + (bits >> 16 & 0xffff) +
                 (bits >> 32 & 0xffff) + (bits >> 48);
  return ((double)sum - 131070) * (1.7320508075688772 / 65536);
}

// Kaiming's start for weights before a ReLU, each of which feeds on |fan_in|
// values: uniform, of variance gain * gain * 2 / fan_in. A |gain| of 1 keeps
// the size of values from layer to layer; less suits a branch that is added.
void net_init_kaiming(net_random *random, size_t fan_in, double gain,
                      size_t count, net_real *w);

#endif  // TARN_EXAMPLES_NETS_RANDOM_H_
