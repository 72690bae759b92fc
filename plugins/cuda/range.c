// Ranges of addresses, and mappings in them.
//
// An account is kept of both. A driver takes a part of a range or of a mapping
// for the whole, or refuses it with a word that does not tell which it was.
//
// Invariants:
//   * A mapping lies in one range of its device, and mappings share no byte.
//   * A mapping stands in the account from before the driver maps it until
//     behind its end there; |record| is its memory.
#include <inttypes.h>
#include <stdio.h>

#include "devices.h"

typedef tarn__cuda_device cuda;
typedef tarn__common_extent extent;
typedef tarn__common_run run;

// --- words -----------------------------------------------------------------

static tarn_status refuse(const cuda *d, const char *call, run r,
                          const char *words) {
  return tarn__text_fail(
      TARN_E_INVALID, "%s:%d: %s of %zu bytes at 0x%" PRIx64 ": %s",
      tarn__cuda_vendor_of.type, d->id, call, r.size, r.address, words);
}

// The driver's answer to |call|, with what it was about.
static tarn_status answer(const cuda *d, const char *call, run r,
                          tarn__cuda_result error) {
  char what[96];
  if (error == TARN__CU_SUCCESS) return TARN_OK;
  snprintf(what, sizeof what, "%s of %zu bytes at 0x%" PRIx64 " of %s:%d",
           tarn__cuda_name(call), r.size, r.address, tarn__cuda_vendor_of.type,
           d->id);
  C_Status status = tarn__cuda_say(error, what);
  return status == C_FAILED ? TARN_FULL : tarn__cuda_answer(status);
}

static bool is_granular(const cuda *d, uint64_t value) {
  return (value & (d->granularity - 1)) == 0;
}

// --- ranges ----------------------------------------------------------------

tarn_status tarn__cuda_range_granularity(int id, size_t *out_size) {
  cuda *d = NULL;
  *out_size = 0;
  TARN__TRY(tarn__cuda_admit_for(id, TARN__CUDA_RANGES, &d));
  *out_size = d->granularity;
  return TARN_OK;
}

static tarn_status reserve(cuda *d, size_t size, size_t align,
                           CUdeviceptr *out) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  tarn__cuda_result error = cu->MemAddressReserve(out, size, align, 0, 0);
  run r = {*out, size};
  if (error != TARN__CU_SUCCESS)
    return answer(d, "cuMemAddressReserve", (run){0, size}, error);
  pthread_mutex_lock(&d->lock);
  const extent *x = tarn__common_extents_add(&d->ranges, r, size, 1);
  pthread_mutex_unlock(&d->lock);
  if (x != NULL) return TARN_OK;
  (void)cu->MemAddressFree(*out, size);
  return tarn__text_fail(TARN_E_NOMEM, "%s:%d: no host memory",
                         tarn__cuda_vendor_of.type, d->id);
}

tarn_status tarn__cuda_range_reserve(int id, size_t size, size_t align,
                                     uint64_t *out_addr) {
  CUdeviceptr address = 0;
  tarn__cuda_scope scope;
  cuda *d = NULL;
  *out_addr = 0;
  TARN__TRY(tarn__cuda_admit_for(id, TARN__CUDA_RANGES, &d));
  TARN__TRY(tarn__cuda_check_size(d, "range_reserve", size));
  if (align != 0 && !tarn_is_power_of_two(align))
    return refuse(d, "range_reserve", (run){0, size},
                  "an alignment that is no power of two");
  if (align < d->granularity) align = d->granularity;
  TARN__TRY(tarn__cuda_answer(tarn__cuda_enter(d, true, &scope)));
  tarn_status status = reserve(d, size, align, &address);
  tarn__cuda_leave(&scope);
  if (status == TARN_OK) *out_addr = address;
  return status;
}

// The range of which |r| is a part; NULL if it is of none.
static extent *range_around(const cuda *d, run r) {
  extent *x = tarn__common_extents_find(&d->ranges, r.address);
  bool fits = x != NULL && r.size <= x->size - (r.address - x->node.start);
  return fits ? x : NULL;
}

// The fault of a release; NULL: none.
static const char *check_release(cuda *d, run r) {
  pthread_mutex_lock(&d->lock);
  const extent *x = range_around(d, r);
  bool is_whole = x != NULL && x->node.start == r.address && x->size == r.size;
  bool is_empty = tarn__common_extents_in(&d->mappings, r) == NULL;
  pthread_mutex_unlock(&d->lock);
  if (!is_whole) return "not a whole range of this device";
  return is_empty ? NULL : "something is mapped there";
}

