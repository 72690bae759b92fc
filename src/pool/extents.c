// Extents: a row by address, of which those that are free hang in bins or in
// the list of bare ones.
#include "pool/extents.h"

#include "base/hostmem.h"
#include "base/status.h"

enum {
  SLAB = 64,    // nodes that are made at a time
  SPARE = 6,    // nodes that one call may need
  PROMISED = 2  // nodes that the end of a claim may need
};

// Ends behind every address there is, and before sums overflow.
static const uint64_t SPACE = UINT64_C(1) << 62;

typedef struct tarn__extent_slab {
  struct tarn__extent_slab *next;
  tarn__extent nodes[SLAB];
} extent_slab;

static tarn__extent *of_node(tarn_list *node) {
  return tarn_list_entry(node, tarn__extent, node);
}

static uint64_t end_of(const tarn__extent *e) {
  return e->offset + e->size;
}

static uint64_t up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}

static uint64_t down(uint64_t value, uint64_t unit) {
  return value & ~(unit - 1);
}

static uint64_t serial_of(const tarn__extent *e) {
  return e->bins != NULL ? e->bins->serial : 0;
}

// --- nodes and bins --------------------------------------------------------

static bool add_slab(tarn__extents *extents) {
  extent_slab *slab = tarn__host_alloc(sizeof *slab);
  if (slab == NULL) return false;
  slab->next = extents->slabs;
  extents->slabs = slab;
  for (size_t i = 0; i < SLAB; i++)
    tarn_list_add_tail(&extents->unused, &slab->nodes[i].node);
  extents->spare += SLAB;
  return true;
}

static tarn__extent *take_node(tarn__extents *extents) {
  tarn_list *node = extents->unused.next;
  tarn_list_del(node);
  extents->spare--;
  return of_node(node);
}

static void leave_node(tarn__extents *extents, tarn__extent *e) {
  tarn_list_add(&extents->unused, &e->node);
  extents->spare++;
}

static tarn__bins *find_bins(const tarn__extents *extents, uint64_t serial) {
  tarn__bins *bins = extents->bins;
  while (bins != NULL && bins->serial != serial)
    bins = bins->next;
  return bins;
}

// Those of a stream whose holes are all gone serve another one.
static tarn__bins *find_empty_bins(const tarn__extents *extents) {
  tarn__bins *bins = extents->bins->next;
  // A claim that fails gives holes back to bins that it may have emptied.
  if (extents->promised != 0) return NULL;
  while (bins != NULL && bins->bytes != 0)
    bins = bins->next;
  return bins;
}

static bool make_bins(tarn__extents *extents, uint64_t serial) {
  tarn__bins *bins = find_empty_bins(extents);
  if (bins == NULL) {
    bins = tarn__host_alloc(sizeof *bins);
    if (bins == NULL) return false;
    bins->next = extents->bins->next;
    extents->bins->next = bins;
  }
  tarn__bins_init(bins, serial, extents->granule);
  return true;
}

bool tarn__extents_reserve(tarn__extents *extents, uint64_t serial) {
  if (extents->spare < SPARE + extents->promised && !add_slab(extents)) {
    return false;
  }
  return find_bins(extents, serial) != NULL || make_bins(extents, serial);
}

// --- the row of extents ----------------------------------------------------

static void hang(tarn__extents *extents, tarn__extent *e) {
  if (e->kind == TARN__EXTENT_OPEN) tarn__bins_hang(e->bins, e);
  if (e->kind != TARN__EXTENT_BARE) return;
  tarn_list_add(&extents->bare, &e->node);
  extents->bare_count++;
}

static void unhang(tarn__extents *extents, tarn__extent *e) {
  if (e->kind == TARN__EXTENT_OPEN) tarn__bins_unhang(e->bins, e);
  if (e->kind != TARN__EXTENT_BARE) return;
  tarn_list_del(&e->node);
  extents->bare_count--;
}

// Cuts |e| at |offset|, which is inside. The part behind is like it; both hang
// nowhere.
static tarn__extent *cut_at(tarn__extents *extents, tarn__extent *e,
                            uint64_t offset) {
  tarn__extent *rest = take_node(extents);
  *rest = (tarn__extent){
      .offset = offset,
      .size = (size_t)(end_of(e) - offset),
      .before = e,
      .after = e->after,
      .bins = e->bins,
      .kind = e->kind,
  };
  tarn_list_init(&rest->node);
  e->size = (size_t)(offset - e->offset);
  e->after = rest;
  if (rest->after != NULL) rest->after->before = rest;
  return rest;
}

