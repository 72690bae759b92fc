// arena.h - arena_pool, for the files that make it up: arena_pool.c has the
// blocks, arena_memory.c the memory that they are cut out of, arena_layout.c
// the layouts of steps, arena_sleep.c and arena_wake.c what becomes of blocks
// and memory while blocks sleep.
#ifndef TARN_POOL_ARENA_H_
#define TARN_POOL_ARENA_H_

#include "pool/extents.h"
#include "pool/region.h"
#include "pool/segments.h"
#include "pool/strategy.h"

enum { TARN__ARENA_ZONES = 2 };

// A block that sleeps.
typedef struct tarn__pool_sleeper {
  tarn_list node;  // of its zone, by rising address
  tarn__pool_piece *piece;
  uint64_t from;  // the bytes of its extent that have no memory
  uint64_t to;
  void *saved;  // what stood there; NULL: that was dropped
  bool lost;    // something of it could not be unmapped: it may be mapped still
} tarn__pool_sleeper;

typedef struct tarn__pool_arena {
  tarn__pool_strategy base;
  tarn__pool_extents
      zones[TARN__ARENA_ZONES];  // of small blocks, of large ones
  size_t small;                  // the largest that is small
  size_t slack;  // bytes over the live peak up to which holes keep their
                 // pages; TARN__ARENA_SLACK: what suits the peak
  size_t padding;
  size_t direct;      // live blocks and were asked of the device one by
                      // one: they have no extent
  size_t range_size;  // 0: the device has no ranges, or too little for them
  tarn__pool_regions regions;
  tarn__pool_segments segments;
  const tarn__pool_step_layout *layout;  // that stands on it; NULL: none
  tarn_list sleepers[TARN__ARENA_ZONES];
} tarn__pool_arena;

#define TARN__ARENA_SLACK SIZE_MAX

// What a block lacks, for which memory is to be mapped.
typedef struct tarn__pool_arena_need {
  tarn__pool_extents *zone;
  size_t size;  // of the extent
  tarn__pool_request *request;
  bool sparing;  // within the slack, holes may keep their pages; after a call:
                 // they did
  bool adds;     // the pool is to hold more: holes keep their pages in any case
} tarn__pool_arena_need;

// Maps what |plan|, made just now, says. Between a failure and the next call
// the plan has to be made anew.
//
// TARN_FULL  the limit or the device is used up; if |need->sparing| still
//            stands, pages of holes may serve.
TARN_MUST_CHECK tarn_status tarn__arena_map(tarn__pool_arena *self,
                                            tarn__pool_arena_need *need,
                                            const tarn__pool_extent_plan *plan,
                                            tarn__pool_extent **out,
                                            uint64_t *out_serial);

// Adds what a block of |size| bytes can be cut out of: addresses, where the
// device has ranges, or a segment.
//
// TARN_FULL  there are none.
TARN_MUST_CHECK tarn_status tarn__arena_add(tarn__pool_arena *self,
                                            tarn__pool_extents *zone,
                                            size_t size,
                                            tarn__pool_request *request);

// Holes of streams that are gone may be used by any.
void tarn__arena_adopt_orphans(tarn__pool_extents *zone);

// Room in |zone| for what is of the stream with |serial|. If that is a new one,
// those that are gone make room first.
TARN_MUST_CHECK bool tarn__arena_prepare(tarn__pool_extents *zone,
                                         uint64_t serial);

// Finds or makes room for what is needed, and takes it. |*out_serial|: whose it
// was.
TARN_MUST_CHECK tarn_status tarn__arena_find(tarn__pool_arena *self,
                                             tarn__pool_arena_need *need,
                                             tarn__pool_extent **out,
                                             uint64_t *out_serial);

// The same in a hole of the other zone, where there is no more memory:
// splitting a hole for good is better than a refusal.
TARN_MUST_CHECK bool tarn__arena_find_elsewhere(tarn__pool_arena *self,
                                                tarn__pool_arena_need *need,
                                                tarn__pool_extent **out,
                                                uint64_t *out_serial);

// Whether |lacking| bytes more, for a request of |wanted|, stay within the
// slack.
bool tarn__arena_may_grow(const tarn__pool_arena *self, size_t wanted,
                          size_t lacking);

// As the strategy's table has them.
tarn_status tarn__arena_set_up(tarn__pool_strategy *strategy,
                               const tarn__pool_request *request,
                               tarn__pool_step_layout *layout);