// Forgets the range first: another thread may get the addresses as soon as the
// driver has them.
static void take_range(cuda *d, run r) {
  pthread_mutex_lock(&d->lock);
  extent *x = range_around(d, r);
  if (x != NULL) tarn__common_extents_remove(&d->ranges, x);
  pthread_mutex_unlock(&d->lock);
}

// Without host memory a range that the driver has not taken is lost.
static void put_range(cuda *d, run r) {
  pthread_mutex_lock(&d->lock);
  (void)(tarn__common_extents_add(&d->ranges, r, r.size, 1) != NULL);
  pthread_mutex_unlock(&d->lock);
}

tarn_status tarn__cuda_range_release(int id, uint64_t addr, size_t size) {
  run r = {addr, size};
  tarn__cuda_scope scope;
  cuda *d = NULL;
  TARN__TRY(tarn__cuda_admit_for(id, TARN__CUDA_RANGES, &d));
  const char *words = check_release(d, r);
  if (words != NULL) return refuse(d, "range_release", r, words);
  TARN__TRY(tarn__cuda_answer(tarn__cuda_enter(d, true, &scope)));
  take_range(d, r);
  tarn__cuda_result error = tarn__cuda_driver_get()->MemAddressFree(addr, size);
  if (error != TARN__CU_SUCCESS) put_range(d, r);
  tarn__cuda_leave(&scope);
  return answer(d, "cuMemAddressFree", r, error);
}

// --- mapping ---------------------------------------------------------------

// The fault of mapping there; NULL: none.
static const char *check_map(const cuda *d, run r) {
  if (!is_granular(d, r.address)) return "not at a multiple of the granularity";
  if (range_around(d, r) == NULL) return "not in a range of this device";
  if (tarn__common_extents_in(&d->mappings, r) != NULL)
    return "something is mapped there already";
  return NULL;
}

// Enters the mapping. NULL with |*out_words| NULL: no host memory.
static extent *add_mapping(cuda *d, run r, uint64_t handle,
                           const char **out_words) {
  extent *x = NULL;
  pthread_mutex_lock(&d->lock);
  tarn__cuda_physical *memory = NULL;
  *out_words = check_map(d, r);
  if (*out_words == NULL)
    memory = tarn__cuda_physical_map(handle, r.size, out_words);
  if (memory != NULL) {
    x = tarn__common_extents_add(&d->mappings, r, r.size, 1);
    if (x != NULL) x->record = memory;
    if (x == NULL) tarn__cuda_physical_unmap(memory);
  }
  pthread_mutex_unlock(&d->lock);
  return x;
}

// Takes the mappings in |r| out of the account.
static void forget(cuda *d, run r) {
  extent *x = NULL;
  pthread_mutex_lock(&d->lock);
  while ((x = tarn__common_extents_in(&d->mappings, r)) != NULL) {
    tarn__cuda_physical_unmap(x->record);
    tarn__common_extents_remove(&d->mappings, x);
  }
  pthread_mutex_unlock(&d->lock);
}

tarn_status tarn__cuda_range_map(int id, uint64_t addr, size_t size,
                                 uint64_t memory) {
  run r = {addr, size};
  const char *words = NULL;
  tarn__cuda_scope scope;
  cuda *d = NULL;
  TARN__TRY(tarn__cuda_admit_for(id, TARN__CUDA_RANGES, &d));
  TARN__TRY(tarn__cuda_answer(tarn__cuda_enter(d, true, &scope)));
  tarn__cuda_result error = TARN__CU_SUCCESS;
  const extent *x = add_mapping(d, r, memory, &words);
  if (x != NULL)
    error = tarn__cuda_driver_get()->MemMap(addr, size, 0, memory, 0);
  if (error != TARN__CU_SUCCESS) forget(d, r);
  tarn__cuda_leave(&scope);
  if (words != NULL) return refuse(d, "range_map", r, words);
  if (x != NULL) return answer(d, "cuMemMap", r, error);
  return tarn__text_fail(TARN_E_NOMEM, "%s:%d: no host memory",
                         tarn__cuda_vendor_of.type, id);
}

// The fault of |r| as a row of whole mappings; NULL: none.
static const char *check_whole_locked(const cuda *d, run r) {
  size_t done = 0;
  if (r.size == 0 || range_around(d, r) == NULL)
    return "not in a range of this device";
  while (done < r.size) {
    const extent *x = tarn__common_extents_find(&d->mappings, r.address + done);
    if (x == NULL) return "nothing is mapped in some of it";
    if (x->node.start != r.address + done) return "not whole mappings";
    done += x->size;
  }
  return done == r.size ? NULL : "not whole mappings";
}

