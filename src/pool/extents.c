// Extents: a row by address. Free ones are also in bins or in the list of bare
// ones.
//
// Invariants (tarn__extents_check walks them):
//   * extents cover the space without gap or overlap, and link to each other
//   * none is empty; they begin and end at the granule, bare ones at pages
//   * free neighbours that could be one are one
//   * what is open hangs in a bin, what is bare in the list, nothing else does
//   * what is asleep fills no page
//   * the hand is an extent of the row, or none
#include "pool/extents.h"

#include "base/hostmem.h"
#include "base/status.h"

enum { SLAB = 64 };  // nodes that are made at a time

// Ends behind every address that a driver has reason to give, and before sums
// overflow.
static const uint64_t SPACE = UINT64_C(1) << 62;

// The nodes begin at a line of the cache, of which each is one.
typedef struct tarn__pool_extent_slab {
  struct tarn__pool_extent_slab *next;
  unsigned char room[(SLAB + 1) * sizeof(tarn__pool_extent)];
} extent_slab;

// --- nodes and bins --------------------------------------------------------

static bool add_slab(tarn__pool_extents *extents) {
  const uintptr_t line = sizeof(tarn__pool_extent);
  extent_slab *slab = tarn__host_alloc(sizeof *slab);
  if (slab == NULL) return false;
  slab->next = extents->slabs;
  extents->slabs = slab;
  size_t skipped = (size_t)(-(uintptr_t)slab->room & (line - 1));
  tarn__pool_extent *nodes = (tarn__pool_extent *)(void *)&slab->room[skipped];
  for (size_t i = SLAB; i-- > 0;)
    tarn__row_add_node(extents, &nodes[i]);
  return true;
}

tarn__pool_bins *tarn__row_bins(const tarn__pool_extents *extents,
                                uint64_t serial) {
  tarn__pool_bins *bins = extents->bins;
  while (bins != NULL && bins->serial != serial)
    bins = bins->next;
  return bins;
}

// Bins of a stream without holes serve another stream.
static tarn__pool_bins *find_empty_bins(const tarn__pool_extents *extents) {
  tarn__pool_bins *bins = extents->bins->next;
  // A claim that fails gives holes back to bins that it may have emptied.
  if (extents->promised != 0) return NULL;
  while (bins != NULL && bins->bytes != 0)
    bins = bins->next;
  return bins;
}

static bool make_bins(tarn__pool_extents *extents, uint64_t serial) {
  tarn__pool_bins *bins = find_empty_bins(extents);
  if (bins == NULL) {
    bins = tarn__host_alloc(sizeof *bins);
    if (bins == NULL) return false;
    bins->next = extents->bins->next;
    extents->bins->next = bins;
  }
  tarn__bins_init(bins, serial, extents->granule);
  return true;
}

static bool have_nodes(tarn__pool_extents *extents, size_t count) {
  count += extents->promised + extents->set_aside;
  while (extents->spare < count) {
    if (!add_slab(extents)) return false;
  }
  return true;
}

bool tarn__extents_reserve(tarn__pool_extents *extents, uint64_t serial) {
  if (!have_nodes(extents, TARN__SPARE_NODES)) return false;
  return tarn__row_bins(extents, serial) != NULL || make_bins(extents, serial);
}

bool tarn__extents_set_aside(tarn__pool_extents *extents, size_t count) {
  if (!have_nodes(extents, count)) return false;
  extents->set_aside += count;
  return true;
}

// --- the row of extents ----------------------------------------------------

static void hang(tarn__pool_extents *extents, tarn__pool_extent *e) {
  if (e->kind == TARN__EXTENT_OPEN) tarn__bins_hang(e->bins, e);
  if (e->kind != TARN__EXTENT_BARE) return;
  tarn_list_add(&extents->bare, &e->node);
  extents->bare_count++;
}

