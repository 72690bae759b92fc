// The trace function of the program.
//
// Invariants:
//   * |traced| says whether there is a function: a hint that saves the lock.
//   * A call of the function counts as running.
//   * One thread at a time replaces the function: new calls count for the new
//     function, and the replacement waits for calls of the previous one.
#include "synced/core.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/status.h"

typedef struct listener {
  tarn_synced_trace_fn *function;  // NULL: none
  void *context;
} listener;

static struct {
  atomic_bool traced;    // written with the lock
  pthread_mutex_t lock;  // guards all below; taken around a fork
  pthread_cond_t idle;   // a former function has no call left, or an exchange
                         // is over
  listener now;
  unsigned which;  // of |running| counts calls of |now|
  bool exchanging;
  size_t running[2];
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER};

// Whether this thread is in the function, and where its call counts.
static _Thread_local bool is_inside;
static _Thread_local unsigned counted_as;

// --- forks -----------------------------------------------------------------

// The child has only the thread that forked, maybe from within the function.
static void unlock_in_child(void) {
  trace.idle = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  trace.exchanging = false;
  trace.running[0] = trace.running[1] = 0;
  if (is_inside) trace.running[counted_as] = 1;
  pthread_mutex_unlock(&trace.lock);
}

TARN__LOCK_AROUND_FORKS(LAST, trace, &trace.lock, unlock_in_child)

// --- calling ---------------------------------------------------------------

bool tarn__synced_is_traced(void) {
  return atomic_load_explicit(&trace.traced, memory_order_relaxed);
}

// False: there is none. Otherwise end must follow.
static bool begin(listener *out) {
  lock_trace();
  *out = trace.now;
  counted_as = trace.which;
  if (out->function != NULL) trace.running[counted_as]++;
  unlock_trace();
  return out->function != NULL;
}

static void end(void) {
  lock_trace();
  if (--trace.running[counted_as] == 0) pthread_cond_broadcast(&trace.idle);
  unlock_trace();
}

void tarn__synced_tell(const tarn__synced_core *core, tarn_synced_event event) {
  listener told;
  if (!tarn__synced_is_traced() || is_inside || !begin(&told)) return;
  event.struct_size = sizeof event;
  event.id = core->id;
  event.name = core->name != NULL ? core->name : "";
  is_inside = true;
  told.function(told.context, &event);
  is_inside = false;
  end();
}

// --- setting ---------------------------------------------------------------

static void exchange(listener wanted) {
  lock_trace();
  while (trace.exchanging)
    pthread_cond_wait(&trace.idle, &trace.lock);
  unsigned former = trace.which;
  trace.exchanging = true;
  trace.which = 1 - former;
  trace.now = wanted;
  atomic_store_explicit(&trace.traced, wanted.function != NULL,
                        memory_order_relaxed);
  while (trace.running[former] > 0)
    pthread_cond_wait(&trace.idle, &trace.lock);
  trace.exchanging = false;
  pthread_cond_broadcast(&trace.idle);
  unlock_trace();
}

tarn_status tarn_synced_trace(tarn_synced_trace_fn *function, void *context) {
  if (is_inside) {
    return tarn__fail(TARN_E_STATE,
                      "synced: the trace function cannot be replaced from "
                      "within itself");
  }
  TARN__TRY(tarn__not_in_callback());
  exchange((listener){function, context});
  return TARN_OK;
}

// --- words -----------------------------------------------------------------

const char *tarn_synced_happening_name(tarn_synced_happening what) {
  static const char *const names[] = {
      [TARN_SYNCED_CREATED] = "created",
      [TARN_SYNCED_DESTROYED] = "destroyed",
      [TARN_SYNCED_ALLOCATED] = "allocated",
      [TARN_SYNCED_RELEASED] = "released",
      [TARN_SYNCED_WRAPPED] = "wrapped",
      [TARN_SYNCED_COPIED] = "copied",
      [TARN_SYNCED_ZEROED] = "zeroed",
      [TARN_SYNCED_STALLED] = "stalled",
      [TARN_SYNCED_LOST] = "lost",
  };
  size_t count = sizeof names / sizeof names[0];
  return (unsigned)what < count ? names[what] : NULL;
}
