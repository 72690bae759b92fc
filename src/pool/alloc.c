// The front: every request passes here.
//
//   expected ─► its place                                     (step_layout.h)
//   else check ─► find a piece ─► count ─► order behind its last stream
#include <assert.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/capture.h"
#include "pool/reclaim.h"
#include "pool/take.h"

_Static_assert(sizeof(void *) == sizeof(tarn_addr),
               "the pointer of a block is its address");

// --- taking ----------------------------------------------------------------

// Asks the present strategy. It may be replaced while the device is asked, and
// then has to end here if nothing came of it, with what it got meanwhile.
static tarn_status ask_strategy(tarn_pool *pool, tarn__pool_request *request,
                                tarn__pool_piece **out_piece) {
  tarn__pool_strategy *strategy = pool->current;
  strategy->inside++;
  tarn_status status = strategy->type->take(strategy, request, out_piece);
  bool ends = strategy != pool->current && status != TARN_OK;
  if (ends) (void)strategy->type->trim(strategy, 0, 0);
  strategy->inside--;
  if (ends) tarn__front_retire(pool, strategy);
  return status;
}

// What cannot have room changes nothing. |counted|: under |tag|.
static tarn_status try_take(tarn_pool *pool, tarn__pool_request *request,
                            tarn_tag tag, bool counted,
                            tarn__pool_piece **out_piece) {
  tarn_status status = tarn__room_check(pool, request->size);
  request->beyond = status == TARN_FULL;
  if (status == TARN_OK && counted) status = tarn__front_prepare_tag(pool, tag);
  return status == TARN_OK ? ask_strategy(pool, request, out_piece) : status;
}

// There was no room, and it is tried again as long as room can be made.
__attribute__((cold, noinline)) static tarn_status make_room(
    tarn_pool *pool, tarn__pool_request *request, tarn_tag tag, bool counted,
    tarn__pool_piece **out_piece) {
  tarn__pool_reclaim reclaim;
  tarn_status status = TARN_FULL;
  tarn__reclaim_begin(&reclaim, pool, request, tag);
  while (status == TARN_FULL && tarn__reclaim_next(&reclaim))
    status = try_take(pool, request, tag, counted, out_piece);
  return status == TARN_FULL ? tarn__reclaim_fail(&reclaim) : status;
}

// Part of their callers, since each request passes here.
__attribute__((always_inline)) static inline tarn_status find(
    tarn_pool *pool, tarn__pool_request *request, tarn_tag tag, bool counted,
    tarn__pool_piece **out_piece) {
  tarn_status status = tarn__capture_admit(pool, request);
  if (status == TARN_OK) {
    status = try_take(pool, request, tag, counted, out_piece);
  }
  if (status == TARN_FULL) {
    status = make_room(pool, request, tag, counted, out_piece);
  }
  return status;
}

__attribute__((always_inline)) static inline void enter(
    tarn_pool *pool, const tarn__pool_request *request, tarn_tag tag,
    bool counted, tarn__pool_piece *piece) {
  if (!request->asked) pool->stats.hits++;
  pool->stats.allocs++;
  if (++piece->generation == 0) piece->generation = 1;  // 0: no block
  piece->tag = tag;
  piece->captured = request->captured;
  piece->requested = request->size - request->guard;
  piece->counted = counted;
  tarn__front_count_live(pool, piece, request->asked);
  piece->live = true;
  if (tarn__front_counts(pool, TARN_COUNT_EVENTS)) {
    tarn__front_note_block(pool, TARN_POOL_EVENT_ALLOC, piece, 0,
                           request->serial);
  }
}

tarn_status tarn__take_try(tarn_pool *pool, tarn__pool_request *request,
                           tarn_tag tag, bool counted,
                           tarn__pool_piece **out_piece) {
  tarn_status status = tarn__capture_admit(pool, request);
  return status == TARN_OK ? try_take(pool, request, tag, counted, out_piece)
                           : status;
}

tarn_status tarn__take_find(tarn_pool *pool, tarn__pool_request *request,
                            tarn_tag tag, bool counted,
                            tarn__pool_piece **out_piece) {
  return find(pool, request, tag, counted, out_piece);
}

