// `tarn bench preload`: keys, what is missing, wrong use. No figure is compared
// with a time.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

// How often the tests of figures run: a sanitizer stands where what is
// preloaded would.
#define FIGURES (*TARN_SANITIZE == '\0')

static const char *const allocators[] = {"glibc", "jemalloc", "tcmalloc",
                                         "mimalloc", "tarn"};
enum { GLIBC = 0, TARN = 4, ALLOCATORS = 5 };

static const char *path_of(size_t program, size_t row, const char *key) {
  static char paths[4][64];
  static size_t next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "programs.%zu.results.%zu%s%s", program, row,
           *key != '\0' ? "." : "", key);
  return path;
}

static bool is_measured(const char *json, size_t program, size_t row) {
  return json_is(json, path_of(program, row, "failed"), "null");
}

// A row has all figures, or the name of what is not installed.
static void assert_row(const char *json, size_t program, size_t row) {
  static const char *const keys[] = {"cpu_s", "sys_s", "faults", "rss_mib"};
  assert_keys(json, path_of(program, row, ""),
              "allocator,cpu_s,sys_s,faults,rss_mib,failed");
  ck_assert(
      json_is_text(json, path_of(program, row, "allocator"), allocators[row]));
  for (size_t i = 0; i < 4; i++) {
    double value = json_number(json, path_of(program, row, keys[i]));
    ck_assert(isnan(value) == !is_measured(json, program, row));
  }
  if (is_measured(json, program, row)) return;
  const char *why = json_at(json, path_of(program, row, "failed"));
  ck_assert_msg(strncmp(why, "\"not installed: ", 16) == 0, "%.80s", why);
}

TEST_LOOP(json_has_the_published_keys, FIGURES) {
  tool_output o =
      tool_done("bench preload --programs blocks --steps 4 --passes 2 -o json");
  ck_assert(json_valid(o.out));
  assert_keys(o.out, "", "programs,machine");
  assert_keys(o.out, "programs.0", "name,results");
  ck_assert(json_is_text(o.out, "programs.0.name", "blocks"));
  ck_assert_uint_eq(json_size(o.out, "programs.0.results"), ALLOCATORS);
  for (size_t i = 0; i < ALLOCATORS; i++)
    assert_row(o.out, 0, i);
  ck_assert(is_measured(o.out, 0, GLIBC) && is_measured(o.out, 0, TARN));
}

// Steps whose blocks are the same have their pages after the first.
TEST_LOOP(pages_of_the_first_step_serve_the_others, FIGURES) {
  tool_output o = tool_done(
      "bench preload --programs blocks --allocators glibc,tarn --steps 10 "
      "--passes 1 -o json");
  double glibc = json_number(o.out, path_of(0, 0, "faults"));
  double tarn = json_number(o.out, path_of(0, 1, "faults"));
  ck_assert_msg(tarn < glibc / 5, "%.0f and %.0f", tarn, glibc);
}

// A real training, in a few steps.
TEST_LOOP(a_training, FIGURES) {
  tool_output o = tool_done(
      "bench preload --programs gpt-varied --allocators glibc,tarn --steps 3 "
      "--passes 1 -o json");
  if (!is_measured(o.out, 0, 0)) {
    note_skipped("PyTorch", "python3-torch is not installed");
    return;
  }
  ck_assert(is_measured(o.out, 0, 1));
  ck_assert_double_lt(json_number(o.out, path_of(0, 1, "faults")),
                      json_number(o.out, path_of(0, 0, "faults")));
}

TEST_LOOP(tables, FIGURES) {
  tool_output o = tool_done(
      "bench preload --programs blocks --allocators glibc,tarn --steps 3 "
      "--passes 1 -o md");
  assert_contains(o.out, "Linux ");  // the machine
  assert_contains(o.out, "\n| program | allocator |");
  assert_contains(o.out, "\n| blocks  | tarn      |");
  o = tool_done(
      "bench preload --programs blocks --allocators glibc --steps 3 --passes 1 "
      "-o csv");
  assert_contains(o.out,
                  "program,allocator,cpu_s,sys_s,faults,rss_mib,failed,"
                  "machine\n");
}

