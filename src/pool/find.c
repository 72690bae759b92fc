// Which block is meant, and what is said where none is.
#include <assert.h>

#include "base/os.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"

tarn_status tarn__front_check_pool(const tarn_pool *pool) {
  if (pool == NULL) return tarn__fail(TARN_E_INVALID, "pool: NULL");
  if (pool->generation != tarn__os_generation()) {
    return tarn__fail(TARN_E_STATE,
                      "a pool was made by the parent before a fork");
  }
  return tarn__not_in_callback();
}

tarn_status tarn__front_check_call(const tarn_pool *pool,
                                   const tarn_stream *stream,
                                   uint64_t *out_serial) {
  *out_serial = 0;
  tarn_status status = tarn__front_check_pool(pool);
  if (status != TARN_OK || stream == NULL) return status;
  return tarn__stream_serial_of(stream, out_serial);
}

void tarn__front_describe(tarn_pool *pool, const tarn__piece *piece,
                          tarn_block *out_block) {
  out_block->pool = pool;
  out_block->address = piece->address;
  out_block->size = piece->size;
  out_block->id = piece->id;
  out_block->generation = piece->generation;
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
tarn_status tarn__front_check_rest(const char *what, const tarn__piece *piece) {
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
  if (!tarn__piece_is_out(piece) || piece->generation != block->generation) {
    return freed_before(piece, what, block);
  }
  if (piece->address != block->address) return not_ours(pool, what, block);
  *out_piece = piece;
  return tarn__front_check_rest(what, piece);
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

tarn_status tarn__front_find_address(tarn_pool *pool, tarn_addr address,
                                     tarn__piece **out_piece) {
  *out_piece = tarn__pieces_find(&pool->pieces, address);
  if (*out_piece != NULL && tarn__piece_is_out(*out_piece)) {
    return TARN_OK;
  }
  return no_block_at(pool, address, *out_piece);
}

tarn_status tarn_pool_find(tarn_pool *pool, tarn_addr address,
                           tarn_block *out_block) {
  *out_block = (tarn_block){0};
  tarn_status status = tarn__front_check_pool(pool);
  if (status != TARN_OK) return status;
  tarn__piece *piece = NULL;
  pthread_mutex_lock(&pool->lock);
  status = tarn__front_find_address(pool, address, &piece);
  if (status == TARN_OK) tarn__front_describe(pool, piece, out_block);
  pthread_mutex_unlock(&pool->lock);
  return status;
}
