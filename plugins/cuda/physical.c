// Memory without an address: what was created or imported, by handle.
//
// An account is kept since a driver may do anything with a handle that is none,
// and does not tell the size of one. A handle may be given more than once: an
// import of memory that is here already may give the same.
//
// Invariants:
//   * Memory is in the map, by its handle, as long as it is held.
//   * It is there as long as it is held or mapped, on whatever device.
//   * Memory that cannot be shared has one mapping at most.
#include <inttypes.h>
#include <stdio.h>

#include "base/hostmem.h"
#include "gpu.h"

typedef tarn__cuda_device cuda;
typedef tarn__common_extent extent;
typedef tarn__cuda_physical physical;

static struct {
  pthread_mutex_t lock;      // guards the map, and all memory in it
  tarn__common_extents all;  // by handle; |record|: the memory
} memories = {.lock = PTHREAD_MUTEX_INITIALIZER};

static physical *find_locked(uint64_t handle) {
  const extent *x = tarn__common_extents_find(&memories.all, handle);
  return x != NULL ? x->record : NULL;
}

static void settle(physical *memory) {
  if (memory->holds == 0 && memory->mappings == 0)
    tarn__host_free(memory, sizeof *memory);
}

// --- holding ---------------------------------------------------------------

static physical *add_locked(const cuda *d, uint64_t handle, size_t size,
                            bool is_shareable) {
  tarn__common_run key = {handle, 1};
  physical *memory = tarn__host_alloc(sizeof *memory);
  if (memory == NULL) return NULL;
  *memory = (physical){.handle = handle,
                       .size = size,
                       .id = d->id,
                       .is_shareable = is_shareable};
  extent *x = tarn__common_extents_add(&memories.all, key, 1, 1);
  if (x == NULL) {
    tarn__host_free(memory, sizeof *memory);
    return NULL;
  }
  x->record = memory;
  return memory;
}

bool tarn__cuda_physical_note(const cuda *d, uint64_t handle, size_t size,
                              bool is_shareable) {
  pthread_mutex_lock(&memories.lock);
  physical *memory = find_locked(handle);
  if (memory == NULL) memory = add_locked(d, handle, size, is_shareable);
  if (memory != NULL) memory->holds++;
  pthread_mutex_unlock(&memories.lock);
  return memory != NULL;
}

static void drop_locked(physical *memory) {
  if (--memory->holds != 0) return;
  tarn__common_extents_remove(
      &memories.all, tarn__common_extents_find(&memories.all, memory->handle));
  settle(memory);
}

bool tarn__cuda_physical_look(uint64_t handle, physical *out) {
  pthread_mutex_lock(&memories.lock);
  const physical *memory = find_locked(handle);
  if (memory != NULL) *out = *memory;
  pthread_mutex_unlock(&memories.lock);
  return memory != NULL;
}

// --- mapping ---------------------------------------------------------------

physical *tarn__cuda_physical_map(uint64_t handle, size_t size,
                                  const char **out_words) {
  *out_words = NULL;
  pthread_mutex_lock(&memories.lock);
  physical *memory = find_locked(handle);
  if (memory == NULL) {
    *out_words = "no such memory";
  } else if (memory->size != size) {
    *out_words = "not the size of the memory";
  } else if (!memory->is_shareable && memory->mappings != 0) {
    *out_words = "the memory is mapped elsewhere and not shareable";
  } else {
    memory->mappings++;
  }
  pthread_mutex_unlock(&memories.lock);
  return *out_words == NULL ? memory : NULL;
}

void tarn__cuda_physical_unmap(physical *memory) {
  pthread_mutex_lock(&memories.lock);
  memory->mappings--;
  settle(memory);
  pthread_mutex_unlock(&memories.lock);
}

// --- the driver ------------------------------------------------------------

struct CUmemAllocationProp_st tarn__cuda_properties(const cuda *d,
                                                    bool is_shareable) {
  return (struct CUmemAllocationProp_st){
      .type = TARN__CU_MEM_ALLOCATION_TYPE_PINNED,
      .requestedHandleTypes =
          is_shareable ? TARN__CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
                       : TARN__CU_MEM_HANDLE_TYPE_NONE,
      .location = {TARN__CU_MEM_LOCATION_TYPE_DEVICE, d->handle},
      .allocFlags = {.gpuDirectRDMACapable = d->is_rdma},
  };
}

static tarn_status refuse(int id, const char *call, uint64_t value,
                          const char *words) {
  return tarn__text_fail(TARN_E_INVALID, "%s:%d: %s of 0x%" PRIx64 ": %s",
                         tarn__cuda_vendor_of.type, id, call, value, words);
}

