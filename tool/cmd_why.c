// tarn why: the holders of a trace's memory at its peak, and the reasons of
// refusals.
//
//   options ─► traces, pools are there? ─► the answer ─► dry replays ─► the
//   other trace's peak ─► cut ─► report
//
// Nothing is written to stdout before the answer is complete.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/options.h"
#include "load.h"
#include "verbs.h"
#include "why.h"

static const char help[] =
    "usage: tarn why TRACE|@WORKLOAD [OPTION]...\n"
    "\n"
    "Tells how much memory was alive at the peak of a trace, in which pass of\n"
    "the program that was, what the memory was for, which lines of code hold\n"
    "it, and what would help. If requests were refused for want of memory, "
    "the\n"
    "answer begins with the last of them: what was asked for, what was free\n"
    "and why that did not serve.\n"
    "\n"
    "  --top N             rows of each list; 0 for all (default: 10)\n"
    "  --at EVENT          tell of the moment after this event instead of the\n"
    "                      peak: a number from 0 on, 'oom' (the last refused\n"
    "                      request), 'end' or 'peak'\n"
    "  --diff OTHER        compare with the peak of this trace, line by line\n"
    "  --capacity BYTES    does it fit into so much, as in 40G?\n"
    "  --pool A,B          allocators to try (default: no_pool,\n"
    "                      page_unit_pool,buddy_pool,arena_pool), with "
    "options\n"
    "                      as in page_unit_pool:page=65536; 'none' tries none\n"
    "  --libraries P,Q     patterns of files and functions that are not your\n"
    "                      own code, as in '*/vendor/*'; '!PATTERN' is your\n"
    "                      own, 'none' forgets those that are built in\n"
    "  --module-depth N    parts of a module's name that count; 0 for all\n"
    "                      (default)\n"
    "  --trace-device N    of a snapshot of several devices, this one "
    "(default:\n"
    "                      the one with most events)\n"
    "  --strategy FILE     load this strategy first, for --pool; may be given\n"
    "                      several times\n"
    "  -o FORMAT           table (default), json or md\n"
    "  -h, --help          this text\n"
    "\n"
    "What memory is for, weights, optimizer states, gradients, activations,\n"
    "inputs, temporaries or a workspace, is told from the passes of PyTorch\n"
    "that the stacks name, and from sizes; the rule stands beside it. What "
    "the\n"
    "trace does not show is unknown.\n"
    "\n"
    "Each block counts once: under the innermost frame of your own code on "
    "the\n"
    "stack of its allocation. Libraries are, in a trace with frames of "
    "Python,\n"
    "all that is not Python, and what lies below site-packages, dist-packages\n"
    "or lib/python3.x; in others what lies below /lib, /usr/lib and\n"
    "/usr/include, and Python's interpreter. What has no stack counts under\n"
    "its tag. What is older than the trace, and what has neither, is a row of\n"
    "its own.\n"
    "\n"
    "Exit status: 1 if a trace cannot be read, or with --capacity if nothing\n"
    "fits; 2 if the command line is wrong.\n";

enum { TOP = 10 };

typedef enum moment_name { AT_PEAK = 0, AT_OOM, AT_END, AT_EVENT } moment_name;

typedef struct command {
  const tool_verb *verb;
  options_list traces;
  options_list pools;
  options_list libraries;
  options_list strategies;
  const char *other_name;
  uint64_t top;
  uint64_t depth;
  size_t capacity;
  moment_name at;
  uint64_t event;
  tarn_trace_options trace_options;
  options_output output;

  tarn_device *device;
  tarn_trace *trace;
  tarn_trace *other;
  owners *owners;
  why_answer answer;
} command;

// ---------------------------------------------------------------------------
// Options
// ---------------------------------------------------------------------------

static bool parse_at(void *context, const char *text) {
  command *c = context;
  static const char *const words[] = {"peak", "oom", "end"};
  for (int i = 0; i < 3; i++) {
    if (strcmp(text, words[i]) != 0) continue;
    c->at = (moment_name)i;
    return true;
  }
  c->at = AT_EVENT;
  return options_number_parse(c->verb, "--at, where not peak, oom or end,",
                              text, 0, UINT32_MAX - 1, &c->event);
}

static bool parse_output(void *context, const char *text) {
  command *c = context;
  if (!options_output_parse(c->verb, text, &c->output)) return false;
  if (c->output != OUTPUT_CSV) return true;
  tool_misuse(c->verb, "the answer is more than one table: -o json, not csv");
  return false;
}

// ---------------------------------------------------------------------------
// Is all there that was named?
// ---------------------------------------------------------------------------

static tool_exit check_pools(command *c) {
  tool_exit status = options_strategies_load(c->verb, &c->strategies);
  if (status != TOOL_DONE) return status;
  return what_if_pools_check(c->verb, &c->pools, &c->device);
}

static tool_exit check_names(const command *c) {
  if (c->traces.count == 0) return tool_misuse(c->verb, "which trace?");
  if (c->traces.count > 1) {
    return tool_misuse(c->verb, "one trace at a time; --diff %s compares",
                       c->traces.items[1]);
  }
  tool_exit status = load_check(c->verb, c->traces.items[0], &c->trace_options);
  if (status != TOOL_DONE || c->other_name == NULL) return status;
  return load_check(c->verb, c->other_name, &c->trace_options);
}

