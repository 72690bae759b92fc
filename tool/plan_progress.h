// plan_progress.h - how far a search for a plan is, and Ctrl-C.
//
//   plan_progress progress = {.verb = verb};
//   options.progress = plan_progress_tell;
//   options.user = &progress;
//   plan_progress_begin(&progress);
//   ... tarn_plan_solve ...
//   plan_progress_end(&progress);
//
// On a terminal it is one line that is rewritten; elsewhere a line each few
// seconds. From begin to end the first SIGINT ends the search, and a second one
// the tool.
#ifndef TARN_TOOL_PLAN_PROGRESS_H_
#define TARN_TOOL_PLAN_PROGRESS_H_

#include <signal.h>

#include "kit/tool.h"

typedef struct plan_progress {
  const tool_verb *verb;
  bool is_terminal;
  bool is_shown;          // a line stands on the terminal
  double next;            // seconds after which to say something
  struct sigaction then;  // what SIGINT did before
} plan_progress;

void plan_progress_begin(plan_progress *progress);
void plan_progress_end(plan_progress *progress);

// As tarn_plan_options wants it; |user| is a plan_progress.
bool plan_progress_tell(const tarn_plan_progress *state, void *user);

#endif  // TARN_TOOL_PLAN_PROGRESS_H_
