// tarn plan: offsets for buffers whose lifetimes are known.
//
//   options ─► places to write to ─► table or trace ─► solve, or take the
//   offsets of the file ─► check ─► write the plan, draw it ─► report
//
// Nothing is written before the answer is complete.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/options.h"
#include "outfile.h"
#include "plan_previous.h"
#include "plan_progress.h"
#include "plan_report.h"
#include "plan_svg.h"
#include "verbs.h"

static const char help[] =
    "usage: tarn plan FILE.csv|TRACE|@WORKLOAD [OPTION]...\n"
    "\n"
    "Gives each buffer an offset, so that buffers which are never needed at "
    "the\n"
    "same time share bytes and the whole is as low as can be. FILE.csv is a\n"
    "table: id,lower,upper,size, needed in the steps from lower to before\n"
    "upper, and, where wanted, alignment, gaps, offset, in_place_of, arena;\n"
    "'-' is the standard input. Of a trace, the iteration that was recorded "
    "is\n"
    "planned.\n"
    "\n"
    "  --capacity BYTES    does it fit into so much, as in 1M? Otherwise the\n"
    "                      lowest plan is looked for\n"
    "  --minimise          with a capacity: the lowest plan all the same\n"
    "  --arena BYTES       a piece of memory to lie in; may be given several\n"
    "                      times, the best one first; 'any' has no limit\n"
    "  --align BYTES       all offsets are multiples of it\n"
    "  --previous PLAN.csv keep what can stay where that plan has it\n"
    "  --time-limit S      end with the best so far after so many seconds\n"
    "                      (default: 1; 'none': when it is proved)\n"
    "  --nodes N           the same after N nodes of the search: two runs "
    "that\n"
    "                      end by it are equal\n"
    "  --threads N         search on so many threads (default: 1)\n"
    "  --out FILE.csv      write the table with the offsets; '-' is stdout\n"
    "  --svg FILE          draw the plan\n"
    "  --force             overwrite these files even if they are not a plan "
    "or\n"
    "                      a picture of one\n"
    "  --verify            check the plan by other code than made it\n"
    "  --check             solve nothing: are the offsets in the file a plan?\n"
    "  --pool A,B          of a trace: pools to compare with\n"
    "  --trace-device N    of a snapshot of several devices, this one\n"
    "  -o FORMAT           table (default) or json\n"
    "  -h, --help          this text\n"
    "\n"
    "The answer is 'optimal', no plan is lower; 'feasible', a plan which may "
    "not\n"
    "be the lowest; 'infeasible', proved not to fit; or 'out_of_time', "
    "nothing\n"
    "found that fits. Ctrl-C ends the search with the best so far.\n"
    "\n"
    "Exit status: 0 there is a plan; 1 there is none within the capacity, or\n"
    "the file is wrong; 2 if the command line is wrong.\n";

enum { MOST_THREADS = 1024 };

typedef struct command {
  const tool_verb *verb;
  options_list inputs;
  options_list arenas;  // as given, checked
  size_t capacity;
  bool has_time_limit;
  double time_limit_s;
  uint64_t threads;
  uint64_t nodes;
  bool minimise;
  bool verify;
  bool check;
  bool force;
  const char *previous_path;
  const char *out_path;
  const char *svg_path;
  plan_input_options load;
  options_output output;

  plan_input input;
  uint64_t *capacities;
  plan_previous previous;
  tarn_plan *plan;
  char *wrong;
  plan_answer answer;
} command;

// ---------------------------------------------------------------------------
// Options
// ---------------------------------------------------------------------------

// Digits with a point or without: none of what else strtod reads.
static bool is_decimal(const char *text) {
  size_t whole = strspn(text, "0123456789");
  const char *rest = text + whole;
  if (*rest == '.') rest += 1 + strspn(rest + 1, "0123456789");
  return whole > 0 && *rest == '\0';
}

static bool parse_seconds(void *context, const char *text) {
  command *c = context;
  c->has_time_limit = true;
  c->time_limit_s = INFINITY;
  if (strcmp(text, "none") == 0) return true;
  c->time_limit_s = is_decimal(text) ? strtod(text, NULL) : 0;
  if (c->time_limit_s > 0 && c->time_limit_s <= 1e9) return true;
  tool_misuse(c->verb,
              "--time-limit wants seconds, more than 0 and at most "
              "1000000000, as in 0.5, or 'none', not '%s'",
              text);
  return false;
}

static bool parse_arena(void *context, const char *text) {
  command *c = context;
  size_t bytes = 0;
  options_list_add(&c->arenas, text, strlen(text));
  return strcmp(text, "any") == 0 ||
         options_bytes_parse(c->verb, "--arena, where not 'any',", text,
                             &bytes);
}

