// layout.h - addresses as heights of a picture.
//
// The addresses that a pool gives are scattered over 64 bits. The layout is
// their union, packed: ranges that were ever used stand on top of each other,
// the unused gaps between them are folded away.
//
//     addresses                      heights
//     0x7f20'0000  ████              ████ 3
//                                    ████ ---- fold
//     0x5500'2000  ██                ██   1
//     0x5500'0000  ██          ─►    ██   0
//
// Small gaps stay as they are: a fold of its own for each allocator's header
// would say nothing.
#ifndef TARN_TOOL_LAYOUT_H_
#define TARN_TOOL_LAYOUT_H_

#include <tarn/tarn.h>

typedef struct layout_range {
  tarn_addr address;
  uint64_t size;
  uint64_t height;  // of its lowest byte in the picture
} layout_range;

typedef struct layout {
  layout_range *ranges;  // by address
  size_t range_count;
  uint64_t height;  // of all ranges together
} layout;

// Lays out |block_count| blocks, blocks[i] at addresses[i], and |count| other
// ranges. A block at address 0 is left out: it has none. A size of 0 counts
// as 1.
layout layout_make(const tarn_trace_block *blocks, const tarn_addr *addresses,
                   size_t block_count, const layout_range *others,
                   size_t count);

// The height of |address|, which lies in one of the ranges.
uint64_t layout_height(const layout *l, tarn_addr address);

void layout_deinit(layout *l);

#endif  // TARN_TOOL_LAYOUT_H_
