// The memory of arena_pool: where it comes from, where it moves, and how it is
// given back.
//
// Pages move from holes to a request only where new memory would exceed the
// live peak and the slack: a program whose steps repeat would pay for moves in
// each step. Moves have a price (moves.h). Unless a slack was named, half of
// the live peak is room that is used before more moves are made than have been
// earned. Whatever the slack, holes give their pages before a request is
// refused.
#include <assert.h>

#include "base/os.h"
#include "base/status.h"
#include "pool/arena.h"
#include "pool/front.h"
#include "pool/region.h"
#include "pool/strategy.h"

static const size_t MOST_SHARED = (size_t)8 << 20;  // bytes of a segment
static const size_t LEAST_SLACK = (size_t)2 << 20;
enum {
  SLACK_PERCENT = 2,  // of the live peak
  ROOM_PARTS = 2,     // one part of it is room that spares moves
};

// --- strips ----------------------------------------------------------------
//
// Pages that are taken out of holes, to be mapped where they are needed or to
// be given back. In transit they count as taken, so that no other request gets
// them.

typedef struct strip_list {
  tarn__pool_stripped list[TARN__REGION_BATCH];
  tarn__pool_extents *zones[TARN__REGION_BATCH];
  size_t count;
} strip_list;

// The first one; NULL: there are none.
static tarn__pool_stripped *first_of(strip_list *strips) {
  return strips->count > 0 ? &strips->list[0] : NULL;
}

// Up to |most| bytes out of holes of |zone| behind |*cursor|, which moves on:
// UINT64_MAX behind the last. |cursor| NULL: only of those that no stream uses.
// Returns how many.
static size_t take_strips(strip_list *strips, tarn__pool_extents *zone,
                          uint64_t *cursor, size_t most) {
  size_t taken = 0;
  while (taken < most && strips->count < TARN__REGION_BATCH) {
    tarn__pool_stripped *slot = &strips->list[strips->count];
    *slot = (tarn__pool_stripped){.extent = NULL};
    // With what nodes there are memory can still be given back.
    (void)!tarn__extents_reserve(zone, 0);
    slot->extent =
        cursor == NULL
            ? tarn__extents_strip(zone, most - taken)
            : tarn__extents_strip_run(zone, cursor, most - taken, &slot->waits);
    if (slot->extent == NULL) break;
    strips->zones[strips->count] = zone;
    if (strips->count++ > 0) slot[-1].next = slot;
    taken += slot->extent->size;
  }
  return taken;
}

// Unmapped pages become bare, or lost; pages without an attempt were idle, and
// are holes again.
static void settle_strips(const strip_list *strips) {
  for (size_t i = 0; i < strips->count; i++) {
    const tarn__pool_stripped *stripped = &strips->list[i];
    tarn__pool_extents *zone = strips->zones[i];
    if (stripped->end == TARN__STRIP_KEPT) {
      (void)tarn__extents_give(zone, stripped->extent, 0);
    } else {
      bool lost = stripped->end == TARN__STRIP_LOST;
      tarn__extents_end_strip(zone, stripped->extent,
                              lost ? TARN__EXTENT_LOST : TARN__EXTENT_BARE);
    }
  }
}

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
  TARN__TRY(tarn__regions_add(&self->regions, most, least, align, &region));
  assert(region != NULL);
  tarn_addr base = region->base;
  bool outside = tarn__extents_is_outside(zone, base, region->size);
  if (outside && tarn__extents_reserve(zone, 0)) {
    tarn__extents_add(zone, base, region->size, TARN__EXTENT_BARE);
    return TARN_OK;
  }
  (void)tarn__regions_remove(&self->regions, region, (tarn__pool_lost){0, 0});
  if (outside) return TARN_E_NOMEM;
  return tarn__fail(TARN_E_DEVICE,
                    "arena_pool: the device reserved addresses from 0x%llx "
                    "on twice",
                    (unsigned long long)base);
}

// The live peak, with this request; 0: more than there can be.
static size_t peak_with(const tarn__pool_arena *self, size_t wanted) {
  const tarn_pool_stats *stats = &self->base.pool->stats;
  size_t peak = 0;
  if (!tarn_size_add(stats->live_bytes, wanted, &peak)) return 0;
  return peak > stats->live_peak_bytes ? peak : stats->live_peak_bytes;
}

// SIZE_MAX: more than there can be.
static size_t percent_of(size_t peak, size_t percent) {
  size_t part = 0;
  size_t rest = peak % 100 * percent / 100;
  bool fits = tarn_size_mul(peak / 100, percent, &part) &&
              tarn_size_add(part, rest, &part);
  return fits ? part : SIZE_MAX;
}

