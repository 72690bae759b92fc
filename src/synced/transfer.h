// transfer.h - what has to be done before an access may have its bytes.
//
//   plan    what is missing and from where it comes (runs), what is to be
//           waited for (waits), and who does it (carriers); nothing changes
//   enter   the access, and the runs as uses, into the spans
//   carry   waits, zeros, copies, points: without the lock
//   commit  uses become positions in timelines, bytes valid
//
// Carriers. With a stream, copies are queued on it where its device can make
// them, else on a copy stream of the device that can, which waits for what the
// copy needs and which the stream waits for. Zeros, what no device copies, and
// all without a stream are done by the host, at once.
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

// Bytes that come from one side, or are to be zero.
typedef struct tarn__synced_load {
  size_t start;
  size_t end;
  uint32_t from;  // TARN__NO_SIDE: zeros
  uint32_t carrier;
  bool made;  // done, or queued
} tarn__synced_load;

// A stream that has to come to a position before carriers may go on.
typedef struct tarn__synced_wait {
  tarn__synced_timeline *timeline;
  uint64_t number;
  uint32_t carriers;          // bit i: carrier i
  uint32_t side;              // whose memory it is about
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
  tarn_access *access;  // NULL: nothing is to be open afterwards
  bool reads;
  bool writes;
  uint32_t side;
  uint64_t number;
  size_t valid_bytes;   // of the range, that are there already
  size_t moved_bytes;   // that are to be copied
  size_t most_writers;  // streams that are to write a source, in one span
  bool marked;          // points of waits are held
  bool worthless;       // a stream that was waited for has failed meanwhile
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
  uint64_t last_valid;  // of which |last_from| is the cheapest side
  uint32_t last_from;
  // Only as far as the counts say are they set.
  tarn__synced_load few_runs[TARN__FEW];
  tarn__synced_wait few_waits[TARN__FEW];
  tarn__synced_carrier carriers[TARN__MOST_CARRIERS];
  tarn__synced_end ends[TARN__MOST_SIDES];
} tarn__synced_transfer;

void tarn__transfer_init(tarn__synced_transfer *transfer,
                         tarn__synced_core *core,
                         const tarn__synced_request *request,
                         tarn_access *access);

// Without the lock: frees what it has, and tells the trace for how long it
// slept.
void tarn__transfer_deinit(tarn__synced_transfer *transfer);

// Does all of it, waits and begins anew as often as need be. With the lock,
// which is left meanwhile. After TARN_OK the access is open; or, if there is
// none, the bytes are valid at the side.
TARN_MUST_CHECK tarn_status tarn__transfer_run(tarn__synced_transfer *transfer);

// --- its parts ---------------------------------------------------------------

// With the lock. TARN_PENDING: others are in the way, and will not be for ever:
// sleep, and plan anew.
//
// TARN_E_STATE  they are for as long as they like; or bytes are lost.
TARN_MUST_CHECK tarn_status
tarn__transfer_plan(tarn__synced_transfer *transfer);

// Lets go of what a plan holds, with what came of its waits. With the lock.
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

// Without the lock. TARN_PENDING: a stream that was waited for has failed;
// nothing was copied: plan anew.
//
// TARN_E_DEVICE, TARN_E_NOMEM, TARN_E_UNSUPPORTED  some runs were made.
TARN_MUST_CHECK tarn_status
tarn__transfer_carry(tarn__synced_transfer *transfer);

#endif  // TARN_SYNCED_TRANSFER_H_
