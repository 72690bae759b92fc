// Each array is listed with its size, as host memory is freed by size.
#include "plan/memory.h"

#include <assert.h>

#include "base/hostmem.h"

void *tarn__plan_array(tarn__plan_memory *memory, size_t count, size_t size) {
  assert(memory->count < TARN__PLAN_MOST_ARRAYS);
  if (memory->failed) return NULL;
  void *array = tarn__host_array(count, size);
  memory->failed = array == NULL;
  if (array == NULL) return NULL;
  memory->blocks[memory->count].array = array;
  memory->blocks[memory->count++].size = count * size;
  return array;
}

void tarn__plan_memory_free(tarn__plan_memory *memory) {
  while (memory->count > 0) {
    memory->count--;
    tarn__host_free(memory->blocks[memory->count].array,
                    memory->blocks[memory->count].size);
  }
  *memory = (tarn__plan_memory){0};
}