static void unhang(tarn__pool_extents *extents, tarn__pool_extent *e) {
  if (e->kind == TARN__EXTENT_OPEN) tarn__bins_unhang(e->bins, e);
  if (e->kind != TARN__EXTENT_BARE) return;
  tarn_list_del(&e->node);
  extents->bare_count--;
}

tarn__pool_extent *tarn__row_cut(tarn__pool_extents *extents,
                                 tarn__pool_extent *e, uint64_t offset) {
  tarn__pool_extent *rest = tarn__row_new_node(extents);
  *rest = (tarn__pool_extent){
      .offset = offset,
      .size = (size_t)(tarn__extent_end(e) - offset),
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

void tarn__row_join(tarn__pool_extents *extents, tarn__pool_extent *e) {
  tarn__pool_extent *gone = e->after;
  e->size += gone->size;
  e->after = gone->after;
  if (e->after != NULL) e->after->before = e;
  tarn__row_end_node(extents, gone, e);
}

static bool can_join(const tarn__pool_extent *a, const tarn__pool_extent *b) {
  if (a == NULL || b == NULL || a->kind != b->kind || b->wall) return false;
  if (a->kind == TARN__EXTENT_TAKEN) return false;
  uint64_t x = tarn__extent_serial(a);
  uint64_t y = tarn__extent_serial(b);
  return x == y || x == 0 || y == 0;
}

static inline void join_free(tarn__pool_extents *extents,
                             tarn__pool_extent *e) {
  if (tarn__extent_serial(e) == 0) e->bins = e->after->bins;
  tarn__row_join(extents, e);
}

tarn__pool_extent *tarn__row_settle(tarn__pool_extents *extents,
                                    tarn__pool_extent *e,
                                    tarn__pool_extent_kind kind,
                                    tarn__pool_bins *bins) {
  e->kind = kind;
  e->bins = kind == TARN__EXTENT_OPEN ? bins : NULL;
  if (can_join(e, e->after)) {
    unhang(extents, e->after);
    join_free(extents, e);
  }
  if (can_join(e->before, e)) {
    e = e->before;
    unhang(extents, e);
    join_free(extents, e);
  }
  hang(extents, e);
  return e;
}

tarn__pool_extent *tarn__row_carve(tarn__pool_extents *extents,
                                   tarn__pool_extent *e, uint64_t from,
                                   uint64_t to) {
  unhang(extents, e);
  if (to < tarn__extent_end(e)) hang(extents, tarn__row_cut(extents, e, to));
  if (from > e->offset) {
    tarn__pool_extent *front = e;
    e = tarn__row_cut(extents, e, from);
    hang(extents, front);
  }
  e->kind = TARN__EXTENT_TAKEN;
  e->bins = NULL;
  return e;
}

tarn__pool_extent *tarn__row_end(tarn__pool_extents *extents,
                                 tarn__pool_extent *e,
                                 tarn__pool_extent_kind kind,
                                 tarn__pool_bins *bins) {
  extents->taken_bytes -= e->size;
  return tarn__row_settle(extents, e, kind, bins);
}

// --- beginning and end -----------------------------------------------------

tarn_status tarn__extents_init(tarn__pool_extents *extents, size_t granule,
                               size_t page) {
  *extents = (tarn__pool_extents){.granule = granule, .page = page};
  tarn_list_init(&extents->bare);
  extents->bins = tarn__host_alloc(sizeof *extents->bins);
  if (extents->bins == NULL || !add_slab(extents)) {
    tarn__extents_deinit(extents);
    return TARN_E_NOMEM;
  }
  tarn__bins_init(extents->bins, 0, granule);
  extents->first = tarn__row_new_node(extents);
  *extents->first = (tarn__pool_extent){.size = SPACE};
  return TARN_OK;
}

void tarn__extents_deinit(tarn__pool_extents *extents) {
  while (extents->slabs != NULL) {
    extent_slab *slab = extents->slabs;
    extents->slabs = slab->next;
    tarn__host_free(slab, sizeof *slab);
  }
  while (extents->bins != NULL) {
    tarn__pool_bins *bins = extents->bins;
    extents->bins = bins->next;
    tarn__host_free(bins, sizeof *bins);
  }
  *extents = (tarn__pool_extents){0};
}

bool tarn__extents_reach(uint64_t offset, uint64_t size) {
  return offset < SPACE && size <= SPACE - offset;
}

// A walk, since it is only for calls that ask the device, which take longer.
static tarn__pool_extent *find_outside(const tarn__pool_extents *extents,
                                       uint64_t offset) {
  tarn__pool_extent *e = extents->first;
  while (offset - e->offset >= e->size)
    e = e->after;
  return e;
}

bool tarn__extents_is_outside(const tarn__pool_extents *extents,
                              uint64_t offset, uint64_t size) {
  if (!tarn__extents_reach(offset, size)) return false;
  const tarn__pool_extent *e = find_outside(extents, offset);
  return e->kind == TARN__EXTENT_OUTSIDE &&
         tarn__extent_end(e) - offset >= size;
}

// Makes |size| bytes at |offset|, which are outside, |kind|.
static tarn__pool_extent *enter(tarn__pool_extents *extents, uint64_t offset,
                                size_t size, tarn__pool_extent_kind kind,
                                bool wall) {
  tarn__pool_extent *e = find_outside(extents, offset);
  e = tarn__row_carve(extents, e, offset, offset + size);
  e->wall = wall;
  if (e->after != NULL) e->after->wall = true;
  return tarn__row_settle(extents, e, kind, extents->bins);
}

tarn__pool_extent *tarn__extents_add(tarn__pool_extents *extents,
                                     uint64_t offset, size_t size,
                                     tarn__pool_extent_kind kind) {
  return enter(extents, offset, size, kind, true);
}

void tarn__extents_lengthen(tarn__pool_extents *extents, uint64_t offset,
                            size_t size) {
  (void)enter(extents, offset, size, TARN__EXTENT_OPEN, false);
}

void tarn__extents_remove(tarn__pool_extents *extents,
                          tarn__pool_extent *extent) {
  tarn__pool_extent *next = extent->after;
  unhang(extents, extent);
  extent->wall = false;
  if (next->kind == TARN__EXTENT_OUTSIDE) next->wall = false;
  tarn__row_settle(extents, extent, TARN__EXTENT_OUTSIDE, NULL);
}

// --- blocks ----------------------------------------------------------------

static tarn__pool_extent *take_from(tarn__pool_extents *extents,
                                    const tarn__pool_bins *bins, size_t size,
                                    size_t align, uint64_t *out_serial) {
  tarn__pool_extent *e = tarn__bins_find(bins, size, align);
  if (e == NULL) return NULL;
  uint64_t offset = tarn__align_up(e->offset, align);
  *out_serial = bins->serial;
  extents->taken_bytes += size;
  return offset == e->offset
             ? tarn__row_take_beginning(extents, e, size)
             : tarn__row_carve(extents, e, offset, offset + size);
}

tarn__pool_extent *tarn__extents_take(tarn__pool_extents *extents, size_t size,
                                      size_t align, uint64_t serial,
                                      uint64_t *out_serial) {
  size = tarn__align_up(size, extents->granule);
  tarn__pool_extent *e = NULL;
  const tarn__pool_bins *own =
      serial != 0 ? tarn__row_bins(extents, serial) : NULL;
  if (own != NULL) e = take_from(extents, own, size, align, out_serial);
  if (e == NULL) e = take_from(extents, extents->bins, size, align, out_serial);
  return e;
}

tarn__pool_extent *tarn__extents_take_any(tarn__pool_extents *extents,
                                          size_t size, size_t align,
                                          uint64_t *out_serial) {
  size = tarn__align_up(size, extents->granule);
  tarn__pool_extent *e = NULL;
  const tarn__pool_bins *bins = extents->bins;
  for (; e == NULL && bins != NULL; bins = bins->next)
    e = take_from(extents, bins, size, align, out_serial);
  return e;
}

tarn__pool_extent *tarn__extents_give(tarn__pool_extents *extents,
                                      tarn__pool_extent *extent,
                                      uint64_t serial) {
  return tarn__row_end(extents, extent, TARN__EXTENT_OPEN,
                       tarn__row_bins(extents, serial));
}

void tarn__extents_move(tarn__pool_extents *extents, uint64_t serial,
                        uint64_t to) {
  tarn__pool_bins *from = tarn__row_bins(extents, serial);
  tarn__pool_bins *into = tarn__row_bins(extents, to);
  if (from == NULL || into == NULL || from == into) return;
  tarn__pool_extent *e = NULL;
  while ((e = tarn__bins_next(from, NULL)) != NULL) {
    unhang(extents, e);
    tarn__row_settle(extents, e, TARN__EXTENT_OPEN, into);
  }
}

// --- the invariants ---------------------------------------------------------

static tarn_status broken(const tarn__pool_extent *e, const char *what) {
  return tarn__fail(TARN_E_CORRUPT, "extents: at 0x%llx: %s",
                    (unsigned long long)e->offset, what);
}

static tarn_status check_extent(const tarn__pool_extents *extents,
                                const tarn__pool_extent *e) {
  size_t unit = e->kind == TARN__EXTENT_BARE ? extents->page : extents->granule;
  const tarn__pool_extent *next = e->after;
  if (e->size == 0) return broken(e, "it is empty");
  if (e->offset % unit != 0 || e->size % unit != 0) {
    return broken(e, "it does not begin and end at a unit");
  }
  if ((e->kind == TARN__EXTENT_OPEN) != (e->bins != NULL)) {
    return broken(e, "it is open and in no bins, or the other way round");
  }
  if (e->kind == TARN__EXTENT_ASLEEP &&
      tarn__align_up(e->offset, extents->page) <
          tarn__align_down(tarn__extent_end(e), extents->page)) {
    return broken(e, "a whole page is asleep");
  }
  if (next == NULL) return TARN_OK;
  if (next->before != e) return broken(e, "its links differ");
  if (next->offset != e->offset + e->size) return broken(e, "a gap is behind");
  if (can_join(e, next)) return broken(e, "the next is part of it");
  return TARN_OK;
}

tarn_status tarn__extents_check(const tarn__pool_extents *extents,
                                size_t *out_taken) {
  size_t taken_bytes = 0;
  size_t open = 0;
  size_t bare = 0;
  bool has_hand = extents->hand == NULL;
  *out_taken = 0;
  const tarn__pool_extent *first = extents->first;
  if (first->before != NULL || first->offset != 0) {
    return broken(first, "it is not where the space begins");
  }
  for (const tarn__pool_extent *e = first; e != NULL; e = e->after) {
    TARN__TRY(check_extent(extents, e));
    taken_bytes += e->kind == TARN__EXTENT_TAKEN ? e->size : 0;
    *out_taken += e->kind == TARN__EXTENT_TAKEN;
    open += e->kind == TARN__EXTENT_OPEN;
    bare += e->kind == TARN__EXTENT_BARE;
    has_hand = has_hand || e == extents->hand;
  }
  for (const tarn__pool_bins *b = extents->bins; b != NULL; b = b->next) {
    size_t hanging = 0;
    TARN__TRY(tarn__bins_check(b, &hanging));
    open -= hanging;
  }
  if (taken_bytes != extents->taken_bytes) return broken(first, "taken_bytes");
  if (open != 0) return broken(first, "an open one hangs nowhere");
  if (bare != extents->bare_count) return broken(first, "bare_count");
  if (!has_hand) return broken(first, "the hand is not in the row");
  return TARN_OK;
}
