// plan_trace.h - the meaning of a plan for the recorded program: the blocks
// that have to go for it to fit, and what it would save.
#ifndef TARN_TOOL_PLAN_TRACE_H_
#define TARN_TOOL_PLAN_TRACE_H_

#include "owners.h"
#include "plan_colours.h"
#include "plan_report.h"
#include "trace_problem.h"
#include "what_if.h"

// The source of a plan_input that is a trace.
typedef struct plan_trace {
  const tool_verb *verb;
  tarn_trace *trace;
  trace_problem buffers;
  roles roles;
  plan_colours colours;
  options_list pools;  // to compare with
  tarn_device *device;
  char id[32];  // the last that was asked for

  // The findings about an answer.
  uint64_t capacity;  // 0: none was given
  // Of a plan, whether it fits or not; 0: there is none.
  uint64_t height;
  what_if strategies;
  bool pressed;        // it does not fit: the next two say something
  double scale;        // of all sizes; 0: unknown
  double scale_young;  // of those that are not older than the trace
} plan_trace;

// As of plan_input_kind.
void plan_trace_list(const plan_input *input, const size_t *buffers,
                     size_t count, FILE *out);
void plan_trace_tell(const plan_input *input, const plan_answer *answer,
                     FILE *out);
void plan_trace_tell_json(const plan_input *input, const plan_answer *answer,
                          json *out);
bool plan_trace_explain(const plan_input *input, uint64_t *out_step, char *out,
                        size_t size);

#endif  // TARN_TOOL_PLAN_TRACE_H_
