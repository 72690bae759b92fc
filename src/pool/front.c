// Making, switching and ending the front of a pool; walking its invariants.
//
// A switch publishes the new strategy under the lock. The old one moves to
// |replaced| and gives its idle memory back. It ends when its last block has
// been freed and no call that released the lock is to return into it.
#include "pool/capture.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"

// --- making and ending -----------------------------------------------------

// With ranges, memory is mapped by pages, not allocated in large pieces. Memory
// of a captured graph must stay when it is freed, so no block of such a pool is
// an allocation of its own.
static tarn__pool_sizes sizes_of(tarn_place_kind kind,
                                 const tarn_pool_options *options,
                                 const tarn_device_info *info) {
  tarn__pool_sizes sizes = {.chunk = 1, .most = SIZE_MAX, .largest = SIZE_MAX};
  uint32_t own = kind == TARN_PLACE_DEVICE ? info->functions : 0;
  if (kind == TARN_PLACE_DEVICE) sizes.chunk = info->min_chunk;
  if (options->memory.size != 0) {
    sizes.first = sizes.later = options->memory.size;
    return sizes;
  }
  if ((info->extensions & TARN_EXTENSION_RANGES) == 0) {
    if ((own & TARN_FN_INIT_SIZE) != 0) sizes.first = info->init_size;
    if ((own & TARN_FN_REALLOC_SIZE) != 0) sizes.later = info->realloc_size;
  }
  if ((own & TARN_FN_MAX_CHUNK) != 0 &&
      (options->flags & TARN_POOL_DEFER) == 0) {
    size_t most = info->max_chunk & ~(sizes.chunk - 1);
    sizes.most = info->max_chunk;
    sizes.largest = most > info->padding ? most - info->padding : 0;
  }
  return sizes;
}

// A block is a whole memory object, of which the granularity is the least.
static tarn_status adopt_sharing(tarn_pool *pool, const char *name) {
  if ((pool->extensions & TARN_EXTENSION_SHARING) == 0) {
    char place[64];
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "%s: its memory at %s cannot be shared with other "
                      "processes",
                      name, tarn_place_text(pool->place, place, sizeof place));
  }
  return tarn_range_granularity(pool->supply.device, &pool->sizes.chunk);
}

static tarn_status adopt_device(tarn_pool *pool, tarn_place place,
                                const tarn_pool_options *options) {
  tarn_device *device = NULL;
  tarn_device_info info = {.struct_size = sizeof info};
  TARN__TRY(tarn__place_device(place, &device));
  TARN__TRY(tarn_device_query(device, &info));
  if (place.kind == TARN_PLACE_UNIFIED &&
      (info.functions & TARN_FN_UNIFIED_MEMORY) == 0) {
    return tarn__fail(TARN_E_UNSUPPORTED, "%s: has no unified memory",
                      info.name);
  }
  pool->place = place;
  pool->watches = (options->flags & TARN_POOL_DEFER) != 0 &&
                  (info.extensions & TARN_EXTENSION_STREAM_CAPTURING) != 0;
  pool->natural_align = info.min_chunk;
  pool->aligns = SIZE_MAX;
  pool->padding = place.kind == TARN_PLACE_DEVICE ? info.padding : 0;
  if (place.kind == TARN_PLACE_DEVICE || info.host_accessible) {
    pool->extensions = info.extensions;
  }
  pool->sizes = sizes_of(place.kind, options, &info);
  pool->supply = (tarn__pool_supply){
      .place = place, .device = device, .own = options->memory};
  if (options->memory.size != 0) {
    pool->extensions = 0;  // they are for memory that the device is asked for
    return TARN_OK;
  }
  if ((options->flags & TARN_POOL_DRY) != 0) {
    return tarn__supply_begin_dry(&pool->supply, options->limit);
  }
  bool shares = (options->flags & TARN_POOL_SHAREABLE) != 0;
  return shares ? adopt_sharing(pool, info.name) : TARN_OK;
}

// Whether a parent's pool was being changed by another thread at the fork: then
// the child leaves it behind, as it is.
static bool is_torn(tarn_pool *pool) {
  if (pool->generation == tarn__os_generation()) return false;
  return tarn__biased_lock_is_held(&pool->lock);
}

