// Requests with options, and several at once.
//
//   all expected ─► their places                                    (steps.h)
//   else, block by block: find a piece ─► its stream behind the last one
//                                      ─► fill it
//   all there ─► count them       one is not ─► all go back
//
// A piece in hand has left its owner and is not counted yet: its owner counts
// it as live, so that the owner outlives it if the strategy is exchanged, and
// no statistics include it. So a call that fails has only memory to give back.
#include <assert.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/debug.h"
#include "pool/front.h"
#include "pool/reclaim.h"
#include "pool/strategy.h"
#include "pool/take.h"

enum {
  FLAGS = TARN_ALLOC_NO_WAIT | TARN_ALLOC_NO_GROW | TARN_ALLOC_NO_CALLBACK |
          TARN_ALLOC_ZERO,
};

// One block of the call.
typedef struct hand {
  tarn_alloc_options options;
  tarn__pool_note what;  // as asked for
  tarn__pool_request request;
  tarn__pool_piece *piece;  // NULL: none
  bool crossed;             // its stream was put behind another
  uint32_t dress;           // of a pool that debugs
  tarn_status dressed;
} hand;

typedef struct batch {
  tarn_pool *pool;
  hand *hands;
  size_t count;
  bool alone;  // a request by itself: a step may be dropped for it, and that it
               // was refused is an event
  bool debugs;
  tarn__pool_request all;  // the first request, with the sums of all
  bool may_lay_out;        // a step: that may wait, and takes memory
  bool too_much;           // all together is more than there can be
} batch;

// --- the requests ----------------------------------------------------------

static tarn_status read_options(const tarn_alloc_options *options,
                                tarn_alloc_options *out) {
  size_t size = 0;
  *out = (tarn_alloc_options){.size = 0};
  if (options == NULL ||
      !tarn__struct_size(options->struct_size,
                         TARN__SIZE_UP_TO(tarn_alloc_options, user),
                         sizeof *out, &size)) {
    return tarn__fail(TARN_E_INVALID, "pool: alloc: NULL or struct_size");
  }
  memcpy(out, options, size);
  if ((out->flags & ~(uint32_t)FLAGS) == 0) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "pool: alloc: there is no flag 0x%x",
                    out->flags & ~(uint32_t)FLAGS);
}

static bool host_can_touch(const tarn_pool *pool) {
  return pool->place.kind != TARN_PLACE_DEVICE ||
         tarn_device_host_accessible(pool->supply.device);
}

// Whether clearing a block of |stream| takes no waiting.
static bool fills_at_once(const tarn_pool *pool, const tarn_stream *stream) {
  return (pool->flags & TARN_POOL_DRY) != 0 ||
         (stream == NULL && host_can_touch(pool));
}

static bool has(const hand *h, uint32_t flag) {
  return (h->options.flags & flag) != 0;
}

static tarn_status check(const tarn_pool *pool, hand *h) {
  const tarn_alloc_options *o = &h->options;
  TARN__TRY(tarn__front_check_call(pool, o->stream, &h->what.serial));
  TARN__TRY(tarn__take_check(o->size, o->align, o->tag));
  if (has(h, TARN_ALLOC_NO_WAIT) && has(h, TARN_ALLOC_ZERO) &&
      !fills_at_once(pool, o->stream)) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "pool: alloc: TARN_ALLOC_ZERO waits %s, which "
                      "TARN_ALLOC_NO_WAIT forbids",
                      o->stream != NULL ? "for the stream" : "for the device");
  }
  return TARN_OK;
}

