// examples/train as it is run: under `tarn run` and each mpirun that is
// installed, with 1 to 8 ranks, on each device of the library. The result is
// the same everywhere, to the last digit that is written; wrong options and
// what fails are told once, and nothing is left.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpi/mpi_kit.h"
#include "support/effort.h"
#include "support/places.h"
#include "support/tool_assert.h"

static const char all_keys[] =
    "ranks,device,steps,steps_per_s,loss,accuracy,accuracy_bound,gather_gbs,"
    "bytes_moved,bytes_avoided,naive_mib,planned_mib";

#define SMALL "--rows 8192 --batch 256 --width 64 --steps 120"

// With |words|, which blanks separate, as |ranks| ranks.
static tool_output train(size_t ranks, const char *words) {
  char line[512];
  snprintf(line, sizeof line, "run -n %zu -- %s %s", ranks, TARN_EXAMPLE_TRAIN,
           words);
  return tool_line(line);
}

// The same with small options. |words| begin with a blank, or are none.
static tool_output train_on(size_t ranks, const char *device,
                            const char *words) {
  char line[256];
  snprintf(line, sizeof line, SMALL " -o json -d %s%s", device, words);
  return train(ranks, line);
}

// --- results ---------------------------------------------------------------

static void assert_line(const char *out, size_t ranks, const char *device) {
  assert_json_line(out);
  assert_keys(out, "", all_keys);
  assert_number(out, "ranks", (double)ranks);
  ck_assert(json_is_text(out, "device", device));
  assert_number(out, "steps", 120);
  ck_assert(json_number(out, "steps_per_s") > 0);
  ck_assert(json_number(out, "gather_gbs") > 0);
  ck_assert(json_number(out, "bytes_avoided") > 0);
}

static void assert_learned(const char *out) {
  ck_assert(json_number(out, "accuracy_bound") > 0.25);
  ck_assert(json_number(out, "accuracy_bound") < 0.5);
  ck_assert(json_number(out, "accuracy") > 0.9);
  ck_assert(json_number(out, "loss") < 0.5);
  ck_assert(json_number(out, "planned_mib") <
            json_number(out, "naive_mib") / 2);
}

