// The owner of an address, and host memory that the program registers.
//
// Nothing is pinned by a registration: the one processor that computes here
// reaches every page as it is, so that locking pages would only add a way to
// fail. It is remembered, so that wrong uses show here too and addresses are
// known.
#include <inttypes.h>

#include "base/status.h"
#include "common/extents.h"
#include "cpu.h"

static tarn__common_extents registered;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards it
TARN__LOCK_AROUND_FORKS(LAST, registered, &lock, unlock_registered)

// --- registrations ---------------------------------------------------------

// Only its ends are looked at: all of it may be a great many pages.
static bool is_memory(const void *ptr, size_t size) {
  size_t end = 0;
  return ptr != NULL && size != 0 &&
         tarn_size_add((uintptr_t)ptr, size - 1, &end) &&
         tarn__os_is_mapped(ptr) &&
         tarn__os_is_mapped((const char *)ptr + (size - 1));
}

static tarn_status add(uint64_t begin, size_t size) {
  tarn__common_run run = {begin, size};
  if (tarn__common_extents_in(&registered, run) != NULL) {
    return tarn__text_fail(TARN_E_INVALID,
                           "of %zu bytes at 0x%" PRIx64
                           " some are registered already",
                           size, begin);
  }
  if (tarn__common_extents_add(&registered, run, size, 1) != NULL) {
    return TARN_OK;
  }
  return tarn__text_fail(TARN_E_NOMEM, "no memory to note a registration");
}

tarn_status tarn__cpu_host_register(int id, void *ptr, size_t size) {
  TARN__TRY(tarn__cpu_check_id(id));
  if (!is_memory(ptr, size)) {
    return tarn__text_fail(TARN_E_INVALID, "no memory is %zu bytes at %p", size,
                           ptr);
  }
  lock_registered();
  tarn_status status = add((uint64_t)(uintptr_t)ptr, size);
  unlock_registered();
  return status;
}

static bool remove_at(uint64_t begin) {
  tarn__common_extent *found = tarn__common_extents_find(&registered, begin);
  if (found == NULL || found->node.start != begin) return false;
  tarn__common_extents_remove(&registered, found);
  return true;
}

tarn_status tarn__cpu_host_unregister(int id, void *ptr) {
  TARN__TRY(tarn__cpu_check_id(id));
  lock_registered();
  bool removed = remove_at((uint64_t)(uintptr_t)ptr);
  unlock_registered();
  if (removed) return TARN_OK;
  return tarn__text_fail(TARN_E_INVALID, "no registration begins at %p", ptr);
}

void tarn__cpu_pointer_forget(void) {
  lock_registered();
  tarn__common_extents_clear(&registered);
  unlock_registered();
}

// --- addresses -------------------------------------------------------------

static bool query_registered(uint64_t addr, tarn_ext_pointer *out) {
  lock_registered();
  const tarn__common_extent *found =
      tarn__common_extents_find(&registered, addr);
  if (found != NULL) {
    *out = (tarn_ext_pointer){.kind = TARN_EXT_KIND_HOST,
                              .base = found->node.start,
                              .size = found->size};
  }
  unlock_registered();
  return found != NULL;
}

static tarn_status unknown(uint64_t addr, const char *why) {
  return tarn__text_fail(TARN_E_INVALID, "%s at 0x%" PRIx64, why, addr);
}

// Blocks are not remembered, so of those no more is known than that their
// addresses are memory.
tarn_status tarn__cpu_pointer_query(int id, uint64_t addr,
                                    tarn_ext_pointer *out) {
  *out = (tarn_ext_pointer){.kind = TARN_EXT_KIND_HOST};
  uint64_t base = 0;
  size_t size = 0;
  TARN__TRY(tarn__cpu_check_id(id));
  if (tarn__cpu_range_query(addr, &base, &size)) {
    if (base == 0) return unknown(addr, "nothing is mapped in the range");
    *out = (tarn_ext_pointer){
        .kind = TARN_EXT_KIND_DEVICE, .base = base, .size = size};
    return TARN_OK;
  }
  if (query_registered(addr, out)) return TARN_OK;
  if (tarn__os_is_mapped((const void *)(uintptr_t)addr)) return TARN_OK;
  return unknown(addr, "no memory");
}