static bool parse_output(void *context, const char *text) {
  command *c = context;
  if (!options_output_parse(c->verb, text, &c->output)) return false;
  if (c->output == OUTPUT_TABLE || c->output == OUTPUT_JSON) return true;
  tool_misuse(c->verb, "the answer is told as table or json, not %s", text);
  return false;
}

// ---------------------------------------------------------------------------
// Does it go together?
// ---------------------------------------------------------------------------

static tool_exit check_check(const command *c) {
  if (!c->check) return TOOL_DONE;
  if (c->out_path != NULL || c->previous_path != NULL) {
    return tool_misuse(c->verb,
                       "--check makes no plan: no --out, no --previous");
  }
  if (c->minimise || c->has_time_limit || c->nodes > 0 || c->threads > 0) {
    return tool_misuse(c->verb,
                       "--check solves nothing: no --minimise, --time-limit, "
                       "--nodes, --threads");
  }
  return TOOL_DONE;
}

static bool is_stdout(const char *path) {
  return path != NULL && outfile_is_stdout(path);
}

static bool out_is_stdout(const command *c) {
  return c->out_path != NULL &&
         (strcmp(c->out_path, "-") == 0 || is_stdout(c->out_path));
}

static bool outputs_are_one(const command *c) {
  if (c->out_path == NULL || c->svg_path == NULL) return false;
  return (out_is_stdout(c) && is_stdout(c->svg_path)) ||
         outfile_is_same(c->out_path, c->svg_path);
}

static tool_exit check_outputs(const command *c) {
  bool is_json = c->output == OUTPUT_JSON;
  if (is_json && out_is_stdout(c)) {
    return tool_misuse(c->verb, "--out %s and -o json both want stdout",
                       c->out_path);
  }
  if (is_json && is_stdout(c->svg_path)) {
    return tool_misuse(c->verb, "--svg %s and -o json both want stdout",
                       c->svg_path);
  }
  if (outputs_are_one(c)) {
    return tool_misuse(c->verb, "--out and --svg name the same file");
  }
  return TOOL_DONE;
}

static tool_exit check_words(const command *c) {
  if (c->inputs.count == 0) return tool_misuse(c->verb, "which file?");
  if (c->inputs.count > 1) {
    return tool_misuse(c->verb, "one file at a time: '%s' is unexpected",
                       c->inputs.items[1]);
  }
  if (c->capacity > 0 && c->arenas.count > 0) {
    return tool_misuse(c->verb,
                       "--capacity is that of one piece of memory; with "
                       "--arena each has its own");
  }
  tool_exit status = check_outputs(c);
  return status == TOOL_DONE ? check_check(c) : status;
}

// A search of minutes should not end at a place that cannot be written to.
static tool_exit check_places(const command *c) {
  bool to_file = c->out_path != NULL && strcmp(c->out_path, "-") != 0;
  outfile_rules rules = {.verb = c->verb,
                         .inputs = &c->inputs,
                         .input = c->previous_path,
                         .force = c->force};
  if (to_file && !outfile_try(&rules, OUTFILE_PLAN, c->out_path))
    return TOOL_NO;
  if (c->svg_path != NULL &&
      !outfile_try(&rules, OUTFILE_PICTURE, c->svg_path)) {
    return TOOL_NO;
  }
  return TOOL_DONE;
}

// ---------------------------------------------------------------------------
// The problem
// ---------------------------------------------------------------------------

// Offsets that are only checked may lie in as many arenas as the file names.
static size_t arenas_named(const plan_input *input) {
  size_t count = 1;
  if (input->answer_arenas == NULL) return count;
  for (size_t i = 0; i < input->problem.count; i++) {
    size_t needed = (size_t)input->answer_arenas[i] + 1;
    if (needed > count) count = needed;
  }
  return count <= input->problem.count ? count : 1;  // else it is no plan's
}

static void set_capacities(command *c) {
  tarn_plan_problem *problem = &c->answer.problem;
  size_t count = c->arenas.count > 0 ? c->arenas.count : 1;
  bool free_count = c->check && c->arenas.count == 0 && c->capacity == 0;
  if (free_count) count = arenas_named(&c->input);
  c->capacities = tool_array(count, sizeof *c->capacities);
  c->capacities[0] = c->capacity;
  for (size_t i = 0; i < c->arenas.count; i++) {
    size_t bytes = 0;
    if (strcmp(c->arenas.items[i], "any") != 0) {
      (void)options_bytes_parse(c->verb, "--arena", c->arenas.items[i], &bytes);
    }
    c->capacities[i] = bytes;
  }
  problem->capacities = c->capacities;
  problem->arena_count = count;
}

