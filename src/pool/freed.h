// freed.h - what stood at addresses that the index has forgotten.
//
// A block that was cut out of something larger is joined with its neighbours
// when it is freed, and one that the device gave may go back to it: then
// nothing starts at its address any more. Whoever frees it a second time by
// address is still to hear what it was.
//
//   | 0x7f..000 gradients | 0x7f..a00 cache | ... |   the oldest is overwritten
//                                            ▲ next
//
// Writing costs two stores; only an address that is not found is looked for
// here. Addresses and tags are apart, since they are of different sizes.
//
// Not locked: the pool's lock guards it.
#ifndef TARN_POOL_FREED_H_
#define TARN_POOL_FREED_H_

#include "pool/piece.h"

// A power of two; 40 KiB of them a pool.
enum { TARN__FREED = 4096 };

typedef struct tarn__pool_freed {
  uint32_t next;
  tarn_addr addresses[TARN__FREED];  // 0: none yet
  uint16_t tags[TARN__FREED];
} tarn__pool_freed;

// Notes that |piece| leaves the index, if it was a block.
static inline void tarn__freed_note(tarn__pool_freed *freed,
                                    const tarn__pool_piece *piece) {
  if (piece->requested == 0) return;
  uint32_t at = freed->next++ % TARN__FREED;
  freed->addresses[at] = piece->address;
  freed->tags[at] = (uint16_t)piece->tag;  // there are 65535 of them
}

// Whether a block that started at |address| is remembered, and the tag of the
// last one. A walk through all.
bool tarn__freed_find(const tarn__pool_freed *freed, tarn_addr address,
                      tarn_tag *out_tag);

#endif  // TARN_POOL_FREED_H_