static void fill_request(const batch *b, hand *h) {
  const tarn_alloc_options *o = &h->options;
  size_t natural = b->pool->natural_align;
  bool no_wait = has(h, TARN_ALLOC_NO_WAIT);
  h->what.size = o->size;
  h->what.align = o->align;
  h->what.tag = o->tag;
  h->request = (tarn__pool_request){
      .size = o->size,
      .align = o->align > natural ? o->align : natural,
      .serial = h->what.serial,
      .tag = o->tag,
      .no_wait = no_wait,
      .no_grow = has(h, TARN_ALLOC_NO_GROW),
      .no_callback = has(h, TARN_ALLOC_NO_CALLBACK),
      .zero = has(h, TARN_ALLOC_ZERO),
      .own_only = no_wait && o->stream == NULL,
      .keeps_layout = !b->alone,
  };
  if (b->debugs) h->dress = tarn__debug_admit(b->pool, &h->request);
}

// --- served by a step ------------------------------------------------------

// Whether the step goes on with just these blocks, and their users have room.
static bool are_expected(const batch *b, const tarn__pool_step_event *e) {
  for (size_t i = 0; i < b->count; i++) {
    const hand *h = &b->hands[i];
    if (h->request.zero || !tarn__step_is(&e[i], &h->what)) {
      return false;
    }
    bool used = h->options.user != NULL;
    if (used && !tarn__users_reserve(&b->pool->users, e[i].piece->id)) {
      return false;
    }
  }
  return true;
}

static void set_user(tarn_pool *pool, const hand *h, const tarn_block *block) {
  if (h->options.user == NULL) return;
  tarn__users_set(&pool->users, block->id, block->generation, h->options.user);
}

// The next expected event, skipping early frees. After its last event a step
// begins anew. The cursor does not move: a call that fails leaves it where it
// was.
static const tarn__pool_step_event *next_of(
    const tarn__pool_step_cursor *cursor) {
  const tarn__pool_step_layout *layout = cursor->layout;
  const tarn__pool_step_event *e = cursor->at;
  for (size_t left = layout->event_count; left > 0; left--) {
    if (e == layout->events + layout->event_count) e = layout->events;
    if (!tarn__step_is_free(e) || e->piece->live) break;
    e++;
  }
  return e;
}

// All served events are counted.
static bool follow(batch *b, tarn_block *out_blocks) {
  tarn_pool *pool = b->pool;
  tarn__pool_steps *steps = tarn__steps_mine(pool);
  if (steps->cursor.layout == NULL) return false;
  if (!are_expected(b, next_of(&steps->cursor))) return false;
  tarn__steps_skip(pool, steps);
  for (size_t i = 0; i < b->count; i++) {
    tarn__take_expected(pool, steps, &out_blocks[i]);
    set_user(pool, &b->hands[i], &out_blocks[i]);
  }
  if (pool->threads.apart) tarn__steps_settle(pool, steps);
  return true;
}

// A step may begin just here, or a request by itself may come out of order.
// What is not found is a miss.
static bool seek(batch *b, tarn_block *out_blocks) {
  tarn__pool_steps *steps = tarn__steps_mine(b->pool);
  const hand *h = &b->hands[0];
  if (b->debugs || (!b->alone && steps->cursor.layout != NULL)) return false;
  if (!h->request.zero) {
    return tarn__steps_seek(b->pool, steps, &h->what, b->may_lay_out) != NULL &&
           follow(b, out_blocks);
  }
  if (b->alone) tarn__steps_miss(b->pool, steps);
  return false;
}

// --- in hand ---------------------------------------------------------------

// Streams are queried without the lock; not in a capture, where memory that
// they used is the graph's.
static bool settle_done(tarn_pool *pool) {
  return !tarn__front_keeps(pool) &&
         tarn__settle_streams(pool->current, 0, false);
}

// Idle memory, found as such or after queries, that is no part of a step.
static tarn_status find_idle(tarn_pool *pool, hand *h) {
  tarn__pool_request *request = &h->request;
  bool keeps_layout = request->keeps_layout;
  request->no_grow = request->keeps_layout = true;
  tarn_status status = tarn__take_try(pool, request, &h->piece);
  if (status == TARN_FULL && settle_done(pool)) {
    status = tarn__take_try(pool, request, &h->piece);
  }
  request->no_grow = false;
  request->keeps_layout = keeps_layout;
  return status;
}

