// budget.h - memory with a cap, and the arrays that grow within it.
//
// A reader of a file that may be hostile allocates through one budget, so that
// no length in the file can make it allocate more than a constant times the
// size of the file.
#ifndef TARN_BASE_BUDGET_H_
#define TARN_BASE_BUDGET_H_

#include "tarn/base.h"

typedef struct tarn__budget {
  const char *name;  // of what is read, for the text of a refusal
  size_t limit;      // most bytes held at once
  size_t used;
} tarn__budget;

// The cap for |size| bytes of input: 64 x |size| + 1 MiB.
tarn__budget tarn__budget_for(const char *name, size_t size);

// No cap, for what the library makes by itself.
tarn__budget tarn__budget_unlimited(const char *name);

// Counts |size| bytes that are held beside the arrays.
//
// TARN_E_NOMEM  beyond the limit; nothing changed.
TARN_MUST_CHECK tarn_status tarn__budget_charge(tarn__budget *budget,
                                                size_t size);

// Items of one size, in one block that grows by doubling.
typedef struct tarn__array {
  void *items;
  size_t count;
  size_t capacity;
  size_t item_size;
} tarn__array;

#define TARN__ARRAY_OF(type) ((tarn__array){.item_size = sizeof(type)})

// Gives an empty array exactly |count| zeroed items.
//
// TARN_E_NOMEM  the budget or the host allocator refused; nothing changed.
TARN_MUST_CHECK tarn_status tarn__array_make(tarn__budget *budget,
                                             tarn__array *array, size_t count);

// Makes room for |extra| items beyond those that are there.
//
// TARN_E_NOMEM  the budget or the host allocator refused; nothing changed.
TARN_MUST_CHECK tarn_status tarn__array_reserve(tarn__budget *budget,
                                                tarn__array *array,
                                                size_t extra);

// Appends |count| zeroed items and sets |*out_items| to the first of them;
// NULL where |count| is 0. Inline, since a reader does this for every opcode.
TARN_MUST_CHECK static inline tarn_status tarn__array_grow(tarn__budget *budget,
                                                           tarn__array *array,
                                                           size_t count,
                                                           void **out_items) {
  *out_items = NULL;
  if (count > array->capacity - array->count) {
    tarn_status status = tarn__array_reserve(budget, array, count);
    if (status != TARN_OK) return status;
  }
  if (count == 0) return TARN_OK;
  *out_items = (char *)array->items + array->count * array->item_size;
  array->count += count;
  return TARN_OK;
}

// Appends copies of |count| items; |items| may be NULL where |count| is 0.
//
// TARN_E_NOMEM  as tarn__array_reserve.
TARN_MUST_CHECK tarn_status tarn__array_append(tarn__budget *budget,
                                               tarn__array *array,
                                               const void *items, size_t count);

// Gives back all but what the items need, so that capacity is count; an
// array without items keeps no memory.
TARN_MUST_CHECK tarn_status tarn__array_fit(tarn__budget *budget,
                                            tarn__array *array);

// Drops the last |count| items; their bytes are cleared, as grow promises.
void tarn__array_drop(tarn__array *array, size_t count);

// Frees the memory and leaves an empty array.
void tarn__array_free(tarn__budget *budget, tarn__array *array);

#endif  // TARN_BASE_BUDGET_H_
