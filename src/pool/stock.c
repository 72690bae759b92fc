// The stock: segments of the sizes that the device names, cut up and joined.
#include "pool/segments.h"

#include "pool/front.h"

static const size_t LEAST_GRANULE = 64;

static tarn_status open_zone(tarn__pool_stock *stock, const tarn_pool *pool) {
  size_t granule =
      pool->natural_align > LEAST_GRANULE ? pool->natural_align : LEAST_GRANULE;
  if (stock->open) return TARN_OK;
  tarn_status status = tarn__extents_init(&stock->zone, granule, granule);
  stock->open = status == TARN_OK;
  return status;
}

tarn_status tarn__stock_init(tarn__pool_stock *stock, const tarn_pool *pool) {
  stock->serves = pool->sizes.first != 0 || pool->sizes.later != 0;
  return stock->serves ? open_zone(stock, pool) : TARN_OK;
}

void tarn__stock_deinit(tarn__pool_stock *stock) {
  if (!stock->open) return;
  tarn__extents_deinit(&stock->zone);
  tarn__segments_deinit(&stock->segments);
}

static tarn__pool_extent *find(tarn__pool_stock *stock,
                               const tarn__pool_request *request, size_t size,
                               uint64_t *out_serial) {
  tarn__pool_extent *e = tarn__extents_take(&stock->zone, size, request->align,
                                            request->serial, out_serial);
  if (e != NULL || request->own_only) return e;
  return tarn__extents_take_any(&stock->zone, size, request->align, out_serial);
}

// What releases the lock begins anew.
tarn_status tarn__stock_take(tarn__pool_stock *stock,
                             tarn__pool_strategy *strategy,
                             tarn__pool_request *request, size_t size,
                             tarn__pool_extent **out, uint64_t *out_serial) {
  const tarn__pool_sizes *sizes = &strategy->pool->sizes;
  tarn__pool_growth growth = {.first = sizes->first,
                              .later = sizes->later,
                              .own = size,
                              .least = size,
                              .unit = stock->zone.granule};
  for (;;) {
    if (!tarn__extents_reserve(&stock->zone, request->serial)) {
      return TARN_E_NOMEM;
    }
    *out = find(stock, request, size, out_serial);
    if (*out != NULL) return TARN_OK;
    tarn_status status = tarn__segments_add(&stock->segments, strategy, request,
                                            &stock->zone, &growth);
    if (status != TARN_OK) return status;
  }
}

tarn__pool_extent *tarn__stock_find(tarn__pool_stock *stock,
                                    const tarn__pool_request *request,
                                    size_t size, uint64_t *out_serial) {
  if (!tarn__extents_reserve(&stock->zone, request->serial)) return NULL;
  return find(stock, request, size, out_serial);
}

bool tarn__stock_expect(tarn__pool_stock *stock, uint64_t serial) {
  return serial == 0 || tarn__extents_reserve(&stock->zone, serial);
}

tarn__pool_extent *tarn__stock_give(tarn__pool_stock *stock,
                                    tarn__pool_extent *extent,
                                    uint64_t serial) {
  return tarn__extents_give(&stock->zone, extent, serial);
}

tarn_status tarn__stock_trim(tarn__pool_stock *stock,
                             tarn__pool_strategy *strategy, size_t target,
                             unsigned how) {
  if (!stock->open) return TARN_OK;
  return tarn__segments_trim(&stock->segments, strategy, &stock->zone, target,
                             how);
}

tarn_status tarn__stock_reserve(tarn__pool_stock *stock,
                                tarn__pool_strategy *strategy, size_t size) {
  tarn_status status = open_zone(stock, strategy->pool);
  return status != TARN_OK ? status
                           : tarn__segments_reserve(&stock->segments, strategy,
                                                    &stock->zone, size);
}

void tarn__stock_visit(const tarn__pool_stock *stock,
                       tarn__pool_memory_fn *visit, void *context) {
  for (const tarn__pool_segment *s = stock->segments.first; s != NULL;
       s = s->next)
    visit(context, s->chunk.base, s->chunk.base_size);
}

static void add_size(void *context, tarn_addr address, size_t size) {
  (void)address;
  *(size_t *)context += size;
}

tarn_status tarn__stock_check(const tarn__pool_stock *stock, size_t *out_held) {
  *out_held = 0;
  if (!stock->open) return TARN_OK;
  tarn__stock_visit(stock, add_size, out_held);
  return tarn__extents_check(&stock->zone);
}
