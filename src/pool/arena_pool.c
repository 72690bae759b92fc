// arena_pool: blocks cut out of memory that is kept in one piece as far as can
// be, and joined again when they are freed.
//
//   small   [ 4K | 512 | hole | 64K | bare .................... ]  extents of
//   large   [ 2M | hole       | 9M  | hole | 1M | bare ........ ]  two zones
//              pages of memory ── move to where they are needed
//
// Where the device has ranges (range.h), a zone is a range of reserved
// addresses, in which memory comes and goes by pages. A request that fits in
// no hole gets pages mapped where it needs the fewest; they are taken out of
// other holes before the device is asked for new ones. So holes that are too
// small to be used cost addresses, not memory. Where it has none, memory comes
// in segments, which are cut up and joined in the same way.
//
// A hole is the stream's whose work may still be under way in it: it serves
// that one at once, and another, which then waits, before memory is added.
//
// Cost: a hit is a look into the bins and a cut; a free joins two neighbours at
//       most. A miss is a few calls of the device.
#include <assert.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"
#include "pool/region.h"
#include "pool/segments.h"

enum {
  GRANULE = 512,
  STRIPS = 32,  // holes that pages are taken from at a time
};

static const size_t DEFAULT_PAGE = (size_t)256 << 10;
static const size_t DEFAULT_SMALL = (size_t)64 << 10;
static const size_t LEAST_RANGE = (size_t)64 << 20;
static const size_t SEGMENT_STEP = (size_t)2 << 20;

typedef struct arena {
  tarn__strategy base;
  tarn__extents zones[2];  // of small blocks, of large ones
  size_t small;            // the largest that is small
  size_t padding;
  size_t range_size;  // 0: the device has no ranges, or no addresses for one
  tarn__regions regions;
  tarn__segments segments;
} arena;

static arena *self_of(tarn__strategy *strategy) {
  return (arena *)(void *)strategy;  // the base is the first member
}

static tarn__extents *zone_of(arena *self, size_t size) {
  return &self->zones[size > self->small ? 1 : 0];
}

// --- beginning and end -----------------------------------------------------

static tarn_status read_options(arena *self, tarn__options *options,
                                size_t *out_page) {
  tarn_status status =
      tarn__options_size(options, "page", DEFAULT_PAGE, out_page);
  if (status == TARN_OK) {
    status = tarn__options_size(options, "small", DEFAULT_SMALL, &self->small);
  }
  if (status != TARN_OK) return status;
  if (!tarn_is_power_of_two(*out_page) || *out_page < GRANULE) {
    return tarn__fail(TARN_E_INVALID,
                      "arena_pool: page=%zu is no power of two from %d on",
                      *out_page, GRANULE);
  }
  return TARN_OK;
}

// Ranges are the device's own memory; the host's is the device's own.
static bool can_have_ranges(const tarn_pool *pool,
                            const tarn_device_info *info) {
  bool own = pool->place.kind == TARN_PLACE_DEVICE || info->host_accessible;
  return own && (info->extensions & TARN_EXTENSION_RANGES) != 0;
}

// Twice what the device has, since holes cost addresses only.
static tarn_status adopt_ranges(arena *self, tarn_device *device,
                                size_t *page) {
  size_t granularity = 0;
  size_t total = 0;
  size_t available = 0;
  tarn_status status = tarn_range_granularity(device, &granularity);
  if (status == TARN_OK) {
    status = tarn_device_memory(device, &total, &available);
  }
  if (status != TARN_OK) return status;
  if (*page < granularity) *page = granularity;
  self->regions.page = *page;
  size_t most = SIZE_MAX / 4;
  self->range_size = (total < most ? total * 2 : most) & ~(*page - 1);
  return TARN_OK;
}

static tarn_status adopt_device(arena *self, size_t *page) {
  tarn_pool *pool = self->base.pool;
  tarn_device *device = NULL;
  tarn_device_info info = {.struct_size = sizeof info};
  tarn_status status = tarn__place_device(pool->place, &device);
  if (status == TARN_OK) status = tarn_device_query(device, &info);
  if (status != TARN_OK) return status;
  self->regions.strategy = &self->base;
  self->regions.device = device;
  self->padding = pool->padding;
  self->segments.largest = info.max_alloc;
  return can_have_ranges(pool, &info) ? adopt_ranges(self, device, page)
                                      : TARN_OK;
}

