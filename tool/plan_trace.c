// Traces as inputs: to come.
#include "plan_input.h"

tool_exit plan_trace_load(const plan_input_options *options, plan_input *out) {
  (void)options;
  return tool_fail(out->verb, "%s: planning traces is not built yet",
                   out->path);
}
