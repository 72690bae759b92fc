// search.h - finds a plan within a capacity, or proves that there is none.
//
// Two searches go over the states in which some items are placed:
//
//   in depth    one state after another, with bounds, decomposition and a table
//               of states that are known to fail. It ends with a plan or with
//               the proof that there is none, if it may take the nodes.
//   in breadth  a beam: the states in which k items are down are made from
//               those with k - 1, and only the most promising are kept. It
//               proves nothing, but where it finds a plan, it takes no more
//               than the number of items times its width.
//
// Both take the same runs and end with the same outcomes.
#ifndef TARN_PLAN_SEARCH_H_
#define TARN_PLAN_SEARCH_H_

#include "plan/neighbours.h"
#include "plan/stop.h"

// The order in which a run tries items.
typedef enum tarn__plan_order {
  TARN__PLAN_BY_LENGTH = 0,     // time needed, area, pressure
  TARN__PLAN_BY_PRESSURE_AREA,  // pressure, area, time needed
  TARN__PLAN_BY_PRESSURE,       // pressure, time needed, area
  TARN__PLAN_BY_AREA,           // area, pressure, time needed
  TARN__PLAN_ORDERS,
} tarn__plan_order;

typedef struct tarn__plan_run {
  uint64_t capacity;    // units
  uint64_t node_limit;  // states looked at; 0: no limit
  tarn__plan_order order;
  uint64_t seed;  // 0: the order as it is; else disturbed by it
  // In depth: of the items that could be next at one offset the first is one
  // with a section in which the fewest could be lowest. Takes more time for
  // each node.
  bool scarce_first;
  uint32_t width;  // of a beam: states kept of each size; at least 1
  // Of a beam of spots: how far a section may be from full, in 1024ths of the
  // capacity, before it counts much less than a full one: 4 to 16.
  uint32_t ease;
  tarn__plan_stop *stop;
} tarn__plan_run;

typedef enum tarn__plan_outcome {
  TARN__PLAN_STOPPED = 0,  // by the limit of nodes, by |stop|, or at a dead end
  TARN__PLAN_FOUND,
  TARN__PLAN_NONE,  // there is no plan: proved; only in depth
} tarn__plan_outcome;

// --- in depth ----------------------------------------------------------------

typedef struct tarn__plan_search tarn__plan_search;

// |near| and |memory|, which the runs use too, must live as long. The table of
// failed states has at most |table_size| bytes. It is kept from run to run: a
// state that fails does so in every order and within every smaller capacity.
//
// Threads:       one at a time.
// TARN_E_NOMEM   no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_search_create(
    const tarn__plan_neighbours *near, size_t table_size,
    tarn__plan_memory *memory, tarn__plan_search **out_search);

// Fills |out_offsets|, one per item, in units, if the outcome is FOUND; else
// leaves them. |*out_nodes|: how many nodes it took.
//
// The same object with the same runs in the same order gives the same outcomes,
// unless |stop| says stop. Runs of one object should go from larger capacities
// to smaller: a larger one than the last forgets the table.
//
// TARN_E_NOMEM  no host memory; the object can be used further.
TARN_MUST_CHECK tarn_status tarn__plan_search_run(tarn__plan_search *search,
                                                  const tarn__plan_run *run,
                                                  uint64_t *out_offsets,
                                                  tarn__plan_outcome *out,
                                                  uint64_t *out_nodes);

// --- in breadth --------------------------------------------------------------

typedef struct tarn__plan_beam tarn__plan_beam;

// For the states of a beam see beam.h.
typedef enum tarn__plan_beam_kind {
  TARN__PLAN_OF_SPOTS = 0,  // for any instance
  TARN__PLAN_OF_SKYLINES,   // for instances that tarn__plan_is_tight
} tarn__plan_beam_kind;

// For runs of up to |width|, or as much of it as |most| bytes have room for.
// |near| and |memory| must live as long.
//
// Threads:       one at a time.
// TARN_FULL      |most| bytes have no room for a beam of width 1.
// TARN_E_NOMEM   no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_beam_create(const tarn__plan_neighbours *near,
                       tarn__plan_beam_kind kind, uint32_t width, size_t most,
                       tarn__plan_memory *memory, tarn__plan_beam **out_beam);

// The most that a run's width may be.
uint32_t tarn__plan_beam_width(const tarn__plan_beam *beam);

// As tarn__plan_search_run; the outcome is never NONE. The same run gives the
// same outcome, unless |stop| says stop.
//
// Cost: at most items x width states, of O(items + sections) each.
void tarn__plan_beam_run(tarn__plan_beam *beam, const tarn__plan_run *run,
                         uint64_t *out_offsets, tarn__plan_outcome *out,
                         uint64_t *out_nodes);

// Whether all sections together leave next to no room at the bound, and nothing
// is fixed.
bool tarn__plan_is_tight(const tarn__plan_instance *instance);

// --- ranks -------------------------------------------------------------------

typedef struct tarn__plan_rank_key {
  double by[3];  // larger ones first
  uint32_t item;
} tarn__plan_rank_key;

// Numbers |items|, which are free, by the order and seed of |run|: fills
// |ranks|, by item, with 0, 1, ... |totals|: the sizes of |items| summed by
// section; |keys| has room for |count|.
//
// Cost: O(n log n + sections of |items|).
void tarn__plan_rank(const tarn__plan_instance *instance,
                     const tarn__plan_run *run, const uint64_t *totals,
                     const uint32_t *items, size_t count,
                     tarn__plan_rank_key *keys, uint32_t *ranks);

#endif  // TARN_PLAN_SEARCH_H_
