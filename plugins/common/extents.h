// extents.h - disjoint extents of an address range, taken and free, with what
// the plug-in knows of each. It only keeps account: no memory is touched.
//
//   [ free ][ 7, 512 bytes ][ 9, 256 bytes ][ free               ]
//                                            ^ cursor
//
// take() searches from the cursor, which stands behind the extent that was
// taken last, and starts over at the end of the range. So bytes that were freed
// longest ago are taken first, and a wrong use of a freed address shows.
//
// The extents are nodes of a range map; each keeps the size of the largest free
// extent in its subtree. Finding an address and finding room take O(log n).
//
// Threads: the owner guards the extents.
#ifndef TARN_PLUGINS_COMMON_EXTENTS_H_
#define TARN_PLUGINS_COMMON_EXTENTS_H_

#include "base/range_map.h"

typedef struct tarn__common_extent {
  tarn__range_map_node node;  // |start| is the address
  size_t size;
  size_t asked;     // usable bytes at the address, at most |size|; 0: free, or
                    // taken for something without an address
  uint64_t serial;  // the taker's number; 0: free
  void *record;     // the taker's own; NULL at first, or |record_size| bytes
  size_t room;      // size of the largest free extent of this subtree
} tarn__common_extent;

// Zero-filled: empty; extents can be added, and none taken.
typedef struct tarn__common_extents {
  tarn__range_map map;
  uint64_t cursor;
  size_t record_size;  // of a record that lives as long as its extent; 0: none
} tarn__common_extents;

// A run of bytes.
typedef struct tarn__common_run {
  uint64_t address;
  size_t size;
} tarn__common_run;

// Adds an extent that overlaps no other, free if |serial| is 0. NULL: no host
// memory.
TARN_MUST_CHECK tarn__common_extent *tarn__common_extents_add(
    tarn__common_extents *extents, tarn__common_run run, size_t asked,
    uint64_t serial);

// Takes |size| free bytes at a multiple of |align|, a power of two. NULL: no
// free extent has room, or no host memory.
tarn__common_extent *tarn__common_extents_take(tarn__common_extents *extents,
                                               size_t size, size_t align,
                                               size_t asked, uint64_t serial);

// The extent that holds |address|, taken or free; NULL: none.
tarn__common_extent *tarn__common_extents_find(
    const tarn__common_extents *extents, uint64_t address);

// The extent that holds |address| or, if there is none, the next one behind it.
tarn__common_extent *tarn__common_extents_from(
    const tarn__common_extents *extents, uint64_t address);

// The first extent that shares a byte with |run|; NULL: none.
tarn__common_extent *tarn__common_extents_in(
    const tarn__common_extents *extents, tarn__common_run run);

// Frees the taken |extent| and merges it with its free neighbours. Returns the
// merged run. Cannot fail.
tarn__common_run tarn__common_extents_give(tarn__common_extents *extents,
                                           tarn__common_extent *extent);

// Cuts the taken |extent| behind its first |size| bytes. The rest is another
// one, of the same taker and with a copy of the record. NULL: no host memory.
TARN_MUST_CHECK tarn__common_extent *tarn__common_extents_cut(
    tarn__common_extents *extents, tarn__common_extent *extent, size_t size);

// Takes such a cut back.
void tarn__common_extents_rejoin(tarn__common_extents *extents,
                                 tarn__common_extent *extent,
                                 tarn__common_extent *rest);

// |extent| is at |address| now, where no other is.
void tarn__common_extents_shift(tarn__common_extents *extents,
                                tarn__common_extent *extent, uint64_t address);

// Removes |extent| altogether.
void tarn__common_extents_remove(tarn__common_extents *extents,
                                 tarn__common_extent *extent);

// Any one extent; NULL: there is none.
tarn__common_extent *tarn__common_extents_any(
    const tarn__common_extents *extents);

// Removes all.
void tarn__common_extents_clear(tarn__common_extents *extents);

#endif  // TARN_PLUGINS_COMMON_EXTENTS_H_
