// `tarn plan`, used wrongly, on files that are no tables, and with places that
// cannot be written to.
#include <sys/stat.h>
#include <unistd.h>

#include "plan_kit.h"

FIXTURE(tool_files_begin, tool_files_end);

TEST(help) {
  tool_output o = tool_done("plan --help");
  assert_contains(o.out, "usage: tarn plan FILE.csv|TRACE|@WORKLOAD");
}

TEST(words) {
  assert_misuse(tool_run("plan"), "which file?");
  assert_misused("plan a.csv b.csv", "'b.csv' is unexpected");
  assert_misused("plan @bert", "'@bert'");
  assert_misused("plan a.csv --capasity 1", "'--capasity'");
  assert_misused("plan a.csv --capacity", "needs a value");
}

TEST(values) {
  assert_misused("plan a.csv --capacity 0", "--capacity 0");
  assert_misused("plan a.csv --capacity -1", "--capacity -1");
  assert_misused("plan a.csv --capacity 1Z", "--capacity 1Z");
  assert_misused("plan a.csv --align x", "--align x");
  assert_misused("plan a.csv --arena x", "--arena");
  assert_misused("plan a.csv --threads 0", "--threads wants");
  assert_misused("plan a.csv --threads 1025", "1024");
  assert_misused("plan a.csv --nodes 0", "--nodes wants");
  assert_misused("plan a.csv --trace-device x", "--trace-device wants");
  assert_misused("plan a.csv -o xml", "'xml' is not a format");
  assert_misused("plan a.csv -o md", "as table or json");
}

static const char *const times[] = {"0",   "-1",   "x",          "1x", "inf",
                                    "nan", "1e20", "1000000001", "",   "."};

TEST_LOOP(time_limits, sizeof times / sizeof *times) {
  assert_misuse(tool_run("plan", "a.csv", "--time-limit", times[_i]),
                "--time-limit wants seconds");
}

TEST(what_does_not_go_together) {
  assert_misused("plan a.csv --capacity 1 --arena 1",
                 "with --arena each has its own");
  assert_misused("plan a.csv --out - -o json", "both want stdout");
  assert_misused("plan a.csv --out /dev/stdout -ojson",
                 "--out /dev/stdout and -o json both want stdout");
  assert_misused("plan a.csv --svg /dev/stdout -ojson",
                 "--svg /dev/stdout and -o json both want stdout");
  assert_misused("plan a.csv --check --out b.csv", "--check makes no plan");
  assert_misused("plan a.csv --check --previous b.csv",
                 "--check makes no plan");
  assert_misused("plan a.csv --check --minimise", "--check solves nothing");
  assert_misused("plan a.csv --check --time-limit 1", "--check solves nothing");
  assert_misused("plan a.csv --check --nodes 1", "--check solves nothing");
  assert_misused("plan a.csv --check --threads 1", "--check solves nothing");
}

TEST(options_of_traces) {
  const char *path = plan_file("three.csv", THREE);
  assert_misuse(tool_run("plan", path, "--pool", "no_pool"), "is no trace");
  assert_misuse(tool_run("plan", path, "--trace-device", "0"), "is no trace");
  assert_misused("plan @bert-layer --pool no_pol", "'no_pool'");
}

// --- files -----------------------------------------------------------------

// It could not be done, and says why.
static const struct damage {
  const char *text;
  const char *says;
} damages[] = {
    {"", "damaged.csv"},
    {"id,lower,upper\n", "damaged.csv:1:"},
    {"id,lower,upper,size\na,0,1\n", "damaged.csv:2:"},
    {"id,lower,upper,size\na,0,1,x\n", "damaged.csv:2:7:"},
    {"id,lower,upper,size\na,0,1,1\nb,1,1,8\n", "damaged.csv:3:"},
    {"id,lower,upper,size\na,0,1,0\n", "damaged.csv:2:7:"},
    {"id,lower,upper,size\na,0,1,1\na,0,1,1\n", "damaged.csv:3:1:"},
    {"id,lower,upper,size\na,0,1,99999999999999999999\n", "damaged.csv:2:7:"},
};

TEST_LOOP(errors_have_line_and_column, sizeof damages / sizeof *damages) {
  const char *path = plan_file("damaged.csv", damages[_i].text);
  assert_exits(tool_run("plan", path), 1, damages[_i].says);
}

TEST(what_is_not_there) {
  assert_exits(tool_line("plan /nowhere/a.csv"), 1, "/nowhere/a.csv");
  assert_exits(tool_line("plan /nowhere/a"), 1, "/nowhere/a");
}

TEST(neither_table_nor_trace) {
  const char *path = plan_file("text", "Dear reader,\n");
  tool_output o = tool_ends(1, "plan", path);
  ck_assert_str_ne(o.err, "");
}

// The file is not read first: it need not even be there.
TEST_LOOP(places_are_tried_first, 2) {
  static const char *const options[] = {"--out", "--svg"};
  assert_exits(tool_run("plan", "/nowhere/a.csv", options[_i], "/nowhere/b"), 1,
               "/nowhere/b: No such file or directory");
  const char *path = plan_file("three.csv", THREE);
  const char *folder = tool_file("folder");
  ck_assert_int_eq(mkdir(folder, 0777), 0);
  assert_exits(tool_run("plan", path, options[_i], folder), 1,
               "Is a directory");
}

// A pipe without a writer.
TEST(a_pipe_is_no_file) {
  const char *pipe = tool_file("pipe.csv");
  ck_assert_int_eq(mkfifo(pipe, 0600), 0);
  assert_exits(tool_run("plan", pipe), 1, "not a regular file");
}

// Numbers of buffers, and not their names, would send the reader to the wrong
// line.
TEST(arenas_that_are_not_there) {
  const char *path = plan_file(
      "arenas.csv", "id,lower,upper,size,arena\na,0,3,8,0\nb,0,3,8,2\n");
  assert_exits(tool_run("plan", path), 1,
               "'b' has to lie in arena 2, counted from 0, and there is 1");
  assert_exits(tool_run("plan", path, "--arena", "8", "--arena", "any"), 1,
               "'b' has to lie in arena 2, counted from 0, and there are 2");
}

// A full disk, and a reader that is gone, are found at the end.
TEST(what_cannot_be_written) {
  const char *path = plan_file("three.csv", THREE);
  tool_output o = tool_ends(1, "plan", path, "--svg", "/dev/full");
  assert_contains(o.err, "/dev/full: ");
  assert_contains(o.out, "(5120 bytes) are enough");
  ck_assert_ptr_null(strstr(o.out, "picture"));
}

// What comes out of a file does not reach the terminal as it is.
TEST(names_are_neutralised) {
  const char *path = plan_file("hostile.csv",
                               "id,lower,upper,size\n\xc2\x9b"
                               "a,0,3,1024\nb,0,3,8\n");
  tool_output o = tool_ends(1, "plan", path, "--capacity", "1K");
  assert_contains(o.out, "?a");
  ck_assert_ptr_null(strstr(o.out, "\xc2\x9b"));
}
