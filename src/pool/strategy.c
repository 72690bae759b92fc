// The life of a strategy in a pool: created, asked to trim, given its blocks
// back, and ended once it was replaced and nothing needs it.
#include "pool/strategy.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hostmem.h"
#include "base/status.h"
#include "pool/state.h"
#include "pool/statistics.h"

tarn_status tarn__strategy_make(tarn_pool *pool,
                                const tarn__pool_strategy_type *type,
                                tarn__pool_strategy_options *options,
                                tarn__pool_strategy **out) {
  *out = NULL;
  tarn__pool_strategy *strategy = tarn__host_alloc(type->table.size);
  if (strategy == NULL) return TARN_E_NOMEM;
  strategy->type = type;
  strategy->pool = pool;
  tarn_list_init(&strategy->node);
  tarn_status status = type->init(strategy, options);
  if (status == TARN_OK) {
    *out = strategy;
  } else {
    tarn__strategy_destroy(strategy);
  }
  return status;
}

void tarn__strategy_destroy(tarn__pool_strategy *strategy) {
  if (strategy == NULL) return;
  strategy->type->deinit(strategy);
  tarn__host_free(strategy, strategy->type->table.size);
}

static bool is_needed(const tarn_pool *pool,
                      const tarn__pool_strategy *strategy) {
  return strategy == pool->current || strategy->live != 0 ||
         strategy->inside != 0;
}

// A call that failed after the switch may have left memory there. Memory that
// the device does not take back is no longer the pool's.
void tarn__front_retire(tarn_pool *pool, tarn__pool_strategy *strategy) {
  if (is_needed(pool, strategy)) return;
  strategy->inside++;
  (void)strategy->type->trim(strategy, 0, 0);
  strategy->inside--;
  tarn__front_note_memory(pool, TARN_POOL_EVENT_SHRINK, 0, strategy->held, 0);
  pool->stats.reserved_bytes -= strategy->held;
  tarn_list_del(&strategy->node);
  tarn__strategy_destroy(strategy);
}

tarn_status tarn__front_end_call(tarn_pool *pool,
                                 tarn__pool_strategy *strategy) {
  tarn_status status = TARN_OK;
  if (strategy != pool->current) status = strategy->type->trim(strategy, 0, 0);
  strategy->inside--;
  tarn__front_retire(pool, strategy);
  return status;
}

// --- options ---------------------------------------------------------------

const char *tarn__options_text(tarn__pool_strategy_options *options,
                               const char *key) {
  const char *value = NULL;
  for (size_t i = 0; i < options->count; i++) {
    tarn__pool_option *o = &options->list[i];
    if (strcmp(o->key, key) != 0) continue;
    o->used = true;
    value = o->value;
  }
  return value;
}

tarn_status tarn__options_size(tarn__pool_strategy_options *options,
                               const char *key, size_t fallback,
                               size_t *out_value) {
  const char *text = tarn__options_text(options, key);
  *out_value = fallback;
  if (text == NULL || tarn__bytes_parse(text, out_value)) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "%s: %s=%s is not a number of bytes",
                    options->strategy, key, text);
}

// --- trimming --------------------------------------------------------------

tarn_status tarn__strategy_trim(tarn__pool_strategy *strategy, size_t target,
                                unsigned how) {
  strategy->inside++;
  tarn_status status = strategy->type->trim(strategy, target, how);
  strategy->inside--;
  tarn__front_retire(strategy->pool, strategy);
  return status;
}

tarn_status tarn__front_trim_as(tarn_pool *pool, size_t target, unsigned how) {
  if (tarn__front_keeps(pool)) return TARN_OK;
  return tarn__strategy_trim(pool->current, target, how);
}

tarn_status tarn__front_trim(tarn_pool *pool, size_t target) {
  return tarn__front_trim_as(pool, tarn__front_target(pool, target), 0);
}

// --- giving blocks back ----------------------------------------------------

void tarn__front_set_aside(tarn_pool *pool, tarn__pool_piece *piece,
                           uint64_t serial) {
  tarn__front_count_dead(pool, piece);
  tarn__piece_end(piece);
  if (tarn__front_counts(pool, TARN_COUNT_EVENTS)) {
    tarn__front_note_block(pool, TARN_POOL_EVENT_FREE, piece, 0, serial);
  }
  piece->freed_on = serial;
  piece->waits_on = 0;
}

tarn_status tarn__front_send_home(tarn_pool *pool, tarn__pool_piece *piece) {
  tarn__pool_strategy *owner = piece->owner;
  owner->live--;
  tarn_status status = owner == pool->current
                           ? owner->type->give(owner, piece)
                           : owner->type->let_go(owner, piece);
  // It may have been the last block of a strategy that was replaced, even
  // during this call.
  if (owner != pool->current) tarn__front_retire(pool, owner);
  return status;
}

// A place of the step layout stays its piece's: the block is only uncounted.
tarn_status tarn__front_give(tarn_pool *pool, tarn__pool_piece *piece,
                             uint64_t serial) {
  if (!piece->planned) {
    tarn__front_set_aside(pool, piece, serial);
    return tarn__front_send_home(pool, piece);
  }
  tarn__front_count_dead(pool, piece);
  piece->owner->live--;
  tarn__piece_end(piece);
  tarn__steps_freed(piece);
  return TARN_OK;
}

// --- memory of the device --------------------------------------------------

static void visit_strategy(const tarn__pool_strategy *strategy,
                           tarn__pool_memory_fn *visit, void *context) {
  if (strategy->type->visit_memory == NULL) return;
  strategy->type->visit_memory(strategy, visit, context);
}

// A block that is not in the index is being worked on by a thread without the
// lock, and its memory may already be another's.
static bool has_memory(const tarn_pool *pool, const tarn__pool_piece *piece) {
  return piece->base_size != 0 &&
         tarn__pieces_find(&pool->pieces, piece->address) == piece;
}

void tarn__front_visit_memory(const tarn_pool *pool,
                              tarn__pool_memory_fn *visit, void *context) {
  for (size_t id = 0; id < tarn__pieces_count(&pool->pieces); id++) {
    const tarn__pool_piece *piece =
        tarn__pieces_at(&pool->pieces, (uint32_t)id);
    if (has_memory(pool, piece)) visit(context, piece->base, piece->base_size);
  }
  visit_strategy(pool->current, visit, context);
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &pool->replaced)
    visit_strategy(tarn_list_entry(node, tarn__pool_strategy, node), visit,
                   context);
}