void tarn__take_enter(tarn_pool *pool, const tarn__pool_request *request,
                      tarn_tag tag, bool counted, tarn__pool_piece *piece) {
  if (request->asked) pool->stats.misses++;
  enter(pool, request, tag, counted, piece);
}

static inline tarn_status take_locked(tarn_pool *pool,
                                      tarn__pool_request *request, tarn_tag tag,
                                      tarn__pool_piece **out_piece) {
  // As it is now: it may be switched while the lock is released.
  bool counted = tarn__front_counts(pool, TARN_COUNT_TAGS);
  tarn_status status = find(pool, request, tag, counted, out_piece);
  if (request->asked) pool->stats.misses++;
  if (status != TARN_OK) {
    tarn__front_count_failure(pool, request, tag, status);
    return status;
  }
  assert(*out_piece != NULL);
  enter(pool, request, tag, counted, *out_piece);
  return TARN_OK;
}

// Lets |stream| wait for the one that used the memory last. If that cannot be
// arranged the block goes back as it came.
static tarn_status order(tarn_pool *pool, const tarn__pool_request *request,
                         tarn__pool_piece *piece, tarn_stream *stream,
                         uint64_t last) {
  tarn_status status = tarn_stream_join(stream, last);
  tarn__front_enter(pool);
  if (status == TARN_OK) {
    pool->stats.stream_crossings++;
  } else {
    if (!request->asked) pool->stats.hits--;
    pool->stats.allocs--;
    tarn_tag tag = piece->tag;
    (void)tarn__front_give(pool, piece, last);
    tarn__front_count_failure(pool, request, tag, status);
  }
  tarn__front_leave(pool);
  return status;
}

// It may be expected after all: by a step that begins just here, or behind what
// was freed early. If not, it is a miss.
static bool take_unexpected(tarn_pool *pool, const tarn__pool_note *what,
                            tarn_block *out_block) {
  tarn__step_cursor_settle(pool);
  if (tarn__recorder_is_due(&pool->recorder)) tarn__step_layout_install(pool);
  tarn__step_cursor_skip(&pool->cursor);
  if (tarn__take_if_expected(pool, what, out_block)) return true;
  tarn__step_cursor_miss(pool);
  return false;
}

// Blocks that debugging dresses are no part of a step, and where each event is
// recorded no step is followed.
static inline void note_request(tarn_pool *pool, const tarn__pool_note *what,
                                tarn__pool_piece *piece) {
  if ((pool->flags & TARN_POOL_DEFER) != 0) {
    piece->taken_on = what->serial;
    return;
  }
  bool heard = pool->current->steps != 0 && pool->cursor.layout == NULL &&
               piece->owner == pool->current && tarn__debug_of(pool) == NULL &&
               !tarn__front_counts(pool, TARN_COUNT_EVENTS);
  piece->noted = heard ? tarn__recorder_alloc(&pool->recorder, what) : 0;
}

void tarn__take_note(tarn_pool *pool, const tarn__pool_note *what,
                     tarn__pool_piece *piece) {
  if (piece->freed_on != 0) piece->waits_on = what->serial;
  piece->freed_on = 0;
  note_request(pool, what, piece);
}

// Called with the lock, which is released; a snapshot is written without it.
__attribute__((cold, noinline)) tarn_status tarn__take_end(
    tarn_pool *pool, const tarn__pool_refusal *refusal, tarn_status why) {
  tarn__pool_full_shot *shot =
      why == TARN_FULL ? tarn__full_shot_take(pool, refusal) : NULL;
  tarn__front_leave(pool);
  tarn__full_shot_write(shot);
  return why;
}

// |*out_block| is written once, on success or on failure.
static tarn_status give_none(tarn_block *out_block, tarn_status why) {
  *out_block = (tarn_block){0};
  return why;
}

