// memory.h - arrays that are freed together.
#ifndef TARN_PLAN_MEMORY_H_
#define TARN_PLAN_MEMORY_H_

#include "tarn/base.h"

enum { TARN__PLAN_MOST_ARRAYS = 16 };

// Zero-filled: no arrays yet.
typedef struct tarn__plan_memory {
  struct {
    void *array;
    size_t size;  // bytes
  } blocks[TARN__PLAN_MOST_ARRAYS];
  size_t count;
  bool failed;  // an allocation failed; later ones are not tried
} tarn__plan_memory;

// |count| elements of |size| bytes, zeroed; NULL once |memory->failed|.
void *tarn__plan_array(tarn__plan_memory *memory, size_t count, size_t size);

// TARN_E_NOMEM  an allocation failed.
static inline tarn_status tarn__plan_memory_status(
    const tarn__plan_memory *memory) {
  return memory->failed ? TARN_E_NOMEM : TARN_OK;
}

// Frees all arrays and zero-fills |memory|. A zero-filled |memory| is allowed.
void tarn__plan_memory_free(tarn__plan_memory *memory);

#endif  // TARN_PLAN_MEMORY_H_
