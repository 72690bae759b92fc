// view_segments.h - what the allocator held of the device, and when.
//
// A trace tells it in pieces: events that take and give back segments or parts
// of them, and the segments of the end. From these comes a list of ranges with
// the events between which each was held.
#ifndef TARN_TOOL_VIEW_SEGMENTS_H_
#define TARN_TOOL_VIEW_SEGMENTS_H_

#include <tarn/tarn.h>

typedef struct view_segment {
  uint64_t address;
  uint64_t size;
  uint32_t born;  // event that took it; TARN_TRACE_BASELINE: from before
  uint32_t died;  // event at which it was given back; event_count: never
  bool begins;    // it does not go on where another ends, see moment_spans
} view_segment;

typedef struct view_segments {
  view_segment *items;
  size_t count;
} view_segments;

// The segments of |trace|, if it has any. A segment that is given back without
// having been taken was there from the beginning, as was one that is there at
// the end without having been taken. Free it with view_segments_deinit.
//
// Cost: n log n in the events of segments, more where many are cut.
view_segments view_segments_make(const tarn_trace *trace);

void view_segments_deinit(view_segments *s);

#endif  // TARN_TOOL_VIEW_SEGMENTS_H_
