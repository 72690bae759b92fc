// Roles by rules.
//
// Blocks born in the trace are judged in one walk over the events, from the
// last to the first, so that what comes after a birth is known: where the next
// backward pass begins, where the optimizer first allocates. Blocks that are
// never freed are left for the end, when it is known how many gradients there
// were of each size.
#include "roles.h"

#include <stdlib.h>
#include <string.h>

#include "kit/tool.h"

// ---------------------------------------------------------------------------
// Rules
// ---------------------------------------------------------------------------

typedef enum rule {
  RULE_NO_PASS = 0,
  RULE_WEIGHT,
  RULE_WEIGHT_ALONE,
  RULE_STATE_EXTRA,
  RULE_STATE_FREED,
  RULE_STATE_MADE,
  RULE_GRADIENT,
  RULE_GRADIENT_KEPT,
  RULE_GRADIENT_CUT,
  RULE_GRADIENT_ZEROED,
  RULE_ACTIVATION,
  RULE_ACTIVATION_CUT,
  RULE_ACTIVATION_OLD,
  RULE_INPUT_SIZE,
  RULE_INPUT_OLD,
  RULE_INPUT_BETWEEN,
  RULE_TEMPORARY_FORWARD,
  RULE_TEMPORARY_BACKWARD,
  RULE_TEMPORARY_OPTIMIZER,
  RULE_TEMPORARY_BETWEEN,
  RULE_TEMPORARY_OLD,
  RULE_WORKSPACE,
  RULE_UNKNOWN_OLD,
  RULE_UNKNOWN_OUTPUT,
  RULE_UNKNOWN_BACKWARD,
  RULE_UNKNOWN_BETWEEN,
  RULES,
} rule;

static const struct {
  role what;
  const char *text;
} rules[RULES] = {
    [RULE_NO_PASS] = {ROLE_UNKNOWN,
                      "no stack of the trace names a pass of PyTorch"},
    [RULE_WEIGHT] = {ROLE_PARAMETER,
                     "never freed, one for each gradient of the same size"},
    [RULE_WEIGHT_ALONE] = {ROLE_PARAMETER,
                           "there before the first pass, never freed; no "
                           "backward pass tells weights from buffers and "
                           "inputs"},
    [RULE_STATE_EXTRA] = {ROLE_OPTIMIZER_STATE,
                          "older than the trace, never freed, of a gradient's "
                          "size beyond one for each gradient"},
    [RULE_STATE_FREED] = {ROLE_OPTIMIZER_STATE,
                          "older than the trace, freed in the optimizer"},
    [RULE_STATE_MADE] = {ROLE_OPTIMIZER_STATE,
                         "born in the optimizer, alive when it ends"},
    [RULE_GRADIENT] = {ROLE_GRADIENT,
                       "born in backward, alive when the optimizer first "
                       "allocates"},
    [RULE_GRADIENT_KEPT] = {ROLE_GRADIENT,
                            "born in backward, alive when it ends"},
    [RULE_GRADIENT_CUT] = {ROLE_GRADIENT,
                           "born in backward, alive where the trace ends in "
                           "it, under AccumulateGrad"},
    [RULE_GRADIENT_ZEROED] = {ROLE_GRADIENT,
                              "older than the trace, freed in zero_grad"},
    [RULE_ACTIVATION] = {ROLE_ACTIVATION,
                         "born in forward, alive when backward begins"},
    [RULE_ACTIVATION_CUT] = {ROLE_ACTIVATION,
                             "born in forward, alive where the trace ends "
                             "before backward"},
    [RULE_ACTIVATION_OLD] = {ROLE_ACTIVATION,
                             "older than the trace, freed in backward"},
    [RULE_INPUT_SIZE] = {ROLE_INPUT,
                         "never freed, of a size that no gradient has: inputs, "
                         "buffers, frozen weights"},
    [RULE_INPUT_OLD] = {ROLE_INPUT,
                        "older than the trace, freed outside of backward and "
                        "optimizer"},
    [RULE_INPUT_BETWEEN] = {ROLE_INPUT,
                            "born between passes, alive when forward begins"},
    [RULE_TEMPORARY_FORWARD] =
        {ROLE_TEMPORARY, "born in forward, freed before any backward pass"},
    [RULE_TEMPORARY_BACKWARD] = {ROLE_TEMPORARY,
                                 "born in backward, freed before the "
                                 "optimizer"},
    [RULE_TEMPORARY_OPTIMIZER] = {ROLE_TEMPORARY,
                                  "born and freed in the optimizer"},
    [RULE_TEMPORARY_BETWEEN] = {ROLE_TEMPORARY,
                                "born and freed between passes"},
    [RULE_TEMPORARY_OLD] = {ROLE_TEMPORARY,
                            "older than the trace, freed in the pass in which "
                            "it begins"},
    [RULE_WORKSPACE] = {ROLE_WORKSPACE,
                        "8,519,680 bytes, what cuBLAS is given to work in, or "
                        "born for a workspace"},
    [RULE_UNKNOWN_OLD] = {ROLE_UNKNOWN,
                          "older than the trace, never freed; no whole "
                          "backward pass tells weights, states and gradients "
                          "apart"},
    [RULE_UNKNOWN_OUTPUT] = {ROLE_UNKNOWN,
                             "born in forward, never freed; no backward pass "
                             "tells activations from outputs and caches"},
    [RULE_UNKNOWN_BACKWARD] = {ROLE_UNKNOWN,
                               "born in backward, alive where the trace ends "
                               "in it"},
    [RULE_UNKNOWN_BETWEEN] = {ROLE_UNKNOWN,
                              "born between passes, never freed, and no "
                              "forward pass follows"},
};

