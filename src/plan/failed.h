// failed.h - a set of states that are known to fail.
//
// States are known by 128 bits each. Two that differ have the same ones by
// mistake with a chance of 2^-128 if the bits are as good as random; a search
// that stores 2^20 states and asks 2^40 times errs with one of 2^-68, which is
// far below that of a machine that miscounts.
#ifndef TARN_PLAN_FAILED_H_
#define TARN_PLAN_FAILED_H_

#include "tarn/base.h"

typedef struct tarn__plan_key {
  uint64_t low;
  uint64_t high;
} tarn__plan_key;

typedef struct tarn__plan_failed {
  tarn__plan_key *keys;  // two zeros: an empty place
  size_t room;           // a power of two
  size_t most;
  size_t count;
  tarn__plan_key salt;  // of all that were put in since it was last cleared
} tarn__plan_failed;

// Of at most |size| bytes; it begins smaller, and grows as it fills up. When
// it cannot, what is old makes way.
//
// Lifetime:     tarn__plan_failed_free.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_failed_make(size_t size,
                                                   tarn__plan_failed *out);

// One that is zero-filled is allowed.
void tarn__plan_failed_free(tarn__plan_failed *failed);

// Cost: O(1): what was put in before is not found any more, that is all.
void tarn__plan_failed_clear(tarn__plan_failed *failed);

bool tarn__plan_failed_has(const tarn__plan_failed *failed, tarn__plan_key key);

void tarn__plan_failed_put(tarn__plan_failed *failed, tarn__plan_key key);

// 64 bits out of 64, each of which depends on all of them.
static inline uint64_t tarn__plan_mix(uint64_t x) {
  x ^= x >> 32;
  x *= UINT64_C(0xd6e8feb86659fd93);
  x ^= x >> 32;
  x *= UINT64_C(0xd6e8feb86659fd93);
  x ^= x >> 32;
  return x;
}

#endif  // TARN_PLAN_FAILED_H_
