// arena.h - arena_pool, for the files that make it up: arena_pool.c has the
// blocks, arena_ground.c the ground of steps, arena_memory.c the memory that
// they are cut out of, arena_sleep.c what becomes of blocks and memory while
// blocks sleep.
#ifndef TARN_POOL_ARENA_H_
#define TARN_POOL_ARENA_H_

#include "pool/extents.h"
#include "pool/moves.h"
#include "pool/region.h"
#include "pool/segments.h"
#include "pool/strategy.h"

enum { TARN__ARENA_ZONES = 2 };

// A block that sleeps.
typedef struct tarn__pool_sleeper tarn__pool_sleeper;

// How much may be held over the live peak while holes keep their pages.
typedef enum tarn__pool_slack_kind {
  TARN__SLACK_USUAL,  // what suits the peak, and more where moves cost too much
  TARN__SLACK_BYTES,
  TARN__SLACK_PERCENT,  // of the peak
} tarn__pool_slack_kind;

typedef struct tarn__pool_slack {
  tarn__pool_slack_kind kind;
  size_t value;  // of the last two
} tarn__pool_slack;

typedef struct tarn__pool_arena {
  tarn__pool_strategy base;
  tarn__pool_extents
      zones[TARN__ARENA_ZONES];  // of small blocks, of large ones
  size_t small;                  // the largest that is small
  tarn__pool_slack slack;
  size_t padding;
  size_t direct;      // live blocks that are allocations of their own,
                      // without an extent
  size_t range_size;  // 0: the device has no ranges, or too little for them
  tarn__pool_regions regions;
  tarn__pool_moves moves;  // of pages of the regions
  tarn__pool_segments segments;
  size_t grounds;      // of layouts of steps
  size_t ground_cuts;  // nodes that are set aside for their ends
  tarn_list sleepers;
} tarn__pool_arena;

static inline tarn__pool_arena *tarn__arena_of(tarn__pool_strategy *strategy) {
  return (tarn__pool_arena *)(void *)strategy;  // the base is the first member
}

// The missing memory of a block, which has to be mapped.
typedef struct tarn__pool_arena_need {
  tarn__pool_extents *zone;
  size_t size;  // of the extent
  tarn__pool_request *request;
  bool sparing;  // within the slack, holes may keep their pages; after a call:
                 // they did
  bool adds;     // the pool is to hold more: holes keep their pages in any case
  bool bounded;  // it may hold no more than the live peak and the slack
} tarn__pool_arena_need;

// Maps the pages of |plan|, which was made under the same hold of the lock.
// After a failure the plan has to be made anew before the next call.
//
// TARN_FULL  the limit or the device is used up; if |need->sparing| still
//            stands, pages of holes may serve.
TARN_MUST_CHECK tarn_status tarn__arena_map(tarn__pool_arena *self,
                                            tarn__pool_arena_need *need,
                                            const tarn__pool_extent_plan *plan,
                                            tarn__pool_extent **out,
                                            uint64_t *out_serial);

// Holes of streams that are gone may be used by any.
void tarn__arena_adopt_orphans(tarn__pool_extents *zone);

// Makes room in |zone| for the bins of the stream with |serial|. If the stream
// is new, bins of streams that have ended are removed first.
TARN_MUST_CHECK bool tarn__arena_prepare(tarn__pool_extents *zone,
                                         uint64_t serial);

// Finds or makes room for the need, and takes it. |*out_serial|: the stream
// that used it last.
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

// As the table has it.
tarn_status tarn__arena_trim(tarn__pool_strategy *strategy, size_t target,
                             unsigned how);

tarn_status tarn__arena_reserve(tarn__pool_strategy *strategy, size_t size);

// Likewise.
tarn_status tarn__arena_raise_ground(tarn__pool_strategy *strategy,
                                     const tarn__pool_request *request,
                                     tarn__pool_step_ground *ground);
void tarn__arena_drop_ground(tarn__pool_strategy *strategy,
                             tarn__pool_step_ground *ground);

// The nodes of |zone| that are set aside for grounds.
size_t tarn__arena_ground_nodes(const tarn__pool_arena *self, int zone);

// Sleeping and waking, as in the table of strategies.
tarn_status tarn__arena_sleep(tarn__pool_strategy *strategy, tarn_tag tag,
                              bool saves, bool *out_asleep);
tarn_status tarn__arena_wake(tarn__pool_strategy *strategy, tarn_tag tag);
tarn_status tarn__arena_end_wake(tarn__pool_strategy *strategy, tarn_tag tag,
                                 bool keep);

// Ends the block of |sleeper|, whose piece has been joined: its saved contents
// are dropped, and its addresses become bare or open, for the stream with
// |serial|.
void tarn__arena_end_sleeper(tarn__pool_arena *self, tarn__pool_extents *zone,
                             tarn__pool_extent *extent,
                             tarn__pool_sleeper *sleeper, uint64_t serial);

// Frees what sleepers have on the host.
void tarn__arena_forget_sleepers(tarn__pool_arena *self);

// Walks the sleepers, and counts them by zone.
TARN_MUST_CHECK tarn_status
tarn__arena_check_sleepers(const tarn__pool_arena *self, size_t *counts);

#endif  // TARN_POOL_ARENA_H_
