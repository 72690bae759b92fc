// The memory of arena_pool: where it comes from, where it moves, and how it is
// given back.
//
// Pages move from holes to where they are needed only where more memory would
// take what the pool holds beyond its live peak and the slack: moving takes two
// calls of the system or the driver a page or more, and a program whose steps
// repeat would pay for it in each of them. Whatever the slack, holes give their
// pages before a request is refused.
#include <assert.h>

#include "base/status.h"
#include "pool/arena.h"
#include "pool/front.h"
#include "pool/region.h"
#include "pool/strategy.h"

static const size_t MOST_SHARED = (size_t)8 << 20;  // bytes of a segment
static const size_t LEAST_SLACK = (size_t)2 << 20;
enum { SLACK_PARTS = 50 };  // of the live peak one is slack: 2%

// --- getting some ----------------------------------------------------------

static tarn_status add_range(tarn__pool_arena *self, tarn__pool_extents *zone,
                             size_t size, size_t align) {
  size_t page = self->regions.page;
  size_t least = 0;
  tarn__pool_region *region = NULL;
  if (!tarn_size_align_up(size, page, &least)) {
    return tarn__fail(TARN_FULL, "the size exceeds the address space");
  }
  size_t most = self->range_size > least ? self->range_size : least;
  tarn_status status =
      tarn__regions_add(&self->regions, most, least, align, &region);
  if (status != TARN_OK) return status;
  assert(region != NULL);
  if (!tarn__extents_is_outside(zone, region->base, region->size)) {
    tarn_addr base = region->base;
    (void)tarn__regions_remove(&self->regions, region, (tarn__pool_lost){0, 0});
    return tarn__fail(TARN_E_DEVICE,
                      "arena_pool: the device reserved addresses from 0x%llx "
                      "on twice",
                      (unsigned long long)base);
  }
  if (!tarn__extents_reserve(zone, 0)) {
    (void)tarn__regions_remove(&self->regions, region, (tarn__pool_lost){0, 0});
    return TARN_E_NOMEM;
  }
  tarn__extents_add(zone, region->base, region->size, TARN__EXTENT_BARE);
  return TARN_OK;
}

// The size up to which the pool may grow while holes keep their pages: what is
// live at most, with this request, and the slack.
static size_t bound_of(const tarn__pool_arena *self, size_t wanted) {
  const tarn_pool_stats *stats = &self->base.pool->stats;
  size_t peak = 0;
  size_t slack = self->slack;
  size_t bound = 0;
  if (!tarn_size_add(stats->live_bytes, wanted, &peak)) return 0;
  if (peak < stats->live_peak_bytes) peak = stats->live_peak_bytes;
  if (slack == TARN__ARENA_SLACK) {
    slack = peak / SLACK_PARTS;
    if (slack < LEAST_SLACK) slack = LEAST_SLACK;
  }
  if (!tarn_size_add(peak, slack, &bound)) bound = SIZE_MAX;
  bound = tarn__front_target(self->base.pool, bound);
  size_t limit = tarn__front_limit(self->base.pool);
  return limit < bound ? limit : bound;
}

// All of them or none: pages that come in part from holes leave the holes of
// the next iteration in another place each time, and moving never ends.
bool tarn__arena_may_grow(const tarn__pool_arena *self, size_t wanted,
                          size_t lacking) {
  const tarn_pool *pool = self->base.pool;
  size_t held = 0;
  // What sleeps is live, and will want its memory back.
  return tarn_size_add(pool->stats.reserved_bytes, pool->pending, &held) &&
         tarn_size_add(held, pool->stats.asleep_bytes, &held) &&
         tarn_size_add(held, lacking, &held) && held <= bound_of(self, wanted);
}

// Unused pages go where they are needed, unless they are to stay in
// their holes.
static void strip_idle(tarn__pool_arena *self, tarn__pool_arena_need *need,
                       size_t missing, tarn__pool_strips *strips) {
  size_t spare = self->regions.spare_count * self->regions.page;
  size_t lacking = missing > spare ? missing - spare : 0;
  size_t taken = 0;
  if (need->adds) return;  // |sparing| stands
  // What a graph was captured with is mapped for as long as it is there.
  if (tarn__front_keeps(self->base.pool)) {
    need->sparing = false;
    return;
  }
  need->sparing = need->sparing && lacking > 0 && !need->request->no_grow &&
                  tarn__arena_may_grow(self, need->request->size, lacking);
  if (need->sparing) return;
  for (int i = TARN__ARENA_ZONES - 1; i >= 0 && taken < lacking; i--)
    taken += tarn__strips_take_idle(strips, &self->zones[i], lacking - taken);
}

