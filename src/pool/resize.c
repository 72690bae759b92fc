// Resizing: a block grows and shrinks where it stands.
//
//   check ─► order behind what the block waits for ─► strategy ─► count
//
// The strategy may release the lock to call the device. The piece is marked
// during it, so that a thread that frees or resizes the same block, by mistake,
// is refused.
#include "base/status.h"
#include "pool/capture.h"
#include "pool/front.h"
#include "pool/reclaim.h"

static void recount(tarn_pool *pool, tarn__pool_piece *piece, size_t size,
                    uint64_t serial) {
  tarn_pool_stats *stats = &pool->stats;
  size_t before = piece->requested;
  stats->live_bytes = stats->live_bytes - before + size;
  tarn__front_raise_live(pool);
  if (piece->counted) {
    tarn_pool_tag_stats *tag = &pool->tags[piece->tag];
    tag->live_bytes = tag->live_bytes - before + size;
    tarn__front_raise_tag(pool, tag);
  }
  piece->requested = size;
  if (tarn__front_counts(pool, TARN_COUNT_EVENTS)) {
    tarn__front_note_block(pool, TARN_POOL_EVENT_RESIZE, piece, before, serial);
  }
}

static tarn_status no_room(const tarn__pool_piece *piece, size_t size) {
  return tarn__fail(TARN_FULL,
                    "resize: the block at 0x%llx has %zu bytes and cannot grow "
                    "to %zu in place",
                    (unsigned long long)piece->address, piece->size, size);
}

static tarn_status check_room(tarn_pool *pool, tarn__pool_request *request,
                              const tarn__pool_piece *piece) {
  if (request->size <= piece->size) return TARN_OK;
  tarn_status status = tarn__room_check(pool, request->size - piece->size);
  request->lacks = status == TARN_FULL;
  return status;
}

static bool can_resize(const tarn_pool *pool,
                       const tarn__pool_strategy *owner) {
  return owner->type->resize != NULL && owner == pool->current;
}

// A strategy that was replaced, even during the call of the device, gets no
// more memory, and gives all its idle memory back; its blocks keep theirs.
static tarn_status ask_strategy(tarn_pool *pool, tarn__pool_request *request,
                                tarn__pool_piece *piece) {
  tarn__pool_strategy *owner = piece->owner;
  if (can_resize(pool, owner)) TARN__TRY(check_room(pool, request, piece));
  if (!can_resize(pool, owner)) {
    return request->size <= piece->size ? TARN_OK
                                        : no_room(piece, request->size);
  }
  tarn_status status = owner->type->resize(owner, request, piece);
  // It may have been replaced by now; its idle memory came from this call.
  if (owner != pool->current) (void)tarn__strategy_trim(owner, 0, 0);
  return status;
}

// Sets |*serial| to the stream that may still use the bytes that are cut off:
// as with a free, the call waits for streams that use the block. Added bytes
// are the stream's at once; for the host only unused memory is.
static tarn_status order(tarn_pool *pool, tarn__pool_piece *piece, size_t size,
                         tarn_stream *stream, uint64_t *serial) {
  if (size > piece->size) return TARN_OK;
  if (tarn__uses_any(&piece->uses)) {
    return tarn__uses_settle(pool, piece, stream, serial);
  }
  if (*serial == 0) *serial = piece->waits_on;
  return TARN_OK;
}

// A block keeps its bytes: it lacks the rest.
static tarn__pool_full_shot *picture_of(tarn_pool *pool,
                                        const tarn__pool_piece *piece,
                                        size_t size, uint64_t serial) {
  tarn__pool_refusal refusal = {
      .size = size > piece->requested ? size - piece->requested : size,
      .serial = serial,
      .tag = piece->tag};
  return tarn__full_shot_take(pool, &refusal);
}

// |guard|: bytes more, which the block does not get. |*out_shot| stays as it is
// unless memory was lacking.
static tarn_status resize_piece(tarn_pool *pool, tarn__pool_piece *piece,
                                size_t size, size_t guard, tarn_stream *stream,
                                uint64_t serial,
                                tarn__pool_full_shot **out_shot) {
  uint64_t first = piece->waits_on;
  size_t in_all = 0;
  if (!tarn_size_add(size, guard, &in_all)) {
    return tarn__fail(TARN_E_INVALID, "resize: %zu bytes overflow", size);
  }
  if (first != 0 && serial != 0 && serial != first) {
    TARN__TRY(tarn__front_follow(pool, stream, first));
    piece->waits_on = serial;
  }
  bool grows = in_all > piece->size;
  tarn__pool_request request = {
      .size = in_all,
      .align = pool->natural_align,
      .serial = serial,
  };
  tarn_status status = order(pool, piece, in_all, stream, &request.serial);
  if (status == TARN_OK) status = ask_strategy(pool, &request, piece);
  if (request.lacks) {
    tarn__lanes_close(pool);  // a picture and a text tell the sums
    *out_shot = picture_of(pool, piece, size, serial);
    return tarn__room_lacks(pool, "add", in_all - piece->size);
  }
  if (status != TARN_OK) return status;
  if (!grows) pool->cuts++;
  // The added bytes may be behind work of that stream, which a later user on
  // another stream has to wait for.
  if (grows && serial != 0) piece->waits_on = serial;
  recount(pool, piece, size, serial);
  return TARN_OK;
}

static tarn_status refuse_sleeping(const tarn__pool_piece *piece) {
  return tarn__fail(TARN_E_STATE, "resize: the block at 0x%llx is asleep",
                    (unsigned long long)piece->address);
}

static tarn_status resize_locked(tarn_pool *pool, tarn_block *block,
                                 size_t size, tarn_stream *stream,
                                 uint64_t serial,
                                 tarn__pool_full_shot **out_shot) {
  tarn__pool_piece *piece = NULL;
  (void)tarn__capture_look(pool, serial, true);
  do {
    TARN__TRY(tarn__front_find_block(pool, "resize", block, &piece));
  } while (!tarn__piece_leave_home(piece));  // a new size is not a lane's
  TARN__TRY(tarn__capture_admit_resize(pool, piece, serial));
  if (piece->sleeper != NULL) return refuse_sleeping(piece);
  if (piece->planned) tarn__steps_break(pool, piece);
  piece->resizing = true;
  size_t usable = tarn__debug_usable(piece);
  bool dressed = piece->marks != 0;
  if (dressed) tarn__debug_before_resize(pool, piece);
  tarn_status status =
      resize_piece(pool, piece, size, tarn__debug_guard(piece->marks), stream,
                   serial, out_shot);
  if (dressed) tarn__debug_after_resize(pool, piece, usable, serial);
  piece->resizing = false;
  if (status == TARN_OK) block->size = tarn__debug_usable(piece);
  return status;
}

tarn_status tarn_pool_resize(tarn_block *block, size_t size,
                             tarn_stream *stream) {
  uint64_t serial = 0;
  if (block == NULL) return tarn__fail(TARN_E_INVALID, "resize: NULL");
  tarn_pool *pool = block->pool;
  TARN__TRY(tarn__front_check_call(pool, stream, &serial));
  if (size == 0) return tarn__fail(TARN_E_INVALID, "resize: size is 0");
  tarn__pool_full_shot *shot = NULL;
  tarn__front_reenter(pool);
  tarn_status status = resize_locked(pool, block, size, stream, serial, &shot);
  tarn__front_leave(pool);
  tarn__full_shot_write(shot);
  return status != TARN_E_INVALID ? status
                                  : tarn__pools_explain(pool, block->address);
}
