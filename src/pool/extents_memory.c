// Memory of extents: where a block lacks pages, and which pages holes can lose;
// blocks that change their size, and the holes around blocks without memory.
#include <assert.h>

#include "pool/extents.h"

enum {
  STRIP_NODES = 2,  // that taking pages out of holes may need
  LOOKED_AT = 256,  // extents that the hand passes at a time
};

// --- getting some ----------------------------------------------------------

// Whether a block for the stream with |serial| may reach into |e|.
static bool is_usable(const tarn__pool_extent *e, uint64_t serial) {
  if (e == NULL || e->kind != TARN__EXTENT_OPEN) return false;
  return tarn__extent_serial(e) == 0 || tarn__extent_serial(e) == serial;
}

// The pages of the bare extent |e| that a block at |offset| needs.
static tarn__pool_extent_plan plan_for(const tarn__pool_extents *extents,
                                       tarn__pool_extent *e, uint64_t offset,
                                       size_t size) {
  uint64_t from = tarn__align_down(offset, extents->page);
  uint64_t to = tarn__align_up(offset + size, extents->page);
  return (tarn__pool_extent_plan){
      .bare = e,
      .offset = offset,
      .from = from < e->offset ? e->offset : from,
      .to = to > tarn__extent_end(e) ? tarn__extent_end(e) : to,
  };
}

static bool needs_less(const tarn__pool_extent_plan *a,
                       const tarn__pool_extent_plan *b) {
  uint64_t x = a->to - a->from;
  uint64_t y = b->to - b->from;
  return x != y ? x < y : a->from < b->from;
}

// The least new memory for a block that begins in the open extent before |e|,
// or that ends with the open extent behind it.
static bool plan_at(const tarn__pool_extents *extents, tarn__pool_extent *e,
                    size_t size, size_t align, uint64_t serial,
                    tarn__pool_extent_plan *out) {
  bool before = is_usable(e->before, serial) && !e->wall;
  bool after = is_usable(e->after, serial) && !e->after->wall;
  uint64_t low = tarn__align_up(before ? e->before->offset : e->offset, align);
  uint64_t high = after ? tarn__extent_end(e->after) : tarn__extent_end(e);
  if (low >= high || size > high - low) return false;
  *out = plan_for(extents, e, low, size);
  tarn__pool_extent_plan other =
      plan_for(extents, e, tarn__align_down(high - size, align), size);
  if (needs_less(&other, out)) *out = other;
  return true;
}

tarn__pool_extent_plan tarn__extents_plan(const tarn__pool_extents *extents,
                                          size_t size, size_t align,
                                          uint64_t serial) {
  tarn__pool_extent_plan best = {.bare = NULL};
  const tarn_list *node = NULL;
  size = tarn__align_up(size, extents->granule);
  for (node = extents->bare.next; node != &extents->bare; node = node->next) {
    tarn__pool_extent *e = tarn__extent_of_node((tarn_list *)(uintptr_t)node);
    tarn__pool_extent_plan p = {.bare = NULL};
    if (!plan_at(extents, e, size, align, serial, &p)) continue;
    if (best.bare == NULL || needs_less(&p, &best)) best = p;
  }
  return best;
}

tarn__pool_extent_plan tarn__extents_plan_bare(
    const tarn__pool_extents *extents, size_t size) {
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &extents->bare) {
    tarn__pool_extent *e = tarn__extent_of_node((tarn_list *)(uintptr_t)node);
    if (e->size >= size) return plan_for(extents, e, e->offset, size);
  }
  return (tarn__pool_extent_plan){.bare = NULL};
}

// The open or bare extent right behind |e|; NULL: there is none.
static tarn__pool_extent *free_behind(const tarn__pool_extent *e,
                                      tarn__pool_extent_kind kind) {
  tarn__pool_extent *next = e->after;
  bool is_free = next != NULL && next->kind == kind && !next->wall;
  return is_free ? next : NULL;
}

