// The checks that begin each public call: the pool, the stream, the block; and
// the error texts where there is none.
#include <assert.h>

#include "base/os.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"

tarn_status tarn__front_check_pool(const tarn_pool *pool) {
  if (pool == NULL) return tarn__fail(TARN_E_INVALID, "pool: NULL");
  if (pool->generation != tarn__os_generation()) {
    return tarn__fail(TARN_E_STATE,
                      "the pool belongs to the parent process of a fork");
  }
  return tarn__not_in_callback();
}

tarn_status tarn__front_check_call(const tarn_pool *pool,
                                   const tarn_stream *stream,
                                   uint64_t *out_serial) {
  tarn_status status = tarn__front_check_pool(pool);
  if (status == TARN_OK && stream != NULL) {
    return tarn__stream_serial_for(stream, pool->supply.device,
                                   pool->place.kind, out_serial);
  }
  *out_serial = 0;
  return status;
}

// --- by a block ------------------------------------------------------------

// Describes the memory at an address, for the end of a message.
typedef struct rumour {
  const char *text;
  const char *tag;
} rumour;

static rumour heard_of(const tarn_pool *pool, tarn_addr address) {
  const tarn__pool_piece *piece = tarn__front_at(pool, address);
  tarn_tag tag = piece != NULL ? tarn__piece_tag(piece) : 0;
  if (piece != NULL && tarn__piece_is_live(piece)) {
    return (rumour){"; what stands there now is ", tarn_pool_tag_name(tag)};
  }
  if (piece == NULL && !tarn__freed_find(&pool->freed, address, &tag)) {
    return (rumour){"", ""};
  }
  return (rumour){"; what stood there last was ", tarn_pool_tag_name(tag)};
}

static tarn_status not_ours(const tarn_pool *pool, const char *what,
                            const tarn_block *block) {
  char place[64];
  rumour there = heard_of(pool, block->address);
  return tarn__fail(TARN_E_INVALID,
                    "%s: no block of the pool of %s (address 0x%llx, id %u)"
                    "%s%s",
                    what, tarn_place_text(pool->place, place, sizeof place),
                    (unsigned long long)block->address, block->id, there.text,
                    there.tag);
}

// |piece| has the block's id. It may have got other memory since.
static tarn_status freed_before(const tarn_pool *pool,
                                const tarn__pool_piece *piece, const char *what,
                                const tarn_block *block) {
  bool same = tarn__piece_generation(piece) == block->generation;
  rumour known = {"; it was ", tarn_pool_tag_name(tarn__piece_tag(piece))};
  if (!same) known = heard_of(pool, block->address);
  return tarn__fail(TARN_E_INVALID,
                    "%s: the block at 0x%llx was freed before%s%s", what,
                    (unsigned long long)block->address, known.text, known.tag);
}

// A thread that works on the block has released the lock, and relies on the
// block to stay.
tarn_status tarn__front_check_rest(const char *what,
                                   const tarn__pool_piece *piece) {
  assert(piece != NULL);
  if (!piece->resizing) return TARN_OK;
  return tarn__fail(TARN_E_STATE,
                    "%s: another thread is resizing or freeing the block at "
                    "0x%llx, or putting it to sleep or waking it",
                    what, (unsigned long long)piece->address);
}

tarn_status tarn__front_find_block(tarn_pool *pool, const char *what,
                                   const tarn_block *block,
                                   tarn__pool_piece **out_piece) {
  tarn__pool_piece *piece = tarn__pieces_at(&pool->pieces, block->id);
  uint32_t generation = piece != NULL ? tarn__piece_generation(piece) : 0;
  if (block->generation == 0 || block->generation > generation) {
    return not_ours(pool, what, block);
  }
  if (!tarn__piece_is_out(piece) || generation != block->generation) {
    return freed_before(pool, piece, what, block);
  }
  if (piece->address != block->address) return not_ours(pool, what, block);
  *out_piece = piece;
  return tarn__front_check_rest(what, piece);
}

// |inside|: says that no block has the address in it, else that none starts
// there.
static tarn_status no_block_at(const tarn_pool *pool, tarn_addr address,
                               bool inside) {
  char place[64];
  const tarn__pool_piece *piece = tarn__front_at(pool, address);
  tarn_tag tag = piece != NULL ? tarn__piece_tag(piece) : 0;
  tarn_place_text(pool->place, place, sizeof place);
  if (piece == NULL && !tarn__freed_find(&pool->freed, address, &tag)) {
    return tarn__fail(TARN_E_INVALID, "no block of the pool of %s %s 0x%llx%s",
                      place, inside ? "has" : "starts at",
                      (unsigned long long)address, inside ? " in it" : "");
  }
  return tarn__fail(TARN_E_INVALID,
                    "the block of the pool of %s at 0x%llx was freed before; "
                    "it was %s",
                    place, (unsigned long long)address,
                    tarn_pool_tag_name(tag));
}

