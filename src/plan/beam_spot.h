// beam_spot.h - one state of a beam, and the step from it to the next.
//
// As in search_state.h each item that is not down has an offset, and a least
// one in any plan within the capacity. What is kept here can be copied instead
// of undone, since a beam goes on from many states at once.
#ifndef TARN_PLAN_BEAM_SPOT_H_
#define TARN_PLAN_BEAM_SPOT_H_

#include "plan/allowed.h"
#include "plan/beam.h"
#include "plan/failed.h"

#define TARN__PLAN_IS_DOWN UINT64_MAX

typedef struct tarn__plan_spot {
  uint64_t *at;     // by item, where it lies or would
  uint64_t *least;  // by item; TARN__PLAN_DOWN where it is down
  bool *passed;     // by item: something must lift it
  uint32_t *open;   // items that are not down, by |least|
  size_t open_count;
  uint32_t *top;   // by section, coarse: where what is there ends at least
  uint64_t guide;  // the less, the more room there is
  tarn__plan_key key;
} tarn__plan_spot;

// What all spots of a beam have in common.
typedef struct tarn__plan_terrain {
  const tarn__plan_instance *in;
  tarn__plan_neighbours near;
  tarn__plan_allowed allowed;
  uint64_t units;         // the capacity
  unsigned shift;         // a coarse number is one of units without its
                          // lowest |shift| bits, and less than 2^31
  uint32_t *size;         // by piece, coarse
  uint32_t *live;         // by section, coarse
  uint32_t capacity;      // coarse
  uint64_t per_capacity;  // slack * it >> 32: in parts of 1024
  uint64_t weight[1025];  // of a section, by its slack in those
  // Scratch of a step.
  uint32_t *changed;  // items
  size_t changed_count;
  uint32_t *passed;  // items
  bool *is_changed;  // by item
  uint32_t first;    // the sections of what changed
  uint32_t last;
} tarn__plan_terrain;

// Lifetime: tarn__plan_terrain_free.
TARN_MUST_CHECK tarn_status
tarn__plan_terrain_make(const tarn__plan_instance *instance, size_t most,
                        tarn__plan_terrain *out_terrain);
void tarn__plan_terrain_free(tarn__plan_terrain *terrain);

// Begins anew within |capacity|: |spot| is the state in which nothing is down
// but what is fixed. |*out_fits| false: there is no plan.
TARN_MUST_CHECK tarn_status
tarn__plan_terrain_begin(tarn__plan_terrain *terrain, uint64_t capacity,
                         uint32_t ease, tarn__plan_spot *spot, bool *out_fits);

// The state after |from| in which |passed| items of |choices| are passed over,
// and the next of them is put down. False: it fails, and |to| is no state.
bool tarn__plan_spot_step(tarn__plan_terrain *terrain,
                          const tarn__plan_spot *from, const uint32_t *choices,
                          size_t passed, tarn__plan_spot *to);

// Fills |choices| with up to |most| items that may be put down next: those
// that begin below the least end of all, by offset and |ranks|.
size_t tarn__plan_spot_choices(const tarn__plan_terrain *terrain,
                               const tarn__plan_spot *spot,
                               const uint32_t *ranks, uint32_t *choices,
                               size_t most);

#endif  // TARN_PLAN_BEAM_SPOT_H_
