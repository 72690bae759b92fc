// towers.h - two towers: a vector for each user, a vector for each item, and
// their dot product, which says how much the one likes the other.
//
// They learn from slices of pairs. The items of a slice that a user has not
// taken stand for all others: the loss is that of choosing the own item among
// those of the slice. A slice is computed by itself, so that the result does
// not depend on which rank has it.
#ifndef TARN_EXAMPLES_RECOMMEND_TOWERS_H_
#define TARN_EXAMPLES_RECOMMEND_TOWERS_H_

#include "world.h"

enum {
  WIDTH = 32,  // elements of a vector
  SLICE = 32,  // pairs
};

typedef struct vector {
  float at[WIDTH];
} vector;

double towers_score(const vector *user, const vector *item);

// Replaces the vectors of a slice by their gradients, and returns the loss, in
// sum over the pairs.
double towers_learn(const pair *pairs, vector *users, vector *items);

#endif  // TARN_EXAMPLES_RECOMMEND_TOWERS_H_
