// Memory with a cap.
//
// Invariant: |used| is the sum over the budget's arrays of capacity times item
// size, plus what was charged by hand (the file itself, for one). While an
// array grows, its old and its new block are both counted, for both are held.
#include "base/budget.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"

enum { LEAST_CAPACITY = 16, BUDGET_FACTOR = 64, BUDGET_BASE = 1 << 20 };

tarn__budget tarn__budget_for(const char *name, size_t size) {
  tarn__budget budget = {.name = name};
  if (!tarn_size_mul(size, BUDGET_FACTOR, &budget.limit) ||
      !tarn_size_add(budget.limit, BUDGET_BASE, &budget.limit)) {
    budget.limit = SIZE_MAX;
  }
  return budget;
}

tarn__budget tarn__budget_unlimited(const char *name) {
  return (tarn__budget){.name = name, .limit = SIZE_MAX};
}

static tarn_status refuse(const tarn__budget *budget) {
  return tarn__fail(TARN_E_NOMEM,
                    "%s: reading it needs more than the %zu bytes of memory "
                    "that its size allows",
                    budget->name, budget->limit);
}

tarn_status tarn__budget_charge(tarn__budget *budget, size_t size) {
  size_t used = 0;
  if (!tarn_size_add(budget->used, size, &used) || used > budget->limit) {
    return refuse(budget);
  }
  budget->used = used;
  return TARN_OK;
}

static tarn_status set_capacity(tarn__budget *budget, tarn__array *array,
                                size_t capacity) {
  size_t bytes = 0;
  size_t used = 0;
  if (!tarn_size_mul(capacity, array->item_size, &bytes) ||
      !tarn_size_add(budget->used, bytes, &used) || used > budget->limit) {
    return refuse(budget);
  }
  void *items = tarn__host_resize(array->items, array->capacity, capacity,
                                  array->item_size);
  if (items == NULL) return TARN_E_NOMEM;
  budget->used = used - array->capacity * array->item_size;
  array->items = items;
  array->capacity = capacity;
  return TARN_OK;
}

tarn_status tarn__array_make(tarn__budget *budget, tarn__array *array,
                             size_t count) {
  if (count == 0) return TARN_OK;
  TARN__TRY(set_capacity(budget, array, count));
  array->count = count;
  return TARN_OK;
}

tarn_status tarn__array_reserve(tarn__budget *budget, tarn__array *array,
                                size_t extra) {
  size_t needed = 0;
  size_t doubled = 0;
  if (!tarn_size_add(array->count, extra, &needed)) return refuse(budget);
  if (needed <= array->capacity) return TARN_OK;
  if (!tarn_size_mul(array->capacity, 2, &doubled)) return refuse(budget);
  if (doubled < LEAST_CAPACITY) doubled = LEAST_CAPACITY;
  return set_capacity(budget, array, needed < doubled ? doubled : needed);
}

tarn_status tarn__array_append(tarn__budget *budget, tarn__array *array,
                               const void *items, size_t count) {
  void *to = NULL;
  TARN__TRY(tarn__array_grow(budget, array, count, &to));
  if (count > 0) memcpy(to, items, count * array->item_size);
  return TARN_OK;
}

tarn_status tarn__array_fit(tarn__budget *budget, tarn__array *array) {
  if (array->count == array->capacity) return TARN_OK;
  if (array->count != 0) return set_capacity(budget, array, array->count);
  tarn__array_free(budget, array);
  return TARN_OK;
}

void tarn__array_drop(tarn__array *array, size_t count) {
  if (count == 0) return;  // there may be no items at all
  array->count -= count;
  memset((char *)array->items + array->count * array->item_size, 0,
         count * array->item_size);
}

void tarn__array_free(tarn__budget *budget, tarn__array *array) {
  tarn__host_free_array(array->items, array->capacity, array->item_size);
  budget->used -= array->capacity * array->item_size;
  array->items = NULL;
  array->count = 0;
  array->capacity = 0;
}
