// Workloads by name.
#include "trace/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

// A net runs once; all others draw their history, with |seed| unless the name
// has another one behind it.
static const struct workload {
  const char *name;
  tarn__trace_tape_tensor (*net)(tarn__trace_tape *tape, size_t batch);
  size_t batch;
  bool training;
  tarn_status (*draw)(tarn__trace_history *history, const char *workload,
                      uint64_t seed);
  uint64_t seed;
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
    {.name = "@random", .draw = tarn__random_history, .seed = 1},
    {.name = "@serving", .draw = tarn__serving_history, .seed = 3},
    {.name = "@varlen", .draw = tarn__varlen_history, .seed = 2},
    {.name = "@dataloader", .draw = tarn__dataloader_history, .seed = 4},
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

const char *tarn_trace_workload(size_t index) {
  return index < WORKLOADS ? workloads[index].name : NULL;
}

// The one whose name |name| begins with, up to a colon.
static const struct workload *find(const char *name) {
  size_t length = strcspn(name, ":");
  for (size_t i = 0; i < WORKLOADS; i++) {
    const char *known = workloads[i].name;
    if (strncmp(known, name, length) == 0 && known[length] == '\0') {
      return &workloads[i];
    }
  }
  return NULL;
}

// ":seed=N" behind a name; nothing leaves |*seed| as it is.
static bool take_seed(const char *name, uint64_t *seed) {
  static const char option[] = ":seed=";
  enum { DIGITS_MOST = 18 };
  const char *rest = name + strcspn(name, ":");
  if (*rest == '\0') return true;
  if (strncmp(rest, option, sizeof option - 1) != 0) return false;
  rest += sizeof option - 1;
  size_t digits = strspn(rest, "0123456789");
  if (digits == 0 || digits > DIGITS_MOST || rest[digits] != '\0') return false;
  *seed = strtoull(rest, NULL, 10);
  return true;
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
  uint64_t seed = workload->seed;
  if (!take_seed(name, &seed)) {
    return tarn__fail(
        TARN_E_INVALID,
        "workload '%s': behind %s may only be :seed= and a number "
        "of up to 18 digits",
        name, workload->name);
  }
  tarn__budget budget = tarn__budget_unlimited(name);
  tarn__trace_history history;
  tarn__history_init(&history, &budget, name);
  tarn_status status = workload->net != NULL
                           ? run_net(&history, workload)
                           : workload->draw(&history, workload->name, seed);
  return tarn__history_finish(&history, status, "workload", out_trace);
}
