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
#include "pool/arena.h"
#include "pool/front.h"

enum {
  GRANULE = 512,
  DEFAULT_STEPS = 4096,  // laying out more takes too long
};

static const size_t DEFAULT_PAGE = (size_t)256 << 10;
static const size_t DEFAULT_SMALL = (size_t)64 << 10;

static tarn__pool_arena *self_of(tarn__pool_strategy *strategy) {
  return (tarn__pool_arena *)(void *)strategy;  // the base is the first member
}

// By the size of the extent, which is that of the block, rounded.
static tarn__pool_extents *zone_of(tarn__pool_arena *self, size_t size) {
  return &self->zones[size > self->small ? 1 : 0];
}

// --- beginning and end -----------------------------------------------------

static tarn_status read_options(tarn__pool_arena *self,
                                tarn__pool_strategy_options *options,
                                size_t *out_page) {
  tarn_status status =
      tarn__options_size(options, "page", DEFAULT_PAGE, out_page);
  if (status == TARN_OK) {
    status = tarn__options_size(options, "small", DEFAULT_SMALL, &self->small);
  }
  if (status == TARN_OK) {
    status =
        tarn__options_size(options, "slack", TARN__ARENA_SLACK, &self->slack);
  }
  if (status == TARN_OK) {
    status =
        tarn__options_size(options, "steps", DEFAULT_STEPS, &self->base.steps);
  }
  if (status != TARN_OK) return status;
  if (!tarn_is_power_of_two(*out_page) || *out_page < GRANULE) {
    return tarn__fail(
        TARN_E_INVALID,
        "arena_pool: page=%zu is not a power of two of at least %d", *out_page,
        GRANULE);
  }
  return TARN_OK;
}

// Twice what the device has, since holes cost addresses only. One that has less
// than the default page is cut up by its own granularity.
static tarn_status adopt_ranges(tarn__pool_arena *self,
                                const tarn__pool_supply *supply, size_t *page) {
  size_t granularity = 0;
  size_t total = 0;
  size_t available = 0;
  tarn_status status = tarn_range_granularity(supply->device, &granularity);
  if (status == TARN_OK) {
    status = supply->calls->memory(supply, &total, &available);
  }
  if (status != TARN_OK || granularity > total) return status;
  if (*page < granularity) *page = granularity;
  if (*page > total && *page <= DEFAULT_PAGE) *page = granularity;
  if (*page > total) {
    return tarn__fail(TARN_E_INVALID,
                      "arena_pool: page=%zu is more than the %zu bytes of %s",
                      *page, total, tarn_device_name(supply->device));
  }
  size_t most = SIZE_MAX / 4;
  self->range_size = (total < most ? total * 2 : most) & ~(*page - 1);
  return TARN_OK;
}

static tarn_status adopt_device(tarn__pool_arena *self, size_t *page) {
  tarn_pool *pool = self->base.pool;
  const tarn__pool_supply *supply = &pool->supply;
  tarn_status status = TARN_OK;
  self->regions.strategy = &self->base;
  self->regions.supply = supply;
  self->padding = pool->padding;
  // What the device names is one size for all: blocks of all sizes share it.
  if (pool->sizes.first != 0 || pool->sizes.later != 0) self->small = 0;
  if ((pool->extensions & TARN_EXTENSION_RANGES) != 0) {
    status = adopt_ranges(self, supply, page);
  }
  self->regions.page = *page;
  return status;
}

static tarn_status init(tarn__pool_strategy *strategy,
                        tarn__pool_strategy_options *options) {
  tarn__pool_arena *self = self_of(strategy);
  size_t natural = strategy->pool->natural_align;
  size_t granule = natural > GRANULE ? natural : GRANULE;
  size_t page = 0;
  for (int i = 0; i < TARN__ARENA_ZONES; i++)
    tarn_list_init(&self->sleepers[i]);
  tarn_status status = read_options(self, options, &page);
  if (page < granule) page = granule;
  if (status == TARN_OK) status = adopt_device(self, &page);
  if (status != TARN_OK) return status;
  for (int i = 0; i < TARN__ARENA_ZONES && status == TARN_OK; i++)
    status = tarn__extents_init(&self->zones[i], granule, page);
  return status;
}

