// segments.h - memory of a device that has no ranges: pieces of it that a
// strategy cuts up.
#ifndef TARN_POOL_SEGMENTS_H_
#define TARN_POOL_SEGMENTS_H_

#include "pool/chunk.h"
#include "pool/extents.h"
#include "pool/strategy.h"

typedef struct tarn__segment {
  struct tarn__segment *next;
  tarn__chunk chunk;
  const tarn__extents *zone;
  tarn__extent *start;  // of the zone: what begins where the segment does
  tarn__waits waits;    // while it is given back
} tarn__segment;

typedef struct tarn__segments {
  tarn__segment *first;
} tarn__segments;

// A segment as |growth| says, all of it open in |zone|, whose granule is the
// unit. The lock is let go meanwhile.
//
// TARN_FULL  the limit or the device is used up.
TARN_MUST_CHECK tarn_status tarn__segments_add(tarn__segments *segments,
                                               tarn__strategy *strategy,
                                               tarn__request *request,
                                               tarn__extents *zone,
                                               const tarn__growth *growth);

// Segments with nothing in them, until the pool holds |size| bytes. The lock is
// let go meanwhile. After a failure what came is there.
//
// TARN_FULL  the limit or the device is used up.
TARN_MUST_CHECK tarn_status tarn__segments_reserve(tarn__segments *segments,
                                                   tarn__strategy *strategy,
                                                   tarn__extents *zone,
                                                   size_t size);

// A device that gives out what it has given already must not be believed: two
// blocks would have the same bytes.
//
// TARN_E_DEVICE  some of |piece| is in |zone| already.
TARN_MUST_CHECK tarn_status
tarn__segments_check_piece(const tarn__extents *zone, const tarn__piece *piece);

// Gives segments of |zone| back of which nothing is taken, until the pool holds
// at most |target| bytes: as few bytes as possible beyond, and none of what it
// is to keep. |how|: TARN__TRIM_... bits. The lock is let go meanwhile.
tarn_status tarn__segments_trim(tarn__segments *segments,
                                tarn__strategy *strategy, tarn__extents *zone,
                                size_t target, unsigned how);

// Whether nothing is taken of the segment that |hole| is in.
bool tarn__segments_is_free(const tarn__extent *hole);

// Frees what is on the host.
void tarn__segments_deinit(tarn__segments *segments);

#endif  // TARN_POOL_SEGMENTS_H_
