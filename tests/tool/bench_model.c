// `tarn bench model`: keys, rows, figures that agree with each other and with
// the account by hand, nets by name, wrong use. No figure is compared with a
// time.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/model_lookup.h"
#include "bench/model_nets.h"
#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

enum { NETS = 5 };

// Rows stand net by net, training first.
static const char *const modes[] = {"train", "infer"};

// --- figures ---------------------------------------------------------------

static void assert_near(double is, double by_hand) {
  ck_assert_msg(fabs(is - by_hand) <= 0.05 * by_hand, "%g, by hand %g", is,
                by_hand);
}

static void assert_row(const char *json, size_t row, const char *name,
                       size_t mode) {
  const model_net *net = model_net_find(name);
  ck_assert_ptr_nonnull(net);
  assert_keys(json, json_path("nets", row, ""),
              "net,mode,params_mib,naive_mib,planned_mib,bound_mib");
  ck_assert(json_is_text(json, json_path("nets", row, "net"), name));
  ck_assert(json_is_text(json, json_path("nets", row, "mode"), modes[mode]));
  double bound = json_number(json, json_path("nets", row, "bound_mib"));
  double planned = json_number(json, json_path("nets", row, "planned_mib"));
  assert_near(json_number(json, json_path("nets", row, "params_mib")),
              net->params);
  assert_near(json_number(json, json_path("nets", row, "naive_mib")),
              net->naive[mode]);
  assert_near(bound, net->bound[mode]);
  ck_assert_double_ge(planned, bound);
  ck_assert_double_le(planned, 1.05 * bound);
}

TEST(json_has_the_published_keys) {
  tool_output o = tool_done("bench model -o json");
  assert_json_line(o.out);
  assert_keys(o.out, "", "nets,lookup,machine");
  ck_assert_uint_eq(json_size(o.out, "nets"), 2 * NETS);
  for (size_t i = 0; i < NETS; i++) {
    assert_row(o.out, 2 * i, model_net_at(i)->name, 0);
    assert_row(o.out, 2 * i + 1, model_net_at(i)->name, 1);
  }
  assert_keys(o.out, "lookup", "names,ns,goal");
  ck_assert(json_is(o.out, "lookup.names", "1600"));
  ck_assert(json_is(o.out, "lookup.goal", "100"));
  ck_assert_double_gt(json_number(o.out, "lookup.ns"), 0);
}

TEST(nets_by_name) {
  tool_output o = tool_done("bench model bert-layer mlp -o json");
  ck_assert_uint_eq(json_size(o.out, "nets"), 4);
  assert_row(o.out, 0, "mlp", 0);  // in the order of the table
  assert_row(o.out, 1, "mlp", 1);
  assert_row(o.out, 2, "bert-layer", 0);
  assert_row(o.out, 3, "bert-layer", 1);
}

TEST(tables) {
  tool_output o = tool_done("bench model mlp");
  assert_contains(o.out, "Linux ");  // the machine
  assert_contains(o.out, "\n\nnet ");
  assert_contains(o.out, "\nmlp  train ");
  assert_contains(o.out, "\nmlp  infer ");
  assert_contains(o.out, "\nlook-up by name at 1600 names: ");
  ck_assert_ptr_null(strstr(o.out, "resnet"));
  o = tool_done("bench model mlp -o csv");
  ck_assert_ptr_eq(
      strstr(o.out,
             "net,mode,params_mib,naive_mib,planned_mib,bound_mib,"
             "planned_over_bound,naive_by_hand_mib,bound_by_hand_mib,"
             "answer,machine\nmlp,train,"),
      o.out);
  o = tool_done("bench model mlp-16 -o md");
  assert_contains(o.out, "\n| net    | mode  | params MiB |");
  assert_contains(o.out, "\n| mlp-16 | infer |");
}

// --- wrong use -------------------------------------------------------------

TEST(help) {
  tool_output o = tool_done("bench model --help");
  assert_contains(o.out, "usage: tarn bench model ");
  for (size_t i = 0; i < NETS; i++)
    assert_contains(o.out, model_net_at(i)->name);
  o = tool_done("bench --help");
  assert_contains(o.out, "\n       tarn bench model ");
  assert_contains(o.out, "\n  model  ");
}

TEST(wrong_names_and_values) {
  assert_misused("bench model resnet-41", "no net is named 'resnet-41'");
  assert_misused("bench model mlp rseunet -o json",
                 "there are: mlp, mlp-16, resnet-14, resnet-50, bert-layer");
  assert_misused("bench model mlp mlp", "net 'mlp' is named twice");
  assert_misused("bench model -o xml", "'xml' is not a format");
  assert_misused("bench model --batch 3", "no option is named '--batch'");
}

// --- parts -----------------------------------------------------------------

TEST(nets_of_the_table) {
  ck_assert_ptr_nonnull(model_net_at(NETS - 1));
  ck_assert_ptr_null(model_net_at(NETS));
  ck_assert_ptr_eq(model_net_find("resnet-50"), model_net_at(3));
  ck_assert_ptr_null(model_net_find("resnet"));
}

TEST(looking_up_is_measured) {
  double ns = 0;
  assert_ok(model_lookup_measure(40, &ns));
  ck_assert_double_gt(ns, 0);
}
