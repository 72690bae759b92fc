// share.h - blocks that several processes map.
//
// Each block of a pool made with TARN_POOL_SHAREABLE is a memory object of its
// own (tarn/range.h). A file descriptor stands for the object: one process
// sends it over a Unix socket, and another imports it as a block with the same
// bytes into a pool of its own.
//
//   tarn_pool_alloc(pool, size, 0, stream, &block);
//   tarn_pool_export(&block, &fd);
//   ... send |size| and |fd| ... ──────►  ... receive them ...
//   close(fd);                            tarn_pool_import(pool, fd, size, &b);
//                                         close(fd);
//   ... both processes use the same bytes ...
//   tarn_pool_free(&block, stream);       tarn_pool_free(&b, stream);
//
// examples/share.c is a complete program.
//
// Memory. A block takes its size plus the device's padding, rounded up to
// tarn_range_granularity, and begins at the start of its object. When it is
// freed the pool drops the object and never reuses its memory for another
// block. The memory goes back to the device when no process has a block or a
// descriptor of it any more. So a process that keeps a block never sees the
// writes of other blocks, and a process that ends takes nothing away from the
// others.
//
// Order. Streams of different processes are not ordered. A process writes after
// its streams are done, and the processes agree on their turns by other means.
//
// Trust. A process with the descriptor can write at any time. Check data from
// other processes like any input.
//
// The pool. It requires a device with TARN_EXTENSION_SHARING and is at the
// device's own memory or at TARN_HOST. It has a strategy of its own and holds
// nothing idle. Limits, tags, statistics, events, on_full, tarn_block_use_on,
// tarn_block_of and tarn_free work as in any pool; an imported block counts
// like an allocated one, in |reserved_bytes| too. tarn_pool_resize offers the
// bytes that the block has already. TARN_ALLOC_NO_GROW (tarn/alloc.h) is
// TARN_FULL, since each block is new memory. tarn_pool_reserve,
// tarn_pool_set_strategy, sleep and debugging are TARN_E_UNSUPPORTED.
//
// Cost: an allocation, an import and a free are a few device calls each; a free
//       waits for the streams that use the block. On cpu each block keeps a
//       descriptor open. Such pools are for few, large or long-lived blocks; a
//       pool over one of them (tarn_pool_options.memory) cuts it up.
#ifndef TARN_SHARE_H_
#define TARN_SHARE_H_

#include "tarn/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// Returns a descriptor of the block's memory, which the caller closes. It may
// be sent to any number of processes and closed before or after the block is
// freed; while it is open the memory stays. It is closed on exec.
//
// Threads:            several may export one block at once. A thread that frees
//                     or resizes it meanwhile, or names a stream for it, gets
//                     TARN_E_STATE.
// TARN_FULL           the process has no descriptor left. |*out_fd| is 0 after
//                     each failure, and not to be closed.
// TARN_E_INVALID      no block, or freed before: the text names the memory
//                     there.
// TARN_E_UNSUPPORTED  the pool was made without TARN_POOL_SHAREABLE.
// TARN_E_STATE        another thread is freeing the block; or as
//                     for tarn_pool_alloc.
// TARN_E_DEVICE       the driver failed; see tarn_last_error().
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_export(const tarn_block *block,
                                                      int *out_fd);

// Maps the memory of |fd|, which this or another process exported, as a block
// of |pool|. |size| is the exporter's requested size or the size of its block:
// both are rounded up in the same way. The block can be exported again.
//
// Lifetime:           free the block with tarn_pool_free. |fd| stays the
//                     caller's and may be closed at once.
// TARN_FULL           the limit, addresses or descriptors are used up.
// TARN_E_INVALID      |fd| is negative, not open, not memory of such a device,
//                     or of another size: the text names it and, if the driver
//                     tells, both sizes. Or |size| is 0 or too large.
// TARN_E_UNSUPPORTED  the pool was made without TARN_POOL_SHAREABLE.
// Others as tarn_pool_alloc.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_import(tarn_pool *pool, int fd,
                                                      size_t size,
                                                      tarn_block *out_block);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_SHARE_H_
