// Chunks: taken whole, cut up or handed on by others, given back whole.
#include "pool/chunk.h"

#include "pool/front.h"

tarn__chunk tarn__chunk_adopt(tarn__strategy *strategy, tarn__piece *piece) {
  tarn__chunk chunk = {.base = piece->base,
                       .base_size = piece->base_size,
                       .address = piece->address,
                       .size = piece->size};
  strategy->held += piece->base_size;
  tarn__source_join(strategy, piece);
  return chunk;
}

tarn_status tarn__chunk_take(tarn__strategy *strategy, tarn__request *request,
                             size_t size, tarn__chunk *out_chunk) {
  tarn__piece *piece = NULL;
  *out_chunk = (tarn__chunk){0};
  tarn_status status = tarn__source_grow(strategy, request, size, &piece);
  if (status != TARN_OK) return status;
  *out_chunk = tarn__chunk_adopt(strategy, piece);
  return TARN_OK;
}

void tarn__chunk_begin_give(tarn__strategy *strategy,
                            const tarn__chunk *chunk) {
  tarn__front_note_memory(strategy->pool, TARN_POOL_EVENT_SHRINK, chunk->base,
                          chunk->base_size, 0);
  tarn__source_begin_return(strategy, chunk->base_size, 1);
}

// Even if a stream cannot be waited for: not to try is a sure leak.
tarn_status tarn__chunk_end_give(tarn__strategy *strategy,
                                 const tarn__chunk *chunk, tarn_status waited) {
  const tarn__supply *supply = &strategy->pool->supply;
  tarn_status given =
      supply->calls->give(supply, 0, chunk->base, chunk->base_size);
  tarn__source_end_return(strategy, chunk->base_size);
  return waited != TARN_OK ? waited : given;
}
