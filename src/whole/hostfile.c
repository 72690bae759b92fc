// Mapped memory of the host: rank 0 creates one file in memory, and all ranks
// map it. A new file has a size but no memory. Each rank commits its own part,
// on the processor where it runs, before any rank gets an address.
//
//   file       |     unit    |     unit    |     unit    |     unit    |  |
//   parts      |   of rank 0       |   of rank 1       |   of rank 2      |
//   committed  |   by rank 0               |   by rank 1 | by rank 2      |
//
// A unit (os_pages.h) is committed by the rank that owns its first byte, and
// that rank is charged for it.
#include <stddef.h>

#include "base/os_pages.h"
#include "base/status.h"
#include "whole/whole.h"

// By which ranks know files of this making.
static const char FILE_NAME[] = "tarn-whole";

// --- the file --------------------------------------------------------------

// The bytes of the file that rank |rank| commits.
static size_t made_by(const tarn_whole *whole, size_t rank) {
  size_t begin = tarn__partition_cut(whole->offsets[rank], TARN__OS_HUGE);
  size_t end = tarn__partition_cut(whole->offsets[rank + 1], TARN__OS_HUGE);
  return tarn__lesser(end, whole->mapping_size) -
         tarn__lesser(begin, whole->mapping_size);
}

static tarn_status make(tarn_whole *whole) {
  whole->mapping_size = tarn__partition_cut(whole->size, whole->piece);
  if (whole->size == 0) return TARN_OK;
  tarn_status status = tarn__whole_charge(whole, made_by(whole, whole->rank));
  if (status != TARN_OK || whole->rank != 0) return status;
  whole->fd = tarn__os_memory_file(FILE_NAME, whole->mapping_size);
  if (whole->fd >= 0) return TARN_OK;
  return tarn__whole_refuse("whole: a file in memory", whole->mapping_size);
}

// --- mapping ---------------------------------------------------------------

static tarn_status find_file(const tarn_whole *whole, int *out_fd) {
  *out_fd = whole->rank == 0 ? whole->fd : whole->fds[0];
  if (tarn__os_is_memory_file(*out_fd, FILE_NAME, whole->mapping_size)) {
    return TARN_OK;
  }
  return tarn__fail(
      TARN_E_CORRUPT,
      "whole: the descriptor of rank 0 is not a memory file of %zu bytes",
      whole->mapping_size);
}

static tarn_status commit(const tarn_whole *whole, int fd) {
  size_t huge = 0;
  size_t size = made_by(whole, whole->rank);
  size_t begin =
      tarn__partition_cut(whole->offsets[whole->rank], TARN__OS_HUGE);
  if (size == 0) return TARN_OK;
  if (tarn__os_commit_file(fd, begin, size, &huge)) return TARN_OK;
  return tarn__whole_refuse("whole: memory", size);
}

static tarn_status meet(tarn_whole *whole) {
  int fd = -1;
  if (whole->size == 0) return TARN_OK;
  TARN__TRY(find_file(whole, &fd));
  whole->mapping = tarn__os_map_shared(fd, whole->mapping_size);
  if (whole->mapping == NULL)
    return tarn__whole_refuse("whole: addresses", whole->mapping_size);
  whole->base = (tarn_addr)(uintptr_t)whole->mapping;
  return commit(whole, fd);
}

// A driver that registers memory touches all of it.
static tarn_status settle(tarn_whole *whole) {
  tarn_device *device = whole->place.device;
  if (device == NULL || whole->mapping == NULL) return TARN_OK;
  tarn_status status =
      tarn_device_host_register(device, whole->mapping, whole->mapping_size);
  whole->registered = status == TARN_OK;
  return status;
}

// --- the end ---------------------------------------------------------------

static tarn_status leave(tarn_whole *whole) {
  tarn_status status = TARN_OK;
  if (whole->registered) {
    status = tarn_device_host_unregister(whole->place.device, whole->mapping);
  }
  // Memory that the driver still has registered must stay mapped.
  if (whole->mapping != NULL && status == TARN_OK) {
    tarn__os_unmap(whole->mapping, whole->mapping_size);
  }
  whole->registered = false;
  whole->mapping = NULL;
  return status;
}

// A child of fork keeps the mapping, as it keeps all memory of devices.
const tarn__whole_backing tarn__backing_hostfile = {
    .make = make, .meet = meet, .settle = settle, .leave = leave};
