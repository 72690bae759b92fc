// sort_keys.h - orders in which items can be placed.
#ifndef TARN_PLAN_SORT_KEYS_H_
#define TARN_PLAN_SORT_KEYS_H_

#include "plan/instance.h"

typedef struct tarn__plan_ranked {
  double key;   // the largest first
  double next;  // of equals the smallest first: their first sections
  uint32_t item;
} tarn__plan_ranked;

typedef struct tarn__plan_sort_keys {
  const tarn__plan_instance *in;
  tarn__plan_ranked *order;  // the latest
  uint64_t *pressure;  // by item: the most that is live in one of its sections
} tarn__plan_sort_keys;

// The longest first, in classes; within a class as time goes, or against it.
typedef enum tarn__plan_sort_key {
  TARN__PLAN_BEGIN_IN_16 = 0,  // classes of a factor of 16: by their begin
  TARN__PLAN_END_IN_16,        // by their end, the last first
  TARN__PLAN_BEGIN_IN_4,
  TARN__PLAN_END_IN_4,
  TARN__PLAN_LONGEST,  // steps
  TARN__PLAN_LARGEST,
  TARN__PLAN_WIDEST,            // size times steps
  TARN__PLAN_SPREAD,            // sections, then size
  TARN__PLAN_HIGHEST_PRESSURE,  // pressure, then sections
  TARN__PLAN_SORT_KEYS,
} tarn__plan_sort_key;

// |in| and |memory| must live as long.
//
// Cost:          O(n log n); 24 bytes for each item.
// TARN_E_NOMEM   no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_sort_keys_make(
    const tarn__plan_instance *in, tarn__plan_memory *memory,
    tarn__plan_sort_keys *keys);

// Fills |keys->order|.
void tarn__plan_sort_keys_order(tarn__plan_sort_keys *keys,
                                tarn__plan_sort_key by);

// Sorts |keys->order| by its keys again.
void tarn__plan_sort_keys_sort(tarn__plan_sort_keys *keys);

// An order by a product of powers: of the size, of the number of sections, and
// of the pressure relative to the bound. Equals go by their first section,
// moved at random.
typedef struct tarn__plan_powers {
  int size;         // quarters
  int length;       // quarters; may be less than 0
  int pressure;     // the logarithm of the power; less than 0: not at all
  double disorder;  // by how much at most, as a part of all sections
  uint64_t seed;
} tarn__plan_powers;

// Fills |keys->order|.
void tarn__plan_sort_keys_mix(tarn__plan_sort_keys *keys,
                              tarn__plan_powers powers);

#endif  // TARN_PLAN_SORT_KEYS_H_
