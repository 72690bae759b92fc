// search.h - finds a plan within a capacity, or proves that there is none.
//
// A depth-first search over the orders in which items can be put down, with
// bounds, decomposition and a table of states that are known to fail. The
// table is kept from run to run of one object: a state that fails does so in
// every order, and within every smaller capacity.
#ifndef TARN_PLAN_SEARCH_H_
#define TARN_PLAN_SEARCH_H_

#include "plan/instance.h"
#include "plan/stop.h"

// What a run looks at first.
typedef enum tarn__plan_order {
  TARN__PLAN_BY_LENGTH = 0,     // time needed, area, pressure
  TARN__PLAN_BY_PRESSURE_AREA,  // pressure, area, time needed
  TARN__PLAN_BY_PRESSURE,       // pressure, time needed, area
  TARN__PLAN_BY_AREA,           // area, pressure, time needed
  TARN__PLAN_ORDERS,
} tarn__plan_order;

typedef struct tarn__plan_run {
  uint64_t capacity;    // units
  uint64_t node_limit;  // 0: none
  tarn__plan_order order;
  uint64_t seed;  // 0: the order as it is; else disturbed by it
  // Of what could be next at one offset first what lies where the fewest could
  // be lowest, and the order after that. Takes more time for each node.
  bool scarce_first;
  // Items that stay where they are, by item: their offset, or
  // TARN__PLAN_FREE. NULL: those that are fixed by the problem. A run with
  // it neither reads nor writes the table, and says nothing about others.
  const uint64_t *held;
  tarn__plan_stop *stop;
} tarn__plan_run;

#define TARN__PLAN_FREE UINT64_MAX

typedef enum tarn__plan_outcome {
  TARN__PLAN_STOPPED = 0,  // by the limit of nodes, or by |stop|
  TARN__PLAN_FOUND,
  TARN__PLAN_NONE,  // there is none: proved
} tarn__plan_outcome;

typedef struct tarn__plan_search tarn__plan_search;

// |instance| must live as long. The table of failed states has at most
// |table_size| bytes.
//
// Threads:       one at a time.
// Cost:          O(n^2) at worst: a list of who shares sections with whom.
// TARN_FULL      that list would have more than twice |table_size|: the
//                instance is too large to be searched.
// TARN_E_NOMEM   no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_search_create(const tarn__plan_instance *instance, size_t table_size,
                         tarn__plan_search **out_search);

// NULL is allowed.
void tarn__plan_search_destroy(tarn__plan_search *search);

// Fills |out_offsets|, one per item, in units, if the outcome is FOUND; else
// they are as they were. |*out_nodes| is how many nodes it took.
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

#endif  // TARN_PLAN_SEARCH_H_
