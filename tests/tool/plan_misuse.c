// `tarn plan`, used wrongly, on files that are no tables, and with places that
// cannot be written to.
#include <sys/stat.h>
#include <unistd.h>

#include "plan_kit.h"

START_TEST(help) {
  tool_output o = tool_run("plan", "--help");
  assert_done(&o);
  assert_contains(o.out, "usage: tarn plan FILE.csv|TRACE|@WORKLOAD");
  tool_output_free(&o);
}
END_TEST

START_TEST(words) {
  assert_misuse(tool_run("plan"), "which file?");
  assert_misuse(tool_run("plan", "a.csv", "b.csv"), "'b.csv' is too much");
  assert_misuse(tool_run("plan", "@bert"), "'@bert'");
  assert_misuse(tool_run("plan", "a.csv", "--capasity", "1"), "'--capasity'");
  assert_misuse(tool_run("plan", "a.csv", "--capacity"), "needs a value");
}
END_TEST

START_TEST(values) {
  assert_misuse(tool_run("plan", "a.csv", "--capacity", "0"), "--capacity 0");
  assert_misuse(tool_run("plan", "a.csv", "--capacity", "-1"), "--capacity -1");
  assert_misuse(tool_run("plan", "a.csv", "--capacity", "1Z"), "--capacity 1Z");
  assert_misuse(tool_run("plan", "a.csv", "--align", "x"), "--align x");
  assert_misuse(tool_run("plan", "a.csv", "--arena", "x"), "--arena");
  assert_misuse(tool_run("plan", "a.csv", "--threads", "0"), "--threads wants");
  assert_misuse(tool_run("plan", "a.csv", "--threads", "1025"), "1024");
  assert_misuse(tool_run("plan", "a.csv", "--nodes", "0"), "--nodes wants");
  assert_misuse(tool_run("plan", "a.csv", "--trace-device", "x"),
                "--trace-device wants");
  assert_misuse(tool_run("plan", "a.csv", "-o", "xml"), "'xml' is no output");
  assert_misuse(tool_run("plan", "a.csv", "-o", "md"), "as table or json");
}
END_TEST

static const char *const times[] = {"0",   "-1",   "x",          "1x", "inf",
                                    "nan", "1e20", "1000000001", "",   "."};

START_TEST(time_limits) {
  assert_misuse(tool_run("plan", "a.csv", "--time-limit", times[_i]),
                "--time-limit wants seconds");
}
END_TEST

START_TEST(what_does_not_go_together) {
  assert_misuse(tool_run("plan", "a.csv", "--capacity", "1", "--arena", "1"),
                "with --arena each has its own");
  assert_misuse(tool_run("plan", "a.csv", "--out", "-", "-o", "json"),
                "both want stdout");
  assert_misuse(tool_run("plan", "a.csv", "--out", "/dev/stdout", "-ojson"),
                "--out /dev/stdout and -o json both want stdout");
  assert_misuse(tool_run("plan", "a.csv", "--svg", "/dev/stdout", "-ojson"),
                "--svg /dev/stdout and -o json both want stdout");
  assert_misuse(tool_run("plan", "a.csv", "--check", "--out", "b.csv"),
                "--check makes no plan");
  assert_misuse(tool_run("plan", "a.csv", "--check", "--previous", "b.csv"),
                "--check makes no plan");
  assert_misuse(tool_run("plan", "a.csv", "--check", "--minimise"),
                "--check solves nothing");
  assert_misuse(tool_run("plan", "a.csv", "--check", "--time-limit", "1"),
                "--check solves nothing");
  assert_misuse(tool_run("plan", "a.csv", "--check", "--nodes", "1"),
                "--check solves nothing");
  assert_misuse(tool_run("plan", "a.csv", "--check", "--threads", "1"),
                "--check solves nothing");
}
END_TEST

START_TEST(options_of_traces) {
  char *path = plan_file("three.csv", THREE);
  assert_misuse(tool_run("plan", path, "--pool", "no_pool"), "is no trace");
  assert_misuse(tool_run("plan", path, "--trace-device", "0"), "is no trace");
  assert_misuse(tool_run("plan", "@bert-layer", "--pool", "no_pol"),
                "'no_pool'");
  free(path);
}
END_TEST

// --- files -----------------------------------------------------------------

// It could not be done, and says why.
static void assert_no(tool_output o, const char *part) {
  ck_assert_int_eq(o.status, 1);
  ck_assert_str_eq(o.out, "");
  assert_contains(o.err, part);
  tool_output_free(&o);
}

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

