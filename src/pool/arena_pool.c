// arena_pool: blocks cut from memory that is kept contiguous as far as
// possible, and joined again when they are freed.
//
//   small   [ 4K | 512 | hole | 64K | bare .................... ]  extents of
//   large   [ 2M | hole       | 9M  | hole | 1M | bare ........ ]  two zones
//              pages of memory ── move to where they are needed
//
// Where the device has ranges (range.h), a zone is a range of reserved
// addresses, in which memory is mapped and unmapped by pages. A request that
// fits in no hole gets pages mapped where it needs the fewest; pages are moved
// from other holes before new ones are allocated. So holes that are too small
// cost addresses, not memory. Without ranges, memory is allocated in segments,
// which are cut and joined in the same way.
//
// A hole belongs to the stream whose work may still use it. It serves that
// stream at once, and another stream, which then waits, before memory is added.
//
// Cost: a hit is a look into the bins and a cut; a free joins two neighbours at
//       most. A miss is a few calls of the device.
#include <assert.h>

#include "base/bytes.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/arena.h"
#include "pool/front.h"
#include "pool/lanes.h"

enum {
  GRANULE = 512,
  DEFAULT_STEPS = 65536,  // the recorder has room for one step of so many
};

static const size_t DEFAULT_PAGE = (size_t)256 << 10;
static const size_t DEFAULT_SMALL = (size_t)64 << 10;
static const size_t MOST_NOW = SIZE_MAX / 8;  // no sum overflows up to there

// --- beginning and end -----------------------------------------------------

// What init alone needs to know.
typedef struct wishes {
  size_t page;
  size_t range;  // bytes of addresses at a time; DEFAULT_RANGE: as many as suit
                 // the device
} wishes;

#define DEFAULT_RANGE SIZE_MAX

static tarn_status read_slack(tarn__pool_arena *self,
                              tarn__pool_strategy_options *options) {
  tarn__pool_slack *slack = &self->slack;
  const char *text = tarn__options_text(options, "slack");
  if (text == NULL) return TARN_OK;
  if (tarn__percent_parse(text, &slack->value)) {
    slack->kind = TARN__SLACK_PERCENT;
    return TARN_OK;
  }
  slack->kind = TARN__SLACK_BYTES;
  if (tarn__bytes_parse(text, &slack->value)) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "arena_pool: slack=%s is not a number of bytes, nor one of "
                    "percent up to 1000%%",
                    text);
}

static tarn_status read_options(tarn__pool_arena *self,
                                tarn__pool_strategy_options *options,
                                wishes *out) {
  size_t price = 0;
  TARN__TRY(tarn__options_size(options, "page", DEFAULT_PAGE, &out->page));
  TARN__TRY(tarn__options_size(options, "small", DEFAULT_SMALL, &self->small));
  TARN__TRY(read_slack(self, options));
  TARN__TRY(
      tarn__options_size(options, "steps", DEFAULT_STEPS, &self->base.steps));
  TARN__TRY(tarn__options_size(options, "lanes", TARN__LANES_MOST,
                               &self->base.lanes));
  TARN__TRY(tarn__options_size(options, "range", DEFAULT_RANGE, &out->range));
  TARN__TRY(tarn__options_size(options, "move", TARN__MOVES_UNKNOWN, &price));
  tarn__moves_init(&self->moves, price, &self->base.pool->supply);
  if (!tarn_is_power_of_two(out->page) || out->page < GRANULE) {
    return tarn__fail(
        TARN_E_INVALID,
        "arena_pool: page=%zu is not a power of two of at least %d", out->page,
        GRANULE);
  }
  return TARN_OK;
}

// Twice the memory of the device, since holes cost addresses only. A device
// with less memory than the default page is cut by its own granularity.
static tarn_status adopt_ranges(tarn__pool_arena *self,
                                const tarn__pool_supply *supply, wishes *w) {
  size_t granularity = 0;
  size_t total = 0;
  size_t available = 0;
  TARN__TRY(tarn_range_granularity(supply->device, &granularity));
  TARN__TRY(tarn__supply_memory(supply, &total, &available));
  if (granularity > total) return TARN_OK;
  if (w->page < granularity) w->page = granularity;
  if (w->page > total && w->page <= DEFAULT_PAGE) w->page = granularity;
  if (w->page > total) {
    return tarn__fail(TARN_E_INVALID,
                      "arena_pool: page=%zu is more than the %zu bytes of %s",
                      w->page, total, tarn_device_name(supply->device));
  }
  size_t most = SIZE_MAX / 4;
  size_t range = total < most ? total * 2 : most;
  if (w->range != DEFAULT_RANGE) range = tarn__lesser(w->range, most);
  if (range != 0 && range < w->page) range = w->page;
  self->range_size = range & ~(w->page - 1);
  return TARN_OK;
}