static void assert_same(const char *one, const char *other) {
  static const char *const keys[] = {"loss", "accuracy", "accuracy_bound"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    assert_number(other, keys[i], json_number(one, keys[i]));
}

// What one rank comes to on cpu:0.
static tool_output alone(void) {
  tool_output o = train_on(1, "cpu:0", "");
  ck_assert_msg(o.status == 0, "exit %d: %s", o.status, o.err);
  assert_line(o.out, 1, "cpu:0");
  assert_learned(o.out);
  return o;
}

// That |one| rank came to the same.
static void assert_as(const tool_output *one, size_t ranks, const char *device,
                      const char *words) {
  tool_output o = train_on(ranks, device, words);
  ck_assert_msg(o.status == 0, "exit %d: %s", o.status, o.err);
  assert_line(o.out, ranks, device);
  assert_same(one->out, o.out);
  // Nothing is copied where the device is the host.
  ck_assert((json_number(o.out, "bytes_moved") > 0) ==
            (strcmp(device, "cpu:0") != 0));
  tool_output_free(&o);
}

TEST_LOOP(results_are_the_same_with_any_number_of_ranks, LIBRARY_DEVICES) {
  static const size_t ranks[] = {1, 3, 8, 2, 4};
  tool_output one = alone();
  for (size_t i = 0; i < EFFORT(5, 2); i++)
    assert_as(&one, ranks[i], test_devices[_i], "");
  tool_output_free(&one);
}

TEST(results_are_the_same_however_rows_are_fetched) {
  tool_output one = alone();
  assert_as(&one, 2, "cpu:0", " --type continuous");
  assert_as(&one, 4, "cpu:0", " --type chunked");
  assert_as(&one, 2, "cpu:0", " --type distributed");
  assert_as(&one, 2, "cpu:0", " --no-prefetch");
  tool_output_free(&one);
}

TEST_LOOP(results_are_the_same_under_mpirun, MPIS) {
  char command[1024];
  if (!is_there(_i)) return;
  allow_ranks();
  tool_output one = alone();
  for (size_t ranks = 1; ranks <= 4; ranks *= 2) {
    snprintf(command, sizeof command,
             "timeout 120 %s -n %zu %s " SMALL " -o json 2>/dev/null", m->run,
             ranks, TARN_EXAMPLE_TRAIN);
    ck_assert_int_eq(run(command), 0);
    assert_line(output, ranks, "cpu:0");
    assert_same(one.out, output);
  }
  tool_output_free(&one);
}

// --- for people ------------------------------------------------------------

TEST(one_rank_reports) {
  tool_output o = train(2, SMALL " -d sim:0");
  assert_done(&o);
  assert_contains(o.out, "step  120 of 120: loss 0.");
  assert_contains(o.out, "MiB at rank 0 of 2");
  assert_contains(o.out, "without features at most 0.3");
  assert_contains(o.out, "% of a step");
  const char *first = strstr(o.out, "held out");
  ck_assert_ptr_nonnull(first);
  ck_assert_ptr_null(strstr(first + 1, "held out"));
  tool_output_free(&o);
}

TEST(a_timeline_is_recorded) {
  char line[256];
  tool_files_begin();
  snprintf(line, sizeof line, SMALL " --trace %s", tool_file("step.tarn"));
  tool_output o = train(2, line);
  assert_done(&o);
  assert_contains(o.out, "--html train.html draws it");
  tool_output_free(&o);
  o = tool_did("why", tool_file("step.tarn"));
  assert_contains(o.out, "tag row numbers");
  assert_contains(o.out, "tag nodes");
  tool_output_free(&o);
  o = tool_did("view", tool_file("step.tarn"), "--html", tool_file("x.html"));
  tool_output_free(&o);
  tool_files_end();
}

TEST(help_tells_the_options) {
  tool_output o = train(2, "-h");
  assert_done(&o);
  assert_contains(o.out, "--no-prefetch");
  ck_assert_ptr_null(strstr(strstr(o.out, "Usage") + 1, "Usage"));
  tool_output_free(&o);
}

// --- that fail -------------------------------------------------------------

// `tarn run` adds a line of its own.
static void assert_told_once(tool_output o, int status, const char *part) {
  ck_assert_msg(o.status == status, "exit %d: %s", o.status, o.err);
  ck_assert_str_eq(o.out, "");
  assert_contains(o.err, part);
  const char *told = strstr(o.err, "train: ");
  ck_assert_ptr_nonnull(told);
  ck_assert_ptr_null(strstr(told + 1, "train: "));
  tool_output_free(&o);
}

TEST(wrong_options_are_refused) {
  static const char *const wrong[][2] = {
      {"--rows 0", "'--rows'"},
      {"--rows -1", "'--rows'"},
      {"--rows 100", "100 rows are too few"},
      {"--batch x", "'--batch'"},
      {"--batch 12", "12 rows is no multiple of 8"},
      {"--width 1.5", "'--width'"},
      {"--width 99999999999999999999999", "'--width'"},
      {"--steps 0", "'--steps'"},
      {"--seed -1", "'--seed'"},
      {"--type whole", "'--type'"},
      {"-o yaml", "'-o'"},
      {"--colour", "no option '--colour'"},
      {"8", "no option '8'"},
      {"--batch", "a value is wanted by '--batch'"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_told_once(train(2, wrong[i][0]), 2, wrong[i][1]);
}

TEST(what_fails_at_all_ranks_is_told_by_one) {
  assert_told_once(train(2, SMALL " -d nothing:0"), 1, "nothing:0");
  assert_told_once(train(9, SMALL), 1, "at most 8 ranks");
  ck_assert_int_eq(setenv("TARN_SIM_CAPACITY", "131072", 1), 0);
  assert_told_once(train(2, SMALL " -d sim:0"), 1, "no room");
}

TEST(rows_need_a_folder) {
  ck_assert_int_eq(setenv("TMPDIR", "/no/such/folder", 1), 0);
  assert_told_once(train(2, SMALL), 1, "/no/such/folder");
}

TEST(results_that_cannot_be_written_are_a_failure) {
  if (access("/dev/full", W_OK) != 0) {
    note_skipped("results on a full disk", "there is no /dev/full");
    return;
  }
  ck_assert_int_eq(run(TARN_EXAMPLE_TRAIN " " SMALL " -o json 2>&1 >/dev/full"),
                   1);
  assert_says("train: stdout cannot be written");
}

TEST(a_timeline_needs_a_folder) {
  tool_output o = train(2, SMALL " -o json --trace /no/such/folder/x");
  ck_assert_int_eq(o.status, 1);
  ck_assert_str_eq(o.out, "");
  assert_contains(o.err, "/no/such/folder/x");
  tool_output_free(&o);
}

// The file of the rows goes when they are loaded, whatever comes then.
TEST(no_file_is_left) {
  tool_files_begin();
  const char *folder = tool_file("rows");
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  ck_assert_int_eq(setenv("TMPDIR", folder, 1), 0);
  tool_output o = train_on(2, "cpu:0", "");
  ck_assert_int_eq(o.status, 0);
  tool_output_free(&o);
  ck_assert_int_eq(setenv("TARN_SIM_CAPACITY", "131072", 1), 0);
  o = train_on(2, "sim:0", "");
  ck_assert_int_eq(o.status, 1);
  tool_output_free(&o);
  ck_assert_int_eq(rmdir(folder), 0);
  tool_files_end();
}
