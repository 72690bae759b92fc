// roles.h - what each block of a trace was for: the roles of the memory
// timeline of torch.profiler.
//
// A trace has no roles. They are told from the pass in which a block was born
// (phases.h), the one in which it died, and from sizes: each gradient is as
// large as its weight. Each rule is named with what it found, and what no rule
// tells is UNKNOWN, never the most likely.
//
//   forward      backward          optimizer      forward
//   |            |                 |              |
//   |  activation |-------|        |              |   alive when backward
//   begins | temporary |---|              |              |   freed before that
//   |            |    gradient |----------------| |   alive at its first
//   |            |                 |              |   allocation
//   |            |                 | state |------------  alive when it ends
//  -------- weights, older than the trace, as many as there are gradients ---
//  -------- states, those of a gradient's size beyond that ------------------
//
// Weights and states are told by matching sizes over the whole trace, not by
// what is alive at one moment.
#ifndef TARN_TOOL_ROLES_H_
#define TARN_TOOL_ROLES_H_

#include "moment.h"
#include "phases.h"

typedef enum role {
  ROLE_PARAMETER = 0,
  ROLE_OPTIMIZER_STATE,
  ROLE_GRADIENT,
  ROLE_ACTIVATION,
  ROLE_INPUT,  // and buffers
  ROLE_TEMPORARY,
  ROLE_WORKSPACE,
  ROLE_UNKNOWN,
  ROLES,
} role;

typedef struct roles {
  phases phases;
  uint8_t *rule_of;  // of each block of the trace; see roles_of
} roles;

// Borrows nothing. Free it with roles_deinit.
//
// Cost: phases_find, O(events + blocks), and sorting the blocks that are never
//       freed.
roles roles_find(const tarn_trace *trace);
void roles_deinit(roles *r);

role roles_of(const roles *r, uint32_t block);

// "parameter", "optimizer state", ...
const char *role_name(role what);

// The same for a headline: "weights", "optimizer states", ...
const char *role_plural(role what);

enum { ROLE_RULES_MOST = 6 };

// The blocks of one role in a set.
typedef struct role_sum {
  role what;
  uint64_t bytes;
  uint64_t blocks;
  const char *rules[ROLE_RULES_MOST];  // that found them, most bytes first
  size_t rule_count;
} role_sum;

typedef struct role_sums {
  role_sum items[ROLES];  // most bytes first; none without blocks
  size_t count;
} role_sums;

// Each block of |set| is in one row: the sums are those of the set.
role_sums roles_sum(const roles *r, const tarn_trace *trace,
                    const block_set *set);
// Whether it has rows, and not all of them are UNKNOWN or WORKSPACE.
bool role_sums_tell(const role_sums *sums);

#endif  // TARN_TOOL_ROLES_H_
