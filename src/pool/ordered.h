// ordered.h - the pieces of a pool sorted by address, to find the block that
// contains an address.
//
//   firsts  [ 0x1000 | 0x9000 | ... ]           the first address of each leaf
//              │         └───────────┐
//   leaves  [ 0x1000 ... 0x8a00 ] [ 0x9000 ... ] ...    up to 64 addresses
//   fresh   [ 7 | 12 | 9 | ]        ids of pieces that came since
//
// The order is built by the first question. From then on the ids of new pieces
// are recorded and sorted in at the next question. Removals are not recorded,
// so an entry may be stale: it is valid only if its piece is marked |ordered|
// and stands at that address. Stale entries are dropped when they are met, or
// all at once when there are too many.
//
// Guarded by the pool's lock.
#ifndef TARN_POOL_ORDERED_H_
#define TARN_POOL_ORDERED_H_

#include "tarn/base.h"

struct tarn__pool_piece;
struct tarn__pool_pieces;

typedef struct tarn__pool_ordered_leaf tarn__pool_ordered_leaf;

typedef struct tarn__pool_ordered {
  uint32_t *fresh;
  size_t fresh_room;   // 0: nothing is noted
  size_t fresh_count;  // as many as there is room for: some may be missing
  bool complete;       // except for noted pieces
  tarn_addr *firsts;   // behind the last one UINT64_MAX
  tarn__pool_ordered_leaf **leaves;
  size_t leaf_count;
  size_t leaf_room;  // of both; 0 or a power of two
  size_t entries;    // in all leaves
} tarn__pool_ordered;

// Notes that the piece with |id| is new.
static inline void tarn__ordered_note(tarn__pool_ordered *ordered,
                                      uint32_t id) {
  if (ordered->fresh_count < ordered->fresh_room) {
    ordered->fresh[ordered->fresh_count++] = id;
  }
}

// Whether all pieces are in order.
static inline bool tarn__ordered_is_current(const tarn__pool_ordered *ordered) {
  return ordered->complete && ordered->fresh_count == 0;
}

// Sorts in the new pieces.
//
// Cost: O(log n) for each piece that came since. The first time, and when more
//       have come than there were, a walk through all.
// False: the host has no memory; nothing is lost.
TARN_MUST_CHECK bool tarn__ordered_catch_up(struct tarn__pool_pieces *pieces);

// The last sorted piece that starts at |address| or below; NULL if there is
// none.
struct tarn__pool_piece *tarn__ordered_find(tarn__pool_ordered *ordered,
                                            tarn_addr address);

// Whether all parts agree, and each piece in use that is older than the last
// look-up is sorted.
bool tarn__ordered_check(const struct tarn__pool_pieces *pieces);

void tarn__ordered_deinit(tarn__pool_ordered *ordered);

#endif  // TARN_POOL_ORDERED_H_
