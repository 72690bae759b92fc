// sieve.h - which rows of a table are in which lines of a cache.
//
//   tarn__cache_sieve *sieve;
//   tarn__sieve_create(&(tarn__cache_sieve_options){.keys = rows, .lines =
//   4096},
//                      &sieve);
//   batch.count = ...; batch.keys[i] = ...;
//   tarn__sieve_find(sieve, &batch, TARN__SIEVE_MAKE_ROOM);
//   ... batch.found[i], batch.lines[i] ...
//   tarn__sieve_leave(sieve, &batch, false);
//
//   reading = tarn__sieve_read(sieve, &batch);     // cheaper, for hits only
//   ... batch.lines[i] ...
//   tarn__sieve_read_end(sieve, reading);
//
// A key is the number of a row. Lines are numbers below options.lines; the
// memory behind them is the owner's, wherever it is, and is never touched here.
// So the owner asks for the lines of its rows, and then moves rows by the
// numbers of lines.
//
// Replacement: SIEVE. A hit sets a bit, and moves nothing. Lines are in sets of
// 16, each of which is a SIEVE of its own; a key belongs to one set. On Zipf
// 1.05 they miss as seldom as one SIEVE over all lines. But since keys are
// spread over the sets by chance, a cache with as many lines as there are keys
// does not hold all of them; one with twice as many does, but for a few in a
// thousand.
//
//              find                 filled
//   (no key) ───────► TO_FILL ─────────────► clean ◄─────────────┐
//      ▲                 │                    │ ▲                │ written
//      ├──filled, false──┘           leave,   │ │ find: another  │
//      │                             dirty    ▼ │ key takes it   │
//      └──────────drop──────────────────────dirty ───────────► being written
//                                               find: TO_WRITE,
//                                               or take_dirty
//
// A line that find or take_dirty returns is pinned: it keeps its row until each
// pin is gone. A read pins nothing: lines may lose their keys meanwhile, but
// whoever finds one TO_FILL waits first until reads that may use it have ended.
// So reads are short, and within one no other function is called.
//
// Whoever waits here for others holds no line that these might
// wait for: fill or give up what is TO_FILL, and write what is TO_WRITE, before
// tarn__sieve_await and tarn__sieve_await_written; and leave the batch before
// tarn__sieve_await_room.
//
// The bytes in a line are the owner's matter: two threads that use one row at a
// time, one of which changes it, exclude each other as they would without a
// cache. But whoever makes room writes rows that nobody has told it of: so who
// changes a line awaits its writing first, tarn__sieve_await_written. What a
// line holds when it is filled is seen by those who find it.
//
// Cost:    a cache miss for each key of a batch, several of which overlap. A
//          find has another one, and a leave.
// Threads: all functions but create and destroy from any thread. Sets are dealt
//          out to shards, each of which has a lock that is held for a part of a
//          batch. tests/models/sieve.pml models what happens between them.
// Memory:  tarn__sieve_bytes, about 9 bytes a line, all from create on.
#ifndef TARN_CACHE_SIEVE_H_
#define TARN_CACHE_SIEVE_H_

#include "tarn/base.h"

typedef struct tarn__cache_sieve tarn__cache_sieve;

enum {
  TARN__SIEVE_WAYS = 16,    // lines of a set
  TARN__SIEVE_BATCH = 512,  // most keys of a batch
};

typedef struct tarn__cache_sieve_options {
  uint64_t keys;  // all keys are below; at least 1
  size_t lines;   // a multiple of 16, at least 16, at most 2^31 - 16
  size_t shards;  // at most so many; a power of two up to 256. 0: 16
} tarn__cache_sieve_options;

// The bytes that create takes.
size_t tarn__sieve_bytes(const tarn__cache_sieve_options *options);

// The most lines of |line_size| bytes that fit into |budget| bytes together
// with what create takes; 0: less than 16. |shards| as in the options.
size_t tarn__sieve_fit(size_t budget, size_t line_size, size_t shards);

// TARN_E_INVALID      an option is not as above.
// TARN_E_UNSUPPORTED  so many keys for so few lines, which may be from 2^24 for
//                     a line on; or so many of both, from 2^66 on when
//                     multiplied.
// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__sieve_create(
    const tarn__cache_sieve_options *options, tarn__cache_sieve **out_sieve);

// No line is pinned. NULL is allowed.
void tarn__sieve_destroy(tarn__cache_sieve *sieve);

// ---------------------------------------------------------------------------
// Keys to lines
// ---------------------------------------------------------------------------

typedef enum tarn__cache_sieve_found {
  // Not in a line, and no line can be had now: its set is full of pins. Or room
  // was not to be made. No pin.
  TARN__SIEVE_ABSENT,
  // In the line. Pinned.
  TARN__SIEVE_THERE,
  // Somebody else, or an earlier key of the batch, fills the line. Pinned; see
  // tarn__sieve_await.
  TARN__SIEVE_AWAITED,
  // The line is the key's from now on. Pinned; the caller fills it, and calls
  // tarn__sieve_filled.
  TARN__SIEVE_TO_FILL,
  // Not in a line. The line is the next to go, but dirty. The caller writes its
  // row, tarn__sieve_key, calls tarn__sieve_written, and finds again. Pinned
  // for that.
  TARN__SIEVE_TO_WRITE,
} tarn__cache_sieve_found;

