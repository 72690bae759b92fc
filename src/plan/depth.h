// depth.h - the state of the search in depth: the placed items and their
// consequences, and the items that are left.
#ifndef TARN_PLAN_DEPTH_H_
#define TARN_PLAN_DEPTH_H_

#include "plan/search.h"

// Each free item that is not down has an offset, the least that the items below
// it allow that are down, and a least offset, which every plan within the
// capacity gives it. The two differ for items that were passed over: something
// that is not down yet must lift them. A section in which the items that are
// not down cannot fit above the least of their least offsets shows that the
// state fails. The proof is at the head of depth.c.
//
// All changes are logged, and undone in the reverse order.

#define TARN__PLAN_PLACED UINT32_MAX  // as a lifter: it was not passed over

typedef struct tarn__plan_item_change {
  uint32_t item;
  uint32_t lifter;
  uint64_t at;
  uint64_t least;
} tarn__plan_item_change;

typedef struct tarn__plan_floor_change {
  uint32_t section;
  uint32_t holder;
  uint64_t floor;
} tarn__plan_floor_change;

typedef struct tarn__plan_saved_rank {
  uint32_t item;
  uint32_t rank;
} tarn__plan_saved_rank;

// The items that are left to put down, in parts that share no section. Items
// are in one array, those of a part beside each other. Where no item crosses a
// border between sections any more, a part falls into several: they are
// stacked, the smallest on top, and the items of each are ranked again by the
// pressure within it. A part is a set: work on it may change the order of its
// items.
typedef struct tarn__plan_part {
  tarn__plan_key key;
  uint32_t begin;  // in items
  uint32_t end;
  bool is_new;  // cut off from others: its items are to be ranked
} tarn__plan_part;

// The heights of the logs and of the stack.
typedef struct tarn__plan_mark {
  size_t items;
  size_t floors;
  size_t saved;
  size_t parts;
} tarn__plan_mark;

typedef struct tarn__plan_state {
  const tarn__plan_instance *in;
  const tarn__plan_neighbours *near;
  uint64_t capacity;
  tarn__plan_memory *memory;  // once it has failed, the state is of no more use

  uint64_t *at;      // by item
  uint64_t *least;   // by item, or TARN__PLAN_DOWN, as for all that is fixed
  uint32_t *lifter;  // by item: the edge to what gives its least
  uint32_t *ranks;   // by item

  uint64_t *total;     // by section: sizes of what is not down
  uint64_t *floor;     // by section: the least of their least offsets
  uint32_t *holder;    // by section: whose it is
  uint32_t *crossing;  // by section: items that began before and are not down

  uint32_t *left;  // items, part by part
  tarn__plan_part *parts;

  tarn__plan_mark count;
  tarn__plan_item_change *items;
  size_t item_room;
  tarn__plan_floor_change *floors;
  size_t floor_room;
  tarn__plan_saved_rank *saved;  // of items that were ranked again
  size_t saved_room;

  // While a part is cut up.
  uint32_t *moved;       // items
  uint32_t *part_of;     // by section
  uint32_t *part_count;  // by part
  tarn__plan_rank_key *keys;
} tarn__plan_state;

// |near| and |memory| must live as long.
//
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_state_make(const tarn__plan_neighbours *near,
                      tarn__plan_memory *memory, tarn__plan_state *out_state);

// Begins anew, within |capacity|, with what is fixed; all else is left. False:
// there is no plan, by the bounds alone.
bool tarn__plan_state_begin(tarn__plan_state *state, uint64_t capacity);

// Undoes all changes since the state's count was |mark|, except putting items
// down and popping parts.
void tarn__plan_state_undo(tarn__plan_state *state, tarn__plan_mark mark);

// The effect of putting an item down on the rest.
typedef struct tarn__plan_effect {
  bool cuts;     // a border between sections is crossed by nothing any more
  bool narrows;  // the rest has more possible places than before
} tarn__plan_effect;

// Puts |item| down where it is, and lifts the items above it. |*key| is
// updated. False: the rest does not fit.
bool tarn__plan_state_put_down(tarn__plan_state *state, uint32_t item,
                               tarn__plan_key *key,
                               tarn__plan_effect *out_effect);

// Its inverse, before tarn__plan_state_undo.
void tarn__plan_state_take_up(tarn__plan_state *state, uint32_t item);

// Passes |item| over: it must be lifted. False: nothing can lift it.
bool tarn__plan_state_pass(tarn__plan_state *state, uint32_t item,
                           tarn__plan_key *key);

// Whether the least offset of |item|, which was passed over, is out of date.
bool tarn__plan_state_is_stale(const tarn__plan_state *state, uint32_t item);

// Finds the least offset of an item that was passed over. False: there is none.
bool tarn__plan_state_lift(tarn__plan_state *state, uint32_t item);

// How many items that are not down could be the lowest of |section|, which has
// some; counting ends at |enough|.
uint32_t tarn__plan_state_rivals(const tarn__plan_state *state,
                                 uint32_t section, uint32_t enough);

// Stacks the items in [begin, end), in as many parts as they fall into; if
// there are several, or |always_new|, they are ranked again.
void tarn__plan_state_cut(tarn__plan_state *state, uint32_t begin, uint32_t end,
                          bool always_new);

// The part on top; ranks its items if it is new.
tarn__plan_part tarn__plan_state_pop(tarn__plan_state *state,
                                     const tarn__plan_run *run);

#endif  // TARN_PLAN_DEPTH_H_