tarn__pool_extent_plan tarn__extents_plan_behind(
    const tarn__pool_extents *extents, const tarn__pool_extent *extent,
    size_t size, uint64_t serial) {
  const tarn__pool_extent_plan none = {.bare = NULL};
  uint64_t offset = tarn__extent_end(extent);
  size_t more = tarn__align_up(size, extents->granule) - extent->size;
  const tarn__pool_extent *hole = free_behind(extent, TARN__EXTENT_OPEN);
  if (hole != NULL && !is_usable(hole, serial)) return none;
  tarn__pool_extent *e =
      free_behind(hole != NULL ? hole : extent, TARN__EXTENT_BARE);
  if (e == NULL) return none;
  const tarn__pool_extent *last = free_behind(e, TARN__EXTENT_OPEN);
  if (last == NULL || !is_usable(last, serial)) last = e;
  if (more > tarn__extent_end(last) - offset) return none;
  return plan_for(extents, e, offset, more);
}

// Extends |e| down to |offset|, into the hole before it.
static tarn__pool_extent *claim_before(tarn__pool_extents *extents,
                                       tarn__pool_extent *e, uint64_t offset,
                                       uint64_t *serial) {
  tarn__pool_extent *hole = e->before;
  if (tarn__extent_serial(hole) != 0) *serial = tarn__extent_serial(hole);
  e = tarn__row_carve(extents, hole, offset, tarn__extent_end(hole));
  tarn__row_join(extents, e);
  return e;
}

static void claim_behind(tarn__pool_extents *extents, tarn__pool_extent *e,
                         uint64_t end, uint64_t *serial) {
  tarn__pool_extent *hole = e->after;
  if (tarn__extent_serial(hole) != 0) *serial = tarn__extent_serial(hole);
  (void)tarn__row_carve(extents, hole, hole->offset, end);
  tarn__row_join(extents, e);
}

tarn__pool_extent *tarn__extents_claim(tarn__pool_extents *extents,
                                       const tarn__pool_extent_plan *plan,
                                       size_t size, uint64_t *out_serial) {
  uint64_t end = plan->offset + tarn__align_up(size, extents->granule);
  assert(plan->from < plan->to);
  tarn__pool_extent *e =
      tarn__row_carve(extents, plan->bare, plan->from, plan->to);
  *out_serial = 0;
  if (plan->offset < plan->from) {
    e = claim_before(extents, e, plan->offset, out_serial);
  }
  if (end > plan->to) claim_behind(extents, e, end, out_serial);
  extents->taken_bytes += e->size;
  extents->promised += TARN__PROMISED;
  return e;
}

// Opens the parts of the taken |e| outside of the bytes from |from| to |to|, in
// |bins|. Returns the part that stays taken.
static tarn__pool_extent *open_around(tarn__pool_extents *extents,
                                      tarn__pool_extent *e, uint64_t from,
                                      uint64_t to, tarn__pool_bins *bins) {
  if (from > e->offset) {
    tarn__pool_extent *front = e;
    e = tarn__row_cut(extents, e, from);
    tarn__row_end(extents, front, TARN__EXTENT_OPEN, bins);
  }
  if (to < tarn__extent_end(e)) {
    tarn__row_end(extents, tarn__row_cut(extents, e, to), TARN__EXTENT_OPEN,
                  bins);
  }
  return e;
}

tarn__pool_extent *tarn__extents_keep(tarn__pool_extents *extents,
                                      tarn__pool_extent *extent,
                                      const tarn__pool_extent_plan *plan,
                                      size_t size) {
  uint64_t end = plan->offset + tarn__align_up(size, extents->granule);
  extents->promised -= TARN__PROMISED;
  return open_around(extents, extent, plan->offset, end, extents->bins);
}

void tarn__extents_unclaim(tarn__pool_extents *extents,
                           tarn__pool_extent *extent,
                           const tarn__pool_extent_plan *plan, uint64_t serial,
                           tarn__pool_extent_kind kind) {
  extents->promised -= TARN__PROMISED;
  tarn__pool_extent *bare = open_around(extents, extent, plan->from, plan->to,
                                        tarn__row_bins(extents, serial));
  tarn__extents_end_strip(extents, bare, kind);
}

// --- resizing --------------------------------------------------------------

static bool grow(tarn__pool_extents *extents, tarn__pool_extent *e, size_t more,
                 uint64_t serial) {
  const tarn__pool_extent *next = free_behind(e, TARN__EXTENT_OPEN);
  if (!is_usable(next, serial) || next->size < more) return false;
  claim_behind(extents, e, next->offset + more, &serial);
  extents->taken_bytes += more;
  return true;
}

