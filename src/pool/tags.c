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
  atomic_uint count;     // of them, to be read without the lock
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock_registry(void) {
  pthread_mutex_lock(&registry.lock);
}

static void unlock_registry(void) {
  pthread_mutex_unlock(&registry.lock);
}

TARN__WATCH_FORKS_LAST static void watch_forks(void) {
  pthread_atfork(lock_registry, unlock_registry, unlock_registry);
}

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
    tarn_status status = tarn__names_add(&registry.names, name, NULL);
    if (status != TARN_OK) return status;
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

// --- who holds what --------------------------------------------------------

static size_t bytes_held(const tarn_pool *pool, size_t tag) {
  return pool->tags[tag].live_bytes + pool->tags[tag].charged_bytes;
}

static bool holds_any(const tarn_pool *pool, size_t tag) {
  return pool->tags[tag].live_blocks != 0 || pool->tags[tag].charged_bytes != 0;
}

// Whether |a| comes before |b|: more bytes first, of as many the older tag.
static bool holds_more(const tarn_pool *pool, size_t a, size_t b) {
  size_t x = bytes_held(pool, a);
  size_t y = bytes_held(pool, b);
  return x != y ? x > y : a < b;
}

// The next tag with blocks or charges behind |*tag|, SIZE_MAX being before all.
// False: there is none.
static bool next_holder(const tarn_pool *pool, size_t *tag) {
  size_t next = SIZE_MAX;
  for (size_t i = 0; i < pool->tag_count; i++) {
    if (!holds_any(pool, i)) continue;
    if (*tag != SIZE_MAX && !holds_more(pool, *tag, i)) continue;
    if (next == SIZE_MAX || holds_more(pool, i, next)) next = i;
  }
  *tag = next;
  return next != SIZE_MAX;
}

// "4.00 KiB (4096 bytes) weights (2)", the blocks, or with charges "... (2 and
// 100 bytes charged)". The figures of the only one are those of the pool.
static int describe_holder(const tarn_pool *pool, size_t tag, bool only,
                           char *out, size_t out_size) {
  const tarn__pool_tag_count *count = &pool->tags[tag];
  char held[TARN__BYTES_TEXT];
  char text[TARN__BYTES_TEXT];
  char charged[TARN__CHARGES_SIZE] = "";
  if (count->charged_bytes != 0 && !only) {
    snprintf(charged, sizeof charged, " and %s charged",
             tarn__bytes_text(count->charged_bytes, text));
  }
  tarn__bytes_text(bytes_held(pool, tag), held);
  return snprintf(out, out_size, "%s%s%.40s (%zu%s)", only ? "" : held,
                  only ? "" : " ", tarn_pool_tag_name((tarn_tag)tag),
                  count->live_blocks, charged);
}

void tarn__front_top_holders(const tarn_pool *pool, size_t most, char *out,
                             size_t out_size) {
  size_t used = 0;
  size_t tag = SIZE_MAX;
  out[0] = '\0';
  for (; most > 0 && next_holder(pool, &tag); most--) {
    size_t other = tag;
    bool only = used == 0 && !next_holder(pool, &other);
    if (used != 0) used += (size_t)snprintf(out + used, out_size - used, ", ");
    if (used >= out_size) return;
    int n = describe_holder(pool, tag, only, out + used, out_size - used);
    used += n > 0 ? (size_t)n : 0;
    if (used >= out_size) return;
  }
}

bool tarn__front_describe_out(const tarn_pool *pool, char *out,
                              size_t out_size) {
  const tarn_pool_stats *stats = &pool->stats;
  char charged[TARN__CHARGES_SIZE];
  char holders[256];
  char live[TARN__BYTES_TEXT];
  tarn__front_describe_charges(pool, charged);
  tarn__front_top_holders(pool, SIZE_MAX, holders, sizeof holders);
  snprintf(out, out_size, "%zu blocks of %s are out%s: %s", stats->live_blocks,
           tarn__bytes_text(stats->live_bytes, live), charged, holders);
  return stats->live_blocks != 0 || stats->charged_bytes != 0;
}