// Called with the lock, which is released.
static tarn_status take_found(tarn_pool *pool, tarn__pool_request *request,
                              const tarn__pool_note *what, tarn_stream *stream,
                              tarn__pool_piece **out_piece,
                              tarn_block *out_block) {
  tarn__pool_piece *piece = NULL;
  uint64_t serial = request->serial;
  *out_piece = NULL;
  tarn_status status = take_locked(pool, request, what->tag, &piece);
  if (status != TARN_OK) {
    tarn__pool_refusal refusal = {.size = request->size - request->guard,
                                  .serial = request->serial,
                                  .tag = what->tag,
                                  .noted = true};
    status = tarn__take_end(pool, &refusal, status);
    return give_none(out_block, status);
  }
  tarn__front_describe(pool, piece, out_block);
  uint64_t last = piece->freed_on != serial ? piece->freed_on : 0;
  if (piece->freed_on != 0) piece->waits_on = serial;
  piece->freed_on = 0;
  note_request(pool, what, piece);
  tarn__front_leave(pool);
  if (last != 0) status = order(pool, request, piece, stream, last);
  if (status != TARN_OK) return give_none(out_block, status);
  *out_piece = piece;
  return status;
}

tarn_status tarn__front_take(tarn_pool *pool, tarn__pool_request *request,
                             tarn_tag tag, tarn_stream *stream,
                             tarn__pool_piece **out_piece,
                             tarn_block *out_block) {
  tarn__pool_note what = {.size = request->size, .tag = tag};
  tarn__front_enter(pool);
  return take_found(pool, request, &what, stream, out_piece, out_block);
}

// The block is known to its pool already, so another thread may have freed it
// by mistake.
static void mark(tarn_pool *pool, tarn__pool_piece *piece, uint32_t flags,
                 tarn_status dressed, tarn_block *block) {
  tarn__front_enter(pool);
  bool is_there = piece->live && piece->generation == block->generation;
  if (is_there || dressed != TARN_OK) {
    tarn__debug_mark(pool, piece, flags, dressed);
  }
  if (is_there) block->size = tarn__debug_usable(piece);
  tarn__front_leave(pool);
}

static tarn_status take_dressed(tarn_pool *pool, tarn__pool_request *request,
                                tarn_tag tag, tarn_stream *stream,
                                tarn_block *out_block) {
  tarn__pool_piece *piece = NULL;
  uint32_t flags = tarn__debug_admit(pool, request);
  tarn_status status =
      tarn__front_take(pool, request, tag, stream, &piece, out_block);
  if (status != TARN_OK || flags == 0) return status;
  tarn_status dressed = tarn__debug_dress(pool->place, piece, flags, stream);
  mark(pool, piece, flags, dressed, out_block);
  return TARN_OK;
}

static inline tarn__pool_request request_of(const tarn_pool *pool,
                                            const tarn__pool_note *what) {
  size_t natural = pool->natural_align;
  return (tarn__pool_request){
      .size = what->size,
      .align = what->align > natural ? what->align : natural,
      .serial = what->serial,
  };
}

tarn_status tarn__take_any(tarn_pool *pool, size_t size, size_t align,
                           tarn_stream *stream, tarn_tag tag,
                           tarn_block *out_block) {
  tarn__pool_note what = {.size = size, .align = align, .tag = tag};
  tarn__pool_piece *piece = NULL;
  tarn_status status = tarn__front_check_call(pool, stream, &what.serial);
  if (status == TARN_OK) status = tarn__take_check(size, align, tag);
  if (status != TARN_OK) return give_none(out_block, status);
  if (tarn__debug_of(pool) != NULL) {
    tarn__pool_request request = request_of(pool, &what);
    return take_dressed(pool, &request, tag, stream, out_block);
  }
  tarn__biased_lock_enter(&pool->lock);
  bool served = tarn__take_if_expected(pool, &what, out_block) ||
                (tarn__step_cursor_turn(&pool->cursor) &&
                 tarn__take_if_expected(pool, &what, out_block)) ||
                take_unexpected(pool, &what, out_block);
  if (!served) {
    tarn__pool_request request = request_of(pool, &what);
    return take_found(pool, &request, &what, stream, &piece, out_block);
  }
  tarn__biased_lock_leave(&pool->lock);
  return TARN_OK;
}

tarn_status tarn_pool_alloc(tarn_pool *pool, size_t size, size_t align,
                            tarn_stream *stream, tarn_block *out_block) {
  return tarn__take_at_once(pool, size, align, stream, 0, out_block)
             ? TARN_OK
             : tarn__take_any(pool, size, align, stream, 0, out_block);
}