TEST_LOOP(pools_in_place_of_allocators, FIGURES) {
  tool_output o = tool_done(
      "bench preload --programs blocks --pools no_pool,arena_pool --steps 4 "
      "--passes 1 -o json");
  ck_assert(json_valid(o.out));
  assert_keys(
      o.out, path_of(0, 0, ""),
      "pool,first_ms,second_ms,steady_ms,share,cpu_s,sys_s,run_s,rss_mib,"
      "failed");
  ck_assert_double_eq(json_number(o.out, path_of(0, 0, "share")), 0);
  ck_assert_double_gt(json_number(o.out, path_of(0, 1, "share")), 0.5);
}

// --- failures --------------------------------------------------------------

TEST_LOOP(what_is_not_installed_is_named, FIGURES) {
  tool_output o = tool_done(
      "bench preload --programs numpy,gpt-fixed,resnet-fixed --python /none "
      "--allocators glibc --passes 1 -o json");
  ck_assert(json_is_text(o.out, path_of(0, 0, "failed"),
                         "not installed: package python3-numpy"));
  ck_assert(json_is_text(o.out, path_of(1, 0, "failed"),
                         "not installed: package python3-torch"));
  ck_assert(json_is_text(o.out, path_of(2, 0, "failed"),
                         "not installed: package python3-torchvision"));
}

// It can be asked about, and does not run.
TEST_LOOP(a_program_that_fails, FIGURES) {
  const char *python =
      tool_write_file(tool_file("python"),
                      "#!/bin/sh\ncase $2 in import*) exit 0; esac\n"
                      "exit 7\n");
  tool_output o =
      tool_run("bench", "preload", "--programs", "numpy", "--allocators",
               "glibc", "--passes", "1", "--python", "/bin/sh", "-o", "json");
  ck_assert_int_eq(o.status, 0);  // a shell has no "import numpy"
  ck_assert_int_eq(chmod(python, 0755), 0);
  o = tool_run("bench", "preload", "--programs", "numpy", "--allocators",
               "glibc", "--passes", "1", "--python", python, "-o", "json");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "numpy: ended with status 7");
  ck_assert(
      json_is_text(o.out, path_of(0, 0, "failed"), "ended with status 7"));
}

TEST_LOOP(a_library_that_is_none, FIGURES) {
  setenv("TARN_MALLOC_LIBRARY", "/etc/passwd", 1);
  tool_output o = tool_line(
      "bench preload --programs blocks --allocators tarn --steps 2 --passes 1");
  unsetenv("TARN_MALLOC_LIBRARY");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "blocks: /etc/passwd cannot be preloaded");
}

TEST_LOOP(no_folder_for_the_files, FIGURES) {
  setenv("TMPDIR", "/no/such/folder", 1);
  tool_output o = tool_line("bench preload --programs blocks -o json");
  unsetenv("TMPDIR");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "/no/such/folder/");
}

TEST(wrong_use) {
  assert_misused("bench preload --programs block", "no program is named");
  assert_misused("bench preload --allocators malloc",
                 "no allocator is named 'malloc'");
  assert_misused("bench preload --programs blocks,blocks", "blocks");
  assert_misused("bench preload --pools puddle", "no pool is named 'puddle'");
  assert_misused("bench preload --pools no_pool --allocators glibc",
                 "there is no --allocators with it");
  assert_misused("bench preload --passes 0", "--passes");
  assert_misused("bench preload --work sit", "not 'sit'");
}

TEST(help) {
  tool_output o = tool_done("bench preload --help");
  assert_contains(o.out, "usage: tarn bench preload ");
}

FIXTURE(tool_files_begin, tool_files_end);