// Up to TARN__SIEVE_BATCH keys, and what has become of them. A key may be there
// several times.
typedef struct tarn__cache_sieve_batch {
  size_t count;
  uint64_t keys[TARN__SIEVE_BATCH];
  uint32_t lines[TARN__SIEVE_BATCH];  // UINT32_MAX: ABSENT
  uint8_t found[TARN__SIEVE_BATCH];
  size_t tally[TARN__SIEVE_TO_WRITE + 1];  // keys that were found so
  // The sieve's.
  uint32_t sets[TARN__SIEVE_BATCH];
  uint32_t words[TARN__SIEVE_BATCH];
  uint16_t order[TARN__SIEVE_BATCH];  // by shard
  uint16_t ends[256];                 // of each shard, in |order|
} tarn__cache_sieve_batch;

// Looks up which keys of |batch| are in lines that can be read: |lines|, and
// the tally of THERE; not |found|. Begins a read, which ends with
// tarn__sieve_read_end of the answer.
unsigned tarn__sieve_read(tarn__cache_sieve *sieve,
                          tarn__cache_sieve_batch *batch);
void tarn__sieve_read_end(tarn__cache_sieve *sieve, unsigned reading);

// Gives lines to keys that are in none. Otherwise they are ABSENT.
#define TARN__SIEVE_MAKE_ROOM (1u << 0)

// The same, but only lines that have no key.
#define TARN__SIEVE_FREE_ROOM (1u << 1)

// Looks all keys of |batch| up, which are below options.keys. Waits for nothing
// but reads.
void tarn__sieve_find(tarn__cache_sieve *sieve, tarn__cache_sieve_batch *batch,
                      uint32_t flags);

// Unpins all that is THERE, AWAITED or TO_FILL, which was filled or given up.
// |dirty|: the caller has changed these rows. They are ABSENT now.
void tarn__sieve_leave(tarn__cache_sieve *sieve, tarn__cache_sieve_batch *batch,
                       bool dirty);

// Unpins one line that is as above; |dirty| likewise.
void tarn__sieve_let_go(tarn__cache_sieve *sieve, uint32_t line, bool dirty);

// Ends the filling of lines, which stay pinned. With |ok| they have their rows;
// without they lose their keys, and those who await them are told.
void tarn__sieve_filled(tarn__cache_sieve *sieve, const uint32_t *lines,
                        size_t count, bool ok);

// Waits until |line|, which is pinned, is filled. False: it was given up;
// leave, and find again.
TARN_MUST_CHECK bool tarn__sieve_await(tarn__cache_sieve *sieve, uint32_t line);

// Waits while |line|, which is pinned, is written. After that an eviction does
// not write it, since it is pinned; tarn__sieve_take_dirty may.
void tarn__sieve_await_written(tarn__cache_sieve *sieve, uint32_t line);

// Waits while each line of the set of |key| is pinned.
void tarn__sieve_await_room(tarn__cache_sieve *sieve, uint64_t key);

// Takes the key out of its line, if it is in one, and what was changed there is
// lost. Where it is pinned, those who have found it keep the line, also while
// it is filled; who looks for the key later does not find it.
void tarn__sieve_drop(tarn__cache_sieve *sieve, uint64_t key);
void tarn__sieve_drop_all(tarn__cache_sieve *sieve);

// ---------------------------------------------------------------------------
// Dirty lines
// ---------------------------------------------------------------------------

typedef struct tarn__cache_sieve_line {
  uint64_t key;
  uint32_t line;
} tarn__cache_sieve_line;

// The key of |line|, which is pinned. False: it was dropped.
TARN_MUST_CHECK bool tarn__sieve_key(tarn__cache_sieve *sieve, uint32_t line,
                                     uint64_t *out_key);

// Takes the dirty lines of the |most| lowest keys that are at least |from|, in
// ascending order, to be written; returns how many. They are pinned, and are
// found as before; who changes one meanwhile makes it dirty again. 0: none is
// dirty, but for those that are being written.
//
// Cost: a pass over all lines.
size_t tarn__sieve_take_dirty(tarn__cache_sieve *sieve, uint64_t from,
                              tarn__cache_sieve_line *out, size_t most);

// Takes the line of |key| to be written, as above. False: it is in none, or
// that is clean, or being written.
TARN_MUST_CHECK bool tarn__sieve_take(tarn__cache_sieve *sieve, uint64_t key,
                                      uint32_t *out_line);

// Ends the writing of a line, and unpins it. Without |ok| it is dirty again.
void tarn__sieve_written(tarn__cache_sieve *sieve, uint32_t line, bool ok);

// ---------------------------------------------------------------------------
// Statistics
// ---------------------------------------------------------------------------

typedef struct tarn__cache_sieve_tally {
  uint64_t hits;       // THERE
  uint64_t joined;     // AWAITED
  uint64_t fills;      // TO_FILL
  uint64_t evictions;  // lines that got another key
  uint64_t written;    // lines
  size_t used;         // lines that have a key
  size_t dirty;        // lines, those that are being written too
} tarn__cache_sieve_tally;

// Each shard's numbers are of one moment.
void tarn__sieve_count(tarn__cache_sieve *sieve, tarn__cache_sieve_tally *out);

// Walks the sieve; the text of what is wrong, or NULL. For tests, while no
// other thread uses it.
const char *tarn__sieve_check(const tarn__cache_sieve *sieve);

#endif  // TARN_CACHE_SIEVE_H_
