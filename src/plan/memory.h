// memory.h - arrays that are freed together.
#ifndef TARN_PLAN_MEMORY_H_
#define TARN_PLAN_MEMORY_H_

#include "tarn/base.h"

// Zero-filled: no arrays yet.
typedef struct tarn__plan_memory {
  struct tarn__plan_block *blocks;
  bool failed;  // an allocation failed: there are no further arrays
} tarn__plan_memory;

// |count| elements of |size| bytes, zeroed; NULL once |memory->failed|.
void *tarn__plan_array(tarn__plan_memory *memory, size_t count, size_t size);

// Gives |array|, one of |memory| or NULL, room for |count| elements of |size|
// bytes; new elements are zeroed. NULL: no host memory, and |array| is as it
// was.
void *tarn__plan_resize(tarn__plan_memory *memory, void *array, size_t count,
                        size_t size);

// The same for twice |need| elements, which become |*room|. Without host memory
// it returns |array|, which is as it was, and sets |memory->failed|.
void *tarn__plan_double(tarn__plan_memory *memory, void *array, size_t *room,
                        size_t need, size_t size);

// The same, if |*room| is less than |need|.
static inline void *tarn__plan_grow(tarn__plan_memory *memory, void *array,
                                    size_t *room, size_t need, size_t size) {
  if (need <= *room) return array;
  return tarn__plan_double(memory, array, room, need, size);
}

// TARN_E_NOMEM  an allocation failed.
static inline tarn_status tarn__plan_memory_status(
    const tarn__plan_memory *memory) {
  return memory->failed ? TARN_E_NOMEM : TARN_OK;
}

// Frees all arrays and zero-fills |memory|. A zero-filled |memory| is allowed.
void tarn__plan_memory_free(tarn__plan_memory *memory);

#endif  // TARN_PLAN_MEMORY_H_
