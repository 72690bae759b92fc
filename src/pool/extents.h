// extents.h - which bytes of a space of addresses are taken: numbers only,
// the memory behind them is never touched.
//
//   [ outside | taken | open | taken | open | bare          | taken | outside ]
//
// An extent is outside (not the owner's), bare (its own addresses, with no
// memory behind them), open (a hole: memory that nobody uses) or taken (a
// block). What is lost is the owner's, but nobody knows what is there. What is
// asleep is a hole without memory, in a page that shares it with a block
// without memory (extents_sleep.c).
// Neighbours of one kind, unless they are taken, are one extent, so giving back
// coalesces at once.
//
// An open extent remembers which stream may still be at work in it, if any:
// those of one stream hang in bins of their own (bins.c). Two of different
// streams stay apart; one that no stream uses joins with any.
//
// Addresses come and go by tarn__extents_add and _remove; memory by pages, in
// two steps, since mapping takes time and others go on meanwhile: claim makes
// the bytes taken at once, and the owner then maps or gives up; strip takes
// pages out of holes, and the owner then unmaps and calls _bare.
//
// Not synchronized: the owner's lock guards it.
#ifndef TARN_POOL_EXTENTS_H_
#define TARN_POOL_EXTENTS_H_

#include "device/memory.h"
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

// --- bins -------------------------------------------------------------------
//
// Open extents by size, found in a bounded number of steps.
//
//   rows   one for each power of two of granules, cut in 16 bins
//     └► bin ─► extent ─► extent       the newest first
//
// A bit a row and a bit a bin say which are not empty. A request looks into
// its own bin for the closest fit among the first few, then takes the best of
// the next bin that is not empty: little is wasted. Only where that finds
// nothing is every extent compared, because more memory would cost more.
//
// Not synchronized: the owner's lock guards it.

typedef struct tarn__pool_extent tarn__pool_extent;

enum {
  TARN__BIN_CUTS = 16,
  TARN__BIN_ROWS = 64,
};

// Those of one stream.
typedef struct tarn__pool_bins {
  struct tarn__pool_bins *next;  // those of another stream
  uint64_t serial;  // of the stream whose work may still use them; 0: none
  size_t granule;   // sizes are multiples of it
  size_t bytes;
  uint64_t rows;  // bit per row that has a bin with something in it
  uint16_t cuts[TARN__BIN_ROWS];
  tarn_list lists[TARN__BIN_ROWS][TARN__BIN_CUTS];
} tarn__pool_bins;

void tarn__bins_init(tarn__pool_bins *bins, uint64_t serial, size_t granule);

void tarn__bins_hang(tarn__pool_bins *bins, tarn__pool_extent *extent);
void tarn__bins_unhang(tarn__pool_bins *bins, tarn__pool_extent *extent);

// An extent in which |size| bytes at a multiple of |align| fit; NULL if none
// does.
tarn__pool_extent *tarn__bins_find(const tarn__pool_bins *bins, size_t size,
                                   size_t align);

// The next extent in an order in which larger ones mostly come first; NULL
// behind the last. |after| NULL: the first.
tarn__pool_extent *tarn__bins_next(const tarn__pool_bins *bins,
                                   const tarn__pool_extent *after);

// The size of the largest; 0: none.
size_t tarn__bins_largest(const tarn__pool_bins *bins);

// Walks all and counts; checks the invariants.
TARN_MUST_CHECK tarn_status tarn__bins_check(const tarn__pool_bins *bins,
                                             size_t *out_count);

typedef enum tarn__pool_extent_kind {
  TARN__EXTENT_OUTSIDE,
  TARN__EXTENT_BARE,
  TARN__EXTENT_OPEN,
  TARN__EXTENT_TAKEN,
  TARN__EXTENT_LOST,
  TARN__EXTENT_ASLEEP,
} tarn__pool_extent_kind;

struct tarn__pool_extent {
  uint64_t offset;
  size_t size;
  struct tarn__pool_extent
      *before;  // by offset; NULL at either end of the space
  struct tarn__pool_extent *after;
  union {
    tarn_list node;  // in its bin, or in the list of bare extents
    void *taker;     // TAKEN: what the owner pleases
  };
  tarn__pool_bins *bins;  // OPEN: where it hangs; else NULL
  tarn__pool_extent_kind kind;
  bool wall;  // never one with what is before it: another piece of the device's
              // memory, or another reserved range, begins here
};

// Nodes that the end of a claim may need.
enum { TARN__PROMISED = 2 };

