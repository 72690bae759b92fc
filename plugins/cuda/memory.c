// Blocks, at once and in the order of a stream.
//
//   driver's block   | skipped | size bytes              |
//                              ^ a multiple of more than 256: noted in |offset|
//
// The driver knows its blocks: what is to be freed goes to it as it is, and it
// refuses what begins none. Only of blocks that begin behind where the driver's
// does is an account kept.
//
// The pool for blocks in the order of a stream is the device's own, so that
// what it keeps does not depend on the rest of the program. Memory that lies in
// it unused goes back before a request is refused.
#include <inttypes.h>
#include <stdio.h>

#include "devices.h"

typedef tarn__cuda_device cuda;
typedef tarn__common_extent extent;

// --- the pool --------------------------------------------------------------

static bool has_pool_calls(void) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  return cu->MemPoolCreate != NULL && cu->MemPoolDestroy != NULL &&
         cu->MemPoolSetAttribute != NULL && cu->MemAllocFromPoolAsync != NULL &&
         cu->MemFreeAsync != NULL;
}

// A block from the pool and back. Some drivers make pools that give none.
static C_Status try_block(CUmemoryPool pool, CUstream stream) {
  enum { TRIED = 512 };
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  CUdeviceptr address = 0;
  tarn__cuda_result error =
      cu->MemAllocFromPoolAsync(&address, TRIED, pool, stream);
  if (error != TARN__CU_SUCCESS)
    return tarn__cuda_say(error, "cuMemAllocFromPoolAsync");
  error = cu->MemFreeAsync(address, stream);
  if (error != TARN__CU_SUCCESS) return tarn__cuda_say(error, "cuMemFreeAsync");
  return tarn__cuda_say(cu->StreamSynchronize(stream), "cuStreamSynchronize");
}

static C_Status try_pool(CUmemoryPool pool, uint64_t threshold) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  CUstream stream = NULL;
  tarn__cuda_result error = cu->MemPoolSetAttribute(
      pool, TARN__CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
  if (error != TARN__CU_SUCCESS)
    return tarn__cuda_say(error, "cuMemPoolSetAttribute");
  error = cu->StreamCreate(&stream, TARN__CU_STREAM_NON_BLOCKING);
  if (error != TARN__CU_SUCCESS) return tarn__cuda_say(error, "cuStreamCreate");
  C_Status status = try_block(pool, stream);
  (void)cu->StreamDestroy(stream);
  return status;
}

static C_Status make_pool(cuda *d, uint64_t threshold) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  const struct CUmemPoolProps_st properties = {
      .allocType = TARN__CU_MEM_ALLOCATION_TYPE_PINNED,
      .handleTypes = TARN__CU_MEM_HANDLE_TYPE_NONE,
      .location = {TARN__CU_MEM_LOCATION_TYPE_DEVICE, d->handle}};
  tarn__cuda_result error = cu->MemPoolCreate(&d->pool, &properties);
  if (error != TARN__CU_SUCCESS) {
    d->pool = NULL;
    return tarn__cuda_say(error, "cuMemPoolCreate");
  }
  C_Status status = try_pool(d->pool, threshold);
  if (status == C_SUCCESS) return C_SUCCESS;
  (void)cu->MemPoolDestroy(d->pool);
  d->pool = NULL;
  return status;
}

void tarn__cuda_memory_trim(const cuda *d) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  if (d->pool != NULL && cu->MemPoolTrimTo != NULL)
    (void)cu->MemPoolTrimTo(d->pool, 0);
}

