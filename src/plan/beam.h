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

typedef struct tarn__plan_states_type {
  size_t most_choices;  // of one state

  // Bytes of one state.
  size_t (*size)(const tarn__plan_instance *instance);

  // |count| states; NULL: no host memory.
  void *(*make)(const tarn__plan_neighbours *near, size_t count);
  void (*destroy)(void *states);  // NULL is allowed

  // State 0 becomes that in which only fixed items are down. False: there is no
  // plan within the run's capacity.
  bool (*begin)(void *states, const tarn__plan_run *run);

  // Fills |choices| with up to |most_choices| items that may be put down next.
  size_t (*choices)(void *states, size_t from, uint32_t *choices);

  // State |to| becomes the one after |from| in which choice |chosen| is put
  // down. False: that fails, and |to| is no state.
  bool (*advance)(void *states, size_t from, const uint32_t *choices,
                  size_t chosen, size_t to, tarn__plan_standing *out);

  // The offsets by item; NULL: not all items are down.
  const uint64_t *(*plan)(void *states, size_t at);
} tarn__plan_states_type;

// Items are put down from the lowest on, and may be passed over. The guide is
// how much room each section has left at least.
extern const tarn__plan_states_type tarn__plan_spots;

// Items are put down where the fewest could be the lowest. The guide is how
// even their upper ends are: for instances that leave no room.
extern const tarn__plan_states_type tarn__plan_skylines;

#endif  // TARN_PLAN_BEAM_H_
