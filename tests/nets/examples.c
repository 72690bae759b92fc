// examples/mlp and examples/resnet, as they are run: what they report, that
// they learn, that steps take no memory and nothing is left, at the host and on
// a simulated device; and what they say of options that are wrong.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/effort.h"
#include "support/json_check.h"
#include "support/places.h"
#include "support/run.h"
#include "support/tool_assert.h"

#ifdef TARN_HAS_NETS

static const char all_keys[] =
    "net,device,batch,steps,steps_per_s,loss_first,loss,accuracy,params_mib,"
    "naive_mib,planned_mib,bound_mib,peak_mib,allocations_per_step,left_bytes";

#define run_mlp(...)             \
  tool_run_program(TARN_MLP, -1, \
                   (const char *const[]){"mlp", __VA_ARGS__, NULL})
#define run_resnet(...)             \
  tool_run_program(TARN_RESNET, -1, \
                   (const char *const[]){"resnet", __VA_ARGS__, NULL})

// Small ones, of which two are alike.
#define MLP "--batch", "8", "--hidden", "24,16", "--steps", "4", "-o", "json"
#define RESNET "--batch", "2", "--steps", "4", "-o", "json"

static tool_output small(size_t net, const char *device) {
  return net == 0 ? run_mlp(MLP, "--device", device)
                  : run_resnet(RESNET, "--device", device);
}

// One line of JSON, with all keys.
static void assert_line(const tool_output *o) {
  char keys[512];
  ck_assert_msg(o->status == 0, "exit %d: %s", o->status, o->err);
  ck_assert(json_valid(o->out));
  ck_assert_ptr_eq(strchr(o->out, '\n'), o->out + strlen(o->out) - 1);
  ck_assert_str_eq(json_keys(o->out, "", keys, sizeof keys), all_keys);
}

static double number(const tool_output *o, const char *key) {
  return json_number(o->out, key);
}

static void assert_null(const tool_output *o, const char *key) {
  ck_assert_msg(json_is(o->out, key, "null"), "%s: %s", key, o->out);
}

// --- training --------------------------------------------------------------

static void assert_trained(const tool_output *o) {
  assert_line(o);
  ck_assert(number(o, "loss") < number(o, "loss_first"));
  ck_assert(number(o, "accuracy") >= 0 && number(o, "accuracy") <= 1);
  ck_assert(number(o, "steps_per_s") > 0);
  ck_assert(json_is(o->out, "allocations_per_step", "0.000"));
  ck_assert(json_is(o->out, "left_bytes", "0"));
}

static void assert_planned(const tool_output *o) {
  ck_assert(number(o, "bound_mib") <= number(o, "planned_mib"));
  ck_assert(number(o, "planned_mib") <= 1.05 * number(o, "bound_mib"));
  ck_assert(number(o, "planned_mib") < number(o, "naive_mib"));
  ck_assert(number(o, "peak_mib") >
            number(o, "planned_mib") + number(o, "params_mib"));
}

SECONDS(600);

// Each net on each device.
TEST_LOOP(four_steps_make_the_loss_smaller, 2 * LIBRARY_DEVICES) {
  size_t net = (size_t)_i % 2;
  const char *device = test_devices[_i / 2];
  tool_output o = small(net, device);
  assert_trained(&o);
  assert_planned(&o);
  ck_assert(json_is(o.out, "steps", "4"));
  ck_assert(json_is(o.out, "net", net == 0 ? "\"mlp\"" : "\"resnet\""));
  ck_assert(json_is_text(o.out, "device", device));
  tool_output_free(&o);
}

// The value at |key|, up to what ends it.
static size_t value_size(const char *value) {
  return strcspn(value, ",}");
}

static void assert_same(const tool_output *a, const tool_output *b,
                        const char *key) {
  const char *one = json_at(a->out, key), *other = json_at(b->out, key);
  ck_assert(one != NULL && other != NULL);
  ck_assert_uint_eq(value_size(one), value_size(other));
  ck_assert_msg(memcmp(one, other, value_size(one)) == 0, "%s: %s%s", key,
                a->out, b->out);
}

