// holes.h - memory that the allocator held without a block in it.
#ifndef TARN_TOOL_HOLES_H_
#define TARN_TOOL_HOLES_H_

#include "moment.h"

// fragmentation = 1 - largest hole / free bytes: 0 if all that is free is in
// one piece, close to 1 if it is in crumbs; that is what a pool tells of
// itself when it refuses a request (pool.h). NaN where nothing is free or it
// is not known what was held.
typedef struct holes {
  bool known;  // the trace tells what was held; else all below is 0
  uint64_t reserved_bytes;
  uint64_t free_bytes;
  uint64_t largest;
  uint64_t largest_of_stream;  // of segments of the stream that was asked for
  size_t count;
  double fragmentation;
} holes;

// The least that a block of |trace| occupies: it takes multiples of it.
uint64_t holes_unit(const tarn_trace *trace);

// The holes between |live| blocks of |trace| in what was held at |when|. Holes
// do not reach over the ends of segments. A block of a PyTorch snapshot
// occupies whole units of 512 bytes, as that allocator hands them out.
//
// Cost: O(n log n) in the blocks that live.
holes holes_find(const tarn_trace *trace, const block_set *live, moment when,
                 uint64_t stream);

#endif  // TARN_TOOL_HOLES_H_