static tarn_status init(tarn__strategy *strategy, tarn__options *options) {
  arena *self = self_of(strategy);
  size_t page = 0;
  tarn_status status = read_options(self, options, &page);
  if (status == TARN_OK) status = adopt_device(self, &page);
  if (status != TARN_OK) return status;
  size_t natural = strategy->pool->natural_align;
  size_t granule = natural > GRANULE ? natural : GRANULE;
  for (int i = 0; i < 2 && status == TARN_OK; i++)
    status = tarn__extents_init(&self->zones[i], granule, page);
  return status;
}

static void deinit(tarn__strategy *strategy) {
  arena *self = self_of(strategy);
  for (int i = 0; i < 2; i++)
    tarn__extents_deinit(&self->zones[i]);
  tarn__regions_deinit(&self->regions);
  tarn__segments_deinit(&self->segments);
}

// --- memory ----------------------------------------------------------------

// Pages out of holes that no stream uses, |most| bytes at most. They are taken
// until they are unmapped.
typedef struct strips {
  tarn__stripped list[STRIPS];
  tarn__extents *zones[STRIPS];
  size_t count;
} strips;

static const tarn__stripped *first_of(const strips *s) {
  return s->count > 0 ? &s->list[0] : NULL;
}

static void add_strip(strips *s, tarn__extents *zone, tarn__extent *extent,
                      uint64_t serial) {
  size_t at = s->count++;
  s->list[at] = (tarn__stripped){.extent = extent, .serial = serial};
  s->zones[at] = zone;
  if (at > 0) s->list[at - 1].next = &s->list[at];
}

// False: no more can be had from |zone| now.
static bool strip(strips *s, tarn__extents *zone, size_t most,
                  uint64_t serial) {
  if (s->count == STRIPS || !tarn__extents_reserve(zone, serial)) return false;
  tarn__extent *e = tarn__extents_strip(zone, most, serial);
  if (e != NULL) add_strip(s, zone, e, serial);
  return e != NULL;
}

static void strip_idle(arena *self, strips *s, size_t most) {
  for (int i = 1; i >= 0; i--) {
    while (most > 0 && strip(s, &self->zones[i], most, 0))
      most -= s->list[s->count - 1].extent->size;
  }
}

// They are unmapped now, or nothing has happened to them.
static void settle_strips(strips *s, bool unmapped) {
  for (size_t i = 0; i < s->count; i++) {
    const tarn__stripped *stripped = &s->list[i];
    if (unmapped) {
      tarn__extents_bare(s->zones[i], stripped->extent);
    } else {
      (void)tarn__extents_give(s->zones[i], stripped->extent, stripped->serial);
    }
  }
}

// TARN_FULL: there are no addresses for a range that would hold |size|.
static tarn_status add_range(arena *self, tarn__extents *zone, size_t size) {
  size_t page = self->regions.page;
  size_t least = LEAST_RANGE;
  tarn__region *region = NULL;
  if (least < size + 2 * page) least = (size + 2 * page) & ~(page - 1);
  size_t most = self->range_size > least ? self->range_size : least;
  tarn_status status = tarn__regions_add(&self->regions, most, least, &region);
  if (status != TARN_OK) return status;
  assert(region != NULL);
  if (!tarn__extents_reserve(zone, 0)) {
    (void)tarn__regions_remove(&self->regions, region);
    return TARN_E_NOMEM;
  }
  tarn__extents_add(zone, region->base, region->size, TARN__EXTENT_BARE);
  return TARN_OK;
}

// Where the block is to be; adds a range if there is no room for it.
static tarn_status plan(arena *self, tarn__extents *zone, size_t size,
                        const tarn__request *request,
                        tarn__extent_plan *out_plan) {
  for (;;) {
    if (!tarn__extents_reserve(zone, request->serial)) return TARN_E_NOMEM;
    *out_plan = tarn__extents_plan(zone, size, request->align, request->serial);
    if (out_plan->bare != NULL) return TARN_OK;
    tarn_status status = add_range(self, zone, size + request->align);
    if (status != TARN_OK) return status;
  }
}