// |*out_piece|: the piece that starts at the address, live or not; NULL: none.
static bool starts_at(const tarn_pool *pool, tarn_addr address,
                      tarn__pool_piece **out_piece) {
  *out_piece = tarn__front_at(pool, address);
  return *out_piece != NULL && tarn__piece_is_out(*out_piece);
}

tarn_status tarn__front_find_address(tarn_pool *pool, tarn_addr address,
                                     tarn__pool_piece **out_piece) {
  return starts_at(pool, address, out_piece)
             ? TARN_OK
             : no_block_at(pool, address, false);
}

// --- by an address inside ---------------------------------------------------

static bool has(const tarn__pool_piece *piece, tarn_addr address) {
  return piece != NULL && tarn__piece_is_out(piece) &&
         address - piece->address < tarn__debug_usable(piece);
}

// The piece of the live block that has |address| in it; NULL: there is none.
// A block that starts there needs no order, and finding it cannot fail.
static tarn_status find_around(tarn_pool *pool, tarn_addr address,
                               tarn__pool_piece **out_piece) {
  tarn__pool_pieces *pieces = &pool->pieces;
  if (!tarn__ordered_is_current(&pieces->order)) {
    if (starts_at(pool, address, out_piece)) return TARN_OK;
    *out_piece = NULL;
    if (!tarn__ordered_catch_up(pieces)) return TARN_E_NOMEM;
  }
  *out_piece = tarn__ordered_find(&pieces->order, address);
  if (has(*out_piece, address)) return TARN_OK;
  tarn__pool_piece *laid_out = tarn__steps_around(pool, address);
  *out_piece = has(laid_out, address) ? laid_out : NULL;
  return TARN_OK;
}

static tarn_status describe_around(tarn_pool *pool, tarn_addr address,
                                   tarn_block *out_block, size_t *out_offset) {
  tarn__pool_piece *piece = NULL;
  tarn_status status = find_around(pool, address, &piece);
  if (status != TARN_OK || piece == NULL) return status;
  tarn__front_describe(pool, piece, out_block);
  out_block->size = tarn__debug_usable(piece);
  *out_offset = (size_t)(address - piece->address);
  return TARN_OK;
}

// Nothing here reads the statistics: they are not brought up to date.
tarn_status tarn__front_around(tarn_pool *pool, tarn_addr address,
                               tarn_block *out_block, size_t *out_offset) {
  tarn__biased_lock_enter(&pool->lock);
  tarn_status status = describe_around(pool, address, out_block, out_offset);
  tarn__biased_lock_leave(&pool->lock);
  return status;
}

tarn__pool_start tarn__front_start_at(tarn_pool *pool, tarn_addr address,
                                      bool remembers) {
  tarn_tag tag = 0;
  tarn__pool_piece *piece = NULL;
  tarn__pool_start start = TARN__START_NONE;
  tarn__biased_lock_enter(&pool->lock);
  if (starts_at(pool, address, &piece)) {
    start = TARN__START_OUT;
  } else if (piece != NULL ||
             (remembers && tarn__freed_find(&pool->freed, address, &tag))) {
    start = TARN__START_GONE;
  }
  tarn__biased_lock_leave(&pool->lock);
  return start;
}

tarn_status tarn__front_refuse_free(tarn_pool *pool, tarn_addr address,
                                    const tarn_stream *stream) {
  uint64_t serial = 0;
  TARN__TRY(tarn__front_check_call(pool, stream, &serial));
  tarn__biased_lock_enter(&pool->lock);
  tarn_status status = no_block_at(pool, address, false);
  tarn__biased_lock_leave(&pool->lock);
  (void)tarn__pools_explain(pool, address);
  return status;
}

tarn_status tarn_pool_block_of(tarn_pool *pool, tarn_addr address,
                               tarn_block *out_block, size_t *out_offset) {
  size_t unused = 0;
  if (out_offset == NULL) out_offset = &unused;
  *out_block = (tarn_block){0};
  *out_offset = 0;
  TARN__TRY(tarn__front_check_pool(pool));
  tarn_status status = tarn__front_around(pool, address, out_block, out_offset);
  if (status != TARN_OK || out_block->pool != NULL) return status;
  tarn__biased_lock_enter(&pool->lock);
  status = no_block_at(pool, address, true);
  tarn__biased_lock_leave(&pool->lock);
  return status;
}
