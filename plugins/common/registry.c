// All streams and events that are alive, for synchronize_device and for the
// end. The ABI hands these calls no object to keep the lists in, so they are
// the one global; plug-ins that are built into one library share it, and each
// sees the entries of its own devices.
//
// Invariants:
//   * A list is in order of its serials, because new entries go to the end.
//   * What stands in a list has its handle's hold: it leaves the list first.
//   * Nothing is called with the lock held.
//   * In a forked child both lists begin empty. What came from the parent is
//     no entry there and is never unlinked.
#include "queue.h"

static struct {
  pthread_mutex_t lock;  // guards all below
  uint64_t newest;
  tarn_list lists[TARN__QUEUE_KINDS];
} registry = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .lists = {[TARN__QUEUE_STREAM] = {&registry.lists[TARN__QUEUE_STREAM],
                                      &registry.lists[TARN__QUEUE_STREAM]},
              [TARN__QUEUE_EVENT] = {&registry.lists[TARN__QUEUE_EVENT],
                                     &registry.lists[TARN__QUEUE_EVENT]}},
};

// --- forks -----------------------------------------------------------------

static void begin_child(void) {
  for (int kind = 0; kind < TARN__QUEUE_KINDS; kind++) {
    tarn_list_init(&registry.lists[kind]);
  }
  pthread_mutex_unlock(&registry.lock);
}

TARN__LOCK_AROUND_FORKS(LAST, registry, &registry.lock, begin_child)

// --- entries ---------------------------------------------------------------

void tarn__queue_enlist(tarn__common_queue_kind kind,
                        const tarn__common_queue_home *home,
                        tarn__common_queue_entry *entry) {
  entry->home = home;
  entry->generation = tarn__os_generation();
  lock_registry();
  entry->serial = ++registry.newest;
  tarn_list_add_tail(&registry.lists[kind], &entry->node);
  unlock_registry();
}

void tarn__queue_delist(tarn__common_queue_entry *entry) {
  if (tarn__queue_is_stale(entry)) return;
  lock_registry();
  tarn_list_del(&entry->node);
  unlock_registry();
}

uint64_t tarn__queue_newest(void) {
  lock_registry();
  uint64_t newest = registry.newest;
  unlock_registry();
  return newest;
}

C_Stream tarn__queue_stream_behind(const tarn__common_queue_home *home,
                                   uint64_t serial) {
  C_Stream found = NULL;
  tarn_list *head = &registry.lists[TARN__QUEUE_STREAM];
  tarn_list *node = NULL;
  lock_registry();
  tarn_list_for_each (node, head) {
    C_Stream stream = tarn_list_entry(node, struct C_Stream_st, entry.node);
    if (stream->entry.home != home || stream->entry.serial <= serial) continue;
    tarn__queue_stream_hold(stream);
    found = stream;
    break;
  }
  unlock_registry();
  return found;
}

tarn__common_queue_entry *tarn__queue_any(tarn__common_queue_kind kind,
                                          const tarn__common_queue_home *home) {
  tarn__common_queue_entry *found = NULL;
  tarn_list *node = NULL;
  lock_registry();
  tarn_list_for_each (node, &registry.lists[kind]) {
    tarn__common_queue_entry *entry =
        tarn_list_entry(node, tarn__common_queue_entry, node);
    if (entry->home != home) continue;
    found = entry;
    break;
  }
  unlock_registry();
  return found;
}