tarn_status tarn__arena_map(tarn__pool_arena *self, tarn__pool_arena_need *need,
                            const tarn__pool_extent_plan *plan,
                            tarn__pool_extent **out, uint64_t *out_serial) {
  tarn__pool_strips strips = {.count = 0};
  bool lost = false;
  tarn__pool_extents *zone = need->zone;
  tarn__pool_extent *e =
      tarn__extents_claim(zone, plan, need->size, out_serial);
  strip_idle(self, need, (size_t)(plan->to - plan->from), &strips);
  tarn_status status = tarn__regions_map(&self->regions, need->request,
                                         tarn__strips_first(&strips),
                                         plan->from, plan->to, &lost);
  tarn__strips_settle(&strips);
  if (status == TARN_OK) {
    *out = tarn__extents_keep(zone, e, plan, need->size);
  } else {
    tarn__extents_unclaim(zone, e, plan, *out_serial,
                          lost ? TARN__EXTENT_LOST : TARN__EXTENT_BARE);
  }
  return status;
}

// Segments in which the request found no room go back before one more comes, as
// far as the pool would hold more than its live peak and the slack, and nobody
// has to wait for it.
static void make_way(tarn__pool_arena *self, size_t wanted, size_t size) {
  if (tarn__arena_may_grow(self, wanted, size)) return;
  if (tarn__front_keeps(self->base.pool)) return;
  tarn__settle_done(&self->base);
  size_t bound = bound_of(self, wanted);
  size_t target = bound > size ? bound - size : 0;
  for (int i = TARN__ARENA_ZONES - 1; i >= 0; i--) {
    (void)tarn__segments_trim(&self->segments, &self->base, &self->zones[i],
                              target, TARN__TRIM_NO_WAIT);
  }
}

// A segment that blocks share grows with its zone. A block that would take more
// than half of one has a segment of its own size: it fits, and when the block
// is freed nothing else keeps it.
static tarn_status add_segment(tarn__pool_arena *self, tarn__pool_extents *zone,
                               size_t size, tarn__pool_request *request) {
  const tarn__pool_sizes *sizes = &self->base.pool->sizes;
  if (request->no_grow) return tarn__source_refuse_growth(request);
  size_t own = tarn__chunk_growth(zone->taken_bytes, MOST_SHARED);
  if (size > own / 2) own = size;
  if (sizes->later == 0) make_way(self, request->size, own);
  tarn__pool_growth growth = {.first = sizes->first,
                              .later = sizes->later,
                              .own = own,
                              .least = size,
                              .unit = zone->granule};
  return tarn__segments_add(&self->segments, &self->base, request, zone,
                            &growth);
}

tarn_status tarn__arena_add(tarn__pool_arena *self, tarn__pool_extents *zone,
                            size_t size, tarn__pool_request *request) {
  if (self->range_size == 0) return add_segment(self, zone, size, request);
  return add_range(self, zone, size, request->align);
}

// --- keeping some ----------------------------------------------------------

// A hole among the large blocks, of |size| bytes of pages that have no memory
// yet.
static tarn_status map_hole(tarn__pool_arena *self, size_t size) {
  tarn__pool_extents *zone = &self->zones[TARN__ARENA_ZONES - 1];
  tarn__pool_request request = {.size = size, .align = zone->granule};
  tarn__pool_arena_need need = {zone, size, &request, .sparing = true,
                                .adds = true};
  tarn__pool_extent *e = NULL;
  uint64_t serial = 0;
  tarn_status status = tarn__source_check_limit(self->base.pool, size);
  if (status != TARN_OK) return status;
  if (!tarn__arena_prepare(zone, 0)) return TARN_E_NOMEM;
  tarn__pool_extent_plan p = tarn__extents_plan_bare(zone, size);
  if (p.bare == NULL) return add_range(self, zone, size, zone->page);
  status = tarn__arena_map(self, &need, &p, &e, &serial);
  if (status == TARN_OK) (void)tarn__extents_give(zone, e, serial);
  return status;
}

tarn_status tarn__arena_reserve(tarn__pool_strategy *strategy, size_t size) {
  tarn__pool_arena *self = (tarn__pool_arena *)(void *)strategy;
  const size_t *held = &strategy->pool->stats.reserved_bytes;
  tarn_status status = TARN_OK;
  if (self->range_size == 0) {
    return tarn__segments_reserve(&self->segments, strategy,
                                  &self->zones[TARN__ARENA_ZONES - 1], size);
  }
  while (status == TARN_OK && *held < size) {
    size_t missing = 0;
    if (!tarn_size_align_up(size - *held, self->regions.page, &missing)) {
      return tarn__fail(TARN_FULL, "the size exceeds the address space");
    }
    status = map_hole(self, missing);
  }
  return status;
}

