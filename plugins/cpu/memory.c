// Memory of the device, which is the host's. All three kinds (device, pinned
// host, unified) are the same: the one processor that computes here reaches
// every page, so nothing is gained by locking pages, and the limit on locked
// memory (often 8 MiB) would only add a way to fail.
//
// Large blocks are mapped and unmapped one by one, so that freed memory is free
// for all processes and shows as free in device_memory_stats; the C library
// would keep them, as its threshold for mapping grows with use. For small
// blocks a system call, a page fault and a whole page each would cost too much:
// they come from the C library. The size, which the caller gives back, tells
// the two apart; the alignment is not known then, so blocks of all alignments
// are freed alike.
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "cpu.h"

enum {
  BLOCK_ALIGN = 256,         // what device_min_chunk_size promises
  MAP_FROM_SIZE = 128 << 10  // where the C library, too, begins to map
};

static tarn__cpu_watch_fn *watcher;

void tarn__cpu_watch(tarn__cpu_watch_fn *watch) {
  watcher = watch;
}

void tarn__cpu_tell(uint64_t addr, size_t size, tarn__cpu_pages what) {
  if (watcher != NULL) watcher(addr, size, what);
}

static void *take_pages(size_t size, size_t align) {
  size_t whole = 0;
  if (!tarn_size_align_up(size, tarn__os_page(), &whole)) return NULL;
  void *ptr = tarn__os_map_aligned(whole, align);
  if (ptr == NULL) return NULL;
  tarn__cpu_tell((uintptr_t)ptr, whole, TARN__CPU_PAGES_FRESH);
  return ptr;
}

static void give_pages(void *ptr, size_t size) {
  size_t whole = 0;
  if (!tarn_size_align_up(size, tarn__os_page(), &whole)) return;
  tarn__cpu_tell((uintptr_t)ptr, whole, TARN__CPU_PAGES_GONE);
  tarn__os_unmap(ptr, whole);
}

static void *take_small(size_t size, size_t align) {
  void *ptr = NULL;
  return posix_memalign(&ptr, align, size) == 0 ? ptr : NULL;
}

// |align| is a multiple of BLOCK_ALIGN.
static void *take(size_t size, size_t align) {
  return size >= MAP_FROM_SIZE ? take_pages(size, align)
                               : take_small(size, align);
}

static void give(void *ptr, size_t size) {
  if (size >= MAP_FROM_SIZE) {
    give_pages(ptr, size);
  } else {
    free(ptr);
  }
}

// --- for the table ---------------------------------------------------------

C_Status tarn__cpu_allocate(const C_Device device, void **ptr, size_t size) {
  if (ptr == NULL) return tarn__wordless(C_ERROR);
  *ptr = NULL;
  if (!tarn__cpu_is_device(device) || size == 0) return tarn__wordless(C_ERROR);
  *ptr = take(size, BLOCK_ALIGN);
  if (*ptr != NULL) return C_SUCCESS;
  (void)tarn__text_fail(TARN_FULL, "the system has no %zu bytes left", size);
  return C_FAILED;
}

C_Status tarn__cpu_deallocate(const C_Device device, void *ptr, size_t size) {
  if (!tarn__cpu_is_device(device) || ptr == NULL || size == 0)
    return tarn__wordless(C_ERROR);
  give(ptr, size);
  return C_SUCCESS;
}

C_Status tarn__cpu_memory_set(const C_Device device, void *ptr,
                              unsigned char value, size_t size) {
  if (!tarn__cpu_is_device(device) || ptr == NULL || size == 0)
    return tarn__wordless(C_ERROR);
  memset(ptr, value, size);
  return C_SUCCESS;
}

// --- for the extension -----------------------------------------------------

tarn_status tarn__cpu_alignment(int id, size_t *out_align) {
  *out_align = 0;
  TARN__TRY(tarn__cpu_check_id(id));
  *out_align = BLOCK_ALIGN;
  return TARN_OK;
}

static tarn_status take_block(size_t size, size_t align, uint64_t *out_addr) {
  if (size == 0) return tarn__text_fail(TARN_E_INVALID, "a block of 0 bytes");
  void *ptr = take(size, align < BLOCK_ALIGN ? BLOCK_ALIGN : align);
  if (ptr == NULL) {
    return tarn__text_fail(TARN_FULL, "no %zu bytes at a multiple of %zu", size,
                           align);
  }
  *out_addr = (uint64_t)(uintptr_t)ptr;
  return TARN_OK;
}

tarn_status tarn__cpu_allocate_aligned(int id, size_t size, size_t align,
                                       uint64_t *out_addr) {
  *out_addr = 0;
  TARN__TRY(tarn__cpu_check_id(id));
  if (!tarn_is_power_of_two(align)) {
    return tarn__text_fail(TARN_E_INVALID, "an alignment of %zu bytes", align);
  }
  return take_block(size, align, out_addr);
}

// No other work uses fresh memory, so there is no wait for the stream.
tarn_status tarn__cpu_allocate_async(int id, void *stream, size_t size,
                                     uint64_t *out_addr) {
  *out_addr = 0;
  TARN__TRY(tarn__cpu_check_stream(id, stream));
  return take_block(size, BLOCK_ALIGN, out_addr);
}

static void run_give(const tarn__common_queue_op *op) {
  give(op->copy.dst, op->copy.size);
}

tarn_status tarn__cpu_deallocate_async(int id, void *stream, uint64_t addr,
                                       size_t size) {
  TARN__TRY(tarn__cpu_check_stream(id, stream));
  if (addr == 0 || size == 0) {
    return tarn__text_fail(TARN_E_INVALID, "no block to give back");
  }
  tarn__common_queue_op op = {
      .run = run_give,
      .brief = true,
      .copy = {.dst = (void *)(uintptr_t)addr, .size = size},
  };
  if (stream == NULL) {
    run_give(&op);
  } else if (tarn__queue_submit(stream, &op) != C_SUCCESS) {
    return tarn__text_fail(TARN_E_NOMEM, "no memory to queue a release");
  }
  return TARN_OK;
}