// A request that takes no other stream's memory first takes idle memory:
// otherwise the pool would grow beside it.
static tarn_status find(tarn_pool *pool, hand *h) {
  tarn__pool_request *request = &h->request;
  request->counted = tarn__front_counts(pool, TARN_COUNT_TAGS);
  if (request->no_wait && request->own_only && !request->no_grow) {
    tarn_status status = find_idle(pool, h);
    if (status != TARN_FULL) return status;
  }
  return tarn__take_find(pool, request, &h->piece);
}

static void hand_back(tarn_pool *pool, hand *h) {
  tarn__pool_piece *piece = h->piece;
  if (piece == NULL) return;
  h->piece = NULL;
  if (h->dress != 0) tarn__debug_strip(pool->place, piece);
  (void)tarn__front_send_home(pool, piece);
}

static tarn_status join(tarn_pool *pool, hand *h, uint64_t last) {
  tarn_stream *stream = h->options.stream;
  tarn__front_leave(pool);
  tarn_status status = h->request.no_wait
                           ? tarn__stream_join_at_once(stream, last)
                           : tarn_stream_join(stream, last);
  tarn__front_reenter(pool);
  return status;
}

// A piece for the block, which its stream may use. If the host would have to
// wait for that, another piece.
static tarn_status take(tarn_pool *pool, hand *h) {
  for (;;) {
    TARN__TRY(find(pool, h));
    h->piece->owner->live++;
    h->piece->requested = h->request.size - h->request.guard;
    uint64_t last = h->piece->freed_on;
    if (last == 0 || last == h->request.serial) return TARN_OK;
    tarn_status status = join(pool, h, last);
    h->crossed = status == TARN_OK;
    if (status == TARN_OK) return status;
    hand_back(pool, h);
    if (status != TARN_PENDING) return status;
    assert(!h->request.own_only);
    h->request.own_only = true;
  }
}

static tarn_status clear(const tarn_pool *pool, const hand *h) {
  if ((pool->flags & TARN_POOL_DRY) != 0) return TARN_OK;
  tarn_stream *stream = h->options.stream;
  TARN__TRY(stream != NULL ? tarn_stream_synchronize(stream) : TARN_OK);
  return tarn__poison_fill(pool->place, h->piece->address, h->options.size, 0);
}

// The initial contents of the block. Releases the lock.
static tarn_status fill(tarn_pool *pool, hand *h) {
  tarn_status status = TARN_OK;
  if (h->dress == 0 && !h->request.zero) return status;
  tarn__front_leave(pool);
  if (h->dress != 0) {
    h->dressed =
        tarn__debug_dress(pool->place, h->piece, h->dress, h->options.stream);
  }
  if (h->request.zero) status = clear(pool, h);
  tarn__front_reenter(pool);
  return status;
}

// --- counting --------------------------------------------------------------

static void enter(tarn_pool *pool, hand *h, tarn_block *out_block) {
  tarn__pool_piece *piece = h->piece;
  piece->owner->live--;  // it is counted as any other now
  tarn__take_enter(pool, &h->request, piece);
  if (h->crossed) pool->stats.stream_crossings++;
  if (h->dress != 0) tarn__debug_mark(pool, piece, h->dress, h->dressed);
  tarn__front_describe(pool, piece, out_block);
  out_block->size = tarn__debug_usable(piece);
  tarn__take_note(pool, &h->what, piece);
  set_user(pool, h, out_block);
}

static tarn_status prepare_user(tarn_pool *pool, const hand *h) {
  bool ready = h->options.user == NULL ||
               tarn__users_reserve(&pool->users, h->piece->id);
  return ready ? TARN_OK : TARN_E_NOMEM;
}

// --- all or none -----------------------------------------------------------