static size_t slack_of(const tarn__pool_arena *self, size_t peak) {
  const tarn__pool_slack *slack = &self->slack;
  if (slack->kind == TARN__SLACK_BYTES) return slack->value;
  if (slack->kind == TARN__SLACK_PERCENT) {
    return percent_of(peak, slack->value);
  }
  size_t usual = percent_of(peak, SLACK_PERCENT);
  return usual > LEAST_SLACK ? usual : LEAST_SLACK;
}

// |size| bytes and |more|, but at least what is reserved, and within the limit.
static size_t bounded(const tarn__pool_arena *self, size_t size, size_t more) {
  size_t bound = 0;
  if (!tarn_size_add(size, more, &bound)) bound = SIZE_MAX;
  bound = tarn__front_target(self->base.pool, bound);
  size_t limit = tarn__front_limit(self->base.pool);
  return limit < bound ? limit : bound;
}

// The size up to which the pool may grow while holes keep their pages: the live
// peak, with this request, and the slack.
static size_t bound_of(const tarn__pool_arena *self, size_t wanted) {
  size_t peak = peak_with(self, wanted);
  return peak != 0 ? bounded(self, peak, slack_of(self, peak)) : 0;
}

// All missing pages or none: if a part came from holes, the holes of the next
// iteration would lie elsewhere, and moving would never end.
static bool stays_within(const tarn__pool_arena *self, size_t bound,
                         size_t lacking) {
  const tarn_pool *pool = self->base.pool;
  size_t held = 0;
  // What sleeps is live, and will want its memory back.
  return tarn_size_add(pool->stats.reserved_bytes, pool->pending, &held) &&
         tarn_size_add(held, pool->stats.asleep_bytes, &held) &&
         tarn_size_add(held, lacking, &held) && held <= bound;
}

bool tarn__arena_may_grow(const tarn__pool_arena *self, size_t wanted,
                          size_t lacking) {
  return stays_within(self, bound_of(self, wanted), lacking);
}

// --- moving some -----------------------------------------------------------

// Whether there is room beside the slack that spares moves. Who names a slack
// wants no more than that.
static bool has_room(const tarn__pool_arena *self, size_t wanted,
                     size_t lacking) {
  size_t peak = peak_with(self, wanted);
  return self->slack.kind == TARN__SLACK_USUAL && peak != 0 &&
         stays_within(self, bounded(self, peak, peak / ROOM_PARTS), lacking);
}

static size_t lacking_of(const tarn__pool_arena *self, size_t missing) {
  size_t spare = self->regions.spare_count * self->regions.page;
  return missing > spare ? missing - spare : 0;
}

static tarn__pool_moment moment_of(const tarn__pool_arena *self) {
  return (tarn__pool_moment){.served = self->base.pool->stats.allocs,
                             .now_ns = tarn__os_now_ns()};
}

// Whether |lacking| bytes of pages are rather asked for than moved.
static bool spares_moves(tarn__pool_arena *self, size_t wanted,
                         size_t lacking) {
  size_t page = self->regions.page;
  return has_room(self, wanted, lacking) &&
         !tarn__moves_afford(&self->moves, lacking / page,
                             peak_with(self, wanted) / page, moment_of(self));
}

// The price counts only where there is a choice. Releases the lock.
static void learn_price(tarn__pool_arena *self,
                        const tarn__pool_arena_need *need, size_t missing) {
  size_t wanted = need->request->size;
  size_t lacking = lacking_of(self, missing);
  bool moves = need->sparing && lacking > 0 && !need->adds &&
               !need->request->no_grow && !tarn__front_keeps(self->base.pool) &&
               !tarn__arena_may_grow(self, wanted, lacking);
  if (self->moves.price_ns != TARN__MOVES_UNKNOWN || !moves ||
      !has_room(self, wanted, lacking)) {
    return;
  }
  tarn__moves_measure(&self->moves, &self->base, self->regions.supply,
                      self->regions.page);
}

// Of a bounded need, |lacking| bytes may exceed the bound.
static void hold_bound(const tarn__pool_arena *self,
                       tarn__pool_arena_need *need, size_t lacking) {
  if (need->bounded && !tarn__arena_may_grow(self, 0, lacking)) {
    need->request->no_grow = true;
  }
}

