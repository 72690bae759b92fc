// Workloads by name.
#include "trace/workload.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

// A net runs once; all others write their history themselves.
static const struct workload {
  const char *name;
  tarn__trace_tape_tensor (*net)(tarn__trace_tape *tape, size_t batch);
  size_t batch;
  bool training;
  tarn_status (*write)(tarn__trace_history *history, const char *workload);
} workloads[] = {
    {.name = "@bert-layer",
     .net = tarn__net_bert_layer,
     .batch = 4,
     .training = true},
    {.name = "@resnet50-b8",
     .net = tarn__net_resnet50,
     .batch = 8,
     .training = true},
    {.name = "@resnet50-b32",
     .net = tarn__net_resnet50,
     .batch = 32,
     .training = true},
    {.name = "@kv-decode", .net = tarn__net_decode, .batch = 8},
    {.name = "@random", .write = tarn__random_history},
    {.name = "@serving", .write = tarn__serving_history},
    {.name = "@varlen", .write = tarn__varlen_history},
    {.name = "@dataloader", .write = tarn__dataloader_history},
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
  char known[256] = "";
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
                           : workload->write(&history, workload->name);
  return tarn__history_finish(&history, status, "workload", out_trace);
}
