// ranks.h - a program that is started several times, as the ranks of one job.
#ifndef TARN_TOOL_RANKS_H_
#define TARN_TOOL_RANKS_H_

#include <stddef.h>
#include <stdint.h>

#include "kit/tool.h"

#define RANKS_FOR_EVER UINT64_MAX

typedef struct ranks_plan {
  const tool_verb *verb;
  char *const *program;  // with its arguments; ends with NULL
  size_t count;          // 1 to TARN_COMM_MOST_RANKS
  uint64_t timeout_ms;   // for its communicators; 0: as it is
  uint64_t grace_s;  // how long the others may run when a rank has failed, or
                     // RANKS_FOR_EVER
  bool labelled;     // their lines are marked with their numbers
} ranks_plan;

// Starts them, and returns when all have ended: 0, or the status of the first
// that failed, after a message that says which and how; or why they could not
// be started, after a message. Signals as children.h says. None of them
// outlives the tool.
tool_exit ranks_run(const ranks_plan *plan);

#endif  // TARN_TOOL_RANKS_H_