// Makes |e| and what stands behind it one. Both hang nowhere.
static void join(tarn__extents *extents, tarn__extent *e) {
  tarn__extent *gone = e->after;
  e->size += gone->size;
  e->after = gone->after;
  if (e->after != NULL) e->after->before = e;
  leave_node(extents, gone);
}

static bool can_join(const tarn__extent *a, const tarn__extent *b) {
  if (a == NULL || b == NULL || a->kind != b->kind || b->wall) return false;
  if (a->kind == TARN__EXTENT_TAKEN) return false;
  uint64_t x = serial_of(a);
  uint64_t y = serial_of(b);
  return x == y || x == 0 || y == 0;
}

// |e| hangs nowhere, what stands behind it does.
static void join_hanging(tarn__extents *extents, tarn__extent *e) {
  unhang(extents, e->after);
  if (serial_of(e) == 0) e->bins = e->after->bins;
  join(extents, e);
}

// Hangs |e|, which is of |kind| from now on, as one with its neighbours.
static tarn__extent *settle(tarn__extents *extents, tarn__extent *e,
                            tarn__extent_kind kind, tarn__bins *bins) {
  e->kind = kind;
  e->bins = kind == TARN__EXTENT_OPEN ? bins : NULL;
  if (can_join(e, e->after)) join_hanging(extents, e);
  if (can_join(e->before, e)) {
    tarn__extent *front = e->before;
    unhang(extents, front);
    if (serial_of(front) == 0) front->bins = e->bins;
    join(extents, front);
    e = front;
  }
  hang(extents, e);
  return e;
}

// Takes the bytes from |from| to |to| out of |e|, which hangs: they are taken.
static tarn__extent *carve(tarn__extents *extents, tarn__extent *e,
                           uint64_t from, uint64_t to) {
  unhang(extents, e);
  if (to < end_of(e)) hang(extents, cut_at(extents, e, to));
  if (from > e->offset) {
    tarn__extent *front = e;
    e = cut_at(extents, e, from);
    hang(extents, front);
  }
  e->kind = TARN__EXTENT_TAKEN;
  e->bins = NULL;
  return e;
}

// --- beginning and end -----------------------------------------------------

tarn_status tarn__extents_init(tarn__extents *extents, size_t granule,
                               size_t page) {
  *extents = (tarn__extents){.granule = granule, .page = page};
  tarn_list_init(&extents->bare);
  tarn_list_init(&extents->unused);
  extents->bins = tarn__host_alloc(sizeof *extents->bins);
  if (extents->bins == NULL || !add_slab(extents)) {
    tarn__extents_deinit(extents);
    return TARN_E_NOMEM;
  }
  tarn__bins_init(extents->bins, 0, granule);
  extents->first = take_node(extents);
  *extents->first = (tarn__extent){.size = SPACE};
  return TARN_OK;
}

void tarn__extents_deinit(tarn__extents *extents) {
  while (extents->slabs != NULL) {
    extent_slab *slab = extents->slabs;
    extents->slabs = slab->next;
    tarn__host_free(slab, sizeof *slab);
  }
  while (extents->bins != NULL) {
    tarn__bins *bins = extents->bins;
    extents->bins = bins->next;
    tarn__host_free(bins, sizeof *bins);
  }
  *extents = (tarn__extents){0};
}

// A walk, since it is only for calls that ask the device, which take longer.
static tarn__extent *find_outside(const tarn__extents *extents,
                                  uint64_t offset) {
  tarn__extent *e = extents->first;
  while (offset - e->offset >= e->size)
    e = e->after;
  return e;
}

void tarn__extents_add(tarn__extents *extents, uint64_t offset, size_t size,
                       tarn__extent_kind kind) {
  tarn__extent *e = find_outside(extents, offset);
  e = carve(extents, e, offset, offset + size);
  e->wall = true;
  if (e->after != NULL) e->after->wall = true;
  settle(extents, e, kind, extents->bins);
}

void tarn__extents_remove(tarn__extents *extents, tarn__extent *extent) {
  tarn__extent *next = extent->after;
  unhang(extents, extent);
  extent->wall = false;
  if (next->kind == TARN__EXTENT_OUTSIDE) next->wall = false;
  settle(extents, extent, TARN__EXTENT_OUTSIDE, NULL);
}

// --- blocks ----------------------------------------------------------------

static tarn__extent *take_from(tarn__extents *extents, const tarn__bins *bins,
                               size_t size, size_t align,
                               uint64_t *out_serial) {
  tarn__extent *e = tarn__bins_find(bins, size, align);
  if (e == NULL) return NULL;
  uint64_t offset = up(e->offset, align);
  *out_serial = bins->serial;
  extents->taken_bytes += size;
  return carve(extents, e, offset, offset + size);
}