// ---------------------------------------------------------------------------
// The judge
// ---------------------------------------------------------------------------

// What comes after the event that is looked at; NEVER: nothing does.
typedef struct ahead {
  uint32_t forward;    // the next event whose own stack is of a forward pass
  uint32_t backward;   // where the next backward pass begins
  uint32_t optimizer;  // the next allocation of the optimizer
  uint32_t other;      // the end of the pass that is looked at
  uint32_t step;       // passes forward that begin behind it
} ahead;

// A block whose size is to be matched with others'.
typedef struct sized {
  uint64_t size;
  uint32_t block;  // of a gradient: its step
} sized;

typedef struct judge {
  const tarn_trace *trace;
  const phases *phases;
  uint8_t *rule_of;
  uint32_t last_pass;      // the last event whose own stack names a pass
  uint32_t first_forward;  // the first of a forward pass
  uint8_t *is_workspace;   // of each stack
  sized *gradients;
  size_t gradient_count;
  sized *kept;  // old, or born before the first forward pass
  size_t kept_count;
  bool whole_backward;  // a backward pass begins and ends in the trace
} judge;

enum { WORKSPACE_BYTES = 8519680 };  // PyTorch's ":4096:2:16:8"

static phase own_of_stack(const judge *j, uint32_t stack, uint32_t event) {
  bool tells =
      stack != TARN_TRACE_NO_STACK && j->trace->stacks[stack].count > 0;
  return (phase)(tells ? j->phases->of_stack[stack]
                       : j->phases->of_event[event]);
}

// Whether it lives through all passes: what is freed behind the last of them,
// as the model is at the end of a program, does not count as freed.
static bool is_kept(const judge *j, const tarn_trace_block *block) {
  return block->died == TARN_TRACE_NEVER || block->died > j->last_pass;
}

// Whether it is alive when |event| happens; false if that never does.
static bool reaches(const tarn_trace_block *block, uint32_t event) {
  return event != TARN_TRACE_NEVER && block->died >= event;
}

typedef bool frame_test(const tarn_trace_frame *frame);

static bool stack_has(const tarn_trace *trace, uint32_t stack,
                      frame_test *test) {
  if (stack == TARN_TRACE_NO_STACK) return false;
  const tarn_trace_stack *s = &trace->stacks[stack];
  for (uint32_t i = 0; i < s->count; i++) {
    if (test(&trace->frames[trace->frame_indices[s->first + i]])) return true;
  }
  return false;
}

static bool is_accumulation(const tarn_trace_frame *frame) {
  return strstr(frame->function, "AccumulateGrad::apply") != NULL;
}

static bool is_zero_grad(const tarn_trace_frame *frame) {
  return strcmp(frame->function, "zero_grad") == 0;
}

static bool is_workspace(const tarn_trace_frame *frame) {
  return strstr(frame->function, "BlasWorkspace") != NULL ||
         strstr(frame->function, "BlasLtWorkspace") != NULL ||
         strstr(frame->function, "getNewWorkspace") != NULL;
}

// ---------------------------------------------------------------------------
// Blocks born in the trace
// ---------------------------------------------------------------------------

