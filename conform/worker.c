// The side of a run that calls the plug-in: loads it and makes check after
// check, for as long as all goes well.
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *worker_find_hopeless(const session *s, size_t index) {
  const conform_outcome *outcomes = s->found->outcomes;
  if (outcomes[conform_accepted()].result == CONFORM_FAIL) return "not loaded";
  bool is_ready = outcomes[conform_initialized()].result != CONFORM_FAIL;
  if (is_ready || conform_at(index)->stage != CHECK_READY) return NULL;
  return "not initialised";
}

typedef struct worker {
  const session *session;
  sender out;
  conform_target *target;
  char origin[PATH_MAX];
} worker;

static void send_outcome(worker *w, message_kind kind, bool leaves) {
  message m = {.kind = kind,
               .leaves = leaves,
               .devices = w->target->count,
               .outcome = w->target->outcome};
  w->out.send(w->out.context, &m);
}

static void send_loaded(worker *w) {
  message m = {.kind = MESSAGE_LOADED, .devices = w->target->count};
  snprintf(m.type, sizeof m.type, "%s", w->target->plugin->type);
  w->out.send(w->out.context, &m);
}

// Finds it in each child, and tells so in the first.
static bool find(worker *w, bool first) {
  message m = {.kind = MESSAGE_FOUND};
  bool found = conform_target_find(w->target, w->session->request, w->origin);
  if (!found) {
    m.kind = MESSAGE_NO_PLUGIN;
    snprintf(m.outcome.detail, sizeof m.outcome.detail, "%s",
             tarn_last_error());
  }
  snprintf(m.origin, sizeof m.origin, "%s", w->origin);
  if (first || !found) w->out.send(w->out.context, &m);
  return found;
}

// The first check of all: is it taken in?
static bool load(worker *w, size_t position) {
  bool loaded = conform_target_load(w->target, w->origin);
  if (position != 0) return loaded;
  if (loaded) {
    memset(&w->target->outcome, 0, sizeof w->target->outcome);
    w->target->outcome.result = CONFORM_PASS;
    send_loaded(w);
  } else {
    conform_fail(w->target, "%s", tarn_last_error());
  }
  send_outcome(w, MESSAGE_OUTCOME, !loaded);
  return loaded;
}

// False: this child must not go on.
static bool make_ready(worker *w) {
  conform_readiness readiness = conform_target_initialize(w->target);
  if (readiness == CONFORM_READY) return true;
  send_outcome(
      w, readiness == CONFORM_NOT_THERE ? MESSAGE_NO_DEVICE : MESSAGE_OUTCOME,
      true);
  return false;
}

static bool run_check(worker *w, size_t index) {
  conform_target *t = w->target;
  const conform_check *check = conform_at(index);
  const char *hopeless = worker_find_hopeless(w->session, index);
  if (hopeless != NULL) {
    conform_skip(t, "%s", hopeless);
    send_outcome(w, MESSAGE_OUTCOME, false);
    return true;
  }
  if (check->stage == CHECK_READY && !make_ready(w)) return false;
  conform_check_run(t, check);
  bool spoilt = t->outcome.result == CONFORM_FAIL || check->last;
  bool leaves = spoilt && !w->session->request->in_process;
  send_outcome(w, MESSAGE_OUTCOME, leaves);
  return !leaves;
}

static void send_copy(void *context, const conform_copy *row) {
  worker *w = context;
  message m = {.kind = MESSAGE_COPY, .copy = *row};
  w->out.send(w->out.context, &m);
}

static void send_allocation(void *context, const conform_allocation *row) {
  worker *w = context;
  message m = {.kind = MESSAGE_ALLOCATION, .allocation = *row};
  w->out.send(w->out.context, &m);
}

static void measure(worker *w) {
  if (!make_ready(w)) return;
  measure_sink sink = {send_copy, send_allocation, w};
  memset(&w->target->outcome, 0, sizeof w->target->outcome);
  w->target->outcome.result = CONFORM_PASS;
  (void)conform_measure(w->target, &sink);
  send_outcome(w, MESSAGE_MEASURED, true);
}

// From |position| of the order on.
static bool go_on(worker *w, size_t position) {
  const session *s = w->session;
  if (!find(w, position == 0) || !load(w, position)) return false;
  for (size_t i = position == 0 ? 1 : position; i < s->count; i++) {
    if (!run_check(w, s->order[i])) return false;
  }
  if (s->request->measures) measure(w);
  return true;
}

void worker_run(const session *s, sender out, bool ends) {
  worker *w = calloc(1, sizeof *w);
  conform_target *t = calloc(1, sizeof *t);
  if (w != NULL && t != NULL) {
    t->wanted = s->request->device;
    w->session = s;
    w->out = out;
    w->target = t;
    if (go_on(w, s->next) || ends) conform_target_end(t);
  }
  free(t);
  free(w);
}
