// extents.h - which bytes of a space of addresses are taken: numbers only,
// the memory behind them is never touched.
//
//   [ outside | taken | open | taken | open | bare          | taken | outside ]
//
// An extent is outside (not the owner's), bare (the owner's addresses without
// memory), open (a hole: unused memory) or taken (a block). A lost extent is
// the owner's, in an unknown state. A sleeping extent is a hole without memory,
// in a page that it shares with a sleeping block (extents_memory.c). Neighbours
// of one kind, other than taken ones, are one extent, so giving back coalesces
// at once.
//
// An open extent remembers the stream that may still use it: extents of one
// stream have bins of their own (bins.c). Those of different streams stay
// apart; an unused one joins with any.
//
// Addresses are added and removed by tarn__extents_add and _remove. Memory is
// mapped by pages, in two steps, since mapping takes time while other threads
// go on: claim takes the bytes at once, and the owner then maps them or gives
// up; strip takes pages out of holes, and the owner then unmaps them and calls
// tarn__extents_end_strip.
//
// Not synchronized: the owner's lock guards it.
#ifndef TARN_POOL_EXTENTS_H_
#define TARN_POOL_EXTENTS_H_

#include "device/memory.h"
#include "pool/bins.h"
#include "tarn/base.h"

// --- waits ------------------------------------------------------------------
//
// The streams whose work must be done before memory is given back.

enum { TARN__WAITS = 4 };

typedef struct tarn__pool_waits {
  uint64_t serials[TARN__WAITS];
  size_t count;  // more than there is room for: all streams of the place
} tarn__pool_waits;

// Adds the stream with |serial|; 0 is none.
static inline void tarn__waits_add(tarn__pool_waits *waits, uint64_t serial) {
  size_t known = waits->count < TARN__WAITS ? waits->count : TARN__WAITS;
  if (serial == 0) return;
  for (size_t i = 0; i < known; i++) {
    if (waits->serials[i] == serial) return;
  }
  if (known < TARN__WAITS) waits->serials[known] = serial;
  waits->count++;
}

// The calling thread waits for all of them, which use memory of |place|. The
// first failure is returned.
static inline tarn_status tarn__waits_wait(const tarn__pool_waits *waits,
                                           tarn_place place) {
  tarn_status first = TARN_OK;
  if (waits->count > TARN__WAITS) return tarn__place_synchronize(place);
  for (size_t i = 0; i < waits->count; i++) {
    tarn__keep_first(&first, tarn_stream_join(NULL, waits->serials[i]));
  }
  return first;
}

// Nodes that one call may need, and that the end of a claim may.
enum { TARN__SPARE_NODES = 6, TARN__PROMISED = 2 };

typedef struct tarn__pool_extents {
  size_t granule;  // offsets and sizes are multiples of it; a power of two
  size_t page;     // where memory comes and goes: a multiple of it, likewise
  tarn__pool_extent *first;
  tarn_list bare;  // all bare extents, in no order
  size_t bare_count;
  size_t taken_bytes;
  tarn__pool_extent *hand;               // what lost pages last; NULL: nothing
  tarn__pool_bins *bins;                 // a list; the first: unused ones
  struct tarn__pool_extent_slab *slabs;  // nodes never move
  tarn__pool_extent *unused;             // nodes, linked by |after|
  size_t spare;                          // how many of them
  size_t promised;                       // and how many for claims that are out
  size_t set_aside;  // and how many for sleeping blocks and for layouts that
                     // will be split
} tarn__pool_extents;

// A space in which everything is outside.
TARN_MUST_CHECK tarn_status tarn__extents_init(tarn__pool_extents *extents,
                                               size_t granule, size_t page);
void tarn__extents_deinit(tarn__pool_extents *extents);

// Makes room for the needs of the next call, and bins for the stream with
// |serial|. False: no host memory. Each function below relies on it.
TARN_MUST_CHECK bool tarn__extents_reserve(tarn__pool_extents *extents,
                                           uint64_t serial);

// Whether |size| bytes at |offset| are in the space.
bool tarn__extents_reach(uint64_t offset, uint64_t size);

// Whether |size| bytes at |offset| are in the space, and all outside. A walk.
bool tarn__extents_is_outside(const tarn__pool_extents *extents,
                              uint64_t offset, uint64_t size);

// Makes |size| outside bytes at |offset| BARE or OPEN, as |kind| says. They are
// not joined with their neighbours. Returns the extent: until they are removed,
// an extent that begins at |offset| is this one.
tarn__pool_extent *tarn__extents_add(tarn__pool_extents *extents,
                                     uint64_t offset, size_t size,
                                     tarn__pool_extent_kind kind);