static rule judge_forward(const judge *j, const tarn_trace_block *block,
                          const ahead *next) {
  if (next->backward != TARN_TRACE_NEVER) {
    return reaches(block, next->backward) ? RULE_ACTIVATION
                                          : RULE_TEMPORARY_FORWARD;
  }
  if (!is_kept(j, block)) return RULE_TEMPORARY_FORWARD;
  return j->phases->has[PHASE_BACKWARD] ? RULE_ACTIVATION_CUT
                                        : RULE_UNKNOWN_OUTPUT;
}

static rule judge_backward(const judge *j, const tarn_trace_block *block,
                           const ahead *next) {
  if (next->optimizer != TARN_TRACE_NEVER) {
    return reaches(block, next->optimizer) ? RULE_GRADIENT
                                           : RULE_TEMPORARY_BACKWARD;
  }
  if (next->other != TARN_TRACE_NEVER) {
    return reaches(block, next->other) ? RULE_GRADIENT_KEPT
                                       : RULE_TEMPORARY_BACKWARD;
  }
  if (!is_kept(j, block)) return RULE_TEMPORARY_BACKWARD;
  return stack_has(j->trace, block->stack, is_accumulation)
             ? RULE_GRADIENT_CUT
             : RULE_UNKNOWN_BACKWARD;
}

static rule judge_between(const judge *j, const tarn_trace_block *block,
                          const ahead *next) {
  if (reaches(block, next->forward)) return RULE_INPUT_BETWEEN;
  return is_kept(j, block) ? RULE_UNKNOWN_BETWEEN : RULE_TEMPORARY_BETWEEN;
}

static rule judge_young(const judge *j, const tarn_trace_block *block,
                        const ahead *next) {
  phase own = own_of_stack(j, block->stack, block->born);
  phase pass = (phase)j->phases->of_event[block->born];
  bool asked =
      block->stack != TARN_TRACE_NO_STACK && j->is_workspace[block->stack] != 0;
  if (asked || block->size == WORKSPACE_BYTES) return RULE_WORKSPACE;
  if (own == PHASE_OPTIMIZER) {
    return is_kept(j, block) || reaches(block, next->other)
               ? RULE_STATE_MADE
               : RULE_TEMPORARY_OPTIMIZER;
  }
  if (own == PHASE_BACKWARD) return judge_backward(j, block, next);
  if (pass == PHASE_FORWARD) return judge_forward(j, block, next);
  return judge_between(j, block, next);
}

static bool is_gradient(rule r) {
  return r == RULE_GRADIENT || r == RULE_GRADIENT_KEPT ||
         r == RULE_GRADIENT_CUT;
}

static void add_young(judge *j, uint32_t index, const ahead *next) {
  const tarn_trace_block *block = &j->trace->blocks[index];
  rule found = judge_young(j, block, next);
  j->rule_of[index] = (uint8_t)found;
  if (is_gradient(found))
    j->gradients[j->gradient_count++] = (sized){block->size, next->step};
  bool made = found == RULE_INPUT_BETWEEN && block->born < j->first_forward;
  if (made && is_kept(j, block))
    j->kept[j->kept_count++] = (sized){block->size, index};
}

// Moves on to the event before |event|.
static void look_back(const judge *j, size_t event, ahead *next) {
  const uint8_t *of_event = j->phases->of_event;
  const tarn_trace_event *e = &j->trace->events[event];
  phase pass = (phase)of_event[event];
  phase own = own_of_stack(j, e->stack, (uint32_t)event);
  bool begins = event == 0 || of_event[event - 1] != pass;
  if (own == PHASE_FORWARD) next->forward = (uint32_t)event;
  if (pass == PHASE_BACKWARD) next->backward = (uint32_t)event;
  if (own == PHASE_OPTIMIZER && e->kind == TARN_TRACE_ALLOC)
    next->optimizer = (uint32_t)event;
  if (begins) next->other = (uint32_t)event;
  if (begins && pass == PHASE_FORWARD) next->step++;
  // A gradient is applied before the next backward pass, or added to in it.
  if (begins && pass == PHASE_BACKWARD) next->optimizer = TARN_TRACE_NEVER;
}

static void judge_all_young(judge *j) {
  ahead next = {TARN_TRACE_NEVER, TARN_TRACE_NEVER, TARN_TRACE_NEVER,
                TARN_TRACE_NEVER, 0};
  for (size_t i = j->trace->event_count; i-- > 0;) {
    const tarn_trace_event *e = &j->trace->events[i];
    if (e->kind == TARN_TRACE_ALLOC) add_young(j, e->block, &next);
    look_back(j, i, &next);
  }
}

