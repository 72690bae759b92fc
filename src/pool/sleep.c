// Sleep: blocks of a tag lose their memory, and get it again.
//
//   sleep   check all ─► strategy: save, give back ─► count
//   wake    check and mark all ─► strategies: get, restore ─► keep or undo
//
// Blocks fall asleep in the present strategy only, and wake in any: another
// strategy may have replaced it. Blocks that are being woken are marked as
// |resizing| from before the first strategy is called until after the last one.
// So the set stays the same, and all of it wakes or none of it.
#include "tarn/sleep.h"

#include "base/status.h"
#include "pool/reclaim.h"
#include "pool/take.h"

enum { ATTEMPTS = 4 };  // to get memory for the blocks to wake

// --- checking --------------------------------------------------------------

static tarn_status check_tag(const tarn_pool *pool, const char *what,
                             tarn_tag tag) {
  tarn_status status = tarn__front_check_pool(pool);
  if (status != TARN_OK || tag == 0 || tarn__tag_is_known(tag)) return status;
  return tarn__fail(TARN_E_INVALID, "%s: there is no tag %u", what, tag);
}

// The |*id|-th piece, or the next, with a block of |tag| that is out.
static tarn__pool_piece *next_block(const tarn_pool *pool, tarn_tag tag,
                                    size_t *id) {
  size_t count = tarn__pieces_count(&pool->pieces);
  for (; *id < count; ++*id) {
    tarn__pool_piece *piece = tarn__pieces_at(&pool->pieces, (uint32_t)*id);
    if (piece->live && piece->tag == tag) return piece;
  }
  return NULL;
}

static tarn_status refuse_strategy(const tarn__pool_strategy *strategy) {
  if (strategy->type->sleep != NULL) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "sleep: blocks are out of a strategy that was replaced, "
                      "%s: they cannot",
                      strategy->type->table.name);
  }
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "sleep: not supported by %s: it needs arena_pool on a "
                    "device with address ranges",
                    strategy->type->table.name);
}

// Its guard would have to sleep with it.
static tarn_status refuse_dressed(const tarn__pool_piece *piece) {
  return tarn__fail(
      TARN_E_UNSUPPORTED,
      "sleep: the block at 0x%llx was allocated while the pool debugged",
      (unsigned long long)piece->address);
}

static tarn_status refuse_direct(const tarn__pool_piece *piece) {
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "sleep: the block at 0x%llx exceeds the device's largest "
                    "chunk and was asked of the device by itself",
                    (unsigned long long)piece->address);
}

// All that are awake can fall asleep.
static tarn_status check_blocks(const tarn_pool *pool, tarn_tag tag) {
  const tarn__pool_piece *piece = NULL;
  if (pool->current->type->sleep == NULL) return refuse_strategy(pool->current);
  for (size_t id = 0; (piece = next_block(pool, tag, &id)) != NULL; id++) {
    TARN__TRY(tarn__front_check_rest("sleep", piece));
    if (piece->marks != 0) return refuse_dressed(piece);
    if (piece->base_size != 0) return refuse_direct(piece);
    if (piece->sleeper == NULL && piece->owner != pool->current) {
      return refuse_strategy(piece->owner);
    }
  }
  return TARN_OK;
}

// --- falling asleep --------------------------------------------------------

static tarn_status sleep_locked(tarn_pool *pool, tarn_tag tag, bool saves) {
  TARN__TRY(check_blocks(pool, tag));
  // Blocks of tags that are not counted sleep too, and that is counted.
  TARN__TRY(tarn__front_prepare_tag(pool, tag));
  tarn__pool_strategy *strategy = pool->current;
  bool asleep = false;
  strategy->inside++;
  tarn_status status = strategy->type->sleep(strategy, tag, saves, &asleep);
  (void)tarn__front_end_call(pool, strategy);
  return status;
}

