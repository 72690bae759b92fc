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

#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"
#include "pool/region.h"
#include "pool/segments.h"
#include "pool/strips.h"

enum { GRANULE = 512 };

static const size_t DEFAULT_PAGE = (size_t)256 << 10;
static const size_t DEFAULT_SMALL = (size_t)64 << 10;
static const size_t SEGMENT_STEP = (size_t)2 << 20;

typedef struct arena {
  tarn__strategy base;
  tarn__extents zones[2];  // of small blocks, of large ones
  size_t small;            // the largest that is small
  size_t padding;
  size_t range_size;  // 0: the device has no ranges, or too little for them
  tarn__regions regions;
  tarn__segments segments;
} arena;

static arena *self_of(tarn__strategy *strategy) {
  return (arena *)(void *)strategy;  // the base is the first member
}

// By the size of the extent, which is that of the block, rounded.
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
  if (status != TARN_OK || granularity > total) return status;
  if (*page < granularity) *page = granularity;
  if (*page > total) {
    return tarn__fail(TARN_E_INVALID,
                      "arena_pool: page=%zu is more than the %zu bytes of %s",
                      *page, total, tarn_device_name(device));
  }
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
  self->regions.device = self->segments.device = device;
  self->padding = pool->padding;
  self->segments.largest = info.max_alloc;
  if (can_have_ranges(pool, &info)) status = adopt_ranges(self, device, page);
  self->regions.page = *page;
  return status;
}

