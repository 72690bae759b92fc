// Tags: names for what memory is used for. One registry for the process.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/names.h"
#include "base/os.h"
#include "base/status.h"
#include "pool/front.h"

enum { TAGS_MAX = 65535 };

static struct {
  pthread_mutex_t lock;  // guards |names|; taken around a fork
  tarn__names names;     // the n-th of them is tag n + 1
  atomic_uint count;     // their number, which may be read without the lock
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

TARN__LOCK_AROUND_FORKS(LAST, registry, &registry.lock, unlock_registry)

bool tarn__tag_is_known(tarn_tag tag) {
  return tag <= atomic_load_explicit(&registry.count, memory_order_acquire);
}

static tarn_status intern(const char *name, tarn_tag *out_tag) {
  tarn__name *entry = tarn__names_find(&registry.names, name);
  if (entry == NULL) {
    if (registry.names.count == TAGS_MAX) {
      return tarn__fail(TARN_E_INVALID, "tag '%s': there are %d already", name,
                        TAGS_MAX);
    }
    TARN__TRY(tarn__names_add(&registry.names, name, NULL));
    entry = tarn__names_find(&registry.names, name);
    atomic_store_explicit(&registry.count, (unsigned)registry.names.count,
                          memory_order_release);
  }
  *out_tag = (tarn_tag)(entry - registry.names.entries) + 1;
  return TARN_OK;
}

tarn_status tarn_pool_tag(const char *name, tarn_tag *out_tag) {
  *out_tag = 0;
  if (name == NULL || *name == '\0') {
    return tarn__fail(TARN_E_INVALID, "tag: an empty name");
  }
  lock_registry();
  tarn_status status = intern(name, out_tag);
  unlock_registry();
  return status;
}

// A name's text never moves and is never freed, so it outlives the lock.
const char *tarn_pool_tag_name(tarn_tag tag) {
  const char *name = "untagged";
  lock_registry();
  if (tag != 0 && tag <= registry.names.count) {
    name = registry.names.entries[tag - 1].name;
  }
  unlock_registry();
  return name;
}
