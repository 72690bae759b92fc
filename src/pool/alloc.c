// The front: every request passes here.
//
//   check ─► find a piece ─► count ─► order behind its last stream
#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/capture.h"

// How often room is made for one request.
enum { ATTEMPTS = 16 };

// --- counting --------------------------------------------------------------

// Room for |tag|, before anything is taken for it.
static tarn_status prepare_tag(tarn_pool *pool, tarn_tag tag) {
  if (tag < pool->tag_count) return TARN_OK;
  size_t count = pool->tag_count ? pool->tag_count : 8;
  while (count <= tag)
    count *= 2;
  tarn__tag_count *tags =
      tarn__host_resize(pool->tags, pool->tag_count, count, sizeof *tags);
  if (tags == NULL) return TARN_E_NOMEM;
  pool->tags = tags;
  pool->tag_count = count;
  return TARN_OK;
}

static void count_live(tarn_pool *pool, tarn__piece *piece) {
  tarn_pool_stats *stats = &pool->stats;
  tarn__tag_count *tag = &pool->tags[piece->tag];
  stats->live_bytes += piece->requested;
  stats->live_blocks++;
  tarn__raise_peak(stats->live_bytes, &stats->live_peak_bytes);
  tag->live_bytes += piece->requested;
  tag->live_blocks++;
  tarn__raise_peak(tag->live_bytes, &tag->live_peak_bytes);
  piece->owner->live++;
  piece->live = true;
}

static tarn_status check_request(size_t size, size_t align, tarn_tag tag) {
  if (size == 0) return tarn__fail(TARN_E_INVALID, "pool: size is 0");
  if (align != 0 && !tarn_is_power_of_two(align)) {
    return tarn__fail(TARN_E_INVALID, "pool: alignment %zu is no power of two",
                      align);
  }
  if (tag != 0 && !tarn__tag_is_known(tag)) {
    return tarn__fail(TARN_E_INVALID, "pool: tag %u was never made", tag);
  }
  return TARN_OK;
}

// Asks the present strategy. It may be replaced while the device is asked, and
// then has to end here if nothing came of it, with what it got meanwhile.
static tarn_status ask_strategy(tarn_pool *pool, tarn__request *request,
                                tarn__piece **out_piece) {
  tarn__strategy *strategy = pool->current;
  strategy->inside++;
  tarn_status status = strategy->type->take(strategy, request, out_piece);
  bool ends = strategy != pool->current && status != TARN_OK;
  if (ends) (void)strategy->type->trim(strategy, 0);
  strategy->inside--;
  if (ends) tarn__front_retire(pool, strategy);
  return status;
}

// Gives all idle memory back, and if another thread is about to give some back
// waits for that. False if there was neither: no room can be made.
static bool make_room(tarn_pool *pool) {
  uint64_t frees = pool->stats.device_frees;
  (void)tarn__front_trim(pool, 0);
  if (pool->stats.device_frees != frees) return true;
  if (pool->returning == 0) return false;
  pthread_cond_wait(&pool->returned, &pool->lock);
  return true;
}

// As long as there is no room but some can be made, the strategy is asked
// again: others may have been quicker to use it. Not for ever, since what is
// asked for may be more than ever comes free.
static tarn_status find_piece(tarn_pool *pool, tarn__request *request,
                              tarn__piece **out_piece) {
  tarn_status status = ask_strategy(pool, request, out_piece);
  bool hopeless =
      pool->stats.limit_bytes != 0 && request->size > pool->stats.limit_bytes;
  for (int i = 0; i < ATTEMPTS && status == TARN_FULL && !hopeless; i++) {
    if (!make_room(pool)) break;
    status = ask_strategy(pool, request, out_piece);
  }
  return status;
}

static tarn_status take_locked(tarn_pool *pool, tarn__request *request,
                               tarn_tag tag, tarn__piece **out_piece) {
  tarn_status status = tarn__capture_admit(pool, request);
  if (status == TARN_OK) status = prepare_tag(pool, tag);
  if (status == TARN_OK) status = find_piece(pool, request, out_piece);
  if (request->asked) pool->stats.misses++;
  if (status != TARN_OK) {
    pool->stats.failures++;
    return status;
  }
  if (!request->asked) pool->stats.hits++;
  pool->stats.allocs++;
  tarn__piece *piece = *out_piece;
  if (++piece->generation == 0) piece->generation = 1;  // 0: no block
  piece->tag = tag;
  piece->captured = request->own_only;
  piece->taken_on = request->serial;
  piece->requested = request->size;
  count_live(pool, piece);
  return TARN_OK;
}

// Lets |stream| wait for the one that used the memory last. If that cannot be
// arranged the block goes back as it came.
static tarn_status order(tarn_pool *pool, const tarn__request *request,
                         tarn__piece *piece, tarn_stream *stream,
                         uint64_t last) {
  tarn_status status = tarn_stream_join(stream, last);
  pthread_mutex_lock(&pool->lock);
  if (status == TARN_OK) {
    pool->stats.stream_crossings++;
  } else {
    if (!request->asked) pool->stats.hits--;
    pool->stats.allocs--;
    pool->stats.failures++;
    (void)tarn__front_give(pool, piece, last);
  }
  pthread_mutex_unlock(&pool->lock);
  return status;
}

tarn_status tarn_pool_alloc_tagged(tarn_pool *pool, size_t size, size_t align,
                                   tarn_stream *stream, tarn_tag tag,
                                   tarn_block *out_block) {
  uint64_t serial = 0;
  *out_block = (tarn_block){0};
  tarn_status status = tarn__front_check_call(pool, stream, &serial);
  if (status == TARN_OK) status = check_request(size, align, tag);
  if (status != TARN_OK) return status;
  tarn__request request = {
      .size = size,
      .align = align > pool->natural_align ? align : pool->natural_align,
      .serial = serial,
  };
  tarn__piece *piece = NULL;
  uint64_t last = 0;
  pthread_mutex_lock(&pool->lock);
  status = take_locked(pool, &request, tag, &piece);
  if (status == TARN_OK) {
    tarn__front_describe(pool, piece, out_block);
    last = piece->freed_on != serial ? piece->freed_on : 0;
    if (piece->freed_on != 0) piece->waits_on = serial;
    piece->freed_on = 0;
  }
  pthread_mutex_unlock(&pool->lock);
  if (status == TARN_OK && last != 0) {
    status = order(pool, &request, piece, stream, last);
    if (status != TARN_OK) *out_block = (tarn_block){0};
  }
  return status;
}

tarn_status tarn_pool_alloc(tarn_pool *pool, size_t size, size_t align,
                            tarn_stream *stream, tarn_block *out_block) {
  return tarn_pool_alloc_tagged(pool, size, align, stream, 0, out_block);
}