// ---------------------------------------------------------------------------
// Blocks older than the trace
// ---------------------------------------------------------------------------

static rule judge_freed(const judge *j, const tarn_trace_block *block) {
  const tarn_trace_event *death = &j->trace->events[block->died];
  phase own = own_of_stack(j, death->stack, block->died);
  const phase_run *first = &j->phases->runs[0];
  if (stack_has(j->trace, death->stack, is_zero_grad))
    return RULE_GRADIENT_ZEROED;
  if (own == PHASE_OPTIMIZER) return RULE_STATE_FREED;
  if (own == PHASE_BACKWARD) return RULE_ACTIVATION_OLD;
  bool at_once = own == PHASE_FORWARD && first->what == PHASE_FORWARD &&
                 block->died < first->end;
  return at_once ? RULE_TEMPORARY_OLD : RULE_INPUT_OLD;
}

static void judge_all_old(judge *j) {
  for (uint32_t i = 0; i < j->trace->baseline_count; i++) {
    const tarn_trace_block *block = &j->trace->blocks[i];
    if (block->size == WORKSPACE_BYTES) {
      j->rule_of[i] = RULE_WORKSPACE;
    } else if (is_kept(j, block)) {
      j->kept[j->kept_count++] = (sized){block->size, i};
    } else {
      j->rule_of[i] = (uint8_t)judge_freed(j, block);
    }
  }
}

// ---------------------------------------------------------------------------
// Matching
// ---------------------------------------------------------------------------

static int compare_sized(const void *a, const void *b) {
  const sized *x = a, *y = b;
  if (x->size != y->size) return x->size < y->size ? -1 : 1;
  return (x->block > y->block) - (x->block < y->block);
}

// The gradients of |size|: the most of any one step. |*at| is where the sorted
// list is looked at, and moves on.
static size_t count_gradients(const judge *j, uint64_t size, size_t *at) {
  size_t most = 0, run = 0, i = *at;
  while (i < j->gradient_count && j->gradients[i].size < size)
    i++;
  for (; i < j->gradient_count && j->gradients[i].size == size; i++) {
    bool same = run > 0 && j->gradients[i].block == j->gradients[i - 1].block;
    run = same ? run + 1 : 1;
    if (run > most) most = run;
  }
  *at = i;
  return most;
}

// Of a block that is never freed; |gradients| has its size, and |before| blocks
// of it were weights already.
static rule match(const judge *j, const sized *kept, size_t gradients,
                  size_t before) {
  bool old = kept->block < j->trace->baseline_count;
  const bool *has = j->phases->has;
  if (before < gradients) return RULE_WEIGHT;
  if (!old && has[PHASE_BACKWARD]) return RULE_INPUT_BETWEEN;
  if (!has[PHASE_BACKWARD] && !has[PHASE_OPTIMIZER]) return RULE_WEIGHT_ALONE;
  if (!j->whole_backward || j->gradient_count == 0) return RULE_UNKNOWN_OLD;
  return gradients > 0 ? RULE_STATE_EXTRA : RULE_INPUT_SIZE;
}

static void match_all(judge *j) {
  size_t at = 0;
  qsort(j->gradients, j->gradient_count, sizeof(sized), compare_sized);
  qsort(j->kept, j->kept_count, sizeof(sized), compare_sized);
  for (size_t i = 0; i < j->kept_count;) {
    uint64_t size = j->kept[i].size;
    size_t gradients = count_gradients(j, size, &at), before = 0;
    for (; i < j->kept_count && j->kept[i].size == size; i++, before++)
      j->rule_of[j->kept[i].block] =
          (uint8_t)match(j, &j->kept[i], gradients, before);
  }
}

// ---------------------------------------------------------------------------
// All
// ---------------------------------------------------------------------------

static bool any_whole_backward(const phases *p) {
  for (size_t i = 1; i + 1 < p->run_count; i++) {
    if (p->runs[i].what == PHASE_BACKWARD) return true;
  }
  return false;
}

static void find_ends(judge *j) {
  const tarn_trace *trace = j->trace;
  j->first_forward = TARN_TRACE_NEVER;
  for (size_t i = 0; i < trace->event_count; i++) {
    phase own = own_of_stack(j, trace->events[i].stack, (uint32_t)i);
    if (own == PHASE_OTHER) continue;
    j->last_pass = (uint32_t)i;
    if (own == PHASE_FORWARD && j->first_forward == TARN_TRACE_NEVER)
      j->first_forward = (uint32_t)i;
  }
}

