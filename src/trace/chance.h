// chance.h - what workloads draw: numbers of a generator with a seed, and the
// distributions that programs have.
//
// Everything is computed in integers, so that the same seed gives the same
// trace with any compiler, processor and C library.
#ifndef TARN_TRACE_CHANCE_H_
#define TARN_TRACE_CHANCE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tarn__trace_chance {
  uint64_t state;  // the seed to begin with
} tarn__trace_chance;

// A number of 64 bits.
uint64_t tarn__chance_draw(tarn__trace_chance *chance);

// A number below |bound|, which is not 0; each about as often as any other.
size_t tarn__chance_below(tarn__trace_chance *chance, size_t bound);

// True |times| out of |of| times.
bool tarn__chance_is(tarn__trace_chance *chance, size_t times, size_t of);

// A log-normal distribution: the logarithm of a length has a standard deviation
// of 1. A sixth of all lengths is longer than 2.7 times the median, one in 44
// longer than 7.4 times. Lengths outside of |least| and |most| become these.
typedef struct tarn__trace_lengths {
  size_t median;
  size_t least;
  size_t most;
} tarn__trace_lengths;

size_t tarn__chance_length(tarn__trace_chance *chance,
                           tarn__trace_lengths lengths);

#endif  // TARN_TRACE_CHANCE_H_