static const char *check_whole(cuda *d, run r) {
  pthread_mutex_lock(&d->lock);
  const char *words = check_whole_locked(d, r);
  pthread_mutex_unlock(&d->lock);
  return words;
}

size_t tarn__cuda_piece(cuda *d, uint64_t address, size_t size) {
  if (!tarn__cuda_vendor_of.maps_one_by_one) return size;
  pthread_mutex_lock(&d->lock);
  const extent *x = tarn__common_extents_find(&d->mappings, address);
  if (x != NULL) size = tarn__lesser(size, x->size - (address - x->node.start));
  pthread_mutex_unlock(&d->lock);
  return size;
}

// Ends the mappings of |r|, which are whole. What went before a failure is
// unmapped.
static tarn_status unmap(cuda *d, run r) {
  for (size_t done = 0; done < r.size;) {
    run piece = {r.address + done, 0};
    piece.size = tarn__cuda_piece(d, piece.address, r.size - done);
    tarn__cuda_result error =
        tarn__cuda_driver_get()->MemUnmap(piece.address, piece.size);
    if (error != TARN__CU_SUCCESS) return answer(d, "cuMemUnmap", piece, error);
    forget(d, piece);
    done += piece.size;
  }
  return TARN_OK;
}

tarn_status tarn__cuda_range_unmap(int id, uint64_t addr, size_t size) {
  run r = {addr, size};
  tarn__cuda_scope scope;
  cuda *d = NULL;
  TARN__TRY(tarn__cuda_admit_for(id, TARN__CUDA_RANGES, &d));
  const char *words = check_whole(d, r);
  if (words != NULL) return refuse(d, "range_unmap", r, words);
  TARN__TRY(tarn__cuda_answer(tarn__cuda_enter(d, true, &scope)));
  tarn_status status = unmap(d, r);
  tarn__cuda_leave(&scope);
  return status;
}

// --- rights ----------------------------------------------------------------

static tarn_status set_rights(cuda *d, run r,
                              const struct CUmemAccessDesc_st *rights) {
  for (size_t done = 0; done < r.size;) {
    run piece = {r.address + done, 0};
    piece.size = tarn__cuda_piece(d, piece.address, r.size - done);
    tarn__cuda_result error = tarn__cuda_driver_get()->MemSetAccess(
        piece.address, piece.size, rights, 1);
    if (error != TARN__CU_SUCCESS)
      return answer(d, "cuMemSetAccess", piece, error);
    done += piece.size;
  }
  return TARN_OK;
}

// The driver's number of a right; false: it is none.
static bool find_right(tarn_ext_access access, unsigned *out) {
  switch ((int)access) {
    case TARN_EXT_ACCESS_NONE:
      *out = TARN__CU_MEM_ACCESS_FLAGS_PROT_NONE;
      return true;
    case TARN_EXT_ACCESS_READ:
      *out = TARN__CU_MEM_ACCESS_FLAGS_PROT_READ;
      return true;
    case TARN_EXT_ACCESS_READ_WRITE:
      *out = TARN__CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      return true;
    default:
      return false;
  }
}

tarn_status tarn__cuda_range_set_access(int id, uint64_t addr, size_t size,
                                        int by, tarn_ext_access access) {
  run r = {addr, size};
  struct CUmemAccessDesc_st rights = {
      .location = {.type = TARN__CU_MEM_LOCATION_TYPE_DEVICE}};
  tarn__cuda_scope scope;
  cuda *d = NULL;
  cuda *user = NULL;
  TARN__TRY(tarn__cuda_admit_for(id, TARN__CUDA_RANGES, &d));
  TARN__TRY(tarn__cuda_admit(by, &user));
  rights.location.id = user->handle;
  const char *words = check_whole(d, r);
  if (!find_right(access, &rights.flags)) words = "no such right";
  if (words != NULL) return refuse(d, "range_set_access", r, words);
  TARN__TRY(tarn__cuda_answer(tarn__cuda_enter(d, true, &scope)));
  tarn_status status = set_rights(d, r, &rights);
  tarn__cuda_leave(&scope);
  return status;
}

// --- whether it works ------------------------------------------------------