// Frees the host memory; a parent's pool has nothing else here.
static void forget(tarn_pool *pool) {
  tarn__pools_forget(pool);
  if (is_torn(pool)) return;
  while (!tarn_list_empty(&pool->replaced)) {
    tarn__pool_strategy *strategy =
        tarn_list_entry(pool->replaced.next, tarn__pool_strategy, node);
    tarn_list_del(&strategy->node);
    tarn__strategy_destroy(strategy);
  }
  tarn__steps_deinit(&pool->steps);
  tarn__step_threads_deinit(&pool->threads);
  tarn__strategy_destroy(pool->current);
  tarn__ordered_deinit(&pool->pieces.order);
  tarn__pieces_deinit(&pool->pieces);
  tarn__host_free(tarn__debug_of(pool), sizeof(tarn__pool_debug));
  tarn__events_deinit(&pool->events);
  tarn__users_deinit(&pool->users);
  tarn__supply_deinit(&pool->supply);
  tarn__lanes_deinit(pool);
  tarn__host_free_array(pool->tags, pool->tag_count, sizeof *pool->tags);
  tarn__on_full_deinit(&pool->on_full,
                       pool->generation == tarn__os_generation());
  tarn__host_free(pool, sizeof *pool);
}

static tarn_status check_for_captures(const tarn_pool *pool) {
  const tarn__pool_strategy_type *type = pool->current->type;
  if ((pool->flags & TARN_POOL_DEFER) == 0 || type->expect != NULL) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "pool: %s may give memory back that a captured graph uses: "
                    "page_unit_pool and arena_pool do not",
                    type->table.name);
}

// Cuts a block from the caller's memory, so that all of it is the strategy's
// from the beginning.
static tarn_status try_own_memory(tarn_pool *pool) {
  tarn__pool_strategy *strategy = pool->current;
  tarn__pool_request request = {.size = 1, .align = pool->natural_align};
  tarn__pool_piece *piece = NULL;
  tarn__front_enter(pool);
  tarn_status status = strategy->type->take(strategy, &request, &piece);
  if (status == TARN_OK) status = strategy->type->give(strategy, piece);
  if (status == TARN_OK) status = strategy->type->trim(strategy, 0, 0);
  tarn__front_leave(pool);
  return status;
}

// A strategy that keeps only the memory of its pieces has nothing to cut up.
static tarn_status begin_with_own_memory(tarn_pool *pool) {
  const char *name = pool->current->type->table.name;
  const tarn_pool_memory *own = &pool->supply.own;
  if (pool->current->type->visit_memory == NULL) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "pool: %s cannot cut up memory of the caller", name);
  }
  tarn_status status = try_own_memory(pool);
  if (status != TARN_FULL) return status;
  return tarn__fail(TARN_E_INVALID,
                    "pool: memory of %zu bytes at 0x%llx is too small for a "
                    "block of %s",
                    own->size, (unsigned long long)own->address, name);
}

static tarn_status create_strategy(tarn_pool *pool, const char *strategy) {
  if ((pool->flags & TARN_POOL_SHAREABLE) != 0) {
    return tarn__strategy_make(pool, &tarn__share_pool, NULL, &pool->current);
  }
  if (strategy == NULL) strategy = tarn__strategy_default();
  return tarn__strategy_create(pool, strategy, &pool->current);
}

static tarn_status start(tarn_pool *pool, tarn_place place,
                         const tarn_pool_options *options) {
  pool->flags = options->flags;
  pool->stats.limit_bytes = options->limit;
  TARN__TRY(tarn__full_shots_begin());
  TARN__TRY(adopt_device(pool, place, options));
  TARN__TRY(create_strategy(pool, options->strategy));
  TARN__TRY(check_for_captures(pool));
  if (tarn__front_has_own(pool)) TARN__TRY(begin_with_own_memory(pool));
  return options->flags == 0 ? tarn__debug_begin(pool) : TARN_OK;
}

tarn_status tarn__front_create(tarn_place place,
                               const tarn_pool_options *options,
                               tarn_pool **out_pool) {
  *out_pool = NULL;
  tarn_pool *pool = tarn__host_alloc(sizeof *pool);
  if (pool == NULL) return TARN_E_NOMEM;
  pool->generation = tarn__os_generation();
  pool->stats.struct_size = sizeof pool->stats;
  tarn__steps_init(&pool->steps);
  tarn__biased_lock_init(&pool->lock);
  pool->stats.counters = TARN_COUNT_DEFAULT;
  tarn__on_full_init(&pool->on_full);
  tarn_list_init(&pool->replaced);
  tarn_list_init(&pool->known);
  tarn_list_init(&pool->own_node);
  tarn_status status = start(pool, place, options);
  if (status != TARN_OK) {
    forget(pool);
    return status;
  }
  tarn__pools_enter(pool);
  *out_pool = pool;
  return TARN_OK;
}

// Waits for the streams that |waits| names. Then they use no memory of
// |strategy|; a stream that has failed does not either.
static tarn_status end_streams(tarn__pool_strategy *strategy,
                               const tarn__pool_waits *waits) {
  tarn_status first = TARN_OK;
  for (size_t i = 0; i < waits->count && i < TARN__WAITS; i++) {
    tarn__keep_first(&first, tarn__source_wait(strategy, waits->serials[i]));
    strategy->type->settle(strategy, waits->serials[i]);
  }
  return first;
}

