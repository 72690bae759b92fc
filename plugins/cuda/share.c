// Memory of other processes, by file descriptors.
//
// An import has to have the size that its user tells, and the driver does not
// tell the size of a handle. So an import is mapped at addresses of its own for
// a moment: its bytes fit, and a granule more does not. By its documents
// cuMemMap refuses what is beyond the end of the memory. (That a part of the
// memory cannot be mapped either is not documented, and not relied upon.)
//
// HIP, from its sources, does not say that such a mapping failed, and the end
// of one that failed is a crash. Its descriptors are dma-bufs, which have a
// size.
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "devices.h"

typedef tarn__cuda_device cuda;

enum { BY_FD = TARN__CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };

// --- exporting -------------------------------------------------------------

static tarn_status refuse(int id, uint64_t memory, const char *words) {
  return tarn__text_fail(TARN_E_INVALID,
                         "%s:%d: memory_export of 0x%" PRIx64 ": %s",
                         tarn__cuda_vendor_of.type, id, memory, words);
}

// The driver's descriptor may be one of the first three, and need not be closed
// on exec.
static tarn_status take_descriptor(int id, int fd, int *out_fd) {
  *out_fd = tarn__os_duplicate(fd);
  tarn__os_close(fd);
  if (*out_fd >= 0) return TARN_OK;
  *out_fd = 0;
  return tarn__text_fail(TARN_E_NOMEM, "%s:%d: no file descriptor",
                         tarn__cuda_vendor_of.type, id);
}

tarn_status tarn__cuda_memory_export(int id, uint64_t memory, int *out_fd) {
  int fd = -1;
  tarn__cuda_physical found;
  tarn__cuda_scope scope;
  cuda *d = NULL;
  *out_fd = 0;
  TARN__TRY(tarn__cuda_admit_for(id, TARN__CUDA_SHARING, &d));
  if (!tarn__cuda_physical_look(memory, &found))
    return refuse(id, memory, "no such memory");
  if (!found.is_shareable) return refuse(id, memory, "not shareable");
  TARN__TRY(tarn__cuda_answer(tarn__cuda_enter(d, true, &scope)));
  tarn__cuda_result error = tarn__cuda_driver_get()->MemExportToShareableHandle(
      &fd, memory, BY_FD, 0);
  tarn__cuda_leave(&scope);
  if (error == TARN__CU_SUCCESS) return take_descriptor(id, fd, out_fd);
  return tarn__cuda_answer(
      tarn__cuda_say(error, "cuMemExportToShareableHandle"));
}

// --- importing -------------------------------------------------------------

static tarn__cuda_result import(int fd, CUmemGenericAllocationHandle *out) {
  return tarn__cuda_driver_get()->MemImportFromShareableHandle(
      out, (void *)(intptr_t)fd, BY_FD);
}

static tarn__cuda_result try_map(CUdeviceptr address, size_t size,
                                 CUmemGenericAllocationHandle memory) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  tarn__cuda_result error = cu->MemMap(address, size, 0, memory, 0);
  if (error != TARN__CU_SUCCESS) return error;
  return cu->MemUnmap(address, size);
}

static tarn_status refuse_size(const cuda *d, int fd, size_t size) {
  return tarn__text_fail(TARN_E_INVALID,
                         "%s:%d: memory_import of %zu bytes: the memory of "
                         "file descriptor %d has another size",
                         tarn__cuda_vendor_of.type, d->id, size, fd);
}

static tarn_status check_descriptor(const cuda *d, int fd, size_t size) {
  off_t end = lseek(fd, 0, SEEK_END);
  return end >= 0 && (uintmax_t)end == size ? TARN_OK
                                            : refuse_size(d, fd, size);
}

// Finds out whether |memory| has |size| bytes.
static tarn_status check_mapped(const cuda *d, int fd, size_t size,
                                CUmemGenericAllocationHandle memory) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  CUdeviceptr address = 0;
  size_t more = 0;
  if (!tarn_size_add(size, d->granularity, &more)) more = size;
  tarn__cuda_result error = cu->MemAddressReserve(&address, more, 0, 0, 0);
  if (error != TARN__CU_SUCCESS)
    return tarn__cuda_answer(tarn__cuda_say(error, "cuMemAddressReserve"));
  error = try_map(address, size, memory);
  tarn__cuda_result beyond =
      error == TARN__CU_SUCCESS ? try_map(address, more, memory) : error;
  (void)cu->MemAddressFree(address, more);
  if (error == TARN__CU_SUCCESS && beyond == TARN__CU_ERROR_INVALID_VALUE)
    return TARN_OK;
  if (beyond == TARN__CU_SUCCESS || error == TARN__CU_ERROR_INVALID_VALUE)
    return refuse_size(d, fd, size);
  return tarn__cuda_answer(tarn__cuda_say(beyond, "cuMemMap"));
}

