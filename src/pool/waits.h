// waits.h - the streams whose work must be done before memory is given back.
#ifndef TARN_POOL_WAITS_H_
#define TARN_POOL_WAITS_H_

#include "device/memory.h"

enum { TARN__WAITS = 4 };

typedef struct tarn__pool_waits {
  uint64_t serials[TARN__WAITS];
  size_t count;  // more than there is room for: all streams of the place
} tarn__pool_waits;

// Adds the stream with |serial|; 0 is none.
static inline void tarn__waits_add(tarn__pool_waits *waits, uint64_t serial) {
  size_t known = waits->count < TARN__WAITS ? waits->count : TARN__WAITS;
  if (serial == 0) return;
  for (size_t i = 0; i < known; i++) {
    if (waits->serials[i] == serial) return;
  }
  if (known < TARN__WAITS) waits->serials[known] = serial;
  waits->count++;
}

// The calling thread waits for all of them, which use memory of |place|. The
// first failure is returned.
static inline tarn_status tarn__waits_wait(const tarn__pool_waits *waits,
                                           tarn_place place) {
  tarn_status first = TARN_OK;
  if (waits->count > TARN__WAITS) return tarn__place_synchronize(place);
  for (size_t i = 0; i < waits->count; i++) {
    tarn_status status = tarn_stream_join(NULL, waits->serials[i]);
    if (first == TARN_OK) first = status;
  }
  return first;
}

#endif  // TARN_POOL_WAITS_H_