START_TEST(errors_have_line_and_column) {
  char *path = plan_file("damaged.csv", damages[_i].text);
  assert_no(tool_run("plan", path), damages[_i].says);
  free(path);
}
END_TEST

START_TEST(what_is_not_there) {
  assert_no(tool_run("plan", "/nowhere/a.csv"), "/nowhere/a.csv");
  assert_no(tool_run("plan", "/nowhere/a"), "/nowhere/a");
}
END_TEST

START_TEST(neither_table_nor_trace) {
  char *path = plan_file("text", "Dear reader,\n");
  tool_output o = tool_run("plan", path);
  ck_assert_int_eq(o.status, 1);
  ck_assert_str_ne(o.err, "");
  tool_output_free(&o);
  free(path);
}
END_TEST

// The file is not read first: it need not even be there.
START_TEST(places_are_tried_first) {
  static const char *const options[] = {"--out", "--svg"};
  assert_no(tool_run("plan", "/nowhere/a.csv", options[_i], "/nowhere/b"),
            "/nowhere/b: No such file or directory");
  char *path = plan_file("three.csv", THREE);
  char *folder = plan_path("folder");
  ck_assert_int_eq(mkdir(folder, 0777), 0);
  assert_no(tool_run("plan", path, options[_i], folder), "Is a directory");
  free(folder);
  free(path);
}
END_TEST

// Nobody will ever write to it.
START_TEST(a_pipe_is_no_file) {
  char *pipe = plan_path("pipe.csv");
  ck_assert_int_eq(mkfifo(pipe, 0600), 0);
  assert_no(tool_run("plan", pipe), "not a regular file");
  free(pipe);
}
END_TEST

// Numbers of buffers, and not their names, would send the reader to the wrong
// line.
START_TEST(arenas_that_are_not_there) {
  char *path = plan_file("arenas.csv",
                         "id,lower,upper,size,arena\na,0,3,8,0\nb,0,3,8,2\n");
  assert_no(tool_run("plan", path),
            "'b' has to lie in arena 2, counted from 0, and there is 1");
  assert_no(tool_run("plan", path, "--arena", "8", "--arena", "any"),
            "'b' has to lie in arena 2, counted from 0, and there are 2");
  free(path);
}
END_TEST

// A full disk, and a reader that is gone, are found at the end.
START_TEST(what_cannot_be_written) {
  char *path = plan_file("three.csv", THREE);
  tool_output o = tool_run("plan", path, "--svg", "/dev/full");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "/dev/full: ");
  assert_contains(o.out, "(5120 bytes) are enough");
  ck_assert_ptr_null(strstr(o.out, "picture"));
  tool_output_free(&o);
  free(path);
}
END_TEST

// What comes out of a file does not reach the terminal as it is.
START_TEST(names_are_neutralised) {
  char *path = plan_file("hostile.csv",
                         "id,lower,upper,size\n\xc2\x9b"
                         "a,0,3,1024\nb,0,3,8\n");
  tool_output o = tool_run("plan", path, "--capacity", "1K");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.out, "?a");
  ck_assert_ptr_null(strstr(o.out, "\xc2\x9b"));
  tool_output_free(&o);
  free(path);
}
END_TEST

static void add_tests(TCase *all) {
  tcase_add_test(all, help);
  tcase_add_test(all, words);
  tcase_add_test(all, values);
  tcase_add_loop_test(all, time_limits, 0, sizeof times / sizeof *times);
  tcase_add_test(all, what_does_not_go_together);
  tcase_add_test(all, options_of_traces);
  tcase_add_loop_test(all, errors_have_line_and_column, 0,
                      sizeof damages / sizeof *damages);
  tcase_add_test(all, what_is_not_there);
  tcase_add_test(all, neither_table_nor_trace);
  tcase_add_loop_test(all, places_are_tried_first, 0, 2);
  tcase_add_test(all, a_pipe_is_no_file);
  tcase_add_test(all, arenas_that_are_not_there);
  tcase_add_test(all, what_cannot_be_written);
  tcase_add_test(all, names_are_neutralised);
}

int main(void) {
  Suite *suite = suite_create("tool_plan_misuse");
  TCase *all = tcase_create("all");
  tcase_set_timeout(all, 120);
  tcase_add_checked_fixture(all, tool_files_begin, tool_files_end);
  add_tests(all);
  suite_add_tcase(suite, all);
  return run_suite(suite);
}