// Unused pages go where they are needed, unless they are to stay in
// their holes.
static void strip_idle(tarn__pool_arena *self, tarn__pool_arena_need *need,
                       size_t missing, strip_list *strips) {
  size_t wanted = need->request->size;
  size_t lacking = lacking_of(self, missing);
  size_t taken = 0;
  if (need->adds) return;  // |sparing| stands
  // Memory of a captured graph stays mapped as long as the graph exists.
  if (tarn__front_keeps(self->base.pool)) {
    need->sparing = false;
    return;
  }
  need->sparing = need->sparing && lacking > 0 && !need->request->no_grow &&
                  (tarn__arena_may_grow(self, wanted, lacking) ||
                   spares_moves(self, wanted, lacking));
  if (need->sparing) return;
  for (int i = TARN__ARENA_ZONES - 1; i >= 0 && taken < lacking; i--)
    taken += take_strips(strips, &self->zones[i], NULL, lacking - taken);
  if (taken < lacking) hold_bound(self, need, lacking - taken);
}

// The pages that began to move at |begin_ns| have done so.
static void end_moves(tarn__pool_arena *self, const strip_list *strips,
                      uint64_t begin_ns) {
  tarn_pool_stats *stats = &self->base.pool->stats;
  size_t size = 0;
  if (strips->count == 0) return;
  for (size_t i = 0; i < strips->count; i++) {
    const tarn__pool_stripped *stripped = &strips->list[i];
    if (stripped->end != TARN__STRIP_KEPT) size += stripped->extent->size;
  }
  tarn__pool_moment end = moment_of(self);
  uint64_t took_ns = end.now_ns - begin_ns;
  stats->moved_bytes += size;
  stats->move_ns += took_ns;
  tarn__moves_charge(&self->moves, size / self->regions.page, took_ns, end);
}

tarn_status tarn__arena_map(tarn__pool_arena *self, tarn__pool_arena_need *need,
                            const tarn__pool_extent_plan *plan,
                            tarn__pool_extent **out, uint64_t *out_serial) {
  strip_list strips = {.count = 0};
  bool lost = false;
  tarn__pool_extents *zone = need->zone;
  tarn__pool_extent *e =
      tarn__extents_claim(zone, plan, need->size, out_serial);
  size_t missing = (size_t)(plan->to - plan->from);
  learn_price(self, need, missing);
  strip_idle(self, need, missing, &strips);
  uint64_t begin = strips.count > 0 ? tarn__os_now_ns() : 0;
  tarn_status status =
      tarn__regions_map(&self->regions, need->request, first_of(&strips),
                        plan->from, plan->to, &lost);
  end_moves(self, &strips, begin);
  settle_strips(&strips);
  if (status == TARN_OK) {
    *out = tarn__extents_keep(zone, e, plan, need->size);
  } else {
    tarn__extents_unclaim(zone, e, plan, *out_serial,
                          lost ? TARN__EXTENT_LOST : TARN__EXTENT_BARE);
  }
  return status;
}

// Segments in which the request found no room are given back before another is
// added, while the pool would hold more than its live peak and the slack, and
// if no stream has to be waited for.
static void make_way(tarn__pool_arena *self, size_t wanted, size_t size) {
  if (tarn__arena_may_grow(self, wanted, size)) return;
  if (tarn__front_keeps(self->base.pool)) return;
  tarn__settle_streams(&self->base, 0, false);
  size_t bound = bound_of(self, wanted);
  size_t target = bound > size ? bound - size : 0;
  for (int i = TARN__ARENA_ZONES - 1; i >= 0; i--) {
    (void)tarn__segments_trim(&self->segments, &self->base, &self->zones[i],
                              target, TARN__TRIM_NO_WAIT);
  }
}

// A shared segment grows with its zone. A block that would take more than half
// of a segment has one of its own size: it fits, and no other block keeps the
// segment when it is freed.
static tarn_status add_segment(tarn__pool_arena *self,
                               tarn__pool_arena_need *need) {
  tarn__pool_extents *zone = need->zone;
  tarn__pool_request *request = need->request;
  size_t size = need->size;
  if (request->no_grow) return tarn__source_refuse_growth(request);
  size_t own = tarn__chunk_growth(zone->taken_bytes, MOST_SHARED);
  if (size > own / 2) own = size;
  if (self->base.pool->sizes.later == 0) make_way(self, request->size, own);
  hold_bound(self, need, own);
  if (request->no_grow) return tarn__source_refuse_growth(request);
  return tarn__segments_add(&self->segments, &self->base, request, zone, own,
                            size);
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
  TARN__TRY(tarn__source_check_limit(self->base.pool, size));
  if (!tarn__arena_prepare(zone, 0)) return TARN_E_NOMEM;
  tarn__pool_extent_plan p = tarn__extents_plan_bare(zone, size);
  if (p.bare == NULL) return add_range(self, zone, size, zone->page);
  TARN__TRY(tarn__arena_map(self, &need, &p, &e, &serial));
  (void)tarn__extents_give(zone, e, serial);
  return TARN_OK;
}

