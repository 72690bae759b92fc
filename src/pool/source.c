// The source: where strategies get memory of the device, and give it back.
//
// The lock is released for each call of the device, which takes microseconds to
// milliseconds while other threads have hits to serve. A request is charged
// before the call, so that the limit holds in any order of arrival.
#include <assert.h>

#include "base/bytes.h"
#include "base/status.h"
#include "pool/front.h"

static tarn_status over_limit(const tarn_pool *pool) {
  char text[TARN__BYTES_TEXT];
  if (pool->stats.limit_bytes == 0) {
    return tarn__fail(TARN_FULL, "the size exceeds the address space");
  }
  return tarn__fail(TARN_FULL, "this would exceed the limit of %s",
                    tarn__bytes_text(pool->stats.limit_bytes, text));
}

static bool within_limit(const tarn_pool *pool, size_t size) {
  size_t limit = pool->stats.limit_bytes;
  size_t sum = 0;
  return tarn_size_add(pool->stats.reserved_bytes, pool->pending, &sum) &&
         tarn_size_add(sum, pool->stats.charged_bytes, &sum) &&
         tarn_size_add(sum, size, &sum) && (limit == 0 || sum <= limit);
}

tarn_status tarn__source_check_limit(const tarn_pool *pool, size_t size) {
  return within_limit(pool, size) ? TARN_OK : over_limit(pool);
}

static void raise_reserved(tarn_pool *pool, size_t size) {
  tarn_pool_stats *stats = &pool->stats;
  stats->reserved_bytes += size;
  tarn__raise_peak(stats->reserved_bytes, &stats->reserved_peak_bytes);
}

static bool is_aligned(tarn_addr addr, size_t align) {
  return (addr & (align - 1)) == 0;
}

// The stream in whose order memory is allocated; 0: no stream.
static uint64_t order_of(const tarn__pool_piece *piece, uint64_t serial) {
  return piece->owner->ordered ? serial : 0;
}

// One call of the device. Its bytes are charged to the pool during the call.
static tarn_status ask_device(tarn_pool *pool, size_t size, uint64_t serial,
                              tarn__pool_piece *piece) {
  tarn__source_begin_ask(piece->owner, size, 1);
  tarn_status status = tarn__supply_take(&pool->supply, order_of(piece, serial),
                                         size, &piece->base);
  tarn__source_end_ask(piece->owner, size);
  piece->base_size = size;
  return status;
}

static tarn_status return_unfit(tarn_pool *pool, uint64_t serial,
                                tarn__pool_piece *piece) {
  tarn_addr base = piece->base;
  size_t size = piece->base_size;
  piece->base = 0;
  pool->stats.device_frees++;
  tarn__source_begin_ask(piece->owner, size, 0);
  tarn_status status =
      tarn__supply_give(&pool->supply, order_of(piece, serial), base, size);
  tarn__source_end_ask(piece->owner, size);
  return status;
}

// With |align| bytes more, so that an aligned part of the size fits in.
static tarn_status take_with_room(tarn_pool *pool, size_t size,
                                  const tarn__pool_request *request,
                                  tarn__pool_piece *piece) {
  size_t align = request->align;
  size_t enough = 0;
  if (!tarn_size_add(size, align, &enough)) return over_limit(pool);
  if (!within_limit(pool, enough)) return over_limit(pool);
  return ask_device(pool, enough, request->serial, piece);
}

// With the device's own alignment, as long as that has always sufficed.
static tarn_status take_aligned(tarn_pool *pool, size_t size,
                                const tarn__pool_request *request,
                                tarn__pool_piece *piece) {
  size_t align = request->align;
  bool fits = false;
  if (align <= pool->aligns) {
    TARN__TRY(ask_device(pool, size, request->serial, piece));
    fits = is_aligned(piece->base, align);
    if (!fits) {
      pool->aligns = align / 2;  // so much for its promise
      TARN__TRY(return_unfit(pool, request->serial, piece));
    }
  }
  if (!fits) TARN__TRY(take_with_room(pool, size, request, piece));
  tarn__piece_set_address(piece,
                          (piece->base + align - 1) & ~(tarn_addr)(align - 1));
  if (tarn__pieces_find(&pool->pieces, piece->address) == NULL) return TARN_OK;
  unsigned long long address = piece->address;
  (void)return_unfit(pool, request->serial, piece);
  return tarn__fail(TARN_E_DEVICE,
                    "%s: the device gave %zu bytes at 0x%llx, part of which it "
                    "had given before",
                    piece->owner->type->table.name, size, address);
}

