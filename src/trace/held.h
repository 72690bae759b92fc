// held.h - what an allocator held when a trace ended: segments, and the blocks
// in each.
#ifndef TARN_TRACE_HELD_H_
#define TARN_TRACE_HELD_H_

#include "tarn/trace.h"

// A segment of the trace, or one that was made up, with those blocks of the
// trace that live in it at the end: blocks[first .. first + count) of the
// tarn__trace_held, by address, none of which overlap.
typedef struct tarn__trace_held_segment {
  tarn_trace_segment shown;
  size_t first;
  size_t count;
} tarn__trace_held_segment;

typedef struct tarn__trace_held {
  tarn__trace_held_segment
      *segments;  // the trace's own in their order, then others
  size_t segment_count;
  size_t segment_room;
  uint32_t *blocks;  // indices into the trace's
  size_t block_count;
} tarn__trace_held;

// Puts each block of |trace| that never died, and stands at |addresses|, into
// the segment that has it whole, where no other block is in its way. Blocks
// without such a segment get some of their own: neighbours of one stream share
// one where they are less than 2 MiB apart, or none where the trace has
// segments, since that space is another's.
//
// Cost: n log n in blocks and segments.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__held_make(const tarn_trace *trace,
                                            const uint64_t *addresses,
                                            tarn__trace_held *out_held);
void tarn__held_free(tarn__trace_held *held);

// The bytes that block |index| of |segment| takes there: its size, rounded up
// to 512 as PyTorch does it where there is room for that.
uint64_t tarn__held_bytes(const tarn__trace_held *held, const tarn_trace *trace,
                          const uint64_t *addresses,
                          const tarn__trace_held_segment *segment,
                          size_t index);

#endif  // TARN_TRACE_HELD_H_
