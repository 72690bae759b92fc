// Threads and their steps: which thread a request or a free is of, and which
// recorders hear it.
#include "pool/step_threads.h"

#include "base/hostmem.h"
#include "pool/statistics.h"

// Requests of all threads after which the place of one that has made none may
// be another's.
static const uint64_t LONG_GONE = 1 << 16;

// --- numbers ----------------------------------------------------------------

static bool is_gone(const tarn_pool *pool, const tarn__pool_step_thread *t) {
  return pool->threads.clock - t->last > LONG_GONE &&
         (t->steps == NULL || t->steps->cursor.layout == NULL);
}

// A place for this thread, perhaps that of one which is long gone.
static tarn__pool_step_thread *find_place(tarn_pool *pool) {
  tarn__pool_step_threads *threads = &pool->threads;
  if (threads->count < TARN__STEP_THREADS) {
    return &threads->of[threads->count++];
  }
  for (size_t i = 0; i < threads->count; i++) {
    tarn__pool_step_thread *t = &threads->of[i];
    if (!is_gone(pool, t)) continue;
    if (t->steps != NULL) tarn__steps_forget_own(pool, t->steps);
    return t;
  }
  return NULL;
}

// From the second thread on each has steps of its own, as far as there is host
// memory.
static void give_steps(tarn__pool_step_threads *threads) {
  for (size_t i = 0; threads->count > 1 && i < threads->count; i++) {
    tarn__pool_step_thread *t = &threads->of[i];
    if (t->steps != NULL) continue;
    t->steps = tarn__host_alloc(sizeof *t->steps);
    if (t->steps != NULL) tarn__steps_init(t->steps);
  }
}

static size_t take_number(tarn_pool *pool) {
  tarn__pool_step_threads *threads = &pool->threads;
  size_t number = tarn__step_thread_number(threads);
  threads->clock++;
  if (number == 0) {
    tarn__pool_step_thread *t = find_place(pool);
    if (t == NULL) return 0;
    t->self = tarn__step_thread_self();
    number = (size_t)(t - threads->of) + 1;
    give_steps(threads);
  }
  threads->of[number - 1].last = threads->clock;
  return number;
}

void tarn__step_threads_deinit(tarn__pool_step_threads *threads) {
  for (size_t i = 0; i < threads->count; i++) {
    tarn__pool_steps *steps = threads->of[i].steps;
    if (steps == NULL) continue;
    tarn__steps_deinit(steps);
    tarn__host_free(steps, sizeof *steps);
  }
}

// --- notes ------------------------------------------------------------------

// NULL: it does not listen.
static tarn__pool_recorder *listening(const tarn_pool *pool,
                                      tarn__pool_steps *steps) {
  bool common = steps == &pool->steps;
  if (steps == NULL || (common && pool->threads.apart)) return NULL;
  if (!common && pool->steps.cursor.layout != NULL) return NULL;
  return steps->cursor.layout == NULL ? &steps->recorder : NULL;
}

// The number of a request from its lower bits.
static uint64_t whole(const tarn__pool_recorder *recorder, uint32_t number,
                      unsigned bits) {
  uint64_t ago = (recorder->count - number) & ((UINT64_C(1) << bits) - 1);
  return recorder->count - ago;
}

enum { BITS = 32, OWN_BITS = 28 };

void tarn__steps_note(tarn_pool *pool, const tarn__pool_note *what,
                      tarn__pool_piece *piece) {
  if (pool->threads.count == 1 &&
      tarn__recorder_let_pass(&pool->steps.recorder)) {
    return;
  }
  size_t by = take_number(pool);
  tarn__pool_recorder *all = listening(pool, &pool->steps);
  tarn__pool_recorder *own = listening(pool, tarn__steps_of_number(pool, by));
  if (all != NULL) piece->noted = (uint32_t)tarn__recorder_alloc(all, what);
  if (own != NULL) {
    piece->noted_own = tarn__recorder_alloc(own, what) & ((1u << OWN_BITS) - 1);
  }
  if (piece->notes != 0) piece->by = (uint32_t)by & 15;
}

static void note_free(tarn__pool_recorder *recorder, uint64_t taken,
                      bool foreign, uint64_t serial, size_t size) {
  if (foreign) {
    tarn__recorder_lose(recorder, taken);
  } else {
    tarn__recorder_free(recorder, taken, serial, size);
  }
}

void tarn__steps_note_free(tarn_pool *pool, const tarn__pool_piece *piece,
                           uint64_t serial) {
  if ((pool->flags & TARN_POOL_DEFER) != 0) return;
  if (piece->noted == 0 && piece->noted_own == 0) return;
  bool foreign = tarn__step_thread_number(&pool->threads) != piece->by;
  tarn__pool_recorder *all = listening(pool, &pool->steps);
  tarn__pool_recorder *own =
      listening(pool, tarn__steps_of_number(pool, piece->by));
  if (all != NULL && piece->noted != 0) {
    note_free(all, whole(all, piece->noted, BITS), foreign, serial,
              piece->requested);
  }
  if (own != NULL && piece->noted_own != 0) {
    note_free(own, whole(own, piece->noted_own, OWN_BITS), foreign, serial,
              piece->requested);
  }
}

void tarn__steps_exclude(tarn_pool *pool, const tarn__pool_piece *piece) {
  if ((pool->flags & TARN_POOL_DEFER) != 0) return;
  tarn__pool_steps *own = tarn__steps_of_number(pool, piece->by);
  tarn__pool_recorder *all = &pool->steps.recorder;
  if (piece->noted != 0) {
    tarn__recorder_exclude(all, whole(all, piece->noted, BITS));
  }
  if (own != NULL && piece->noted_own != 0) {
    tarn__recorder_exclude(&own->recorder,
                           whole(&own->recorder, piece->noted_own, OWN_BITS));
  }
}
