#include "nodes.h"

#include "nets/random.h"

// Of the patterns, where the noise is 1. Two patterns of a kind are then about
// STRENGTH * sqrt(2 * FEATURES) = 8 apart, so that the best rule that can be is
// hardly ever wrong.
static const double STRENGTH = 0.5;

// Which numbers are drawn: those of one use have nothing to do with others'.
enum { OF_PATTERNS = 1, OF_ROWS = 2 };

static net_random draws(uint64_t seed, uint64_t use, uint64_t number) {
  net_random random = {.state = seed << 2 | use};
  random.state = net_random_bits(&random) + number;
  return (net_random){.state = net_random_bits(&random)};
}

static void draw_patterns(net_random *random,
                          float patterns[PATTERNS][FEATURES]) {
  for (size_t i = 0; i < PATTERNS; i++)
    for (size_t j = 0; j < FEATURES; j++)
      patterns[i][j] = (float)(STRENGTH * net_random_bell(random));
}

void nodes_plant(nodes *n, uint64_t seed) {
  net_random random = draws(seed, OF_PATTERNS, 0);
  n->seed = seed;
  draw_patterns(&random, n->first);
  draw_patterns(&random, n->second);
}

void nodes_make(const nodes *n, size_t number, float out[ROW]) {
  net_random random = draws(n->seed, OF_ROWS, number);
  size_t first = net_random_bits(&random) % PATTERNS;
  size_t second = net_random_bits(&random) % PATTERNS;
  for (size_t i = 0; i < FEATURES; i++)
    out[i] = n->first[first][i] + n->second[second][i] +
             (float)net_random_bell(&random);
  out[FEATURES] = (float)((first + second) % CLASSES);
}
