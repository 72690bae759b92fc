// share.h - blocks of memory that several processes have.
//
// Each block of a pool made with TARN_POOL_SHAREABLE is a memory object of the
// device (tarn/range.h) of its own. A file descriptor stands for the object: a
// process sends it over a Unix socket to another, which gets a block with the
// same bytes from a pool of its own.
//
//   tarn_pool_alloc(pool, size, 0, stream, &block);
//   tarn_pool_export(&block, &fd);
//   ... send |size| and |fd| ... ──────►  ... receive them ...
//   close(fd);                            tarn_pool_import(pool, fd, size, &b);
//                                         close(fd);
//   ... both processes use the same bytes ...
//   tarn_pool_free(&block, stream);       tarn_pool_free(&b, stream);
//
// examples/share.c is a whole program.
//
// Memory. A block takes its size and the device's padding, rounded up to
// tarn_range_granularity, and begins where its object begins. It does not move,
// and when it is freed the pool drops the object: no other block ever gets its
// memory. The memory goes back to the device when no process has a block, nor
// a descriptor, of it any more. So a process that still has it never sees what
// somebody else writes, and a process that ends keeps nothing from the others.
//
// Order. Streams of one process know nothing of those of another: processes
// agree by other means on who writes, and when, after the streams are done.
//
// Trust. Who has the descriptor can write, at any time. What comes from another
// process is checked as any input.
//
// The pool. It needs a device with TARN_EXTENSION_SHARING, and is at the
// device's own memory, or at TARN_HOST. It has a strategy of its own, and keeps
// nothing idle. Limits, tags, statistics, events, on_full, tarn_block_use_on,
// tarn_block_of and tarn_free are as of any pool; an imported block counts as
// one that was taken, in |reserved_bytes| as well. tarn_pool_resize gives what
// the block has. A request with TARN_ALLOC_NO_GROW (tarn/alloc.h) is TARN_FULL,
// since each block is new memory. tarn_pool_reserve, exchange of the strategy,
// sleep, and debugging are TARN_E_UNSUPPORTED.
//
// Cost: a request, an import and a free are a few calls of the device each, and
//       a free waits for the streams that use the block. On cpu each block
//       keeps a descriptor open. Such pools are for few blocks, large or
//       long-lived; a pool over one (tarn_pool_options.memory) cuts it up.
#ifndef TARN_SHARE_H_
#define TARN_SHARE_H_

#include "tarn/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// A descriptor of the block's memory, the caller's to close. It may be sent to
// any number of processes, be closed before the block is freed, or after, and
// keeps the memory there meanwhile. It is closed on exec.
//
// Threads:            several may export one block at once. Whoever frees or
//                     resizes it meanwhile, or names a stream for it, gets
//                     TARN_E_STATE.
// TARN_FULL           the process has no descriptor left. |*out_fd| is 0 then,
//                     as after every failure, and not to be closed.
// TARN_E_INVALID      no block, or freed before: the text names what is there.
// TARN_E_UNSUPPORTED  the pool was made without TARN_POOL_SHAREABLE.
// TARN_E_STATE        another thread is freeing it; or as of tarn_pool_alloc.
// TARN_E_DEVICE       the driver failed; see tarn_last_error().
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_export(const tarn_block *block,
                                                      int *out_fd);

// A block of |pool| whose memory is what |fd| stands for, exported by another
// process or by this one. |size| is what the exporter asked for, or the size of
// its block: either is rounded up in the same way. It can be exported again.
//
// Lifetime:           give it back with tarn_pool_free, as any block. |fd|
//                     stays the caller's, and may be closed at once.
// TARN_FULL           the limit, addresses or descriptors are used up.
// TARN_E_INVALID      |fd| is negative, not open, not memory of such a device,
//                     or not of that size: the text names it and, as far as
//                     the driver tells, both sizes. Or |size| 0, or too large.
// TARN_E_UNSUPPORTED  the pool was made without TARN_POOL_SHAREABLE.
// Others as of tarn_pool_alloc.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_import(tarn_pool *pool, int fd,
                                                      size_t size,
                                                      tarn_block *out_block);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_SHARE_H_
