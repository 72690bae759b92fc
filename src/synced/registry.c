// All buffers that there are now.
//
// Invariants:
//   * a buffer is in the list from its making to its end, and the lock is held
//     by whoever looks at one there: it cannot end meanwhile
//
// In a child of fork the parent's buffers stay in the list until they are
// destroyed there, but nobody is shown them: their gates may be held by threads
// that are not in the child.
#include "synced/registry.h"

#include <stdatomic.h>

static struct {
  pthread_mutex_t lock;  // guards |buffers|; taken around a fork
  tarn_list buffers;
} registry = {PTHREAD_MUTEX_INITIALIZER,
              {&registry.buffers, &registry.buffers}};

static void lock_registry(void) {
  pthread_mutex_lock(&registry.lock);
}

static void unlock_registry(void) {
  pthread_mutex_unlock(&registry.lock);
}

// Behind the device room's locks, under which a device that closes asks for
// buffers, and before what takes no other lock.
TARN__WATCH_FORKS_BETWEEN static void watch_forks(void) {
  pthread_atfork(lock_registry, unlock_registry, unlock_registry);
}

uint64_t tarn__registry_number(void) {
  static atomic_uint_fast64_t last;
  return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

void tarn__registry_add(tarn__core *core) {
  lock_registry();
  tarn_list_add_tail(&registry.buffers, &core->all);
  unlock_registry();
}

void tarn__registry_remove(tarn__core *core) {
  lock_registry();
  tarn_list_del(&core->all);
  unlock_registry();
}

tarn_status tarn__registry_each(tarn__registry_visit *visit, void *context) {
  tarn_status status = TARN_OK;
  const tarn_list *node = NULL;
  lock_registry();
  tarn_list_for_each (node, &registry.buffers) {
    tarn__core *core = tarn_list_entry(node, tarn__core, all);
    if (core->generation != tarn__os_generation()) continue;
    status = visit(context, core);
    if (status != TARN_OK) break;
  }
  unlock_registry();
  return status;
}