tarn__extent *tarn__extents_take(tarn__extents *extents, size_t size,
                                 size_t align, uint64_t serial,
                                 uint64_t *out_serial) {
  size = up(size, extents->granule);
  tarn__extent *e = NULL;
  const tarn__bins *own = serial != 0 ? find_bins(extents, serial) : NULL;
  if (own != NULL) e = take_from(extents, own, size, align, out_serial);
  if (e == NULL) e = take_from(extents, extents->bins, size, align, out_serial);
  return e;
}

tarn__extent *tarn__extents_take_any(tarn__extents *extents, size_t size,
                                     size_t align, uint64_t *out_serial) {
  size = up(size, extents->granule);
  tarn__extent *e = NULL;
  const tarn__bins *bins = extents->bins;
  for (; e == NULL && bins != NULL; bins = bins->next)
    e = take_from(extents, bins, size, align, out_serial);
  return e;
}

tarn__extent *tarn__extents_give(tarn__extents *extents, tarn__extent *extent,
                                 uint64_t serial) {
  extents->taken_bytes -= extent->size;
  return settle(extents, extent, TARN__EXTENT_OPEN, find_bins(extents, serial));
}

static bool grow(tarn__extents *extents, tarn__extent *e, size_t more,
                 uint64_t serial) {
  tarn__extent *next = e->after;
  bool open = next != NULL && next->kind == TARN__EXTENT_OPEN && !next->wall;
  if (!open || next->size < more) return false;
  if (serial_of(next) != 0 && serial_of(next) != serial) return false;
  (void)carve(extents, next, next->offset, next->offset + more);
  join(extents, e);
  extents->taken_bytes += more;
  return true;
}

static void shrink(tarn__extents *extents, tarn__extent *e, size_t size,
                   uint64_t serial) {
  extents->taken_bytes -= e->size - size;
  tarn__extent *rest = cut_at(extents, e, e->offset + size);
  settle(extents, rest, TARN__EXTENT_OPEN, find_bins(extents, serial));
}

bool tarn__extents_resize(tarn__extents *extents, tarn__extent *extent,
                          size_t size, uint64_t serial) {
  size = up(size, extents->granule);
  if (size > extent->size) {
    return grow(extents, extent, size - extent->size, serial);
  }
  if (size < extent->size) shrink(extents, extent, size, serial);
  return true;
}

void tarn__extents_move(tarn__extents *extents, uint64_t serial, uint64_t to) {
  tarn__bins *from = find_bins(extents, serial);
  tarn__bins *into = find_bins(extents, to);
  if (from == NULL || into == NULL || from == into) return;
  tarn__extent *e = NULL;
  while ((e = tarn__bins_next(from, NULL)) != NULL) {
    unhang(extents, e);
    settle(extents, e, TARN__EXTENT_OPEN, into);
  }
}

// --- memory ----------------------------------------------------------------

// Whether a block for the stream with |serial| may reach into |e|.
static bool is_usable(const tarn__extent *e, uint64_t serial) {
  if (e == NULL || e->kind != TARN__EXTENT_OPEN) return false;
  return serial_of(e) == 0 || serial_of(e) == serial;
}

// What a block at |offset| lacks of the bare extent |e|.
static tarn__extent_plan plan_for(const tarn__extents *extents, tarn__extent *e,
                                  uint64_t offset, size_t size) {
  uint64_t from = down(offset, extents->page);
  uint64_t to = up(offset + size, extents->page);
  return (tarn__extent_plan){
      .bare = e,
      .offset = offset,
      .from = from < e->offset ? e->offset : from,
      .to = to > end_of(e) ? end_of(e) : to,
  };
}

static bool needs_less(const tarn__extent_plan *a, const tarn__extent_plan *b) {
  uint64_t x = a->to - a->from;
  uint64_t y = b->to - b->from;
  return x != y ? x < y : a->from < b->from;
}

// The least for a block that begins in what is open before |e|, and for one
// that ends with what is open behind it.
static bool plan_at(const tarn__extents *extents, tarn__extent *e, size_t size,
                    size_t align, uint64_t serial, tarn__extent_plan *out) {
  bool before = is_usable(e->before, serial) && !e->wall;
  bool after = is_usable(e->after, serial) && !e->after->wall;
  uint64_t low = up(before ? e->before->offset : e->offset, align);
  uint64_t high = after ? end_of(e->after) : end_of(e);
  if (low >= high || size > high - low) return false;
  *out = plan_for(extents, e, low, size);
  tarn__extent_plan other =
      plan_for(extents, e, down(high - size, align), size);
  if (needs_less(&other, out)) *out = other;
  return true;
}