static tool_exit check_arenas(const command *c) {
  const tarn_plan_problem *problem = &c->answer.problem;
  size_t count = problem->arena_count;
  for (size_t i = 0; i < problem->count; i++) {
    const tarn_plan_buffer *b = &problem->buffers[i];
    if ((b->flags & TARN_PLAN_IN_ARENA) == 0 || b->arena < count) continue;
    return tool_fail(c->verb,
                     "%s: '%s' has to lie in arena %" PRIu32
                     ", counted from 0, and there %s %zu: --arena gives more",
                     c->input.path, plan_input_id(&c->input, i), b->arena,
                     count == 1 ? "is" : "are", count);
  }
  return TOOL_DONE;
}

static tool_exit load(command *c) {
  const char *path = c->inputs.items[0];
  c->load.trace.struct_size = sizeof c->load.trace;
  c->load.offsets_are_answers = c->check;
  c->load.capacity = c->capacity;
  tool_exit status = plan_input_load(c->verb, path, &c->load, &c->input);
  if (status != TOOL_DONE) return status;
  c->answer.input = &c->input;
  c->answer.problem = c->input.problem;
  set_capacities(c);
  return check_arenas(c);
}

// ---------------------------------------------------------------------------
// The answer
// ---------------------------------------------------------------------------

// Of each question about the answer: if it does not fit, why, and what would
// help?
static double question_seconds(const command *c) {
  static const double longest = 2;
  double seconds = c->time_limit_s * 0.07;
  return seconds < longest ? seconds : longest;
}

// The questions count towards the limit, too.
static double search_seconds(const command *c) {
  if (plan_fit_capacity(&c->answer.problem) == 0) return c->time_limit_s;
  int questions = PLAN_SHORTAGE_QUESTIONS + c->input.kind->questions;
  return c->time_limit_s - questions * question_seconds(c);
}

static tool_exit solve(command *c) {
  plan_progress progress = {.verb = c->verb};
  bool has_previous = c->previous.offsets != NULL;
  tarn_plan_options options = {.struct_size = sizeof options,
                               .time_limit_s = search_seconds(c),
                               .node_limit = c->nodes,
                               .threads = (uint32_t)c->threads,
                               .minimise = c->minimise,
                               .previous = c->previous.offsets,
                               .previous_arenas = c->previous.arenas,
                               .progress = plan_progress_tell,
                               .user = &progress};
  plan_progress_begin(&progress);
  tarn_status status = tarn_plan_solve(&c->answer.problem, &options, &c->plan);
  plan_progress_end(&progress);
  plan_answer *answer = &c->answer;
  answer->info.struct_size = sizeof answer->info;
  if (status == TARN_OK) status = tarn_plan_query(c->plan, &answer->info);
  if (status != TARN_OK) {
    return tool_fail(c->verb, "%s: %s", c->input.path, tarn_last_error());
  }
  answer->plan = c->plan;
  answer->offsets = tarn_plan_offsets(c->plan);
  answer->conflict = tarn_plan_conflict(c->plan);
  answer->has_previous = has_previous;
  answer->time_limit_s = options.time_limit_s;
  answer->question_seconds = question_seconds(c);
  if (answer->info.cancelled) answer->question_seconds *= 0.05;  // no waiting
  answer->node_limit = c->nodes;
  answer->is_enough = plan_fit_capacity(&answer->problem) > 0 && !c->minimise;
  if (c->answer.problem.arena_count > 1) {
    answer->arenas = tarn_plan_arenas(c->plan);
  }
  return TOOL_DONE;
}

// The offsets of the file as an answer.
static tool_exit take_answers(command *c) {
  plan_answer *answer = &c->answer;
  if (c->input.answers == NULL) {
    return tool_fail(c->verb,
                     "%s: nothing to check: not all of its lines have an "
                     "offset",
                     c->input.path);
  }
  if (tarn_plan_lower_bound(&answer->problem, &answer->info.lower_bound) !=
      TARN_OK) {
    return tool_fail(c->verb, "%s: %s", c->input.path, tarn_last_error());
  }
  answer->info.count = answer->problem.count;
  answer->offsets = c->input.answers;
  answer->arenas = c->input.answer_arenas;
  return TOOL_DONE;
}

static void verify(command *c) {
  plan_answer *answer = &c->answer;
  uint64_t height = 0;
  if (answer->offsets == NULL) return;
  tarn_status status = tarn_plan_verify(&answer->problem, answer->offsets,
                                        answer->arenas, &height);
  if (status == TARN_OK && !c->check && height != answer->info.height) {
    c->wrong = tool_text("its height is not what was told");
  } else if (status != TARN_OK) {
    c->wrong = tool_text(tarn_last_error());
  }
  answer->checked = c->wrong == NULL ? PLAN_GOOD : PLAN_WRONG;
  answer->wrong = c->wrong;
  if (!c->check) return;
  answer->info.height = height;
  answer->info.answer = height <= answer->info.lower_bound ? TARN_PLAN_OPTIMAL
                                                           : TARN_PLAN_FEASIBLE;
}

