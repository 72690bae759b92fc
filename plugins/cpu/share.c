// Memory as callers have it, by handles, and other processes, by files.
#include <errno.h>
#include <inttypes.h>

#include "base/os_pages.h"
#include "base/status.h"
#include "cpu.h"
#include "mappings.h"

// By which the plug-in knows files of its own making.
static const char FILE_NAME[] = "tarn-cpu";

static tarn_status check_size(size_t size) {
  if (size != 0 && size % TARN__CPU_GRANULARITY == 0) return TARN_OK;
  return tarn__text_fail(TARN_E_INVALID, "%zu bytes: not a multiple of %d",
                         size, TARN__CPU_GRANULARITY);
}

// Takes |fd| over, or closes it.
static tarn_status enter(size_t size, int fd, uint64_t *out_memory) {
  tarn__cpu_lock_ranges();
  tarn__cpu_backing *backing = tarn__cpu_backing_make(size, fd);
  uint64_t handle = backing != NULL ? backing->node.start : 0;
  tarn__cpu_unlock_ranges();
  if (handle == 0) {
    if (fd >= 0) tarn__os_close(fd);
    return tarn__text_fail(TARN_E_NOMEM, "no memory to note a handle");
  }
  *out_memory = handle;
  return TARN_OK;
}

// A file whose memory is all committed, on huge pages if it is large enough and
// the kernel has any.
static tarn_status make_file(size_t size, int *out_fd) {
  size_t huge = 0;
  int fd = tarn__os_memory_file(FILE_NAME, size);
  if (fd < 0) return tarn__cpu_refused("a file in memory", size);
  if (!tarn__os_commit_file(fd, 0, size, &huge)) {
    tarn_status status = tarn__cpu_refused("shareable memory", size);
    tarn__os_close(fd);
    return status;
  }
  *out_fd = fd;
  return TARN_OK;
}

tarn_status tarn__cpu_memory_create(int id, size_t size, uint32_t flags,
                                    uint64_t *out_memory) {
  *out_memory = 0;
  tarn_status status = tarn__cpu_check_id(id);
  if (status == TARN_OK) status = check_size(size);
  if (status != TARN_OK) return status;
  if ((flags & ~TARN_EXT_MEMORY_SHAREABLE) != 0) {
    return tarn__text_fail(TARN_E_INVALID, "unknown flags 0x%x",
                           (unsigned)flags);
  }
  int fd = -1;
  if (flags != 0) status = make_file(size, &fd);
  return status == TARN_OK ? enter(size, fd, out_memory) : status;
}

static tarn_status no_memory(uint64_t memory) {
  return tarn__text_fail(TARN_E_INVALID, "0x%" PRIx64 " is no memory", memory);
}

tarn_status tarn__cpu_memory_destroy(int id, uint64_t memory) {
  TARN__TRY(tarn__cpu_check_id(id));
  tarn__cpu_lock_ranges();
  tarn__cpu_backing *backing = tarn__cpu_backing_find(memory);
  if (backing != NULL) tarn__cpu_mapping_drop(backing);
  tarn__cpu_unlock_ranges();
  return backing != NULL ? TARN_OK : no_memory(memory);
}

static tarn_status export_file(uint64_t memory, int *out_fd) {
  const tarn__cpu_backing *backing = tarn__cpu_backing_find(memory);
  if (backing == NULL) return no_memory(memory);
  if (backing->fd < 0) {
    return tarn__text_fail(TARN_E_INVALID, "the memory is not shareable");
  }
  int fd = tarn__os_duplicate(backing->fd);
  if (fd < 0) return tarn__cpu_refused("a descriptor", backing->size);
  *out_fd = fd;
  return TARN_OK;
}

tarn_status tarn__cpu_memory_export(int id, uint64_t memory, int *out_fd) {
  *out_fd = 0;
  TARN__TRY(tarn__cpu_check_id(id));
  tarn__cpu_lock_ranges();
  tarn_status status = export_file(memory, out_fd);
  tarn__cpu_unlock_ranges();
  return status;
}

tarn_status tarn__cpu_memory_import(int id, int fd, size_t size,
                                    uint64_t *out_memory) {
  *out_memory = 0;
  TARN__TRY(tarn__cpu_check_id(id));
  TARN__TRY(check_size(size));
  // Read from the duplicate: |fd| may become another file during the call.
  int own = tarn__os_duplicate(fd);
  if (own < 0 && errno != EBADF) return tarn__cpu_refused("a descriptor", size);
  size_t there = tarn__os_memory_file_size(own, FILE_NAME);
  if (there == size) return enter(size, own, out_memory);
  if (own >= 0) tarn__os_close(own);
  if (there == 0) {
    return tarn__text_fail(TARN_E_INVALID,
                           "descriptor %d is not memory of this device", fd);
  }
  return tarn__text_fail(TARN_E_INVALID,
                         "descriptor %d is memory of %zu bytes, not of %zu", fd,
                         there, size);
}
