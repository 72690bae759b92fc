// crossing.h - several threads make the requests of one trace, and each frees
// what another has allocated.
//
// The allocs of the trace are dealt out in turn: the first to the first thread,
// the second to the next, and so on. The free of a block falls to the thread
// behind the one that allocated it, behind the last to the first. Each thread
// makes its requests in the order of the trace; a free waits until the block is
// there, and an alloc until the block that the pass before had under the same
// slot is freed. Nothing else keeps the threads together.
//
//   trace      a+  b+  a-  c+  b-  c-
//   thread 0   a+          c+  b-
//   thread 1       b+  a-          c-
//
// Slots are renumbered, so that what one thread fills lies together: lines of
// the cache that two write to would be measured instead of allocators.
#ifndef TARN_BENCH_CROSSING_H_
#define TARN_BENCH_CROSSING_H_

#include <sched.h>
#include <stdatomic.h>

#include "peers.h"

enum { CROSSING_THREADS_MOST = 64 };

typedef struct crossing crossing;

// One thread's part.
typedef struct crossing_side {
  request_list requests;
  uint32_t *places;           // of each in the trace
  _Atomic uint32_t *filled;   // by slot: the pass whose block lies there
  _Atomic uint32_t *emptied;  // by slot: the pass whose block was freed
  atomic_bool *broken;        // a request was refused: do not wait
  uint32_t first_pass;        // the number of the first of ...
  uint32_t passes;            // ... these, in a row
} crossing_side;

// For |threads| threads, from 2 on, the caller's among them; starts the others.
// NULL: one could not be started.
crossing *crossing_create(const request_list *requests, size_t threads);
void crossing_destroy(crossing *c);

// The same requests with slots renumbered; lives as long as |c|.
const request_list *crossing_requests(const crossing *c);

// |passes| passes in a row by all threads. |ticks| has a place for each
// request of the trace. False if a request was refused: |c| is of no more use.
bool crossing_pass(crossing *c, peer_pass *pass, void *self,
                   const peer_run *run, uint32_t passes);

static inline bool crossing_wait(const crossing_side *side,
                                 _Atomic uint32_t *word, uint32_t pass) {
  enum { SPINS = 1000 };
  for (unsigned i = 0; atomic_load_explicit(word, memory_order_acquire) != pass;
       i++) {
    if (atomic_load_explicit(side->broken, memory_order_relaxed)) return false;
    if (i > SPINS) sched_yield();
  }
  return true;
}

// Before a request: until its slot is as it wants it.
static inline bool crossing_ready(const crossing_side *side, const request *r,
                                  uint32_t pass) {
  return r->size > 0 ? crossing_wait(side, &side->emptied[r->slot], pass - 1)
                     : crossing_wait(side, &side->filled[r->slot], pass);
}

// After it.
static inline void crossing_tell(const crossing_side *side, const request *r,
                                 uint32_t pass) {
  _Atomic uint32_t *word =
      r->size > 0 ? &side->filled[r->slot] : &side->emptied[r->slot];
  atomic_store_explicit(word, pass, memory_order_release);
}

#endif  // TARN_BENCH_CROSSING_H_
