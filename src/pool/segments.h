// segments.h - memory of a device that has no ranges: pieces of it that a
// strategy cuts up.
#ifndef TARN_POOL_SEGMENTS_H_
#define TARN_POOL_SEGMENTS_H_

#include "pool/chunk.h"
#include "pool/extents.h"
#include "pool/strategy.h"

typedef struct tarn__pool_segment {
  struct tarn__pool_segment *next;
  tarn__pool_chunk chunk;
  const tarn__pool_extents *zone;
  tarn__pool_extent *start;  // of the zone: what begins where the segment does
  tarn__pool_waits waits;    // while it is given back
} tarn__pool_segment;

typedef struct tarn__pool_segments {
  tarn__pool_segment *first;
} tarn__pool_segments;

// A segment as |growth| says, all of it open in |zone|, whose granule is the
// unit. The lock is let go meanwhile.
//
// TARN_FULL  the limit or the device is used up.
TARN_MUST_CHECK tarn_status tarn__segments_add(tarn__pool_segments *segments,
                                               tarn__pool_strategy *strategy,
                                               tarn__pool_request *request,
                                               tarn__pool_extents *zone,
                                               const tarn__pool_growth *growth);

// Segments with nothing in them, until the pool holds |size| bytes. The lock is
// let go meanwhile. After a failure what came is there.
//
// TARN_FULL  the limit or the device is used up.
TARN_MUST_CHECK tarn_status tarn__segments_reserve(
    tarn__pool_segments *segments, tarn__pool_strategy *strategy,
    tarn__pool_extents *zone, size_t size);

// A device that gives out what it has given already must not be believed: two
// blocks would have the same bytes.
//
// TARN_E_DEVICE  some of |piece| is in |zone| already.
TARN_MUST_CHECK tarn_status tarn__segments_check_piece(
    const tarn__pool_extents *zone, const tarn__pool_piece *piece);

// Gives segments of |zone| back of which nothing is taken, until the pool holds
// at most |target| bytes: as few bytes as possible beyond, and none of what it
// is to keep. |how|: TARN__TRIM_... bits. The lock is let go meanwhile.
tarn_status tarn__segments_trim(tarn__pool_segments *segments,
                                tarn__pool_strategy *strategy,
                                tarn__pool_extents *zone, size_t target,
                                unsigned how);

// Whether nothing is taken of the segment that |hole| is in.
bool tarn__segments_is_free(const tarn__pool_extent *hole);

// Frees what is on the host.
void tarn__segments_deinit(tarn__pool_segments *segments);

#endif  // TARN_POOL_SEGMENTS_H_
