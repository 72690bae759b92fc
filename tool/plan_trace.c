// Traces as inputs of `tarn plan`, and what is asked about them.
#include "plan_trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/format.h"
#include "load.h"

// ---------------------------------------------------------------------------
// Names and the end
// ---------------------------------------------------------------------------

// The number of the block in the trace.
static const char *id_of(const plan_input *input, size_t index) {
  plan_trace *t = input->source;
  snprintf(t->id, sizeof t->id, "block-%zu", index);
  return t->id;
}

static void destroy(void *source) {
  plan_trace *t = source;
  if (t == NULL) return;
  what_if_deinit(&t->strategies);
  plan_colours_deinit(&t->colours);
  roles_deinit(&t->roles);
  trace_problem_deinit(&t->buffers);
  tarn_trace_destroy(t->trace);
  if (t->device != NULL) (void)tarn_device_close(t->device);
  options_list_free(&t->pools);
  free(t);
}

// ---------------------------------------------------------------------------
// Pictures
// ---------------------------------------------------------------------------

static uint8_t colour_of(const plan_input *input, size_t index) {
  const plan_trace *t = input->source;
  return t->colours.of_block[index];
}

static char colour_class(const plan_input *input) {
  const plan_trace *t = input->source;
  return t->colours.by_role ? 'r' : 'h';
}

static const char *colour_name(const plan_input *input, int colour) {
  const plan_trace *t = input->source;
  return t->colours.names[colour];
}

// ---------------------------------------------------------------------------
// What is asked
// ---------------------------------------------------------------------------

// The height of a plan that is as low as possible, or too high. A plan that has
// to fit need not be low.
static uint64_t find_height(const plan_trace *t, const plan_answer *answer) {
  uint64_t height = 0;
  if (t->capacity == 0) return answer->info.height;
  if (answer->offsets == NULL) return answer->shortage.height;
  free(plan_fit_unlimited(&t->buffers.problem, answer->question_seconds,
                          &height));
  bool lower = height == 0 || answer->info.height < height;
  return lower ? answer->info.height : height;
}

static bool ask_pools(plan_trace *t) {
  what_if_question question = {.trace = t->trace,
                               .device = t->device,
                               .pools = &t->pools,
                               .capacity = t->capacity};
  return what_if_run(t->verb, &question, &t->strategies);
}

static void ask_scale(plan_trace *t, const plan_answer *answer) {
  size_t count = t->buffers.problem.count;
  bool *old = tool_array(count + 1, sizeof *old);
  for (size_t i = 0; i < count; i++)
    old[i] = trace_problem_is_old(&t->buffers, i);
  double seconds = answer->question_seconds;
  t->scale = plan_fit_factor(&answer->problem, NULL, t->height, seconds);
  if (t->trace->baseline_count > 0) {
    t->scale_young = plan_fit_factor(&answer->problem, old, t->height, seconds);
  }
  free(old);
}

static bool ask(const plan_input *input, const plan_answer *answer) {
  plan_trace *t = input->source;
  t->capacity = plan_fit_capacity(&answer->problem);
  t->height = find_height(t, answer);
  t->pressed = answer->offsets == NULL && t->capacity > 0;
  if (t->pressed) ask_scale(t, answer);
  return ask_pools(t);
}

// ---------------------------------------------------------------------------
// The input
// ---------------------------------------------------------------------------

enum { QUESTIONS = 2 };  // of ask_scale; a plan that fits asks find_height

static const plan_input_kind trace_kind = {.id = id_of,
                                           .counts_events = true,
                                           .questions = QUESTIONS,
                                           .ask = ask,
                                           .list = plan_trace_list,
                                           .colour = colour_of,
                                           .colour_class = colour_class,
                                           .colour_name = colour_name,
                                           .explain = plan_trace_explain,
                                           .tell = plan_trace_tell,
                                           .tell_json = plan_trace_tell_json,
                                           .destroy = destroy};

static void say_refused(const plan_trace *t) {
  char count_text[FORMAT_SIZE], bytes[FORMAT_SIZE];
  uint64_t count = 0, largest = 0;
  for (size_t i = 0; i < t->trace->event_count; i++) {
    const tarn_trace_event *event = &t->trace->events[i];
    if (event->kind != TARN_TRACE_OOM) continue;
    count++;
    if (event->size > largest) largest = event->size;
  }
  if (count == 0) return;
  tool_say(t->verb,
           "%s: %s request%s, of up to %s, that found no memory %s no part of "
           "the plan; tarn why tells of %s",
           t->trace->name, format_count(count_text, count),
           count == 1 ? "" : "s", format_bytes(bytes, largest),
           count == 1 ? "is" : "are", count == 1 ? "it" : "them");
}

static tool_exit load(const plan_input_options *options, plan_input *out) {
  plan_trace *t = out->source;
  tool_exit status = load_check(out->verb, out->path, &options->trace);
  if (status != TOOL_DONE) return status;
  if (options->offsets_are_answers) {
    return tool_misuse(out->verb, "%s is a trace: it has no plan to check",
                       out->path);
  }
  for (size_t i = 0; i < options->pools.count; i++) {
    const char *pool = options->pools.items[i];
    options_list_add(&t->pools, pool, strlen(pool));
  }
  status = what_if_pools_check(t->verb, &t->pools, &t->device);
  if (status != TOOL_DONE) return status;
  status = load_trace(out->verb, out->path, &options->trace, &t->trace);
  if (status != TOOL_DONE) return status;
  t->buffers = trace_problem_make(t->trace, options->alignment, 0);
  t->roles = roles_find(t->trace);
  t->colours = plan_colours_make(t->trace, &t->roles);
  say_refused(t);
  out->problem = t->buffers.problem;
  return TOOL_DONE;
}

tool_exit plan_trace_load(const plan_input_options *options, plan_input *out) {
  plan_trace *t = tool_array(1, sizeof *t);
  t->verb = out->verb;
  out->source = t;
  out->kind = &trace_kind;
  return load(options, out);
}
