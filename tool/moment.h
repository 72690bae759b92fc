// moment.h - a trace at one moment: what lives, and what is held for it.
#ifndef TARN_TOOL_MOMENT_H_
#define TARN_TOOL_MOMENT_H_

#include <tarn/tarn.h>

// The moment after an event; TARN_TRACE_BASELINE: before the first.
typedef uint32_t moment;

// Some blocks of a trace, by index.
typedef struct block_set {
  uint32_t *items;
  size_t count;
  uint64_t bytes;
} block_set;

void block_set_deinit(block_set *set);

// What lives at |when|. Cost: all blocks.
block_set moment_live(const tarn_trace *trace, moment when);

// Blocks that were born and died within the trace and do not live at |when|:
// the memory that came and went without counting there.
block_set moment_churn(const tarn_trace *trace, moment when);

// The blocks of |set| that are older than the trace.
block_set block_set_baseline(const tarn_trace *trace, const block_set *set);

// A range of addresses that the allocator holds of the device.
typedef struct span {
  uint64_t address;
  uint64_t size;
  uint64_t stream;
} span;

typedef struct span_list {
  span *items;  // by address; they do not overlap
  size_t count;
  uint64_t bytes;
} span_list;

void span_list_deinit(span_list *list);

// Whether the trace tells at all what was held.
bool moment_knows_spans(const tarn_trace *trace);

// Whether pages were mapped or unmapped in the trace.
bool moment_has_mappings(const tarn_trace *trace);

// The ranges that the allocator held at |when|: those that it holds at the end,
// less those that it took since, plus those that it gave back. Where the end is
// not recorded, those that it took until |when| and has not given back. Ranges
// that were mapped next to one another are one; segments that were allocated
// are not, since no block can lie in two of them. In a trace with mappings, a
// range that is older than the trace counts as mapped.
//
// Cost: O(n log n) in the events of segments.
span_list moment_spans(const tarn_trace *trace, moment when);

// The most that it held at once, of the moments of the trace; |*out_wanted| is
// what that would have been had it taken each request of up to |refused_most|
// bytes that it refused of the device.
uint64_t moment_held_peak(const tarn_trace *trace, uint64_t refused_most,
                          uint64_t *out_wanted);

#endif  // TARN_TOOL_MOMENT_H_
