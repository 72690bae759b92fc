// plan_report.h - the report of a plan.
#ifndef TARN_TOOL_PLAN_REPORT_H_
#define TARN_TOOL_PLAN_REPORT_H_

#include "plan_input.h"
#include "plan_shortage.h"

// Whether the plan was checked by tarn_plan_verify.
typedef enum plan_checked {
  PLAN_UNCHECKED = 0,  // not asked for, or there is no plan
  PLAN_GOOD,
  PLAN_WRONG,  // |plan_answer.wrong| says why
} plan_checked;

typedef struct plan_answer {
  const plan_input *input;
  tarn_plan_problem problem;  // the input's, with capacities
  // How it came out. Where offsets of the file were only checked: how good
  // they are, no nodes, and OPTIMAL or FEASIBLE.
  tarn_plan_info info;
  const tarn_plan *plan;    // NULL where offsets were only checked
  const uint64_t *offsets;  // NULL: there is no plan
  const uint32_t *arenas;   // NULL: all lie in the first
  plan_shortage shortage;   // zero where there is a plan, or no capacity
  const size_t *conflict;   // info.conflict_count buffers; NULL: none named
  bool has_previous;        // then info.moved_count says something
  double time_limit_s;      // of the search, in seconds; INFINITY
  double question_seconds;  // for each question about it
  uint64_t node_limit;      // 0: none
  bool is_enough;           // a plan within the capacity is all that was asked
  plan_checked checked;
  const char *wrong;
  const char *out_path;  // where it was written; NULL: nowhere
  const char *svg_path;
} plan_answer;

// For people, the answer first.
void plan_write_report(const plan_answer *answer, FILE *out);

// One line.
void plan_write_json(const plan_answer *answer, FILE *out);

#endif  // TARN_TOOL_PLAN_REPORT_H_
