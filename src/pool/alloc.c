// The front: every request passes here.
//
//   expected ─► its place                                           (steps.h)
//   else check ─► find a piece ─► count ─► order behind its last stream
//                                                                   (take.c)
#include "pool/take.h"

_Static_assert(sizeof(void *) == sizeof(tarn_addr),
               "the pointer of a block is its address");

// Serves the request if the learned step expects it next.
static inline bool take_if_expected(tarn_pool *pool, tarn__pool_steps *steps,
                                    const tarn__pool_note *what,
                                    tarn_block *out_block) {
  if (!tarn__step_is(steps->cursor.at, what)) return false;
  tarn__take_expected(pool, steps, out_block);
  return true;
}

// Of a step that is followed, if it is what comes next. Where threads are
// followed by themselves, each of them takes the lock, and the sums are up to
// date.
static bool take_in_step(tarn_pool *pool, const tarn__pool_note *what,
                         tarn_block *out_block) {
  tarn__pool_steps *steps = tarn__steps_mine(pool);
  bool taken = take_if_expected(pool, steps, what, out_block) ||
               (tarn__steps_turn(steps) &&
                take_if_expected(pool, steps, what, out_block));
  if (taken && pool->threads.apart) tarn__steps_settle(pool, steps);
  return taken;
}

// The request may be expected after all: by a step that begins here, or after
// events that occurred early or are late.
static bool take_unexpected(tarn_pool *pool, const tarn__pool_note *what,
                            tarn_block *out_block) {
  if (tarn__steps_are_quiet(pool)) return false;
  tarn__pool_steps *steps =
      tarn__steps_seek(pool, tarn__steps_mine(pool), what, true);
  if (steps == NULL) return false;
  tarn__take_expected(pool, steps, out_block);
  if (pool->threads.apart) tarn__steps_settle(pool, steps);
  return true;
}

// From the lane of this thread, which is the block's home if another way has to
// serve it; NULL: it has none.
static inline bool take_in_lane(tarn_pool *pool, const tarn__pool_note *what,
                                tarn__pool_lane **out_home,
                                tarn_block *out_block) {
  *out_home = NULL;
  if (what->serial != 0 || what->size > TARN__LANE_LARGEST) return false;
  if (!tarn__lanes_turn(pool) || !tarn__seats_are_watched()) return false;
  *out_home = tarn__lanes_open(pool, what->tag);
  return *out_home != NULL &&
         tarn__lane_serve(pool, *out_home, what, out_block);
}

static inline tarn__pool_request request_of(const tarn_pool *pool,
                                            const tarn__pool_note *what) {
  size_t natural = pool->natural_align;
  return (tarn__pool_request){
      .size = what->size,
      .align = what->align > natural ? what->align : natural,
      .serial = what->serial,
      .tag = what->tag,
  };
}

static __attribute__((noinline)) tarn_status take_any(tarn_pool *pool,
                                                      size_t size, size_t align,
                                                      tarn_stream *stream,
                                                      tarn_tag tag,
                                                      tarn_block *out_block) {
  tarn__pool_note what = {.size = size, .align = align, .tag = tag};
  tarn_status status = tarn__front_check_call(pool, stream, &what.serial);
  if (status == TARN_OK) status = tarn__take_check(size, align, tag);
  if (status != TARN_OK) {
    *out_block = (tarn_block){0};
    return status;
  }
  if (tarn__debug_of(pool) != NULL) {
    tarn_alloc_options options = {.struct_size = sizeof options,
                                  .size = size,
                                  .align = align,
                                  .tag = tag,
                                  .stream = stream};
    return tarn__take_with(pool, &options, out_block);
  }
  tarn__pool_lane *home = NULL;
  tarn__biased_lock_enter(&pool->lock);
  bool served = take_in_step(pool, &what, out_block) ||
                take_in_lane(pool, &what, &home, out_block) ||
                take_unexpected(pool, &what, out_block) ||
                (what.serial == 0 &&
                 tarn__take_plain(pool, size, align, tag, home, out_block));
  if (!served) {
    tarn__pool_request request = request_of(pool, &what);
    request.lane = tarn__lane_number(home);
    return tarn__take_found(pool, &request, &what, stream, out_block);
  }
  tarn__biased_lock_leave(&pool->lock);
  return TARN_OK;
}

// Of the owner of the lock, who is inside. Not part of its caller, which an
// expected request would have to pass.
static __attribute__((noinline)) tarn_status take_plain(
    tarn_pool *pool, size_t size, size_t align, tarn_tag tag,
    tarn_block *out_block, tarn__owner_slot *slot) {
  bool taken = tarn__steps_are_quiet(pool) &&
               tarn__take_plain(pool, size, align, tag, NULL, out_block);
  tarn__biased_lock_leave_owned(slot);
  return taken ? TARN_OK : take_any(pool, size, align, NULL, tag, out_block);
}

// Of a thread that does not own the lock.
static __attribute__((noinline)) tarn_status take_shared(
    tarn_pool *pool, size_t size, size_t align, tarn_stream *stream,
    tarn_tag tag, tarn_block *out_block) {
  tarn__pool_note what = {.size = size, .align = align, .tag = tag};
  return stream == NULL && tarn__lane_take(pool, &what, out_block)
             ? TARN_OK
             : take_any(pool, size, align, stream, tag, out_block);
}

// A request that the host makes, the step expects, and the owner of the lock
// makes costs nothing but this; a plain one little more.
static inline tarn_status take(tarn_pool *pool, size_t size, size_t align,
                               tarn_stream *stream, tarn_tag tag,
                               tarn_block *out_block) {
  tarn__owner_slot *slot = stream == NULL ? tarn__front_try(pool) : NULL;
  if (slot == NULL) {
    return take_shared(pool, size, align, stream, tag, out_block);
  }
  tarn__pool_note what = {.size = size, .align = align, .tag = tag};
  if (!take_if_expected(pool, &pool->steps, &what, out_block)) {
    return take_plain(pool, size, align, tag, out_block, slot);
  }
  tarn__biased_lock_leave_owned(slot);
  return TARN_OK;
}

tarn_status tarn_pool_alloc(tarn_pool *pool, size_t size, size_t align,
                            tarn_stream *stream, tarn_block *out_block) {
  return take(pool, size, align, stream, 0, out_block);
}

// Requests with flags or a user pointer, and wrong ones, go to tarn__take_with.
tarn_status tarn_pool_alloc_with(tarn_pool *pool,
                                 const tarn_alloc_options *options,
                                 tarn_block *out_block) {
  const tarn_alloc_options *o = options;
  bool plain = o != NULL && o->struct_size == sizeof *o && o->flags == 0 &&
               o->user == NULL;
  return plain ? take(pool, o->size, o->align, o->stream, o->tag, out_block)
               : tarn__take_with(pool, options, out_block);
}
