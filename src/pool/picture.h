// picture.h - what a pool holds, as of one moment, and the trace made of it.
//
//   lock │ take: blocks that are out, memory of the device, last events │
//   unlock
//   ──────────────────────────────────────────────────────────────────────────
//   trace: events in their order ─► what is held at the end ─► tarn_trace
//
// A picture has nothing of the pool's: that may go on, and end.
#ifndef TARN_POOL_PICTURE_H_
#define TARN_POOL_PICTURE_H_

#include "tarn/account.h"
#include "tarn/trace.h"

// A request that was refused just now.
typedef struct tarn__pool_refusal {
  size_t size;  // as asked for; of blocks that grow or wake what they lack
  uint64_t serial;
  tarn_tag tag;
  bool noted;  // where events are on, one tells of it
} tarn__pool_refusal;

typedef struct tarn__pool_picture_block {
  tarn_addr address;
  size_t size;  // as asked for
  uint64_t serial;
  tarn_tag tag;
} tarn__pool_picture_block;

// In the taker's struct.
typedef struct tarn__pool_picture {
  char name[96];     // of the trace
  char device[64];   // the name of the pool's
  uint64_t time_ns;  // 0: the pool's events have no times
  uint32_t thread;   // that has taken it
  tarn__pool_picture_block *blocks;
  size_t block_count;
  tarn_trace_segment *segments;
  size_t segment_count;
  tarn_pool_event *events;
  size_t event_count;
  uint64_t lost;     // events from before |events|
  bool has_refusal;  // which no event tells of
  tarn__pool_refusal refusal;
} tarn__pool_picture;

// Copies; the pool's lock is held, and stays so. |refusal|: what has just been
// refused; NULL: nothing. Free it with tarn__picture_deinit whatever the
// status.
//
// Memory that is on its way to or from the device at this moment may be missing
// or still be there.
//
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status
tarn__picture_take(tarn_pool *pool, const tarn__pool_refusal *refusal,
                   tarn__pool_picture *out);

// Makes the trace, once; no lock is held. Events of pages that stand nowhere
// get their places.
TARN_MUST_CHECK tarn_status tarn__picture_trace(tarn__pool_picture *picture,
                                                tarn_trace **out_trace);

void tarn__picture_deinit(tarn__pool_picture *picture);

#endif  // TARN_POOL_PICTURE_H_
