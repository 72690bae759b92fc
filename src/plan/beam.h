// beam.h - finds plans that are low where the search of search.h does not end.
//
// A search in breadth with a bounded width: the states in which k items are
// down are made from those with k - 1, and only the most promising of them are
// kept. It proves nothing, but where it finds a plan, it does so in a time that
// is known: the number of items times the width.
#ifndef TARN_PLAN_BEAM_H_
#define TARN_PLAN_BEAM_H_

#include "plan/search.h"

typedef struct tarn__plan_beam tarn__plan_beam;

// What its states are: beam_states.h.
typedef enum tarn__plan_beam_kind {
  TARN__PLAN_OF_SPOTS = 0,  // for any instance
  TARN__PLAN_OF_SKYLINES,   // for those that tarn__plan_is_tight
} tarn__plan_beam_kind;

typedef struct tarn__plan_beam_run {
  uint64_t capacity;  // units
  uint32_t width;     // states kept of each size; at least 1
  // Of spots: how far a section may be from full, in 1024ths of the capacity,
  // before it counts much less than a full one: 4 to 16.
  uint32_t ease;
  tarn__plan_order order;
  uint64_t seed;        // as in tarn__plan_run
  uint64_t node_limit;  // 0: none
  tarn__plan_stop *stop;
} tarn__plan_beam_run;

// For runs of up to |width|, or as much of it as |most| bytes have room for.
// |instance| must live as long.
//
// Threads:       one at a time.
// Cost:          as of tarn__plan_search_create.
// TARN_FULL      |most| bytes are not enough for the lists of neighbours, or
//                for any width: the instance is too large.
// TARN_E_NOMEM   no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_beam_create(
    const tarn__plan_instance *instance, tarn__plan_beam_kind kind,
    uint32_t width, size_t most, tarn__plan_beam **out_beam);

// NULL is allowed.
void tarn__plan_beam_destroy(tarn__plan_beam *beam);

// The most that a run's width may be.
uint32_t tarn__plan_beam_width(const tarn__plan_beam *beam);

// Fills |out_offsets|, one per item, in units, if the outcome is FOUND; it is
// never NONE. A node is a state that was looked at.
//
// The same run gives the same outcome, unless |stop| says stop.
//
// Cost:         at most items x width states, of O(items + sections) each.
// TARN_E_NOMEM  no host memory; the object can be used further.
TARN_MUST_CHECK tarn_status tarn__plan_beam_run_once(
    tarn__plan_beam *beam, const tarn__plan_beam_run *run,
    uint64_t *out_offsets, tarn__plan_outcome *out, uint64_t *out_nodes);

#endif  // TARN_PLAN_BEAM_H_