void tarn__cuda_memory_open(cuda *d, const tarn__cuda_options *options) {
  const char *why = NULL;
  d->pool = NULL;
  if (!tarn__cuda_is_wanted(d, TARN__CUDA_POOLS, options)) return;
  if (!has_pool_calls()) {
    why = "the driver is older than pools";
  } else if (tarn__cuda_ask(
                 d, TARN__CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 0) {
    why = "the driver has none for this device";
  } else if (make_pool(d, options->release_threshold) != C_SUCCESS) {
    why = tarn__text_line();
  }
  tarn__cuda_settle(d, TARN__CUDA_POOLS, why);
  tarn__cuda_memory_trim(d);  // of the block that was tried
}

// --- taking ----------------------------------------------------------------

typedef tarn__cuda_result take_call(size_t size, CUdeviceptr *out);

static tarn__cuda_result take_device(size_t size, CUdeviceptr *out) {
  return tarn__cuda_driver_get()->MemAlloc(out, size);
}

static tarn__cuda_result take_host(size_t size, CUdeviceptr *out) {
  void *pointer = NULL;
  tarn__cuda_result error = tarn__cuda_driver_get()->MemHostAlloc(
      &pointer, size,
      TARN__CU_MEMHOSTALLOC_PORTABLE | TARN__CU_MEMHOSTALLOC_DEVICEMAP);
  *out = (uintptr_t)pointer;
  return error;
}

static tarn__cuda_result take_unified(size_t size, CUdeviceptr *out) {
  return tarn__cuda_driver_get()->MemAllocManaged(out, size,
                                                  TARN__CU_MEM_ATTACH_GLOBAL);
}

static C_Status refuse_empty(const cuda *d) {
  (void)tarn__text_fail(TARN_E_INVALID, "%s:%d: a block without bytes",
                        tarn__cuda_vendor_of.type, d->id);
  return C_ERROR;
}

static C_Status take(cuda *d, take_call *call, const char *name, size_t size,
                     uint64_t *out_address) {
  CUdeviceptr address = 0;
  tarn__cuda_scope scope;
  *out_address = 0;
  if (size == 0) return refuse_empty(d);
  C_Status status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) return status;
  tarn__cuda_result error = call(size, &address);
  if (error == TARN__CU_ERROR_OUT_OF_MEMORY && d->pool != NULL) {
    tarn__cuda_memory_trim(d);
    error = call(size, &address);
  }
  tarn__cuda_leave(&scope);
  if (error == TARN__CU_SUCCESS) *out_address = address;
  return tarn__cuda_say(error, name);
}

static C_Status allocate(const C_Device device, take_call *call,
                         const char *name, void **ptr, size_t size) {
  uint64_t address = 0;
  cuda *d = tarn__cuda_device_of(device);
  if (d == NULL) return C_ERROR;
  C_Status status = take(d, call, name, size, &address);
  *ptr = (void *)(uintptr_t)address;
  return status;
}

C_Status tarn__cuda_device_memory_allocate(const C_Device device, void **ptr,
                                           size_t size) {
  if (ptr == NULL) return tarn__wordless(C_ERROR);
  *ptr = NULL;
  return allocate(device, take_device, "cuMemAlloc", ptr, size);
}

C_Status tarn__cuda_host_memory_allocate(const C_Device device, void **ptr,
                                         size_t size) {
  if (ptr == NULL) return tarn__wordless(C_ERROR);
  *ptr = NULL;
  return allocate(device, take_host, "cuMemHostAlloc", ptr, size);
}

C_Status tarn__cuda_unified_memory_allocate(const C_Device device, void **ptr,
                                            size_t size) {
  cuda *d = NULL;
  if (ptr == NULL) return tarn__wordless(C_ERROR);
  *ptr = NULL;
  if (device == NULL) return tarn__wordless(C_ERROR);
  if (tarn__cuda_admit_for(device->id, TARN__CUDA_MANAGED, &d) != TARN_OK)
    return C_ERROR;
  return allocate(device, take_unified, "cuMemAllocManaged", ptr, size);
}

// --- blocks that begin behind the driver's ---------------------------------

static tarn_status note_offset(cuda *d, uint64_t base, uint64_t address,
                               size_t size) {
  tarn__common_run run = {address, size};
  pthread_mutex_lock(&d->lock);
  extent *x = tarn__common_extents_add(&d->offset, run, size, 1);
  if (x != NULL) x->record = (void *)(uintptr_t)base;
  pthread_mutex_unlock(&d->lock);
  return x != NULL ? TARN_OK : TARN_E_NOMEM;
}

static extent *find_offset(const cuda *d, uint64_t address) {
  extent *x = tarn__common_extents_find(&d->offset, address);
  return x != NULL && x->node.start == address ? x : NULL;
}

// The driver's address of the block that begins at |address|. What was noted of
// it is forgotten: as soon as the driver has its memory back, another thread
// may get the same.
static CUdeviceptr take_base(cuda *d, uint64_t address, size_t *out_size) {
  CUdeviceptr base = address;
  *out_size = 0;
  pthread_mutex_lock(&d->lock);
  extent *x = find_offset(d, address);
  if (x != NULL) {
    base = (uintptr_t)x->record;
    *out_size = x->size;
    tarn__common_extents_remove(&d->offset, x);
  }
  pthread_mutex_unlock(&d->lock);
  return base;
}

