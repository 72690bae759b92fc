// nodes.h - the rows that are learned from: a procedure with a planted
// structure.
//
// A node shows one of PATTERNS patterns of a first kind and one of a second,
// added up under noise. Its class is the sum of their numbers, modulo the
// number of classes. So neither pattern alone says anything about the class: a
// net must find out both, and which pairs go together.
//
// A row depends on the seed and its number only. Each rank can make its own,
// and all of them are the same table with any number of ranks.
#ifndef TARN_EXAMPLES_TRAIN_NODES_H_
#define TARN_EXAMPLES_TRAIN_NODES_H_

#include <stddef.h>
#include <stdint.h>

// The last number of a row is the class.
enum { FEATURES = 127, ROW = FEATURES + 1, PATTERNS = 4, CLASSES = 4 };

typedef struct nodes {
  uint64_t seed;
  float first[PATTERNS][FEATURES];
  float second[PATTERNS][FEATURES];
} nodes;

void nodes_plant(nodes *n, uint64_t seed);

// Writes row |number|.
void nodes_make(const nodes *n, size_t number, float out[ROW]);

#endif  // TARN_EXAMPLES_TRAIN_NODES_H_
