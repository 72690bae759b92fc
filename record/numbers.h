// numbers.h - numbers of things that are known by a hash, from 1 on.
//
// The table is open-addressed and only ever filled: an entry is 40 bits of the
// hash and 24 of the number. Who finds a number new defines it in the file;
// another thread may use it before, since definitions hold wherever they stand.
//
// Threads: any, without a lock. Cost: one or two cache lines.
#ifndef TARN_RECORD_NUMBERS_H_
#define TARN_RECORD_NUMBERS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct numbers {
  _Atomic uint64_t *table;  // NULL: there is no memory for it
  size_t entries;
  _Atomic uint64_t last;
} numbers;

// Before main. Half of |entries| numbers can be given; memory is taken as they
// are. False: there is none.
bool numbers_begin(numbers *of, size_t entries);

// The number of |hash|; 0: the table is full. Sets |*out_new| if it was not
// given before.
uint64_t numbers_find(numbers *of, uint64_t hash, bool *out_new);

// In the child of a fork: no number is given.
void numbers_forget(numbers *of);

// |hash| and one value more.
static inline uint64_t numbers_mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return hash ^ (hash >> 29);
}

#endif  // TARN_RECORD_NUMBERS_H_
