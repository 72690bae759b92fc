// biased_lock.h - a lock that is cheap while one thread uses it: a pool's.
//
// A biased lock that a single thread uses for a while is owned by that thread,
// which enters and leaves by two plain stores, without a locked instruction or
// a fence. The first other thread pays: it revokes the ownership and has the
// kernel run a fence on every processor of the process (membarrier). From then
// on the lock is a short lock, until one thread again enters |wanted| times in
// a row; each revocation doubles |wanted|.
//
//             one thread, |wanted| times in a row
//   shared ────────────────────────────────────────► owned
//   (short) ◄──────────────────────────────────────  (stores of one thread)
//             another thread comes
//
// Invariants:
//   * |owner| changes only with the short lock held, and to a slot only by the
//     thread that has that slot
//   * the holder of the short lock is inside once it has revoked the ownership,
//   if
//     there was one, and the owner is not inside
//   * a thread is inside at most one lock as its owner: its slot names it
#ifndef TARN_BASE_BIASED_LOCK_H_
#define TARN_BASE_BIASED_LOCK_H_

#include <stdatomic.h>

#include "base/short_lock.h"
#include "tarn/base.h"

typedef struct tarn__biased_lock tarn__biased_lock;

// The part of an owning thread that other threads read. A slot is never freed.
// When its thread ends, another thread inherits it with the locks it owns.
typedef struct tarn__owner_slot {
  _Atomic(const tarn__biased_lock *) inside;  // as its owner; NULL: none. One
                                              // that there is not: a callback
  atomic_bool taken;
} tarn__owner_slot;

struct tarn__biased_lock {
  // Read by each thread that comes, and by threads that need no lock.
  _Atomic(const tarn__owner_slot *) owner;  // tarn__biased_lock_unowned: shared
  char apart[64];
  tarn__short_lock shared;  // guards all below, and a change of owner
  const void *last;         // the thread that entered last
  uint32_t streak;          // how often it has entered in a row
  uint32_t wanted;          // the streak that makes it the owner
};

extern const tarn__owner_slot tarn__biased_lock_unowned;

// The slot of this thread; NULL until it owns a lock.
extern _Thread_local tarn__owner_slot *tarn__biased_lock_slot
    __attribute__((tls_model("initial-exec")));

void tarn__biased_lock_init(tarn__biased_lock *lock);

// Entering and leaving through the short lock.
void tarn__biased_lock_enter_shared(tarn__biased_lock *lock);
void tarn__biased_lock_leave_shared(tarn__biased_lock *lock);

static inline bool tarn__biased_lock_is_mine(const tarn__biased_lock *lock,
                                             const tarn__owner_slot *slot) {
  return atomic_load_explicit(&lock->owner, memory_order_relaxed) == slot;
}

// Stores "inside" first and then checks the ownership again. A revoking thread
// stores the new owner, runs a fence on all processors and then reads "inside":
// one of the two sees the store of the other. On this side only the compiler
// has to be kept from reordering.
static inline bool tarn__biased_lock_enter_owned(const tarn__biased_lock *lock,
                                                 tarn__owner_slot *slot) {
  if (atomic_load_explicit(&slot->inside, memory_order_relaxed) != NULL) {
    return false;
  }
  atomic_store_explicit(&slot->inside, lock, memory_order_release);
  atomic_signal_fence(memory_order_seq_cst);
  if (tarn__biased_lock_is_mine(lock, slot)) return true;
  atomic_store_explicit(&slot->inside, NULL, memory_order_release);
  return false;
}

// Enters without the short lock; NULL if this thread does not own the lock. A
// child of fork owns no lock of its parent.
static inline tarn__owner_slot *tarn__biased_lock_try(tarn__biased_lock *lock) {
  tarn__owner_slot *slot = tarn__biased_lock_slot;
  bool entered = tarn__biased_lock_is_mine(lock, slot) &&
                 tarn__biased_lock_enter_owned(lock, slot);
  return entered ? slot : NULL;
}

// Around a callback of a stream. Meanwhile the thread enters no lock as its
// owner, so whoever has entered so need not ask for tarn__callbacks_running.
void tarn__callback_begin(void);
void tarn__callback_end(void);

// Leaves after tarn__biased_lock_try, which returned |slot|.
static inline void tarn__biased_lock_leave_owned(tarn__owner_slot *slot) {
  atomic_store_explicit(&slot->inside, NULL, memory_order_release);
}

// Not recursive.
static inline void tarn__biased_lock_enter(tarn__biased_lock *lock) {
  if (tarn__biased_lock_try(lock) == NULL) tarn__biased_lock_enter_shared(lock);
}

static inline void tarn__biased_lock_leave(tarn__biased_lock *lock) {
  tarn__owner_slot *slot = tarn__biased_lock_slot;
  if (slot != NULL &&
      atomic_load_explicit(&slot->inside, memory_order_relaxed) == lock) {
    atomic_store_explicit(&slot->inside, NULL, memory_order_release);
  } else {
    tarn__biased_lock_leave_shared(lock);
  }
}

// Leaves, waits for news that are told inside the lock, and enters again. There
// may be none, and other threads may have been inside meanwhile: check what was
// waited for.
void tarn__biased_lock_wait(tarn__biased_lock *lock, tarn__news *news);

// In a child of fork: whether a thread of the parent was inside, or entering.
bool tarn__biased_lock_is_held(tarn__biased_lock *lock);

#endif  // TARN_BASE_BIASED_LOCK_H_
