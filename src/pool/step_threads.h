// step_threads.h - the steps of several threads.
//
// A step is a row of requests, and of frees of blocks by the thread that took
// them. While one thread makes requests, or several of which one waits for
// another, all of them make one row:
//
//   thread 1   a+ b+           b-  │ a+ b+           b-
//   thread 2         c+ a- c-      │       c+ a- c-
//   row        a+ b+ c+    c-  b-  │ a+ b+ c+    c-  b-      a- has no place
//
// Threads that go on at the same time make a different row each time. Then each
// of a few threads is followed by itself: it has steps of its own, and the
// pool's are forgotten. So until that is known, two recorders hear a request:
// the pool's and the thread's.
//
// How many events later a block was freed by another thread is kept; its place
// is its own for the longest time that was seen. If it is live even then it is
// a stranger (step_layout.h).
//
// Guarded by the pool's lock.
#ifndef TARN_POOL_STEP_THREADS_H_
#define TARN_POOL_STEP_THREADS_H_

#include "pool/steps.h"

// Threads with steps of their own. Requests of others are served beside.
enum { TARN__STEP_THREADS = 4 };

typedef struct tarn__pool_step_thread {
  const void *self;         // tells threads apart; NULL: none
  uint64_t last;            // its last request, by |clock|
  tarn__pool_steps *steps;  // its own; NULL: no other thread made requests yet
} tarn__pool_step_thread;

typedef struct tarn__pool_step_threads {
  tarn__pool_step_thread of[TARN__STEP_THREADS];
  size_t count;
  uint64_t clock;  // requests that were noted
  bool apart;      // each is followed by itself
} tarn__pool_step_threads;

// --- step_self.c ------------------------------------------------------------

// Tells threads apart that have not ended.
const void *tarn__step_thread_self(void);

// The number of this thread, from 1; 0: it has none.
size_t tarn__step_thread_number(const tarn__pool_step_threads *threads);

// The steps of the thread with that number; NULL: there are none.
tarn__pool_steps *tarn__steps_of_number(const tarn_pool *pool, size_t number);

// What this thread's requests and frees are followed with where threads are
// followed by themselves: its own steps, or the common ones, which are none.
tarn__pool_steps *tarn__steps_of_thread(tarn_pool *pool);

// Whether this thread's own row is due, so that threads may have to be followed
// by themselves.
bool tarn__steps_may_part(const tarn_pool *pool);

// --- step_threads.c ---------------------------------------------------------

void tarn__step_threads_deinit(tarn__pool_step_threads *threads);

// A request that no step served, which got |piece|.
void tarn__steps_note(tarn_pool *pool, const tarn__pool_note *what,
                      tarn__pool_piece *piece);

// The free of a block, on the stream with |serial|.
void tarn__steps_note_free(tarn_pool *pool, const tarn__pool_piece *piece,
                           uint64_t serial);

// The block is no part of a step.
void tarn__steps_exclude(tarn_pool *pool, const tarn__pool_piece *piece);

#endif  // TARN_POOL_STEP_THREADS_H_
