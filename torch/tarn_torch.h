// tarn_torch.h - PyTorch's pluggable allocator over Tarn's pools.
//
// libtarn_torch.so serves torch.cuda from the pool of each device. It contains
// neither Python nor PyTorch. docs/torch.md shows how it is used:
//
//   torch = CUDAPluggableAllocator("libtarn_torch.so", "tarn_torch_alloc",
//                                  "tarn_torch_free")
//   allocator = torch.allocator()
//   allocator.set_record_stream_fn(address of tarn_torch_record_stream)
//   ...
//   change_current_allocator(torch)
//
// Device N is "cuda:N"; the environment variable TARN_TORCH_DEVICE names
// another type than "cuda" ("hip", or "sim" for tests). It is opened at its
// first use, and stays open. Its pool is the shared pool of the device's own
// memory (tarn_pool_of): TARN_POOL chooses the strategy, and other parts of the
// program that use Tarn see the same pool. Allocations during the capture of a
// graph come from pools of their own: see "Captured graphs" below.
//
// Streams are cudaStream_t, NULL the default stream. Each is adopted once and
// then kept, so it must live as long as the program, as PyTorch's do. Beyond
// 256 streams of a device further ones are adopted anew in each call; for these
// tarn_torch_record_stream covers only the work queued before it.
//
// Threads: all functions from any thread at any time, except tarn_torch_close.
// Fork:    in a child, devices that the parent has opened answer TARN_E_STATE.
// Errors:  functions that return a tarn_status leave a text for
//          tarn_torch_last_error, and set outputs to zero. No exception leaves
//          them. Functions that PyTorch calls have no status: what they do
//          instead is said there.
#ifndef TARN_TORCH_H_
#define TARN_TORCH_H_

#include "tarn/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TARN_TORCH_API __attribute__((visibility("default")))

// ---------------------------------------------------------------------------
// Allocation: the two functions that CUDAPluggableAllocator is given by name
// ---------------------------------------------------------------------------

// Allocates |size| bytes of device |device| for use on |stream|, under the tag
// that the thread has pushed. The host does not wait for work of streams,
// except as tarn_pool_alloc does. NULL for a size of 0, which PyTorch requests
// for empty tensors and never frees.
//
// Cost:   that of tarn_pool_alloc, and a look-up of the stream.
// Throws: std::runtime_error with Tarn's text, in Python a RuntimeError, where
//         there is no room or the device fails: PyTorch does not look for NULL
//         here. torch.OutOfMemoryError cannot be made without its library.
TARN_TORCH_API void *tarn_torch_alloc(size_t size, int device, void *stream);

// The same for torch.cuda.MemPool: NULL where there is no room, upon which
// PyTorch frees its idle memory and tries again, or the device fails.
TARN_TORCH_API void *tarn_torch_alloc_or_null(size_t size, int device,
                                              void *stream);

// Frees a block of either function, whose last use was queued on |stream|. The
// host does not wait. |ptr| NULL does nothing, and |size| is ignored, since
// PyTorch may pass another than at the request. A free that fails, as that of
// an unknown pointer, changes nothing; the first in the process writes a line
// to stderr, since nothing can be returned.
TARN_TORCH_API void tarn_torch_free(void *ptr, size_t size, int device,
                                    void *stream);

// ---------------------------------------------------------------------------
// Hooks: functions that are set by address at CUDAPluggableAllocator.allocator
// ---------------------------------------------------------------------------

// set_record_stream_fn: Tensor.record_stream. Declares that work on |stream|
// uses the block that begins at |ptr| (tarn_block_use_on). Without it the
// memory is reused while another stream is at work in it. A pointer that is not
// a block's is reported as by tarn_torch_free.
TARN_TORCH_API void tarn_torch_record_stream(void *ptr, void *stream);

// set_reset_fn: torch.cuda.empty_cache. Idle memory of every open device goes
// back to it (tarn_pool_trim). The host waits for streams that may still use
// the memory.
TARN_TORCH_API void tarn_torch_reset(void);

// set_base_alloc_fn: the allocation of the driver that |ptr| lies in, which is
// what processes share: its address is returned, its size is in |*out_size|
// (may be NULL). Where the driver does not know it, or knows pieces of the
// block since that is in a range, the block; where no device knows, |ptr| and
// 0.
TARN_TORCH_API void *tarn_torch_base_alloc(void *ptr, size_t *out_size);

// set_memory_fraction_fn: torch.cuda.set_per_process_memory_fraction. Limits
// the device's pool to |fraction|, above 0 and at most 1, of the device's
// memory (tarn_pool_limit). Failures are reported as by tarn_torch_free.
TARN_TORCH_API void tarn_torch_memory_fraction(double fraction, int device);

// ---------------------------------------------------------------------------
// The rest is for programs, in Python through ctypes
// ---------------------------------------------------------------------------

// One line about the function of this header that has just failed on this
// thread; "" before the first.
//
// Lifetime: until the next failure on the same thread.
TARN_TORCH_API const char *tarn_torch_last_error(void);

