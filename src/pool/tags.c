// Tags: names for what memory is used for. One registry for the process.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "base/status.h"
#include "pool/front.h"

static struct {
  pthread_mutex_t lock;  // guards |names|
  tarn__names names;     // the n-th of them is tag n + 1
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static tarn_status intern(const char *name, tarn_tag *out_tag) {
  tarn__name *entry = tarn__names_find(&registry.names, name);
  if (entry == NULL) {
    if (registry.names.count == TARN__TAGS_MAX) {
      return tarn__fail(TARN_E_INVALID, "tag '%s': there are %d already", name,
                        TARN__TAGS_MAX);
    }
    tarn_status status = tarn__names_add(&registry.names, name, NULL);
    if (status != TARN_OK) return status;
    entry = tarn__names_find(&registry.names, name);
  }
  *out_tag = (tarn_tag)(entry - registry.names.entries) + 1;
  return TARN_OK;
}

tarn_status tarn_pool_tag(const char *name, tarn_tag *out_tag) {
  *out_tag = 0;
  if (name == NULL || *name == '\0') {
    return tarn__fail(TARN_E_INVALID, "tag: an empty name");
  }
  pthread_mutex_lock(&registry.lock);
  tarn_status status = intern(name, out_tag);
  pthread_mutex_unlock(&registry.lock);
  return status;
}

// A name's text never moves and is never freed, so it outlives the lock.
const char *tarn_pool_tag_name(tarn_tag tag) {
  const char *name = "untagged";
  pthread_mutex_lock(&registry.lock);
  if (tag != 0 && tag <= registry.names.count) {
    name = registry.names.entries[tag - 1].name;
  }
  pthread_mutex_unlock(&registry.lock);
  return name;
}

void tarn__front_holders(tarn_pool *pool, char *out, size_t out_size) {
  size_t used = 0;
  out[0] = '\0';
  for (size_t tag = 0; tag < pool->tag_count && used < out_size; tag++) {
    const tarn__tag_count *count = &pool->tags[tag];
    if (count->live_blocks == 0) continue;
    int n = snprintf(out + used, out_size - used, "%s%zu bytes %s",
                     used ? ", " : "", count->live_bytes,
                     tarn_pool_tag_name((tarn_tag)tag));
    used += n > 0 ? (size_t)n : 0;
  }
}
