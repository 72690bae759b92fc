// The library's own memory: one allocator for the process, and a count of
// what is out, which tells whether it may be exchanged.
#include "base/hostmem.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum {
  ALIGN = alignof(max_align_t),
  LINE = 64,     // of the cache
  LARGE = 1024,  // from here on memory begins at a line: arrays of lines, and
                 // structures that keep threads apart by lines
};

static void *libc_allocate(void *context, size_t size, size_t align) {
  (void)context;
  if (align <= ALIGN) return malloc(size);
  void *ptr = NULL;
  return posix_memalign(&ptr, align, size) == 0 ? ptr : NULL;
}

static void libc_deallocate(void *context, void *ptr, size_t size,
                            size_t align) {
  (void)context;
  (void)size;
  (void)align;
  free(ptr);
}

static tarn_host_allocator allocator = {
    .allocate = libc_allocate,
    .deallocate = libc_deallocate,
};
static atomic_size_t bytes_out;

size_t tarn_host_memory(void) {
  return atomic_load_explicit(&bytes_out, memory_order_relaxed);
}

tarn_status tarn_host_allocator_set(const tarn_host_allocator *replacement) {
  if (tarn_host_memory() != 0) {
    return tarn__fail(TARN_E_STATE,
                      "host allocator: %zu bytes of the present one are still "
                      "in use; set it before any other call",
                      tarn_host_memory());
  }
  tarn_host_allocator next = {.allocate = libc_allocate,
                              .deallocate = libc_deallocate};
  if (replacement != NULL) {
    size_t size = 0;
    if (!tarn__struct_size(replacement->struct_size, sizeof next, sizeof next,
                           &size)) {
      return tarn__fail(TARN_E_INVALID,
                        "host allocator: struct_size %zu is below %zu",
                        replacement->struct_size, sizeof next);
    }
    if (replacement->allocate == NULL || replacement->deallocate == NULL) {
      return tarn__fail(TARN_E_INVALID,
                        "host allocator: allocate or deallocate is NULL");
    }
    next = *replacement;
  }
  allocator = next;
  return TARN_OK;
}

static size_t align_of(size_t size) {
  return size < LARGE ? ALIGN : LINE;
}

// |size| bytes, zeroed from |kept| on.
static void *take(size_t size, size_t kept) {
  if (size == 0) size = 1;
  void *ptr = allocator.allocate(allocator.context, size, align_of(size));
  if (ptr == NULL) {
    (void)tarn__fail(TARN_E_NOMEM, "the host allocator refused %zu bytes",
                     size);
    return NULL;
  }
  memset((char *)ptr + kept, 0, size - kept);
  atomic_fetch_add_explicit(&bytes_out, size, memory_order_relaxed);
  return ptr;
}

void *tarn__host_alloc(size_t size) {
  return take(size, 0);
}

// The same for an array, of which the first |kept| elements, which are no more
// than |count|, are not zeroed.
static void *take_array(size_t count, size_t size, size_t kept) {
  size_t bytes = 0;
  if (!tarn_size_mul(count, size, &bytes)) {
    (void)tarn__fail(TARN_E_NOMEM, "%zu elements of %zu bytes overflow", count,
                     size);
    return NULL;
  }
  return take(bytes, kept * size);
}

void *tarn__host_array(size_t count, size_t size) {
  return take_array(count, size, 0);
}

void *tarn__host_resize(void *ptr, size_t old_count, size_t new_count,
                        size_t size) {
  size_t smaller = old_count < new_count ? old_count : new_count;
  size_t kept = ptr != NULL ? smaller : 0;
  void *moved = take_array(new_count, size, kept);
  if (moved == NULL) return NULL;
  if (ptr != NULL) {
    memcpy(moved, ptr, kept * size);
    tarn__host_free_array(ptr, old_count, size);
  }
  return moved;
}

void *tarn__host_grow(void *ptr, size_t *count, size_t wanted, size_t first,
                      size_t size) {
  size_t grown = *count != 0 ? *count : first;
  while (grown < wanted) {
    if (!tarn_size_mul(grown, 2, &grown)) grown = wanted;
  }
  void *moved = tarn__host_resize(ptr, *count, grown, size);
  if (moved != NULL) *count = grown;
  return moved;
}

void tarn__host_free(void *ptr, size_t size) {
  if (ptr == NULL) return;
  if (size == 0) size = 1;
  atomic_fetch_sub_explicit(&bytes_out, size, memory_order_relaxed);
  allocator.deallocate(allocator.context, ptr, size, align_of(size));
}

void tarn__host_free_array(void *ptr, size_t count, size_t size) {
  tarn__host_free(ptr, count * size);  // it fitted when it was made
}

char *tarn__host_text(const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = tarn__host_alloc(size);
  if (copy != NULL) memcpy(copy, text, size);
  return copy;
}

void tarn__host_free_text(char *text) {
  if (text != NULL) tarn__host_free(text, strlen(text) + 1);
}

char *tarn__host_format(const char *format, ...) {
  va_list args;
  va_start(args, format);
  size_t size = (size_t)vsnprintf(NULL, 0, format, args) + 1;
  va_end(args);
  char *text = tarn__host_alloc(size);
  va_start(args, format);
  if (text != NULL) vsnprintf(text, size, format, args);
  va_end(args);
  return text;
}