// Makes |size| outside bytes at |offset| open, and joins them with the extent
// that ends there.
void tarn__extents_lengthen(tarn__pool_extents *extents, uint64_t offset,
                            size_t size);

// Makes a free extent outside.
void tarn__extents_remove(tarn__pool_extents *extents,
                          tarn__pool_extent *extent);

// --- blocks ----------------------------------------------------------------

// Takes |size| bytes at a multiple of |align| from the holes of the stream with
// |serial|, or from unused ones. NULL: no hole is large enough. Sizes are
// rounded up to the granule. |*out_serial|: the stream that used them last.
tarn__pool_extent *tarn__extents_take(tarn__pool_extents *extents, size_t size,
                                      size_t align, uint64_t serial,
                                      uint64_t *out_serial);

// The same out of the holes of any stream.
tarn__pool_extent *tarn__extents_take_any(tarn__pool_extents *extents,
                                          size_t size, size_t align,
                                          uint64_t *out_serial);

// Makes a taken extent open, for the stream with |serial|. Returns the hole
// that it is part of now.
tarn__pool_extent *tarn__extents_give(tarn__pool_extents *extents,
                                      tarn__pool_extent *extent,
                                      uint64_t serial);

// Cuts a taken extent at its end, or extends it into the open extent behind it.
// False: not enough of that is unused or the extent's stream's.
TARN_MUST_CHECK bool tarn__extents_resize(tarn__pool_extents *extents,
                                          tarn__pool_extent *extent,
                                          size_t size, uint64_t serial);

// What the stream with |serial| may still use, is no longer used: its work
// is done, or |to| waits for it.
void tarn__extents_move(tarn__pool_extents *extents, uint64_t serial,
                        uint64_t to);

// --- memory ----------------------------------------------------------------

// The place where a block that fits in no hole needs the least new memory.
typedef struct tarn__pool_extent_plan {
  tarn__pool_extent *bare;  // NULL: nowhere, the addresses are used up
  uint64_t offset;          // of the block
  uint64_t from;            // the bare pages that it needs
  uint64_t to;
} tarn__pool_extent_plan;

tarn__pool_extent_plan tarn__extents_plan(const tarn__pool_extents *extents,
                                          size_t size, size_t align,
                                          uint64_t serial);

// The same for |size| bytes, a multiple of the page, of bare pages only.
tarn__pool_extent_plan tarn__extents_plan_bare(
    const tarn__pool_extents *extents, size_t size);

// The same for the bytes that |extent|, a block of that stream, lacks of
// |size|: the plan is for a block of its own, right behind it.
tarn__pool_extent_plan tarn__extents_plan_behind(
    const tarn__pool_extents *extents, const tarn__pool_extent *extent,
    size_t size, uint64_t serial);

// Takes the block of a plan that was made under the same hold of the lock, with
// all pages that it needs: the owner maps those. |*out_serial|: the stream of
// the holes in it. One of the next two calls must follow.
tarn__pool_extent *tarn__extents_claim(tarn__pool_extents *extents,
                                       const tarn__pool_extent_plan *plan,
                                       size_t size, uint64_t *out_serial);

// The memory is mapped: the rest behind the block becomes open.
tarn__pool_extent *tarn__extents_keep(tarn__pool_extents *extents,
                                      tarn__pool_extent *extent,
                                      const tarn__pool_extent_plan *plan,
                                      size_t size);

// No memory was mapped: restores the state, or, with LOST as the |kind| of the
// pages that were to be mapped, all the rest of it.
void tarn__extents_unclaim(tarn__pool_extents *extents,
                           tarn__pool_extent *extent,
                           const tarn__pool_extent_plan *plan, uint64_t serial,
                           tarn__pool_extent_kind kind);

// Takes up to |most| bytes of whole pages from an unused hole: the first by
// address from where the last call ended, as a hand goes round a clock. So what
// has no memory grows together, and pages that have moved are the last to move
// again. NULL: there are none, or no nodes are left.
tarn__pool_extent *tarn__extents_strip(tarn__pool_extents *extents,
                                       size_t most);

// Holes that touch, whosever they are.
typedef struct tarn__pool_extent_run {
  const tarn__pool_extent *first;
  const tarn__pool_extent *last;
} tarn__pool_extent_run;

// The run that contains the open |extent|.
tarn__pool_extent_run tarn__extents_run(const tarn__pool_extent *extent);

