// protect.h - pages of host memory that permit open accesses only, so that a
// pointer that was kept too long faults where it is used.
//
// The access of a page follows from its spans:
//
//   an open write at the host, or queued writes there       write
//   else valid bytes, or queued reads                       read
//   else                                                    none
//
// It is applied whenever the lock is left. Only memory of a pool is protected,
// which then has whole pages; outside memory may share its pages.
//
// Cost: O(pages + spans) whenever the lock is left, and a system call for each
// run of pages that changes; nothing for buffers without protection.
// Threads: with the lock, unless a comment says otherwise.
#ifndef TARN_SYNCED_PROTECT_H_
#define TARN_SYNCED_PROTECT_H_

#include "synced/core.h"

// Whether a buffer is protected, by the flags of tarn_synced_create, else by
// the environment, else by the kind of build. Without the lock.
bool tarn__protect_default(uint32_t flags);

// Rounds the size and alignment of memory for |core| at |place| to pages.
// False: overflow. Without the lock.
TARN_MUST_CHECK bool tarn__protect_round(const tarn__synced_core *core,
                                         tarn_place place, size_t *io_size,
                                         size_t *io_align);

// Prepares new memory from a pool; all accesses are still permitted. Without
// the lock.
//
// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__protect_begin(const tarn__synced_core *core,
                                                tarn__synced_side *io_memory);

// The counterpart: permits all accesses again, before the pool gets the memory.
// Without the lock. In a child of fork it only frees.
void tarn__protect_end(const tarn__synced_core *core,
                       const tarn__synced_side *memory);

// Permits writes of these bytes until the next call on the buffer
// (tarn__protect_tighten).
void tarn__protect_loosen(tarn__synced_core *core, size_t start, size_t end);

static inline void tarn__protect_tighten(tarn__synced_core *core) {
  core->loose_start = 0;
  core->loose_end = 0;
}

// Applies the protection, before the lock is left.
void tarn__protect_apply(tarn__synced_core *core);

static inline void tarn__protect_settle(tarn__synced_core *core) {
  if (core->sides[TARN__HOST_SIDE].pages != NULL) tarn__protect_apply(core);
}

#endif  // TARN_SYNCED_PROTECT_H_
