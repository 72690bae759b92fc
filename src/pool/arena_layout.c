// A layout on arena_pool: one extent of large blocks, which is cut up into what
// is out when it is dropped.
#include <assert.h>

#include "base/status.h"
#include "device/memory.h"
#include "pool/arena.h"
#include "pool/front.h"

// Two cuts for each piece that may be out, at most.
static size_t cuts_of(const tarn__pool_step_layout *layout) {
  return layout->count * 2;
}

size_t tarn__arena_layout_nodes(const tarn__pool_arena *self, int zone) {
  bool has_it = self->layout != NULL && zone == TARN__ARENA_ZONES - 1;
  return has_it ? cuts_of(self->layout) : 0;
}

static tarn__pool_extents *zone_of_layouts(tarn__pool_arena *self) {
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

// A layout takes the place of what the steps had until now: if there is not as
// much idle, it would be memory on top of that.
static bool is_affordable(const tarn__pool_arena *self, size_t size) {
  size_t idle = idle_bytes(self);
  return size <= idle || tarn__arena_may_grow(self, 0, size - idle);
}

static tarn_status no_place(size_t size) {
  return tarn__fail(TARN_FULL, "arena_pool: no idle memory for a layout of %zu",
                    size);
}

// Segments do not join: idle ones go before one for the layout comes.
static void make_way(tarn__pool_arena *self, size_t size) {
  const tarn_pool *pool = self->base.pool;
  size_t held = pool->stats.reserved_bytes;
  size_t target = tarn__front_target(pool, held > size ? held - size : 0);
  (void)tarn__arena_trim(&self->base, target, 0);
}

static tarn_status take(tarn__pool_arena *self,
                        const tarn__pool_request *request,
                        tarn__pool_extent **out) {
  tarn__pool_extents *zone = zone_of_layouts(self);
  tarn__pool_request own = *request;
  uint64_t last = 0;
  tarn__pool_arena_need need = {zone, request->size, &own, .sparing = false};
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
  // Another thread may have set one up while the device was asked.
  bool fits = last == 0 || last == request->serial;
  if (fits && self->layout == NULL) return TARN_OK;
  (void)tarn__extents_give(zone, *out, last);
  return no_place(request->size);
}

tarn_status tarn__arena_set_up(tarn__pool_strategy *strategy,
                               const tarn__pool_request *request,
                               tarn__pool_step_layout *layout) {
  tarn__pool_arena *self = (tarn__pool_arena *)(void *)strategy;
  tarn__pool_extents *zone = zone_of_layouts(self);
  tarn__pool_extent *e = NULL;
  if (!is_affordable(self, request->size)) return no_place(request->size);
  if (!tarn__extents_set_aside(zone, cuts_of(layout))) return TARN_E_NOMEM;
  tarn_status status = take(self, request, &e);
  if (status != TARN_OK) {
    tarn__extents_release_aside(zone, cuts_of(layout));
    return status;
  }
  self->layout = layout;
  layout->home = e;
  layout->address = e->offset;
  return TARN_OK;
}

// The hole in which the stream of the layout may still be at work. Without bins
// for it, the host waits for the stream.
static void open_rest(tarn__pool_arena *self, tarn__pool_extent *e,
                      uint64_t serial) {
  tarn__pool_extents *zone = zone_of_layouts(self);
  if (!tarn__arena_prepare(zone, serial)) {
    (void)!tarn_stream_join(NULL, serial);
    serial = 0;
  }
  (void)tarn__extents_give(zone, e, serial);
}

// Cuts the piece out of |e|, the rest of the layout behind the last one.
// Returns the rest behind it, or NULL.
static tarn__pool_extent *cut_out(tarn__pool_arena *self, tarn__pool_extent *e,
                                  tarn__pool_piece *piece, uint64_t serial) {
  tarn__pool_extents *zone = zone_of_layouts(self);
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

void tarn__arena_drop_layout(tarn__pool_strategy *strategy,
                             const tarn__pool_step_layout *layout) {
  tarn__pool_arena *self = (tarn__pool_arena *)(void *)strategy;
  tarn__pool_extent *rest = layout->home;
  self->layout = NULL;
  tarn__extents_release_aside(zone_of_layouts(self), cuts_of(layout));
  for (size_t i = 0; i < layout->count && rest != NULL; i++) {
    tarn__pool_piece *piece = layout->pieces[i];
    if (piece->live) rest = cut_out(self, rest, piece, layout->serial);
  }
  if (rest != NULL) open_rest(self, rest, layout->serial);
}

size_t tarn__arena_granule(const tarn__pool_strategy *strategy) {
  return ((const tarn__pool_arena *)(const void *)strategy)->zones[0].granule;
}
