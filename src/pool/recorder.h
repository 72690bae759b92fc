// recorder.h - the recent requests of a pool, and whether they repeat.
//
// A program that trains a net asks for the same blocks in the same order in
// each of its steps. The recorder keeps the last requests and frees, and finds
// the least number of them after which they repeat:
//
//   a+ b+ b- c+ a- c-  a+ b+ b- c+ a- c-  a+ b+ b- c+ ...
//   └─ one step ─────┘ └─ the same again ┘
//        period 6       seen again for as long as |evidence| says
//
// Where steps of several kinds take turns, none may follow itself. Then the
// caller marks where steps begin, and what has come between two marks before is
// a step:
//
//   ┆ a+ b+ b- a- ┆ c+ d+ d- c- ┆ e+ e- ┆ a+ b+ b- a- ┆
//   mark                                 the first again
//
// A free by another thread than the one that took the block is no event. How
// late it came is kept beside the request.
//
// A free says how many events ago its block was taken, so steps whose blocks
// outlive them repeat as well.
//
// Guarded by the pool's lock.
#ifndef TARN_POOL_RECORDER_H_
#define TARN_POOL_RECORDER_H_

#include "tarn/pool.h"

// A request, as asked for.
typedef struct tarn__pool_note {
  uint64_t serial;  // of the stream
  size_t size;
  size_t align;
  tarn_tag tag;
} tarn__pool_note;

// An event. Two of them share a line of the cache.
typedef struct tarn__pool_heard {
  uint32_t key;     // the same for events that are the same
  uint32_t lost;    // of a request: the how manieth of those whose blocks other
                    // threads freed
  uint64_t serial;  // of the stream
  size_t size;      // as asked for, of frees too
  uint32_t back;    // of a free: so many events ago its block was taken; of a
                    // request: so many events later another thread freed its
                    // block, 0: none did
  uint16_t tag;     // of a request, as is the next
  uint8_t align;    // 0 as asked for, or the exponent of two and 1
  uint8_t flags;    // TARN__HEARD_...
} tarn__pool_heard;

enum {
  TARN__HEARD_FREE = 1,
  TARN__HEARD_EXCLUDED = 2,  // a request that no step has
};

static inline bool tarn__heard_is_request(const tarn__pool_heard *note) {
  return (note->flags & TARN__HEARD_FREE) == 0;
}

typedef struct tarn__pool_seen {
  uint32_t gram;  // of a few keys in a row: the upper half
  uint32_t at;    // the event that ended them last: the lower half
} tarn__pool_seen;

// A row of events between two marks.
typedef struct tarn__pool_told {
  uint64_t digest;
  uint64_t length;
  uint64_t times;  // that it has come; 0: there is none
} tarn__pool_told;

enum { TARN__TOLD = 32 };

typedef struct tarn__pool_recorder {
  tarn__pool_heard *notes;  // a ring; NULL: nothing was noted yet
  tarn__pool_seen *seen;    // by hash of the gram
  size_t room;              // of both: a power of two
  uint64_t first;           // the first event that counts
  uint64_t count;           // events so far, those before |first| included
  uint64_t gram;            // of the last events
  uint32_t lost;            // blocks that other threads freed
  uint64_t period;          // the present candidate; 0: none
  uint64_t matched;         // events in a row for which it has held
  uint64_t evidence;        // for how many it has to hold
  // At this |count|, the last |period| events are one step, with the fewest
  // live bytes at both its ends; 0: there is no period yet.
  uint64_t due;
  bool is_single;  // that step may not be the next as well
  uint64_t vain;   // events that were heard, less those that steps served
  uint64_t rest;   // events that are let pass: nothing was found for long
  uint64_t mark;  // the event that began the present step, where the caller has
                  // said so; UINT64_MAX: it has not
  size_t marked_live;                // bytes at that event
  tarn__pool_told told[TARN__TOLD];  // steps between two marks
  uint32_t next_told;                // that is overwritten next
} tarn__pool_recorder;

void tarn__recorder_deinit(tarn__pool_recorder *recorder);

// Forgets all events. |evidence|: the number of events that the next period
// needs; 0: the least.
void tarn__recorder_restart(tarn__pool_recorder *recorder, uint64_t evidence);

// Notes a request; returns the number by which tarn__recorder_free knows it.
uint64_t tarn__recorder_alloc(tarn__pool_recorder *recorder,
                              const tarn__pool_note *note);

// Notes the free of the block whose request had the number |taken|.
void tarn__recorder_free(tarn__pool_recorder *recorder, uint64_t taken,
                         uint64_t serial, size_t size);

// Another thread frees the block whose request had the number |taken|, which is
// no event of the row: threads do not keep an order among each other.
void tarn__recorder_lose(tarn__pool_recorder *recorder, uint64_t taken);

// How many events the block of event |i| of the step that ends now lived at
// most, that other threads freed, as far as the recorder remembers; 0: none
// did.
size_t tarn__recorder_lifetime(const tarn__pool_recorder *recorder, size_t i);

// The block whose request had the number |taken| is no part of a step.
void tarn__recorder_exclude(tarn__pool_recorder *recorder, uint64_t taken);

// A step may begin with the next event: little is live, |live| bytes. If as
// much was live at the last such call, and the events since then have come
// before between two calls, for as long as |evidence| says, they are a step
// that is due. |known|: the events of the longest known step; 0: none is known.
// What is less than half as long may be a part of a step, and the next such
// place is waited for.
void tarn__recorder_mark(tarn__pool_recorder *recorder, size_t live,
                         size_t known);

// Forgets what has come between marks.
void tarn__recorder_forget(tarn__pool_recorder *recorder);

// Whether it rests, and lets one event pass.
static inline bool tarn__recorder_let_pass(tarn__pool_recorder *recorder) {
  if (recorder->rest == 0) return false;
  recorder->rest--;
  return true;
}

// A step that was learned has served so many events.
static inline void tarn__recorder_earn(tarn__pool_recorder *recorder,
                                       size_t events) {
  recorder->vain -= events < recorder->vain ? events : recorder->vain;
}

// Whether the events up to now end a step that repeats.
static inline bool tarn__recorder_is_due(const tarn__pool_recorder *recorder) {
  return recorder->due != 0 && recorder->due == recorder->count;
}

// Event |i| of the step that ends now.
static inline const tarn__pool_heard *tarn__recorder_note(
    const tarn__pool_recorder *recorder, size_t i) {
  uint64_t at = recorder->count - recorder->period + i;
  return &recorder->notes[at & (recorder->room - 1)];
}

// The alignment that was asked for.
static inline size_t tarn__recorder_align(const tarn__pool_heard *note) {
  return note->align == 0 ? 0 : (size_t)1 << (note->align - 1);
}

#endif  // TARN_POOL_RECORDER_H_