static void deinit(tarn__pool_strategy *strategy) {
  tarn__pool_arena *self = self_of(strategy);
  tarn__arena_forget_sleepers(self);
  for (int i = 0; i < TARN__ARENA_ZONES; i++)
    tarn__extents_deinit(&self->zones[i]);
  tarn__regions_deinit(&self->regions);
  tarn__segments_deinit(&self->segments);
}

// --- blocks ----------------------------------------------------------------

static tarn_status round_size(const tarn__pool_arena *self, size_t size,
                              size_t *out) {
  size_t granule = self->zones[0].granule;
  if (!tarn_size_align_up(size, granule, out)) {
    return tarn__fail(TARN_E_INVALID, "arena_pool: %zu bytes overflow", size);
  }
  // The padding is the device's, so that it is too much is not the caller's
  // fault.
  if (tarn_size_add(size, self->padding, out) &&
      tarn_size_align_up(*out, granule, out) && tarn__extents_reach(0, *out)) {
    return TARN_OK;
  }
  return tarn__fail(TARN_FULL, "arena_pool: %zu bytes exceed the address space",
                    size);
}

static tarn_status take_direct(tarn__pool_arena *self,
                               tarn__pool_request *request,
                               tarn__pool_piece **out_piece) {
  tarn__pool_piece *piece = NULL;
  tarn_status status =
      tarn__source_grow(&self->base, request, request->size, &piece);
  if (status != TARN_OK) return status;
  for (int i = 0; i < TARN__ARENA_ZONES && status == TARN_OK; i++)
    status = tarn__segments_check_piece(&self->zones[i], piece);
  if (status != TARN_OK) {
    (void)tarn__source_shrink(&self->base, piece);
    return status;
  }
  self->direct++;
  *out_piece = piece;
  return TARN_OK;
}

static tarn_status give_direct(tarn__pool_arena *self,
                               tarn__pool_piece *piece) {
  self->direct--;
  return tarn__source_shrink(&self->base, piece);
}

static bool is_direct(const tarn__pool_piece *piece) {
  return piece->base_size != 0;
}

static tarn_status take(tarn__pool_strategy *strategy,
                        tarn__pool_request *request,
                        tarn__pool_piece **out_piece) {
  tarn__pool_arena *self = self_of(strategy);
  size_t size = 0;
  tarn_status status = round_size(self, request->size, &size);
  if (status != TARN_OK) return status;
  if (tarn__front_is_direct(strategy->pool, request->size)) {
    return take_direct(self, request, out_piece);
  }
  tarn__pool_arena_need need = {zone_of(self, size), size, request,
                                .sparing = true};
  tarn__pool_extent *e = NULL;
  uint64_t last = 0;
  status = tarn__arena_find(self, &need, &e, &last);
  if (status == TARN_FULL &&
      tarn__arena_find_elsewhere(self, &need, &e, &last)) {
    status = TARN_OK;
  }
  if (status != TARN_OK) return status;
  tarn__pool_extents *zone = need.zone;
  assert(e != NULL);
  tarn__pool_piece *piece =
      tarn__source_carve(strategy, e->offset, e->size - self->padding);
  if (piece == NULL) {
    (void)tarn__extents_give(zone, e, last);
    return TARN_E_NOMEM;
  }
  piece->home = e;
  piece->zone = (uint8_t)(zone - self->zones);
  piece->freed_on = last;
  *out_piece = piece;
  return TARN_OK;
}

// Makes the block a hole. Without bins for the stream the host waits for it at
// once. |*out_hole| is NULL if it was asleep.
static tarn_status open_block(tarn__pool_strategy *strategy,
                              tarn__pool_piece *piece, tarn__pool_extents *zone,
                              tarn__pool_extent **out_hole) {
  tarn__pool_extent *e = piece->home;
  uint64_t serial = piece->freed_on;
  tarn_status status = TARN_OK;
  if (serial != 0 && !tarn__arena_prepare(zone, serial)) {
    status = tarn__source_wait(strategy, serial);
    serial = 0;
  }
  tarn__pool_sleeper *sleeper = piece->sleeper;
  tarn__source_join(strategy, piece);
  if (sleeper == NULL) {
    *out_hole = tarn__extents_give(zone, e, serial);
  } else {
    tarn__arena_end_sleeper(self_of(strategy), zone, e, sleeper, serial);
  }
  return status;
}

