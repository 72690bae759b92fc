// Each array stands behind a head, by which it is on the list and freed by its
// size. The head takes the place of some elements.
#include "plan/memory.h"

#include <stdalign.h>

#include "base/hostmem.h"

typedef struct tarn__plan_block {
  alignas(max_align_t) struct tarn__plan_block *before;
  struct tarn__plan_block *after;
  size_t count;  // of elements, those of the head included
  size_t size;
} block;

void *tarn__plan_resize(tarn__plan_memory *memory, void *array, size_t count,
                        size_t size) {
  block *old = array == NULL ? NULL : (block *)array - 1;
  size_t room = 0;
  if (!tarn_size_add(count, (sizeof *old + size - 1) / size, &room)) {
    room = SIZE_MAX;  // is refused
  }
  block *b = tarn__host_resize(old, old == NULL ? 0 : old->count, room, size);
  if (b == NULL) return NULL;
  if (old == NULL) b->after = memory->blocks;
  b->count = room;
  b->size = size;
  if (b->after != NULL) b->after->before = b;
  if (b->before != NULL) {
    b->before->after = b;
  } else {
    memory->blocks = b;
  }
  return b + 1;
}

void *tarn__plan_array(tarn__plan_memory *memory, size_t count, size_t size) {
  if (memory->failed) return NULL;
  void *array = tarn__plan_resize(memory, NULL, count, size);
  memory->failed = array == NULL;
  return array;
}

void *tarn__plan_double(tarn__plan_memory *memory, void *array, size_t *room,
                        size_t need, size_t size) {
  void *grown = tarn__plan_resize(memory, array, 2 * need, size);
  if (grown == NULL) {
    memory->failed = true;
    return array;
  }
  *room = 2 * need;
  return grown;
}

void tarn__plan_memory_free(tarn__plan_memory *memory) {
  for (block *b = memory->blocks, *after; b != NULL; b = after) {
    after = b->after;
    tarn__host_free_array(b, b->count, b->size);
  }
  *memory = (tarn__plan_memory){0};
}