void tarn__source_charge(tarn__pool_strategy *strategy, size_t size) {
  strategy->held += size;
  raise_reserved(strategy->pool, size);
}

void tarn__source_write_off(tarn__pool_strategy *strategy, size_t size) {
  strategy->held -= size;
  strategy->pool->stats.reserved_bytes -= size;
}

void tarn__source_begin_return(tarn__pool_strategy *strategy, size_t size,
                               size_t count) {
  tarn_pool *pool = strategy->pool;
  tarn__source_write_off(strategy, size);
  pool->stats.device_frees += count;
  pool->returning++;
  tarn__source_begin_ask(strategy, size, 0);
}

void tarn__source_end_return(tarn__pool_strategy *strategy, size_t size) {
  tarn_pool *pool = strategy->pool;
  tarn__source_end_ask(strategy, size);
  pool->returning--;
  tarn__news_tell(&pool->returned);
}

void tarn__source_begin_ask(tarn__pool_strategy *strategy, size_t size,
                            size_t count) {
  tarn_pool *pool = strategy->pool;
  pool->pending += size;
  pool->stats.device_allocs += count;
  strategy->inside++;
  tarn__front_leave(pool);
}

void tarn__source_end_ask(tarn__pool_strategy *strategy, size_t size) {
  tarn_pool *pool = strategy->pool;
  tarn__front_reenter(pool);
  strategy->inside--;
  pool->pending -= size;
}

tarn_status tarn__source_wait(tarn__pool_strategy *strategy, uint64_t serial) {
  tarn__source_begin_ask(strategy, 0, 0);
  tarn_status status = tarn_stream_join(NULL, serial);
  tarn__source_end_ask(strategy, 0);
  return status;
}

tarn_status tarn__source_refuse_growth(const tarn__pool_request *request) {
  assert(request->no_grow);
  (void)request;
  return tarn__fail(
      TARN_FULL,
      "the device would have to be asked, which TARN_ALLOC_NO_GROW forbids");
}

tarn__pool_piece *tarn__source_carve(tarn__pool_strategy *strategy,
                                     tarn_addr address, size_t size) {
  tarn__pool_pieces *pieces = &strategy->pool->pieces;
  tarn__pool_piece *piece = tarn__pieces_take(pieces);
  if (piece == NULL) return NULL;
  piece->owner = strategy;
  tarn__piece_set_address(piece, address);
  piece->base = address;
  piece->size = size;
  tarn__pieces_enter(pieces, piece);
  return piece;
}

void tarn__source_join(tarn__pool_strategy *strategy, tarn__pool_piece *piece) {
  tarn__pool_pieces *pieces = &strategy->pool->pieces;
  tarn__freed_note(&strategy->pool->freed, piece);
  tarn__pieces_end(pieces, piece);
}

static void commit_grow(tarn_pool *pool, tarn__pool_piece *piece,
                        uint64_t serial) {
  tarn__front_note_memory(pool, TARN_POOL_EVENT_GROW, piece->base,
                          piece->base_size, serial);
  raise_reserved(pool, piece->base_size);
  tarn__pieces_enter(&pool->pieces, piece);
}

static bool round_up(const tarn_pool *pool, size_t size, size_t padding,
                     size_t *out_size) {
  return tarn_size_add(size, padding, out_size) &&
         tarn_size_align_up(*out_size, pool->sizes.chunk, out_size);
}

// --- memory of the caller's ------------------------------------------------

tarn_status tarn__source_refuse_own(void) {
  return tarn__fail(TARN_FULL, "the caller's memory has no room");
}

// The device is not called, so the lock is kept, and no other thread finds the
// memory missing.
tarn_status tarn__source_adopt(tarn__pool_strategy *strategy, size_t unit,
                               tarn__pool_piece **out_piece) {
  tarn_pool *pool = strategy->pool;
  const tarn_pool_memory *own = &pool->supply.own;
  size_t skipped = (size_t)(-own->address & (unit - 1));
  *out_piece = NULL;
  if (pool->stats.reserved_bytes != 0) return tarn__source_refuse_own();
  if (skipped >= own->size || own->size - skipped < unit) {
    return tarn__source_refuse_own();
  }
  tarn__pool_piece *piece = tarn__pieces_take(&pool->pieces);
  if (piece == NULL) return TARN_E_NOMEM;
  piece->owner = strategy;
  piece->base = own->address;
  piece->base_size = own->size;
  tarn__piece_set_address(piece, own->address + skipped);
  piece->size = (own->size - skipped) & ~(unit - 1);
  commit_grow(pool, piece, 0);
  *out_piece = piece;
  return TARN_OK;
}