bool tarn__extents_resize(tarn__pool_extents *extents,
                          tarn__pool_extent *extent, size_t size,
                          uint64_t serial) {
  size = tarn__align_up(size, extents->granule);
  if (size > extent->size) {
    return grow(extents, extent, size - extent->size, serial);
  }
  (void)open_around(extents, extent, extent->offset, extent->offset + size,
                    tarn__row_bins(extents, serial));
  return true;
}

// --- giving some up --------------------------------------------------------

// Takes the bytes from |from| to |to|, which begin in |e| and are all open,
// whosever they are.
static tarn__pool_extent *seize(tarn__pool_extents *extents,
                                tarn__pool_extent *e, uint64_t from,
                                uint64_t to, tarn__pool_waits *waits) {
  tarn__pool_extent *whole = NULL;
  extents->taken_bytes += (size_t)(to - from);
  while (from < to) {
    uint64_t end = tarn__extent_end(e) < to ? tarn__extent_end(e) : to;
    tarn__waits_add(waits, tarn__extent_serial(e));
    e = tarn__row_carve(extents, e, from, end);
    if (whole != NULL) {
      tarn__row_join(extents, whole);
    } else {
      whole = e;
    }
    e = whole->after;
    from = end;
  }
  return whole;
}

static bool has_nodes(const tarn__pool_extents *extents) {
  size_t kept = extents->promised + extents->set_aside;
  return extents->spare >= STRIP_NODES + kept;
}

// Whether |e| is an unused hole with a whole page in it.
static bool has_pages(const tarn__pool_extents *extents,
                      const tarn__pool_extent *e) {
  return e->kind == TARN__EXTENT_OPEN && e->bins == extents->bins &&
         tarn__align_up(e->offset, extents->page) <
             tarn__align_down(tarn__extent_end(e), extents->page);
}

static tarn__pool_extent *find_from_hand(const tarn__pool_extents *extents) {
  tarn__pool_extent *e = extents->hand;
  for (int i = 0; i < LOOKED_AT; i++) {
    if (e == NULL) e = extents->first;
    if (has_pages(extents, e)) return e;
    e = e->after;
  }
  return NULL;
}

// Where pages are rare, the largest hole has some.
static tarn__pool_extent *find_largest(const tarn__pool_extents *extents) {
  const tarn__pool_bins *bins = extents->bins;
  for (tarn__pool_extent *e = NULL; (e = tarn__bins_next(bins, e)) != NULL;) {
    if (has_pages(extents, e)) return e;
    // Extents in later bins are all smaller.
    if (e->size < extents->page / 2) return NULL;
  }
  return NULL;
}

tarn__pool_extent *tarn__extents_strip(tarn__pool_extents *extents,
                                       size_t most) {
  tarn__pool_waits none = {.count = 0};
  if (!has_nodes(extents) || extents->bins->bytes < extents->page) return NULL;
  tarn__pool_extent *e = find_from_hand(extents);
  if (e == NULL) e = find_largest(extents);
  if (e == NULL) return NULL;
  uint64_t from = tarn__align_up(e->offset, extents->page);
  uint64_t to = tarn__align_down(tarn__extent_end(e), extents->page);
  if (to - from > most) to = from + most;
  extents->hand = seize(extents, e, from, to, &none);
  return extents->hand;
}

tarn__pool_extent_run tarn__extents_run(const tarn__pool_extent *extent) {
  tarn__pool_extent_run run = {extent, extent};
  while (!run.first->wall && run.first->before->kind == TARN__EXTENT_OPEN)
    run.first = run.first->before;
  const tarn__pool_extent *next = NULL;
  while ((next = free_behind(run.last, TARN__EXTENT_OPEN)) != NULL)
    run.last = next;
  return run;
}