// Where it was taken from: its size may be another since.
static tarn__pool_extents *zone_of_piece(tarn__pool_arena *self,
                                         const tarn__pool_piece *piece) {
  return &self->zones[piece->zone];
}

static bool expect(tarn__pool_strategy *strategy, tarn__pool_piece *piece,
                   uint64_t serial) {
  return tarn__arena_prepare(zone_of_piece(self_of(strategy), piece), serial);
}

static tarn_status give(tarn__pool_strategy *strategy,
                        tarn__pool_piece *piece) {
  if (is_direct(piece)) return give_direct(self_of(strategy), piece);
  tarn__pool_extent *hole = NULL;
  return open_block(strategy, piece, zone_of_piece(self_of(strategy), piece),
                    &hole);
}

// --- resizing --------------------------------------------------------------

static tarn_status no_room(tarn_addr address, size_t size) {
  return tarn__fail(TARN_FULL,
                    "arena_pool: no room behind the block at 0x%llx to make it "
                    "%zu bytes long",
                    (unsigned long long)address, size);
}

// Whatever releases the lock begins anew, or ends here. What is mapped behind
// |e| is a block of its own until it becomes part of |e|.
static tarn_status fit(tarn__pool_arena *self, tarn__pool_extents *zone,
                       tarn__pool_extent *e, size_t size,
                       tarn__pool_request *request) {
  tarn__pool_request more = *request;
  tarn__pool_arena_need need = {
      .zone = zone, .request = &more, .sparing = true};
  for (;;) {
    if (!tarn__arena_prepare(zone, more.serial)) return TARN_E_NOMEM;
    if (tarn__extents_resize(zone, e, size, more.serial)) return TARN_OK;
    tarn__pool_extent_plan p = {.bare = NULL};
    if (self->range_size != 0) {
      p = tarn__extents_plan_behind(zone, e, size, more.serial);
    }
    if (p.bare == NULL) return no_room(e->offset, size);
    need.size = more.size = size - e->size;
    tarn__pool_extent *tail = NULL;
    uint64_t last = 0;
    tarn_status status = tarn__arena_map(self, &need, &p, &tail, &last);
    if (status == TARN_OK) tarn__extents_join(zone, e);
    if (status != TARN_FULL || !need.sparing) {
      request->lacks = status == TARN_FULL;
      return status;
    }
    need.sparing = false;
  }
}

static tarn_status resize(tarn__pool_strategy *strategy,
                          tarn__pool_request *request,
                          tarn__pool_piece *piece) {
  tarn__pool_arena *self = self_of(strategy);
  bool alone = is_direct(piece);
  if (alone && request->size <= piece->size) return TARN_OK;
  if (alone || tarn__front_is_direct(strategy->pool, request->size)) {
    return no_room(piece->address, request->size);
  }
  tarn__pool_extents *zone = zone_of_piece(self, piece);
  tarn__pool_extent *e = piece->home;
  size_t size = 0;
  tarn_status status = round_size(self, request->size, &size);
  if (status != TARN_OK) return status;
  if (size > e->size) tarn__arena_adopt_orphans(zone);
  status = fit(self, zone, e, size, request);
  if (status == TARN_OK) piece->size = e->size - self->padding;
  return status;
}

// --- giving memory back ----------------------------------------------------

// Whether there is memory that can be given back now, since |hole| is one, or
// addresses, since what was asleep is none.
static bool frees_memory(const tarn__pool_arena *self,
                         const tarn__pool_extent *hole) {
  if (hole == NULL) return true;
  if (self->range_size == 0) return tarn__segments_is_free(hole);
  tarn__pool_extent_run run = tarn__extents_run(hole);
  size_t page = self->regions.page;
  return (run.from + page - 1) / page < run.to / page;
}

