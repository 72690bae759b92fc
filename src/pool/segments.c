// Chunks: taken whole, cut up or handed on by others, given back whole.
// Segments: chunks that are cut up in a zone. The stock: segments of the sizes
// that the device names.
#include "pool/segments.h"

#include <assert.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "pool/front.h"

// --- chunks ----------------------------------------------------------------

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

// |own|, or the device's free memory if that is less. Asking for no more than
// that saves calls, and some drivers end the process when they are asked for
// more.
static size_t within_reach(tarn__pool_strategy *strategy, size_t own) {
  const tarn__pool_supply *supply = &strategy->pool->supply;
  size_t most = 0;
  tarn__source_begin_ask(strategy, 0, 0);
  tarn_status status = tarn__supply_most(supply, &most);
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

// Even if a stream cannot be waited for: not to try is a sure leak.
static tarn_status give(const tarn__pool_supply *supply,
                        const tarn__pool_chunk *chunk) {
  tarn_status waited = tarn__waits_wait(&chunk->waits, supply->place);
  TARN__TRY(tarn__supply_give(supply, 0, chunk->base, chunk->base_size));
  return waited;
}

tarn_status tarn__chunks_give(tarn__pool_strategy *strategy,
                              const tarn__pool_chunk *chunks) {
  tarn_status first = TARN_OK;
  size_t size = 0;
  size_t count = 0;
  for (const tarn__pool_chunk *c = chunks; c != NULL; c = c->next) {
    tarn__front_note_memory(strategy->pool, TARN_POOL_EVENT_SHRINK, c->base,
                            c->base_size, 0);
    size += c->base_size;
    count++;
  }
  tarn__source_begin_return(strategy, size, count);
  for (const tarn__pool_chunk *c = chunks; c != NULL; c = c->next)
    tarn__keep_first(&first, give(&strategy->pool->supply, c));
  tarn__source_end_return(strategy, size);
  return first;
}

// --- segments --------------------------------------------------------------

typedef struct segment {
  tarn__pool_chunk chunk;  // the first member
  const tarn__pool_extents *zone;
  tarn__pool_extent *start;  // of the zone: what begins where the segment does
} segment;

// --- taking ----------------------------------------------------------------

tarn_status tarn__segments_check_piece(const tarn__pool_extents *zone,
                                       const tarn__pool_piece *piece) {
  const char *name = piece->owner->type->table.name;
  unsigned long long address = piece->address;
  if (tarn__extents_is_outside(zone, piece->address, piece->size)) {
    return TARN_OK;
  }
  if (!tarn__extents_reach(piece->address, piece->size)) {
    return tarn__fail(TARN_E_DEVICE, "%s: addresses from 0x%llx on", name,
                      address);
  }
  return tarn__fail(TARN_E_DEVICE,
                    "%s: the device gave %zu bytes at 0x%llx, part of which it "
                    "had given before",
                    name, piece->size, address);
}

static tarn_status add(tarn__pool_segments *segments,
                       tarn__pool_strategy *strategy,
                       tarn__pool_request *request, tarn__pool_extents *zone,
                       size_t own, size_t least, bool halves) {
  const tarn__pool_sizes *sizes = &strategy->pool->sizes;
  tarn__pool_growth growth = {.first = sizes->first,
                              .later = sizes->later,
                              .own = own,
                              .least = least,
                              .unit = zone->granule,
                              .halves = halves};
  segment *s = tarn__host_alloc(sizeof *s);
  if (s == NULL) return TARN_E_NOMEM;
  tarn__pool_piece *piece = NULL;
  tarn_status status = tarn__chunk_grow(strategy, request, &growth, &piece);
  if (status == TARN_OK) {
    status = tarn__segments_check_piece(zone, piece);
    if (!tarn__extents_reserve(zone, 0)) status = TARN_E_NOMEM;
    if (status != TARN_OK) (void)tarn__source_shrink(strategy, piece);
  }
  if (status != TARN_OK) {
    tarn__host_free(s, sizeof *s);
    return status;
  }
  s->chunk = tarn__chunk_adopt(strategy, piece);
  s->chunk.size &= ~(zone->granule - 1);
  s->chunk.next = segments->first;
  segments->first = &s->chunk;
  s->zone = zone;
  s->start = tarn__extents_add(zone, s->chunk.address, s->chunk.size,
                               TARN__EXTENT_OPEN);
  return TARN_OK;
}

tarn_status tarn__segments_add(tarn__pool_segments *segments,
                               tarn__pool_strategy *strategy,
                               tarn__pool_request *request,
                               tarn__pool_extents *zone, size_t own,
                               size_t least) {
  return add(segments, strategy, request, zone, own, least, false);
}

// In one segment if possible, else in halves of the size, and so on.
tarn_status tarn__segments_reserve(tarn__pool_segments *segments,
                                   tarn__pool_strategy *strategy,
                                   tarn__pool_extents *zone, size_t size) {
  const tarn_pool *pool = strategy->pool;
  size_t most = pool->sizes.largest & ~(zone->granule - 1);
  while (pool->stats.reserved_bytes < size) {
    size_t missing = 0;
    if (!tarn_size_align_up(size - pool->stats.reserved_bytes, zone->granule,
                            &missing)) {
      return tarn__fail(TARN_FULL, "the size exceeds the address space");
    }
    if (missing > most) missing = most;
    tarn__pool_request request = {.size = missing,
                                  .align = pool->natural_align};
    if (!tarn__extents_reserve(zone, 0)) return TARN_E_NOMEM;
    TARN__TRY(
        add(segments, strategy, &request, zone, missing, zone->granule, true));
  }
  return TARN_OK;
}

// --- giving back -----------------------------------------------------------

// What is to be given back, of which zone, and what has been chosen for that.
typedef struct parting {
  const tarn__pool_strategy *strategy;
  tarn__pool_extents *zone;
  size_t enough;
  unsigned how;
  tarn__pool_chunk *all;  // on their way to the device
  size_t size;
} parting;

// If no stream may still work in a segment, its unused bytes are one extent.
static bool is_idle(const tarn__pool_chunk *chunk, const parting *p) {
  const segment *s = (const segment *)(const void *)chunk;
  const tarn__pool_extent *e = s->start;
  if (s->zone != p->zone || e->kind != TARN__EXTENT_OPEN) return false;
  bool unused = (p->how & TARN__TRIM_NO_WAIT) != 0;
  if (unused) return e->size == chunk->size && e->bins->serial == 0;
  return tarn__extent_end(tarn__extents_run(e).last) == e->offset + chunk->size;
}

// Takes the open bytes of |segment| out of its zone.
static void take_out(tarn__pool_extents *zone, segment *s) {
  tarn__pool_extent *e = s->start;
  for (size_t left = s->chunk.size; left > 0;) {
    assert(e != NULL);
    tarn__pool_extent *next = e->after;
    left -= e->size;
    tarn__waits_add(&s->chunk.waits, e->bins->serial);
    tarn__extents_remove(zone, e);
    e = next;
  }
}

static void take(parting *p, tarn__pool_chunk **link) {
  tarn__pool_chunk *chunk = *link;
  *link = chunk->next;
  take_out(p->zone, (segment *)(void *)chunk);
  chunk->next = p->all;
  p->all = chunk;
  p->size += chunk->base_size;
}

// Whether this segment may be given back in addition to the chosen ones.
static bool may_part(const tarn__pool_chunk *chunk, const parting *p) {
  return is_idle(chunk, p) &&
         tarn__front_may_return(p->strategy, p->size, chunk->base_size, p->how);
}

static size_t sum_idle(const tarn__pool_chunk *chunk, const parting *p) {
  size_t sum = 0;
  for (; chunk != NULL; chunk = chunk->next)
    sum += is_idle(chunk, p) ? chunk->base_size : 0;
  return sum;
}

static void take_idle(tarn__pool_segments *segments, parting *p) {
  for (tarn__pool_chunk **link = &segments->first; *link != NULL;) {
    if (may_part(*link, p)) {
      take(p, link);
    } else {
      link = &(*link)->next;
    }
  }
}

// The smallest that is enough, else the largest.
static bool is_better(size_t size, size_t best, size_t enough) {
  return best < enough ? size > best : size >= enough && size < best;
}

// The idle segment that is best given back, or NULL.
static tarn__pool_chunk **find_best(tarn__pool_segments *segments,
                                    const parting *p) {
  size_t enough = p->enough - p->size;
  tarn__pool_chunk **best = NULL;
  for (tarn__pool_chunk **link = &segments->first; *link != NULL;
       link = &(*link)->next) {
    size_t found = best != NULL ? (*best)->base_size : 0;
    bool better = is_better((*link)->base_size, found, enough);
    if (better && may_part(*link, p)) best = link;
  }
  return best;
}

// All segments at once, in a separate list: segments that other threads free
// during the call are not part of it, or it might never end. Only if some have
// to stay, each is chosen.
static void choose(tarn__pool_segments *segments, parting *p) {
  tarn__pool_chunk **best = NULL;
  if (sum_idle(segments->first, p) <= p->enough) {
    take_idle(segments, p);
    return;
  }
  while (p->size < p->enough && (best = find_best(segments, p)) != NULL)
    take(p, best);
}

static void free_all(tarn__pool_chunk *chunk) {
  while (chunk != NULL) {
    tarn__pool_chunk *next = chunk->next;
    tarn__host_free(chunk, sizeof(segment));
    chunk = next;
  }
}

tarn_status tarn__segments_trim(tarn__pool_segments *segments,
                                tarn__pool_strategy *strategy,
                                tarn__pool_extents *zone, size_t target,
                                unsigned how) {
  parting p = {.strategy = strategy,
               .zone = zone,
               .enough = tarn__front_surplus(strategy->pool, target),
               .how = how};
  if (p.enough > 0) choose(segments, &p);
  if (p.all == NULL) return TARN_OK;
  tarn_status status = tarn__chunks_give(strategy, p.all);
  free_all(p.all);
  return status;
}

bool tarn__segments_is_free(const tarn__pool_extent *hole) {
  tarn__pool_extent_run run = tarn__extents_run(hole);
  const tarn__pool_extent *next = run.last->after;
  bool ends = next == NULL || next->wall || next->kind == TARN__EXTENT_OUTSIDE;
  return run.first->wall && ends;
}

void tarn__extents_survey(const tarn__pool_extents *zone,
                          tarn__pool_survey *out) {
  for (const tarn__pool_bins *b = zone->bins; b != NULL; b = b->next) {
    size_t largest = tarn__bins_largest(b);
    out->idle += b->bytes;
    if (largest > out->largest) out->largest = largest;
    if (b->bytes != 0) tarn__waits_add(&out->streams, b->serial);
  }
}

void tarn__segments_visit(const tarn__pool_segments *segments,
                          tarn__pool_memory_fn *visit, void *context) {
  for (const tarn__pool_chunk *c = segments->first; c != NULL; c = c->next)
    visit(context, c->base, c->base_size);
}

void tarn__segments_deinit(tarn__pool_segments *segments) {
  free_all(segments->first);
  segments->first = NULL;
}

// --- the stock -------------------------------------------------------------

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
  for (;;) {
    if (!tarn__extents_reserve(&stock->zone, request->serial)) {
      return TARN_E_NOMEM;
    }
    *out = find(stock, request, size, out_serial);
    if (*out != NULL) return TARN_OK;
    TARN__TRY(tarn__segments_add(&stock->segments, strategy, request,
                                 &stock->zone, size, size));
  }
}

tarn__pool_extent *tarn__stock_find(tarn__pool_stock *stock,
                                    const tarn__pool_request *request,
                                    size_t size, uint64_t *out_serial) {
  if (!tarn__extents_reserve(&stock->zone, request->serial)) return NULL;
  return find(stock, request, size, out_serial);
}

tarn_status tarn__stock_reserve(tarn__pool_stock *stock,
                                tarn__pool_strategy *strategy, size_t size) {
  TARN__TRY(open_zone(stock, strategy->pool));
  return tarn__segments_reserve(&stock->segments, strategy, &stock->zone, size);
}

tarn_status tarn__stock_check(const tarn__pool_stock *stock) {
  size_t taken = 0;
  return stock->open ? tarn__extents_check(&stock->zone, &taken) : TARN_OK;
}
