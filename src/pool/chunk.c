// Chunks: taken whole, cut up or handed on by others, given back whole.
#include "pool/segments.h"

#include "pool/front.h"

static const size_t LEAST_GROWTH = (size_t)1 << 20;
enum { HELD_PARTS = 8 };

tarn__pool_chunk tarn__chunk_adopt(tarn__pool_strategy *strategy,
                                   tarn__pool_piece *piece) {
  tarn__pool_chunk chunk = {.base = piece->base,
                            .base_size = piece->base_size,
                            .address = piece->address,
                            .size = piece->size};
  strategy->held += piece->base_size;
  tarn__source_join(strategy, piece);
  return chunk;
}

size_t tarn__chunk_growth(size_t held, size_t most) {
  size_t size = LEAST_GROWTH;
  while (size < most && size < held / HELD_PARTS)
    size *= 2;
  return size;
}

// |own|, or what the device can give now if that is less. Not to ask for more
// saves calls, and some drivers end the process when they are asked for more.
static size_t within_reach(tarn__pool_strategy *strategy, size_t own) {
  const tarn__pool_supply *supply = &strategy->pool->supply;
  size_t most = 0;
  tarn__source_begin_ask(strategy, 0, 0);
  tarn_status status = supply->calls->most(supply, &most);
  tarn__source_end_ask(strategy, 0);
  return status == TARN_OK && most < own ? most : own;
}

static size_t wanted_of(tarn__pool_strategy *strategy,
                        const tarn__pool_growth *growth, bool first) {
  size_t named = first ? growth->first : growth->later;
  if (named != 0) return named;
  return growth->own > growth->least ? within_reach(strategy, growth->own) : 0;
}

tarn_status tarn__chunk_grow(tarn__pool_strategy *strategy,
                             tarn__pool_request *request,
                             const tarn__pool_growth *growth,
                             tarn__pool_piece **out_piece) {
  tarn__pool_request whole = *request;
  bool first = !strategy->started;
  tarn_status status = TARN_FULL;
  if (tarn__front_has_own(strategy->pool)) {
    return tarn__source_adopt(strategy, growth->unit, out_piece);
  }
  whole.whole = true;
  if (whole.align < growth->unit) whole.align = growth->unit;
  strategy->started = true;
  size_t size = wanted_of(strategy, growth, first);
  for (bool last = false; status == TARN_FULL && !last;
       size = growth->halves ? size / 2 : 0) {
    last = size <= growth->least;
    size = last ? growth->least : size & ~(growth->unit - 1);
    status = tarn__source_grow(strategy, &whole, size, out_piece);
  }
  request->asked |= whole.asked;
  if (status != TARN_OK && first) strategy->started = false;
  return status;
}

void tarn__chunk_begin_give(tarn__pool_strategy *strategy,
                            const tarn__pool_chunk *chunk) {
  tarn__front_note_memory(strategy->pool, TARN_POOL_EVENT_SHRINK, chunk->base,
                          chunk->base_size, 0);
  tarn__source_begin_return(strategy, chunk->base_size, 1);
}

// Even if a stream cannot be waited for: not to try is a sure leak.
tarn_status tarn__chunk_end_give(tarn__pool_strategy *strategy,
                                 const tarn__pool_chunk *chunk,
                                 tarn_status waited) {
  const tarn__pool_supply *supply = &strategy->pool->supply;
  tarn_status given =
      supply->calls->give(supply, 0, chunk->base, chunk->base_size);
  tarn__source_end_return(strategy, chunk->base_size);
  return waited != TARN_OK ? waited : given;
}
