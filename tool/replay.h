// replay.h - runs the requests of a trace through one strategy of a pool.
//
// An iteration is all requests of the trace, in order: each ALLOC takes a
// block, each FREE gives it back. The baseline is taken before the first. After
// an iteration, the blocks that it left alive beyond the baseline are freed and
// the blocks of the baseline that it freed are taken again, so that the next
// one starts from the same state; those requests are not the iteration's and
// not timed.
//
// Each iteration is timed as a whole. Then the pool begins anew, and as many
// iterations follow in which each request is timed by itself: these tell in
// which proportion allocs and frees share the time of the whole one, and the
// median and the 99th percentile of an alloc.
//
// Streams of the trace are numbers of another process: all requests are made
// for stream NULL. With touching, the pool may hold 9/10 of what the device has
// free; without, only the limit that is asked for.
//
// Dry: a pool without memory, so that the trace may be of a larger machine.
#ifndef TARN_TOOL_REPLAY_H_
#define TARN_TOOL_REPLAY_H_

#include "replay_pass.h"

typedef struct replay_options {
  tarn_device *device;
  const char *pool;   // "page_unit_pool:page=65536"
  size_t iterations;  // at least 1
  size_t threads;     // 0: 1
  bool touch;         // write to each page of each new block
  bool dry;           // no memory at all; not with |touch|
  size_t limit;       // bytes that the pool may hold; 0: as said above
  bool history;       // afterwards, one more iteration for the picture
} replay_options;

// Times are without the cost of reading the clock, and never 0; NaN where there
// was no such request.
typedef struct replay_iteration {
  double pass_ms;   // of the whole iteration
  double alloc_ms;  // of all allocs together, with their first touch
  double free_ms;
  double alloc_ns_median;
  double alloc_ns_p99;
  uint64_t hits;
  uint64_t misses;
} replay_iteration;

// Where the blocks stood in one iteration, for the picture.
typedef struct replay_history {
  tarn_addr *addresses;  // of each block of the trace; 0: it was refused
  uint64_t *reserved;    // bytes held of the device: before the first event,
                         // and after each: event_count + 1 values
} replay_history;

typedef struct replay_result {
  const char *pool;  // as in the options
  replay_iteration *iterations;
  size_t iteration_count;
  uint64_t reserved_peak_bytes;
  uint64_t moved_bytes;  // idle memory that went to where it was needed, in all
  double move_ms;        // and what that took, of the time of the requests
  uint64_t failed;       // requests that were refused, in all iterations
  char first_failure[REPLAY_TEXT_SIZE];
  char error[REPLAY_TEXT_SIZE];  // why replay_run returned false
  replay_history history;        // NULLs unless it was asked for
} replay_result;

// Replays |trace| and fills |*out_result|. Requests that are refused are
// counted and passed over. False, with out_result->error, if the strategy
// cannot be had or lost count of its blocks.
//
// |progress| steps twice an iteration.
bool replay_run(const tarn_trace *trace, const replay_options *options,
                const stopwatch *watch, tool_progress *progress,
                replay_result *out_result);

// Frees what a result holds.
void replay_result_deinit(replay_result *result);

// reserved_peak_bytes over the live peak of |trace|; NaN where that is 0.
double replay_over_live(const tarn_trace *trace, const replay_result *result);

// The iteration that stands for all from the second on: their median by
// alloc_ms, of an even number the faster of the middle two; the first if there
// is no other.
const replay_iteration *replay_steady(const replay_result *result);

#endif  // TARN_TOOL_REPLAY_H_