// Takes up to |most| bytes of whole pages from the first run behind |*cursor|
// that has some, and moves |*cursor| behind them. |*out_waits|: the streams
// that used them. NULL: there are none, or no nodes are left.
tarn__pool_extent *tarn__extents_strip_run(tarn__pool_extents *extents,
                                           uint64_t *cursor, size_t most,
                                           tarn__pool_waits *out_waits);

// Makes a stripped extent bare, or lost.
void tarn__extents_end_strip(tarn__pool_extents *extents,
                             tarn__pool_extent *extent,
                             tarn__pool_extent_kind kind);

// --- blocks without memory -------------------------------------------------

// Nodes that the end of a block's sleep may need; and its beginning.
enum { TARN__SLEEP_NODES = 4, TARN__LULL_NODES = 2 };

// Sets |count| nodes aside. False: no host memory, and no node is set aside.
TARN_MUST_CHECK bool tarn__extents_set_aside(tarn__pool_extents *extents,
                                             size_t count);

// |count| of them are for any use again.
static inline void tarn__extents_release_aside(tarn__pool_extents *extents,
                                               size_t count) {
  extents->set_aside -= count;
}

// Puts the holes around the block |extent| in the pages from |from| to |to| to
// sleep: those pages will lose their memory. Adds the streams that use them to
// |waits|.
void tarn__extents_lull(tarn__pool_extents *extents, tarn__pool_extent *extent,
                        uint64_t from, uint64_t to, tarn__pool_waits *waits);

// Opens the sleeping holes there: those pages have memory again, which is
// unused.
void tarn__extents_rouse(tarn__pool_extents *extents, tarn__pool_extent *extent,
                         uint64_t from, uint64_t to);

// Ends a block whose bytes from |from| to |to| have no memory. The rest becomes
// open, for the stream with |serial|. Pages without blocks become |kind|, BARE
// or LOST. Returns the bytes of those pages.
size_t tarn__extents_give_asleep(tarn__pool_extents *extents,
                                 tarn__pool_extent *extent, uint64_t from,
                                 uint64_t to, uint64_t serial,
                                 tarn__pool_extent_kind kind);

// Checks the invariants in a walk. |*out_taken|: how many extents are taken.
TARN_MUST_CHECK tarn_status
tarn__extents_check(const tarn__pool_extents *extents, size_t *out_taken);

// --- extents row ------------------------------------------------------------
//
// The row that extents stand in, for the files that work on it.
//
// What "hangs" is in its bin or in the list of bare extents; an extent must
// hang nowhere while its size or kind changes.

static inline uint64_t tarn__extent_serial(const tarn__pool_extent *e) {
  return e->bins != NULL ? e->bins->serial : 0;
}

static inline uint64_t tarn__align_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}

static inline uint64_t tarn__align_down(uint64_t value, uint64_t unit) {
  return value & ~(unit - 1);
}

// The bins of the stream with |serial|; NULL if it has none.
tarn__pool_bins *tarn__row_bins(const tarn__pool_extents *extents,
                                uint64_t serial);

// Cuts |e| at |offset|, which is inside. The part behind is like it; both hang
// nowhere.
tarn__pool_extent *tarn__row_cut(tarn__pool_extents *extents,
                                 tarn__pool_extent *e, uint64_t offset);

// Joins |e| with its successor. Both are in no list.
void tarn__row_join(tarn__pool_extents *extents, tarn__pool_extent *e);

// Makes |e| an extent of |kind|, joined with its neighbours, and lists it.
tarn__pool_extent *tarn__row_settle(tarn__pool_extents *extents,
                                    tarn__pool_extent *e,
                                    tarn__pool_extent_kind kind,
                                    tarn__pool_bins *bins);

// The same for a taken extent, whose bytes no longer count as taken.
tarn__pool_extent *tarn__row_end(tarn__pool_extents *extents,
                                 tarn__pool_extent *e,
                                 tarn__pool_extent_kind kind,
                                 tarn__pool_bins *bins);

// Takes the bytes from |from| to |to| out of |e|, which hangs: they are taken.
tarn__pool_extent *tarn__row_carve(tarn__pool_extents *extents,
                                   tarn__pool_extent *e, uint64_t from,
                                   uint64_t to);

// --- the short ways ---------------------------------------------------------
//
// Most blocks are cut out of the beginning of an unused hole and join unused
// holes again. These do it where nothing else has to be looked at, and change
// nothing where something has. Parts of each hit, so that their callers have
// them inside.

static inline void tarn__row_add_node(tarn__pool_extents *extents,
                                      tarn__pool_extent *node) {
  node->after = extents->unused;
  extents->unused = node;
  extents->spare++;
}

