// beam.h - what a beam goes over: states of one kind.
//
// A state is a plan of some items, and what it leaves for the others. It is a
// block of memory, a head and its arrays, which a beam copies as a whole, since
// it goes on from many states at once.
#ifndef TARN_PLAN_BEAM_H_
#define TARN_PLAN_BEAM_H_

#include "plan/search.h"

// What each state begins with.
typedef struct tarn__plan_head {
  uint64_t *at;        // by item: where it lies, or the least that it can
  size_t open_count;   // items that are not down
  uint64_t guide;      // of states the one with less is better
  tarn__plan_key key;  // two states with equal keys are the same
} tarn__plan_head;

// Counts |value| of a thing number |kind| into a key, or out of it.
static inline void tarn__plan_key_turn(tarn__plan_key *key, uint64_t kind,
                                       uint64_t value) {
  tarn__plan_key own = tarn__plan_key_of(kind, value);
  key->low ^= own.low;
  key->high ^= own.high;
}

// The sections that changed.
typedef struct tarn__plan_reach {
  uint32_t first;
  uint32_t last;
} tarn__plan_reach;

static inline void tarn__plan_touch(tarn__plan_reach *reach,
                                    const tarn__plan_item *item) {
  if (item->first < reach->first) reach->first = item->first;
  if (item->last > reach->last) reach->last = item->last;
}

typedef struct tarn__plan_states_type {
  size_t most_choices;  // of one state

  // Bytes of a state: of what is no array, and of its arrays.
  size_t size;
  size_t item_size;
  size_t section_size;

  // What all states of a beam have in common; NULL: no host memory.
  void *(*make)(const tarn__plan_neighbours *near, tarn__plan_memory *memory);

  // Gives a state its arrays, which stand behind it.
  void (*set_arrays)(const tarn__plan_instance *instance, void *state);

  // |state| becomes that in which only fixed items are down. False: there is no
  // plan within the run's capacity.
  bool (*begin)(void *common, const tarn__plan_run *run, void *state);

  // Fills |choices| with up to |most_choices| items that may be placed next.
  size_t (*choices)(const void *common, const void *state, uint32_t *choices);

  // Makes |state|, a copy of |from|, the one after it with choice |chosen|
  // placed. False: that fails, and it is not a state.
  bool (*advance)(void *common, const void *from, const uint32_t *choices,
                  size_t chosen, void *state);
} tarn__plan_states_type;

// Items are placed from the lowest on, and may be passed over. The guide is the
// room that each section has left at least.
extern const tarn__plan_states_type tarn__plan_spots;

// Items are placed where the fewest could be the lowest. The guide is how even
// their upper ends are: for instances that leave no room.
extern const tarn__plan_states_type tarn__plan_skylines;

#endif  // TARN_PLAN_BEAM_H_