static void find_workspaces(judge *j) {
  const tarn_trace *trace = j->trace;
  uint8_t *frames = tool_array(trace->frame_count + 1, sizeof *frames);
  j->is_workspace = tool_array(trace->stack_count + 1, 1);
  for (size_t i = 0; i < trace->frame_count; i++)
    frames[i] = is_workspace(&trace->frames[i]);
  for (size_t i = 0; i < trace->stack_count; i++) {
    const tarn_trace_stack *s = &trace->stacks[i];
    for (uint32_t k = 0; k < s->count; k++)
      j->is_workspace[i] |= frames[trace->frame_indices[s->first + k]];
  }
  free(frames);
}

static void judge_all(roles *r, const tarn_trace *trace) {
  judge j = {.trace = trace, .phases = &r->phases, .rule_of = r->rule_of};
  j.gradients = tool_array(trace->block_count + 1, sizeof(sized));
  j.kept = tool_array(trace->block_count + 1, sizeof(sized));
  j.whole_backward = any_whole_backward(j.phases);
  find_ends(&j);
  find_workspaces(&j);
  judge_all_young(&j);
  judge_all_old(&j);
  match_all(&j);
  free(j.is_workspace);
  free(j.gradients);
  free(j.kept);
}

roles roles_find(const tarn_trace *trace) {
  roles r = {.phases = phases_find(trace)};
  r.rule_of = tool_array(trace->block_count + 1, sizeof *r.rule_of);
  if (phases_are_known(&r.phases)) judge_all(&r, trace);
  return r;
}

void roles_deinit(roles *r) {
  phases_deinit(&r->phases);
  free(r->rule_of);
  *r = (roles){0};
}

role roles_of(const roles *r, uint32_t block) {
  return rules[r->rule_of[block]].what;
}

const char *role_name(role what) {
  static const char *const names[ROLES] = {
      "parameter", "optimizer state", "gradient",  "activation",
      "input",     "temporary",       "workspace", "unknown"};
  return names[what];
}

const char *role_plural(role what) {
  static const char *const names[ROLES] = {"weights",
                                           "optimizer states",
                                           "gradients",
                                           "activations",
                                           "inputs and buffers",
                                           "temporaries",
                                           "workspaces",
                                           "unknown"};
  return names[what];
}

// ---------------------------------------------------------------------------
// Sums
// ---------------------------------------------------------------------------

typedef struct part {
  rule found;
  uint64_t bytes;
  uint64_t blocks;
} part;

static int compare_parts(const void *a, const void *b) {
  const part *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return (int)x->found - (int)y->found;
}

static int compare_sums(const void *a, const void *b) {
  const role_sum *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return (int)x->what - (int)y->what;
}

static role_sum *row_of(role_sums *sums, role what) {
  for (size_t i = 0; i < sums->count; i++) {
    if (sums->items[i].what == what) return &sums->items[i];
  }
  sums->items[sums->count] = (role_sum){.what = what};
  return &sums->items[sums->count++];
}

role_sums roles_sum(const roles *r, const tarn_trace *trace,
                    const block_set *set) {
  role_sums sums = {0};
  part parts[RULES] = {{0}};
  for (size_t i = 0; i < RULES; i++)
    parts[i].found = (rule)i;
  for (size_t i = 0; i < set->count; i++) {
    part *p = &parts[r->rule_of[set->items[i]]];
    p->bytes += trace->blocks[set->items[i]].size;
    p->blocks++;
  }
  qsort(parts, RULES, sizeof *parts, compare_parts);
  for (size_t i = 0; i < RULES; i++) {
    if (parts[i].blocks == 0) continue;
    role_sum *row = row_of(&sums, rules[parts[i].found].what);
    row->bytes += parts[i].bytes;
    row->blocks += parts[i].blocks;
    row->rules[row->rule_count++] = rules[parts[i].found].text;
  }
  qsort(sums.items, sums.count, sizeof *sums.items, compare_sums);
  return sums;
}

bool role_sums_tell(const role_sums *sums) {
  for (size_t i = 0; i < sums->count; i++) {
    role what = sums->items[i].what;
    if (what != ROLE_UNKNOWN && what != ROLE_WORKSPACE) return true;
  }
  return false;
}