// Buffers for which no fitting plan was found in time may fit in the lowest
// plan.
static void find_shortage(command *c) {
  plan_answer *answer = &c->answer;
  uint64_t capacity = plan_fit_capacity(&answer->problem);
  if (answer->offsets != NULL || capacity == 0) return;
  plan_shortage *s = &answer->shortage;
  *s = plan_shortage_find(&answer->problem, answer->question_seconds);
  bool fits = answer->problem.arena_count == 1 && !answer->has_previous &&
              s->offsets != NULL && s->height <= capacity;
  if (!fits) return;
  plan_moves_deinit(&s->moves);  // nothing has to
  answer->offsets = s->offsets;
  answer->info.height = s->height;
  answer->info.answer = TARN_PLAN_FEASIBLE;
}

static tool_exit find_answer(command *c) {
  tool_exit status = TOOL_DONE;
  if (c->check) {
    status = take_answers(c);
  } else {
    if (c->previous_path != NULL) {
      status = plan_previous_read(&c->input, c->previous_path, &c->previous);
    }
    if (status == TOOL_DONE) status = solve(c);
    if (status == TOOL_DONE) find_shortage(c);
  }
  if (status == TOOL_DONE && (c->check || c->verify)) verify(c);
  return status;
}

// ---------------------------------------------------------------------------
// Telling
// ---------------------------------------------------------------------------

// A path is named only if the plan was written; a wrong plan is not written.
static bool write_files(command *c) {
  plan_answer *answer = &c->answer;
  bool written = true;
  bool is_plan = answer->offsets != NULL && answer->checked != PLAN_WRONG;
  if (is_plan && c->out_path != NULL) {
    written = plan_input_write(&c->input, answer->offsets, answer->arenas,
                               c->out_path);
    if (written) answer->out_path = c->out_path;
  }
  if (c->svg_path != NULL) {
    bool drawn = plan_svg_write(c->verb, answer, c->svg_path);
    if (drawn) answer->svg_path = c->svg_path;
    written = written && drawn;
  }
  return written;
}

static tool_exit tell(command *c) {
  const plan_input_kind *kind = c->input.kind;
  if (kind->ask != NULL && !kind->ask(&c->input, &c->answer)) return TOOL_NO;
  bool written = write_files(c);
  const plan_answer *answer = &c->answer;
  bool stdout_is_taken = (answer->out_path != NULL && out_is_stdout(c)) ||
                         is_stdout(answer->svg_path);
  if (c->output == OUTPUT_JSON) {
    plan_write_json(answer, tool_out());
  } else {
    plan_write_report(answer, stdout_is_taken ? stderr : tool_out());
  }
  if (!written || answer->checked == PLAN_WRONG) return TOOL_NO;
  return answer->offsets != NULL ? TOOL_DONE : TOOL_NO;
}

static tool_exit work(void *context) {
  command *c = context;
  tool_exit status = check_words(c);
  if (status == TOOL_DONE) status = check_places(c);
  if (status == TOOL_DONE) status = load(c);
  if (status == TOOL_DONE) status = find_answer(c);
  return status == TOOL_DONE ? tell(c) : status;
}

static void deinit(void *context) {
  command *c = context;
  free(c->wrong);
  tarn_plan_destroy(c->plan);
  plan_shortage_deinit(&c->answer.shortage);
  plan_previous_deinit(&c->previous);
  free(c->capacities);
  plan_input_deinit(&c->input);
  options_list_free(&c->arenas);
}

static const options_entry entries[] = {
    OPTION_BYTES("capacity", capacity),
    OPTION_FLAG("minimise", minimise),
    OPTION_FLAG("minimize", minimise),
    OPTION_CALL("arena", parse_arena),
    OPTION_BYTES("align", load.alignment),
    OPTION_TEXT("previous", previous_path),
    OPTION_CALL("time-limit", parse_seconds),
    OPTION_NUMBER("nodes", nodes, 1, UINT64_MAX),
    OPTION_NUMBER("threads", threads, 1, MOST_THREADS),
    OPTION_TEXT("out", out_path),
    OPTION_FLAG("force", force),
    OPTION_TEXT("svg", svg_path),
    OPTION_FLAG("verify", verify),
    OPTION_FLAG("check", check),
    OPTION_POOLS("pool", load.pools),
    OPTION_TRACE_DEVICE(load.trace),
    OPTION_CALL_OR("output", 'o', parse_output),
    {0},
};

const tool_verb verb_plan = {
    .name = "plan",
    .summary = "offsets for buffers whose lifetimes are known, ahead of time",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.time_limit_s = 1),
    .words = offsetof(command, inputs),
    .work = work,
    .end = deinit,
};
