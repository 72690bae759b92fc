// Memory of the device, which is the host's. All three kinds (device, pinned
// host, unified) are the same: the one processor that computes here reaches
// every page, so nothing is gained by locking pages, and the limit on locked
// memory (often 8 MiB) would only add a way to fail.
//
// Large blocks come from the system and go back to it at once, so that freed
// memory is free for everybody and shows as such in device_memory_stats; the
// C library would keep them, as its threshold for mapping grows with use. For
// small blocks a system call, a page fault and a whole page each would cost
// more than they are worth: they come from the C library. Which of the two is
// told by the size, which the caller gives back.
#include <stdlib.h>
#include <string.h>

#include "cpu.h"

enum {
  BLOCK_ALIGN = 256,         // what device_min_chunk_size promises
  MAP_FROM_SIZE = 128 << 10  // where the C library, too, begins to map
};

static void *take_pages(size_t size) {
  size_t whole = 0;
  if (!tarn_size_align_up(size, tarn__os_page(), &whole)) return NULL;
  return tarn__os_map(whole);
}

static void give_pages(void *ptr, size_t size) {
  size_t whole = 0;
  if (!tarn_size_align_up(size, tarn__os_page(), &whole)) return;
  tarn__os_unmap(ptr, whole);
}

static void *take_small(size_t size) {
  void *ptr = NULL;
  return posix_memalign(&ptr, BLOCK_ALIGN, size) == 0 ? ptr : NULL;
}

C_Status tarn__cpu_allocate(const C_Device device, void **ptr, size_t size) {
  if (ptr == NULL) return C_ERROR;
  *ptr = NULL;
  if (!tarn__cpu_is_device(device) || size == 0) return C_ERROR;
  *ptr = size >= MAP_FROM_SIZE ? take_pages(size) : take_small(size);
  return *ptr != NULL ? C_SUCCESS : C_FAILED;
}

C_Status tarn__cpu_deallocate(const C_Device device, void *ptr, size_t size) {
  if (!tarn__cpu_is_device(device) || ptr == NULL || size == 0) return C_ERROR;
  if (size >= MAP_FROM_SIZE) {
    give_pages(ptr, size);
  } else {
    free(ptr);
  }
  return C_SUCCESS;
}

C_Status tarn__cpu_memory_set(const C_Device device, void *ptr,
                              unsigned char value, size_t size) {
  if (!tarn__cpu_is_device(device) || ptr == NULL || size == 0) return C_ERROR;
  memset(ptr, value, size);
  return C_SUCCESS;
}
