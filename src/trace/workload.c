// Workloads by name.
#include "trace/workload.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

static const struct workload {
  const char *name;
  tarn__trace_tape_tensor (*net)(tarn__trace_tape *tape,
                                 size_t batch);  // NULL: random
  size_t batch;
  bool training;
} workloads[] = {
    {"@bert-layer", tarn__net_bert_layer, 4, true},
    {"@resnet50-b8", tarn__net_resnet50, 8, true},
    {"@resnet50-b32", tarn__net_resnet50, 32, true},
    {"@kv-decode", tarn__net_decode, 8, false},
    {"@random", NULL, 0, false},
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

const char *tarn_trace_workload(size_t index) {
  return index < WORKLOADS ? workloads[index].name : NULL;
}

static const struct workload *find(const char *name) {
  for (size_t i = 0; i < WORKLOADS; i++) {
    if (strcmp(workloads[i].name, name) == 0) return &workloads[i];
  }
  return NULL;
}

static tarn_status refuse(const char *name) {
  char known[128] = "";
  for (size_t i = 0, used = 0; i < WORKLOADS && used < sizeof known; i++) {
    used += (size_t)snprintf(known + used, sizeof known - used, "%s%s",
                             i == 0 ? "" : ", ", workloads[i].name);
  }
  return tarn__fail(TARN_E_INVALID, "no workload '%s'; known are %s", name,
                    known);
}

static tarn_status run_net(tarn__trace_history *history,
                           const struct workload *workload) {
  tarn__trace_tape tape;
  tarn__tape_init(&tape, history, workload->name, workload->training);
  tarn__trace_tape_tensor result = workload->net(&tape, workload->batch);
  tarn_status status = tarn__tape_run(&tape, result);
  tarn__tape_deinit(&tape);
  return status;
}

tarn_status tarn_trace_make(const char *name, tarn_trace **out_trace) {
  *out_trace = NULL;
  if (name == NULL) return tarn__fail(TARN_E_INVALID, "trace: name is NULL");
  const struct workload *workload = find(name);
  if (workload == NULL) return refuse(name);
  tarn__budget budget = tarn__budget_unlimited(name);
  tarn__trace_history history;
  tarn__history_init(&history, &budget, workload->name);
  tarn_status status = workload->net != NULL
                           ? run_net(&history, workload)
                           : tarn__random_history(&history, workload->name);
  return tarn__history_finish(&history, status, "workload", out_trace);
}