static void add_up(batch *b) {
  b->all = b->hands[0].request;
  b->all.size = b->all.guard = 0;
  b->may_lay_out = !b->debugs;
  for (size_t i = 0; i < b->count; i++) {
    const tarn__pool_request *request = &b->hands[i].request;
    if (!tarn_size_add(b->all.size, request->size, &b->all.size)) {
      b->all.size = SIZE_MAX;  // more than there can be
    }
    b->all.guard += request->guard;
    b->all.no_grow = b->all.no_grow && request->no_grow;
    b->all.no_wait = b->all.no_wait || request->no_wait;
    b->all.no_callback = b->all.no_callback || request->no_callback;
    b->may_lay_out = b->may_lay_out && !request->no_wait && !request->no_grow;
  }
}

// Whether |size| bytes can be had beside the live blocks.
static tarn_status check_room(tarn_pool *pool, size_t size) {
  size_t limit = tarn__front_limit(pool);
  size_t awake = tarn__room_awake(pool);
  size_t left = limit > awake ? limit - awake : 0;
  bool grows = size > tarn__room_idle(pool);
  return grows && size > left ? tarn__source_check_limit(pool, size)
                              : tarn__room_check(pool, size);
}

// A request for more than there can be in all is refused before any of it is
// taken, unless the program makes room.
static tarn_status check_sum(batch *b) {
  tarn_pool *pool = b->pool;
  tarn_status status = check_room(pool, b->all.size);
  if (status != TARN_FULL) return status;
  b->all.beyond = true;
  tarn__pool_reclaim reclaim = tarn__reclaim_of(pool, &b->all);
  while (status == TARN_FULL && tarn__reclaim_next(&reclaim))
    status = check_room(pool, b->all.size);
  b->too_much = status == TARN_FULL;
  return b->too_much ? tarn__reclaim_fail(&reclaim) : status;
}

// Names the block, of |count|, that could not be allocated.
static tarn_status say_which(const batch *b, size_t i, tarn_status status) {
  if (b->alone) return status;
  return tarn__fail(status, "block %zu of %zu: %s", i + 1, b->count,
                    tarn_last_error());
}

// Continues until all are there; |*out_at| is the first missing one.
static tarn_status take_all(batch *b, size_t *out_at) {
  tarn_status status = TARN_OK;
  for (*out_at = 0; *out_at < b->count; ++*out_at) {
    hand *h = &b->hands[*out_at];
    status = take(b->pool, h);
    if (status == TARN_OK) status = fill(b->pool, h);
    if (status == TARN_OK) status = prepare_user(b->pool, h);
    if (status != TARN_OK) return say_which(b, *out_at, status);
  }
  return status;
}

// All goes back, and what the device gave for it: without waiting if one
// request must not wait. Returns |why|.
static tarn_status undo(batch *b, size_t reserved, tarn_status why) {
  tarn_pool *pool = b->pool;
  tarn__failure failure = tarn__failure_of(why);
  for (size_t i = b->count; i-- > 0;)
    hand_back(pool, &b->hands[i]);
  size_t target = tarn__front_target(pool, reserved);
  if (!b->alone && pool->stats.reserved_bytes > target) {
    (void)tarn__front_trim_as(pool, target, tarn__trim_for(&b->all));
  }
  return tarn__failure_tell(&failure);
}

// Called with the lock, which is released.
static tarn_status refuse(batch *b, size_t at, tarn_status why) {
  tarn_pool *pool = b->pool;
  const tarn__pool_request *request = &b->hands[at < b->count ? at : 0].request;
  if (b->alone) {
    if (request->asked) pool->stats.misses++;
    tarn__front_count_failure(pool, request, why);
  } else {
    pool->stats.failures++;
  }
  return tarn__take_end(pool, b->too_much ? &b->all : request, b->alone, why);
}