static tarn_status grow_range(arena *self, tarn__extents *zone, size_t size,
                              tarn__request *request, tarn__extent **out,
                              uint64_t *out_serial) {
  tarn__extent_plan p = {.bare = NULL};
  strips s = {.count = 0};
  tarn_status status = plan(self, zone, size, request, &p);
  if (status != TARN_OK) return status;
  tarn__extent *e = tarn__extents_claim(zone, &p, size, out_serial);
  size_t spare = self->regions.spare_count * self->regions.page;
  size_t need = (size_t)(p.to - p.from);
  if (need > spare) strip_idle(self, &s, need - spare);
  bool unmapped = false;
  status = tarn__regions_map(&self->regions, request, first_of(&s), p.from,
                             p.to, &unmapped);
  settle_strips(&s, unmapped);
  if (status != TARN_OK) {
    tarn__extents_unclaim(zone, e, &p, *out_serial);
    return status;
  }
  *out = tarn__extents_keep(zone, e, &p, size);
  return TARN_OK;
}

static tarn_status grow_segments(arena *self, tarn__extents *zone, size_t size,
                                 tarn__request *request, tarn__extent **out,
                                 uint64_t *out_serial) {
  size_t whole = 0;
  size_t step = size < SEGMENT_STEP ? SEGMENT_STEP : zone->granule;
  if (!tarn_size_align_up(size, step, &whole)) return TARN_FULL;
  tarn_status status =
      tarn__segments_add(&self->segments, &self->base, request, zone, whole);
  if (status != TARN_OK) return status;
  if (!tarn__extents_reserve(zone, request->serial)) return TARN_E_NOMEM;
  *out = tarn__extents_take(zone, size, request->align, request->serial,
                            out_serial);
  // Another thread was quicker.
  return *out != NULL ? TARN_OK : TARN_FULL;
}

// --- blocks ----------------------------------------------------------------

// Holes of streams that are gone are anybody's.
static void adopt_orphans(tarn__extents *zone) {
  for (tarn__bins *b = zone->bins->next; b != NULL; b = b->next) {
    if (b->bytes != 0 && tarn__stream_is_gone(b->serial)) {
      tarn__extents_move(zone, b->serial, 0);
    }
  }
}

static tarn_status find(arena *self, tarn__extents *zone, size_t size,
                        tarn__request *request, tarn__extent **out,
                        uint64_t *out_serial) {
  if (!tarn__extents_reserve(zone, request->serial)) return TARN_E_NOMEM;
  *out = tarn__extents_take(zone, size, request->align, request->serial,
                            out_serial);
  if (*out != NULL) return TARN_OK;
  if (zone->bins->next != NULL) {
    adopt_orphans(zone);
    if (!tarn__extents_reserve(zone, request->serial)) return TARN_E_NOMEM;
    *out = tarn__extents_take_any(zone, size, request->align, out_serial);
    if (*out != NULL) return TARN_OK;
  }
  tarn_status status = TARN_FULL;
  if (self->range_size != 0) {
    status = grow_range(self, zone, size, request, out, out_serial);
  } else {
    status = grow_segments(self, zone, size, request, out, out_serial);
  }
  return status;
}

static tarn_status take(tarn__strategy *strategy, tarn__request *request,
                        tarn__piece **out_piece) {
  arena *self = self_of(strategy);
  size_t size = 0;
  if (!tarn_size_add(request->size, self->padding, &size) ||
      size > SIZE_MAX / 4) {
    return tarn__fail(TARN_E_INVALID, "arena_pool: %zu bytes overflow",
                      request->size);
  }
  tarn__extents *zone = zone_of(self, size);
  tarn__extent *e = NULL;
  uint64_t last = 0;
  tarn_status status = find(self, zone, size, request, &e, &last);
  if (status != TARN_OK) return status;
  assert(e != NULL);
  tarn__piece *piece =
      tarn__source_carve(strategy, e->offset, e->size - self->padding);
  if (piece == NULL) {
    (void)tarn__extents_give(zone, e, last);
    return TARN_E_NOMEM;
  }
  piece->home = e;
  piece->freed_on = last;
  *out_piece = piece;
  return TARN_OK;
}

