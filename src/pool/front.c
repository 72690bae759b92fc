// Making, switching and ending the front of a pool; walking its invariants.
//
// A switch publishes the new strategy under the lock. The old one moves to
// |replaced|, gives its idle memory back, and ends when its last block has
// come home and no call that let go of the lock is to come back into it.
#include "pool/front.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "device/memory.h"

// --- making and ending -----------------------------------------------------

static tarn_status adopt_device(tarn_pool *pool, tarn_place place,
                                const tarn_pool_options *options) {
  tarn_device *device = NULL;
  tarn_device_info info = {.struct_size = sizeof info};
  tarn_status status = tarn__place_device(place, &device);
  if (status == TARN_OK) status = tarn_device_query(device, &info);
  bool no_unified = place.kind == TARN_PLACE_UNIFIED &&
                    (info.functions & TARN_FN_UNIFIED_MEMORY) == 0;
  if (status == TARN_OK && no_unified) {
    return tarn__fail(TARN_E_UNSUPPORTED, "%s: has no unified memory",
                      info.name);
  }
  pool->place = place;
  pool->natural_align = info.min_chunk;
  pool->aligns = SIZE_MAX;
  pool->padding = place.kind == TARN_PLACE_DEVICE ? info.padding : 0;
  if (status != TARN_OK) return status;
  if ((options->flags & TARN_POOL_DRY) != 0) {
    return tarn__supply_init_dry(&pool->supply, place, device, options->limit);
  }
  tarn__supply_init(&pool->supply, place, device);
  return TARN_OK;
}

// Whether a parent's pool was being changed by another thread at the fork: then
// the child leaves it behind, as it is.
static bool is_torn(tarn_pool *pool) {
  if (pool->generation == tarn__os_generation()) return false;
  if (pthread_mutex_trylock(&pool->lock) != 0) return true;
  pthread_mutex_unlock(&pool->lock);
  return false;
}

// Frees what is on the host; a parent's pool has nothing else here.
static void forget(tarn_pool *pool) {
  if (is_torn(pool)) return;
  while (!tarn_list_empty(&pool->replaced)) {
    tarn__strategy *strategy =
        tarn_list_entry(pool->replaced.next, tarn__strategy, node);
    tarn_list_del(&strategy->node);
    tarn__strategy_destroy(strategy);
  }
  tarn__strategy_destroy(pool->current);
  tarn__pieces_deinit(&pool->pieces);
  tarn__supply_deinit(&pool->supply);
  tarn__host_free_array(pool->tags, pool->tag_count, sizeof *pool->tags);
  // In a child of fork, threads of the parent may count as waiting there, and
  // destroying it would wait for them.
  if (pool->generation == tarn__os_generation()) {
    pthread_cond_destroy(&pool->returned);
  }
  pthread_mutex_destroy(&pool->lock);
  tarn__host_free(pool, sizeof *pool);
}

static tarn_status check_for_captures(const tarn_pool *pool) {
  const tarn__strategy_type *type = pool->current->type;
  if ((pool->flags & TARN_POOL_DEFER) == 0 || type->expect != NULL) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "pool: %s may give memory back that a captured graph uses: "
                    "page_unit_pool and arena_pool do not",
                    type->name);
}

static tarn_status start(tarn_pool *pool, tarn_place place,
                         const tarn_pool_options *options) {
  const char *strategy =
      options->strategy != NULL ? options->strategy : tarn__strategy_default();
  pool->flags = options->flags;
  pool->stats.limit_bytes = options->limit;
  tarn_status status = adopt_device(pool, place, options);
  if (status == TARN_OK) {
    status = tarn__strategy_create(pool, strategy, &pool->current);
  }
  return status != TARN_OK ? status : check_for_captures(pool);
}

tarn_status tarn__front_create(tarn_place place,
                               const tarn_pool_options *options,
                               tarn_pool **out_pool) {
  *out_pool = NULL;
  tarn_pool *pool = tarn__host_alloc(sizeof *pool);
  if (pool == NULL) return TARN_E_NOMEM;
  pool->generation = tarn__os_generation();
  pool->stats.struct_size = sizeof pool->stats;
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->returned, NULL);
  tarn_list_init(&pool->replaced);
  tarn_list_init(&pool->own_node);
  tarn_status status = start(pool, place, options);
  if (status != TARN_OK) {
    forget(pool);
    return status;
  }
  *out_pool = pool;
  return TARN_OK;
}

tarn_status tarn__front_destroy(tarn_pool *pool) {
  pool->capture = TARN__CAPTURE_OPEN;  // no graph uses it any more
  tarn_status status = tarn_pool_trim(pool, 0);
  forget(pool);
  return status;
}

// --- switching -------------------------------------------------------------

static bool is_needed(const tarn_pool *pool, const tarn__strategy *strategy) {
  return strategy == pool->current || strategy->live != 0 ||
         strategy->inside != 0;
}

// A call that came to nothing after the switch may have left memory there.
// What the device does not take back then is no more the pool's.
void tarn__front_retire(tarn_pool *pool, tarn__strategy *strategy) {
  if (is_needed(pool, strategy)) return;
  strategy->inside++;
  (void)strategy->type->trim(strategy, 0);
  strategy->inside--;
  pool->stats.reserved_bytes -= strategy->held;
  tarn_list_del(&strategy->node);
  tarn__strategy_destroy(strategy);
}

