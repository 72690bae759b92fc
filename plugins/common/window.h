// window.h - addresses for a device whose memory has none: memory that its
// driver names by a handle, or that stands where no caller may see it.
//
//   window   [ free ][ taken: record ][ free ][ taken: record ][ free        ]
//            reserved: a touch by the host faults, wherever it is
//
// A taken extent stands for a piece of memory that the owner keeps elsewhere,
// behind |record|. Pointers into it are added to and compared as usual, and
// find() turns one into the extent and an offset. Freed addresses are taken
// again as late as possible, as extents.h has it.
//
//   tarn__common_extent *taken =
//       tarn__common_window_take(&window, whole, 4096, memory);
//   if (taken == NULL) ...                    no addresses, or no host memory
//   *out = (void *)(uintptr_t)taken->node.start;
//   ...
//   size_t offset = 0;
//   tarn__common_extent *at =
//       tarn__common_window_find(&window, (uintptr_t)ptr, &offset);
//   if (at == NULL || size > at->asked - offset) ...   not in one piece
//   copy_from(at->record, offset, size);
//   ...
//   tarn__common_window_give(&window, at);
//
// Sizes are bytes. What |record| points to is the owner's: close() frees none
// of it, and extents_from() walks over all extents, the free ones too. An owner
// that numbers extents itself, or needs bytes behind those that are usable,
// takes from |extents| by the functions of extents.h.
//
// Threads: the owner guards the window, except that any thread may call has()
// at any time.
//
// Cost: no memory but that of the extents. The whole window counts as addresses
// of the process (ulimit -v).
#ifndef TARN_PLUGINS_COMMON_WINDOW_H_
#define TARN_PLUGINS_COMMON_WINDOW_H_

#include <stdatomic.h>

#include "common/extents.h"

// Zero-filled: closed.
typedef struct tarn__common_window {
  _Atomic(uint64_t) begin;  // stays when the window closes
  atomic_size_t size;       // 0: closed, or the system has no addresses
  uint64_t serial;          // of the newest extent of take(); never begins anew
  tarn__common_extents extents;
} tarn__common_window;

// Opens a closed window of |size| bytes at a multiple of |align|, a power of
// two. It begins at a multiple of the largest power of two in |size| if it can,
// so that an empty window has room at any alignment up to that. Where the
// system has too few addresses, the window is a half as large, or a quarter,
// and so on, but not below |least|; 0: even one without addresses will do, from
// which nothing can be taken. Pages are not divided. False: there is no room
// for |least|, or no host memory; the window is closed.
TARN_MUST_CHECK bool tarn__common_window_open(tarn__common_window *window,
                                              size_t size, size_t least,
                                              size_t align);

// Gives the addresses back, and drops all extents. A closed window stays as it
// is.
void tarn__common_window_close(tarn__common_window *window);

// Takes |size| bytes, at least 1, at a multiple of |align|, a power of two, all
// usable. Their |serial| is the window's newest. NULL: no free extent has room,
// or there is no host memory.
tarn__common_extent *tarn__common_window_take(tarn__common_window *window,
                                              size_t size, size_t align,
                                              void *record);

// The taken extent of whose usable bytes one is at |address|, and how many are
// before it. NULL: none, and the offset is 0.
tarn__common_extent *tarn__common_window_find(const tarn__common_window *window,
                                              uint64_t address,
                                              size_t *out_offset);

// Frees a taken extent, which is then no more. Returns the free run of which it
// has become a part. Cannot fail.
static inline tarn__common_run tarn__common_window_give(
    tarn__common_window *window, tarn__common_extent *extent) {
  return tarn__common_extents_give(&window->extents, extent);
}

// Whether |address| is in the window, taken or free. Of a window that is just
// being opened or closed either is an answer.
static inline bool tarn__common_window_has(const tarn__common_window *window,
                                           uint64_t address) {
  size_t size = window->size;  // first: what has a size has a beginning
  return address - window->begin < size;
}

#endif  // TARN_PLUGINS_COMMON_WINDOW_H_
