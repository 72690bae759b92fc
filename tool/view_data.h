// view_data.h - what the scripts of a page draw: a trace, and where pools put
// it.
#ifndef TARN_TOOL_VIEW_DATA_H_
#define TARN_TOOL_VIEW_DATA_H_

#include <stdio.h>

#include "kit/options.h"
#include "roles.h"

// Where one pool put the blocks.
typedef struct view_pool {
  const char *name;            // NULL: the recorded one
  const tarn_addr *addresses;  // of each block; 0: it has none
  const uint64_t *reserved;    // bytes held of the device before the first
                               // event and after each; NULL: as the segments of
                               // the trace say
} view_pool;

typedef struct view_data {
  const tarn_trace *trace;
  const roles *roles;             // of its blocks
  uint32_t first;                 // the number of its first event, for people
  size_t whole_events;            // of the trace that it was cut from
  const options_list *libraries;  // as in owners.h
  const view_pool *pools;
  size_t pool_count;  // at least 1
} view_data;

// Writes |v| as JSON that is safe within a <script> element: the keys of
// trace_data_write, then
//
//    "kind": u8, "block": u32               of each event; 2^32 - 1: none
//    "holder": u32                          of each block
//    "holders": [frame, ...]                a frame of each; the first two, the
//                                           baseline and no stack, are -1
//    "tag": u32, "tags": ["", ...]          of each block; null without tags
//    "refused": [[event, size, stack], ...] requests out of memory
//    "peak_bytes", "peak_event"             -1: before the first event
//    "unit"
//    "first", "whole"                       the number of the first event, and
//                                           how many the whole trace has
//    "role": u8, "roles": ["", ...]         of each block, by the names of
//                                           roles.h; null if none is known
//    "phases": [["forward", first, end], ...]   events of passes
//    "pools": [{"name"                      null: recorded
//               "height", "ranges": [["0x7f00", size, height], ...],
//               "at": f64                   height of each block, -1: nowhere
//               "segments": {"at": f64, "size": f64, "born": u32, "died": u32},
//               "reserved_event": u32, "reserved_bytes": f64   its changes, if
//                                           it tells them
//              }, ...]
void view_data_write(const view_data *v, FILE *out);

#endif  // TARN_TOOL_VIEW_DATA_H_
