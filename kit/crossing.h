// crossing.h - several threads make the requests of one trace, and free what
// others have allocated.
//
// Where a trace names threads, those are mapped onto the threads here: thread t
// of the trace onto t % threads. Otherwise the allocs are dealt out in turn:
// the first to the first thread, the second to the next, and so on; the free of
// a block falls to the thread behind the one that allocated it, behind the last
// to the first.
//
//   trace      a+  b+  a-  c+  b-  c-       of one thread
//   thread 0   a+          c+  b-
//   thread 1       b+  a-          c-
//
// Each thread makes its requests in the order of the trace; a free waits until
// the block is there, and an alloc until the block that the pass before had
// under the same slot is freed. Nothing else keeps threads together that took
// turns. Threads that the trace names had queues and locks between them, which
// a trace does not have; here none of them begins a request that is more than
// CROSSING_LEAD requests of the trace ahead of another thread's.
//
// Threads that are spread have a processor each of those that the caller may
// use, in turn (placement.h), the caller's the first; others run as the
// scheduler has it.
//
// Slots are renumbered, so that what one thread fills lies together: lines of
// the cache that two write to would be measured instead of allocators.
#ifndef TARN_KIT_CROSSING_H_
#define TARN_KIT_CROSSING_H_

#include <sched.h>
#include <stdatomic.h>

#include "requests.h"

enum { CROSSING_THREADS_MOST = 64, CROSSING_LEAD = 256 };

typedef struct crossing crossing;

// How far a thread is: the number of its next request, counted over all passes.
// Each has lines of the cache of its own.
typedef struct crossing_pace {
  _Alignas(128) _Atomic uint64_t next;
  uint64_t slowest;  // of all, as this thread saw it last
} crossing_pace;

// One thread's part.
typedef struct crossing_side {
  request_list requests;
  uint32_t *places;           // of each in the trace
  _Atomic uint32_t *filled;   // by slot: the pass whose block lies there
  _Atomic uint32_t *emptied;  // by slot: the pass whose block was freed
  atomic_bool *broken;        // a request was refused: do not wait
  uint32_t first_pass;        // the number of the first of ...
  uint32_t passes;            // ... these, in a row
  crossing_pace *paces;       // of all threads; NULL: they took turns
  size_t thread_count;
  size_t number;  // of this thread
  size_t total;   // requests of the trace
} crossing_side;

// What each thread does with its part. False: a request was refused.
typedef bool crossing_work(void *context, const crossing_side *side);

// For |threads| threads, from 2 on, the caller's among them, which if |spread|
// stays on its processor until the end of |c|; starts the others. NULL: one
// could not be started.
crossing *crossing_create(const request_list *requests, size_t threads,
                          bool spread);
void crossing_destroy(crossing *c);

// The same requests with slots renumbered; lives as long as |c|.
const request_list *crossing_requests(const crossing *c);

// The new number of |slot|.
uint32_t crossing_slot(const crossing *c, uint32_t slot);

// |passes| passes in a row by all threads. False if a request was refused: |c|
// is of no more use.
bool crossing_run(crossing *c, crossing_work *work, void *context,
                  uint32_t passes);

// Between passes, for a trace that does not free all that it takes, or frees
// what it never took: the next pass finds the |held| first slots of the trace
// with blocks, and all others without.
void crossing_reset(crossing *c, size_t held);

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

// The slowest thread never waits here, nor for a request of another: those it
// depends on are earlier ones.
static inline bool crossing_keep_near(const crossing_side *side,
                                      const request *r, uint32_t pass) {
  enum { SPINS = 1000 };
  crossing_pace *mine = &side->paces[side->number];
  uint64_t at =
      (uint64_t)pass * side->total + side->places[r - side->requests.items];
  atomic_store_explicit(&mine->next, at, memory_order_release);
  for (unsigned i = 0; at > mine->slowest + CROSSING_LEAD; i++) {
    mine->slowest = at;
    for (size_t k = 0; k < side->thread_count; k++) {
      uint64_t next =
          atomic_load_explicit(&side->paces[k].next, memory_order_acquire);
      if (next < mine->slowest) mine->slowest = next;
    }
    if (atomic_load_explicit(side->broken, memory_order_relaxed)) return false;
    if (i > SPINS) sched_yield();
  }
  return true;
}

// Before a request: until its slot is as it wants it.
static inline bool crossing_ready(const crossing_side *side, const request *r,
                                  uint32_t pass) {
  if (side->paces != NULL && !crossing_keep_near(side, r, pass)) return false;
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

#endif  // TARN_KIT_CROSSING_H_
