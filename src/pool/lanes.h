// lanes.h - what each thread keeps of a pool that several threads use.
//
// While one thread uses a pool there are no lanes. When threads take turns,
// each of them gets one: the blocks that it frees stay with it, up to a bound
// in bytes, and serve its next requests of their size without the pool's lock.
//
//   thread 1   lane ─► idle pieces by size      inbox ◄─┐ freed by others
//   thread 2   lane ─► idle pieces by size      inbox   │
//                └───► parcel for lane 1 ───────────────┘ one exchange a parcel
//   pool       lock ─► strategy, index, statistics
//
// A block's home is the lane of the thread that it was first served to. Only a
// plain block of up to TARN__LANE_LARGEST bytes has one: the host's, of the
// present strategy, used by no stream, not asleep, not followed by a step.
//
// The gate. A thread enters its own lane by one plain store and leaves by
// another. Who wants to read what a lane has counted, or to empty it, holds the
// pool's lock, closes the lanes, has the kernel run a fence on each processor
// of the process, and waits until no owner is inside. An owner that finds its
// lane closed takes the pool's lock instead, and opens the lane again.
//
//   owner    inside = true; closed? ──no──► serve; inside = false
//                             └──yes─► inside = false; the pool's lock
//   closer   closed = true; fence; wait until !inside; read, empty
//
// tests/models/lanes.pml models it.
//
// What a lane serves is counted there, and added to the pool's statistics when
// they are read and whenever its owner holds the pool's lock. Until then the
// live bytes include what the lane has leased, in full: by so much it may raise
// them. So peaks are an upper bound, too high by two leases at most, since a
// lane settles when it has freed as much.
//
// Invariants:
//   * |closed| and |owner| change only with the pool's lock held
//   * all but these, |inside| and the inbox is the owner's while it is inside,
//     the lock holder's while the lane is closed, and the owner's while it
//     holds the lock
//   * an idle piece of a lane is one of its strategy's live pieces, and no
//     block's
//   * idle pieces take at most |most| bytes in the bins, and as many in the
//     inbox and a parcel for it from each other thread: then the owner, or who
//     sends a parcel, gives some back
#ifndef TARN_POOL_LANES_H_
#define TARN_POOL_LANES_H_

#include <stdatomic.h>

#include "pool/piece.h"
#include "pool/recorder.h"
#include "tarn/pool.h"

enum {
  TARN__LANE_LARGEST = (1 << 20) - 1,  // bytes of a block that may have a home
  TARN__LANES_MOST = 255,              // of a pool; other threads use the lock
  TARN__LANE_TAGS = 4,                 // that a lane counts at a time
  // Idle pieces lie in bins by size: those of less than 32 units by the unit,
  // larger ones in 16 bins for each power of two.
  TARN__LANE_UNIT = 512,
  TARN__LANE_BINS = 32 + 6 * 16,
  TARN__PARCEL_PIECES = 16,
};

// Pieces linked by |next|.
typedef struct tarn__pool_parcel {
  tarn__pool_piece *first;
  tarn__pool_piece *last;
  size_t count;
  size_t bytes;
} tarn__pool_parcel;

typedef struct tarn__pool_lane_tag {
  tarn_tag tag;
  bool used;
  size_t bytes;  // added since the last settlement; these wrap around
  size_t blocks;
} tarn__pool_lane_tag;

typedef struct tarn__pool_lane {
  // Read and written by each request of the owner.
  atomic_bool inside;
  atomic_bool closed;
  uint8_t number;  // from 1
  bool counts_tags;
  tarn__pool_strategy *strategy;  // whose pieces it keeps
  size_t leased;    // bytes by which live bytes may rise until the settlement
  size_t lease;     // what is left of them
  size_t idle;      // bytes of idle pieces in the bins
  size_t most;      // of them
  uint64_t allocs;  // since the settlement, as are the next two
  uint64_t frees;
  tarn__pool_lane_tag tags[TARN__LANE_TAGS];
  tarn__pool_parcel parcel;  // for the lane |to|
  uint8_t to;
  unsigned next_bin;  // that is emptied
  const void *owner;  // a thread's seats; NULL: no thread has it
  tarn__pool_piece *bins[TARN__LANE_BINS];

  char apart[64];
  // Read and written by other threads.
  _Atomic(tarn__pool_piece *) inbox;  // linked by |next|
  atomic_size_t inbox_bytes;
  atomic_bool owned;
  char apart_too[64];
} tarn__pool_lane;

// A pool's. All but |by_number| and |share| is guarded by its lock.
typedef struct tarn__pool_lanes {
  char apart[64];
  // Read by threads that need no lock.
  _Atomic(tarn__pool_lane *) by_number[TARN__LANES_MOST + 1];
  atomic_size_t share;  // the bound of each lane's idle bytes
  char apart_too[64];
  size_t count;  // lanes that were made
  size_t owned;  // of them, a thread's
  size_t open;
  size_t leased;       // the sum over all lanes; part of live_bytes
  size_t leased_most;  // twice the most that there ever was: by how much peaks
                       // may be too high
  bool begun;          // threads take turns
  const void *last;    // the thread that had the last turn
  uint64_t last_at;    // how many requests there were until then
  unsigned turns;      // close to each other
} tarn__pool_lanes;

