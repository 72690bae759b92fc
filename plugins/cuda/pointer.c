// Queries of addresses, and registered host memory.
//
// Of mappings, and of blocks that begin behind the driver's, the plug-in has
// its own account; for all else the driver is asked, which knows what others in
// the process have allocated, too.
#include <inttypes.h>
#include <stdio.h>

#include "gpu.h"

typedef tarn__cuda_device cuda;
typedef tarn__common_extent extent;

// --- what the plug-in knows ------------------------------------------------

static bool find_known(cuda *d, uint64_t address, tarn_ext_pointer *out) {
  pthread_mutex_lock(&d->lock);
  const extent *x = tarn__common_extents_find(&d->mappings, address);
  int owner = d->id;
  if (x != NULL) owner = ((const tarn__cuda_physical *)x->record)->id;
  if (x == NULL) x = tarn__common_extents_find(&d->offset, address);
  if (x != NULL) {
    *out =
        (tarn_ext_pointer){TARN_EXT_KIND_DEVICE, owner, x->node.start, x->size};
  }
  pthread_mutex_unlock(&d->lock);
  return x != NULL;
}

static bool find_anywhere(uint64_t address, tarn_ext_pointer *out) {
  cuda *d = NULL;
  for (size_t i = 0; (d = tarn__cuda_nth(i)) != NULL; i++)
    if (atomic_load_explicit(&d->ready, memory_order_acquire) &&
        find_known(d, address, out)) {
      return true;
    }
  return false;
}

// --- what the driver knows -------------------------------------------------

static tarn__cuda_result ask(void *out, unsigned attribute, uint64_t address) {
  return tarn__cuda_driver_get()->PointerGetAttribute(out, attribute, address);
}

// The number of the device with that ordinal; |otherwise| if there is none.
static int id_of(int ordinal, int otherwise) {
  const cuda *d = NULL;
  for (size_t i = 0; (d = tarn__cuda_nth(i)) != NULL; i++)
    if (d->handle == ordinal) return d->id;
  return otherwise;
}

static tarn_ext_kind kind_of(unsigned type, bool is_managed) {
  if (is_managed) return TARN_EXT_KIND_UNIFIED;
  return type == TARN__CU_MEMORYTYPE_HOST ? TARN_EXT_KIND_HOST
                                          : TARN_EXT_KIND_DEVICE;
}

// What a driver does not tell of memory that it knows stays as it is: of host
// memory some tell no device.
static tarn__cuda_result ask_driver(const cuda *d, uint64_t address,
                                    tarn_ext_pointer *out) {
  unsigned type = 0;
  unsigned is_managed = 0;
  int ordinal = -1;
  CUdeviceptr start = 0;
  size_t size = 0;
  tarn__cuda_result error =
      ask(&type, TARN__CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  if (error != TARN__CU_SUCCESS) return error;
  if (type == 0) return TARN__CU_ERROR_INVALID_VALUE;
  (void)ask(&is_managed, TARN__CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
  (void)ask(&ordinal, TARN__CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
  if (ask(&start, TARN__CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) !=
          TARN__CU_SUCCESS ||
      ask(&size, TARN__CU_POINTER_ATTRIBUTE_RANGE_SIZE, address) !=
          TARN__CU_SUCCESS) {
    start = 0;
    size = 0;
  }
  *out = (tarn_ext_pointer){kind_of(type, (is_managed & 1) != 0),
                            id_of(ordinal, d->id), start, size};
  return TARN__CU_SUCCESS;
}

tarn_status tarn__cuda_pointer_query(int id, uint64_t addr,
                                     tarn_ext_pointer *out) {
  tarn__cuda_scope scope;
  cuda *d = NULL;
  *out = (tarn_ext_pointer){.id = 0};
  TARN__TRY(tarn__cuda_admit(id, &d));
  if (find_known(d, addr, out) || find_anywhere(addr, out)) return TARN_OK;
  TARN__TRY(tarn__cuda_answer(tarn__cuda_enter(d, true, &scope)));
  tarn__cuda_result error = ask_driver(d, addr, out);
  tarn__cuda_leave(&scope);
  if (error != TARN__CU_ERROR_INVALID_VALUE)
    return tarn__cuda_answer(tarn__cuda_say(error, "cuPointerGetAttribute"));
  return tarn__text_fail(TARN_E_INVALID,
                         "%s:%d: nothing is known of address 0x%" PRIx64,
                         tarn__cuda_vendor_of.type, id, addr);
}

// --- registrations ---------------------------------------------------------

static tarn_status answer(tarn__cuda_result error, const char *call,
                          const void *ptr) {
  char what[64];
  if (error == TARN__CU_SUCCESS) return TARN_OK;
  snprintf(what, sizeof what, "%s of %p", tarn__cuda_name(call), ptr);
  return tarn__cuda_answer(tarn__cuda_say(error, what));
}

tarn_status tarn__cuda_host_register(int id, void *ptr, size_t size) {
  tarn__cuda_scope scope;
  cuda *d = NULL;
  TARN__TRY(tarn__cuda_admit_for(id, TARN__CUDA_REGISTER, &d));
  if (ptr == NULL || size == 0) {
    return tarn__text_fail(TARN_E_INVALID,
                           "%s:%d: host_register of %zu bytes at %p",
                           tarn__cuda_vendor_of.type, id, size, ptr);
  }
  TARN__TRY(tarn__cuda_answer(tarn__cuda_enter(d, true, &scope)));
  tarn__cuda_result error = tarn__cuda_driver_get()->MemHostRegister(
      ptr, size,
      TARN__CU_MEMHOSTREGISTER_PORTABLE | TARN__CU_MEMHOSTREGISTER_DEVICEMAP);
  tarn__cuda_leave(&scope);
  return answer(error, "cuMemHostRegister", ptr);
}

tarn_status tarn__cuda_host_unregister(int id, void *ptr) {
  tarn__cuda_scope scope;
  cuda *d = NULL;
  TARN__TRY(tarn__cuda_admit_for(id, TARN__CUDA_REGISTER, &d));
  TARN__TRY(tarn__cuda_answer(tarn__cuda_enter(d, true, &scope)));
  tarn__cuda_result error = tarn__cuda_driver_get()->MemHostUnregister(ptr);
  tarn__cuda_leave(&scope);
  return answer(error, "cuMemHostUnregister", ptr);
}
