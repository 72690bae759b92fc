// Draws.
#include "trace/chance.h"

// splitmix64, by Sebastiano Vigna, in the public domain.
uint64_t tarn__chance_draw(tarn__trace_chance *chance) {
  uint64_t z = (chance->state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

size_t tarn__chance_below(tarn__trace_chance *chance, size_t bound) {
  return (size_t)(tarn__chance_draw(chance) % bound);
}

bool tarn__chance_is(tarn__trace_chance *chance, size_t times, size_t of) {
  return tarn__chance_below(chance, of) < times;
}

// The quantiles of a log-normal distribution with the median 1 and the
// deviation 1, in thousandths: the k-th is exp of the normal distribution's at
// k/64. The first and the last, which would be 0 and without an end, are those
// at three deviations.
enum { QUANTILES = 64, MEDIAN = 1000, FRACTION_BITS = 16 };
static const uint32_t quantiles[QUANTILES + 1] = {
    50,   116,  155,  187,  216,  242,  268,  292,  317,  340,  364,
    388,  412,  436,  460,  485,  509,  535,  560,  587,  613,  641,
    669,  698,  727,  758,  789,  821,  854,  889,  925,  962,  1000,
    1040, 1082, 1125, 1170, 1218, 1268, 1320, 1375, 1434, 1495, 1561,
    1630, 1705, 1784, 1870, 1963, 2064, 2174, 2294, 2428, 2577, 2746,
    2937, 3159, 3421, 3736, 4128, 4637, 5344, 6441, 8618, 20086};

// Between two quantiles each length is as likely as any other.
size_t tarn__chance_length(tarn__trace_chance *chance,
                           tarn__trace_lengths lengths) {
  uint64_t drawn = tarn__chance_draw(chance);
  size_t at = (size_t)(drawn % QUANTILES);
  uint64_t part = drawn >> (64 - FRACTION_BITS);
  uint64_t step = quantiles[at + 1] - quantiles[at];
  uint64_t factor = quantiles[at] + (step * part >> FRACTION_BITS);
  size_t length = (size_t)(lengths.median * factor / MEDIAN);
  if (length < lengths.least) return lengths.least;
  return length < lengths.most ? length : lengths.most;
}