// Where this thread finds its lanes of a few pools.
typedef struct tarn__pool_seat {
  const tarn_pool *pool;
  tarn__pool_lane *lane;
  unsigned epoch;
} tarn__pool_seat;

enum { TARN__SEATS = 4 };

extern _Thread_local tarn__pool_seat tarn__seats[TARN__SEATS]
    __attribute__((tls_model("initial-exec")));

// Counts up when a pool ends and in a child of fork: earlier seats are void.
extern atomic_uint tarn__seats_epoch;

static inline tarn__pool_seat *tarn__seat_for(const tarn_pool *pool) {
  return &tarn__seats[((uintptr_t)pool >> 6) % TARN__SEATS];
}

// Whether this thread has a lane of |pool|, open or closed.
static inline bool tarn__lane_is_here(const tarn_pool *pool) {
  const tarn__pool_seat *seat = tarn__seat_for(pool);
  return seat->lane != NULL && seat->pool == pool &&
         seat->epoch ==
             atomic_load_explicit(&tarn__seats_epoch, memory_order_relaxed);
}

// --- one lane ---------------------------------------------------------------

typedef enum tarn__pool_gift {
  TARN__LANE_REFUSED,
  TARN__LANE_TAKEN,
  TARN__LANE_FULL,  // taken, and some lane has more than its share now, or
                    // has too much to count: tarn__lanes_relieve
} tarn__pool_gift;

// Serves a request of the host's, without the pool's lock, from the lane of
// this thread. False: it has none, or the lane cannot.
bool tarn__lane_take(tarn_pool *pool, const tarn__pool_note *what,
                     tarn_block *out_block);

// Frees the block |generation| of |piece|, without the pool's lock, into the
// lane of this thread, or into the parcel for the block's home. Refused: there
// is no lane, or the block has no home, or not this generation, or another
// thread has freed it.
tarn__pool_gift tarn__lane_give(tarn_pool *pool, tarn__pool_piece *piece,
                                uint32_t generation);

// 0: NULL.
static inline uint8_t tarn__lane_number(const tarn__pool_lane *lane) {
  return lane != NULL ? lane->number : 0;
}

// Serves a request from a lane that is the caller's.
bool tarn__lane_serve(tarn_pool *pool, tarn__pool_lane *lane,
                      const tarn__pool_note *what, tarn_block *out_block);

// Of a lane that is the caller's: puts what is in the inbox into the bins;
// sends the parcel off; takes a piece out of some bin, NULL if all are empty.
void tarn__lane_unpack(tarn__pool_lane *lane);
void tarn__lane_send(tarn_pool *pool, tarn__pool_lane *lane);
tarn__pool_piece *tarn__lane_drop(tarn__pool_lane *lane);

// What is in the inbox of any lane, which is empty then.
tarn__pool_piece *tarn__lane_clear_inbox(tarn__pool_lane *lane);

// --- the lanes of a pool ----------------------------------------------------
//
// The pool's lock is held.

// A thread makes a request or frees a block that may have a home. Whether lanes
// have begun.
bool tarn__lanes_turn(tarn_pool *pool);

// The lane of this thread, which is watched: open, settled, within its share,
// with a new lease, and counting |tag|. NULL: the pool can have no lanes now,
// all are others', or there is no host memory.
tarn__pool_lane *tarn__lanes_open(tarn_pool *pool, tarn_tag tag);

// Gives back what lanes have beyond their share. The lock is not held.
void tarn__lanes_relieve(tarn_pool *pool);

// Closes all lanes, and adds what they have counted to the statistics. If none
// is open it costs nothing, else some microseconds.
void tarn__lanes_close(tarn_pool *pool);

// The same, and all their idle pieces go back to the strategy. False: none was
// open or had any.
bool tarn__lanes_empty(tarn_pool *pool);

// The lane of |owner|, if there is one, is no thread's any more, and empty.
void tarn__lanes_retire(tarn_pool *pool, const void *owner);

// The same for all but |owner|'s: in a child of fork, where their threads are
// not.
void tarn__lanes_retire_others(tarn_pool *pool, const void *owner);

// How many pieces are idle in lanes, which are closed.
size_t tarn__lanes_count_idle(const tarn_pool *pool);

// Frees the host memory. No thread uses the pool any more.
void tarn__lanes_deinit(tarn_pool *pool);

// --- threads ----------------------------------------------------------------

// Only a watched thread gets lanes: they are retired when it ends. The first
// call watches this one. False: not possible, or it is ending.
bool tarn__seats_watch(void);

extern _Thread_local bool tarn__seats_watched
    __attribute__((tls_model("initial-exec")));

static inline bool tarn__seats_are_watched(void) {
  return tarn__seats_watched || tarn__seats_watch();
}

#endif  // TARN_POOL_LANES_H_
