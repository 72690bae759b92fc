// tarn bench model: the memory that planning saves in five nets, and the time
// to find a tensor by its name. No memory of the nets is allocated.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench/figure.h"
#include "bench/model_lookup.h"
#include "bench/model_nets.h"
#include "kit/json.h"
#include "kit/sheet.h"

static const char help[] =
    "usage: tarn bench model [OPTION]... [NET]...\n"
    "\n"
    "Describes nets by tarn/model.h and plans them, for training and for\n"
    "inference: parameters, what outputs, diffs and caches take with memory\n"
    "of their own each (naive), in one plan (planned), and what no plan can\n"
    "take less than (bound). Then the time to find one of 1600 tensors by its\n"
    "name. Nothing of the nets is allocated.\n"
    "\n"
    "  NET          mlp, mlp-16, resnet-14, resnet-50, bert-layer\n"
    "               (default: all of them)\n"
    "  -o FORMAT    table (default), json, csv or md\n"
    "  -h, --help   this text\n"
    "\n"
    "Exit status: 1 if a net could not be planned, 2 on wrong use.\n";

enum { MOST_NETS = 8, NAMES = 1600 };

static const double MIB = 1 << 20;
static const double LOOKUP_GOAL_NS = 100;
static const char *const mode_names[] = {
    [TARN_TRAIN] = "train", [TARN_INFER] = "infer"};

typedef struct row {
  const model_net *net;
  tarn_model_needs report;
} row;

typedef struct command {
  const tool_verb *verb;
  options_list nets;
  options_output output;
  row rows[2 * MOST_NETS];
  size_t count;
  double lookup_ns;  // NaN: could not be measured
} command;

// ---------------------------------------------------------------------------
// Measuring
// ---------------------------------------------------------------------------

static tarn_status plan_and_report(tarn_model *model, const model_net *net,
                                   tarn_model_mode mode,
                                   tarn_model_needs *out_report) {
  const tarn_model_plan_options options = {.struct_size = sizeof options,
                                           .mode = mode};
  tarn_status status = net->describe(model);
  if (status == TARN_OK) status = tarn_model_plan(model, &options);
  *out_report = (tarn_model_needs){.struct_size = sizeof *out_report};
  return status == TARN_OK ? tarn_model_report(model, out_report) : status;
}

static tool_exit measure_net(command *c, const model_net *net,
                             tarn_model_mode mode) {
  const tarn_model_options options = {.struct_size = sizeof options,
                                      .name = net->name,
                                      .max_batch = net->batch};
  tarn_model *model = NULL;
  row *r = &c->rows[c->count];
  tarn_status status = tarn_model_create(&options, &model);
  if (status == TARN_OK) status = plan_and_report(model, net, mode, &r->report);
  if (status != TARN_OK) {
    tool_fail(c->verb, "%s: %s", net->name, tarn_last_error());
    tarn_model_destroy(model);
    return TOOL_NO;
  }
  tarn_model_destroy(model);
  r->net = net;
  c->count++;
  return TOOL_DONE;
}

static bool is_wanted(const command *c, const model_net *net) {
  for (size_t i = 0; i < c->nets.count; i++) {
    if (strcmp(c->nets.items[i], net->name) == 0) return true;
  }
  return c->nets.count == 0;
}

static tool_exit measure(command *c) {
  const model_net *net = NULL;
  for (size_t i = 0; (net = model_net_at(i)) != NULL; i++) {
    if (!is_wanted(c, net)) continue;
    tool_exit status = measure_net(c, net, TARN_TRAIN);
    if (status == TOOL_DONE) status = measure_net(c, net, TARN_INFER);
    if (status != TOOL_DONE) return status;
  }
  if (model_lookup_measure(NAMES, &c->lookup_ns) == TARN_OK) return TOOL_DONE;
  return tool_fail(c->verb, "looking up: %s", tarn_last_error());
}

// ---------------------------------------------------------------------------
// Telling
// ---------------------------------------------------------------------------

static void write_mib(sheet *s, const char *title, const char *key,
                      double bytes) {
  sheet_number(s, title, key, bytes / MIB, 1);
}

static void write_row(sheet *s, const row *r) {
  const tarn_model_needs *report = &r->report;
  double bound = (double)report->bound;
  sheet_text(s, "net", "net", r->net->name);
  sheet_text(s, "mode", "mode", mode_names[report->mode]);
  write_mib(s, "params MiB", "params_mib", (double)report->kinds[TARN_PARAM]);
  write_mib(s, "naive", "naive_mib", (double)report->naive);
  write_mib(s, "planned", "planned_mib", (double)report->planned);
  write_mib(s, "bound", "bound_mib", bound);
  sheet_only(s, SHEET_PEOPLE | SHEET_CSV);
  sheet_number(s, "over bound", "planned_over_bound",
               (double)report->planned / bound, 4);
  sheet_number(s, "naive by hand", "naive_by_hand_mib",
               r->net->naive[report->mode], 1);
  sheet_number(s, "bound by hand", "bound_by_hand_mib",
               r->net->bound[report->mode], 1);
  sheet_text(s, "answer", "answer", tarn_plan_answer_name(report->answer));
  sheet_row_end(s);
}

static void write_lookup(json *out, double ns) {
  json_key(out, "lookup");
  json_begin_object(out);
  json_key_uint(out, "names", NAMES);
  json_key_double(out, "ns", ns);
  json_key_double(out, "goal", LOOKUP_GOAL_NS);
  json_end_object(out);
}

static void tell(const command *c) {
  sheet *s = bench_sheet_begin(c->output);
  sheet_list(s, "nets");
  for (size_t i = 0; i < c->count; i++)
    write_row(s, &c->rows[i]);
  json *out = sheet_json(s);
  if (out != NULL) write_lookup(out, c->lookup_ns);
  sheet_note(s, "\nlook-up by name at %d names: %.1f ns (goal: at most %.0f)",
             NAMES, c->lookup_ns, LOOKUP_GOAL_NS);
  sheet_end(s);
}

// ---------------------------------------------------------------------------
// The command line
// ---------------------------------------------------------------------------

static const char *net_name(size_t index) {
  const model_net *net = model_net_at(index);
  return net == NULL ? NULL : net->name;
}

static tool_exit check_nets(const command *c) {
  for (size_t i = 0; i < c->nets.count; i++) {
    if (model_net_find(c->nets.items[i]) != NULL) continue;
    return options_unknown(c->verb, "net", c->nets.items[i], net_name);
  }
  return options_once(c->verb, "net", &c->nets);
}

static tool_exit work(void *context) {
  command *c = context;
  c->lookup_ns = NAN;
  tool_exit status = check_nets(c);
  if (status == TOOL_DONE) status = measure(c);
  if (status == TOOL_DONE) tell(c);
  return status;
}

static const options_entry entries[] = {
    OPTION_OUTPUT(output),
    {0},
};

const tool_verb bench_of_models = {
    .name = "bench model",
    .summary = "what planning saves of the memory of nets",
    .help = help,
    .entries = entries,
    .size = sizeof(command),
    .words = offsetof(command, nets),
    .work = work,
};