static tarn_status let_go(tarn__pool_strategy *strategy,
                          tarn__pool_piece *piece) {
  tarn__pool_arena *self = self_of(strategy);
  if (is_direct(piece)) return give_direct(self, piece);
  tarn__pool_extent *hole = NULL;
  tarn_status given =
      open_block(strategy, piece, zone_of_piece(self, piece), &hole);
  tarn_status status =
      frees_memory(self, hole) ? tarn__arena_trim(strategy, 0, 0) : TARN_OK;
  return status != TARN_OK ? status : given;
}

// --- idle memory -----------------------------------------------------------

static void survey(tarn__pool_strategy *strategy, tarn__pool_survey *out) {
  const tarn__pool_arena *self = self_of(strategy);
  out->idle = self->regions.spare_count * self->regions.page;
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    for (const tarn__pool_bins *b = self->zones[i].bins; b != NULL;
         b = b->next) {
      size_t largest = tarn__bins_largest(b);
      out->idle += b->bytes;
      if (largest > out->largest) out->largest = largest;
      if (b->bytes != 0) tarn__waits_add(&out->streams, b->serial);
    }
  }
}

static void visit_memory(const tarn__pool_strategy *strategy,
                         tarn__pool_memory_fn *visit, void *context) {
  const tarn__pool_arena *self =
      (const tarn__pool_arena *)(const void *)strategy;
  tarn__regions_visit(&self->regions, visit, context);
  for (const tarn__pool_segment *s = self->segments.first; s != NULL;
       s = s->next)
    visit(context, s->chunk.base, s->chunk.base_size);
}

static void settle(tarn__pool_strategy *strategy, uint64_t serial) {
  tarn__pool_arena *self = self_of(strategy);
  for (int i = 0; i < TARN__ARENA_ZONES; i++)
    tarn__extents_move(&self->zones[i], serial, 0);
}

// --- the invariants --------------------------------------------------------

static size_t held_by(const tarn__pool_arena *self) {
  size_t sum =
      (self->regions.mapped + self->regions.spare_count) * self->regions.page;
  for (const tarn__pool_segment *s = self->segments.first; s != NULL;
       s = s->next)
    sum += s->chunk.base_size;
  return sum;
}

static tarn_status broken(const char *what, size_t is, size_t should_be) {
  return tarn__fail(TARN_E_CORRUPT, "arena_pool: %s is %zu, should be %zu",
                    what, is, should_be);
}

static size_t live_on_layout(const tarn__pool_arena *self) {
  size_t live = 0;
  for (size_t i = 0; i < self->layout->count; i++)
    live += self->layout->pieces[i]->live ? 1 : 0;
  return live;
}

static tarn_status check(tarn__pool_strategy *strategy, size_t *out_idle) {
  const tarn__pool_arena *self = self_of(strategy);
  size_t taken = 0;
  *out_idle = 0;  // idle memory is extents here
  tarn_status status = tarn__regions_check(&self->regions);
  if (status == TARN_OK) status = tarn__arena_check_sleepers(self);
  for (int i = 0; i < TARN__ARENA_ZONES && status == TARN_OK; i++) {
    status = tarn__extents_check(&self->zones[i]);
    taken += tarn__extents_count_taken(&self->zones[i]);
  }
  if (status != TARN_OK) return status;
  size_t should_be = strategy->live - self->direct;
  if (self->layout != NULL) should_be = should_be - live_on_layout(self) + 1;
  if (taken != should_be) return broken("extents taken", taken, should_be);
  size_t held = held_by(self);
  return held == strategy->held ? TARN_OK
                                : broken("held", strategy->held, held);
}

const tarn__pool_strategy_type tarn__arena_pool = {
    .table = {.name = "arena_pool", .size = sizeof(tarn__pool_arena)},
    .init = init,
    .deinit = deinit,
    .take = take,
    .give = give,
    .let_go = let_go,
    .expect = expect,
    .resize = resize,
    .sleep = tarn__arena_sleep,
    .wake = tarn__arena_wake,
    .end_wake = tarn__arena_end_wake,
    .trim = tarn__arena_trim,
    .reserve = tarn__arena_reserve,
    .install_layout = tarn__arena_set_up,
    .drop_layout = tarn__arena_drop_layout,
    .granule = tarn__arena_granule,
    .survey = survey,
    .visit_memory = visit_memory,
    .settle = settle,
    .check = check,
};
