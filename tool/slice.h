// slice.h - some events of a trace, as a trace of its own.
//
//   events      0 ......... from ......... to ......... event_count
//   blocks      |=====|                                  left out
//               |==============|                         older than the slice
//                              |================|        never freed in it
//
// Blocks that live in none of the events are left out, and so are stacks and
// frames that nothing in it has.
#ifndef TARN_TOOL_SLICE_H_
#define TARN_TOOL_SLICE_H_

#include "roles.h"

typedef struct slice {
  tarn_trace trace;  // owned by the slice, except for texts
  uint32_t first;    // the event of the whole that is its event 0
  uint32_t *block;   // of each of its blocks, the number in the whole
} slice;

// The events |from| to |to|, without |to|, of |whole|, which is borrowed: from
// < to <= event_count. Free it with slice_deinit.
//
// Cost: O(events + blocks + frames of stacks) of the whole; memory for what is
//       in the slice.
slice slice_make(const tarn_trace *whole, uint32_t from, uint32_t to);
void slice_deinit(slice *s);

// What the blocks and events of |s| are in the whole, of which |r| is. Free it
// with roles_deinit.
roles slice_roles(const slice *s, const roles *r);

#endif  // TARN_TOOL_SLICE_H_