// A descriptor that is none of the driver's is refused in several words.
static tarn_status say_import(const cuda *d, int fd, tarn__cuda_result error) {
  char what[96];
  snprintf(what, sizeof what, "%s of file descriptor %d by %s:%d",
           tarn__cuda_name("cuMemImportFromShareableHandle"), fd,
           tarn__cuda_vendor_of.type, d->id);
  C_Status status = tarn__cuda_say(error, what);
  switch (error) {
    case TARN__CU_ERROR_NOT_PERMITTED:
    case TARN__CU_ERROR_NOT_SUPPORTED:
    case TARN__CU_ERROR_OPERATING_SYSTEM:
      return TARN_E_INVALID;
    default:
      return tarn__cuda_answer(status);
  }
}

static tarn_status take_import(cuda *d, int fd, size_t size,
                               uint64_t *out_memory) {
  CUmemGenericAllocationHandle memory = 0;
  tarn__cuda_result error = import(fd, &memory);
  if (error != TARN__CU_SUCCESS) return say_import(d, fd, error);
  tarn_status status = tarn__cuda_vendor_of.descriptors_have_sizes
                           ? check_descriptor(d, fd, size)
                           : check_mapped(d, fd, size, memory);
  if (status == TARN_OK && !tarn__cuda_physical_note(d, memory, size, true))
    status = tarn__text_fail(TARN_E_NOMEM, "%s:%d: no host memory",
                             tarn__cuda_vendor_of.type, d->id);
  if (status == TARN_OK)
    *out_memory = memory;
  else
    (void)tarn__cuda_driver_get()->MemRelease(memory);
  return status;
}

tarn_status tarn__cuda_memory_import(int id, int fd, size_t size,
                                     uint64_t *out_memory) {
  tarn__cuda_scope scope;
  cuda *d = NULL;
  *out_memory = 0;
  TARN__TRY(tarn__cuda_admit_for(id, TARN__CUDA_SHARING, &d));
  TARN__TRY(tarn__cuda_check_size(d, "memory_import", size));
  TARN__TRY(tarn__cuda_answer(tarn__cuda_enter(d, true, &scope)));
  tarn_status status = take_import(d, fd, size, out_memory);
  tarn__cuda_leave(&scope);
  return status;
}

// --- whether it works ------------------------------------------------------

static C_Status try_import(CUmemGenericAllocationHandle memory) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  CUmemGenericAllocationHandle imported = 0;
  int fd = -1;
  tarn__cuda_result error =
      cu->MemExportToShareableHandle(&fd, memory, BY_FD, 0);
  if (error != TARN__CU_SUCCESS)
    return tarn__cuda_say(error, "cuMemExportToShareableHandle");
  error = import(fd, &imported);
  tarn__os_close(fd);
  if (error != TARN__CU_SUCCESS)
    return tarn__cuda_say(error, "cuMemImportFromShareableHandle");
  return tarn__cuda_say(cu->MemRelease(imported), "cuMemRelease");
}

// Memory that can be exported may come in larger granules.
static C_Status try_sharing(cuda *d) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  struct CUmemAllocationProp_st properties = tarn__cuda_properties(d, true);
  CUmemGenericAllocationHandle memory = 0;
  size_t granule = 0;
  tarn__cuda_result error = cu->MemGetAllocationGranularity(
      &granule, &properties, TARN__CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (error != TARN__CU_SUCCESS)
    return tarn__cuda_say(error, "cuMemGetAllocationGranularity");
  if (granule < d->granularity) granule = d->granularity;
  error = cu->MemCreate(&memory, granule, &properties, 0);
  if (error != TARN__CU_SUCCESS) return tarn__cuda_say(error, "cuMemCreate");
  C_Status status = try_import(memory);
  (void)cu->MemRelease(memory);
  if (status == C_SUCCESS) d->granularity = granule;
  return status;
}

void tarn__cuda_share_open(cuda *d, const tarn__cuda_options *options) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  const unsigned descriptors =
      TARN__CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED;
  const char *why = NULL;
  if (!tarn__cuda_is_wanted(d, TARN__CUDA_SHARING, options)) return;
  if (!d->can[TARN__CUDA_RANGES]) {
    why = "it needs ranges";
  } else if (cu->MemExportToShareableHandle == NULL ||
             cu->MemImportFromShareableHandle == NULL) {
    why = "the driver is older than sharing";
  } else if (tarn__cuda_ask(d, descriptors) == 0) {
    why = "the device has no memory for file descriptors";
  } else if (try_sharing(d) != C_SUCCESS) {
    why = tarn__text_line();
  }
  tarn__cuda_settle(d, TARN__CUDA_SHARING, why);
}