TEST_LOOP(losses_are_the_same_on_each_device, 2 * LIBRARY_DEVICES) {
  tool_output host = small((size_t)_i % 2, "cpu:0");
  tool_output other = small((size_t)_i % 2, test_devices[_i / 2]);
  assert_line(&host);
  assert_line(&other);
  assert_same(&host, &other, "loss_first");
  assert_same(&host, &other, "loss");
  assert_same(&host, &other, "accuracy");
  assert_same(&host, &other, "planned_mib");
  // Elsewhere parameters and blocks are on the device and at the host.
  ck_assert(strcmp(test_devices[_i / 2], "cpu:0") == 0 ||
            number(&other, "peak_mib") > number(&host, "peak_mib"));
  tool_output_free(&other);
  tool_output_free(&host);
}

static void assert_learned(tool_output o) {
  assert_trained(&o);
  ck_assert(number(&o, "accuracy") >= 0.95);
  tool_output_free(&o);
}

TEST(mlp_learns_waves) {
  assert_learned(run_mlp("--batch", "64", "--hidden", "256,256", "--steps",
                         "100", "-o", "json"));
}

TEST_LOOP(resnet_learns_waves, EFFORT(1, 0)) {
  assert_learned(run_resnet("--batch", "16", "--steps", "80", "-o", "json"));
}

TEST(one_step_is_not_steady) {
  tool_output o =
      run_mlp("--batch", "4", "--hidden", "8", "--steps", "1", "-o", "json");
  assert_line(&o);
  assert_null(&o, "steps_per_s");
  assert_null(&o, "allocations_per_step");
  ck_assert(json_is(o.out, "left_bytes", "0"));
  tool_output_free(&o);
}

// --- inference -------------------------------------------------------------

TEST_LOOP(inference_changes_nothing, 2 * LIBRARY_DEVICES) {
  const char *device = test_devices[_i / 2];
  tool_output o = _i % 2 == 0
                      ? run_mlp(MLP, "--infer", "--device", device)
                      : run_resnet(RESNET, "--infer", "--device", device);
  tool_output trained = small((size_t)_i % 2, "cpu:0");
  assert_line(&o);
  assert_same(&o, &o, "loss");
  ck_assert_double_eq(number(&o, "loss"), number(&o, "loss_first"));
  assert_same(&o, &trained, "loss_first");
  ck_assert(number(&o, "planned_mib") < number(&trained, "planned_mib"));
  ck_assert(json_is(o.out, "allocations_per_step", "0.000"));
  ck_assert(json_is(o.out, "left_bytes", "0"));
  tool_output_free(&trained);
  tool_output_free(&o);
}

TEST_LOOP(parameters_are_saved_and_loaded, LIBRARY_DEVICES) {
  tool_files_begin();
  tool_output saved = run_mlp(MLP, "--save", tool_file("mlp.safetensors"));
  tool_output loaded =
      run_mlp(MLP, "--infer", "--load", tool_file("mlp.safetensors"),
              "--device", test_devices[_i]);
  assert_trained(&saved);
  assert_line(&loaded);
  ck_assert_double_eq(number(&loaded, "loss_first"), number(&saved, "loss"));
  assert_same(&loaded, &saved, "accuracy");
  ck_assert(json_is(loaded.out, "left_bytes", "0"));
  tool_output_free(&loaded);
  tool_output_free(&saved);
  tool_output o = run_mlp(MLP, "--load", "/no/such/file");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "/no/such/file");
  tool_output_free(&o);
  tool_files_end();
}

// --- dry runs --------------------------------------------------------------

static void assert_dry(const tool_output *o) {
  static const char *const unknown[] = {"steps_per_s", "loss_first", "loss",
                                        "accuracy", "allocations_per_step"};
  assert_line(o);
  ck_assert_str_eq(o->err, "");
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
    assert_null(o, unknown[i]);
  ck_assert(json_is(o->out, "peak_mib", "0.000"));
  ck_assert(json_is(o->out, "left_bytes", "0"));
}

static void assert_within(double value, double wanted, double part) {
  ck_assert_msg(fabs(value / wanted - 1) <= part, "%g, not %g", value, wanted);
}

static void assert_figures(tool_output o, double params, double naive,
                           double bound) {
  assert_dry(&o);
  assert_within(number(&o, "params_mib"), params, 0.05);
  assert_within(number(&o, "naive_mib"), naive, 0.05);
  assert_within(number(&o, "bound_mib"), bound, 0.05);
  assert_within(number(&o, "planned_mib"), bound, 0.05);
  tool_output_free(&o);
}

