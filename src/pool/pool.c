// The front: every request and every free passes here.
//
//   alloc   check ─► find a piece ─► count ─► order behind its last stream
//   free    check ─► count ─► back to the strategy that owns the piece
//
// Invariants (tarn__front_check walks them):
//   * a piece is live, or idle with its owner, or on its way to the device
//   * live_bytes, live_blocks and every tag are sums over the live pieces
//   * reserved_bytes is the sum over all pieces
//   * a strategy's |live| counts its live pieces
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"

// How often room is made for one request.
enum { ATTEMPTS = 16 };

static tarn_status check_pool(const tarn_pool *pool) {
  if (pool == NULL) return tarn__fail(TARN_E_INVALID, "pool: NULL");
  if (pool->generation != tarn__os_generation()) {
    return tarn__fail(TARN_E_STATE,
                      "a pool was made by the parent before a fork");
  }
  return tarn__not_in_callback();
}

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

// --- taking ----------------------------------------------------------------

tarn_status tarn__front_check_call(const tarn_pool *pool,
                                   const tarn_stream *stream,
                                   uint64_t *out_serial) {
  *out_serial = 0;
  tarn_status status = check_pool(pool);
  if (status != TARN_OK || stream == NULL) return status;
  return tarn__stream_serial_of(stream, out_serial);
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

static tarn_status trim_locked(tarn_pool *pool, size_t target) {
  tarn__strategy *strategy = pool->current;
  strategy->inside++;
  tarn_status status = strategy->type->trim(strategy, target);
  strategy->inside--;
  tarn__front_retire(pool, strategy);
  return status;
}

// Gives all idle memory back, and if another thread is about to give some back
// waits for that. False if there was neither: no room can be made.
static bool make_room(tarn_pool *pool) {
  uint64_t frees = pool->stats.device_frees;
  (void)trim_locked(pool, 0);
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
  tarn_status status = prepare_tag(pool, tag);
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
  piece->requested = request->size;
  count_live(pool, piece);
  return TARN_OK;
}

static void describe(tarn_pool *pool, const tarn__piece *piece,
                     tarn_block *out_block) {
  out_block->pool = pool;
  out_block->address = piece->address;
  out_block->size = piece->size;
  out_block->id = piece->id;
  out_block->generation = piece->generation;
}

static tarn_status give_locked(tarn_pool *pool, tarn__piece *piece,
                               uint64_t serial);

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
    (void)give_locked(pool, piece, last);
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
    describe(pool, piece, out_block);
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

// --- giving back -----------------------------------------------------------

static tarn_status give_locked(tarn_pool *pool, tarn__piece *piece,
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

// What is known of the memory at an address, for the end of a message.
static const char *stands_there(const tarn__piece *piece) {
  if (piece == NULL) return "";
  return piece->live ? "; what stands there now is "
                     : "; what stood there last was ";
}

static tarn_status not_ours(const tarn_pool *pool, const char *what,
                            const tarn_block *block) {
  char place[64];
  const tarn__piece *there = tarn__pieces_find(&pool->pieces, block->address);
  return tarn__fail(TARN_E_INVALID,
                    "%s: no block of the pool of %s (address 0x%llx, id %u)"
                    "%s%s",
                    what, tarn_place_text(pool->place, place, sizeof place),
                    (unsigned long long)block->address, block->id,
                    stands_there(there),
                    there != NULL ? tarn_pool_tag_name(there->tag) : "");
}

// |piece| has the block's id. It may have got other memory since.
static tarn_status freed_before(const tarn__piece *piece, const char *what,
                                const tarn_block *block) {
  bool same = piece->generation == block->generation;
  bool known = same || piece->address == block->address;
  return tarn__fail(TARN_E_INVALID,
                    "%s: the block at 0x%llx was freed before%s%s", what,
                    (unsigned long long)block->address,
                    same ? "; it was " : stands_there(known ? piece : NULL),
                    known ? tarn_pool_tag_name(piece->tag) : "");
}

// Whoever is at it has let go of the lock, and trusts it to stay.
static tarn_status check_rest(const char *what, const tarn__piece *piece) {
  assert(piece != NULL);
  if (!piece->resizing) return TARN_OK;
  return tarn__fail(TARN_E_STATE,
                    "%s: the block at 0x%llx is being resized by another "
                    "thread",
                    what, (unsigned long long)piece->address);
}

tarn_status tarn__front_find_block(tarn_pool *pool, const char *what,
                                   const tarn_block *block,
                                   tarn__piece **out_piece) {
  tarn__piece *piece = tarn__pieces_at(&pool->pieces, block->id);
  if (piece == NULL || block->generation == 0 ||
      block->generation > piece->generation) {
    return not_ours(pool, what, block);
  }
  if (!piece->live || piece->generation != block->generation) {
    return freed_before(piece, what, block);
  }
  if (piece->address != block->address) return not_ours(pool, what, block);
  *out_piece = piece;
  return check_rest(what, piece);
}

static tarn_status no_block_at(const tarn_pool *pool, tarn_addr address,
                               const tarn__piece *piece) {
  char place[64];
  tarn_place_text(pool->place, place, sizeof place);
  if (piece == NULL) {
    return tarn__fail(TARN_E_INVALID,
                      "no block of the pool of %s starts at 0x%llx", place,
                      (unsigned long long)address);
  }
  return tarn__fail(TARN_E_INVALID,
                    "the block of the pool of %s at 0x%llx was freed before; "
                    "it was %s",
                    place, (unsigned long long)address,
                    tarn_pool_tag_name(piece->tag));
}

static tarn_status find_locked(tarn_pool *pool, tarn_addr address,
                               tarn__piece **out_piece) {
  *out_piece = tarn__pieces_find(&pool->pieces, address);
  if (*out_piece != NULL && (*out_piece)->live) return TARN_OK;
  return no_block_at(pool, address, *out_piece);
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
  tarn_status status = find_locked(pool, what.address, out_piece);
  return status == TARN_OK ? check_rest("free", *out_piece) : status;
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
  uint64_t first = piece->waits_on;
  if (first != 0 && serial != 0 && serial != first) {
    ordered = tarn__front_follow(pool, stream, first);
    status = find_target(pool, what, &piece);
    if (status != TARN_OK) return status;
  }
  pool->stats.frees++;
  // The host has seen the end of its own uses, not of those before.
  status = give_locked(pool, piece, serial != 0 ? serial : first);
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

tarn_status tarn_pool_find(tarn_pool *pool, tarn_addr address,
                           tarn_block *out_block) {
  *out_block = (tarn_block){0};
  tarn_status status = check_pool(pool);
  if (status != TARN_OK) return status;
  tarn__piece *piece = NULL;
  pthread_mutex_lock(&pool->lock);
  status = find_locked(pool, address, &piece);
  if (status == TARN_OK) describe(pool, piece, out_block);
  pthread_mutex_unlock(&pool->lock);
  return status;
}

// --- limits, trimming, statistics ------------------------------------------

tarn_place tarn_pool_place(const tarn_pool *pool) {
  return pool->place;
}

tarn_status tarn_pool_limit(tarn_pool *pool, size_t bytes) {
  tarn_status status = check_pool(pool);
  if (status != TARN_OK) return status;
  pthread_mutex_lock(&pool->lock);
  pool->stats.limit_bytes = bytes;
  pthread_mutex_unlock(&pool->lock);
  return TARN_OK;
}

tarn_status tarn_pool_trim(tarn_pool *pool, size_t target) {
  tarn_status status = check_pool(pool);
  if (status != TARN_OK) return status;
  pthread_mutex_lock(&pool->lock);
  status = trim_locked(pool, target);
  pthread_mutex_unlock(&pool->lock);
  return status;
}

tarn_status tarn_pool_query(tarn_pool *pool, tarn_pool_stats *out_stats) {
  size_t size = 0;
  if (out_stats == NULL ||
      !tarn__struct_size(out_stats->struct_size,
                         TARN__SIZE_UP_TO(tarn_pool_stats, stream_crossings),
                         sizeof *out_stats, &size)) {
    return tarn__fail(TARN_E_INVALID, "pool statistics: NULL or struct_size");
  }
  memset(out_stats, 0, size);
  out_stats->struct_size = size;
  tarn_status status = check_pool(pool);
  if (status != TARN_OK) return status;
  pthread_mutex_lock(&pool->lock);
  pool->stats.strategy = pool->current->type->name;
  memcpy(out_stats, &pool->stats, size);
  out_stats->struct_size = size;
  pthread_mutex_unlock(&pool->lock);
  return TARN_OK;
}

tarn_status tarn_pool_reset_peaks(tarn_pool *pool) {
  tarn_status status = check_pool(pool);
  if (status != TARN_OK) return status;
  pthread_mutex_lock(&pool->lock);
  pool->stats.live_peak_bytes = pool->stats.live_bytes;
  pool->stats.reserved_peak_bytes = pool->stats.reserved_bytes;
  for (size_t tag = 0; tag < pool->tag_count; tag++) {
    pool->tags[tag].live_peak_bytes = pool->tags[tag].live_bytes;
  }
  pthread_mutex_unlock(&pool->lock);
  return TARN_OK;
}

tarn_status tarn_pool_query_tag(tarn_pool *pool, tarn_tag tag,
                                tarn_pool_tag_stats *out_stats) {
  size_t size = 0;
  if (out_stats == NULL ||
      !tarn__struct_size(out_stats->struct_size,
                         TARN__SIZE_UP_TO(tarn_pool_tag_stats, live_blocks),
                         sizeof *out_stats, &size)) {
    return tarn__fail(TARN_E_INVALID, "tag statistics: NULL or struct_size");
  }
  memset(out_stats, 0, size);
  out_stats->struct_size = size;
  tarn_status status = check_pool(pool);
  if (status != TARN_OK) return status;
  tarn_pool_tag_stats stats = {.struct_size = size};
  pthread_mutex_lock(&pool->lock);
  if (tag < pool->tag_count) {
    stats.live_bytes = pool->tags[tag].live_bytes;
    stats.live_peak_bytes = pool->tags[tag].live_peak_bytes;
    stats.live_blocks = pool->tags[tag].live_blocks;
  }
  pthread_mutex_unlock(&pool->lock);
  memcpy(out_stats, &stats, size);
  return TARN_OK;
}