bool tarn__source_round(const tarn_pool *pool, size_t size, size_t *out_size) {
  return round_up(pool, size, pool->padding, out_size);
}

tarn_status tarn__source_grow(tarn__pool_strategy *strategy,
                              tarn__pool_request *request, size_t size,
                              tarn__pool_piece **out_piece) {
  tarn_pool *pool = strategy->pool;
  size_t padding = request->whole ? 0 : pool->padding;
  size_t padded = 0;
  *out_piece = NULL;
  if (tarn__front_has_own(pool)) return tarn__source_refuse_own();
  if (request->no_grow) return tarn__source_refuse_growth(request);
  if (!round_up(pool, size, padding, &padded)) return over_limit(pool);
  if (!within_limit(pool, padded)) return over_limit(pool);
  tarn__pool_piece *piece = tarn__pieces_take(&pool->pieces);
  if (piece == NULL) return TARN_E_NOMEM;
  piece->owner = strategy;
  piece->size = padded - padding;
  request->asked = true;
  tarn_status status = take_aligned(pool, padded, request, piece);
  if (status != TARN_OK) {
    tarn__pieces_leave(&pool->pieces, piece);
    return status;
  }
  piece->waits_on = order_of(piece, request->serial);
  commit_grow(pool, piece, request->serial);
  *out_piece = piece;
  return TARN_OK;
}

// Uncounts all of them at once: a full pool waits for memory that is being
// given back to the device.
static size_t take_off(tarn_pool *pool, tarn__pool_piece *pieces,
                       size_t *out_count) {
  size_t size = 0;
  *out_count = 0;
  for (tarn__pool_piece *piece = pieces; piece != NULL; piece = piece->next) {
    tarn__freed_note(&pool->freed, piece);
    tarn__pieces_hide(&pool->pieces, piece);
    tarn__front_note_memory(pool, TARN_POOL_EVENT_SHRINK, piece->base,
                            piece->base_size, piece->freed_on);
    size += piece->base_size;
    ++*out_count;
  }
  pool->stats.reserved_bytes -= size;
  pool->stats.device_frees += *out_count;
  pool->returning += *out_count;
  return size;
}

// Even if a stream cannot be waited for: not to try is a sure leak.
static tarn_status give_one(const tarn_pool *pool,
                            const tarn__pool_piece *piece) {
  const tarn__pool_supply *supply = &pool->supply;
  uint64_t serial = piece->freed_on;
  if (piece->owner->ordered) {
    return tarn__supply_give(supply, serial, piece->base, piece->base_size);
  }
  tarn_status waited = serial != 0 ? tarn_stream_join(NULL, serial) : TARN_OK;
  TARN__TRY(tarn__supply_give(supply, 0, piece->base, piece->base_size));
  return waited;
}

static tarn_status give_all(const tarn_pool *pool,
                            const tarn__pool_piece *pieces) {
  tarn_status first = TARN_OK;
  for (const tarn__pool_piece *piece = pieces; piece != NULL;
       piece = piece->next) {
    tarn__keep_first(&first, give_one(pool, piece));
  }
  return first;
}

tarn_status tarn__source_shrink(tarn__pool_strategy *strategy,
                                tarn__pool_piece *pieces) {
  if (pieces == NULL) return TARN_OK;
  tarn_pool *pool = strategy->pool;
  size_t count = 0;
  size_t size = take_off(pool, pieces, &count);
  tarn__source_begin_ask(strategy, size, 0);
  tarn_status status = give_all(pool, pieces);
  tarn__source_end_ask(strategy, size);
  pool->returning -= count;
  tarn__news_tell(&pool->returned);
  while (pieces != NULL) {
    tarn__pool_piece *next = pieces->next;
    tarn__pieces_leave(&pool->pieces, pieces);
    pieces = next;
  }
  return status;
}