static tarn_status init(tarn__strategy *strategy, tarn__options *options) {
  arena *self = self_of(strategy);
  size_t natural = strategy->pool->natural_align;
  size_t granule = natural > GRANULE ? natural : GRANULE;
  size_t page = 0;
  tarn_status status = read_options(self, options, &page);
  if (page < granule) page = granule;
  if (status == TARN_OK) status = adopt_device(self, &page);
  if (status != TARN_OK) return status;
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

// TARN_FULL: there are no addresses for a range that would hold |size|.
static tarn_status add_range(arena *self, tarn__extents *zone, size_t size) {
  size_t page = self->regions.page;
  size_t least = 0;
  tarn__region *region = NULL;
  if (!tarn_size_align_up(size, page, &least)) {
    return tarn__fail(TARN_FULL, "arena_pool: no addresses for %zu bytes",
                      size);
  }
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

// Pages that nobody uses go where they are needed before the device is asked
// for more.
static void strip_idle(arena *self, size_t need, tarn__strips *strips) {
  size_t there = self->regions.spare_count * self->regions.page;
  for (int i = 1; i >= 0 && there < need; i--)
    there += tarn__strips_take_idle(strips, &self->zones[i], need - there);
}

static tarn_status map_plan(arena *self, tarn__extents *zone, size_t size,
                            const tarn__extent_plan *p, tarn__request *request,
                            tarn__extent **out, uint64_t *out_serial) {
  tarn__strips strips = {.count = 0};
  bool lost = false;
  tarn__extent *e = tarn__extents_claim(zone, p, size, out_serial);
  strip_idle(self, (size_t)(p->to - p->from), &strips);
  tarn_status status =
      tarn__regions_map(&self->regions, request, tarn__strips_first(&strips),
                        p->from, p->to, &lost);
  tarn__strips_settle(&strips);
  if (status == TARN_OK) {
    *out = tarn__extents_keep(zone, e, p, size);
  } else {
    tarn__extents_unclaim(zone, e, p, *out_serial,
                          lost ? TARN__EXTENT_LOST : TARN__EXTENT_BARE);
  }
  return status;
}

// What small requests share: a step, or all that the device gives at once.
static size_t segment_for(const arena *self, const tarn__extents *zone) {
  size_t most = self->segments.largest;
  most = most > self->padding ? most - self->padding : 0;
  return (most < SEGMENT_STEP ? most : SEGMENT_STEP) & ~(zone->granule - 1);
}

// If there is no room for others besides, one for |size| alone may do.
static tarn_status add_segment(arena *self, tarn__extents *zone, size_t size,
                               tarn__request *request) {
  size_t shared = segment_for(self, zone);
  tarn_status status = TARN_FULL;
  if (size < shared) {
    status =
        tarn__segments_add(&self->segments, &self->base, request, zone, shared);
  }
  if (status != TARN_FULL) return status;
  return tarn__segments_add(&self->segments, &self->base, request, zone, size);
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

// Room in |zone| for what is of the stream with |serial|. If that is a new one,
// those that are gone make room first.
static bool prepare(tarn__extents *zone, uint64_t serial) {
  if (!tarn__extents_knows(zone, serial)) adopt_orphans(zone);
  return tarn__extents_reserve(zone, serial);
}

// NULL: there is no hole for it.
static tarn__extent *find_open(tarn__extents *zone, size_t size,
                               const tarn__request *request,
                               uint64_t *out_serial) {
  tarn__extent *e = tarn__extents_take(zone, size, request->align,
                                       request->serial, out_serial);
  if (e != NULL || zone->bins->next == NULL) return e;
  adopt_orphans(zone);
  return tarn__extents_take_any(zone, size, request->align, out_serial);
}

// Whatever lets go of the lock begins anew, or ends here.
static tarn_status find(arena *self, tarn__extents *zone, size_t size,
                        tarn__request *request, tarn__extent **out,
                        uint64_t *out_serial) {
  for (;;) {
    if (!prepare(zone, request->serial)) return TARN_E_NOMEM;
    *out = find_open(zone, size, request, out_serial);
    if (*out != NULL) return TARN_OK;
    tarn_status status = TARN_OK;
    if (self->range_size != 0) {
      tarn__extent_plan p =
          tarn__extents_plan(zone, size, request->align, request->serial);
      if (p.bare != NULL) {
        return map_plan(self, zone, size, &p, request, out, out_serial);
      }
      status = add_range(self, zone, size + request->align);
    } else {
      status = add_segment(self, zone, size, request);
    }
    if (status != TARN_OK) return status;
  }
}

static tarn_status round_size(const arena *self, size_t size, size_t *out) {
  if (!tarn_size_add(size, self->padding, out) ||
      !tarn_size_align_up(*out, self->zones[0].granule, out)) {
    return tarn__fail(TARN_E_INVALID, "arena_pool: %zu bytes overflow", size);
  }
  if (tarn__extents_reach(0, *out)) return TARN_OK;
  return tarn__fail(TARN_FULL, "arena_pool: %zu bytes are more than there are",
                    size);
}

static tarn_status take(tarn__strategy *strategy, tarn__request *request,
                        tarn__piece **out_piece) {
  arena *self = self_of(strategy);
  size_t size = 0;
  tarn_status status = round_size(self, request->size, &size);
  if (status != TARN_OK) return status;
  tarn__extents *zone = zone_of(self, size);
  tarn__extent *e = NULL;
  uint64_t last = 0;
  status = find(self, zone, size, request, &e, &last);
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

// Makes the block a hole. Without bins for the stream it has to be nobody's at
// once.
static tarn_status open_block(tarn__strategy *strategy, tarn__piece *piece,
                              tarn__extents *zone, tarn__extent **out_hole) {
  tarn__extent *e = piece->home;
  uint64_t serial = piece->freed_on;
  tarn_status status = TARN_OK;
  if (serial != 0 && !prepare(zone, serial)) {
    tarn__source_begin_ask(strategy, 0, 0);
    status = tarn_stream_join(NULL, serial);
    tarn__source_end_ask(strategy, 0);
    serial = 0;
  }
  tarn__source_join(strategy, piece);
  *out_hole = tarn__extents_give(zone, e, serial);
  return status;
}

static tarn__extents *zone_of_piece(arena *self, const tarn__piece *piece) {
  const tarn__extent *e = piece->home;
  return zone_of(self, e->size);
}

static tarn_status give(tarn__strategy *strategy, tarn__piece *piece) {
  tarn__extent *hole = NULL;
  return open_block(strategy, piece, zone_of_piece(self_of(strategy), piece),
                    &hole);
}

// --- giving memory back ----------------------------------------------------

// Whether there is no memory in all of |region|, which begins with |e|, that
// is known of.
static bool is_empty(const tarn__region *region, const tarn__extent *e) {
  uint64_t end = region->base + region->size;
  while (e->kind == TARN__EXTENT_BARE || e->kind == TARN__EXTENT_LOST) {
    if (e->offset + e->size == end) return true;
    e = e->after;
  }
  return false;
}

static tarn__region *find_empty_region(const arena *self,
                                       const tarn__extents *zone,
                                       tarn__extent **out_first) {
  for (tarn__extent *e = zone->first; e != NULL; e = e->after) {
    tarn__region *r = e->wall ? self->regions.first : NULL;
    while (r != NULL && r->base != e->offset)
      r = r->next;
    if (r == NULL || !is_empty(r, e)) continue;
    *out_first = e;
    return r;
  }
  return NULL;
}

static tarn_status drop_region(arena *self, tarn__extents *zone,
                               tarn__region *region, tarn__extent *e) {
  for (size_t left = region->size; left > 0;) {
    tarn__extent *next = e->after;
    left -= e->size;
    tarn__extents_remove(zone, e);
    e = next;
  }
  return tarn__regions_remove(&self->regions, region);
}

static tarn_status drop_empty_regions(arena *self) {
  tarn_status first = TARN_OK;
  for (int i = 0; i < 2; i++) {
    tarn__extents *zone = &self->zones[i];
    tarn__extent *e = NULL;
    tarn__region *region = NULL;
    while ((region = find_empty_region(self, zone, &e)) != NULL) {
      tarn_status status = drop_region(self, zone, region, e);
      if (first == TARN_OK) first = status;
    }
  }
  return first;
}

// All that was idle when it began, in batches; each page is tried once.
static tarn_status trim_pages(arena *self) {
  size_t batch = TARN__REGION_BATCH * self->regions.page;
  uint64_t cursors[2] = {0, 0};
  tarn_status first = TARN_OK;
  size_t taken = 0;
  do {
    tarn__strips strips = {.count = 0};
    taken = 0;
    for (int i = 0; i < 2; i++) {
      taken += tarn__strips_take_any(&strips, &self->zones[i], &cursors[i],
                                     batch - taken);
    }
    tarn_status status =
        tarn__regions_shrink(&self->regions, tarn__strips_first(&strips));
    tarn__strips_settle(&strips);
    if (first == TARN_OK) first = status;
  } while (taken > 0 || self->regions.spare_count > 0);
  return first;
}

static tarn_status trim_ranges(arena *self) {
  tarn_status status = trim_pages(self);
  tarn_status dropped = drop_empty_regions(self);
  return status != TARN_OK ? status : dropped;
}

static tarn_status trim(tarn__strategy *strategy) {
  arena *self = self_of(strategy);
  tarn_status first = self->range_size != 0 ? trim_ranges(self) : TARN_OK;
  for (int i = 0; i < 2; i++) {
    tarn_status status =
        tarn__segments_trim(&self->segments, strategy, &self->zones[i]);
    if (first == TARN_OK) first = status;
  }
  return first;
}

// Whether there is memory that can be given back now, since |hole| is one.
static bool frees_memory(const arena *self, const tarn__extent *hole) {
  tarn__extent_run run = tarn__extents_run(hole);
  size_t page = self->regions.page;
  if (self->range_size == 0) return tarn__segments_has(&self->segments, run);
  return (run.from + page - 1) / page < run.to / page;
}

static tarn_status let_go(tarn__strategy *strategy, tarn__piece *piece) {
  arena *self = self_of(strategy);
  tarn__extent *hole = NULL;
  tarn_status given =
      open_block(strategy, piece, zone_of_piece(self, piece), &hole);
  tarn_status status = frees_memory(self, hole) ? trim(strategy) : TARN_OK;
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

static tarn_status broken(const char *what, size_t is, size_t should_be) {
  return tarn__fail(TARN_E_CORRUPT, "arena_pool: %s is %zu, should be %zu",
                    what, is, should_be);
}

static tarn_status check(tarn__strategy *strategy, size_t *out_idle) {
  const arena *self = self_of(strategy);
  size_t taken = 0;
  *out_idle = 0;  // what is free is no piece
  tarn_status status = tarn__regions_check(&self->regions);
  for (int i = 0; i < 2 && status == TARN_OK; i++) {
    status = tarn__extents_check(&self->zones[i]);
    taken += tarn__extents_count_taken(&self->zones[i]);
  }
  if (status != TARN_OK) return status;
  if (taken != strategy->live) {
    return broken("extents taken", taken, strategy->live);
  }
  size_t held = held_by(self);
  return held == strategy->held ? TARN_OK
                                : broken("held", strategy->held, held);
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
