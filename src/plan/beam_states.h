// beam_states.h - what a beam goes over: states of one kind, by number.
//
// A state is a plan of some items, and what it leaves for the others. States
// are kept side by side and are copied from number to number, since a beam goes
// on from many of them at once.
#ifndef TARN_PLAN_BEAM_STATES_H_
#define TARN_PLAN_BEAM_STATES_H_

#include "plan/beam.h"
#include "plan/failed.h"

// Where a state stands among others: what a beam compares them by.
typedef struct tarn__plan_standing {
  uint64_t guide;      // the less, the better
  tarn__plan_key key;  // of two states that are alike the same
} tarn__plan_standing;

typedef struct tarn__plan_states_type {
  size_t most_choices;  // of one state

  // Bytes of one state.
  size_t (*size)(const tarn__plan_instance *instance);

  // |count| states. |most|, TARN_FULL and TARN_E_NOMEM: tarn__plan_beam_create.
  tarn_status (*make)(const tarn__plan_instance *instance, size_t count,
                      size_t most, void **out_states);
  void (*destroy)(void *states);  // NULL is allowed

  // State 0 becomes that in which nothing is down but what is fixed.
  // |*out_fits| false: there is no plan within the run's capacity.
  tarn_status (*begin)(void *states, const tarn__plan_beam_run *run,
                       bool *out_fits);

  // Fills |choices| with up to |most_choices| items that may be put down next.
  size_t (*choices)(void *states, size_t from, uint32_t *choices);

  // State |to| is the one after |from| in which choice |chosen| is put down.
  // False: it fails, and |to| is no state.
  bool (*step)(void *states, size_t from, const uint32_t *choices,
               size_t chosen, size_t to, tarn__plan_standing *out);

  // The offsets by item; NULL: not all items are down.
  const uint64_t *(*plan)(void *states, size_t at);
} tarn__plan_states_type;

// Items are put down from the lowest on, and may be passed over. How much room
// each section has left at least is what counts.
extern const tarn__plan_states_type tarn__plan_spots;

// Items are put down where the fewest could be the lowest. How even their upper
// ends lie is what counts: for instances that leave no room.
extern const tarn__plan_states_type tarn__plan_skylines;

// Whether all sections together leave next to no room at the bound, and nothing
// is fixed.
bool tarn__plan_is_tight(const tarn__plan_instance *instance);

#endif  // TARN_PLAN_BEAM_STATES_H_
