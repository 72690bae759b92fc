// Resizing: a block grows and shrinks where it stands.
//
//   check ─► order behind what the block waits for ─► strategy ─► count
//
// The strategy may let go of the lock to ask the device. The piece is marked
// meanwhile, so that another thread that frees or resizes the same block, by
// mistake, is refused.
#include "base/status.h"
#include "pool/capture.h"

static void recount(tarn_pool *pool, tarn__piece *piece, size_t size) {
  tarn_pool_stats *stats = &pool->stats;
  tarn__tag_count *tag = &pool->tags[piece->tag];
  stats->live_bytes = stats->live_bytes - piece->requested + size;
  tag->live_bytes = tag->live_bytes - piece->requested + size;
  tarn__raise_peak(stats->live_bytes, &stats->live_peak_bytes);
  tarn__raise_peak(tag->live_bytes, &tag->live_peak_bytes);
  piece->requested = size;
}

static tarn_status no_room(const tarn__piece *piece, size_t size) {
  return tarn__fail(TARN_FULL,
                    "resize: the block at 0x%llx has %zu bytes and cannot have "
                    "%zu where it stands",
                    (unsigned long long)piece->address, piece->size, size);
}

// One that was replaced gets no more memory, and all that it has idle goes
// back: what a block of it has it keeps.
static tarn_status ask_strategy(tarn_pool *pool, tarn__request *request,
                                tarn__piece *piece) {
  tarn__strategy *owner = piece->owner;
  if (owner->type->resize == NULL || owner != pool->current) {
    return request->size <= piece->size ? TARN_OK
                                        : no_room(piece, request->size);
  }
  tarn_status status = owner->type->resize(owner, request, piece);
  if (owner != pool->current) {  // now; what is idle came of this call
    owner->inside++;
    (void)owner->type->trim(owner, 0);
    owner->inside--;
  }
  return status;
}

// Whose work what is cut off may still see: as with a free. What is added is
// the stream's at once, which for the host only nobody's memory is.
static uint64_t serial_for(const tarn__piece *piece, size_t size,
                           uint64_t serial) {
  bool grows = size > piece->size;
  return serial != 0 || grows ? serial : piece->waits_on;
}

static tarn_status resize_piece(tarn_pool *pool, tarn__piece *piece,
                                size_t size, tarn_stream *stream,
                                uint64_t serial) {
  uint64_t first = piece->waits_on;
  if (first != 0 && serial != 0 && serial != first) {
    tarn_status status = tarn__front_follow(pool, stream, first);
    if (status != TARN_OK) return status;
    piece->waits_on = serial;
  }
  bool grows = size > piece->size;
  tarn__request request = {
      .size = size,
      .align = pool->natural_align,
      .serial = serial_for(piece, size, serial),
  };
  tarn_status status = ask_strategy(pool, &request, piece);
  if (status != TARN_OK) return status;
  // What it grew into may be behind work of that stream, which whoever gets the
  // memory next on another has to wait for.
  if (grows && serial != 0) piece->waits_on = serial;
  recount(pool, piece, size);
  return TARN_OK;
}

static tarn_status resize_locked(tarn_pool *pool, tarn_block *block,
                                 size_t size, tarn_stream *stream,
                                 uint64_t serial) {
  tarn__piece *piece = NULL;
  tarn_status status = tarn__front_find_block(pool, "resize", block, &piece);
  if (status == TARN_OK) {
    status = tarn__capture_admit_resize(pool, piece, serial);
  }
  if (status != TARN_OK) return status;
  piece->resizing = true;
  status = resize_piece(pool, piece, size, stream, serial);
  piece->resizing = false;
  if (status == TARN_OK) block->size = piece->size;
  return status;
}

tarn_status tarn_pool_resize(tarn_block *block, size_t size,
                             tarn_stream *stream) {
  uint64_t serial = 0;
  if (block == NULL) return tarn__fail(TARN_E_INVALID, "resize: NULL");
  tarn_pool *pool = block->pool;
  tarn_status status = tarn__front_check_call(pool, stream, &serial);
  if (status != TARN_OK) return status;
  if (size == 0) return tarn__fail(TARN_E_INVALID, "resize: size is 0");
  pthread_mutex_lock(&pool->lock);
  status = resize_locked(pool, block, size, stream, serial);
  pthread_mutex_unlock(&pool->lock);
  return status;
}
