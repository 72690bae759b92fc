// trace_problem.h - the history of a program as a planning problem.
//
// Each block of the trace is a buffer, needed from its birth to its death, or
// to the ends of the trace if it is older or never freed. A refused request is
// no buffer: how long it would have been kept is unknown. To ask whether a plan
// would have served it, count it for the event at which it was requested.
//
//       events        0   1   2   3
//       steps       0 │ 1 │ 2 │ 3 │ 4        step k: after k events
//       baseline    [===========)            freed at event 2
//       a block         [===========...      taken at event 0, never freed
//       refused             [===)            at event 1, if it counts
//
// A buffer takes whole units of the alignment, as pools' blocks do, so that
// what is left of the last unit is never counted as usable.
#ifndef TARN_TOOL_TRACE_PROBLEM_H_
#define TARN_TOOL_TRACE_PROBLEM_H_

#include <tarn/tarn.h>

// The alignment of an arena of the library.
#define TRACE_PROBLEM_ALIGNMENT 256

typedef struct trace_problem {
  const tarn_trace *trace;    // borrowed
  tarn_plan_buffer *buffers;  // the trace's blocks, then what was refused
  tarn_plan_problem problem;  // of |buffers|, without capacities
} trace_problem;

// |alignment| 0: TRACE_PROBLEM_ALIGNMENT. Refused requests of up to
// |refused_most| bytes count; 0: none does.
//
// Cost: O(blocks + events).
trace_problem trace_problem_make(const tarn_trace *trace, uint64_t alignment,
                                 uint64_t refused_most);
void trace_problem_deinit(trace_problem *p);

// Whether it is older than the trace.
bool trace_problem_is_old(const trace_problem *p, size_t buffer);

#endif  // TARN_TOOL_TRACE_PROBLEM_H_
