// transfer.h - the copies and waits that make an access possible.
//
//   plan    missing bytes and their sources (runs), streams to wait for
//           (waits), and carriers; changes nothing
//   enter   the access, and the runs as uses, into the spans
//   carry   waits, zeros, copies, points: without the lock
//   commit  uses become points in timelines, bytes become valid
//
// Carriers. With a stream, copies are queued on it if its device can make them,
// else on a copy stream of a device that can; the copy stream waits for the
// source, and the caller's stream for the copy stream. The host itself makes
// zeros, copies that no device can make, and all copies without a stream.
#ifndef TARN_SYNCED_TRANSFER_H_
#define TARN_SYNCED_TRANSFER_H_

#include "synced/access.h"
#include "synced/sides.h"
#include "synced/work.h"

enum {
  TARN__BY_HOST = 0,
  TARN__BY_STREAM = 1,
  TARN__FIRST_COPY_STREAM = 2,
  TARN__MOST_CARRIERS = 16,  // beyond, the host copies
  TARN__FEW = 8,             // runs and waits that take no memory
};

// A run of bytes to copy from one side, or to set to zero.
typedef struct tarn__synced_load {
  size_t start;
  size_t end;
  uint32_t from;  // TARN__NO_SIDE: zeros
  uint32_t carrier;
  bool made;  // done, or queued
} tarn__synced_load;

// A point that carriers must wait for.
typedef struct tarn__synced_wait {
  tarn__synced_timeline *timeline;
  uint64_t number;
  uint32_t carriers;          // bit i: carrier i
  uint32_t side;              // the memory it protects
  tarn__synced_point *point;  // held, from the end of the plan on
  tarn_status status;
  uint64_t stalled_ns;  // that the host waited for it; 0: it did not
} tarn__synced_wait;

typedef struct tarn__synced_carrier {
  tarn_device *device;  // of a copy stream
  tarn__synced_copy_stream way;
  tarn_stream *stream;
  bool used;                       // copies were queued
  bool failed;                     // they are void
  tarn__synced_position position;  // behind them; timeline NULL: they are over
} tarn__synced_carrier;

typedef struct tarn__synced_transfer {
  tarn__synced_core *core;
  tarn__synced_request request;
  tarn_access *access;  // NULL: a prefetch
  bool reads;
  bool writes;
  uint32_t side;
  uint64_t number;
  size_t valid_bytes;   // of the range, valid before
  size_t moved_bytes;   // to be copied
  size_t most_writers;  // streams that write a source, at most, in one span
  bool marked;          // points of waits are held
  bool worthless;       // a stream to wait for has failed since
  bool again;           // a copy stream has failed once already
  uint64_t slept_ns;    // for other threads
  tarn__synced_load *runs;
  size_t run_count;
  size_t run_room;
  tarn__synced_wait *waits;
  size_t wait_count;
  size_t wait_room;
  size_t carrier_count;
  uint64_t ends_known;  // of |ends|, by bit
  uint64_t last_valid;  // the last |valid|: its cheapest side is |last_from|
  uint32_t last_from;
  // Set up to the counts only.
  tarn__synced_load few_runs[TARN__FEW];
  tarn__synced_wait few_waits[TARN__FEW];
  tarn__synced_carrier carriers[TARN__MOST_CARRIERS];
  tarn__synced_end ends[TARN__MOST_SIDES];
} tarn__synced_transfer;

// With the lock. TARN_PENDING: a conflict that ends by itself: sleep and plan
// again.
//
// TARN_E_STATE  a conflict with an open access; or bytes are lost.
TARN_MUST_CHECK tarn_status
tarn__transfer_plan(tarn__synced_transfer *transfer);

// Releases the points of a plan, with the results of its waits. With the lock.
void tarn__transfer_forget(tarn__synced_transfer *transfer);

// The cheapest of the sides in |valid|, which is not 0.
uint32_t tarn__transfer_source(tarn__synced_transfer *transfer, uint64_t valid);

// Tells the trace that the host waited. Without the lock.
void tarn__transfer_tell_stall(const tarn__synced_transfer *transfer,
                               uint64_t ns);

static inline bool tarn__transfer_has_work(
    const tarn__synced_transfer *transfer) {
  return transfer->run_count > 0 || transfer->wait_count > 0;
}

// Without the lock. TARN_PENDING: a stream to wait for has failed and nothing
// was copied: plan again.
//
// TARN_E_DEVICE, TARN_E_NOMEM, TARN_E_UNSUPPORTED  some runs were made.
TARN_MUST_CHECK tarn_status
tarn__transfer_carry(tarn__synced_transfer *transfer);

#endif  // TARN_SYNCED_TRANSFER_H_
