// plan_peer.h - another planner, google/minimalloc's own, run on a file: its
// processor time, and whether its plan is right.
//
// It is started as
//
//   PROGRAM --input=FILE --capacity=BYTES --timeout=60s --output=PLAN
//
// and is expected to write a table of the same buffers with their offsets.
#ifndef TARN_BENCH_PLAN_PEER_H_
#define TARN_BENCH_PLAN_PEER_H_

#include "kit/child.h"
#include "tarn/plan.h"

typedef struct plan_peer {
  const char *program;  // with its path
  const char *input;
  const char *output;  // removed beforehand
  uint64_t capacity;
  double seconds;  // its time limit, by the clock
} plan_peer;

typedef struct plan_peer_result {
  char failed[CHILD_TEXT_SIZE];  // empty: it found a plan
  uint64_t height;
  double seconds;  // of the processor; NaN: it was not started
  double peak;     // bytes that were resident at most
} plan_peer_result;

// A peer that finds no plan, does not end in time or makes a wrong plan has
// failed, with the seconds that it took.
plan_peer_result plan_peer_run(const plan_peer *peer);

#endif  // TARN_BENCH_PLAN_PEER_H_
