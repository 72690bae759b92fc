// search_state.h - what a search has put down so far, and what follows from it.
//
// Each free item that is not down has an offset, the least that those below it
// which are down allow, and a least offset that any plan within the capacity
// must give it. They differ for items that were passed over: those must be
// lifted by something that is not down yet. A section in which what is not
// down cannot fit above the least of these shows that the state fails. The
// argument why all of this is so stands on top of search.c.
//
// All changes are logged, and undone in the reverse order.
#ifndef TARN_PLAN_SEARCH_STATE_H_
#define TARN_PLAN_SEARCH_STATE_H_

#include "plan/allowed.h"
#include "plan/failed.h"

#define TARN__PLAN_DOWN UINT64_MAX    // as a least offset: it is put down
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

typedef struct tarn__plan_state {
  const tarn__plan_instance *in;
  tarn__plan_neighbours near;
  uint64_t capacity;
  tarn__plan_allowed allowed;
  bool no_memory;  // a change was not logged: the state is of no more use

  uint64_t *at;      // by item
  uint64_t *least;   // by item, or TARN__PLAN_DOWN, as for all that is fixed
  uint32_t *lifter;  // by item: the edge to what gives its least

  uint64_t *total;     // by section: sizes of what is not down
  uint64_t *floor;     // by section: the least of their least offsets
  uint32_t *holder;    // by section: whose it is
  uint32_t *crossing;  // by section: what is not down, and began before

  tarn__plan_item_change *items;
  size_t item_count;
  size_t item_room;
  tarn__plan_floor_change *floors;
  size_t floor_count;
  size_t floor_room;
} tarn__plan_state;

typedef struct tarn__plan_mark {
  size_t items;
  size_t floors;
} tarn__plan_mark;

// Lifetime:     tarn__plan_state_free.
// TARN_FULL     lists of more than |most| bytes would be needed.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_state_make(const tarn__plan_instance *instance, size_t most,
                      tarn__plan_state *out_state);

// One that is zero-filled is allowed.
void tarn__plan_state_free(tarn__plan_state *state);

// Begins anew, within |capacity|, with what is fixed by the instance or by
// |held|, as in tarn__plan_run. |*out_fits| false: there is no plan, by the
// bounds alone.
//
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_state_begin(tarn__plan_state *state,
                                                   uint64_t capacity,
                                                   const uint64_t *held,
                                                   bool *out_fits);

static inline tarn__plan_mark tarn__plan_state_mark(
    const tarn__plan_state *state) {
  return (tarn__plan_mark){state->item_count, state->floor_count};
}

// Undoes all changes since |mark|, but for what was put down.
void tarn__plan_state_undo(tarn__plan_state *state, tarn__plan_mark mark);

// What putting an item down means for what is left.
typedef struct tarn__plan_effect {
  bool cuts;     // a border between sections is crossed by nothing any more
  bool narrows;  // what is left could be had in more ways than before
} tarn__plan_effect;

// Puts |item| down where it is, and lifts those that it is below of. |*key|
// follows. True: it may be that all still fits.
bool tarn__plan_state_put_down(tarn__plan_state *state, uint32_t item,
                               tarn__plan_key *key,
                               tarn__plan_effect *out_effect);

// Its counterpart, before tarn__plan_state_undo.
void tarn__plan_state_take_up(tarn__plan_state *state, uint32_t item);

// Passes |item| over: it must be lifted. False: nothing is there to do so.
bool tarn__plan_state_pass(tarn__plan_state *state, uint32_t item,
                           tarn__plan_key *key);

// Whether something else lifts |item|, which was passed over, than when its
// least offset was found.
bool tarn__plan_state_is_stale(const tarn__plan_state *state, uint32_t item);

// Finds the least offset of an item that was passed over. False: it fails.
bool tarn__plan_state_lift(tarn__plan_state *state, uint32_t item);

// How many of what is not down could be the lowest of |section|, which has some
// of it; counting ends with |enough|.
uint32_t tarn__plan_state_rivals(const tarn__plan_state *state,
                                 uint32_t section, uint32_t enough);

// What |item| adds to the key of a state.
tarn__plan_key tarn__plan_state_key(const tarn__plan_state *state,
                                    uint32_t item);

#endif  // TARN_PLAN_SEARCH_STATE_H_