static tool_exit load_traces(command *c) {
  tool_exit status =
      load_trace(c->verb, c->traces.items[0], &c->trace_options, &c->trace);
  if (status != TOOL_DONE || c->other_name == NULL) return status;
  return load_trace(c->verb, c->other_name, &c->trace_options, &c->other);
}

// ---------------------------------------------------------------------------
// The work
// ---------------------------------------------------------------------------

// The last refused request; NO_BLOCK if no request was refused.
static uint32_t last_oom(const tarn_trace *trace) {
  for (size_t i = trace->event_count; i > 0; i--) {
    if (trace->events[i - 1].kind == TARN_TRACE_OOM) return (uint32_t)(i - 1);
  }
  return TARN_TRACE_NO_BLOCK;
}

static tool_exit no_such_event(const command *c) {
  return tool_fail(c->verb, "%s: no event %llu: it has %zu", c->trace->name,
                   (unsigned long long)c->event, c->trace->event_count);
}

static tool_exit find_moment(const command *c, moment *out) {
  const tarn_trace *trace = c->trace;
  *out = trace->live_peak_event;
  switch (c->at) {
    case AT_PEAK:
      return TOOL_DONE;
    case AT_END:
      *out = trace->event_count > 0 ? (moment)(trace->event_count - 1)
                                    : TARN_TRACE_BASELINE;
      return TOOL_DONE;
    case AT_OOM:
      *out = last_oom(trace);
      return *out != TARN_TRACE_NO_BLOCK
                 ? TOOL_DONE
                 : tool_fail(c->verb, "%s: no request was refused in it",
                             trace->name);
    case AT_EVENT:
      break;
  }
  if (c->event >= trace->event_count) return no_such_event(c);
  *out = (moment)c->event;
  return TOOL_DONE;
}

// Peak against peak, whatever moment the rest is about.
static void compare(command *c) {
  owners *others = owners_create(c->other, &c->libraries);
  block_set mine = moment_live(c->trace, c->trace->live_peak_event);
  block_set theirs = moment_live(c->other, c->other->live_peak_event);
  holder_list my_rows = holders_by_frame(c->owners, c->trace, &mine);
  holder_list their_rows = holders_by_frame(others, c->other, &theirs);
  c->answer.diff = why_diff_make(c->trace, &my_rows, c->other, &their_rows);
  c->answer.has_diff = true;
  holder_list_deinit(&my_rows);
  holder_list_deinit(&their_rows);
  block_set_deinit(&mine);
  block_set_deinit(&theirs);
  owners_destroy(others);
}

static tool_exit answer(command *c) {
  moment at = 0;
  tool_exit status = find_moment(c, &at);
  if (status != TOOL_DONE) return status;
  c->owners = owners_create(c->trace, &c->libraries);
  c->answer = why_ask(c->trace, c->owners, at, c->depth);
  c->answer.capacity = c->capacity;
  what_if_question question = {.trace = c->trace,
                               .device = c->device,
                               .pools = &c->pools,
                               .capacity = c->capacity,
                               .with_plan = c->pools.count > 0,
                               .with_refused = true};
  if (!what_if_run(c->verb, &question, &c->answer.strategies)) return TOOL_NO;
  if (c->other != NULL) compare(c);
  why_cut(&c->answer, c->top);
  if (c->output == OUTPUT_JSON) {
    why_write_json(&c->answer);
  } else {
    why_write_report(&c->answer, c->output);
  }
  return what_if_any_fits(&c->answer.strategies) ? TOOL_DONE : TOOL_NO;
}

static tool_exit work(void *context) {
  command *c = context;
  tool_exit status = check_names(c);
  if (status == TOOL_DONE) status = check_pools(c);
  if (status == TOOL_DONE) status = load_traces(c);
  return status == TOOL_DONE ? answer(c) : status;
}

static void deinit(void *context) {
  command *c = context;
  why_deinit(&c->answer);
  owners_destroy(c->owners);
  tarn_trace_destroy(c->other);
  tarn_trace_destroy(c->trace);
  if (c->device != NULL) (void)tarn_device_close(c->device);
}

static const options_entry entries[] = {
    OPTION_NUMBER("top", top, 0, UINT32_MAX),
    OPTION_CALL("at", parse_at),
    OPTION_TEXT("diff", other_name),
    OPTION_BYTES("capacity", capacity),
    OPTION_POOLS("pool", pools),
    OPTION_NAMES("libraries", libraries),
    OPTION_NUMBER("module-depth", depth, 0, UINT32_MAX),
    OPTION_TRACE_DEVICE(trace_options),
    OPTION_LIST("strategy", strategies),
    OPTION_CALL_OR("output", 'o', parse_output),
    {0},
};

const tool_verb verb_why = {
    .name = "why",
    .summary = "who holds the memory of a trace, and why there was no more",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.top = TOP),
    .words = offsetof(command, traces),
    .work = work,
    .end = deinit,
};
