// plan.h - offsets ahead of time.
//
// Who knows beforehand how large each buffer is and when it is needed can give
// each an offset in one piece of memory, so that buffers which are never
// needed at the same time share bytes:
//
//   offset
//     ^   +-------------+ +--------+
//     |   |      b      | |   d    |      height: the highest end
//     |   +------+------+-+--------+      lower bound: the most that is
//     |   |  a   |       c         |      needed at any one time
//     |   +------+-----------------+
//     +------------------------------> time
//
//   tarn_plan_buffer buffers[] = {
//       {.first = 0, .last = 3, .size = 1024},
//       {.first = 1, .last = 5, .size = 4096},
//       {.first = 3, .last = 6, .size = 1024}};
//   tarn_plan_problem problem = {.struct_size = sizeof problem,
//                                .buffers = buffers, .count = 3};
//   tarn_plan *plan;
//   tarn_plan_solve(&problem, NULL, &plan);
//   tarn_plan_info info = {.struct_size = sizeof info};
//   tarn_plan_query(plan, &info);              // info.height: 5120
//   tarn_plan_offsets(plan)[2];                // where the third one lies
//   tarn_plan_destroy(plan);
//
// Sizes, offsets and heights are bytes, or whatever else the caller counts in.
// Time is counted in steps of the caller's. This room knows no device and
// touches no memory but its own.
//
// Threads: functions here share nothing; a problem and a plan may be read by
//          many threads at once.
// Fork:    a child has the plans that there were.
#ifndef TARN_PLAN_H_
#define TARN_PLAN_H_

#include "tarn/base.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---------------------------------------------------------------------------
// The problem
// ---------------------------------------------------------------------------

// Steps in which a buffer's bytes are not needed, though it is needed before
// and after: [first, last).
typedef struct tarn_plan_gap {
  uint64_t first;
  uint64_t last;
} tarn_plan_gap;

enum {
  // It lies at |offset|, which is not to be chosen; where there are several
  // arenas it needs the flag below as well.
  TARN_PLAN_FIXED = 1,
  TARN_PLAN_IN_ARENA = 2,  // it lies in |arena|, which is not to be chosen
};

typedef struct tarn_plan_buffer {
  uint64_t first;             // needed in the steps [first, last)
  uint64_t last;              // more than |first|
  uint64_t size;              // more than 0
  uint64_t alignment;         // its offset is a multiple of it; 0: 1
  const tarn_plan_gap *gaps;  // in order, apart, within [first, last) and not
  size_t gap_count;           // at its ends
  uint64_t offset;            // with TARN_PLAN_FIXED
  uint32_t flags;             // TARN_PLAN_...
  uint32_t arena;             // with TARN_PLAN_IN_ARENA
  // With several arenas: what has more of it comes into earlier ones. Equals
  // go by size times lifetime.
  uint64_t priority;
  uint64_t reserved;  // not read: for what a flag to come says more of
} tarn_plan_buffer;

// |taker| may begin in the place of |giver|, as the result of an operation in
// place does: in |giver|'s last step, which must be |taker|'s first, both may
// have one and the same offset. They need not have; if they have, bytes of
// both in that step count once. A buffer may give to several, of which one
// will take, and may take from one of several.
//
// |giver| must be needed in a step before the shared one: [2, 4) may give to
// [3, 6), but [3, 4) may not: it would hold nothing yet when its place is
// taken. A problem with such a pair is refused (TARN_E_INVALID). A |taker| that
// is needed in the shared step only cannot be the giver of another pair.
typedef struct tarn_plan_pair {
  size_t giver;  // indices into |buffers|
  size_t taker;
} tarn_plan_pair;

// All sizes, alignments (less 1 each) and fixed offsets together are below
// 2^63; there are fewer than 2^32 - 1 buffers, and as many arenas at most.
typedef struct tarn_plan_problem {
  size_t struct_size;
  const tarn_plan_buffer *buffers;
  size_t count;  // 0 is a problem too
  const tarn_plan_pair *pairs;
  size_t pair_count;
  // Pieces of memory to lie in, the best first: how much each has, 0 for no
  // limit. A buffer lies in one of them. 0 arenas: one without a limit.
  const uint64_t *capacities;
  size_t arena_count;
} tarn_plan_problem;

// The most that is needed in any step, which no plan's height is below: the
// live sizes, where what may share in place counts once, and the ends of
// those that are fixed. All arenas count as one.
//
// Cost:           O(n log n).
// TARN_E_INVALID  the problem is wrong; the text names buffer and value.
// TARN_E_NOMEM    no host memory.
TARN_API TARN_MUST_CHECK tarn_status
tarn_plan_lower_bound(const tarn_plan_problem *problem, uint64_t *out_bound);

// ---------------------------------------------------------------------------
// Solving
// ---------------------------------------------------------------------------

// How far a solver is.
typedef struct tarn_plan_progress {
  size_t struct_size;
  uint64_t height;       // of the best plan so far; 0: there is none yet
  uint64_t lower_bound;  // proved so far
  uint64_t nodes;        // as in tarn_plan_options
  double seconds;        // since the beginning
} tarn_plan_progress;

// In |previous|: the buffer is new, it was nowhere.
#define TARN_PLAN_NO_OFFSET UINT64_MAX