tarn__extent_plan tarn__extents_plan(const tarn__extents *extents, size_t size,
                                     size_t align, uint64_t serial) {
  tarn__extent_plan best = {.bare = NULL};
  const tarn_list *node = NULL;
  size = up(size, extents->granule);
  for (node = extents->bare.next; node != &extents->bare; node = node->next) {
    tarn__extent *e = of_node((tarn_list *)(uintptr_t)node);
    tarn__extent_plan p = {.bare = NULL};
    if (!plan_at(extents, e, size, align, serial, &p)) continue;
    if (best.bare == NULL || needs_less(&p, &best)) best = p;
  }
  return best;
}

// Extends |e| down to |offset|, into the hole before it.
static tarn__extent *claim_before(tarn__extents *extents, tarn__extent *e,
                                  uint64_t offset, uint64_t *serial) {
  tarn__extent *hole = e->before;
  if (serial_of(hole) != 0) *serial = serial_of(hole);
  e = carve(extents, hole, offset, end_of(hole));
  join(extents, e);
  return e;
}

static void claim_behind(tarn__extents *extents, tarn__extent *e, uint64_t end,
                         uint64_t *serial) {
  tarn__extent *hole = e->after;
  if (serial_of(hole) != 0) *serial = serial_of(hole);
  (void)carve(extents, hole, hole->offset, end);
  join(extents, e);
}

tarn__extent *tarn__extents_claim(tarn__extents *extents,
                                  const tarn__extent_plan *plan, size_t size,
                                  uint64_t *out_serial) {
  uint64_t end = plan->offset + up(size, extents->granule);
  tarn__extent *e = carve(extents, plan->bare, plan->from, plan->to);
  *out_serial = 0;
  if (plan->offset < plan->from) {
    e = claim_before(extents, e, plan->offset, out_serial);
  }
  if (end > plan->to) claim_behind(extents, e, end, out_serial);
  extents->taken_bytes += e->size;
  extents->promised += PROMISED;
  return e;
}

// The part of a claim that is behind |offset|, or all of it.
static tarn__extent *part_behind(tarn__extents *extents, tarn__extent *e,
                                 uint64_t offset) {
  return offset > e->offset ? cut_at(extents, e, offset) : e;
}

tarn__extent *tarn__extents_keep(tarn__extents *extents, tarn__extent *extent,
                                 const tarn__extent_plan *plan, size_t size) {
  uint64_t end = plan->offset + up(size, extents->granule);
  tarn__extent *e = part_behind(extents, extent, plan->offset);
  extents->promised -= PROMISED;
  if (e != extent) {
    extents->taken_bytes -= extent->size;
    settle(extents, extent, TARN__EXTENT_OPEN, extents->bins);
  }
  if (end < end_of(e)) {
    tarn__extent *rest = cut_at(extents, e, end);
    extents->taken_bytes -= rest->size;
    settle(extents, rest, TARN__EXTENT_OPEN, extents->bins);
  }
  return e;
}

void tarn__extents_unclaim(tarn__extents *extents, tarn__extent *extent,
                           const tarn__extent_plan *plan, uint64_t serial) {
  tarn__bins *bins = find_bins(extents, serial);
  extents->promised -= PROMISED;
  extents->taken_bytes -= extent->size;
  tarn__extent *bare = part_behind(extents, extent, plan->from);
  if (plan->to < end_of(bare)) {
    settle(extents, cut_at(extents, bare, plan->to), TARN__EXTENT_OPEN, bins);
  }
  if (bare != extent) settle(extents, extent, TARN__EXTENT_OPEN, bins);
  settle(extents, bare, TARN__EXTENT_BARE, NULL);
}

tarn__extent *tarn__extents_strip(tarn__extents *extents, size_t most,
                                  uint64_t serial) {
  const tarn__bins *bins = find_bins(extents, serial);
  tarn__extent *e = NULL;
  while (bins != NULL && (e = tarn__bins_next(bins, e)) != NULL) {
    uint64_t from = up(e->offset, extents->page);
    uint64_t to = down(end_of(e), extents->page);
    if (from >= to) continue;
    if (to - from > most) from = to - most;
    extents->taken_bytes += (size_t)(to - from);
    return carve(extents, e, from, to);
  }
  return NULL;
}

void tarn__extents_bare(tarn__extents *extents, tarn__extent *extent) {
  extents->taken_bytes -= extent->size;
  settle(extents, extent, TARN__EXTENT_BARE, NULL);
}
