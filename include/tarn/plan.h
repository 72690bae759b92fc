// plan.h - offsets ahead of time.
//
// A planner gives each buffer, whose size and lifetime are known beforehand, an
// offset in one piece of memory, so that buffers which are never needed at the
// same time share bytes:
//
//   offset
//     ^   +-------------+ +--------+
//     |   |      b      | |   d    |      height: the highest end
//     |   +------+------+-+--------+      lower bound: the most bytes that
//     |   |  a   |       c         |      are needed at one time
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
//   tarn_plan_offsets(plan)[2];                // the third buffer's
//   tarn_plan_destroy(plan);
//
// Sizes, offsets and heights are bytes, or any other unit of the caller. Time
// is counted in the caller's time steps, such as the operations of a program.
// The planner uses no device and no memory other than its own.
//
// Threads: functions share nothing; many threads may read one problem and one
//          plan at once.
// Fork:    the child has copies of all plans.
#ifndef TARN_PLAN_H_
#define TARN_PLAN_H_

#include "tarn/base.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---------------------------------------------------------------------------
// The problem
// ---------------------------------------------------------------------------

// Time steps [first, last) in which a buffer's bytes are not needed, though the
// buffer is needed before and after.
typedef struct tarn_plan_gap {
  uint64_t first;
  uint64_t last;
} tarn_plan_gap;

enum {
  // The buffer lies at |offset|. With several arenas it needs the flag below
  // as well.
  TARN_PLAN_FIXED = 1,
  TARN_PLAN_IN_ARENA = 2,  // the buffer lies in |arena|
};

typedef struct tarn_plan_buffer {
  uint64_t first;             // needed in the time steps [first, last)
  uint64_t last;              // more than |first|
  uint64_t size;              // more than 0
  uint64_t alignment;         // the offset is a multiple of it; 0: 1
  const tarn_plan_gap *gaps;  // in order, apart, within [first, last) and not
  size_t gap_count;           // at its ends
  uint64_t offset;            // with TARN_PLAN_FIXED
  uint32_t flags;             // TARN_PLAN_...
  uint32_t arena;             // with TARN_PLAN_IN_ARENA
  // With several arenas: buffers of higher priority go to earlier arenas.
  // Buffers of one priority go by size times lifetime.
  uint64_t priority;
  uint64_t reserved;  // not read: for a future flag
} tarn_plan_buffer;

// A pair in place: |taker| may begin in the place of |giver|, as the result of
// an operation in place does. |giver|'s last time step must be |taker|'s first;
// in this shared step both may have the same offset, and then their bytes count
// once. The planner decides whether they do. A buffer may be the giver of
// several pairs, and the taker of several; at most one of each is used.
//
// |giver| must be needed in a time step before the shared one: [2, 4) may give
// to [3, 6), but [3, 4) may not, since it would hold nothing yet when its place
// is taken. A problem with such a pair is refused (TARN_E_INVALID). A |taker|
// that is needed in the shared step only cannot be the giver of another pair.
typedef struct tarn_plan_pair {
  size_t giver;  // indices into |buffers|
  size_t taker;
} tarn_plan_pair;

// The sum of all sizes, alignments (less 1 each) and fixed offsets is below
// 2^63. There are fewer than 2^32 - 1 buffers and fewer than 2^32 - 1 arenas.
typedef struct tarn_plan_problem {
  size_t struct_size;
  const tarn_plan_buffer *buffers;
  size_t count;  // 0 is allowed
  const tarn_plan_pair *pairs;
  size_t pair_count;
  // The capacity of each arena, the best arena first; 0: no limit. An arena is
  // one piece of memory; each buffer lies in one arena. |arena_count| 0: one
  // arena without a limit.
  const uint64_t *capacities;
  size_t arena_count;
} tarn_plan_problem;

// A lower bound of every plan's height: the most bytes that are needed in one
// time step, where bytes that may be shared in place count once, or the highest
// end of a fixed buffer. All arenas count as one.
//
// Cost:           O(n log n).
// TARN_E_INVALID  the problem is wrong; the text names the buffer and the
//                 value.
// TARN_E_NOMEM    no host memory.
TARN_API TARN_MUST_CHECK tarn_status
tarn_plan_lower_bound(const tarn_plan_problem *problem, uint64_t *out_bound);

// ---------------------------------------------------------------------------
// Solving
// ---------------------------------------------------------------------------

// The state of a solver.
typedef struct tarn_plan_progress {
  size_t struct_size;
  uint64_t height;       // of the best plan so far; 0: no plan yet
  uint64_t lower_bound;  // proved so far
  uint64_t nodes;        // as in tarn_plan_options
  double seconds;        // since the beginning
} tarn_plan_progress;

// In |previous|: the buffer is new.
#define TARN_PLAN_NO_OFFSET UINT64_MAX

