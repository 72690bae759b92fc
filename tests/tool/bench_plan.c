// `tarn bench plan`: its rows, its keys, its peer, wrong use. No figure is
// compared with a time.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/plan_bench.h"
#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

static char folder[512];
static char peer[600];

static void write_file(const char *name, const char *text) {
  char path[700];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  tool_write_file(path, text);
}

// Two files: one that says its capacity, and one that has a hole in its lowest
// plan.
static void make_files(void) {
  tool_files_begin();
  snprintf(folder, sizeof folder, "%s", tool_file("problems"));
  snprintf(peer, sizeof peer, "%s/peer", folder);
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  write_file("a.12.csv",
             "id,lower,upper,size\n"
             "b1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\n"
             "b5,0,21,4\n");
  write_file("plain.csv", "id,lower,upper,size\nx,0,2,5\ny,1,3,7\n");
  write_file("other.txt", "no table");
}

// A program for --peer: |script| sees its four arguments.
static void make_peer(const char *script) {
  char text[1000];
  snprintf(text, sizeof text, "#!/bin/sh\n%s\n", script);
  write_file("peer", text);
  ck_assert_int_eq(chmod(peer, 0700), 0);
}

static void end_files(void) {
  char path[700];
  static const char *const names[] = {"a.12.csv", "plain.csv", "other.txt",
                                      "peer", "bad.csv"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    (void)unlink(path);
  }
  ck_assert_int_eq(rmdir(folder), 0);
  tool_files_end();
}

FIXTURE(make_files, end_files);

static bool row_is(const char *json, size_t row, const char *key,
                   const char *value) {
  return json_is(json, json_row(row, key), value);
}

TEST(json_has_the_published_keys) {
  tool_output o = tool_did("bench", "plan", folder, "--part", "fit,early,low",
                           "--seconds", "5", "-o", "json");
  ck_assert(json_valid(o.out));
  assert_keys(o.out, "", "results,sums,machine");
  ck_assert_uint_eq(json_size(o.out, "results"), 6);
  assert_keys(
      o.out, json_row(0, ""),
      "part,name,buffers,lower_bound,wanted,height,over_bound,status,proved,"
      "nodes,all_seconds,peak_bytes,peer_peak_bytes,peer_failed,failed,"
      "seconds,limit,met,peer_seconds");
  ck_assert_uint_eq(json_size(o.out, "sums"), PLAN_BENCH_SUMS);
  assert_keys(o.out, "sums.0", "name,value,unit,goal,met");
}

TEST(capacities_are_in_names_or_the_bound) {
  tool_output o =
      tool_did("bench", "plan", folder, "--part", "fit,low", "-o", "json");
  ck_assert(row_is(o.out, 0, "name", "\"a.12.csv\""));
  ck_assert(row_is(o.out, 0, "part", "\"fit\""));
  ck_assert(row_is(o.out, 0, "wanted", "12"));
  ck_assert(row_is(o.out, 0, "height", "12"));
  ck_assert(row_is(o.out, 0, "buffers", "5"));
  ck_assert(row_is(o.out, 1, "name", "\"plain.csv\""));
  ck_assert(row_is(o.out, 1, "wanted", "12"));
  ck_assert(row_is(o.out, 2, "part", "\"low\""));
  ck_assert(row_is(o.out, 2, "status", "\"optimal\""));
  ck_assert(row_is(o.out, 3, "proved", "12"));
  ck_assert(row_is(o.out, 0, "peer_seconds", "null"));
  ck_assert_double_gt(json_number(o.out, json_row(0, "peak_bytes")), 0);
}

// It answers with the plan of a.12.csv for whatever it is asked.
static const char answering[] =
    "for word; do case $word in --output=*) out=${word#--output=};; esac; "
    "done\n"
    "case $1 in *a.12.csv) ;; *) exit 1;; esac\n"
    "[ \"$2\" = --capacity=12 ] && [ \"$3\" = --timeout=60s ] || exit 9\n"
    "printf 'id,lower,upper,size,offset\\nb1,0,3,4,8\\nb2,3,9,4,8\\n"
    "b3,0,9,4,4\\nb4,9,21,4,4\\nb5,0,21,4,%s\\n' \"${WRONG:-0}\" >\"$out\"\n";

