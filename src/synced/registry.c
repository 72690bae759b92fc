// The list of all buffers.
//
// Invariants:
//   * A buffer is in the list from its creation to its end.
//   * The end of a buffer waits for its visitors.
//   * The lock is held for a step along the list, and nothing is called then.
//
// In a child of fork the parent's buffers stay in the list until they are
// destroyed there, but are not visited: their locks may be held by threads that
// do not exist in the child.
#include "synced/core.h"

#include <pthread.h>
#include <stdatomic.h>

static struct {
  pthread_mutex_t lock;  // guards all below; taken around a fork
  pthread_cond_t seen;   // a buffer has a visitor less
  tarn_list buffers;
} registry = {PTHREAD_MUTEX_INITIALIZER,
              PTHREAD_COND_INITIALIZER,
              {&registry.buffers, &registry.buffers}};

// The child has no waiting threads.
static void unlock_in_child(void) {
  registry.seen = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  pthread_mutex_unlock(&registry.lock);
}

TARN__LOCK_AROUND_FORKS(LAST, registry, &registry.lock, unlock_in_child)

uint64_t tarn__registry_number(void) {
  static atomic_uint_fast64_t last;
  return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

void tarn__registry_add(tarn__synced_core *core) {
  lock_registry();
  tarn_list_add_tail(&registry.buffers, &core->all);
  unlock_registry();
}

static bool is_ours(const tarn__synced_core *core) {
  return core->generation == tarn__os_generation();
}

// The visitors of a parent's buffer do not exist in the child.
void tarn__registry_remove(tarn__synced_core *core) {
  lock_registry();
  while (core->visitors > 0 && is_ours(core))
    pthread_cond_wait(&registry.seen, &registry.lock);
  tarn_list_del(&core->all);
  unlock_registry();
}

// The next buffer of this process behind |node|, with a visitor more; NULL:
// none is left. With the lock.
static tarn__synced_core *show_next(const tarn_list *node) {
  for (node = node->next; node != &registry.buffers; node = node->next) {
    tarn__synced_core *core = tarn_list_entry(node, tarn__synced_core, all);
    if (!is_ours(core)) continue;
    core->visitors++;
    return core;
  }
  return NULL;
}

static void leave(tarn__synced_core *core) {
  core->visitors--;
  pthread_cond_broadcast(&registry.seen);
}

tarn_status tarn__registry_each(tarn__synced_registry_visit *visit,
                                void *context) {
  tarn_status status = TARN_OK;
  lock_registry();
  tarn__synced_core *core = show_next(&registry.buffers);
  while (core != NULL) {
    unlock_registry();
    status = visit(context, core);
    lock_registry();
    tarn__synced_core *next = status == TARN_OK ? show_next(&core->all) : NULL;
    leave(core);
    core = next;
  }
  unlock_registry();
  return status;
}
