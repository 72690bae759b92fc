// Chunked memory of devices without ranges: each rank allocates its part, and
// all ranks open all parts by handles.
//
//   rank 0   [ own ]       (import of 1)   (import of 2)
//   rank 1   (import of 0) [ own ]         (import of 2)
//
// A driver need not keep an allocation that others have opened. So an owner
// frees its part only when all others have closed it: after ranks have met, or,
// where they cannot meet any more, when no process holds the lease that was
// passed with the handle. The kernel ends the leases of ranks that die.
//
// A driver may share more than the requested bytes: a small part has pages of
// its own.
#include "base/hostmem.h"
#include "base/os_peer.h"
#include "base/status.h"
#include "whole/whole.h"

// The least that can always be exported (device_ext.h).
static const size_t LEAST = (size_t)64 << 10;

static size_t allocation_size(const tarn_whole *whole, size_t rank) {
  size_t size = tarn__whole_part_size(whole, rank);
  return size == 0 || size > LEAST ? size : LEAST;
}

// --- this rank's own -------------------------------------------------------

static tarn_status make_arrays(tarn_whole *whole) {
  whole->handles = tarn__host_array(whole->ranks, sizeof *whole->handles);
  whole->leases = tarn__os_no_descriptors(whole->ranks);
  bool both = whole->handles != NULL && whole->leases != NULL;
  return both ? TARN_OK : TARN_E_NOMEM;
}

static tarn_status export(tarn_whole *whole, size_t size) {
  if (whole->ranks == 1) return TARN_OK;
  if (!tarn__os_lease(&whole->lease, &whole->fd)) {
    return tarn__fail(TARN_E_IO, "whole: no file descriptors left for a lease");
  }
  return tarn_device_export(whole->place.device, whole->parts[whole->rank],
                            size, &whole->handles[whole->rank]);
}

static tarn_status make(tarn_whole *whole) {
  size_t size = allocation_size(whole, whole->rank);
  tarn_addr *own = &whole->parts[whole->rank];
  tarn_status status = make_arrays(whole);
  if (status != TARN_OK || size == 0) return status;
  TARN__TRY(tarn__whole_charge(whole, size));
  TARN__TRY(tarn_device_allocate(whole->place, size, own));
  TARN__TRY(tarn_device_set(whole->place.device, *own, 0, size, NULL));
  return export(whole, size);
}

// --- those of the others ---------------------------------------------------

static tarn_status take_in(tarn_whole *whole, size_t rank) {
  size_t size = allocation_size(whole, rank);
  if (rank == whole->rank || size == 0) return TARN_OK;
  whole->leases[rank] = whole->fds[rank];
  whole->fds[rank] = -1;
  return tarn_device_import(whole->place.device, &whole->handles[rank], size,
                            &whole->parts[rank]);
}

static tarn_status meet(tarn_whole *whole) {
  for (size_t r = 0; r < whole->ranks; r++)
    TARN__TRY(take_in(whole, r));
  return TARN_OK;
}

// --- the end ---------------------------------------------------------------

// All of it is tried; |first| is the first that failed.
static void let_go(tarn_whole *whole, size_t rank, tarn__failure *first) {
  tarn_addr *part = &whole->parts[rank];
  if (*part != 0) {
    tarn__failure_note(first,
                       tarn_device_import_close(whole->place.device, *part,
                                                allocation_size(whole, rank)));
  }
  *part = 0;
  tarn__os_close_all(&whole->leases[rank], 1);
}

static tarn_status leave(tarn_whole *whole) {
  tarn__failure first = {.status = TARN_OK};
  if (whole->leases == NULL) return TARN_OK;
  for (size_t r = 0; r < whole->ranks; r++)
    if (r != whole->rank) let_go(whole, r, &first);
  return tarn__failure_tell(&first);
}

static bool is_free(const tarn_whole *whole) {
  static const uint64_t NS = 1000000;
  uint64_t ms = tarn_comm_timeout_ms(whole->comm);
  if (whole->all_left || whole->lease < 0) return true;
  return tarn__os_lease_ended(whole->lease,
                              ms < UINT64_MAX / NS ? ms * NS : UINT64_MAX);
}

// While another process has it open, the memory and the device stay.
static tarn_status give_back(tarn_whole *whole) {
  size_t size = allocation_size(whole, whole->rank);
  tarn_addr address = whole->parts[whole->rank];
  whole->parts[whole->rank] = 0;
  if (address == 0) return TARN_OK;
  if (is_free(whole)) {
    return tarn_device_deallocate(whole->place, address, size);
  }
  return tarn__fail(TARN_E_TIMEOUT,
                    "whole: %zu bytes of %s cannot be freed: another rank "
                    "still has them open",
                    size, tarn_device_name(whole->place.device));
}

// A child of fork has inherited descriptors that keep the parts of others
// allocated.
static void forget(tarn_whole *whole) {
  tarn__os_close_all(&whole->lease, 1);
  if (whole->leases != NULL) tarn__os_close_all(whole->leases, whole->ranks);
  tarn__host_free_array(whole->handles, whole->ranks, sizeof *whole->handles);
  tarn__host_free_array(whole->leases, whole->ranks, sizeof *whole->leases);
  whole->handles = NULL;
  whole->leases = NULL;
}

static tarn_status end(tarn_whole *whole) {
  tarn_status status = give_back(whole);
  forget(whole);
  return status;
}

const tarn__whole_backing tarn__backing_handles = {
    .make = make, .meet = meet, .leave = leave, .end = end, .forget = forget};
