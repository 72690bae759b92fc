// choosing.h - a set while it is solved: what is decided of its pairs, the best
// plan so far, and what may still be spent.
#ifndef TARN_PLAN_CHOOSING_H_
#define TARN_PLAN_CHOOSING_H_

#include "plan/pairs.h"
#include "plan/relax.h"
#include "plan/set.h"

typedef struct tarn__plan_level {
  size_t decided;  // how many were, before it
  uint32_t mate;
  bool apart;  // the second way
} tarn__plan_level;

typedef struct tarn__plan_choosing {
  tarn__plan_call *call;
  const tarn__plan_set *set;
  tarn__plan_pairs pairs;
  tarn__plan_relaxed relaxed;
  uint64_t *offsets;  // by buffer, bytes: the caller's
  uint64_t *tried;    // by item, units
  uint64_t *places;   // by buffer, then by item: bytes
  bool *merged;       // by pair of the problem: those of the best plan
  tarn__plan_level *levels;
  size_t depth;
  uint64_t height;  // bytes
  uint64_t bound;   // bytes
  uint64_t node_end;
  uint64_t node_limit;  // of one instance
  uint64_t visits;      // that the round has left
  bool open;            // something was not proved
  bool cut;             // by a limit that can grow
} tarn__plan_choosing;

// Whether it goes on below a capacity that is kept.
bool tarn__plan_wants_lowest(const tarn__plan_choosing *s);

// The most that a plan may be high to be better than what there is.
uint64_t tarn__plan_welcome(const tarn__plan_choosing *s);

// Whether nothing more is asked for.
bool tarn__plan_is_done(const tarn__plan_choosing *s);

// Whether the share, or all that the call had, is spent.
bool tarn__plan_is_over(const tarn__plan_choosing *s);

// What is left of the share, no more than |limit| (0: all) for one instance.
uint64_t tarn__plan_nodes_for(const tarn__plan_choosing *s, uint64_t limit);

// It was proved that no plan is lower, whatever merges.
void tarn__plan_raise_bound(tarn__plan_choosing *s, uint64_t bound);

// |s->tried| is a plan of |in|, the instance of what is decided now: keeps it
// if it is the best. |height|: bytes.
void tarn__plan_take(tarn__plan_choosing *s, const tarn__plan_instance *in,
                     uint64_t height);

// The instance in which what is merged now merges, and nothing else.
TARN_MUST_CHECK tarn_status
tarn__plan_make_decided(const tarn__plan_choosing *s, tarn__plan_instance *out);

// Looks for a plan of it that is welcome, with no more nodes than |limit|, and
// takes it.
TARN_MUST_CHECK tarn_status tarn__plan_solve_decided(
    tarn__plan_choosing *s, const tarn__plan_instance *in, uint64_t limit);

// The two in one.
TARN_MUST_CHECK tarn_status tarn__plan_try_decided(tarn__plan_choosing *s,
                                                   uint64_t limit);

#endif  // TARN_PLAN_CHOOSING_H_