TEST_LOOP(a_dry_run_takes_nothing_and_tells_the_plan, LIBRARY_DEVICES) {
#define DRY "--dry-run", "-o", "json", "--device", test_devices[_i]
  assert_figures(run_mlp(DRY), 76.4, 32.0, 12.0);
  assert_figures(run_mlp(DRY, "--infer"), 76.4, 16.0, 8.0);
  assert_figures(run_resnet(DRY), 0.67, 324.1, 68.0);
  assert_figures(run_resnet(DRY, "--infer"), 0.67, 162.0, 24.0);
}

TEST(a_dry_run_is_for_people_too) {
  tool_output o = run_resnet("--dry-run");
  assert_done(&o);
  assert_contains(o.out, "naive 324.07, planned 68.00, bound 68.00");
  assert_contains(o.out, "it fits");
  tool_output_free(&o);
  ck_assert_int_eq(setenv("TARN_SIM_CAPACITY", "33554432", 1), 0);
  o = run_resnet("--dry-run", "--device", "sim:0");
  assert_done(&o);
  assert_contains(o.out, "it does not fit");
  tool_output_free(&o);
}

static size_t count_of(const char *text, const char *part) {
  size_t count = 0;
  while ((text = strstr(text, part)) != NULL) {
    text += strlen(part);
    count++;
  }
  return count;
}

TEST(a_picture_has_a_box_for_each_part) {
  tool_files_begin();
  tool_output o =
      run_mlp("--dry-run", "--hidden", "8,8", "--svg", tool_file("plan.svg"));
  assert_done(&o);
  tool_output_free(&o);
  char *svg = tool_read_file(tool_file("plan.svg"));
  ck_assert_ptr_nonnull(svg);
  assert_contains(svg, "<svg xmlns=");
  assert_contains(svg, "</svg>\n");
  // Behind them; fc1, relu1, fc2, relu2 and scores, data and diff.
  ck_assert_uint_eq(count_of(svg, "<rect "), 1 + 10);
  assert_contains(svg, "relu1.out diff, 8192 bytes at ");
  assert_contains(svg, ">up: offsets to 0.03 MiB; right: 6 steps forward and");
  free(svg);
  assert_exits(run_mlp("--dry-run", "-o", "json", "--svg", "/no/such/folder/x"),
               1, "/no/such/folder/x: No such file");
  tool_files_end();
}

// --- wrong -----------------------------------------------------------------

TEST(wrong_options_are_refused) {
  static const char *const wrong[][2] = {
      {"--batch", "0"},
      {"--batch", "-1"},
      {"--batch", "x"},
      {"--batch", "8x"},
      {"--batch", "65537"},
      {"--batch", ""},
      {"--steps", "0"},
      {"--steps", "1.5"},
      {"--hidden", ""},
      {"--hidden", "8,"},
      {"--hidden", ",8"},
      {"--hidden", "8,0"},
      {"--hidden", "8 8"},
      {"--device", ""},
      {"-o", "text"},
      {"--svg", ""},
      {"--batch", "99999999999999999999999"},
      {"--hidden", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_misuse(run_mlp(wrong[i][0], wrong[i][1]), wrong[i][0]);
    assert_misuse(run_resnet(wrong[i][0], wrong[i][1]), wrong[i][0]);
  }
  assert_misuse(run_mlp("--colour"), "no option '--colour'");
  assert_misuse(run_mlp("8"), "no option '8'");
  assert_misuse(run_mlp("--batch"), "a value is wanted by '--batch'");
  assert_misuse(run_resnet("--hidden", "8,8"), "--hidden");
}

TEST(help_tells_the_options) {
  tool_output o = run_mlp("--help");
  assert_done(&o);
  assert_contains(o.out, "--hidden A,B   widths of the hidden layers (4096");
  tool_output_free(&o);
  o = run_resnet("--help");
  assert_done(&o);
  ck_assert_ptr_null(strstr(o.out, "--hidden"));
  tool_output_free(&o);
}

TEST(no_such_device_and_no_room_are_told) {
  assert_exits(run_mlp("--device", "nothing:0"), 1, "nothing");
  ck_assert_int_eq(setenv("TARN_SIM_CAPACITY", "2097152", 1), 0);
  tool_output o = run_resnet(RESNET, "--device", "sim:0");
  ck_assert_int_eq(o.status, 1);
  ck_assert_str_eq(o.out, "");
  assert_contains(o.err, "no room");
  tool_output_free(&o);
}

#else

int main(void) {
  return skip_program("nets_examples", "no OpenBLAS, or no examples built");
}

#endif