tarn_status tarn_pool_sleep(tarn_pool *pool, tarn_tag tag,
                            tarn_sleep_mode mode) {
  TARN__TRY(check_tag(pool, "sleep", tag));
  if (mode != TARN_SLEEP_DROP && mode != TARN_SLEEP_SAVE) {
    return tarn__fail(TARN_E_INVALID, "sleep: there is no mode %d", (int)mode);
  }
  if (pool->flags != 0 || tarn__front_has_own(pool)) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "sleep: not possible in pools that are dry, for "
                      "captures, shareable, or over memory of the caller");
  }
  tarn__front_enter(pool);
  (void)tarn__lanes_empty(pool);
  tarn_status status = sleep_locked(pool, tag, mode == TARN_SLEEP_SAVE);
  tarn__front_leave(pool);
  return status;
}

// --- waking ----------------------------------------------------------------

// No block is marked if another thread works on one of them.
static tarn_status mark_sleepers(const tarn_pool *pool, tarn_tag tag) {
  tarn__pool_piece *piece = NULL;
  for (size_t id = 0; (piece = next_block(pool, tag, &id)) != NULL; id++) {
    TARN__TRY(tarn__front_check_rest("wake", piece));
  }
  for (size_t id = 0; (piece = next_block(pool, tag, &id)) != NULL; id++) {
    if (piece->sleeper != NULL) piece->resizing = true;
  }
  return TARN_OK;
}

// The strategies of the marked blocks, by their address: the list of strategies
// may change while the lock is released.
static tarn__pool_strategy *next_owner(tarn_pool *pool, tarn_tag tag,
                                       uintptr_t behind) {
  tarn__pool_strategy *next = NULL;
  const tarn__pool_piece *piece = NULL;
  tarn__lanes_close(pool);
  for (size_t id = 0; (piece = next_block(pool, tag, &id)) != NULL; id++) {
    bool marked = piece->sleeper != NULL && piece->resizing;
    if (!marked || (uintptr_t)piece->owner <= behind) continue;
    if (next == NULL || (uintptr_t)piece->owner < (uintptr_t)next) {
      next = piece->owner;
    }
  }
  return next;
}

static tarn_status wake_in(tarn_pool *pool, tarn__pool_strategy *strategy,
                           tarn_tag tag) {
  tarn_status status = strategy->type->wake(strategy, tag);
  for (int i = 1; i < ATTEMPTS && status == TARN_FULL; i++) {
    if (!tarn__front_make_room(pool)) break;
    status = strategy->type->wake(strategy, tag);
  }
  return status;
}

static tarn_status wake_locked(tarn_pool *pool, tarn_tag tag) {
  size_t size = tarn__tag_stats_of(pool, tag).asleep_bytes;
  tarn_status status = tarn__room_check(pool, size);
  if (status == TARN_FULL) return tarn__room_lacks(pool, "wake", size);
  TARN__TRY(status);
  tarn__lanes_close(pool);  // the lock may have been released
  TARN__TRY(mark_sleepers(pool, tag));
  tarn__pool_strategy *owner = NULL;
  for (uintptr_t at = 0;
       status == TARN_OK && (owner = next_owner(pool, tag, at)) != NULL;
       at = (uintptr_t)owner) {
    status = wake_in(pool, owner, tag);
  }
  for (uintptr_t at = 0; (owner = next_owner(pool, tag, at)) != NULL;) {
    at = (uintptr_t)owner;
    owner->inside++;
    (void)owner->type->end_wake(owner, tag, status == TARN_OK);
    (void)tarn__front_end_call(pool, owner);
  }
  return status;
}

tarn_status tarn_pool_wake(tarn_pool *pool, tarn_tag tag) {
  TARN__TRY(check_tag(pool, "wake", tag));
  tarn__front_enter(pool);
  tarn_status status = wake_locked(pool, tag);
  // After a failure all of them sleep again.
  tarn__pool_request lacking = {
      .size = tarn__tag_stats_of(pool, tag).asleep_bytes, .tag = tag};
  return tarn__take_end(pool, &lacking, false, status);
}