static bool has_range_calls(void) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  return cu->MemGetAllocationGranularity != NULL &&
         cu->MemAddressReserve != NULL && cu->MemAddressFree != NULL &&
         cu->MemCreate != NULL && cu->MemRelease != NULL &&
         cu->MemMap != NULL && cu->MemUnmap != NULL && cu->MemSetAccess != NULL;
}

// A use of each call, up to the first that fails.
typedef struct trial {
  cuda *device;
  CUdeviceptr address;
  CUmemGenericAllocationHandle memory;
  C_Status status;
} trial;

// Notes the driver's answer, unless a call failed before.
static bool did(trial *t, const char *call, tarn__cuda_result error) {
  if (t->status != C_SUCCESS) return false;
  t->status = tarn__cuda_say(error, call);
  return t->status == C_SUCCESS;
}

static void try_mapping(trial *t) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  const cuda *d = t->device;
  const struct CUmemAccessDesc_st rights = {
      .location = {TARN__CU_MEM_LOCATION_TYPE_DEVICE, d->handle},
      .flags = TARN__CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  size_t size = d->granularity;
  if (!did(t, "cuMemMap", cu->MemMap(t->address, size, 0, t->memory, 0)))
    return;
  (void)did(t, "cuMemSetAccess",
            cu->MemSetAccess(t->address, size, &rights, 1));
  (void)did(t, "cuMemUnmap", cu->MemUnmap(t->address, size));
}

static void try_memory(trial *t) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  const cuda *d = t->device;
  struct CUmemAllocationProp_st properties = tarn__cuda_properties(d, false);
  if (!did(t, "cuMemCreate",
           cu->MemCreate(&t->memory, d->granularity, &properties, 0))) {
    return;
  }
  try_mapping(t);
  (void)did(t, "cuMemRelease", cu->MemRelease(t->memory));
}

static C_Status try_ranges(cuda *d) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  trial t = {.device = d, .status = C_SUCCESS};
  struct CUmemAllocationProp_st properties = tarn__cuda_properties(d, false);
  if (!did(&t, "cuMemGetAllocationGranularity",
           cu->MemGetAllocationGranularity(
               &d->granularity, &properties,
               TARN__CU_MEM_ALLOC_GRANULARITY_MINIMUM)) ||
      !did(&t, "cuMemAddressReserve",
           cu->MemAddressReserve(&t.address, d->granularity, 0, 0, 0))) {
    return t.status;
  }
  try_memory(&t);
  (void)did(&t, "cuMemAddressFree",
            cu->MemAddressFree(t.address, d->granularity));
  return t.status;
}

// Where memory for network cards cannot be had, though the attribute says so,
// ranges are without it.
static C_Status try_with_rdma(cuda *d) {
  const unsigned rdma =
      TARN__CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED;
  d->is_rdma = tarn__cuda_ask(d, rdma) != 0;
  C_Status status = try_ranges(d);
  if (status == C_SUCCESS || !d->is_rdma) return status;
  d->is_rdma = false;
  return try_ranges(d);
}

void tarn__cuda_range_open(cuda *d, const tarn__cuda_options *options) {
  const unsigned virtual_memory =
      TARN__CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
  const char *why = NULL;
  if (!tarn__cuda_is_wanted(d, TARN__CUDA_RANGES, options)) return;
  if (!has_range_calls()) {
    why = "the driver is older than ranges";
  } else if (tarn__cuda_ask(d, virtual_memory) == 0) {
    why = "the device has no virtual memory management";
  } else if (try_with_rdma(d) != C_SUCCESS) {
    why = tarn__text_line();
  } else if (!tarn_is_power_of_two(d->granularity)) {
    why = "its granularity is no power of two";
  }
  tarn__cuda_settle(d, TARN__CUDA_RANGES, why);
}

// --- the end ---------------------------------------------------------------

static bool any_run(cuda *d, const tarn__common_extents *extents, run *out) {
  pthread_mutex_lock(&d->lock);
  const extent *x = tarn__common_extents_any(extents);
  if (x != NULL) *out = (run){x->node.start, x->size};
  pthread_mutex_unlock(&d->lock);
  return x != NULL;
}

// What the driver refuses is left, and forgotten.
void tarn__cuda_range_close(cuda *d) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  run r;
  while (any_run(d, &d->mappings, &r)) {
    (void)cu->MemUnmap(r.address, r.size);
    forget(d, r);
  }
  tarn__cuda_physical_close(d);
  while (any_run(d, &d->ranges, &r)) {
    take_range(d, r);
    (void)cu->MemAddressFree(r.address, r.size);
  }
}