static tarn_status serve(batch *b, tarn_block *out_blocks) {
  tarn_pool *pool = b->pool;
  size_t at = 0;
  tarn__biased_lock_enter(&pool->lock);
  tarn__steps_settle(pool, tarn__steps_mine(pool));
  if (!b->debugs && follow(b, out_blocks)) {
    tarn__front_leave(pool);
    return TARN_OK;
  }
  add_up(b);
  size_t reserved = pool->stats.reserved_bytes;
  tarn_status status = b->alone ? TARN_OK : check_sum(b);
  if (status == TARN_OK && seek(b, out_blocks)) {
    tarn__front_leave(pool);
    return TARN_OK;
  }
  if (status == TARN_OK) status = take_all(b, &at);
  if (status != TARN_OK) {
    status = undo(b, reserved, status);
    return refuse(b, at, status);
  }
  for (size_t i = 0; i < b->count; i++) {
    if (!b->alone) tarn__steps_miss(pool, tarn__steps_mine(pool));
    enter(pool, &b->hands[i], &out_blocks[i]);
  }
  tarn__front_leave(pool);
  return TARN_OK;
}

static tarn_status prepare(batch *b, const tarn_alloc_options *options) {
  size_t stride = 0;
  for (size_t i = 0; i < b->count; i++) {
    const unsigned char *first = (const unsigned char *)options;
    const tarn_alloc_options *at =
        options == NULL ? NULL : (const void *)(first + i * stride);
    hand *h = &b->hands[i];
    tarn_status status = read_options(at, &h->options);
    assert(status != TARN_OK || at != NULL);
    if (status == TARN_OK && at->struct_size != options->struct_size) {
      status =
          tarn__fail(TARN_E_INVALID, "pool: alloc: struct_size %zu behind %zu",
                     at->struct_size, options->struct_size);
    }
    if (status == TARN_OK) status = check(b->pool, h);
    if (status != TARN_OK) return say_which(b, i, status);
    if (i == 0) stride = at->struct_size;
    if (stride == 0) stride = TARN__SIZE_UP_TO(tarn_alloc_options, user);
  }
  return TARN_OK;
}

// Only after all checks: guards are allocated under the lock.
static tarn_status run(batch *b, const tarn_alloc_options *options,
                       tarn_block *out_blocks) {
  TARN__TRY(prepare(b, options));
  b->debugs = tarn__debug_of(b->pool) != NULL;
  for (size_t i = 0; i < b->count; i++)
    fill_request(b, &b->hands[i]);
  return serve(b, out_blocks);
}

// --- the public functions --------------------------------------------------

tarn_status tarn__take_with(tarn_pool *pool, const tarn_alloc_options *options,
                            tarn_block *out_block) {
  hand one = {.piece = NULL};
  batch b = {.pool = pool, .hands = &one, .count = 1, .alone = true};
  *out_block = (tarn_block){0};
  return run(&b, options, out_block);
}

tarn_status tarn_pool_alloc_many(tarn_pool *pool,
                                 const tarn_alloc_options *options,
                                 size_t count, tarn_block *out_blocks) {
  for (size_t i = 0; i < count; i++)
    out_blocks[i] = (tarn_block){0};
  tarn_status status = tarn__front_check_pool(pool);
  if (status != TARN_OK || count == 0) return status;
  batch b = {.pool = pool, .count = count};
  b.hands = tarn__host_array(count, sizeof *b.hands);
  if (b.hands == NULL) return TARN_E_NOMEM;
  status = run(&b, options, out_blocks);
  tarn__host_free_array(b.hands, count, sizeof *b.hands);
  return status;
}

tarn_status tarn_block_user(const tarn_block *block, void **out_user) {
  *out_user = NULL;
  if (block == NULL) return tarn__fail(TARN_E_INVALID, "user: NULL");
  tarn_pool *pool = block->pool;
  tarn__pool_piece *piece = NULL;
  TARN__TRY(tarn__front_check_pool(pool));
  tarn__biased_lock_enter(&pool->lock);
  tarn_status status = tarn__front_find_block(pool, "user", block, &piece);
  if (status == TARN_OK) {
    *out_user = tarn__users_get(&pool->users, block->id, block->generation);
  }
  tarn__biased_lock_leave(&pool->lock);
  if (status != TARN_E_INVALID) return status;
  return tarn__pools_explain(pool, block->address);
}
