// hostile_recipe.h - what a hostile plug-in is told to do.
//
// A recipe is words with commas between, each a key or key=number.
//
//   without.F       leaves function F out
//   answer.F=N      F does nothing and answers N
//   done.F=N        F does its work and answers N
//   gives.F=N       F gives the address, handle or number N
//
// The other keys stand where they are looked at.
#ifndef TARN_TESTS_DEVICE_HOSTILE_RECIPE_H_
#define TARN_TESTS_DEVICE_HOSTILE_RECIPE_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

extern const char *hostile_recipe;

// Blocks, streams, events, ranges and handles that are out.
extern atomic_long hostile_live;

// The text behind |key| and '=' in the recipe, "" for a key alone; NULL if it
// is not there.
const char *hostile_word(const char *key);

bool hostile_given(const char *key);

size_t hostile_number(const char *key, size_t otherwise);

// |prefix| and |function| as one key, until the thread's next call.
const char *hostile_joined(const char *prefix, const char *function);

// First and last in each function that can be told what to answer.
#define HOSTILE_BEGIN(type, function)                            \
  do {                                                           \
    const char *begin_key = hostile_joined("answer.", function); \
    if (hostile_given(begin_key)) {                              \
      return (type)(int)hostile_number(begin_key, 0);            \
    }                                                            \
  } while (0)
#define HOSTILE_END(type, function) \
  return (type)(int)hostile_number(hostile_joined("done.", function), 0)

#endif  // TARN_TESTS_DEVICE_HOSTILE_RECIPE_H_