// The caller's memory is given back without a call of the device, but not
// before streams that may still use it have finished.
static tarn_status leave_own_memory(tarn_pool *pool) {
  tarn__pool_strategy *strategy = pool->current;
  tarn__pool_survey found = {.idle = 0};
  tarn_status first = TARN_OK;
  if (strategy->type->survey == NULL || strategy->type->settle == NULL) {
    return TARN_OK;
  }
  tarn__front_enter(pool);
  tarn__steps_forget(pool);
  do {
    found = (tarn__pool_survey){.idle = 0};
    strategy->type->survey(strategy, &found);
    tarn__keep_first(&first, end_streams(strategy, &found.streams));
  } while (found.streams.count > TARN__WAITS);
  tarn__front_leave(pool);
  return first;
}

tarn_status tarn__front_destroy(tarn_pool *pool) {
  tarn__decay_end(pool);
  pool->capture = TARN__CAPTURE_OPEN;  // no graph uses it any more
  pool->kept = 0;
  tarn_status status = tarn_pool_trim(pool, 0);
  if (tarn__front_has_own(pool) && pool->generation == tarn__os_generation()) {
    tarn__keep_first(&status, leave_own_memory(pool));
  }
  forget(pool);
  return status;
}

// --- switching -------------------------------------------------------------

tarn_status tarn__front_switch(tarn_pool *pool, tarn__pool_strategy *strategy) {
  tarn__front_enter(pool);
  (void)tarn__debug_flush(pool);
  (void)tarn__lanes_empty(pool);
  tarn__pool_strategy *old = pool->current;
  tarn__steps_forget(pool);
  pool->current = strategy;
  pool->kept = 0;  // the old strategy had to keep it
  tarn__front_note_change(pool, TARN_POOL_EVENT_SWITCH, 0, 0);
  tarn_list_add_tail(&pool->replaced, &old->node);
  tarn_status status = tarn__strategy_trim(old, 0, 0);
  tarn__front_leave(pool);
  return status;
}

// --- memory of the device --------------------------------------------------

static void add_size(void *context, tarn_addr address, size_t size) {
  (void)address;
  *(size_t *)context += size;
}

// --- the invariants --------------------------------------------------------

typedef struct sums {
  size_t live_bytes;
  size_t live_blocks;
  size_t aside;  // pieces whose block is gone, but not yet with their owner
  size_t counted_bytes;  // under their tags
  size_t counted_blocks;
  size_t asleep_blocks;
  size_t reserved_bytes;
  size_t used;
  size_t idle;
  size_t laned;  // idle in lanes
} sums;

static tarn_status expect(const char *what, size_t is, size_t should_be) {
  if (is == should_be) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT, "pool: %s is %zu, should be %zu", what, is,
                    should_be);
}

static tarn_status fail_piece(const tarn__pool_piece *piece, const char *why) {
  return tarn__fail(TARN_E_CORRUPT, "pool: piece %u %s", piece->id, why);
}

static tarn_status check_piece(const tarn_pool *pool,
                               const tarn__pool_piece *piece) {
  size_t skipped = (size_t)(piece->address - piece->base);
  bool inside = piece->base_size == 0 ||
                (piece->address >= piece->base && skipped <= piece->base_size &&
                 piece->size <= piece->base_size - skipped);
  if (!inside) {
    return fail_piece(piece, "exceeds its memory");
  }
  bool idle = piece->planned && !piece->live;
  if (!idle && tarn__front_at(pool, piece->address) != piece) {
    return fail_piece(piece, "is not in the index");
  }
  if (piece->resizing) {
    return fail_piece(piece, "is between two sizes");
  }
  if (piece->sleeper != NULL && !piece->live) {
    return fail_piece(piece, "is asleep and not live");
  }
  if (piece->live && piece->requested > piece->size) {
    return expect("a block's size", piece->size, piece->requested);
  }
  if (!piece->live && (piece->counted || tarn__uses_any(&piece->uses))) {
    return fail_piece(piece, "is idle and in use");
  }
  return TARN_OK;
}

static tarn_status sum_pieces(const tarn_pool *pool, sums *out) {
  for (size_t id = 0; id < tarn__pieces_count(&pool->pieces); id++) {
    const tarn__pool_piece *piece =
        tarn__pieces_at(&pool->pieces, (uint32_t)id);
    if (piece->base == 0) continue;
    TARN__TRY(check_piece(pool, piece));
    out->used++;
    out->reserved_bytes += piece->base_size;
    out->live_bytes += piece->live ? piece->requested : 0;
    out->live_blocks += piece->live ? 1 : 0;
    out->aside += (piece->marks & TARN__MARK_ASIDE) != 0 ? 1 : 0;
    out->counted_bytes += piece->counted ? piece->requested : 0;
    out->counted_blocks += piece->counted ? 1 : 0;
    out->asleep_blocks += piece->sleeper != NULL ? 1 : 0;
  }
  return TARN_OK;
}