static tarn_status init(tarn__pool_strategy *strategy,
                        tarn__pool_strategy_options *options) {
  tarn__pool_arena *self = tarn__arena_of(strategy);
  const tarn_pool *pool = strategy->pool;
  size_t granule =
      pool->natural_align > GRANULE ? pool->natural_align : GRANULE;
  wishes w = {.page = 0};
  tarn_list_init(&self->sleepers);
  TARN__TRY(read_options(self, options, &w));
  if (w.page < granule) w.page = granule;
  self->regions.strategy = strategy;
  self->regions.supply = &pool->supply;
  self->padding = pool->padding;
  // The device names one size of segments for all blocks: none counts as small.
  if (pool->sizes.first != 0 || pool->sizes.later != 0) self->small = 0;
  if ((pool->extensions & TARN_EXTENSION_RANGES) != 0) {
    TARN__TRY(adopt_ranges(self, &pool->supply, &w));
  }
  self->regions.page = w.page;
  for (int i = 0; i < TARN__ARENA_ZONES; i++)
    TARN__TRY(tarn__extents_init(&self->zones[i], granule, w.page));
  return TARN_OK;
}

static void deinit(tarn__pool_strategy *strategy) {
  tarn__pool_arena *self = tarn__arena_of(strategy);
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
  tarn_status status = TARN_OK;
  TARN__TRY(tarn__source_grow(&self->base, request, request->size, &piece));
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
  tarn__pool_arena *self = tarn__arena_of(strategy);
  size_t size = 0;
  TARN__TRY(round_size(self, request->size, &size));
  if (tarn__front_is_direct(strategy->pool, request->size)) {
    return take_direct(self, request, out_piece);
  }
  tarn__pool_arena_need need = {.zone = &self->zones[size > self->small],
                                .size = size,
                                .request = request,
                                .sparing = true};
  tarn__pool_extent *e = NULL;
  uint64_t last = 0;
  tarn_status status = tarn__arena_find(self, &need, &e, &last);
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

static tarn__pool_piece *take_now(tarn__pool_strategy *strategy, size_t size) {
  tarn__pool_arena *self = tarn__arena_of(strategy);
  tarn_pool *pool = strategy->pool;
  const size_t granule = self->zones[0].granule;
  if (size > pool->sizes.largest || size > MOST_NOW) return NULL;
  size_t whole = tarn__align_up(size + self->padding, granule);
  tarn__pool_extents *zone = &self->zones[whole > self->small];
  if (!tarn__pieces_are_ready(&pool->pieces)) return NULL;
  tarn__pool_extent *e = tarn__extents_take_now(zone, whole);
  if (e == NULL) return NULL;
  tarn__pool_piece *piece = tarn__pieces_take_ready(&pool->pieces);
  piece->owner = strategy;
  piece->base = e->offset;
  tarn__piece_set_address(piece, piece->base);
  piece->size = whole - self->padding;
  piece->home = e;
  piece->zone = (uint8_t)(zone - self->zones);
  tarn__pieces_enter(&pool->pieces, piece);
  return piece;
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
    tarn__arena_end_sleeper(tarn__arena_of(strategy), zone, e, sleeper, serial);
  }
  return status;
}

// Where it was taken from: its size may be another since.
static tarn__pool_extents *zone_of_piece(tarn__pool_arena *self,
                                         const tarn__pool_piece *piece) {
  return &self->zones[piece->zone];
}

static bool give_now(tarn__pool_strategy *strategy, tarn__pool_piece *piece) {
  if (is_direct(piece)) return false;
  tarn__pool_extents *zone = zone_of_piece(tarn__arena_of(strategy), piece);
  tarn__pool_extent *e = piece->home;
  __builtin_prefetch(e);
  tarn__freed_note(&strategy->pool->freed, piece);
  tarn__pieces_end(&strategy->pool->pieces, piece);
  if (!tarn__extents_give_now(zone, e)) (void)tarn__extents_give(zone, e, 0);
  return true;
}

static bool expect(tarn__pool_strategy *strategy, tarn__pool_piece *piece,
                   uint64_t serial) {
  return tarn__arena_prepare(zone_of_piece(tarn__arena_of(strategy), piece),
                             serial);
}

static tarn_status give(tarn__pool_strategy *strategy,
                        tarn__pool_piece *piece) {
  if (is_direct(piece)) return give_direct(tarn__arena_of(strategy), piece);
  tarn__pool_extent *hole = NULL;
  return open_block(strategy, piece,
                    zone_of_piece(tarn__arena_of(strategy), piece), &hole);
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
    if (status == TARN_OK) tarn__row_join(zone, e);
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
  tarn__pool_arena *self = tarn__arena_of(strategy);
  bool alone = is_direct(piece);
  if (alone && request->size <= piece->size) return TARN_OK;
  if (alone || tarn__front_is_direct(strategy->pool, request->size)) {
    return no_room(piece->address, request->size);
  }
  tarn__pool_extents *zone = zone_of_piece(self, piece);
  tarn__pool_extent *e = piece->home;
  size_t size = 0;
  TARN__TRY(round_size(self, request->size, &size));
  if (size > e->size) tarn__arena_adopt_orphans(zone);
  TARN__TRY(fit(self, zone, e, size, request));
  piece->size = e->size - self->padding;
  return TARN_OK;
}

