// segments.h - memory of a device without ranges: large allocations that a
// strategy cuts up.
#ifndef TARN_POOL_SEGMENTS_H_
#define TARN_POOL_SEGMENTS_H_

#include "pool/extents.h"
#include "pool/strategy.h"

// --- chunk ------------------------------------------------------------------
//
// Memory of the device that a strategy holds to cut it up, or to hand it on.

typedef struct tarn__pool_chunk {
  struct tarn__pool_chunk *next;  // in a list of its holder's
  tarn_addr base;                 // what the device gave
  size_t base_size;
  tarn_addr address;  // its usable bytes
  size_t size;
  tarn__pool_waits waits;  // streams to wait for before it is given back
} tarn__pool_chunk;

// How much is asked for.
typedef struct tarn__pool_growth {
  size_t first;  // by a strategy that has asked for nothing yet, and after; 0:
  size_t later;  // |own|, or as much as the device can give now
  size_t own;
  size_t least;  // with which the request can be served
  size_t unit;   // the address is a multiple of it; sizes above |least| are too
  bool halves;   // a refused size is halved, and so on; else the
                 // least is asked for
} tarn__pool_growth;

// What suits a strategy that holds |held| bytes: an eighth of that, so that
// there are few calls and little is held in vain. From 1 MiB up to |most|, a
// power of two.
size_t tarn__chunk_growth(size_t held, size_t most);

// A piece to cut up: of the wanted size, or less if the device or the limit
// refuses that. Releases the lock.
//
// TARN_FULL  the limit or the device is used up.
TARN_MUST_CHECK tarn_status tarn__chunk_grow(tarn__pool_strategy *strategy,
                                             tarn__pool_request *request,
                                             const tarn__pool_growth *growth,
                                             tarn__pool_piece **out_piece);

// Makes a piece that the device gave a chunk: it is held from then on.
tarn__pool_chunk tarn__chunk_adopt(tarn__pool_strategy *strategy,
                                   tarn__pool_piece *piece);

// Gives the chunks of a list back, each when its streams have finished with it.
// Releases the lock. The chunks are gone in any case; returns the first
// failure.
tarn_status tarn__chunks_give(tarn__pool_strategy *strategy,
                              const tarn__pool_chunk *chunks);

typedef struct tarn__pool_segments {
  tarn__pool_chunk *first;  // each the first member of a segment
} tarn__pool_segments;

// Adds a segment of |own| bytes, or of the size that the device names, all of
// it open in |zone|; if that is refused, of |least| bytes. Releases the lock.
//
// TARN_FULL  the limit or the device is used up.
TARN_MUST_CHECK tarn_status tarn__segments_add(tarn__pool_segments *segments,
                                               tarn__pool_strategy *strategy,
                                               tarn__pool_request *request,
                                               tarn__pool_extents *zone,
                                               size_t own, size_t least);

// Adds empty segments until the pool holds |size| bytes. Releases the lock.
// After a failure the segments that were added stay.
//
// TARN_FULL  the limit or the device is used up.
TARN_MUST_CHECK tarn_status tarn__segments_reserve(
    tarn__pool_segments *segments, tarn__pool_strategy *strategy,
    tarn__pool_extents *zone, size_t size);

// An allocation that overlaps an earlier one is refused: two blocks would have
// the same bytes.
//
// TARN_E_DEVICE  some of |piece| is in |zone| already.
TARN_MUST_CHECK tarn_status tarn__segments_check_piece(
    const tarn__pool_extents *zone, const tarn__pool_piece *piece);

// Gives empty segments of |zone| back until the pool holds at most |target|
// bytes: as few bytes as possible beyond, and none that the pool reserves.
// |how|: TARN__TRIM_... bits. Releases the lock.
tarn_status tarn__segments_trim(tarn__pool_segments *segments,
                                tarn__pool_strategy *strategy,
                                tarn__pool_extents *zone, size_t target,
                                unsigned how);

// Whether nothing is taken of the segment that |hole| is in.
bool tarn__segments_is_free(const tarn__pool_extent *hole);

// Adds the holes of |zone| to a survey.
void tarn__extents_survey(const tarn__pool_extents *zone,
                          tarn__pool_survey *out);

// Tells of each segment.
void tarn__segments_visit(const tarn__pool_segments *segments,
                          tarn__pool_memory_fn *visit, void *context);

// Frees the host memory.
void tarn__segments_deinit(tarn__pool_segments *segments);

// --- stock ------------------------------------------------------------------
//
// Memory in the sizes that a device names, for strategies that take it in other
// sizes.
//
//   segments of the device   [ init            ] [ realloc ] [ realloc ]
//   what a strategy takes    [ 4K | 64K | open ] [ 8K | .. ] [ open    ]
//
// Where a plug-in names the sizes of pool allocations, strategies that ask for
// memory block by block are served from segments of those sizes. Memory that
// the pool reserves (tarn_pool_reserve) is a segment, too, for blocks of any
// size.

typedef struct tarn__pool_stock {
  bool serves;  // the device names sizes: all memory is in these segments
  bool open;    // it may have segments; else all below is empty
  tarn__pool_extents zone;
  tarn__pool_segments segments;
} tarn__pool_stock;

TARN_MUST_CHECK tarn_status tarn__stock_init(tarn__pool_stock *stock,
                                             const tarn_pool *pool);
void tarn__stock_deinit(tarn__pool_stock *stock);

// Takes |size| bytes, aligned as |request| asks. Releases the lock.
// |*out_serial|: the stream that used them last.
//
// TARN_FULL  the limit or the device is used up.
TARN_MUST_CHECK tarn_status tarn__stock_take(tarn__pool_stock *stock,
                                             tarn__pool_strategy *strategy,
                                             tarn__pool_request *request,
                                             size_t size,
                                             tarn__pool_extent **out,
                                             uint64_t *out_serial);

// The same from the segments that are there; the lock is kept. NULL: there is
// no room.
tarn__pool_extent *tarn__stock_find(tarn__pool_stock *stock,
                                    const tarn__pool_request *request,
                                    size_t size, uint64_t *out_serial);

// Adds segments until the pool holds |size| bytes. Releases the lock. After a
// failure the segments that were added stay.
//
// TARN_FULL  the limit or the device is used up.
TARN_MUST_CHECK tarn_status tarn__stock_reserve(tarn__pool_stock *stock,
                                                tarn__pool_strategy *strategy,
                                                size_t size);

// Walks all.
TARN_MUST_CHECK tarn_status tarn__stock_check(const tarn__pool_stock *stock);

#endif  // TARN_POOL_SEGMENTS_H_
