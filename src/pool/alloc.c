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

// A request that the host makes, the step expects, and the owner of the lock
// makes costs nothing but this.
static inline bool take_at_once(tarn_pool *pool, size_t size, size_t align,
                                const tarn_stream *stream, tarn_tag tag,
                                tarn_block *out_block) {
  tarn__owner_slot *slot = stream == NULL ? tarn__front_try(pool) : NULL;
  if (slot == NULL) return false;
  tarn__pool_note what = {.size = size, .align = align, .tag = tag};
  bool taken = take_if_expected(pool, &pool->steps, &what, out_block);
  tarn__biased_lock_leave_owned(slot);
  return taken;
}

// The request may be expected after all: by a step that begins here, or after
// events that occurred early or are late.
static bool take_unexpected(tarn_pool *pool, tarn__pool_steps *steps,
                            const tarn__pool_note *what,
                            tarn_block *out_block) {
  steps = tarn__steps_seek(pool, steps, what, true);
  if (steps == NULL) return false;
  tarn__take_expected(pool, steps, out_block);
  return true;
}

// Where threads are followed by themselves, each of them takes the lock, and
// the sums are up to date.
static bool take_from_steps(tarn_pool *pool, const tarn__pool_note *what,
                            tarn_block *out_block) {
  tarn__pool_steps *steps = tarn__steps_mine(pool);
  bool taken = take_if_expected(pool, steps, what, out_block) ||
               (tarn__steps_turn(steps) &&
                take_if_expected(pool, steps, what, out_block)) ||
               take_unexpected(pool, steps, what, out_block);
  if (taken && pool->threads.apart) {
    tarn__steps_settle(pool, tarn__steps_mine(pool));
  }
  return taken;
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
  tarn__biased_lock_enter(&pool->lock);
  bool served = take_from_steps(pool, &what, out_block);
  if (!served) {
    tarn__pool_request request = request_of(pool, &what);
    return tarn__take_found(pool, &request, &what, stream, out_block);
  }
  tarn__biased_lock_leave(&pool->lock);
  return TARN_OK;
}

tarn_status tarn_pool_alloc(tarn_pool *pool, size_t size, size_t align,
                            tarn_stream *stream, tarn_block *out_block) {
  return take_at_once(pool, size, align, stream, 0, out_block)
             ? TARN_OK
             : take_any(pool, size, align, stream, 0, out_block);
}

// Requests with flags or a user pointer, and wrong ones, go to tarn__take_with.
tarn_status tarn_pool_alloc_with(tarn_pool *pool,
                                 const tarn_alloc_options *options,
                                 tarn_block *out_block) {
  const tarn_alloc_options *o = options;
  bool plain = o != NULL && o->struct_size == sizeof *o && o->flags == 0 &&
               o->user == NULL;
  if (!plain) return tarn__take_with(pool, options, out_block);
  return take_at_once(pool, o->size, o->align, o->stream, o->tag, out_block)
             ? TARN_OK
             : take_any(pool, o->size, o->align, o->stream, o->tag, out_block);
}
