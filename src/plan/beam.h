// beam.h - what a beam goes over: states of one kind, by number.
//
// A state is a plan of some items, and what it leaves for the others. States
// are kept side by side and copied from number to number, since a beam goes on
// from many of them at once.
#ifndef TARN_PLAN_BEAM_H_
#define TARN_PLAN_BEAM_H_

#include "plan/search.h"

// How states compare.
typedef struct tarn__plan_standing {
  uint64_t guide;      // the less, the better
  tarn__plan_key key;  // two states with equal keys are the same
} tarn__plan_standing;

// Counts |value| of a thing number |kind| into a key, or out of it.
static inline void tarn__plan_key_turn(tarn__plan_key *key, uint64_t kind,
                                       uint64_t value) {
  tarn__plan_key own = tarn__plan_key_of(kind, value);
  key->low ^= own.low;
  key->high ^= own.high;
}

typedef struct tarn__plan_states_type {
  size_t most_choices;  // of one state

  // Bytes of one state.
  size_t (*size)(const tarn__plan_instance *instance);

  // |count| states in |memory|; NULL: no host memory.
  void *(*make)(const tarn__plan_neighbours *near, size_t count,
                tarn__plan_memory *memory);

  // State 0 becomes that in which only fixed items are down. False: there is no
  // plan within the run's capacity.
  bool (*begin)(void *states, const tarn__plan_run *run);

  // Fills |choices| with up to |most_choices| items that may be placed next.
  size_t (*choices)(void *states, size_t from, uint32_t *choices);

  // Makes |to| the state after |from| with choice |chosen| placed. False: that
  // fails, and |to| is not a state.
  bool (*advance)(void *states, size_t from, const uint32_t *choices,
                  size_t chosen, size_t to, tarn__plan_standing *out);

  // The offsets by item; NULL: not all items are down.
  const uint64_t *(*plan)(void *states, size_t at);
} tarn__plan_states_type;

// Items are placed from the lowest on, and may be passed over. The guide is the
// room that each section has left at least.
extern const tarn__plan_states_type tarn__plan_spots;

// Items are placed where the fewest could be the lowest. The guide is how even
// their upper ends are: for instances that leave no room.
extern const tarn__plan_states_type tarn__plan_skylines;

#endif  // TARN_PLAN_BEAM_H_