tarn_status tarn__cuda_check_size(const cuda *d, const char *call,
                                  size_t size) {
  if (size != 0 && (size & (d->granularity - 1)) == 0) return TARN_OK;
  return tarn__text_fail(
      TARN_E_INVALID, "%s:%d: %s of %zu bytes: not a multiple of %zu",
      tarn__cuda_vendor_of.type, d->id, call, size, d->granularity);
}

static tarn_status check_create(const cuda *d, size_t size, uint32_t flags) {
  bool is_shareable = (flags & TARN_EXT_MEMORY_SHAREABLE) != 0;
  if ((flags & ~TARN_EXT_MEMORY_SHAREABLE) != 0)
    return refuse(d->id, "memory_create with flags", flags, "not known");
  if (is_shareable && !d->can[TARN__CUDA_SHARING]) {
    return tarn__text_fail(TARN_E_UNSUPPORTED, "%s:%d is without sharing: %s",
                           tarn__cuda_vendor_of.type, d->id,
                           d->why_not[TARN__CUDA_SHARING]);
  }
  return tarn__cuda_check_size(d, "memory_create", size);
}

static tarn__cuda_result create(const cuda *d, size_t size, bool is_shareable,
                                CUmemGenericAllocationHandle *out) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  struct CUmemAllocationProp_st properties =
      tarn__cuda_properties(d, is_shareable);
  tarn__cuda_result error = cu->MemCreate(out, size, &properties, 0);
  if (error != TARN__CU_ERROR_OUT_OF_MEMORY || d->pool == NULL) return error;
  tarn__cuda_memory_trim(d);
  return cu->MemCreate(out, size, &properties, 0);
}

static tarn_status no_host_memory(int id) {
  return tarn__text_fail(TARN_E_NOMEM, "%s:%d: no host memory",
                         tarn__cuda_vendor_of.type, id);
}

tarn_status tarn__cuda_memory_create(int id, size_t size, uint32_t flags,
                                     uint64_t *out_memory) {
  CUmemGenericAllocationHandle handle = 0;
  tarn__cuda_scope scope;
  cuda *d = NULL;
  *out_memory = 0;
  TARN__TRY(tarn__cuda_admit_for(id, TARN__CUDA_RANGES, &d));
  TARN__TRY(check_create(d, size, flags));
  TARN__TRY(tarn__cuda_answer(tarn__cuda_enter(d, true, &scope)));
  tarn__cuda_result error = create(d, size, flags != 0, &handle);
  bool is_noted = error == TARN__CU_SUCCESS &&
                  tarn__cuda_physical_note(d, handle, size, flags != 0);
  if (error == TARN__CU_SUCCESS && !is_noted)
    (void)tarn__cuda_driver_get()->MemRelease(handle);
  tarn__cuda_leave(&scope);
  if (error == TARN__CU_ERROR_OUT_OF_MEMORY) {
    (void)tarn__cuda_say(error, "cuMemCreate");
    return TARN_FULL;
  }
  if (error != TARN__CU_SUCCESS)
    return tarn__cuda_answer(tarn__cuda_say(error, "cuMemCreate"));
  if (!is_noted) return no_host_memory(id);
  *out_memory = handle;
  return TARN_OK;
}

// What a driver does not take back is no longer there for the program either.
tarn_status tarn__cuda_memory_destroy(int id, uint64_t memory) {
  tarn__cuda_scope scope;
  cuda *d = NULL;
  TARN__TRY(tarn__cuda_admit_for(id, TARN__CUDA_RANGES, &d));
  TARN__TRY(tarn__cuda_answer(tarn__cuda_enter(d, true, &scope)));
  pthread_mutex_lock(&memories.lock);
  physical *found = find_locked(memory);
  if (found != NULL) drop_locked(found);
  pthread_mutex_unlock(&memories.lock);
  tarn__cuda_result error = TARN__CU_SUCCESS;
  if (found != NULL) error = tarn__cuda_driver_get()->MemRelease(memory);
  tarn__cuda_leave(&scope);
  if (found == NULL)
    return refuse(id, "memory_destroy", memory, "no such memory");
  return tarn__cuda_answer(tarn__cuda_say(error, "cuMemRelease"));
}

// The first memory of |d| in the map, with one hold less; 0: there is none.
static uint64_t drop_any(const cuda *d) {
  uint64_t handle = 0;
  pthread_mutex_lock(&memories.lock);
  const extent *x = tarn__common_extents_from(&memories.all, 0);
  while (x != NULL && ((const physical *)x->record)->id != d->id)
    x = tarn__common_extents_from(&memories.all, x->node.start + 1);
  if (x != NULL) {
    handle = x->node.start;
    drop_locked(x->record);
  }
  pthread_mutex_unlock(&memories.lock);
  return handle;
}

void tarn__cuda_physical_close(const cuda *d) {
  uint64_t handle = 0;
  while ((handle = drop_any(d)) != 0)
    (void)tarn__cuda_driver_get()->MemRelease(handle);
}