// --- giving it back ----------------------------------------------------

// Whether there is no memory in all of |region|, which begins with |e|, that
// is known of.
static bool is_empty(const tarn__pool_region *region,
                     const tarn__pool_extent *e) {
  uint64_t end = region->base + region->size;
  while (e->kind == TARN__EXTENT_BARE || e->kind == TARN__EXTENT_LOST) {
    if (e->offset + e->size == end) return true;
    e = e->after;
  }
  return false;
}

static tarn__pool_region *find_empty_region(const tarn__pool_arena *self,
                                            const tarn__pool_extents *zone,
                                            tarn__pool_extent **out_first) {
  for (tarn__pool_extent *e = zone->first; e != NULL; e = e->after) {
    tarn__pool_region *r = e->wall ? self->regions.first : NULL;
    while (r != NULL && r->base != e->offset)
      r = r->next;
    if (r == NULL || !is_empty(r, e)) continue;
    *out_first = e;
    return r;
  }
  return NULL;
}

static tarn_status drop_region(tarn__pool_arena *self, tarn__pool_extents *zone,
                               tarn__pool_region *region,
                               tarn__pool_extent *e) {
  tarn__pool_lost lost = {UINT64_MAX, 0};
  for (size_t left = region->size; left > 0;) {
    tarn__pool_extent *next = e->after;
    left -= e->size;
    if (e->kind == TARN__EXTENT_LOST) {
      if (e->offset < lost.from) lost.from = e->offset;
      lost.to = e->offset + e->size;
    }
    tarn__extents_remove(zone, e);
    e = next;
  }
  return tarn__regions_remove(&self->regions, region, lost);
}

static tarn_status drop_empty_regions(tarn__pool_arena *self) {
  tarn_status first = TARN_OK;
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    tarn__pool_extents *zone = &self->zones[i];
    tarn__pool_extent *e = NULL;
    tarn__pool_region *region = NULL;
    while ((region = find_empty_region(self, zone, &e)) != NULL) {
      tarn__keep_first(&first, drop_region(self, zone, region, e));
    }
  }
  return first;
}

// Pages of which the pool holds more than |target|, a batch at most.
static size_t surplus(const tarn__pool_arena *self, size_t target,
                      unsigned how) {
  const tarn_pool *pool = self->base.pool;
  size_t held = pool->stats.reserved_bytes;
  size_t page = self->regions.page;
  size_t pages = held > target ? (held - target - 1) / page + 1 : 0;
  // The last one may be part of what is to be kept.
  if (pages > 0 && !tarn__front_may_return(&self->base, 0, pages * page, how))
    pages--;
  return pages < TARN__REGION_BATCH ? pages : TARN__REGION_BATCH;
}

// Out of holes of all, or of those that no stream uses.
static size_t take_pages(tarn__pool_strips *strips, tarn__pool_extents *zone,
                         uint64_t *cursor, size_t most, bool unused) {
  return unused ? tarn__strips_take_idle(strips, zone, most)
                : tarn__strips_take_any(strips, zone, cursor, most);
}

// Of what was idle when it began, in batches: spares first, then holes by
// rising address, those of small blocks before those of large ones. Each page
// is tried once.
static tarn_status trim_pages(tarn__pool_arena *self, size_t target,
                              unsigned how) {
  bool unused = (how & TARN__TRIM_NO_WAIT) != 0;
  uint64_t cursors[TARN__ARENA_ZONES] = {0};
  tarn_status first = TARN_OK;
  size_t spares = 0;
  size_t taken = 0;
  do {
    tarn__pool_strips strips = {.count = 0};
    size_t batch = surplus(self, target, how);
    size_t there = self->regions.spare_count;
    spares = there < batch ? there : batch;
    size_t most = (batch - spares) * self->regions.page;
    taken = 0;
    for (int i = 0; i < TARN__ARENA_ZONES && taken < most; i++) {
      taken += take_pages(&strips, &self->zones[i], &cursors[i], most - taken,
                          unused);
    }
    tarn_status status = tarn__regions_shrink(
        &self->regions, tarn__strips_first(&strips), spares);
    tarn__strips_settle(&strips);
    if (first == TARN_OK) first = status;
  } while (taken > 0 || spares > 0);
  return first;
}

