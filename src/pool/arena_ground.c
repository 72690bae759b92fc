// The ground of steps: one extent in the zone of large blocks. When it is given
// up, it is cut up into live blocks and holes.
#include <assert.h>

#include "base/status.h"
#include "pool/arena.h"
#include "pool/front.h"

// Two cuts for each piece that may be out, at most.
static size_t cuts_of(const tarn__pool_step_ground *ground) {
  return ground->most * 2;
}

size_t tarn__arena_ground_nodes(const tarn__pool_arena *self, int zone) {
  return zone == TARN__ARENA_ZONES - 1 ? self->ground_cuts : 0;
}

static tarn__pool_extents *zone_of_grounds(tarn__pool_arena *self) {
  return &self->zones[TARN__ARENA_ZONES - 1];
}

// Idle bytes in holes of all kinds.
static size_t idle_bytes(const tarn__pool_arena *self) {
  size_t held = self->base.held;
  for (int i = 0; i < TARN__ARENA_ZONES; i++) {
    size_t taken = self->zones[i].taken_bytes;
    held = held > taken ? held - taken : 0;
  }
  return held;
}

static tarn_status no_place(size_t size) {
  return tarn__fail(TARN_FULL, "arena_pool: no idle memory for a layout of %zu",
                    size);
}

// Segments do not join: idle ones are given back before one for the layout is
// added.
static void make_way(tarn__pool_arena *self, size_t size) {
  const tarn_pool *pool = self->base.pool;
  size_t held = pool->stats.reserved_bytes;
  size_t target = tarn__front_target(pool, held > size ? held - size : 0);
  (void)tarn__arena_trim(&self->base, target, 0);
}

static tarn_status take_for_ground(tarn__pool_arena *self,
                                   const tarn__pool_request *request,
                                   tarn__pool_extent **out) {
  tarn__pool_extents *zone = zone_of_grounds(self);
  tarn__pool_request own = *request;
  uint64_t last = 0;
  tarn__pool_arena_need need = {zone, request->size, &own, .bounded = true};
  tarn_status status = TARN_OK;
  if (!tarn__arena_prepare(zone, request->serial)) return TARN_E_NOMEM;
  *out = tarn__extents_take(zone, request->size, request->align,
                            request->serial, &last);
  if (*out == NULL) {
    if (self->range_size == 0) make_way(self, request->size);
    status = tarn__arena_find(self, &need, out, &last);
  }
  if (status != TARN_OK) return status;
  assert(*out != NULL);
  if (last == 0 || last == request->serial) return TARN_OK;
  (void)tarn__extents_give(zone, *out, last);
  return no_place(request->size);
}

tarn_status tarn__arena_raise_ground(tarn__pool_strategy *strategy,
                                     const tarn__pool_request *request,
                                     tarn__pool_step_ground *ground) {
  tarn__pool_arena *self = tarn__arena_of(strategy);
  tarn__pool_extents *zone = zone_of_grounds(self);
  tarn__pool_extent *e = NULL;
  // It replaces the memory that the steps used until now: without as much idle
  // memory it would be additional memory.
  size_t idle = idle_bytes(self);
  if (request->size > idle &&
      !tarn__arena_may_grow(self, 0, request->size - idle)) {
    return no_place(request->size);
  }
  if (!tarn__extents_set_aside(zone, cuts_of(ground))) return TARN_E_NOMEM;
  tarn_status status = take_for_ground(self, request, &e);
  if (status != TARN_OK) {
    tarn__extents_release_aside(zone, cuts_of(ground));
    return status;
  }
  self->grounds++;
  self->ground_cuts += cuts_of(ground);
  ground->home = e;
  ground->address = e->offset;
  return TARN_OK;
}

// The hole in which the stream of the layout may still be at work. Without bins
// for it, the host waits for the stream.
static void open_rest(tarn__pool_arena *self, tarn__pool_extent *e,
                      uint64_t serial) {
  tarn__pool_extents *zone = zone_of_grounds(self);
  if (!tarn__arena_prepare(zone, serial)) {
    (void)!tarn_stream_join(NULL, serial);
    serial = 0;
  }
  (void)tarn__extents_give(zone, e, serial);
}

// Cuts the piece out of |e|, the rest of the layout after the previous piece.
// Returns the rest after it, or NULL.
static tarn__pool_extent *cut_out(tarn__pool_arena *self, tarn__pool_extent *e,
                                  tarn__pool_piece *piece, uint64_t serial) {
  tarn__pool_extents *zone = zone_of_grounds(self);
  size_t size = piece->size + self->padding;
  tarn__pool_extent *own = e;
  if (piece->address > e->offset) {
    own = tarn__row_cut(zone, e, piece->address);
    open_rest(self, e, serial);
  }
  piece->home = own;
  piece->zone = TARN__ARENA_ZONES - 1;
  return size < own->size ? tarn__row_cut(zone, own, own->offset + size) : NULL;
}

void tarn__arena_drop_ground(tarn__pool_strategy *strategy,
                             tarn__pool_step_ground *ground) {
  tarn__pool_arena *self = tarn__arena_of(strategy);
  tarn__pool_extent *rest = ground->home;
  self->grounds--;
  self->ground_cuts -= cuts_of(ground);
  tarn__extents_release_aside(zone_of_grounds(self), cuts_of(ground));
  for (size_t i = 0; i < ground->count; i++)
    rest = cut_out(self, rest, ground->strangers[i], ground->serial);
  if (rest != NULL) open_rest(self, rest, ground->serial);
}
