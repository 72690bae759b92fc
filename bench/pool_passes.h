// pool_passes.h - one allocator under measurement, and passes through it.
#ifndef TARN_BENCH_POOL_PASSES_H_
#define TARN_BENCH_POOL_PASSES_H_

#include "kit/crossing.h"
#include "kit/placement.h"
#include "peers.h"
#include "pool_bench.h"
#include "touch.h"

// All of the harness's own memory exists, and was written to, before the
// allocator does, which may be the one that it comes from.
typedef struct pool_runner {
  const pool_bench *bench;
  const peer_type *type;
  void *self;
  const request_list *requests;
  hogs *hogs;             // NULL: none
  crossing *crossing;     // NULL: one thread
  touch_buffer *touched;  // NULL: blocks are not touched
  size_t resident;        // bytes, before the allocator was
  size_t resident_peak;   // within the second pass
  uint64_t begin_ns;      // of the process's time
  size_t passes;          // that count
  bool hurried;           // the first two took half of the time
  uint32_t in_a_row;      // of several threads, that are timed as one
  double *by_block;       // ns of each pass ...
  double *by_address;     // ... of as many by address ...
  double *by_touch;       // ... and of as many that only touch
  uint64_t *samples;      // pass by pass, request by request
  uint64_t *empty;        // as many of no request
  uint64_t *spare;        // as many
  pool_bench_result *result;
} pool_runner;

// The least and the most passes that samples are taken of.
enum { POOL_PASSES_SAMPLED_LEAST = 5, POOL_PASSES_SAMPLED = 101 };

// How many passes there is to be room for.
size_t pool_passes_room(const pool_bench *bench);

// One pass; false where a request was refused, which the result then reports.
// With |ticks|, each request is timed.
bool pool_pass(pool_runner *r, uint64_t *ticks);

// The same without requests: the ticks of the harness, or of touching.
void pool_pass_empty(pool_runner *r, uint64_t *ticks);

// Whether more than |part| of the time that the process may take is over: a row
// of few passes is better than none.
bool pool_passes_late(const pool_runner *r, double part);

// Whether one takes so long that the second counts for all, by handle.
bool pool_passes_endless(const pool_runner *r);

// The first pass and the second; then all that count.
bool pool_passes_first(pool_runner *r);
bool pool_passes_steady(pool_runner *r);

#endif  // TARN_BENCH_POOL_PASSES_H_
