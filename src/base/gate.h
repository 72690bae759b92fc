// gate.h - what one thread at a time passes: the lock of a pool.
//
// A gate that only one thread uses, for long, is that thread's own: it enters
// and leaves by two plain stores, without a locked instruction or a fence. The
// price is paid by the first other one, who takes the gate from its owner and
// makes the kernel run a fence on every processor of the process (membarrier).
// From then on a gate is a mutex, until again one thread alone comes often
// enough; how often that is doubles each time.
//
//             one thread, |wanted| times in a row
//   shared ────────────────────────────────────────► owned
//   (mutex) ◄──────────────────────────────────────  (stores of one thread)
//             another thread comes
//
// Invariants:
//   * |owner| changes only with the mutex held, and to a seat only by the
//     thread that has it
//   * who holds the mutex is inside once the owner, if there is one, was told
//     and is not inside
//   * a thread is inside at most one gate as its owner: its seat names it
#ifndef TARN_BASE_GATE_H_
#define TARN_BASE_GATE_H_

#include <pthread.h>
#include <stdatomic.h>

#include "tarn/base.h"

typedef struct tarn__gate tarn__gate;

// What other threads may read of a thread that owns gates. Never freed, and
// handed on when the thread ends, with the gates that it still owns.
typedef struct tarn__seat {
  _Atomic(const tarn__gate *) inside;  // as its owner; NULL: none
  atomic_bool taken;
} tarn__seat;

struct tarn__gate {
  _Atomic(const tarn__seat *) owner;  // tarn__gate_nobody: shared
  pthread_mutex_t lock;               // guards all below, and a change of owner
  const void *last;                   // the thread that came last
  uint32_t row;                       // how often it came in a row
  uint32_t wanted;                    // for that many it owns the gate
};

extern const tarn__seat tarn__gate_nobody;

// The seat of this thread; NULL until it owns a gate.
extern _Thread_local tarn__seat *tarn__gate_seat
    __attribute__((tls_model("initial-exec")));

void tarn__gate_init(tarn__gate *gate);
void tarn__gate_deinit(tarn__gate *gate);

// The ways that go through the mutex.
void tarn__gate_enter_shared(tarn__gate *gate);
void tarn__gate_leave_shared(tarn__gate *gate);

static inline bool tarn__gate_is_mine(const tarn__gate *gate,
                                      const tarn__seat *seat) {
  return atomic_load_explicit(&gate->owner, memory_order_relaxed) == seat;
}

// Says that the owner is inside before it looks once more whether it is the
// owner. Who takes the gate from it writes the one and, behind a fence on all
// processors, reads the other: one of the two sees what the other wrote. Only
// the compiler has to be kept from exchanging the two here.
static inline bool tarn__gate_enter_owned(const tarn__gate *gate,
                                          tarn__seat *seat) {
  if (atomic_load_explicit(&seat->inside, memory_order_relaxed) != NULL) {
    return false;
  }
  atomic_store_explicit(&seat->inside, gate, memory_order_release);
  atomic_signal_fence(memory_order_seq_cst);
  if (tarn__gate_is_mine(gate, seat)) return true;
  atomic_store_explicit(&seat->inside, NULL, memory_order_release);
  return false;
}

// The short way alone: NULL where the gate is not this thread's own. In a child
// of fork no gate of the parent's is.
static inline tarn__seat *tarn__gate_try_owned(tarn__gate *gate) {
  tarn__seat *seat = tarn__gate_seat;
  bool entered =
      tarn__gate_is_mine(gate, seat) && tarn__gate_enter_owned(gate, seat);
  return entered ? seat : NULL;
}

// After that, with what it gave.
static inline void tarn__gate_leave_owned(tarn__seat *seat) {
  atomic_store_explicit(&seat->inside, NULL, memory_order_release);
}

// Not twice by the same thread.
static inline void tarn__gate_enter(tarn__gate *gate) {
  if (tarn__gate_try_owned(gate) == NULL) tarn__gate_enter_shared(gate);
}

static inline void tarn__gate_leave(tarn__gate *gate) {
  tarn__seat *seat = tarn__gate_seat;
  if (seat != NULL &&
      atomic_load_explicit(&seat->inside, memory_order_relaxed) == gate) {
    atomic_store_explicit(&seat->inside, NULL, memory_order_release);
  } else {
    tarn__gate_leave_shared(gate);
  }
}

// As pthread_cond_wait, from inside. May return before anything was told, and
// others may have been inside meanwhile in any case: look again.
void tarn__gate_wait(tarn__gate *gate, pthread_cond_t *told);

// In a child of fork: whether a thread was inside, or about to be.
bool tarn__gate_is_held(tarn__gate *gate);

#endif  // TARN_BASE_GATE_H_
