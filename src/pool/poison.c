// Bytes of blocks, through the host or through the device.
//
// AddressSanitizer is present if the program is built with it, whether the
// library is or not: its functions are looked up by name. Valgrind is told by
// instructions that have no effect elsewhere.
#include "pool/debug.h"

#include <string.h>

#include "base/hostmem.h"
#include "device/memory.h"

#if defined(__has_include)
#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#define HAVE_MEMCHECK 1
#endif
#endif

// The names are AddressSanitizer's.
// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
extern void __asan_poison_memory_region(void const volatile *address,
                                        size_t size) __attribute__((weak));
// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
extern void __asan_unpoison_memory_region(void const volatile *address,
                                          size_t size) __attribute__((weak));

enum { STAGE = 256 << 10 };  // bytes that are brought to the host at a time

// Where the host touches them; NULL: it cannot.
static unsigned char *view(tarn_place place, tarn_addr address, size_t size) {
  void *ptr = NULL;
  tarn_status status = tarn_device_host_view(place, address, size, &ptr);
  return status == TARN_OK ? ptr : NULL;
}

// --- telling the tools -----------------------------------------------------

static void tell_asan(const void *ptr, size_t size, bool hidden) {
  if (hidden && __asan_poison_memory_region != NULL) {
    __asan_poison_memory_region(ptr, size);
  }
  if (!hidden && __asan_unpoison_memory_region != NULL) {
    __asan_unpoison_memory_region(ptr, size);
  }
}

void tarn__poison_mark(tarn_place place, tarn_addr address, size_t size,
                       tarn__pool_bytes as) {
  const unsigned char *ptr = size != 0 ? view(place, address, size) : NULL;
  if (ptr == NULL) return;
  tell_asan(ptr, size, as == TARN__BYTES_HIDDEN);
#ifdef HAVE_MEMCHECK
  if (as == TARN__BYTES_HIDDEN) (void)VALGRIND_MAKE_MEM_NOACCESS(ptr, size);
  if (as == TARN__BYTES_FRESH) (void)VALGRIND_MAKE_MEM_UNDEFINED(ptr, size);
  if (as == TARN__BYTES_KNOWN) (void)VALGRIND_MAKE_MEM_DEFINED(ptr, size);
#endif
}

// --- filling and comparing -------------------------------------------------

tarn_status tarn__poison_fill(tarn_place place, tarn_addr address, size_t size,
                              unsigned char value) {
  tarn_device *device = NULL;
  if (size == 0) return TARN_OK;
  unsigned char *bytes = view(place, address, size);
  if (bytes != NULL) {
    memset(bytes, value, size);
    return TARN_OK;
  }
  TARN__TRY(tarn__place_device(place, &device));
  return tarn_device_set(device, address, value, size, NULL);
}

// If all bytes are equal, one memcmp of each with the one before it shows that.
static size_t first_other(const unsigned char *bytes, size_t size,
                          unsigned char value) {
  if (bytes[0] == value && memcmp(bytes, bytes + 1, size - 1) == 0) return size;
  size_t at = 0;
  while (at < size && bytes[at] == value)
    at++;
  return at;
}

static tarn_status compare_copy(tarn_device *device, tarn_addr address,
                                size_t size, unsigned char value,
                                size_t *out_offset, unsigned char *out_byte) {
  size_t step = size < STAGE ? size : STAGE;
  unsigned char *staging = tarn__host_alloc(step);
  if (staging == NULL) return TARN_E_NOMEM;
  tarn_status status = TARN_OK;
  size_t at = 0;
  bool same = true;
  while (status == TARN_OK && same && at < size) {
    size_t part = size - at < step ? size - at : step;
    status = tarn_copy_d2h(device, staging, address + at, part, NULL);
    if (status != TARN_OK) break;
    size_t other = first_other(staging, part, value);
    same = other == part;
    if (!same) *out_byte = staging[other];
    at += other;
  }
  tarn__host_free(staging, step);
  *out_offset = status == TARN_OK ? at : size;
  return status;
}

tarn_status tarn__poison_compare(tarn_place place, tarn_addr address,
                                 size_t size, unsigned char value,
                                 size_t *out_offset, unsigned char *out_byte) {
  tarn_device *device = NULL;
  *out_offset = size;
  *out_byte = value;
  if (size == 0) return TARN_OK;
  const unsigned char *bytes = view(place, address, size);
  if (bytes != NULL) {
    *out_offset = first_other(bytes, size, value);
    if (*out_offset < size) *out_byte = bytes[*out_offset];
    return TARN_OK;
  }
  TARN__TRY(tarn__place_device(place, &device));
  return compare_copy(device, address, size, value, out_offset, out_byte);
}