void tarn__arena_drop_layout(tarn__pool_strategy *strategy,
                             const tarn__pool_step_layout *layout);
// Nodes of |zone| that the layout has set aside.
size_t tarn__arena_layout_nodes(const tarn__pool_arena *self, int zone);
size_t tarn__arena_granule(const tarn__pool_strategy *strategy);

// As the table has it.
tarn_status tarn__arena_trim(tarn__pool_strategy *strategy, size_t target,
                             unsigned how);

tarn_status tarn__arena_reserve(tarn__pool_strategy *strategy, size_t size);

// Sleeping and waking, as in the table of strategies.
tarn_status tarn__arena_sleep(tarn__pool_strategy *strategy, tarn_tag tag,
                              bool saves, bool *out_asleep);
tarn_status tarn__arena_wake(tarn__pool_strategy *strategy, tarn_tag tag);
tarn_status tarn__arena_end_wake(tarn__pool_strategy *strategy, tarn_tag tag,
                                 bool keep);

// Ends the block of |sleeper|, whose piece has been joined: what it held is
// dropped, and its addresses are bare or open, for the stream with |serial|.
void tarn__arena_end_sleeper(tarn__pool_arena *self, tarn__pool_extents *zone,
                             tarn__pool_extent *extent,
                             tarn__pool_sleeper *sleeper, uint64_t serial);

// Frees what sleepers have on the host.
void tarn__arena_forget_sleepers(tarn__pool_arena *self);

// Walks the sleepers.
TARN_MUST_CHECK tarn_status
tarn__arena_check_sleepers(const tarn__pool_arena *self);

// --- sleepers ---------------------------------------------------------------
//
// The blocks of an arena_pool that sleep, in lists by zone and by
// rising address, and the pages that they lack: for the files that put them to
// sleep and wake them.
//
// Those that a call is at are marked, as their pieces are |resizing|, and of
// one tag: "on their way".

// Pages of sleepers of one tag, without a gap.
typedef struct tarn__pool_sleep_run {
  uint64_t from;
  uint64_t to;
  tarn_list *last;  // of the sleepers in it
} tarn__pool_sleep_run;

static inline tarn__pool_sleeper *tarn__sleeper_of(tarn_list *node) {
  return tarn_list_entry(node, tarn__pool_sleeper, node);
}

static inline size_t tarn__sleeper_bytes(const tarn__pool_sleeper *s) {
  return (size_t)(s->to - s->from);
}

// The first page that it lacks, and what is behind the last.
static inline uint64_t tarn__sleeper_page(const tarn__pool_arena *self,
                                          const tarn__pool_sleeper *s) {
  return tarn__align_down(s->from, self->regions.page);
}

static inline uint64_t tarn__sleeper_end(const tarn__pool_arena *self,
                                         const tarn__pool_sleeper *s) {
  return tarn__align_up(s->to, self->regions.page);
}

static inline bool tarn__sleeper_moves(const tarn__pool_sleeper *s,
                                       tarn_tag tag) {
  return s->piece->resizing && s->piece->tag == tag;
}

// Frees what it has on the host; it is in no list.
void tarn__sleeper_free(tarn__pool_sleeper *s);

// Frees all that are in the list at |head|.
void tarn__sleepers_forget(tarn_list *head);

// The first run of those on their way behind |node|, which may be the head.
bool tarn__sleepers_run(const tarn__pool_arena *self, const tarn_list *head,
                        const tarn_list *node, tarn_tag tag,
                        tarn__pool_sleep_run *out);

// The first pages of |run| from |*at| on that have memory, or have none; no
// more than |most|.
bool tarn__sleepers_part(const tarn__pool_arena *self,
                         const tarn__pool_sleep_run *run, uint64_t *at,
                         bool has, size_t most, tarn__pool_sleep_run *out);

// The bytes of all runs.
size_t tarn__sleepers_size(const tarn__pool_arena *self, const tarn_list *head,
                           tarn_tag tag);

// The driver may have unmapped these pages or not.
void tarn__sleepers_mark_lost(tarn_list *head, tarn_tag tag,
                              const tarn__pool_sleep_run *part);

// Gives the memory of all pages of those on their way back, what they have. The
// lock is let go meanwhile. The first failure is returned.
tarn_status tarn__sleepers_unmap(tarn__pool_arena *self, tarn_list *head,
                                 tarn_tag tag);

#endif  // TARN_POOL_ARENA_H_