typedef struct tarn__pool_extents {
  size_t granule;  // offsets and sizes are multiples of it; a power of two
  size_t page;     // where memory comes and goes: a multiple of it, likewise
  tarn__pool_extent *first;
  tarn_list bare;  // all bare extents, in no order
  size_t bare_count;
  size_t taken_bytes;
  tarn__pool_bins *bins;  // a list; the first: of what no stream uses
  struct tarn__pool_extent_slab *slabs;  // nodes never move
  tarn_list unused;                      // nodes
  size_t spare;                          // how many of them
  size_t promised;                       // and how many for claims that are out
  size_t set_aside;  // and how many for what sleeps, or is to be
                     // split
} tarn__pool_extents;

// A space in which everything is outside.
TARN_MUST_CHECK tarn_status tarn__extents_init(tarn__pool_extents *extents,
                                               size_t granule, size_t page);
void tarn__extents_deinit(tarn__pool_extents *extents);

// Whether there are bins for the stream with |serial|.
bool tarn__extents_knows(const tarn__pool_extents *extents, uint64_t serial);

// Room for what the next call needs, and bins for the stream with |serial|.
// False: no host memory. Each function below relies on it.
TARN_MUST_CHECK bool tarn__extents_reserve(tarn__pool_extents *extents,
                                           uint64_t serial);

// Whether |size| bytes at |offset| are in the space.
bool tarn__extents_reach(uint64_t offset, uint64_t size);

// Whether |size| bytes at |offset| are in the space, and all outside. A walk.
bool tarn__extents_is_outside(const tarn__pool_extents *extents,
                              uint64_t offset, uint64_t size);

// Makes |size| bytes at |offset|, which are outside, |kind|: BARE or OPEN. They
// stay apart from what touches them. Returns them: until they are removed,
// whatever extent begins at |offset| is this one.
tarn__pool_extent *tarn__extents_add(tarn__pool_extents *extents,
                                     uint64_t offset, size_t size,
                                     tarn__pool_extent_kind kind);

// Makes |size| bytes at |offset|, which are outside, open and one with what
// ends there.
void tarn__extents_lengthen(tarn__pool_extents *extents, uint64_t offset,
                            size_t size);

// Makes a free extent outside.
void tarn__extents_remove(tarn__pool_extents *extents,
                          tarn__pool_extent *extent);

// --- blocks ----------------------------------------------------------------

// Takes |size| bytes at a multiple of |align| out of the holes of the stream
// with |serial|, or of those that no stream uses. NULL: none is large enough.
// Sizes are rounded up to the granule. |*out_serial| is whose it was.
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

// Cuts a taken extent at its end, or extends it into what is open behind it.
// False: there is not enough that belongs to its stream or to none.
TARN_MUST_CHECK bool tarn__extents_resize(tarn__pool_extents *extents,
                                          tarn__pool_extent *extent,
                                          size_t size, uint64_t serial);

// What the stream with |serial| may still use, is no longer used: its work
// is done, or |to| waits for it.
void tarn__extents_move(tarn__pool_extents *extents, uint64_t serial,
                        uint64_t to);

// --- memory ----------------------------------------------------------------

// Where a block that fits in no hole can be had for the least memory that is
// not there yet.
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

// The same for what |extent|, a block of that stream, lacks of |size| bytes:
// the plan is one for a block of its own, right behind it.
tarn__pool_extent_plan tarn__extents_plan_behind(
    const tarn__pool_extents *extents, const tarn__pool_extent *extent,
    size_t size, uint64_t serial);

// Makes |extent| and the block right behind it one.
void tarn__extents_join(tarn__pool_extents *extents, tarn__pool_extent *extent);

// Takes the block of a plan that was made just now, with all of the pages that
// it needs: the owner maps those. |*out_serial| is whose holes it is in part
// made of. One of the next two must follow.
tarn__pool_extent *tarn__extents_claim(tarn__pool_extents *extents,
                                       const tarn__pool_extent_plan *plan,
                                       size_t size, uint64_t *out_serial);

// The memory is there: what the block does not need becomes open.
tarn__pool_extent *tarn__extents_keep(tarn__pool_extents *extents,
                                      tarn__pool_extent *extent,
                                      const tarn__pool_extent_plan *plan,
                                      size_t size);

