// Ways to lower a peak, each tried on the trace.
#include "savings.h"

#include <stdlib.h>

typedef struct trial {
  const tarn_trace *trace;
  const roles *roles;
  moment peak;
  phase phase;  // of the peak
  // The event at which the optimizer that ran last before the peak began.
  uint32_t last_optimizer;
} trial;

// Whether the block is one of those that a way takes away.
typedef bool block_test(const trial *t, uint32_t block);

typedef struct way {
  const char *way;
  const char *why;
  block_test *takes;
  unsigned phases;  // of the peak: bits
  // Takes them away only while forward passes run.
  bool in_forward;
} way;

enum {
  IN_FORWARD = 1 << PHASE_FORWARD,
  IN_BACKWARD = 1 << PHASE_BACKWARD,
  IN_OPTIMIZER = 1 << PHASE_OPTIMIZER,
};

// ---------------------------------------------------------------------------
// Ways
// ---------------------------------------------------------------------------

static uint32_t born_of(const trial *t, uint32_t block) {
  return t->trace->blocks[block].born;
}

// The last optimizer step before the peak came after it.
static bool is_of_earlier_step(const trial *t, uint32_t block) {
  uint32_t born = born_of(t, block);
  if (t->last_optimizer == TARN_TRACE_NEVER) return false;
  return born == TARN_TRACE_BASELINE || born < t->last_optimizer;
}

static bool is_activation(const trial *t, uint32_t block) {
  return roles_of(t->roles, block) == ROLE_ACTIVATION &&
         !is_of_earlier_step(t, block);
}

static bool is_left_activation(const trial *t, uint32_t block) {
  return roles_of(t->roles, block) == ROLE_ACTIVATION &&
         is_of_earlier_step(t, block);
}

static bool is_gradient(const trial *t, uint32_t block) {
  return roles_of(t->roles, block) == ROLE_GRADIENT;
}

static bool is_left_gradient(const trial *t, uint32_t block) {
  return is_gradient(t, block) && is_of_earlier_step(t, block);
}

static bool is_of_optimizer(const trial *t, uint32_t block) {
  return roles_of(t->roles, block) == ROLE_TEMPORARY &&
         born_of(t, block) != TARN_TRACE_BASELINE &&
         t->roles->phases.of_event[born_of(t, block)] == PHASE_OPTIMIZER;
}

static const way ways[SAVINGS_MOST] = {
    {"running parts of the forward pass again in backward (checkpointing)",
     "activations that are kept for backward", is_activation,
     IN_FORWARD | IN_BACKWARD, false},
    {"letting go of what was computed in earlier steps",
     "activations that outlive the optimizer's step", is_left_activation,
     IN_FORWARD | IN_BACKWARD, false},
    {"zero_grad(set_to_none=True) before the forward pass",
     "gradients that the optimizer has already applied", is_left_gradient,
     IN_FORWARD, true},
    {"an optimizer that works in place, or on fewer tensors at a time",
     "temporaries of the optimizer", is_of_optimizer, IN_OPTIMIZER, false},
    {"applying each gradient within backward, and freeing it then",
     "gradients that wait for the optimizer", is_gradient,
     IN_BACKWARD | IN_OPTIMIZER, false},
};

// ---------------------------------------------------------------------------
// A trial
// ---------------------------------------------------------------------------

static uint64_t take_old(const trial *t, const way *w, uint64_t *live) {
  uint64_t taken = 0;
  for (uint32_t i = 0; i < t->trace->baseline_count; i++) {
    *live += t->trace->blocks[i].size;
    if (w->takes(t, i)) taken += t->trace->blocks[i].size;
  }
  return taken;
}

static bool counts_at(const trial *t, const way *w, size_t event) {
  return !w->in_forward || t->roles->phases.of_event[event] == PHASE_FORWARD;
}

// The highest moment without what |w| takes away; |*out_held| is what that is
// at the peak.
static uint64_t peak_without(const trial *t, const way *w, uint64_t *out_held) {
  uint64_t live = 0, taken = take_old(t, w, &live);
  uint64_t most = live - (w->in_forward ? 0 : taken);
  for (size_t i = 0; i < t->trace->event_count; i++) {
    const tarn_trace_event *e = &t->trace->events[i];
    bool up = e->kind == TARN_TRACE_ALLOC;
    if (up || e->kind == TARN_TRACE_FREE) {
      uint64_t size = t->trace->blocks[e->block].size;
      uint64_t change = w->takes(t, e->block) ? size : 0;
      live = up ? live + size : live - size;
      taken = up ? taken + change : taken - change;
    }
    uint64_t then = live - (counts_at(t, w, i) ? taken : 0);
    if (then > most) most = then;
    if (i == t->peak) *out_held = taken;
  }
  return most;
}

static int compare(const void *a, const void *b) {
  const saving *x = a, *y = b;
  return (x->saved < y->saved) - (x->saved > y->saved);
}

static uint32_t find_optimizer(const phases *p, moment peak) {
  for (size_t i = p->run_count; i-- > 0;) {
    if (p->runs[i].what == PHASE_OPTIMIZER && p->runs[i].end <= peak)
      return p->runs[i].first;
  }
  return TARN_TRACE_NEVER;
}

savings savings_find(const tarn_trace *trace, const roles *r) {
  savings found = {0};
  trial t = {.trace = trace, .roles = r, .peak = trace->live_peak_event};
  if (t.peak == TARN_TRACE_BASELINE) return found;
  t.phase = phases_at(&r->phases, t.peak);
  t.last_optimizer = find_optimizer(&r->phases, t.peak);
  for (size_t i = 0; i < SAVINGS_MOST; i++) {
    if ((ways[i].phases & (1U << t.phase)) == 0) continue;
    saving s = {.way = ways[i].way, .why = ways[i].why};
    s.saved = trace->live_peak_bytes - peak_without(&t, &ways[i], &s.held);
    if (s.saved > 0 && s.saved >= trace->live_peak_bytes / 100)
      found.items[found.count++] = s;
  }
  qsort(found.items, found.count, sizeof *found.items, compare);
  return found;
}