// The pool of device |device|, for all else that Tarn's headers offer. Opens
// the device.
//
// TARN_E_INVALID, TARN_E_IO, TARN_E_UNSUPPORTED, TARN_E_DEVICE
//   as tarn_device_open and tarn_pool_of; TARN_E_INVALID also for NULL.
TARN_TORCH_API TARN_MUST_CHECK tarn_status
tarn_torch_pool(int device, tarn_pool **out_pool);

// What is held of a device, in bytes. Pools of captured graphs are included in
// |reserved|, |live| and |blocks|.
typedef struct tarn_torch_stats {
  uint64_t struct_size;    // set by the caller; 0: of the first version
  uint64_t reserved;       // of the device, idle memory included
  uint64_t reserved_peak;  // of the device's pool alone, as the next three
  uint64_t live;           // requested and not freed
  uint64_t live_peak;
  uint64_t asleep;  // that sleeping blocks have given back
  uint64_t blocks;  // live ones
  uint64_t allocs;  // requests served, of the device's pool alone as the rest
  uint64_t frees;
  uint64_t failures;       // requests refused
  uint64_t device_allocs;  // calls of the driver for memory: they stay the same
                           // in steps that repeat
} tarn_torch_stats;

// Cost:           as tarn_pool_query, for each pool.
// TARN_E_INVALID  also: |out_stats| is NULL, or its struct_size too small.
// Others as tarn_torch_pool.
TARN_TORCH_API TARN_MUST_CHECK tarn_status
tarn_torch_query(int device, tarn_torch_stats *out_stats);

// Sets the peaks to the present values (tarn_pool_reset_peaks).
//
// Errors: as tarn_torch_pool.
TARN_TORCH_API tarn_status tarn_torch_reset_peaks(int device);

// Writes a snapshot of the pool to the file at |path|, for `tarn why` and
// `tarn view` (tarn_pool_snapshot, which says what %p, %n and %d become).
//
// Errors: as tarn_torch_pool and tarn_pool_snapshot.
TARN_TORCH_API TARN_MUST_CHECK tarn_status
tarn_torch_snapshot(int device, const char *path);

// From now on, what this thread allocates has the tag |name|, until the
// matching tarn_torch_tag_pop. Autograd allocates on threads of its own: in a
// backward pass, tags are those of the thread that calls backward only for what
// that thread does.
//
// TARN_E_INVALID  |name| is NULL or empty, or there are too many tags.
// TARN_E_STATE    32 tags are pushed on this thread.
TARN_TORCH_API TARN_MUST_CHECK tarn_status
tarn_torch_tag_push(const char *name);

// TARN_E_STATE  no tag is pushed on this thread.
TARN_TORCH_API tarn_status tarn_torch_tag_pop(void);

// Puts all live blocks with the tag |name| to sleep: their memory goes back to
// the device, and their addresses stay. |save| not 0: the contents are kept in
// host memory until tarn_torch_wake; 0: they are lost. Work on the blocks must
// be over: torch.cuda.synchronize() comes first. tarn/sleep.h says what is
// needed for it, and the statuses.
TARN_TORCH_API TARN_MUST_CHECK tarn_status tarn_torch_sleep(int device,
                                                            const char *name,
                                                            int save);

// Gives these blocks memory at their addresses again (tarn_pool_wake).
TARN_TORCH_API TARN_MUST_CHECK tarn_status tarn_torch_wake(int device,
                                                           const char *name);

// Lets streams and devices go that this library holds. A device of which blocks
// are live stays open. The host waits for the device. Programs need not call
// it: the process may just end.
//
// Threads:      no other thread is inside this library.
// TARN_E_STATE  a device stayed open; the text says why.
TARN_TORCH_API tarn_status tarn_torch_close(void);

#ifdef __cplusplus
}  // extern "C"

#include <functional>
#include <utility>

// ---------------------------------------------------------------------------
// Captured graphs: three hooks whose arguments are C++
// ---------------------------------------------------------------------------
// Each pool of PyTorch's that a graph is captured into (c10::cuda::MempoolId_t)
// has a Tarn pool of its own, made with TARN_POOL_DEFER (tarn/capture.h): the
// memory that a graph uses stays the graph's. The device's own pool, of which
// blocks can sleep and steps are learned, is not made that way.

struct CUstream_st;
typedef std::pair<unsigned long long, unsigned long long> tarn_torch_pool_id;
typedef std::function<bool(CUstream_st *)> tarn_torch_filter;

extern "C" {

// set_begin_allocate_to_pool: from now on, requests on streams for which
// |filter| is true come from the pool |id|.
//
// Throws: std::runtime_error with Tarn's text, where there can be no such pool
//         or it has a capture under way. A request for the graph out of another
//         pool would have its memory reused under the graph.
TARN_TORCH_API void tarn_torch_begin_pool(int device, tarn_torch_pool_id id,
                                          tarn_torch_filter filter);

// set_end_allocate_to_pool_fn: no more. Failures are reported as by
// tarn_torch_free.
TARN_TORCH_API void tarn_torch_end_pool(int device, tarn_torch_pool_id id);

// set_release_pool: the graphs captured into it are destroyed. The pool ends
// when its last block is free, here or in a later begin, release or reset; the
// host waits for streams that may still use its memory.
TARN_TORCH_API void tarn_torch_release_pool(int device, tarn_torch_pool_id id);

}  // extern "C"
#endif

#endif  // TARN_TORCH_H_
