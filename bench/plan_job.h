// plan_job.h - one problem that is solved in a process of its own: its time and
// memory, and when a plan was good enough.
//
// Times are seconds of the processor, from the start of the process, the
// reading of a file included, the making of a problem not. Each plan is
// verified; a wrong plan is a failure.
#ifndef TARN_BENCH_PLAN_JOB_H_
#define TARN_BENCH_PLAN_JOB_H_

#include "kit/child.h"
#include "plan_packings.h"

// Too soon for anybody to wait: a plan should be good by then.
#define PLAN_JOB_EARLY 0.1

typedef struct plan_job {
  // The problem: the first of these that is set.
  const char *path;                  // a file, as plan_csv.h says
  const char *model;                 // by its name in plan_models.h
  const plan_packing_spec *packing;  //
  bool fit;                          // a plan within |wanted| is enough
  // The height that is looked for; 0: |over_bound| times the lower bound.
  uint64_t wanted;
  double over_bound;   // at least 1
  double seconds;      // after how many to end with the best so far
  const char *output;  // a file for the plan of |path|; NULL: none
} plan_job;

typedef struct plan_job_result {
  char failed[CHILD_TEXT_SIZE];  // empty: all below is there
  size_t buffers;
  uint64_t wanted;
  uint64_t bound;   // of all that is live at once
  uint64_t height;  // 0: there is no plan
  uint64_t early;   // after PLAN_JOB_EARLY seconds; 0: none yet
  uint64_t proved;  // no plan is lower
  tarn_plan_answer answer;
  uint64_t nodes;
  double seconds;         // in all
  double wanted_seconds;  // until a plan was as low as wanted; NaN: none was
  double best_seconds;    // until the last plan that was better; NaN: none was
  double peak;            // bytes that were resident at most
} plan_job_result;

plan_job_result plan_job_run(const plan_job *job);

#endif  // TARN_BENCH_PLAN_JOB_H_
