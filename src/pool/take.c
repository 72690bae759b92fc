// The steps of a request that no step expects.
//
//   find a piece ─► count ─► order behind its last stream
#include <assert.h>

#include "base/status.h"
#include "device/memory.h"
#include "pool/capture.h"
#include "pool/reclaim.h"
#include "pool/take.h"

// --- taking ----------------------------------------------------------------

// Asks the present strategy. The strategy may be replaced while the device is
// called. Then a call that failed is ended here, with the memory that it got
// until then.
static tarn_status ask_strategy(tarn_pool *pool, tarn__pool_request *request,
                                tarn__pool_piece **out_piece) {
  tarn__pool_strategy *strategy = pool->current;
  strategy->inside++;
  tarn_status status = strategy->type->take(strategy, request, out_piece);
  if (strategy != pool->current && status != TARN_OK) {
    (void)tarn__front_end_call(pool, strategy);
  } else {
    strategy->inside--;
  }
  return status;
}

// What cannot have room changes nothing.
static tarn_status try_take(tarn_pool *pool, tarn__pool_request *request,
                            tarn__pool_piece **out_piece) {
  tarn_status status = tarn__room_check(pool, request->size);
  request->beyond = status == TARN_FULL;
  if (status == TARN_OK && request->counted) {
    status = tarn__front_prepare_tag(pool, request->tag);
  }
  return status == TARN_OK ? ask_strategy(pool, request, out_piece) : status;
}

// There was no room, and it is tried again as long as room can be made.
__attribute__((cold, noinline)) static tarn_status make_room(
    tarn_pool *pool, tarn__pool_request *request,
    tarn__pool_piece **out_piece) {
  tarn__pool_reclaim reclaim = tarn__reclaim_of(pool, request);
  tarn_status status = TARN_FULL;
  while (status == TARN_FULL && tarn__reclaim_next(&reclaim))
    status = try_take(pool, request, out_piece);
  return status == TARN_FULL ? tarn__reclaim_fail(&reclaim) : status;
}

tarn_status tarn__take_try(tarn_pool *pool, tarn__pool_request *request,
                           tarn__pool_piece **out_piece) {
  TARN__TRY(tarn__capture_admit(pool, request));
  return try_take(pool, request, out_piece);
}

tarn_status tarn__take_find(tarn_pool *pool, tarn__pool_request *request,
                            tarn__pool_piece **out_piece) {
  tarn_status status = tarn__take_try(pool, request, out_piece);
  return status == TARN_FULL ? make_room(pool, request, out_piece) : status;
}

void tarn__take_enter(tarn_pool *pool, const tarn__pool_request *request,
                      tarn__pool_piece *piece) {
  if (request->asked) {
    pool->stats.misses++;
  } else {
    pool->stats.hits++;
  }
  pool->stats.allocs++;
  tarn__piece_advance(piece);
  tarn__piece_set_tag(piece, request->tag);
  piece->captured = request->captured;
  piece->noticed = request->noticed;
  piece->requested = request->size - request->guard;
  piece->counted = request->counted;
  tarn__front_count_live(pool, piece, request->asked);
  tarn__piece_begin(piece, tarn__take_may_have_home(piece) ? request->lane : 0);
  if (tarn__front_counts(pool, TARN_COUNT_EVENTS)) {
    tarn__front_note_block(pool, TARN_POOL_EVENT_ALLOC, piece, 0,
                           request->serial);
  }
}

static inline tarn_status take_locked(tarn_pool *pool,
                                      tarn__pool_request *request,
                                      tarn__pool_piece **out_piece) {
  // As it is now: it may be switched while the lock is released.
  request->counted = tarn__front_counts(pool, TARN_COUNT_TAGS);
  tarn_status status = tarn__capture_again(pool, request, out_piece)
                           ? TARN_OK
                           : tarn__take_find(pool, request, out_piece);
  if (status != TARN_OK) {
    if (request->asked) pool->stats.misses++;
    tarn__front_count_failure(pool, request, status);
    return status;
  }
  assert(*out_piece != NULL);
  tarn__take_enter(pool, request, *out_piece);
  return TARN_OK;
}

// Orders |stream| behind the stream that used the memory last. If that fails,
// the block goes back as it came.
static tarn_status order(tarn_pool *pool, const tarn__pool_request *request,
                         tarn__pool_piece *piece, tarn_stream *stream,
                         uint64_t last) {
  tarn_status status = tarn_stream_join(stream, last);
  tarn__front_reenter(pool);
  if (status == TARN_OK) {
    pool->stats.stream_crossings++;
  } else {
    if (!request->asked) pool->stats.hits--;
    pool->stats.allocs--;
    (void)tarn__front_give(pool, piece, last);
    tarn__front_count_failure(pool, request, status);
  }
  tarn__front_leave(pool);
  return status;
}

// Blocks that debugging dresses are no part of a step, and where each event is
// recorded no step is followed.
static inline void note_request(tarn_pool *pool, const tarn__pool_note *what,
                                tarn__pool_piece *piece) {
  if ((pool->flags & TARN_POOL_DEFER) != 0) {
    piece->taken_on = what->serial;
    return;
  }
  piece->notes = 0;
  bool heard = tarn__steps_may_learn(pool) &&
               pool->steps.cursor.layout == NULL &&
               piece->owner == pool->current && tarn__debug_of(pool) == NULL &&
               !tarn__front_counts(pool, TARN_COUNT_EVENTS);
  if (heard) tarn__steps_note(pool, what, piece);
}

void tarn__take_note(tarn_pool *pool, const tarn__pool_note *what,
                     tarn__pool_piece *piece) {
  if (piece->freed_on != 0) piece->waits_on = what->serial;
  piece->freed_on = 0;
  note_request(pool, what, piece);
}

// Called with the lock, which is released; a snapshot is written without it.
__attribute__((cold, noinline)) tarn_status tarn__take_end(
    tarn_pool *pool, const tarn__pool_request *request, bool noted,
    tarn_status why) {
  tarn__pool_refusal refusal = {.size = request->size - request->guard,
                                .serial = request->serial,
                                .tag = request->tag,
                                .noted = noted};
  tarn__pool_full_shot *shot =
      why == TARN_FULL ? tarn__full_shot_take(pool, &refusal) : NULL;
  tarn__front_leave(pool);
  tarn__full_shot_write(shot);
  return why;
}

// |*out_block| is written once, on success or on failure.
static tarn_status give_none(tarn_block *out_block, tarn_status why) {
  *out_block = (tarn_block){0};
  return why;
}

tarn_status tarn__take_found(tarn_pool *pool, tarn__pool_request *request,
                             const tarn__pool_note *what, tarn_stream *stream,
                             tarn_block *out_block) {
  tarn__pool_piece *piece = NULL;
  uint64_t serial = request->serial;
  tarn_status status = take_locked(pool, request, &piece);
  if (status != TARN_OK) {
    return give_none(out_block, tarn__take_end(pool, request, true, status));
  }
  tarn__front_describe(pool, piece, out_block);
  uint64_t last = piece->freed_on != serial ? piece->freed_on : 0;
  if (piece->freed_on != 0) piece->waits_on = serial;
  piece->freed_on = 0;
  note_request(pool, what, piece);
  tarn__front_leave(pool);
  if (last != 0) status = order(pool, request, piece, stream, last);
  return status == TARN_OK ? status : give_none(out_block, status);
}
