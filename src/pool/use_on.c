// Blocks that several streams use.
//
//   allocated for A ─► use_on B ─► use_on C ─► freed on A: A waits for B and C
//                                              freed by the host: one of the
//                                              unfinished streams waits for the
//                                              others, and the host for none
//
// The driver is not called before the block is freed, and then only for the
// unfinished streams. Work queued later on a stream does not matter.
#include <assert.h>

#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"

// Where a stream cannot wait for another, the host waits.
static tarn_status put_behind(tarn_stream *stream, uint64_t serial,
                              uint64_t other) {
  if (stream == NULL) return tarn__stream_follow(serial, other);
  tarn_status status = tarn_stream_join(stream, other);
  return status == TARN_OK ? TARN_OK : tarn_stream_join(NULL, other);
}

// Idle streams are skipped: a query costs less than a wait, and does not delay
// later work. Returns the first failure.
static tarn_status settle(const tarn__pool_piece *piece, tarn_stream *stream,
                          uint64_t *serial, uint64_t *out_crossings) {
  tarn_status first = TARN_OK;
  size_t count = tarn__uses_count(&piece->uses);
  uint64_t own = piece->waits_on;
  if (*serial == 0 && own != 0 && !tarn__stream_is_idle(own)) *serial = own;
  for (size_t i = 0; i < count; i++) {
    uint64_t other = tarn__uses_at(&piece->uses, i);
    if (other == *serial || tarn__stream_is_idle(other)) continue;
    if (*serial == 0) {
      *serial = other;
      continue;
    }
    ++*out_crossings;
    if (stream == NULL && tarn__stream_is_departed(*serial)) {
      uint64_t departed = *serial;  // nothing can be queued there
      *serial = other;
      other = departed;
    }
    tarn__keep_first(&first, put_behind(stream, *serial, other));
  }
  return first;
}

tarn_status tarn__uses_settle(tarn_pool *pool, tarn__pool_piece *piece,
                              tarn_stream *stream, uint64_t *serial) {
  uint64_t crossings = 0;
  assert(piece->resizing);
  tarn__front_leave(pool);
  tarn_status status = settle(piece, stream, serial, &crossings);
  tarn__front_reenter(pool);
  pool->stats.stream_crossings += crossings;
  return status;
}

static tarn_status use_locked(tarn_pool *pool, const tarn_block *block,
                              uint64_t serial) {
  tarn__pool_piece *piece = NULL;
  do {
    TARN__TRY(tarn__front_find_block(pool, "use_on", block, &piece));
    if (serial == 0) return TARN_OK;
  } while (!tarn__piece_leave_home(piece));  // streams decide about its free
  if (piece->planned) tarn__steps_break(pool, piece);
  tarn__steps_exclude(pool, piece);
  return tarn__uses_add(&piece->uses, serial) ? TARN_OK : TARN_E_NOMEM;
}

tarn_status tarn_block_use_on(const tarn_block *block, tarn_stream *stream) {
  uint64_t serial = 0;
  if (block == NULL) return tarn__fail(TARN_E_INVALID, "use_on: NULL");
  tarn_pool *pool = block->pool;
  TARN__TRY(tarn__front_check_call(pool, stream, &serial));
  tarn__front_reenter(pool);
  tarn_status status = use_locked(pool, block, serial);
  tarn__front_leave(pool);
  return status;
}

// A block that was taken for one stream and is freed on another may never have
// been used on the first, where the wait for its last user is queued. Then the
// other stream is ordered behind the first, or the host waits for the first.
// Releases the lock.
tarn_status tarn__front_follow(tarn_pool *pool, tarn_stream *stream,
                               uint64_t first) {
  tarn__front_leave(pool);
  tarn_status status = tarn_stream_join(stream, first);
  if (status != TARN_OK) status = tarn_stream_join(NULL, first);
  tarn__front_reenter(pool);
  return status;
}