typedef struct tarn_plan_options {
  size_t struct_size;
  // Seconds after which the best plan so far is returned; 0: 1. A plan that is
  // not proved to be the lowest is improved until then. INFINITY: until the
  // answer is proved, or, if the problem is too large for a proof, until 16
  // moves for each buffer are done.
  double time_limit_s;
  // Nodes after which the best plan so far is returned; 0: no limit. A node is
  // a state of a search tree that was visited, or a buffer that was moved to
  // lower a plan. If the time limit is not reached, the same problem,
  // |node_limit| and |threads| give the same plan on any machine.
  uint64_t node_limit;
  uint32_t threads;  // at most 1024; 0: 1
  // With a capacity: search for the lowest plan, not only for one that fits.
  // Without a capacity the lowest plan is searched for in any case.
  bool minimise;
  // The offsets of an earlier plan, by buffer, TARN_PLAN_NO_OFFSET for a new
  // buffer; NULL: no earlier plan. If all buffers can keep their offsets, as
  // when sizes have only shrunk, they do, and addresses that were handed out
  // stay valid. Else the planner keeps as many as it finds to leave room for
  // the rest: within the capacities if each arena has one, else within the
  // height of a new plan. To keep more of them, set a capacity. With several
  // arenas set |previous_arenas| too.
  const uint64_t *previous;
  const uint32_t *previous_arenas;
  // Called on the caller's thread, at each better plan and about ten times a
  // second; false cancels: the best plan so far is returned at once. NULL: not
  // called. The callback must not call the library.
  bool (*progress)(const tarn_plan_progress *progress, void *user);
  void *user;
} tarn_plan_options;

typedef struct tarn_plan tarn_plan;

typedef enum tarn_plan_answer {
  TARN_PLAN_OPTIMAL = 0,      // a plan, proved to be the lowest
  TARN_PLAN_FEASIBLE = 1,     // a plan, not proved to be the lowest
  TARN_PLAN_INFEASIBLE = 2,   // proved: no plan is within the capacities
  TARN_PLAN_OUT_OF_TIME = 3,  // no plan was found in time
} tarn_plan_answer;

// "optimal", "feasible", "infeasible", "out_of_time"; "?" for other values.
TARN_API const char *tarn_plan_answer_name(tarn_plan_answer answer);

// Makes a plan. |options| NULL: all zero.
//
// With one arena the plan is the lowest that is found in time, or the first
// within the arena's capacity. With several arenas each buffer goes to the
// earliest arena that has room for it after the buffers of higher priority;
// TARN_PLAN_OPTIMAL is returned only if all buffers lie in the first arena.
//
// Lifetime:       the plan keeps no pointer to its arguments; free it with
//                 tarn_plan_destroy.
// Threads:        |options->threads| are started and ended within the call.
// Cost:           up to the limits. The first plan usually takes O(n log n).
// TARN_E_INVALID  the problem or an option is wrong; the text names the buffer
//                 and the value. An infeasible problem is no error; the plan's
//                 answer says so.
// TARN_E_NOMEM    no host memory for the first plan. Later lack of memory ends
//                 the search as a limit does.
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
  uint64_t height;       // highest end, summed over arenas; 0 without offsets
  uint64_t lower_bound;  // proved: no plan is lower
  uint64_t nodes;        // as in tarn_plan_options
  double seconds;        // wall clock
  bool cancelled;        // by |progress|
  // Buffers of |previous| that lie elsewhere; 0 without |previous|.
  size_t moved_count;
  // TARN_PLAN_INFEASIBLE: how many buffers tarn_plan_conflict names, and
  // whether it was proved that the rest of them would fit without any one of
  // them.
  size_t conflict_count;
  bool conflict_minimal;
} tarn_plan_info;

// TARN_E_INVALID  |plan| or |out_info| is NULL, struct_size is unknown.
TARN_API TARN_MUST_CHECK tarn_status tarn_plan_query(const tarn_plan *plan,
                                                     tarn_plan_info *out_info);

// Each buffer's offset within its arena; NULL if the answer is not a plan.
//
// Lifetime: the plan's.
TARN_API const uint64_t *tarn_plan_offsets(const tarn_plan *plan);

// Each buffer's arena; NULL if the answer is not a plan.
//
// Lifetime: the plan's.
TARN_API const uint32_t *tarn_plan_arenas(const tarn_plan *plan);

// The highest end in |arena|: how much memory it must have. 0 for an empty
// arena, or if the answer is not a plan.
TARN_API uint64_t tarn_plan_height(const tarn_plan *plan, size_t arena);

// The indices, ascending, of a small set of buffers that cannot fit together
// within the capacities: the reason for TARN_PLAN_INFEASIBLE. NULL for other
// answers.
//
// Lifetime: the plan's.
TARN_API const size_t *tarn_plan_conflict(const tarn_plan *plan);

// Checks a plan with code that the solvers do not use: no two buffers share a
// byte in a time step in which both are needed, except pairs in place;
// alignments, fixed offsets, arenas and capacities are kept. |arenas| NULL: all
// buffers lie in the first. |*out_height|: the sum of the arenas' heights.
//
// Cost:           O(n log n).
// TARN_E_INVALID  the problem is wrong.
// TARN_E_CORRUPT  the plan is wrong; the text names the buffers, their offsets
//                 and the time step.
// TARN_E_NOMEM    no host memory.
TARN_API TARN_MUST_CHECK tarn_status
tarn_plan_verify(const tarn_plan_problem *problem, const uint64_t *offsets,
                 const uint32_t *arenas, uint64_t *out_height);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_PLAN_H_