// No memory came: all is as it was, or, with LOST as the |kind| of the pages
// that were to be mapped, all else.
void tarn__extents_unclaim(tarn__pool_extents *extents,
                           tarn__pool_extent *extent,
                           const tarn__pool_extent_plan *plan, uint64_t serial,
                           tarn__pool_extent_kind kind);

// Takes up to |most| bytes of whole pages out of a hole that no stream uses.
// NULL: there are none, or no nodes are left.
tarn__pool_extent *tarn__extents_strip(tarn__pool_extents *extents,
                                       size_t most);

// Holes that touch, whosever they are.
typedef struct tarn__pool_extent_run {
  uint64_t from;
  uint64_t to;
} tarn__pool_extent_run;

// The run of which the open |extent| is one.
tarn__pool_extent_run tarn__extents_run(const tarn__pool_extent *extent);

// Takes up to |most| bytes of whole pages out of the first run that has some
// behind |*cursor|, which moves behind them. |*out_waits|: whose they were.
// NULL: there are none, or no nodes are left.
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

// Sets |count| nodes aside. False: no host memory, none is.
TARN_MUST_CHECK bool tarn__extents_set_aside(tarn__pool_extents *extents,
                                             size_t count);

// |count| of them are for any use again.
static inline void tarn__extents_release_aside(tarn__pool_extents *extents,
                                               size_t count) {
  extents->set_aside -= count;
}

// What is open around the block |extent| in the pages from |from| to |to|
// falls asleep: those pages are to lose their memory. Adds to |waits| whose it
// was.
void tarn__extents_lull(tarn__pool_extents *extents, tarn__pool_extent *extent,
                        uint64_t from, uint64_t to, tarn__pool_waits *waits);

// What is asleep there is open again: those pages have memory, which no stream
// uses.
void tarn__extents_rouse(tarn__pool_extents *extents, tarn__pool_extent *extent,
                         uint64_t from, uint64_t to);

// Ends a block of which the bytes from |from| to |to| have no memory. The rest
// becomes open, for the stream with |serial|. The pages in which no block is
// left become |kind|, BARE or LOST; |*out_size| is what they have.
void tarn__extents_give_asleep(tarn__pool_extents *extents,
                               tarn__pool_extent *extent, uint64_t from,
                               uint64_t to, uint64_t serial,
                               tarn__pool_extent_kind kind, size_t *out_size);

// Checks the invariants in a walk.
TARN_MUST_CHECK tarn_status
tarn__extents_check(const tarn__pool_extents *extents);

// How many extents are taken. A walk.
size_t tarn__extents_count_taken(const tarn__pool_extents *extents);

// --- extents row ------------------------------------------------------------
//
// The row that extents stand in, for the files that work on it.
//
// What "hangs" is in its bin or in the list of bare extents; an extent must
// hang nowhere while its size or kind changes.

static inline tarn__pool_extent *tarn__extent_of_node(tarn_list *node) {
  return tarn_list_entry(node, tarn__pool_extent, node);
}

static inline uint64_t tarn__extent_end(const tarn__pool_extent *e) {
  return e->offset + e->size;
}

static inline uint64_t tarn__extent_serial(const tarn__pool_extent *e) {
  return e->bins != NULL ? e->bins->serial : 0;
}

static inline uint64_t tarn__align_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) & ~(unit - 1);
}

static inline uint64_t tarn__align_down(uint64_t value, uint64_t unit) {
  return value & ~(unit - 1);
}

// The bins of the stream with |serial|; NULL: it has none.
tarn__pool_bins *tarn__row_bins(const tarn__pool_extents *extents,
                                uint64_t serial);

// Cuts |e| at |offset|, which is inside. The part behind is like it; both hang
// nowhere.
tarn__pool_extent *tarn__row_cut(tarn__pool_extents *extents,
                                 tarn__pool_extent *e, uint64_t offset);

// Makes |e| and what stands behind it one. Both hang nowhere.
void tarn__row_join(tarn__pool_extents *extents, tarn__pool_extent *e);

// Hangs |e|, which is of |kind| from now on, as one with its neighbours.
tarn__pool_extent *tarn__row_settle(tarn__pool_extents *extents,
                                    tarn__pool_extent *e,
                                    tarn__pool_extent_kind kind,
                                    tarn__pool_bins *bins);

// Takes the bytes from |from| to |to| out of |e|, which hangs: they are taken.
tarn__pool_extent *tarn__row_carve(tarn__pool_extents *extents,
                                   tarn__pool_extent *e, uint64_t from,
                                   uint64_t to);

#endif  // TARN_POOL_EXTENTS_H_
