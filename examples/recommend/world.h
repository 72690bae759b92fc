// world.h - who likes what: users, items, and pairs of both.
//
// Each user and each item has a hidden vector of its number. A user who is
// shown an item takes it the more likely the more alike their vectors are.
// Users come, and items are shown, by Zipf's law: a few often, most hardly
// ever. Nothing is stored: a pair follows from its number.
//
// A tenth of all pairs that can be are held out: no training has them.
#ifndef TARN_EXAMPLES_RECOMMEND_WORLD_H_
#define TARN_EXAMPLES_RECOMMEND_WORLD_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct world {
  size_t users;
  size_t items;
  uint64_t seed;
} world;

typedef struct pair {
  size_t user;
  size_t item;  // which the user has taken
} pair;

// Pair |number| of those that are learned from, or of those that are held out.
pair world_pair(const world *w, bool held_out, uint64_t number);

// An item that is shown, whoever likes it.
size_t world_item(const world *w, uint64_t number);

// How alike the hidden vectors are, from -1 to 1.
double world_likeness(const world *w, pair p);

#endif  // TARN_EXAMPLES_RECOMMEND_WORLD_H_