tarn_status tarn__front_switch(tarn_pool *pool, tarn__strategy *strategy) {
  pthread_mutex_lock(&pool->lock);
  tarn__strategy *old = pool->current;
  pool->current = strategy;
  tarn_list_add_tail(&pool->replaced, &old->node);
  old->inside++;
  tarn_status status = old->type->trim(old, 0);
  old->inside--;
  tarn__front_retire(pool, old);
  pthread_mutex_unlock(&pool->lock);
  return status;
}

// --- the invariants --------------------------------------------------------

typedef struct sums {
  size_t live_bytes;
  size_t live_blocks;
  size_t reserved_bytes;
  size_t used;
  size_t idle;
} sums;

static tarn_status broken(const char *what, size_t is, size_t should_be) {
  return tarn__fail(TARN_E_CORRUPT, "pool: %s is %zu, should be %zu", what, is,
                    should_be);
}

static tarn_status check_piece(const tarn_pool *pool,
                               const tarn__piece *piece) {
  size_t skipped = (size_t)(piece->address - piece->base);
  bool inside = piece->base_size == 0 ||
                (piece->address >= piece->base && skipped <= piece->base_size &&
                 piece->size <= piece->base_size - skipped);
  if (!inside) {
    return tarn__fail(TARN_E_CORRUPT, "pool: piece %u exceeds its memory",
                      piece->id);
  }
  if (tarn__pieces_find(&pool->pieces, piece->address) != piece) {
    return tarn__fail(TARN_E_CORRUPT, "pool: piece %u is not in the index",
                      piece->id);
  }
  if (piece->resizing) {
    return tarn__fail(TARN_E_CORRUPT, "pool: piece %u is between two sizes",
                      piece->id);
  }
  if (piece->live && piece->requested > piece->size) {
    return broken("a block's size", piece->size, piece->requested);
  }
  return TARN_OK;
}

static tarn_status sum_pieces(const tarn_pool *pool, sums *out) {
  for (size_t id = 0; id < tarn__pieces_count(&pool->pieces); id++) {
    const tarn__piece *piece = tarn__pieces_at(&pool->pieces, (uint32_t)id);
    if (piece->base == 0) continue;
    tarn_status status = check_piece(pool, piece);
    if (status != TARN_OK) return status;
    out->used++;
    out->reserved_bytes += piece->base_size;
    out->live_bytes += piece->live ? piece->requested : 0;
    out->live_blocks += piece->live ? 1 : 0;
  }
  return TARN_OK;
}

static tarn_status check_strategies(tarn_pool *pool, sums *out) {
  size_t live = pool->current->live;
  out->reserved_bytes += pool->current->held;
  tarn_status status = pool->current->type->check(pool->current, &out->idle);
  if (status != TARN_OK) return status;
  tarn_list *node = NULL;
  tarn_list_for_each (node, &pool->replaced) {
    tarn__strategy *old = tarn_list_entry(node, tarn__strategy, node);
    size_t idle = 0;
    status = old->type->check(old, &idle);
    if (status != TARN_OK) return status;
    if (idle != 0) return broken("idle pieces of a replaced strategy", idle, 0);
    live += old->live;
    out->reserved_bytes += old->held;
  }
  if (live != out->live_blocks) {
    return broken("blocks of all strategies", live, out->live_blocks);
  }
  return TARN_OK;
}

static tarn_status check_tags(const tarn_pool *pool) {
  size_t bytes = 0;
  size_t blocks = 0;
  for (size_t tag = 0; tag < pool->tag_count; tag++) {
    bytes += pool->tags[tag].live_bytes;
    blocks += pool->tags[tag].live_blocks;
  }
  if (bytes != pool->stats.live_bytes) {
    return broken("bytes of all tags", bytes, pool->stats.live_bytes);
  }
  if (blocks != pool->stats.live_blocks) {
    return broken("blocks of all tags", blocks, pool->stats.live_blocks);
  }
  return TARN_OK;
}

static tarn_status check_locked(tarn_pool *pool) {
  sums s = {0};
  tarn_status status = sum_pieces(pool, &s);
  if (status == TARN_OK) status = check_strategies(pool, &s);
  if (status == TARN_OK) status = check_tags(pool);
  if (status != TARN_OK) return status;
  const tarn_pool_stats *stats = &pool->stats;
  if (stats->live_bytes != s.live_bytes) {
    return broken("live_bytes", stats->live_bytes, s.live_bytes);
  }
  if (stats->live_blocks != s.live_blocks) {
    return broken("live_blocks", stats->live_blocks, s.live_blocks);
  }
  if (stats->reserved_bytes != s.reserved_bytes) {
    return broken("reserved_bytes", stats->reserved_bytes, s.reserved_bytes);
  }
  if (pool->pieces.used != s.used) {
    return broken("pieces in use", pool->pieces.used, s.used);
  }
  if (s.idle + s.live_blocks != s.used) {
    return broken("idle and live pieces", s.idle + s.live_blocks, s.used);
  }
  return TARN_OK;
}

tarn_status tarn__front_check(tarn_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  tarn_status status = check_locked(pool);
  pthread_mutex_unlock(&pool->lock);
  return status;
}