static inline tarn__pool_extent *tarn__row_new_node(
    tarn__pool_extents *extents) {
  tarn__pool_extent *node = extents->unused;
  extents->unused = node->after;
  extents->spare--;
  return node;
}

// |e| has become a part of |whole|.
static inline void tarn__row_end_node(tarn__pool_extents *extents,
                                      tarn__pool_extent *e,
                                      tarn__pool_extent *whole) {
  if (extents->hand == e) extents->hand = whole;
  tarn__row_add_node(extents, e);
}

// The beginning of the hole |e|. Behind a wall the node stays there, since
// others know it; else the rest keeps it, and mostly its bin.
static inline tarn__pool_extent *tarn__row_take_beginning(
    tarn__pool_extents *extents, tarn__pool_extent *e, size_t size) {
  if (e->size == size || e->wall) {
    return tarn__row_carve(extents, e, e->offset, e->offset + size);
  }
  tarn__pool_extent *taken = tarn__row_new_node(extents);
  taken->offset = e->offset;
  taken->size = size;
  taken->before = e->before;
  taken->after = e;
  taken->bins = NULL;
  taken->kind = TARN__EXTENT_TAKEN;
  taken->wall = false;
  e->before->after = taken;
  e->before = taken;
  e->offset += size;
  tarn__bins_resize(e->bins, e, e->size - size);
  return taken;
}

// Takes |size| bytes, a multiple of the granule, out of an unused hole. NULL:
// tarn__extents_reserve and tarn__extents_take will tell.
static inline tarn__pool_extent *tarn__extents_take_now(
    tarn__pool_extents *extents, size_t size) {
  size_t nodes = TARN__SPARE_NODES + extents->promised + extents->set_aside;
  if (extents->spare < nodes) return NULL;
  tarn__pool_extent *e = tarn__bins_closest(extents->bins, size);
  if (e == NULL) return NULL;
  extents->taken_bytes += size;
  return tarn__row_take_beginning(extents, e, size);
}

// Whether |e| is a hole that hangs in |bins|; |*out_other|: or elsewhere.
static inline bool tarn__row_is_hole(const tarn__pool_extent *e,
                                     const tarn__pool_bins *bins,
                                     bool *out_other) {
  if (e->kind != TARN__EXTENT_OPEN) return false;
  *out_other |= e->bins != bins;
  return true;
}

// Appends the taken |e| to the hole before it, and to that the hole behind, if
// |both|.
static inline void tarn__row_append(tarn__pool_extents *extents,
                                    tarn__pool_extent *e, bool both) {
  tarn__pool_extent *hole = e->before;
  tarn__pool_extent *next = e->after;
  size_t size = hole->size + e->size;
  tarn__row_end_node(extents, e, hole);
  if (both) {
    tarn__pool_extent *last = next;
    size += last->size;
    next = last->after;
    tarn__bins_unhang(last->bins, last);
    tarn__row_end_node(extents, last, hole);
  }
  hole->after = next;
  if (next != NULL) next->before = hole;
  tarn__bins_resize(hole->bins, hole, size);
}

// Puts it in front of the hole behind it.
static inline void tarn__row_prepend(tarn__pool_extents *extents,
                                     tarn__pool_extent *e) {
  tarn__pool_extent *hole = e->after;
  hole->offset = e->offset;
  hole->before = e->before;
  hole->before->after = hole;
  tarn__bins_resize(hole->bins, hole, hole->size + e->size);
  tarn__row_end_node(extents, e, hole);
}

// Opens a taken extent that no stream uses. False: tarn__extents_give will
// tell.
static inline bool tarn__extents_give_now(tarn__pool_extents *extents,
                                          tarn__pool_extent *e) {
  tarn__pool_bins *bins = extents->bins;
  const tarn__pool_extent *before = e->before;
  const tarn__pool_extent *after = e->after;
  // Behind a wall the node stays: others know it.
  bool other = e->wall || before == NULL || after == NULL;
  if (other) return false;
  bool joins_before = tarn__row_is_hole(before, bins, &other);
  bool joins_after = tarn__row_is_hole(after, bins, &other) && !after->wall;
  if (other) return false;
  extents->taken_bytes -= e->size;
  if (joins_before) {
    tarn__row_append(extents, e, joins_after);
  } else if (joins_after) {
    tarn__row_prepend(extents, e);
  } else {
    e->kind = TARN__EXTENT_OPEN;
    e->bins = bins;
    tarn__bins_hang(bins, e);
  }
  return true;
}

#endif  // TARN_POOL_EXTENTS_H_
