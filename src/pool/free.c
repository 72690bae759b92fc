// The front: every free passes here.
//
//   check ─► order behind its first stream ─► count ─► back to the strategy
//   that owns the piece
#include <assert.h>

#include "base/status.h"
#include "device/memory.h"
#include "pool/capture.h"

static void count_dead(tarn_pool *pool, tarn__piece *piece) {
  tarn_pool_stats *stats = &pool->stats;
  tarn__tag_count *tag = &pool->tags[piece->tag];
  stats->live_bytes -= piece->requested;
  stats->live_blocks--;
  tag->live_bytes -= piece->requested;
  tag->live_blocks--;
  piece->owner->live--;
  piece->live = false;
}

// --- giving back -----------------------------------------------------------

tarn_status tarn__front_give(tarn_pool *pool, tarn__piece *piece,
                             uint64_t serial) {
  tarn__strategy *owner = piece->owner;
  count_dead(pool, piece);
  piece->freed_on = serial;
  piece->waits_on = 0;
  tarn_status status = owner == pool->current
                           ? owner->type->give(owner, piece)
                           : owner->type->let_go(owner, piece);
  // It may have been the last block of one that was replaced, be it meanwhile.
  if (owner != pool->current) tarn__front_retire(pool, owner);
  return status;
}

// What is to be freed: a block, or what starts at an address.
typedef struct freed {
  const tarn_block *block;  // NULL: by address
  tarn_addr address;
} freed;

static tarn_status find_target(tarn_pool *pool, freed what,
                               tarn__piece **out_piece) {
  if (what.block != NULL) {
    return tarn__front_find_block(pool, "free", what.block, out_piece);
  }
  tarn_status status = tarn__front_find_address(pool, what.address, out_piece);
  return status == TARN_OK ? tarn__front_check_rest("free", *out_piece)
                           : status;
}

// A block that was taken for one stream and is freed on another may never have
// been used on the first, where the wait for its last user is queued. Then the
// other has to stand behind the first, or the host waits for that one. The
// lock is let go meanwhile.
tarn_status tarn__front_follow(tarn_pool *pool, tarn_stream *stream,
                               uint64_t first) {
  pthread_mutex_unlock(&pool->lock);
  tarn_status status = tarn_stream_join(stream, first);
  if (status != TARN_OK) status = tarn_stream_join(NULL, first);
  pthread_mutex_lock(&pool->lock);
  return status;
}

static tarn_status free_locked(tarn_pool *pool, freed what, tarn_stream *stream,
                               uint64_t serial) {
  tarn__piece *piece = NULL;
  tarn_status ordered = TARN_OK;
  tarn_status status = find_target(pool, what, &piece);
  if (status != TARN_OK) return status;
  assert(piece != NULL);
  if (tarn__capture_defer(pool, piece, serial)) return TARN_OK;
  uint64_t first = piece->waits_on;
  if (first != 0 && serial != 0 && serial != first) {
    ordered = tarn__front_follow(pool, stream, first);
    status = find_target(pool, what, &piece);
    if (status != TARN_OK) return status;
    if (tarn__capture_defer(pool, piece, serial)) return TARN_OK;
  }
  pool->stats.frees++;
  // The host has seen the end of its own uses, not of those before.
  status = tarn__front_give(pool, piece, serial != 0 ? serial : first);
  return status != TARN_OK ? status : ordered;
}

static tarn_status free_target(tarn_pool *pool, freed what,
                               tarn_stream *stream) {
  uint64_t serial = 0;
  tarn_status status = tarn__front_check_call(pool, stream, &serial);
  if (status != TARN_OK) return status;
  pthread_mutex_lock(&pool->lock);
  status = free_locked(pool, what, stream, serial);
  pthread_mutex_unlock(&pool->lock);
  return status;
}

tarn_status tarn_pool_free(const tarn_block *block, tarn_stream *stream) {
  if (block == NULL) return tarn__fail(TARN_E_INVALID, "free: NULL");
  return free_target(block->pool, (freed){.block = block}, stream);
}

tarn_status tarn_pool_free_address(tarn_pool *pool, tarn_addr address,
                                   tarn_stream *stream) {
  return free_target(pool, (freed){.address = address}, stream);
}