static tarn_status trim_ranges(tarn__pool_arena *self, size_t target,
                               unsigned how) {
  tarn_status status = trim_pages(self, target, how);
  tarn_status dropped = drop_empty_regions(self);
  return status != TARN_OK ? status : dropped;
}

tarn_status tarn__arena_trim(tarn__pool_strategy *strategy, size_t target,
                             unsigned how) {
  tarn__pool_arena *self = (tarn__pool_arena *)(void *)strategy;
  tarn_pool *pool = self->base.pool;
  bool drops = (how & TARN__TRIM_KEEP_LAYOUT) == 0;
  if (drops && self->layout != NULL && pool->stats.reserved_bytes > target) {
    tarn__step_layout_drop(pool);
  }
  tarn_status first =
      self->range_size != 0 ? trim_ranges(self, target, how) : TARN_OK;
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    tarn__keep_first(&first, tarn__segments_trim(&self->segments, &self->base,
                                                 &self->zones[i], target, how));
  }
  return first;
}

// --- finding room ----------------------------------------------------------

// Holes of streams that are gone are anybody's.
void tarn__arena_adopt_orphans(tarn__pool_extents *zone) {
  for (tarn__pool_bins *b = zone->bins->next; b != NULL; b = b->next) {
    if (b->bytes != 0 && tarn__stream_is_gone(b->serial)) {
      tarn__extents_move(zone, b->serial, 0);
    }
  }
}

bool tarn__arena_prepare(tarn__pool_extents *zone, uint64_t serial) {
  if (!tarn__extents_knows(zone, serial)) tarn__arena_adopt_orphans(zone);
  return tarn__extents_reserve(zone, serial);
}

// NULL: there is no hole for it.
static tarn__pool_extent *find_open(tarn__pool_extents *zone, size_t size,
                                    const tarn__pool_request *request,
                                    uint64_t *out_serial) {
  tarn__pool_extent *e = tarn__extents_take(zone, size, request->align,
                                            request->serial, out_serial);
  if (e != NULL || zone->bins->next == NULL) return e;
  tarn__arena_adopt_orphans(zone);
  if (request->own_only) {
    return tarn__extents_take(zone, size, request->align, request->serial,
                              out_serial);
  }
  return tarn__extents_take_any(zone, size, request->align, out_serial);
}

// A layout has memory idle that others may not use: before the pool grows by
// much, or where it cannot, it is dropped.
static bool drops_layout(tarn__pool_arena *self,
                         const tarn__pool_request *request) {
  bool drops = self->layout != NULL && !request->keeps_layout;
  if (drops) tarn__step_layout_drop(self->base.pool);
  return drops;
}

// Whatever releases the lock begins anew, or ends here.
tarn_status tarn__arena_find(tarn__pool_arena *self,
                             tarn__pool_arena_need *need,
                             tarn__pool_extent **out, uint64_t *out_serial) {
  tarn__pool_extents *zone = need->zone;
  tarn__pool_request *request = need->request;
  for (;;) {
    if (!tarn__arena_prepare(zone, request->serial)) return TARN_E_NOMEM;
    *out = find_open(zone, need->size, request, out_serial);
    if (*out != NULL) return TARN_OK;
    bool grows = tarn__arena_may_grow(self, request->size, need->size);
    if (!grows && drops_layout(self, request)) continue;
    tarn_status status = TARN_OK;
    tarn__pool_extent_plan p = {.bare = NULL};
    if (self->range_size != 0) {
      p = tarn__extents_plan(zone, need->size, request->align, request->serial);
    }
    if (p.bare != NULL) {
      status = tarn__arena_map(self, need, &p, out, out_serial);
      bool again = status == TARN_FULL && need->sparing;
      need->sparing = need->sparing && !again;
      if (again) continue;
    } else {
      status = tarn__arena_add(self, zone, need->size, request);
      if (status == TARN_OK) continue;
    }
    if (status != TARN_FULL || !drops_layout(self, request)) return status;
  }
}

// Where there is no more memory, a block goes into a hole of the zone that is
// not its own: to split one for good is better than to be refused.
bool tarn__arena_find_elsewhere(tarn__pool_arena *self,
                                tarn__pool_arena_need *need,
                                tarn__pool_extent **out, uint64_t *out_serial) {
  const tarn__pool_request *request = need->request;
  tarn__pool_extents *own = need->zone;
  need->zone = &self->zones[own == self->zones ? 1 : 0];
  *out = NULL;
  if (tarn__arena_prepare(need->zone, request->serial)) {
    *out = find_open(need->zone, need->size, request, out_serial);
  }
  return *out != NULL;
}
