// Mapped memory of devices: each rank allocates a piece, all ranks map all.
//
//   continuous   one range    | piece of 0 | piece of 1 |(2: none)| piece of 3|
//                at each rank |===============================================|
//                owned by     | 0     |    1    |  2  |       3         | pad |
//
//   chunked      a range for  | part of 0 | pad |   | part of 1 | pad |   ...
//                each rank
//
// Memory comes in multiples of the granularity of ranges; blocks may be
// smaller. In continuous memory a piece begins at the rank's part, rounded up,
// so the first rows of a part may be in the piece of the rank before. A chunk
// is rounded up on its own, and its last bytes are unused.
//
// New memory of a driver may hold data of another process: its creator clears
// it before another rank gets the descriptor. Memory of cpu:0 is a new file of
// the system, which is zero.
#include "base/hostmem.h"
#include "base/status.h"
#include "whole/whole.h"

// --- the plan --------------------------------------------------------------

static size_t cut(const tarn_whole *whole, size_t rank) {
  return tarn__partition_cut(whole->offsets[rank], whole->piece);
}

static bool is_chunked(const tarn_whole *whole) {
  return whole->type == TARN_WHOLE_CHUNKED;
}

static size_t segment_size(const tarn_whole *whole, size_t rank) {
  if (is_chunked(whole)) {
    return tarn__partition_cut(tarn__whole_part_size(whole, rank),
                               whole->piece);
  }
  return cut(whole, rank + 1) - cut(whole, rank);
}

static tarn_status make_plan(tarn_whole *whole) {
  whole->segments = tarn__host_array(whole->ranks, sizeof *whole->segments);
  if (whole->segments == NULL) return TARN_E_NOMEM;
  for (size_t r = 0; r < whole->ranks; r++)
    whole->segments[r].size = segment_size(whole, r);
  return TARN_OK;
}

// --- addresses -------------------------------------------------------------

static tarn_status reserve(const tarn_whole *whole, size_t size,
                           tarn_addr *out_address) {
  if (size == 0) return TARN_OK;
  return tarn_range_reserve(whole->place.device, size, whole->piece,
                            out_address);
}

static tarn_status reserve_all(tarn_whole *whole) {
  if (!is_chunked(whole))
    TARN__TRY(reserve(whole, cut(whole, whole->ranks), &whole->base));
  for (size_t r = 0; r < whole->ranks; r++) {
    tarn__whole_segment *segment = &whole->segments[r];
    if (is_chunked(whole)) {
      TARN__TRY(reserve(whole, segment->size, &segment->address));
      whole->parts[r] = segment->address;
    } else {
      segment->address = whole->base + cut(whole, r);
    }
  }
  return TARN_OK;
}

// --- this rank's own -------------------------------------------------------

static tarn_status map(tarn_device *device, tarn__whole_segment *segment) {
  TARN__TRY(
      tarn_range_map(device, segment->address, segment->size, segment->memory));
  segment->mapped = true;
  return tarn_range_set_access(device, segment->address, segment->size, device,
                               TARN_RIGHTS_READ_WRITE);
}

static tarn_status clear(tarn_device *device,
                         const tarn__whole_segment *segment) {
  if (tarn_place_equal(tarn_place_on(device), TARN_HOST)) return TARN_OK;
  return tarn_device_set(device, segment->address, 0, segment->size, NULL);
}

static tarn_status export(tarn_whole *whole, const tarn__whole_segment *own) {
  int fd = -1;
  if (whole->ranks == 1) return TARN_OK;
  TARN__TRY(tarn_memory_export(whole->place.device, own->memory, &fd));
  whole->fd = fd;
  return TARN_OK;
}

static tarn_status make_own(tarn_whole *whole) {
  tarn_device *device = whole->place.device;
  tarn__whole_segment *own = &whole->segments[whole->rank];
  if (own->size == 0) return TARN_OK;
  TARN__TRY(tarn__whole_charge(whole, own->size));
  TARN__TRY(tarn_memory_create(device, own->size, TARN_MEMORY_SHAREABLE,
                               &own->memory));
  TARN__TRY(map(device, own));
  TARN__TRY(clear(device, own));
  return export(whole, own);
}

static tarn_status make(tarn_whole *whole) {
  TARN__TRY(make_plan(whole));
  TARN__TRY(reserve_all(whole));
  return make_own(whole);
}

// --- those of the others ---------------------------------------------------

static tarn_status take_in(tarn_whole *whole, size_t rank) {
  tarn_device *device = whole->place.device;
  tarn__whole_segment *segment = &whole->segments[rank];
  if (rank == whole->rank || segment->size == 0) return TARN_OK;
  TARN__TRY(tarn_memory_import(device, whole->fds[rank], segment->size,
                               &segment->memory));
  return map(device, segment);
}

static tarn_status meet(tarn_whole *whole) {
  for (size_t r = 0; r < whole->ranks; r++)
    TARN__TRY(take_in(whole, r));
  return TARN_OK;
}

// --- the end ---------------------------------------------------------------

// All of it is tried; |first| is the first that failed.
static void drop(tarn_device *device, tarn__whole_segment *segment,
                 tarn__failure *first) {
  if (segment->mapped) {
    tarn__failure_note(
        first, tarn_range_unmap(device, segment->address, segment->size));
  }
  if (segment->memory != 0) {
    tarn__failure_note(first, tarn_memory_destroy(device, segment->memory));
  }
  segment->mapped = false;
  segment->memory = 0;
}

static tarn_status leave(tarn_whole *whole) {
  tarn__failure first = {.status = TARN_OK};
  if (whole->segments == NULL) return TARN_OK;
  for (size_t r = 0; r < whole->ranks; r++) {
    if (r == whole->rank) continue;
    drop(whole->place.device, &whole->segments[r], &first);
  }
  return tarn__failure_tell(&first);
}

static void release(const tarn_whole *whole, tarn_addr address, size_t size,
                    tarn__failure *first) {
  if (address == 0) return;
  tarn__failure_note(first,
                     tarn_range_release(whole->place.device, address, size));
}

static void forget(tarn_whole *whole) {
  tarn__host_free_array(whole->segments, whole->ranks, sizeof *whole->segments);
  whole->segments = NULL;
}

static tarn_status end(tarn_whole *whole) {
  tarn__failure first = {.status = TARN_OK};
  if (whole->segments == NULL) return TARN_OK;
  drop(whole->place.device, &whole->segments[whole->rank], &first);
  for (size_t r = 0; is_chunked(whole) && r < whole->ranks; r++) {
    const tarn__whole_segment *segment = &whole->segments[r];
    release(whole, segment->address, segment->size, &first);
  }
  release(whole, whole->base, cut(whole, whole->ranks), &first);
  forget(whole);
  return tarn__failure_tell(&first);
}

const tarn__whole_backing tarn__backing_segments = {
    .make = make, .meet = meet, .leave = leave, .end = end, .forget = forget};