TEST(a_peer_is_run_beside) {
  make_peer(answering);
  tool_output o = tool_did("bench", "plan", folder, "--part", "fit", "--peer",
                           peer, "-o", "json");
  ck_assert(row_is(o.out, 0, "peer_failed", "null"));
  ck_assert_double_ge(json_number(o.out, json_row(0, "peer_seconds")), 0);
  ck_assert_double_gt(json_number(o.out, json_row(0, "peer_peak_bytes")), 0);
  ck_assert(
      row_is(o.out, 1, "peer_failed", "\"no plan: it ended with status 1\""));
}

TEST(a_peer_that_is_wrong) {
  make_peer(answering);
  setenv("WRONG", "2", 1);
  tool_output o = tool_run("bench", "plan", folder, "--part", "fit", "--peer",
                           peer, "-o", "csv");
  unsetenv("WRONG");
  assert_done(&o);
  assert_contains(o.out, "a wrong plan: buffer ");
  make_peer("for word; do :; done; cp \"${1#--input=}\" \"${word#*=}\"");
  o = tool_did("bench", "plan", folder, "--part", "fit", "--peer", peer);
  assert_contains(o.out, "a wrong plan: its buffers are others");
  make_peer("kill -9 $$");
  o = tool_run("bench", "plan", folder, "--part", "fit", "--peer", peer);
  assert_contains(o.out, "no plan: it was ended by signal 9 (Killed)");
  make_peer("exit 0");
  o = tool_run("bench", "plan", folder, "--part", "fit", "--peer", peer);
  assert_contains(o.out, "its plan: ");
}

TEST(tables) {
  tool_output o = tool_did("bench", "plan", folder, "--part", "fit");
  assert_contains(o.out, "Linux ");  // the machine
  assert_contains(o.out, "\nfit   a.12.csv ");
  assert_contains(o.out, "\nfitted ");
  ck_assert_ptr_null(strstr(o.out, "peer_over"));
  o = tool_did("bench", "plan", folder, "--part", "low", "-o", "csv");
  ck_assert_int_eq(strncmp(o.out, "part,name,buffers,lower_bound,", 30), 0);
  o = tool_did("bench", "plan", folder, "--part", "low", "-o", "md");
  assert_contains(o.out, "\n| part ");
}

TEST(what_cannot_be_read_fails) {
  write_file("bad.csv", "id,lower,upper,size\nx,3,2,5\n");
  tool_output o =
      tool_ends(1, "bench", "plan", folder, "--part", "low", "-o", "json");
  assert_contains(o.err, "1 of 3 rows failed");
  ck_assert(row_is(o.out, 1, "name", "\"bad.csv\""));
  ck_assert(row_is(o.out, 1, "seconds", "null"));
  ck_assert(row_is(o.out, 1, "met", "false"));
  ck_assert(!row_is(o.out, 1, "failed", "null"));
  ck_assert(row_is(o.out, 2, "failed", "null"));
}

TEST(no_folder_no_files) {
  assert_exits(tool_line("bench plan /nowhere"), 1, "/nowhere: No such file");
  write_file("peer", "");
  assert_ended(tool_run("bench", "plan", folder, "--peer", peer), 1,
               "cannot be run");
  setenv("TMPDIR", "/nowhere", 1);
  tool_output o = tool_run("bench", "plan", folder, "--part", "fit");
  unsetenv("TMPDIR");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "/nowhere: No such file");
  assert_ended(tool_line("bench plan /proc/self/task"), 1,
               "there is no *.csv in it");
}

TEST(help_and_wrong_use) {
  tool_output o = tool_done("bench plan --help");
  assert_contains(o.out, "usage: tarn bench plan ");
  assert_misused("bench plan --part fit", "want a folder");
  assert_misused("bench plan --part fit,slow .", "'slow'");
  assert_misused("bench plan --peer x", "--peer is for");
  assert_misused("bench plan --seconds 0", "--seconds wants a whole number");
  assert_misused("bench plan --rounds 101", "--rounds wants a whole number");
  assert_misused("bench plan -o xml", "'xml' is not a format");
  assert_misused("bench plan a b", "'b' is unexpected");
}