// Notes it again, of a block that the driver has not taken. Without host memory
// it is lost.
static void put_base(cuda *d, CUdeviceptr base, uint64_t address, size_t size) {
  if (base != address) (void)note_offset(d, base, address, size);
}

// --- giving back -----------------------------------------------------------

static C_Status refuse_null(const cuda *d) {
  (void)tarn__text_fail(TARN_E_INVALID, "%s:%d: no block is at address 0",
                        tarn__cuda_vendor_of.type, d->id);
  return C_ERROR;
}

// Names the address in the driver's answer to |call|.
static C_Status say_at(tarn__cuda_result error, const char *call,
                       uint64_t address) {
  char what[64];
  if (error == TARN__CU_SUCCESS) return C_SUCCESS;
  snprintf(what, sizeof what, "%s of 0x%" PRIx64, tarn__cuda_name(call),
           address);
  return tarn__cuda_say(error, what);
}

// A driver that takes no other memory than that of pools on a stream calls it
// an invalid value: such memory goes back behind a wait for the stream.
static tarn__cuda_result give_queued(CUstream stream, CUdeviceptr base) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  tarn__cuda_result error = cu->MemFreeAsync(base, stream);
  if (error != TARN__CU_ERROR_INVALID_VALUE) return error;
  error = cu->StreamSynchronize(stream);
  return error == TARN__CU_SUCCESS ? cu->MemFree(base) : error;
}

// |stream| NULL: at once.
static C_Status give(cuda *d, CUstream stream, uint64_t address) {
  tarn__cuda_scope scope;
  size_t size = 0;
  if (address == 0) return refuse_null(d);
  C_Status status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) return status;
  CUdeviceptr base = take_base(d, address, &size);
  tarn__cuda_result error = stream != NULL
                                ? give_queued(stream, base)
                                : tarn__cuda_driver_get()->MemFree(base);
  if (error != TARN__CU_SUCCESS) put_base(d, base, address, size);
  tarn__cuda_leave(&scope);
  return say_at(error, stream != NULL ? "cuMemFreeAsync" : "cuMemFree",
                address);
}

static C_Status give_host(cuda *d, void *ptr) {
  tarn__cuda_scope scope;
  if (ptr == NULL) return refuse_null(d);
  C_Status status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) return status;
  tarn__cuda_result error = tarn__cuda_driver_get()->MemFreeHost(ptr);
  tarn__cuda_leave(&scope);
  return say_at(error, "cuMemFreeHost", (uintptr_t)ptr);
}

C_Status tarn__cuda_device_memory_deallocate(const C_Device device, void *ptr,
                                             size_t size) {
  (void)size;
  cuda *d = tarn__cuda_device_of(device);
  return d != NULL ? give(d, NULL, (uintptr_t)ptr) : C_ERROR;
}

C_Status tarn__cuda_unified_memory_deallocate(const C_Device device, void *ptr,
                                              size_t size) {
  return tarn__cuda_device_memory_deallocate(device, ptr, size);
}

C_Status tarn__cuda_host_memory_deallocate(const C_Device device, void *ptr,
                                           size_t size) {
  (void)size;
  cuda *d = tarn__cuda_device_of(device);
  return d != NULL ? give_host(d, ptr) : C_ERROR;
}

// --- aligned ---------------------------------------------------------------

static tarn_status answer_take(C_Status status) {
  return status == C_FAILED ? TARN_FULL : tarn__cuda_answer(status);
}

static tarn_status check_align(const cuda *d, size_t align) {
  if (tarn_is_power_of_two(align)) return TARN_OK;
  return tarn__text_fail(TARN_E_INVALID, "%s:%d: no alignment: %zu",
                         tarn__cuda_vendor_of.type, d->id, align);
}

static tarn_status too_large(const cuda *d, size_t size, size_t align) {
  return tarn__text_fail(TARN_FULL,
                         "%s:%d: %zu bytes at a multiple of %zu: too many",
                         tarn__cuda_vendor_of.type, d->id, size, align);
}