// --- giving memory back ----------------------------------------------------

// Whether memory can be given back now, because |hole| has become a hole, or
// addresses, because sleeping memory has ended.
static bool frees_memory(const tarn__pool_arena *self,
                         const tarn__pool_extent *hole) {
  if (hole == NULL) return true;
  if (self->range_size == 0) return tarn__segments_is_free(hole);
  tarn__pool_extent_run run = tarn__extents_run(hole);
  size_t page = self->regions.page;
  return tarn__align_up(run.first->offset, page) <
         tarn__align_down(tarn__extent_end(run.last), page);
}

static tarn_status let_go(tarn__pool_strategy *strategy,
                          tarn__pool_piece *piece) {
  tarn__pool_arena *self = tarn__arena_of(strategy);
  if (is_direct(piece)) return give_direct(self, piece);
  tarn__pool_extent *hole = NULL;
  tarn_status given =
      open_block(strategy, piece, zone_of_piece(self, piece), &hole);
  TARN__TRY(frees_memory(self, hole) ? tarn__arena_trim(strategy, 0, 0)
                                     : TARN_OK);
  return given;
}

// --- idle memory -----------------------------------------------------------

static size_t granule(const tarn__pool_strategy *strategy) {
  return ((const tarn__pool_arena *)(const void *)strategy)->zones[0].granule;
}

static void survey(tarn__pool_strategy *strategy, tarn__pool_survey *out) {
  const tarn__pool_arena *self = tarn__arena_of(strategy);
  out->idle = self->regions.spare_count * self->regions.page;
  for (int i = 0; i < TARN__ARENA_ZONES; i++)
    tarn__extents_survey(&self->zones[i], out);
}

static void visit_memory(const tarn__pool_strategy *strategy,
                         tarn__pool_memory_fn *visit, void *context) {
  const tarn__pool_arena *self =
      (const tarn__pool_arena *)(const void *)strategy;
  tarn__regions_visit(&self->regions, visit, context);
  tarn__segments_visit(&self->segments, visit, context);
}

static void settle(tarn__pool_strategy *strategy, uint64_t serial) {
  tarn__pool_arena *self = tarn__arena_of(strategy);
  for (int i = 0; i < TARN__ARENA_ZONES; i++)
    tarn__extents_move(&self->zones[i], serial, 0);
}

// --- the invariants --------------------------------------------------------

static tarn_status broken(const char *what, size_t is, size_t should_be) {
  return tarn__fail(TARN_E_CORRUPT, "arena_pool: %s is %zu, should be %zu",
                    what, is, should_be);
}

static tarn_status check(tarn__pool_strategy *strategy, size_t *out_idle) {
  const tarn__pool_arena *self = tarn__arena_of(strategy);
  size_t taken = 0;
  size_t sleepers[TARN__ARENA_ZONES] = {0};
  *out_idle = 0;  // idle memory is extents here
  TARN__TRY(tarn__regions_check(&self->regions));
  TARN__TRY(tarn__arena_check_sleepers(self, sleepers));
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    const tarn__pool_extents *zone = &self->zones[i];
    size_t count = 0;
    size_t nodes =
        sleepers[i] * TARN__SLEEP_NODES + tarn__arena_ground_nodes(self, i);
    TARN__TRY(tarn__extents_check(zone, &count));
    if (zone->set_aside != nodes) {
      return broken("nodes set aside", zone->set_aside, nodes);
    }
    taken += count;
  }
  size_t should_be = strategy->live - self->direct;
  if (self->grounds != 0) {
    should_be = should_be - tarn__steps_live(strategy->pool) + self->grounds;
  }
  return taken == should_be ? TARN_OK
                            : broken("extents taken", taken, should_be);
}

const tarn__pool_strategy_type tarn__arena_pool = {
    .table = {.name = "arena_pool", .size = sizeof(tarn__pool_arena)},
    .init = init,
    .deinit = deinit,
    .take = take,
    .take_now = take_now,
    .give = give,
    .give_now = give_now,
    .let_go = let_go,
    .expect = expect,
    .resize = resize,
    .sleep = tarn__arena_sleep,
    .wake = tarn__arena_wake,
    .end_wake = tarn__arena_end_wake,
    .trim = tarn__arena_trim,
    .reserve = tarn__arena_reserve,
    .raise_ground = tarn__arena_raise_ground,
    .drop_ground = tarn__arena_drop_ground,
    .granule = granule,
    .survey = survey,
    .visit_memory = visit_memory,
    .settle = settle,
    .check = check,
};
