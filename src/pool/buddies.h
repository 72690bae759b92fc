// buddies.h - free blocks in powers of two, by size and by stream. Only
// addresses are managed; the memory is never touched.
//
//   space   | 64K                           | 16K   | 8K|4K|   from its start
//   taken   |xxxxxxxxxxxxx|                                    24K of the 64K
//   free    |      16K + 8K     |    16K    | 16K   | 8K|4K|
//
// A space is cut into the largest powers of two that fit, in falling order. A
// free block of 2^n bytes has one buddy, the other half of their block of
// 2^(n+1) bytes; when both are free, they merge. A taken block need not be a
// power of two: the excess stays free.
//
// A free block belongs to the stream that may still use it. Blocks of different
// streams stay apart; unused blocks merge with any.
//
// Cost: O(log n) for a take and a give, with n units in a space.
//
// Not synchronized: the owner's lock guards it.
#ifndef TARN_POOL_BUDDIES_H_
#define TARN_POOL_BUDDIES_H_

#include "pool/extents.h"

enum { TARN__BUDDY_ORDERS = 64 };

// Addresses that blocks are taken from. In the owner's struct.
typedef struct tarn__pool_space {
  tarn_addr address;
  size_t size;   // a multiple of the unit
  size_t taken;  // bytes
} tarn__pool_space;

// The free blocks of one stream.
typedef struct tarn__pool_stream_lists {
  struct tarn__pool_stream_lists *next;
  uint64_t serial;  // of the stream; 0: none
  uint64_t orders;  // bit n: there are blocks of 2^n bytes
  tarn_list blocks[TARN__BUDDY_ORDERS];
} tarn__pool_stream_lists;

// A free block.
typedef struct tarn__pool_buddy {
  tarn_list node;  // in its lists, or among the unused
  tarn__pool_stream_lists *lists;
  tarn__pool_space *space;
  tarn_addr address;
  unsigned order;                  // 2^order bytes
  struct tarn__pool_buddy *chain;  // in its bucket
} tarn__pool_buddy;

typedef struct tarn__pool_buddies {
  size_t unit;  // sizes are multiples of it; a power of two
  tarn__pool_stream_lists *streams;  // the first: unused blocks
  tarn__pool_buddy **buckets;
  size_t bucket_count;                  // a power of two, or 0
  struct tarn__pool_buddy_slab *slabs;  // nodes never move
  tarn_list unused;                     // nodes
  size_t spare;                         // how many of them
  size_t promised;                      // and how many for live blocks
} tarn__pool_buddies;

TARN_MUST_CHECK tarn_status tarn__buddies_init(tarn__pool_buddies *buddies,
                                               size_t unit);
void tarn__buddies_deinit(tarn__pool_buddies *buddies);

// Makes room for one addition and one take, for the stream with |serial|.
// False: no host memory. Both rely on it; a give needs only a lists.
TARN_MUST_CHECK bool tarn__buddies_reserve(tarn__pool_buddies *buddies,
                                           uint64_t serial);

// Adds a space; no stream uses it.
void tarn__buddies_add(tarn__pool_buddies *buddies, tarn__pool_space *space);

// Takes |size| bytes, a multiple of the unit, at a multiple of |align|: from
// the blocks of the stream with |serial|, or from unused ones, or at last,
// unless |own_only|, from any stream's. |*out_serial|: the stream that used
// them last. 0: there is no such block.
tarn_addr tarn__buddies_take(tarn__pool_buddies *buddies, size_t size,
                             size_t align, uint64_t serial, bool own_only,
                             tarn__pool_space **out_space,
                             uint64_t *out_serial);

// Gives the stream with |serial| a lists, unless it has one. False: no host
// memory.
TARN_MUST_CHECK bool tarn__buddies_know(tarn__pool_buddies *buddies,
                                        uint64_t serial);

// Gives back taken bytes; the stream has a lists.
void tarn__buddies_give(tarn__pool_buddies *buddies, tarn__pool_space *space,
                        tarn_addr address, size_t size, uint64_t serial);

// Marks the blocks of the stream with |serial| as unused.
void tarn__buddies_settle(tarn__pool_buddies *buddies, uint64_t serial);

// Whether no stream may still use any of a space of which nothing is taken.
bool tarn__buddies_is_unused(const tarn__pool_buddies *buddies,
                             const tarn__pool_space *space);

// Removes a space without taken bytes. Adds the streams that may still use it
// to |waits|.
void tarn__buddies_remove(tarn__pool_buddies *buddies,
                          const tarn__pool_space *space,
                          tarn__pool_waits *waits);

// Checks the invariants in a walk. |*out_free|: the free bytes of all spaces.
// The caller compares them with the sizes less the taken bytes: they differ if
// free blocks overlap.
TARN_MUST_CHECK tarn_status
tarn__buddies_check(const tarn__pool_buddies *buddies, size_t *out_free);

#endif  // TARN_POOL_BUDDIES_H_