tarn_status tarn__cuda_allocate_aligned(int id, size_t size, size_t align,
                                        uint64_t *out_addr) {
  cuda *d = NULL;
  uint64_t base = 0;
  size_t whole = size;
  *out_addr = 0;
  TARN__TRY(tarn__cuda_admit(id, &d));
  TARN__TRY(check_align(d, align));
  if (size != 0 && align > TARN__CUDA_ALIGN &&
      !tarn_size_add(size, align - TARN__CUDA_ALIGN, &whole)) {
    return too_large(d, size, align);
  }
  TARN__TRY(answer_take(take(d, take_device, "cuMemAlloc", whole, &base)));
  uint64_t address = (base + align - 1) & ~(uint64_t)(align - 1);
  if (address != base && note_offset(d, base, address, size) != TARN_OK) {
    (void)give(d, NULL, base);
    return tarn__text_fail(TARN_E_NOMEM, "%s:%d: no host memory",
                           tarn__cuda_vendor_of.type, id);
  }
  *out_addr = address;
  return TARN_OK;
}

// --- in the order of a stream ----------------------------------------------

static C_Status take_queued(cuda *d, CUstream stream, size_t size,
                            CUdeviceptr *out) {
  tarn__cuda_scope scope;
  if (size == 0) return refuse_empty(d);
  C_Status status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) return status;
  tarn__cuda_result error = tarn__cuda_driver_get()->MemAllocFromPoolAsync(
      out, size, d->pool, stream);
  tarn__cuda_leave(&scope);
  if (error != TARN__CU_SUCCESS) *out = 0;
  return tarn__cuda_say(error, "cuMemAllocFromPoolAsync");
}

tarn_status tarn__cuda_allocate_async(int id, void *stream, size_t size,
                                      uint64_t *out_addr) {
  cuda *d = NULL;
  CUdeviceptr address = 0;
  *out_addr = 0;
  TARN__TRY(tarn__cuda_admit_for(id, TARN__CUDA_POOLS, &d));
  if (stream == NULL)
    return answer_take(take(d, take_device, "cuMemAlloc", size, out_addr));
  C_Status status = take_queued(d, stream, size, &address);
  *out_addr = address;
  return answer_take(status);
}

tarn_status tarn__cuda_deallocate_async(int id, void *stream, uint64_t addr,
                                        size_t size) {
  cuda *d = NULL;
  (void)size;
  TARN__TRY(tarn__cuda_admit_for(id, TARN__CUDA_POOLS, &d));
  return tarn__cuda_answer(give(d, stream, addr));
}

// --- the rest --------------------------------------------------------------

// What the driver's pool holds and gives back before a request is refused.
static size_t idle_in_pool(const cuda *d) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  uint64_t reserved = 0;
  uint64_t used = 0;
  if (d->pool == NULL || cu->MemPoolGetAttribute == NULL) return 0;
  if (cu->MemPoolGetAttribute(d->pool,
                              TARN__CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                              &reserved) != TARN__CU_SUCCESS ||
      cu->MemPoolGetAttribute(d->pool, TARN__CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
                              &used) != TARN__CU_SUCCESS) {
    return 0;
  }
  return reserved > used ? (size_t)(reserved - used) : 0;
}

C_Status tarn__cuda_device_memory_stats(const C_Device device, size_t *total,
                                        size_t *free) {
  tarn__cuda_scope scope;
  if (total == NULL || free == NULL) return tarn__wordless(C_ERROR);
  *total = *free = 0;
  cuda *d = tarn__cuda_device_of(device);
  if (d == NULL) return C_ERROR;
  C_Status status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) return status;
  tarn__cuda_result error = tarn__cuda_driver_get()->MemGetInfo(free, total);
  if (error == TARN__CU_SUCCESS)
    *free += tarn__lesser(idle_in_pool(d), *total - *free);
  tarn__cuda_leave(&scope);
  if (error != TARN__CU_SUCCESS) *total = *free = 0;
  return tarn__cuda_say(error, "cuMemGetInfo");
}

void tarn__cuda_memory_close(cuda *d) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  const extent *x = NULL;
  while ((x = tarn__common_extents_any(&d->offset)) != NULL) {
    size_t size = 0;
    (void)cu->MemFree(take_base(d, x->node.start, &size));
  }
  if (d->pool != NULL) (void)cu->MemPoolDestroy(d->pool);
  d->pool = NULL;
}