tarn__pool_extent *tarn__extents_strip_run(tarn__pool_extents *extents,
                                           uint64_t *cursor, size_t most,
                                           tarn__pool_waits *out_waits) {
  *out_waits = (tarn__pool_waits){.count = 0};
  for (tarn__pool_extent *e = has_nodes(extents) ? extents->first : NULL;
       e != NULL; e = e->after) {
    if (e->kind != TARN__EXTENT_OPEN || tarn__extent_end(e) <= *cursor)
      continue;
    uint64_t end = tarn__extent_end(tarn__extents_run(e).last);
    uint64_t from = e->offset > *cursor ? e->offset : *cursor;
    from = tarn__align_up(from, extents->page);
    uint64_t to = tarn__align_down(end, extents->page);
    if (from < to) {
      if (to - from > most) to = from + most;
      while (tarn__extent_end(e) <= from)
        e = e->after;
      *cursor = to;
      return seize(extents, e, from, to, out_waits);
    }
    while (tarn__extent_end(e) < end)
      e = e->after;
  }
  *cursor = UINT64_MAX;
  return NULL;
}

void tarn__extents_end_strip(tarn__pool_extents *extents,
                             tarn__pool_extent *extent,
                             tarn__pool_extent_kind kind) {
  tarn__row_end(extents, extent, kind, NULL);
}

// --- blocks without memory --------------------------------------------------
//
// What becomes of the holes around them.
//
//   | S1      | hole | S2     | hole                | a block   |
//   |  page   |  page     |  page      |  page       |  page     |
//                without memory         with
//
// A sleeping block stays taken. A hole in a page without memory is asleep: it
// cannot serve a request, but is not bare either, because its part of the page
// is less than a page. It becomes open when the page has memory again, and bare
// with the whole page when the last block in it is freed.

// Makes the bytes from |from| to |to| of |e| |kind|.
static tarn__pool_extent *turn(tarn__pool_extents *extents,
                               tarn__pool_extent *e, uint64_t from, uint64_t to,
                               tarn__pool_extent_kind kind) {
  if (from < e->offset) from = e->offset;
  if (to > tarn__extent_end(e)) to = tarn__extent_end(e);
  e = tarn__row_carve(extents, e, from, to);
  return tarn__row_settle(extents, e, kind, extents->bins);
}

static bool is_kind(const tarn__pool_extent *e, tarn__pool_extent_kind kind) {
  return e != NULL && e->kind == kind;
}

// Makes the extents of kind |old| around |block| |kind|, as far as they are in
// the pages from |from| to |to|. Adds the streams that may use them to |waits|.
static void turn_around(tarn__pool_extents *extents,
                        const tarn__pool_extent *block, uint64_t from,
                        uint64_t to, tarn__pool_extent_kind old,
                        tarn__pool_extent_kind kind, tarn__pool_waits *waits) {
  tarn__pool_extent *e = block->before;
  while (is_kind(e, old) && tarn__extent_end(e) > from) {
    tarn__waits_add(waits, tarn__extent_serial(e));
    e = turn(extents, e, from, to, kind)->before;
  }
  e = block->after;
  while (is_kind(e, old) && e->offset < to) {
    tarn__waits_add(waits, tarn__extent_serial(e));
    e = turn(extents, e, from, to, kind)->after;
  }
}

void tarn__extents_lull(tarn__pool_extents *extents, tarn__pool_extent *extent,
                        uint64_t from, uint64_t to, tarn__pool_waits *waits) {
  turn_around(extents, extent, from, to, TARN__EXTENT_OPEN, TARN__EXTENT_ASLEEP,
              waits);
}

void tarn__extents_rouse(tarn__pool_extents *extents, tarn__pool_extent *extent,
                         uint64_t from, uint64_t to) {
  tarn__pool_waits none = {.count = 0};
  turn_around(extents, extent, from, to, TARN__EXTENT_ASLEEP, TARN__EXTENT_OPEN,
              &none);
}

size_t tarn__extents_give_asleep(tarn__pool_extents *extents,
                                 tarn__pool_extent *extent, uint64_t from,
                                 uint64_t to, uint64_t serial,
                                 tarn__pool_extent_kind kind) {
  tarn__pool_extent *e = extent;
  if (from == to) {
    (void)tarn__extents_give(extents, e, serial);
    return 0;
  }
  e = open_around(extents, e, from, to, tarn__row_bins(extents, serial));
  e = tarn__row_end(extents, e, TARN__EXTENT_ASLEEP, NULL);
  // The whole pages of what is asleep there now.
  from = tarn__align_up(e->offset, extents->page);
  to = tarn__align_down(tarn__extent_end(e), extents->page);
  if (from >= to) return 0;
  (void)turn(extents, e, from, to, kind);
  return (size_t)(to - from);
}
