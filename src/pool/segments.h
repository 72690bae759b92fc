// segments.h - memory of a device that has no ranges: pieces of it that a
// strategy cuts up.
#ifndef TARN_POOL_SEGMENTS_H_
#define TARN_POOL_SEGMENTS_H_

#include "pool/extents.h"
#include "pool/strategy.h"

// --- chunk ------------------------------------------------------------------
//
// Memory of the device that a strategy holds to cut it up, or to
// hand it on.

typedef struct tarn__pool_chunk {
  tarn_addr base;  // what the device gave
  size_t base_size;
  tarn_addr address;  // what can be used of it
  size_t size;
} tarn__pool_chunk;

// How much is asked for.
typedef struct tarn__pool_growth {
  size_t first;  // by a strategy that has asked for nothing yet, and after; 0:
  size_t later;  // |own|, or as much as the device can give now
  size_t own;
  size_t least;  // with which the request can be served
  size_t unit;   // the address is a multiple of it; sizes above |least| are too
  bool halves;   // what is refused is asked for by half, and so on; else the
                 // least is asked for
} tarn__pool_growth;

// What suits a strategy that holds |held| bytes: an eighth of that, so that
// there are few calls and little is held in vain. From 1 MiB up to |most|, a
// power of two.
size_t tarn__chunk_growth(size_t held, size_t most);

// A piece to be cut up: as much as is wanted, or less, if the device or the
// limit refuses that. The lock is released meanwhile.
//
// TARN_FULL  the limit or the device is used up.
TARN_MUST_CHECK tarn_status tarn__chunk_grow(tarn__pool_strategy *strategy,
                                             tarn__pool_request *request,
                                             const tarn__pool_growth *growth,
                                             tarn__pool_piece **out_piece);

// Makes a piece that the device gave a chunk: it is held from then on.
tarn__pool_chunk tarn__chunk_adopt(tarn__pool_strategy *strategy,
                                   tarn__pool_piece *piece);

// Gives it back in two steps. From the first on the lock is released, for
// waiting until no stream uses it; the second takes the lock again. The chunk
// is gone in any case; the first failure is returned, |waited| before the
// device's.
void tarn__chunk_begin_give(tarn__pool_strategy *strategy,
                            const tarn__pool_chunk *chunk);
tarn_status tarn__chunk_end_give(tarn__pool_strategy *strategy,
                                 const tarn__pool_chunk *chunk,
                                 tarn_status waited);

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
// unit. The lock is released meanwhile.
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
// is to keep. |how|: TARN__TRIM_... bits. The lock is released meanwhile.
tarn_status tarn__segments_trim(tarn__pool_segments *segments,
                                tarn__pool_strategy *strategy,
                                tarn__pool_extents *zone, size_t target,
                                unsigned how);

// Whether nothing is taken of the segment that |hole| is in.
bool tarn__segments_is_free(const tarn__pool_extent *hole);

// Frees the host memory.
void tarn__segments_deinit(tarn__pool_segments *segments);

// --- stock ------------------------------------------------------------------
//
// Memory in the sizes that a device names, for strategies that take
// it in other sizes.
//
//   segments of the device   [ init            ] [ realloc ] [ realloc ]
//   what a strategy takes    [ 4K | 64K | open ] [ 8K | .. ] [ open    ]
//
// Where a plug-in says how much a pool is to ask for, strategies that ask for
// memory block by block are served out of segments of those sizes. And what a
// pool is to keep (tarn_pool_reserve) is a segment, too, whatever sizes come
// out of it.

typedef struct tarn__pool_stock {
  bool serves;  // the device names sizes: all memory comes from here
  bool open;    // it may have segments; else all below is empty
  tarn__pool_extents zone;
  tarn__pool_segments segments;
} tarn__pool_stock;

TARN_MUST_CHECK tarn_status tarn__stock_init(tarn__pool_stock *stock,
                                             const tarn_pool *pool);
void tarn__stock_deinit(tarn__pool_stock *stock);

// |size| bytes, aligned as |request| asks. The lock is released meanwhile.
// |*out_serial| is whose they were.
//
// TARN_FULL  the limit or the device is used up.
TARN_MUST_CHECK tarn_status tarn__stock_take(tarn__pool_stock *stock,
                                             tarn__pool_strategy *strategy,
                                             tarn__pool_request *request,
                                             size_t size,
                                             tarn__pool_extent **out,
                                             uint64_t *out_serial);

// The same out of what is there; the lock is kept. NULL: there is no room.
tarn__pool_extent *tarn__stock_find(tarn__pool_stock *stock,
                                    const tarn__pool_request *request,
                                    size_t size, uint64_t *out_serial);

// Room on the host to take back what the stream with |serial| may still use.
// False: none.
TARN_MUST_CHECK bool tarn__stock_expect(tarn__pool_stock *stock,
                                        uint64_t serial);

// Takes bytes back; the stream with |serial| may still use them: there is room
// for that, or it is 0, or whose they were just now. Returns what they are part
// of now.
tarn__pool_extent *tarn__stock_give(tarn__pool_stock *stock,
                                    tarn__pool_extent *extent, uint64_t serial);

// Gives segments of which nothing is taken back to the device, as
// tarn__segments_trim does.
tarn_status tarn__stock_trim(tarn__pool_stock *stock,
                             tarn__pool_strategy *strategy, size_t target,
                             unsigned how);

// Adds segments until the pool holds |size| bytes. the lock is released
// meanwhile. After a failure what came is there.
//
// TARN_FULL  the limit or the device is used up.
TARN_MUST_CHECK tarn_status tarn__stock_reserve(tarn__pool_stock *stock,
                                                tarn__pool_strategy *strategy,
                                                size_t size);

// Tells of each segment.
void tarn__stock_visit(const tarn__pool_stock *stock,
                       tarn__pool_memory_fn *visit, void *context);

// Walks all; |*out_held| is what the device has given.
TARN_MUST_CHECK tarn_status tarn__stock_check(const tarn__pool_stock *stock,
                                              size_t *out_held);

#endif  // TARN_POOL_SEGMENTS_H_
