// stock.h - memory in the sizes that a device names, for strategies that take
// it in other sizes.
//
//   segments of the device   [ init            ] [ realloc ] [ realloc ]
//   what a strategy takes    [ 4K | 64K | open ] [ 8K | .. ] [ open    ]
//
// Where a plug-in says how much a pool is to ask for, strategies that ask for
// memory block by block are served out of segments of those sizes. And what a
// pool is to keep (tarn_pool_reserve) is a segment, too, whatever sizes come
// out of it.
#ifndef TARN_POOL_STOCK_H_
#define TARN_POOL_STOCK_H_

#include "pool/segments.h"

typedef struct tarn__pool_stock {
  bool serves;  // the device names sizes: all memory comes from here
  bool open;    // it may have segments; else all below is empty
  tarn__pool_extents zone;
  tarn__pool_segments segments;
} tarn__pool_stock;

TARN_MUST_CHECK tarn_status tarn__stock_init(tarn__pool_stock *stock,
                                             const tarn_pool *pool);
void tarn__stock_deinit(tarn__pool_stock *stock);

// |size| bytes, aligned as |request| asks. The lock is let go meanwhile.
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
// False: there is none.
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

// Adds segments until the pool holds |size| bytes. The lock is let go
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

#endif  // TARN_POOL_STOCK_H_