tarn_status tarn__arena_reserve(tarn__pool_strategy *strategy, size_t size) {
  tarn__pool_arena *self = tarn__arena_of(strategy);
  const size_t *held = &strategy->pool->stats.reserved_bytes;
  if (self->range_size == 0) {
    return tarn__segments_reserve(&self->segments, strategy,
                                  &self->zones[TARN__ARENA_ZONES - 1], size);
  }
  while (*held < size) {
    size_t missing = 0;
    if (!tarn_size_align_up(size - *held, self->regions.page, &missing)) {
      return tarn__fail(TARN_FULL, "the size exceeds the address space");
    }
    TARN__TRY(map_hole(self, missing));
  }
  return TARN_OK;
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
  // A part of the last one may be reserved.
  if (pages > 0 && !tarn__front_may_return(&self->base, 0, pages * page, how))
    pages--;
  return tarn__lesser(pages, tarn__regions_batch(&self->regions));
}

// Takes pages that were idle at the beginning of the call, in batches: spares
// first, then holes by rising address, in the zone of small blocks before that
// of large ones. Each page is tried once.
static tarn_status trim_pages(tarn__pool_arena *self, size_t target,
                              unsigned how) {
  bool unused = (how & TARN__TRIM_NO_WAIT) != 0;
  uint64_t cursors[TARN__ARENA_ZONES] = {0};
  tarn_status first = TARN_OK;
  size_t spares = 0;
  size_t taken = 0;
  do {
    strip_list strips = {.count = 0};
    size_t batch = surplus(self, target, how);
    size_t there = self->regions.spare_count;
    spares = there < batch ? there : batch;
    size_t most = (batch - spares) * self->regions.page;
    taken = 0;
    for (int i = 0; i < TARN__ARENA_ZONES && taken < most; i++) {
      taken += take_strips(&strips, &self->zones[i],
                           unused ? NULL : &cursors[i], most - taken);
    }
    tarn__keep_first(&first, tarn__regions_shrink(&self->regions,
                                                  first_of(&strips), spares));
    settle_strips(&strips);
  } while (taken > 0 || spares > 0);
  return first;
}

tarn_status tarn__arena_trim(tarn__pool_strategy *strategy, size_t target,
                             unsigned how) {
  tarn__pool_arena *self = tarn__arena_of(strategy);
  tarn_pool *pool = self->base.pool;
  bool drops = (how & TARN__TRIM_KEEP_LAYOUT) == 0;
  if (drops && self->grounds != 0 && pool->stats.reserved_bytes > target) {
    tarn__steps_park(pool);
  }
  tarn_status first = TARN_OK;
  if (self->range_size != 0) {
    first = trim_pages(self, target, how);
    tarn__keep_first(&first, drop_empty_regions(self));
  }
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    tarn__keep_first(&first, tarn__segments_trim(&self->segments, &self->base,
                                                 &self->zones[i], target, how));
  }
  return first;
}

// --- finding room ----------------------------------------------------------

// Any stream may use the holes of a stream that is gone.
void tarn__arena_adopt_orphans(tarn__pool_extents *zone) {
  for (tarn__pool_bins *b = zone->bins->next; b != NULL; b = b->next) {
    if (b->bytes != 0 && tarn__stream_is_gone(b->serial)) {
      tarn__extents_move(zone, b->serial, 0);
    }
  }
}

bool tarn__arena_prepare(tarn__pool_extents *zone, uint64_t serial) {
  if (tarn__row_bins(zone, serial) == NULL) tarn__arena_adopt_orphans(zone);
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
  bool drops = self->grounds != 0 && !request->keeps_layout;
  if (drops) tarn__steps_park(self->base.pool);
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
      status = self->range_size == 0
                   ? add_segment(self, need)
                   : add_range(self, zone, need->size, request->align);
      if (status == TARN_OK) continue;
    }
    if (status != TARN_FULL || !drops_layout(self, request)) return status;
  }
}

// Without more memory, a block is put into a hole of the other zone: splitting
// that hole for good is better than a refusal.
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
