// parts.h - what is left to put down, in parts that share nothing.
//
// Items are in one array, those of a part beside each other. Where no item
// crosses a border between sections any more, a part falls into several: they
// are stacked, the smallest on top, and within each items are ranked again,
// for what is busiest there. A part is a set: work on it may change its order.
#ifndef TARN_PLAN_PARTS_H_
#define TARN_PLAN_PARTS_H_

#include "plan/ranking.h"
#include "plan/search_state.h"

typedef struct tarn__plan_part {
  tarn__plan_key key;
  uint32_t begin;  // in items
  uint32_t end;
  bool is_new;  // cut off from others: its items are to be ranked
} tarn__plan_part;

typedef struct tarn__plan_saved_rank {
  uint32_t item;
  uint32_t rank;
} tarn__plan_saved_rank;

typedef struct tarn__plan_parts {
  const tarn__plan_state *state;
  uint32_t *items;
  uint32_t *ranks;  // by item
  bool no_memory;   // ranks were not saved: the stack is of no more use

  tarn__plan_part *stack;
  size_t count;
  tarn__plan_saved_rank *saved;  // of items that were ranked again
  size_t saved_count;
  size_t saved_room;

  uint32_t *moved;       // items, while they are
  uint32_t *part_of;     // by section
  uint32_t *part_count;  // by part
  tarn__plan_rank_key *keys;
} tarn__plan_parts;

// How much there is on the stacks.
typedef struct tarn__plan_parts_mark {
  size_t count;
  size_t saved_count;
} tarn__plan_parts_mark;

// |state| must live as long.
//
// Lifetime:     tarn__plan_parts_free.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_parts_make(const tarn__plan_state *state,
                                                  tarn__plan_parts *out_parts);

// One that is zero-filled is allowed.
void tarn__plan_parts_free(tarn__plan_parts *parts);

// Begins anew, with all that is not fixed.
void tarn__plan_parts_begin(tarn__plan_parts *parts);

// Stacks the items in [begin, end), in as many parts as they fall into.
void tarn__plan_parts_cut(tarn__plan_parts *parts, uint32_t begin,
                          uint32_t end);

void tarn__plan_parts_push(tarn__plan_parts *parts, tarn__plan_part part);

// The one on top; ranks its items if it is new.
tarn__plan_part tarn__plan_parts_pop(tarn__plan_parts *parts,
                                     const tarn__plan_run *run);

static inline tarn__plan_parts_mark tarn__plan_parts_mark_of(
    const tarn__plan_parts *parts) {
  return (tarn__plan_parts_mark){parts->count, parts->saved_count};
}

// Forgets what was stacked since, and gives items the ranks that they had.
void tarn__plan_parts_undo(tarn__plan_parts *parts, tarn__plan_parts_mark mark);

#endif  // TARN_PLAN_PARTS_H_
