// protect.h - the pages of the host's memory allow what is open there and no
// more, so that a pointer that was kept too long faults where it is used.
//
// What a page allows follows from the spans that it touches:
//
//   a write is open at the host, or work is queued that writes there   write
//   else bytes are valid there, or work is queued that reads them       read
//   else                                                                none
//
// It is made so whenever the lock is left: nobody has to say what changed. Only
// memory of a pool is protected, which then has whole pages; outside memory may
// share pages with others.
//
// Cost: O(pages + spans) for each time that the lock is left, and a system call
// for each run of pages that changes; nothing for other buffers.
// Threads: with the lock, but for what says otherwise.
#ifndef TARN_SYNCED_PROTECT_H_
#define TARN_SYNCED_PROTECT_H_

#include "synced/core.h"

// What the flags of tarn_synced_create decide, or else the environment, or else
// how the library was built. Any thread, no lock.
bool tarn__protect_default(uint32_t flags);

// Makes whole pages of what memory at |place| is to be taken for |core|. False:
// more than can be. No lock.
TARN_MUST_CHECK bool tarn__protect_round(const tarn__synced_core *core,
                                         tarn_place place, size_t *io_size,
                                         size_t *io_align);

// Prepares memory that was taken from a pool, before anybody has it; all may be
// done with it still. No lock.
//
// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__protect_begin(const tarn__synced_core *core,
                                                tarn__synced_side *io_memory);

// The twin: all may be done with it again, and the pool may have it. No lock.
// In a child of fork it only frees.
void tarn__protect_end(const tarn__synced_core *core,
                       const tarn__synced_side *memory);

// A pointer to these bytes was given out that may be written through until the
// buffer is called again (tarn__protect_tighten).
void tarn__protect_loosen(tarn__synced_core *core, size_t start, size_t end);

static inline void tarn__protect_tighten(tarn__synced_core *core) {
  core->loose_start = 0;
  core->loose_end = 0;
}

// Makes pages what they are to be; before the lock is left.
void tarn__protect_apply(tarn__synced_core *core);

static inline void tarn__protect_settle(tarn__synced_core *core) {
  if (core->sides[TARN__HOST_SIDE].pages != NULL) tarn__protect_apply(core);
}

#endif  // TARN_SYNCED_PROTECT_H_
