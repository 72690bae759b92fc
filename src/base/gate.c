// A gate: who owns it, and how it is taken from its owner.
//
// Seats are as many as there may be threads that own gates at a time. They
// stand here for ever, so that whoever takes a gate from an owner that has
// ended meanwhile still finds its seat. A thread that gets the seat of another
// owns the gates that are left on it: what the other did inside is before the
// seat was left, and so before the seat was taken.
#include "base/gate.h"

#include "base/os.h"

enum {
  SEATS = 256,
  CACHE_LINE = 64,
  FIRST_WANTED = 64,
  MOST_WANTED = 1 << 20,
  SPINS = 100,
  YIELDS = 100,
};

static const uint64_t NAP_NS = 200000;

const tarn__seat tarn__gate_nobody = {.inside = NULL};
_Thread_local tarn__seat *tarn__gate_seat
    __attribute__((tls_model("initial-exec")));

// --- seats -----------------------------------------------------------------

typedef struct padded_seat {
  _Alignas(CACHE_LINE) tarn__seat seat;  // owners write them all the time
} padded_seat;

static padded_seat seats[SEATS];

static struct {
  pthread_once_t once;
  pthread_key_t key;  // its destructor leaves the thread's seat
  bool usable;
} at_exit = {.once = PTHREAD_ONCE_INIT};

static void leave_seat(void *pointer) {
  tarn__seat *seat = pointer;
  tarn__gate_seat = NULL;
  atomic_store_explicit(&seat->taken, false, memory_order_release);
}

static void make_key(void) {
  at_exit.usable = pthread_key_create(&at_exit.key, leave_seat) == 0;
}

// Seats below are the parent's, and so are the gates that are left on them;
// that one is inside still tells how the parent's pool was left.
static size_t first_seat;
static atomic_size_t end_of_used;  // no seat from here on was ever taken

static void leave_seats_to_the_parent(void) {
  first_seat = atomic_load_explicit(&end_of_used, memory_order_relaxed);
  tarn__gate_seat = NULL;
}

TARN__WATCH_FORKS_LAST static void watch_forks(void) {
  pthread_atfork(NULL, NULL, leave_seats_to_the_parent);
}

static void raise_end_of_used(size_t end) {
  size_t was = atomic_load_explicit(&end_of_used, memory_order_relaxed);
  while (was < end && !atomic_compare_exchange_weak_explicit(
                          &end_of_used, &was, end, memory_order_relaxed,
                          memory_order_relaxed))
    continue;
}

static tarn__seat *take_free_seat(void) {
  for (size_t i = first_seat; i < SEATS; i++) {
    atomic_bool *taken = &seats[i].seat.taken;
    bool free = !atomic_load_explicit(taken, memory_order_relaxed) &&
                !atomic_exchange_explicit(taken, true, memory_order_acquire);
    if (!free) continue;
    raise_end_of_used(i + 1);
    return &seats[i].seat;
  }
  return NULL;
}

static bool take_seat(void) {
  if (tarn__gate_seat != NULL) return true;
  pthread_once(&at_exit.once, make_key);
  if (!at_exit.usable) return false;
  tarn__seat *seat = take_free_seat();
  if (seat == NULL) return false;
  if (pthread_setspecific(at_exit.key, seat) != 0) {
    atomic_store_explicit(&seat->taken, false, memory_order_release);
    return false;
  }
  tarn__gate_seat = seat;
  return true;
}

// --- giving a gate to a thread, and taking it ------------------------------

// Twice as many from now on; in vain too, so that it is not tried each time.
static void want_more(tarn__gate *gate) {
  if (gate->wanted < MOST_WANTED) gate->wanted *= 2;
  gate->row = 0;
}

static void give_to_caller(tarn__gate *gate) {
  bool can = tarn__os_can_fence_threads() && take_seat();
  if (can) {
    gate->row = 0;
    atomic_store_explicit(&gate->owner, tarn__gate_seat, memory_order_relaxed);
  } else {
    want_more(gate);
  }
}

// Most owners are out in less than a microsecond. One that does not get to run
// is left the processor, in the end even by a thread of a higher priority.
static void wait_until_out(const tarn__gate *gate, const tarn__seat *owner) {
  for (unsigned i = 0;
       atomic_load_explicit(&owner->inside, memory_order_acquire) == gate;
       i++) {
    if (i < SPINS) continue;
    if (i < SPINS + YIELDS) {
      tarn__os_yield();
    } else {
      tarn__os_wait_until(tarn__os_now_ns() + NAP_NS);
    }
  }
}

// The mutex is held.
static void take_from_owner(tarn__gate *gate) {
  const tarn__seat *owner =
      atomic_load_explicit(&gate->owner, memory_order_relaxed);
  if (owner == &tarn__gate_nobody) return;
  atomic_store_explicit(&gate->owner, &tarn__gate_nobody, memory_order_relaxed);
  want_more(gate);
  if (owner == tarn__gate_seat) return;  // it is inside another, as its owner
  tarn__os_fence_threads();
  wait_until_out(gate, owner);
}

// --- entering and leaving --------------------------------------------------

// What is done inside takes less than to sleep and to be woken, as a rule: who
// finds the gate taken tries again for a while.
static void init_lock(pthread_mutex_t *lock) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
  pthread_mutex_init(lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

void tarn__gate_init(tarn__gate *gate) {
  *gate = (tarn__gate){.wanted = FIRST_WANTED};
  atomic_init(&gate->owner, &tarn__gate_nobody);
  init_lock(&gate->lock);
}

void tarn__gate_deinit(tarn__gate *gate) {
  pthread_mutex_destroy(&gate->lock);
}

void tarn__gate_enter_shared(tarn__gate *gate) {
  pthread_mutex_lock(&gate->lock);
  take_from_owner(gate);
}

void tarn__gate_leave_shared(tarn__gate *gate) {
  const void *self = &tarn__gate_seat;  // another for every thread
  gate->row = gate->last == self ? gate->row + 1 : 1;
  gate->last = self;
  if (gate->row >= gate->wanted) give_to_caller(gate);
  pthread_mutex_unlock(&gate->lock);
}

// An owner cannot wait, and cannot become a holder of the mutex without letting
// others in: what it waits for may happen meanwhile, so it has to look first.
// While a holder waits another thread may become the owner.
void tarn__gate_wait(tarn__gate *gate, pthread_cond_t *told) {
  tarn__seat *seat = tarn__gate_seat;
  bool owned = seat != NULL && atomic_load_explicit(
                                   &seat->inside, memory_order_relaxed) == gate;
  if (owned) {
    tarn__gate_leave(gate);
    tarn__gate_enter_shared(gate);
  } else {
    pthread_cond_wait(told, &gate->lock);
    take_from_owner(gate);
  }
}

bool tarn__gate_is_held(tarn__gate *gate) {
  if (pthread_mutex_trylock(&gate->lock) != 0) return true;
  const tarn__seat *owner =
      atomic_load_explicit(&gate->owner, memory_order_relaxed);
  bool inside =
      atomic_load_explicit(&owner->inside, memory_order_relaxed) == gate;
  pthread_mutex_unlock(&gate->lock);
  return inside;
}
