// Biased locks: slots of owners, ownership and its revocation.
//
// Slots are static, as many as threads can own locks at a time, so that a
// thread which revokes the ownership of one that has ended still finds its
// slot. A thread that inherits a slot owns the locks left on it: the work of
// the former thread inside them happened before the slot was released, and so
// before it was acquired again.
#include "base/biased_lock.h"

#include <pthread.h>

#include "base/os.h"
#include "base/status.h"

enum {
  SLOTS = 256,
  CACHE_LINE = 64,
  FIRST_WANTED = 64,
  MOST_WANTED = 1 << 20,
};

const tarn__owner_slot tarn__biased_lock_unowned = {.inside = NULL};
_Thread_local tarn__owner_slot *tarn__biased_lock_slot
    __attribute__((tls_model("initial-exec")));

// --- slots -----------------------------------------------------------------

typedef struct padded_slot {
  _Alignas(CACHE_LINE) tarn__owner_slot slot;  // owners write them all the time
} padded_slot;

static padded_slot slots[SLOTS];

static struct {
  pthread_once_t once;
  pthread_key_t key;  // its destructor leaves the thread's slot
  bool usable;
} at_exit = {.once = PTHREAD_ONCE_INIT};

static void leave_slot(void *pointer) {
  tarn__owner_slot *slot = pointer;
  tarn__biased_lock_slot = NULL;
  // The thread may have ended in a callback.
  atomic_store_explicit(&slot->inside, NULL, memory_order_relaxed);
  atomic_store_explicit(&slot->taken, false, memory_order_release);
}

static void make_key(void) {
  at_exit.usable = pthread_key_create(&at_exit.key, leave_slot) == 0;
}

// In a child of fork the slots below are the parent's, with the locks on them.
// Their |inside| still tells whether the fork interrupted an owner.
static size_t first_slot;
static atomic_size_t end_of_used;  // slots from here on were never taken

static void leave_slots_to_the_parent(void) {
  first_slot = atomic_load_explicit(&end_of_used, memory_order_relaxed);
  tarn__biased_lock_slot = NULL;
}

TARN__WATCH_FORKS_LAST static void watch_forks(void) {
  pthread_atfork(NULL, NULL, leave_slots_to_the_parent);
}

static void raise_end_of_used(size_t end) {
  size_t was = atomic_load_explicit(&end_of_used, memory_order_relaxed);
  while (was < end && !atomic_compare_exchange_weak_explicit(
                          &end_of_used, &was, end, memory_order_relaxed,
                          memory_order_relaxed))
    continue;
}

static tarn__owner_slot *take_free_slot(void) {
  for (size_t i = first_slot; i < SLOTS; i++) {
    atomic_bool *taken = &slots[i].slot.taken;
    bool free = !atomic_load_explicit(taken, memory_order_relaxed) &&
                !atomic_exchange_explicit(taken, true, memory_order_acquire);
    if (!free) continue;
    raise_end_of_used(i + 1);
    return &slots[i].slot;
  }
  return NULL;
}

static bool take_slot(void) {
  if (tarn__biased_lock_slot != NULL) return true;
  pthread_once(&at_exit.once, make_key);
  if (!at_exit.usable) return false;
  tarn__owner_slot *slot = take_free_slot();
  if (slot == NULL) return false;
  if (pthread_setspecific(at_exit.key, slot) != 0) {
    atomic_store_explicit(&slot->taken, false, memory_order_release);
    return false;
  }
  tarn__biased_lock_slot = slot;
  return true;
}

// --- ownership -------------------------------------------------------------

// Doubles |wanted|, also after a failure to own, so that it is not retried at
// each call.
static void want_more(tarn__biased_lock *lock) {
  if (lock->wanted < MOST_WANTED) lock->wanted *= 2;
  lock->streak = 0;
}

static void give_to_caller(tarn__biased_lock *lock) {
  bool can = tarn__callbacks_running == 0 && tarn__os_can_fence_threads() &&
             take_slot();
  if (can) {
    lock->streak = 0;
    atomic_store_explicit(&lock->owner, tarn__biased_lock_slot,
                          memory_order_relaxed);
  } else {
    want_more(lock);
  }
}

static void wait_until_out(const tarn__biased_lock *lock,
                           const tarn__owner_slot *owner) {
  for (unsigned i = 0;
       atomic_load_explicit(&owner->inside, memory_order_acquire) == lock; i++)
    tarn__os_back_off(i);
}

// Called with the short lock held.
static void revoke(tarn__biased_lock *lock) {
  const tarn__owner_slot *owner =
      atomic_load_explicit(&lock->owner, memory_order_relaxed);
  if (owner == &tarn__biased_lock_unowned) return;
  atomic_store_explicit(&lock->owner, &tarn__biased_lock_unowned,
                        memory_order_relaxed);
  want_more(lock);
  // The caller is the owner, and inside another lock.
  if (owner == tarn__biased_lock_slot) return;
  tarn__os_fence_threads();
  wait_until_out(lock, owner);
}

// --- entering and leaving --------------------------------------------------

void tarn__biased_lock_init(tarn__biased_lock *lock) {
  *lock = (tarn__biased_lock){.wanted = FIRST_WANTED};
  atomic_init(&lock->owner, &tarn__biased_lock_unowned);
}

void tarn__biased_lock_enter_shared(tarn__biased_lock *lock) {
  tarn__short_lock_enter(&lock->shared);
  revoke(lock);
}

void tarn__biased_lock_leave_shared(tarn__biased_lock *lock) {
  const void *self = &tarn__biased_lock_slot;  // another for every thread
  lock->streak = lock->last == self ? lock->streak + 1 : 1;
  lock->last = self;
  if (lock->streak >= lock->wanted) give_to_caller(lock);
  tarn__short_lock_leave(&lock->shared);
}

void tarn__biased_lock_wait(tarn__biased_lock *lock, tarn__news *news) {
  uint32_t number = tarn__news_number(news);
  tarn__biased_lock_leave(lock);
  tarn__news_await(news, number);
  tarn__biased_lock_enter(lock);
}

// --- callbacks -------------------------------------------------------------

// A thread that is inside this can enter no other lock as its owner. Nobody has
// it, so nobody waits for the thread to leave.
static const tarn__biased_lock in_callback;

static void exchange_inside(const tarn__biased_lock *from,
                            const tarn__biased_lock *to) {
  tarn__owner_slot *slot = tarn__biased_lock_slot;
  if (slot != NULL &&
      atomic_load_explicit(&slot->inside, memory_order_relaxed) == from)
    atomic_store_explicit(&slot->inside, to, memory_order_release);
}

void tarn__callback_begin(void) {
  if (tarn__callbacks_running++ == 0) exchange_inside(NULL, &in_callback);
}

// In a child of a fork in the callback the thread has no slot any more.
void tarn__callback_end(void) {
  if (--tarn__callbacks_running == 0) exchange_inside(&in_callback, NULL);
}

// --- in a child of fork ----------------------------------------------------

bool tarn__biased_lock_is_held(tarn__biased_lock *lock) {
  if (!tarn__short_lock_try(&lock->shared)) return true;
  const tarn__owner_slot *owner =
      atomic_load_explicit(&lock->owner, memory_order_relaxed);
  bool inside =
      atomic_load_explicit(&owner->inside, memory_order_relaxed) == lock;
  tarn__short_lock_leave(&lock->shared);
  return inside;
}