typedef struct tarn_plan_options {
  size_t struct_size;
  // After how many seconds to return with the best plan so far; 0: 1. A plan
  // that is not proved to be the lowest is improved until then. INFINITY: until
  // the answer is proved; where the problem is too large for a proof, after
  // 16 moves for each buffer.
  double time_limit_s;
  // After how many nodes to return: states of search trees that were looked
  // at, and buffers that were moved to lower a plan; 0: no limit. If the time
  // is not over before, the answer is the same each time, on any machine, for
  // the same problem, |node_limit| and |threads|.
  uint64_t node_limit;
  uint32_t threads;  // at most 1024; 0: 1
  // With a capacity: whether to go on to the lowest plan when one fits.
  // Without, the lowest is what is looked for in any case.
  bool minimise;
  // A plan that was made before, by buffer, TARN_PLAN_NO_OFFSET for who was not
  // in it; NULL: none. If all can stay where they were, as when sizes have only
  // shrunk, that is the answer, and addresses that were handed out stay true.
  // Else as many stay as are found to leave room for the rest: within the
  // capacities where each arena has one; without, in no more height than a
  // plan made afresh, so that who would rather have them stay gives as
  // capacity what there is. With several arenas set |previous_arenas| too.
  const uint64_t *previous;
  const uint32_t *previous_arenas;
  // Called on the caller's thread, at each better plan and about ten times a
  // second; false cancels: the best so far is returned at once. NULL: nobody
  // asks. It may not call the library, but for reading its arguments.
  bool (*progress)(const tarn_plan_progress *progress, void *user);
  void *user;
} tarn_plan_options;

typedef struct tarn_plan tarn_plan;

typedef enum tarn_plan_answer {
  TARN_PLAN_OPTIMAL = 0,      // a plan; none is lower: proved
  TARN_PLAN_FEASIBLE = 1,     // a plan; whether it is the lowest is not known
  TARN_PLAN_INFEASIBLE = 2,   // there is none within the capacities: proved
  TARN_PLAN_OUT_OF_TIME = 3,  // none was found in time
} tarn_plan_answer;

// "optimal", "feasible", "infeasible", "out_of_time"; "?" for none of them.
TARN_API const char *tarn_plan_answer_name(tarn_plan_answer answer);

// Makes a plan. |options| NULL: all of them zero.
//
// With one arena the height is as low as can be found in time, or within its
// capacity. With several, each buffer goes to the earliest arena in which
// there is room when those of more priority have their place; TARN_PLAN_OPTIMAL
// is then said only if all lie in the first.
//
// Lifetime:       the plan keeps no part of its arguments; free it with
//                 tarn_plan_destroy.
// Threads:        |options->threads| are started and ended within the call.
// Cost:           up to the limits. The first plan takes O(n log n) as a rule.
// TARN_E_INVALID  the problem or an option is wrong; the text names the buffer
//                 and the value. That there is no plan is no error, but said
//                 by the plan.
// TARN_E_NOMEM    not even the first plan could be made; once there is one, too
//                 little memory ends the search as time does.
TARN_API TARN_MUST_CHECK tarn_status
tarn_plan_solve(const tarn_plan_problem *problem,
                const tarn_plan_options *options, tarn_plan **out_plan);

// NULL is allowed.
TARN_API void tarn_plan_destroy(tarn_plan *plan);

// ---------------------------------------------------------------------------
// The plan
// ---------------------------------------------------------------------------

typedef struct tarn_plan_info {
  size_t struct_size;
  tarn_plan_answer answer;
  size_t count;          // buffers
  uint64_t height;       // highest end, summed over arenas; 0 without a plan
  uint64_t lower_bound;  // proved: no plan is lower
  uint64_t nodes;        // as in tarn_plan_options
  double seconds;        // by the clock on the wall
  bool cancelled;        // by |progress|
  // Buffers that lie elsewhere than in |previous|, without those that were not
  // in it; 0 if none was given.
  size_t moved_count;
  // TARN_PLAN_INFEASIBLE: how many buffers are named by tarn_plan_conflict, and
  // whether it was proved that without any one of them the rest would fit.
  size_t conflict_count;
  bool conflict_minimal;
} tarn_plan_info;

// TARN_E_INVALID  |plan| or |out_info| is NULL, struct_size is unknown.
TARN_API TARN_MUST_CHECK tarn_status tarn_plan_query(const tarn_plan *plan,
                                                     tarn_plan_info *out_info);

// Each buffer's offset within its arena; NULL where there is no plan.
//
// Lifetime: the plan's.
TARN_API const uint64_t *tarn_plan_offsets(const tarn_plan *plan);

// Each buffer's arena; NULL where there is no plan.
//
// Lifetime: the plan's.
TARN_API const uint32_t *tarn_plan_arenas(const tarn_plan *plan);

// How high the buffers of |arena| reach: how much memory it must have. 0 where
// nothing lies in it, or without a plan.
TARN_API uint64_t tarn_plan_height(const tarn_plan *plan, size_t arena);

// Indices, ascending, of buffers that cannot fit together within the
// capacities: a small set, the reason for TARN_PLAN_INFEASIBLE. NULL for any
// other answer.
//
// Lifetime: the plan's.
TARN_API const size_t *tarn_plan_conflict(const tarn_plan *plan);

// Checks a plan, by itself and not by what the solvers believe: no two buffers
// share a byte in a step in which both are needed, but for pairs in place;
// alignments, fixed offsets, arenas and capacities are kept. |arenas| NULL: all
// lie in the first. |*out_height| is the sum of the arenas' heights.
//
// Cost:           O(n log n).
// TARN_E_INVALID  the problem is wrong.
// TARN_E_CORRUPT  the plan is wrong: the text names the buffers, where they lie
//                 and the step.
// TARN_E_NOMEM    no host memory.
TARN_API TARN_MUST_CHECK tarn_status
tarn_plan_verify(const tarn_plan_problem *problem, const uint64_t *offsets,
                 const uint32_t *arenas, uint64_t *out_height);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_PLAN_H_