static tarn_status check_strategies(tarn_pool *pool, sums *out) {
  size_t live = pool->current->live;
  out->reserved_bytes += pool->current->held;
  TARN__TRY(pool->current->type->check(pool->current, &out->idle));
  TARN__TRY(tarn__steps_check(pool, &out->idle));
  tarn_list *node = NULL;
  tarn_list_for_each (node, &pool->replaced) {
    tarn__pool_strategy *old = tarn_list_entry(node, tarn__pool_strategy, node);
    size_t idle = 0;
    TARN__TRY(old->type->check(old, &idle));
    TARN__TRY(expect("idle pieces of a replaced strategy", idle, 0));
    live += old->live;
    out->reserved_bytes += old->held;
  }
  out->laned = tarn__lanes_count_idle(pool);
  return expect("blocks of all strategies", live,
                out->live_blocks + out->aside + out->laned);
}

static tarn_pool_tag_stats sum_tags(const tarn_pool *pool) {
  tarn_pool_tag_stats sum = {0};
  for (size_t i = 0; i < pool->tag_count; i++) {
    const tarn_pool_tag_stats *tag = &pool->tags[i];
    sum.live_bytes += tag->live_bytes;
    sum.live_blocks += tag->live_blocks;
    sum.charged_bytes += tag->charged_bytes;
    sum.asleep_blocks += tag->asleep_blocks;
    sum.asleep_bytes += tag->asleep_bytes;
    sum.saved_bytes += tag->saved_bytes;
  }
  return sum;
}

static tarn_status check_sums(tarn_pool *pool, const sums *s) {
  const tarn_pool_stats *stats = &pool->stats;
  tarn_pool_tag_stats tags = sum_tags(pool);
  size_t told = 0;
  tarn__front_visit_memory(pool, add_size, &told);
  const struct {
    const char *what;
    size_t is;
    size_t should_be;
  } checks[] = {
      {"charged_bytes", stats->charged_bytes, tags.charged_bytes},
      {"bytes of all tags", tags.live_bytes, s->counted_bytes},
      {"blocks of all tags", tags.live_blocks, s->counted_blocks},
      {"blocks asleep", tags.asleep_blocks, s->asleep_blocks},
      {"asleep_bytes", stats->asleep_bytes, tags.asleep_bytes},
      {"saved_bytes", stats->saved_bytes, tags.saved_bytes},
      {"live_bytes", stats->live_bytes, s->live_bytes},
      {"live_blocks", stats->live_blocks, s->live_blocks},
      {"reserved_bytes", stats->reserved_bytes, s->reserved_bytes},
      {"memory of the device", told, s->reserved_bytes},
      {"pieces in use", pool->pieces.used, s->used},
      {"idle and live pieces", s->idle + s->live_blocks + s->aside + s->laned,
       s->used},
  };
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
    TARN__TRY(expect(checks[i].what, checks[i].is, checks[i].should_be));
  return TARN_OK;
}

static tarn_status check_locked(tarn_pool *pool) {
  sums s = {0};
  TARN__TRY(sum_pieces(pool, &s));
  TARN__TRY(check_strategies(pool, &s));
  TARN__TRY(check_sums(pool, &s));
  if (tarn__ordered_check(&pool->pieces)) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT,
                    "pool: the pieces are not sorted by address");
}

tarn_status tarn__front_check(tarn_pool *pool) {
  tarn__front_enter(pool);
  tarn_status status = check_locked(pool);
  tarn__front_leave(pool);
  return status;
}

// --- limits and trimming ---------------------------------------------------

tarn_place tarn_pool_place(const tarn_pool *pool) {
  return pool->place;
}

tarn_status tarn_pool_limit(tarn_pool *pool, size_t bytes) {
  TARN__TRY(tarn__front_check_pool(pool));
  if (bytes != 0 && tarn__front_has_own(pool)) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "pool: a pool over memory of the caller cannot get a "
                      "limit of %zu bytes",
                      bytes);
  }
  tarn__front_enter(pool);
  pool->stats.limit_bytes = bytes;
  tarn__front_leave(pool);
  return TARN_OK;
}

tarn_status tarn_pool_trim(tarn_pool *pool, size_t target) {
  TARN__TRY(tarn__front_check_pool(pool));
  tarn__front_enter(pool);
  tarn_status status = tarn__capture_admit_trim(pool);
  if (status == TARN_OK) {
    if (pool->stats.reserved_bytes > target) {
      (void)tarn__debug_flush(pool);
      (void)tarn__lanes_empty(pool);
    }
    status = tarn__front_trim(pool, target);
  }
  tarn__front_leave(pool);
  return status;
}
