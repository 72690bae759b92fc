// extents.h - which bytes of a range are taken, and by whom. Numbers only:
// what stands at them is touched by nobody here.
//
//   [ free ][ 7, 512 bytes ][ 9, 256 bytes ][ free               ]
//                                            ^ cursor
//
// Room is looked for behind the cursor, which stands behind the extent that was
// taken last, and comes round to the front only at the end of the range. So
// what was freed longest ago is taken first, and an address that is used after
// its end still belongs to nobody.
//
// Extents are nodes of a treap, a binary tree by address whose shape is that
// of random insertion; each knows the largest free extent below it, so finding
// an address and finding room both take O(log n).
//
// Not locked: the owner guards all of it.
#ifndef TARN_PLUGINS_SIM_EXTENTS_H_
#define TARN_PLUGINS_SIM_EXTENTS_H_

#include "tarn/base.h"

typedef struct tarn__sim_extent {
  uint64_t address;
  size_t size;
  size_t asked;     // bytes that may be used at |address|, at most |size|; 0:
                    // free, or taken for something that has no address
  uint64_t serial;  // the taker's number; 0: free
  void *record;     // the taker's own; NULL at first

  size_t room;  // the largest free extent of this subtree
  uint32_t priority;
  struct tarn__sim_extent *left;
  struct tarn__sim_extent *right;
} tarn__sim_extent;

// Zero-filled: empty, which is to say that nothing can be taken, only added.
typedef struct tarn__sim_extents {
  tarn__sim_extent *root;
  uint64_t cursor;
  uint32_t random;
} tarn__sim_extents;

// A run of bytes.
typedef struct tarn__sim_run {
  uint64_t address;
  size_t size;
} tarn__sim_run;

// Adds an extent that shares no byte with another, free if |serial| is 0. NULL
// if there is no host memory.
TARN_MUST_CHECK tarn__sim_extent *tarn__sim_extents_add(
    tarn__sim_extents *extents, tarn__sim_run run, size_t asked,
    uint64_t serial);

// Takes |size| bytes of what is free, at a multiple of |align|, a power of two;
// NULL if no free extent has room, or if there is no host memory.
tarn__sim_extent *tarn__sim_extents_take(tarn__sim_extents *extents,
                                         size_t size, size_t align,
                                         size_t asked, uint64_t serial);

// The extent that |address| is in, taken or free; NULL if there is none.
tarn__sim_extent *tarn__sim_extents_find(const tarn__sim_extents *extents,
                                         uint64_t address);

// The same or, if there is none, the first behind |address|.
tarn__sim_extent *tarn__sim_extents_from(const tarn__sim_extents *extents,
                                         uint64_t address);

// The first that shares a byte with |run|; NULL if there is none.
tarn__sim_extent *tarn__sim_extents_in(const tarn__sim_extents *extents,
                                       tarn__sim_run run);

// Makes the taken |extent| free and one with its free neighbours, which it
// returns. Cannot fail.
tarn__sim_run tarn__sim_extents_give(tarn__sim_extents *extents,
                                     tarn__sim_extent *extent);

// Takes |extent| out altogether.
void tarn__sim_extents_remove(tarn__sim_extents *extents,
                              tarn__sim_extent *extent);

// Any one extent; NULL if there is none.
tarn__sim_extent *tarn__sim_extents_any(const tarn__sim_extents *extents);

// Removes all.
void tarn__sim_extents_clear(tarn__sim_extents *extents);

#endif  // TARN_PLUGINS_SIM_EXTENTS_H_