// Without bins for the stream the hole has to be nobody's at once.
static tarn_status give(tarn__strategy *strategy, tarn__piece *piece) {
  arena *self = self_of(strategy);
  tarn__extent *e = piece->home;
  tarn__extents *zone = zone_of(self, e->size);
  uint64_t serial = piece->freed_on;
  tarn_status status = TARN_OK;
  if (serial != 0 && !tarn__extents_reserve(zone, serial)) {
    tarn__source_begin_ask(strategy, 0);
    status = tarn_stream_join(NULL, serial);
    tarn__source_end_ask(strategy, 0);
    serial = 0;
  }
  tarn__source_join(strategy, piece);
  (void)tarn__extents_give(zone, e, serial);
  return status;
}

// --- giving memory back ----------------------------------------------------

static void strip_all(arena *self, strips *s) {
  for (int i = 0; i < 2; i++) {
    tarn__extents *zone = &self->zones[i];
    for (const tarn__bins *b = zone->bins; b != NULL; b = b->next) {
      while (strip(s, zone, SIZE_MAX, b->serial))
        continue;
    }
  }
}

// A range of which no byte has memory any more.
static tarn__region *find_bare_region(arena *self, tarn__extents *zone,
                                      tarn__extent **out_extent) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, &zone->bare) {
    tarn__extent *e = tarn_list_entry(node, tarn__extent, node);
    for (tarn__region *r = self->regions.first; r != NULL; r = r->next) {
      if (r->base != e->offset || r->size != e->size) continue;
      *out_extent = e;
      return r;
    }
  }
  return NULL;
}

static tarn_status drop_bare_regions(arena *self) {
  tarn_status first = TARN_OK;
  for (int i = 0; i < 2; i++) {
    tarn__extent *e = NULL;
    tarn__region *region = NULL;
    while ((region = find_bare_region(self, &self->zones[i], &e)) != NULL) {
      tarn__extents_remove(&self->zones[i], e);
      tarn_status status = tarn__regions_remove(&self->regions, region);
      if (first == TARN_OK) first = status;
    }
  }
  return first;
}

static tarn_status trim_ranges(arena *self) {
  tarn_status first = TARN_OK;
  for (bool more = true; more && first == TARN_OK;) {
    strips s = {.count = 0};
    bool unmapped = false;
    strip_all(self, &s);
    first = tarn__regions_shrink(&self->regions, first_of(&s), &unmapped);
    settle_strips(&s, unmapped);
    more = s.count == STRIPS;
  }
  tarn_status dropped = drop_bare_regions(self);
  return first != TARN_OK ? first : dropped;
}

static tarn_status trim(tarn__strategy *strategy) {
  arena *self = self_of(strategy);
  tarn_status first =
      self->range_size != 0 ? trim_ranges(self) : TARN_OK;
  for (int i = 0; i < 2; i++) {
    tarn_status status =
        tarn__segments_trim(&self->segments, strategy, &self->zones[i]);
    if (first == TARN_OK) first = status;
  }
  return first;
}

static tarn_status let_go(tarn__strategy *strategy, tarn__piece *piece) {
  tarn_status given = give(strategy, piece);
  tarn_status status = trim(strategy);
  return status != TARN_OK ? status : given;
}

// --- the invariants --------------------------------------------------------

static size_t held_by(const arena *self) {
  size_t sum =
      (self->regions.mapped + self->regions.spare_count) * self->regions.page;
  for (const tarn__segment *s = self->segments.first; s != NULL; s = s->next)
    sum += s->base_size;
  return sum;
}

static tarn_status check(tarn__strategy *strategy, size_t *out_idle) {
  const arena *self = self_of(strategy);
  *out_idle = 0;  // what is free is no piece
  for (int i = 0; i < 2; i++) {
    tarn_status status = tarn__extents_check(&self->zones[i]);
    if (status != TARN_OK) return status;
  }
  if (held_by(self) == strategy->held) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT, "arena_pool: holds %zu bytes, says %zu",
                    held_by(self), strategy->held);
}

const tarn__strategy_type tarn__arena_pool = {
    .name = "arena_pool",
    .size = sizeof(arena),
    .init = init,
    .deinit = deinit,
    .take = take,
    .give = give,
    .let_go = let_go,
    .trim = trim,
    .check = check,
};
