// The files that verbs write: an input is never overwritten, and neither is a
// file of another kind, unless --force says so.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/pickle_writer.h"
#include "support/run.h"
#include "support/tool_assert.h"

#define TABLE "id,lower,upper,size\na,0,3,1024\nb,1,5,4096\n"

enum { WORDS = 6 };

// "IN" and "OUT" stand for the files.
typedef struct verb_case {
  const char *words[WORDS];
  bool reads_table;
  bool keeps_its_own;  // its own output of earlier is refused as well
} verb_case;

static const verb_case verbs[] = {
    {{"view", "IN", "--html", "OUT"}, .reads_table = false},
    {{"replay", "IN", "--html", "OUT"}, .reads_table = false},
    {{"plan", "IN", "--out", "OUT"}, .reads_table = true},
    {{"plan", "IN", "--out", "OUT"}, .reads_table = false},
    {{"plan", "IN", "--svg", "OUT"}, .reads_table = true},
    {{"convert", "IN", "OUT", "--to", "tarn"}, .keeps_its_own = true},
    {{"convert", "IN", "OUT", "--to", "pytorch"}, .keeps_its_own = true},
    {{"convert", "IN", "OUT", "--to", "perfetto"}, .keeps_its_own = true},
};

enum { VERBS = sizeof verbs / sizeof *verbs };

static const char *in;
static const char *out;

static void write_trace(const char *path) {
  pickle_writer w = {0};
  pickle_snapshot(&w, 4);
  pickle_middle(&w);
  pickle_event(&w, "alloc", 4096, 100);
  pickle_event(&w, "alloc", 8192, 100);
  pickle_finish(&w);
  pickle_save(&w, path);
}

static void write_input(const verb_case *verb) {
  in = tool_file("in");
  out = tool_file("out");
  if (verb->reads_table) {
    tool_write_file(in, TABLE);
  } else {
    write_trace(in);
  }
}

static tool_output run_verb_to(int fd, const verb_case *verb, bool force) {
  const char *argv[WORDS + 3] = {"tarn"};
  size_t count = 1;
  for (size_t i = 0; i < WORDS && verb->words[i] != NULL; i++) {
    const char *word = verb->words[i];
    if (strcmp(word, "IN") == 0) word = in;
    if (strcmp(word, "OUT") == 0) word = out;
    argv[count++] = word;
  }
  if (force) argv[count++] = "--force";
  return tool_run_list(fd, argv);
}

static tool_output run_verb(const verb_case *verb, bool force) {
  return run_verb_to(-1, verb, force);
}

static void assert_refused(tool_output o, const char *part) {
  assert_exits(o, 1, part);
  assert_contains(o.err, out);
}

static void assert_text(const char *path, const char *text) {
  char *found = tool_read_file(path);
  ck_assert_ptr_nonnull(found);
  ck_assert_str_eq(found, text);
  free(found);
}

static struct stat stat_of(const char *path) {
  struct stat found;
  ck_assert_int_eq(stat(path, &found), 0);
  return found;
}

FIXTURE(tool_files_begin, tool_files_end);

// By another name, too: the file is what counts.
TEST_LOOP(an_input_is_never_overwritten, VERBS) {
  const verb_case *verb = &verbs[_i];
  for (int by_link = 0; by_link < 3; by_link++) {
    write_input(verb);
    struct stat before = stat_of(in);
    if (by_link == 0) out = in;
    if (by_link == 1) ck_assert_int_eq(link(in, out), 0);
    if (by_link == 2) ck_assert_int_eq(symlink(in, out), 0);
    assert_refused(run_verb(verb, false), "reads it");
    assert_refused(run_verb(verb, true), "reads it");
    struct stat after = stat_of(in);
    ck_assert_uint_eq(after.st_ino, before.st_ino);
    ck_assert_int_eq(after.st_size, before.st_size);
    if (by_link > 0) ck_assert_int_eq(unlink(out), 0);
  }
}

TEST_LOOP(another_kind_wants_force, VERBS) {
  static const char *const others[] = {"a letter\n", "<!DOCTYPE html>\n<p>",
                                       "<svg></svg>\n", TABLE};
  const verb_case *verb = &verbs[_i];
  write_input(verb);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    tool_write_file(out, others[i]);
    assert_refused(run_verb(verb, false), "--force");
    assert_text(out, others[i]);
  }
  tool_ended(0, run_verb(verb, true));
  ck_assert_int_ne(stat_of(out).st_size, (int)strlen(TABLE));
}

TEST_LOOP(another_trace_wants_force, VERBS) {
  const verb_case *verb = &verbs[_i];
  write_input(verb);
  write_trace(out);
  struct stat before = stat_of(out);
  assert_refused(run_verb(verb, false), "--force");
  ck_assert_uint_eq(stat_of(out).st_ino, before.st_ino);
  tool_ended(0, run_verb(verb, true));
  ck_assert_uint_ne(stat_of(out).st_ino, before.st_ino);
}

// What the verb made before is made again; a trace might be the only
// recording of its user.
TEST_LOOP(its_own_is_replaced, VERBS) {
  const verb_case *verb = &verbs[_i];
  write_input(verb);
  tool_ended(0, run_verb(verb, false));
  if (verb->keeps_its_own) {
    assert_refused(run_verb(verb, false), "--force");
    tool_ended(0, run_verb(verb, true));
  } else {
    tool_ended(0, run_verb(verb, false));
  }
}

// As mktemp(1) makes them.
TEST_LOOP(an_empty_file_is_filled, VERBS) {
  const verb_case *verb = &verbs[_i];
  write_input(verb);
  tool_write_file(out, "");
  tool_ended(0, run_verb(verb, false));
  ck_assert_int_gt(stat_of(out).st_size, 0);
}

// A rename would put the file where the link is.
TEST_LOOP(a_link_to_nowhere_stays, VERBS) {
  struct stat found;
  const verb_case *verb = &verbs[_i];
  write_input(verb);
  ck_assert_int_eq(symlink(tool_file("gone"), out), 0);
  assert_refused(run_verb(verb, true), "No such file");
  ck_assert(lstat(out, &found) == 0 && S_ISLNK(found.st_mode));
}

// --- stdout ----------------------------------------------------------------

#define BEFORE "precious\n"

// Free them.
static char *bytes_of(const char *path, size_t *out_size) {
  *out_size = (size_t)stat_of(path).st_size;
  FILE *file = fopen(path, "rb");
  ck_assert_ptr_nonnull(file);
  char *bytes = calloc(*out_size + 1, 1);
  ck_assert_ptr_nonnull(bytes);
  ck_assert_uint_eq(fread(bytes, 1, *out_size, file), *out_size);
  ck_assert_int_eq(fclose(file), 0);
  return bytes;
}

// What a replay measures is never the same.
static void assert_same_file(const char *found, size_t found_size,
                             const char *expected, size_t expected_size,
                             bool is_replay) {
  static const char end[] = "</html>\n";
  if (is_replay) {
    ck_assert_uint_gt(found_size, strlen(end));
    ck_assert_str_eq(found + found_size - strlen(end), end);
  } else {
    ck_assert_uint_eq(found_size, expected_size);
    ck_assert_mem_eq(found, expected, found_size);
  }
}

// By its name, which may be that of a file in which there is something
// already: what is written stands behind that, and alone.
TEST_RANGE(stdout_is_written_to, 5, VERBS) {
  const verb_case *verb = &verbs[_i];
  const char *before = tool_file("before");
  size_t expected_size, size;
  write_input(verb);
  tool_ended(0, run_verb(verb, false));
  char *expected = bytes_of(out, &expected_size);
  tool_write_file(before, BEFORE);
  struct stat there = stat_of(before);
  for (int by_name = 0; by_name < 2; by_name++) {
    ck_assert_int_eq(truncate(before, strlen(BEFORE)), 0);
    out = by_name ? before : "/dev/stdout";
    int fd = open(before, O_WRONLY | O_APPEND);
    tool_output o = run_verb_to(fd, verb, false);
    ck_assert_msg(o.status == 0, "exit %d: %s", o.status, o.err);
    char *found = bytes_of(before, &size);
    ck_assert_int_eq(strncmp(found, BEFORE, strlen(BEFORE)), 0);
    assert_same_file(found + strlen(BEFORE), size - strlen(BEFORE), expected,
                     expected_size, strcmp(verb->words[0], "replay") == 0);
    ck_assert_uint_eq(stat_of(before).st_ino, there.st_ino);
    free(found);
    close(fd);
  }
  free(expected);
}

TEST(the_answer_goes_to_stderr_then) {
  static const struct {
    int verb;
    const char *answer;
  } answers[] = {{1, "reserved peak"}, {2, "are enough"}, {4, "are enough"}};
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    write_input(&verbs[answers[i].verb]);
    out = "/dev/stdout";
    tool_output o = run_verb(&verbs[answers[i].verb], false);
    ck_assert_int_eq(o.status, 0);
    assert_contains(o.err, answers[i].answer);
    ck_assert_ptr_null(strstr(o.out, answers[i].answer));
  }
}

// Nothing is mixed up where all of it is thrown away.
TEST(nowhere_is_not_stdout) {
  int nowhere = open("/dev/null", O_WRONLY);
  write_input(&verbs[2]);
  tool_output o =
      tool_run_to(nowhere, "plan", in, "--out", "/dev/null", "-o", "json");
  assert_done(&o);
  close(nowhere);
}

// --- one verb each ---------------------------------------------------------

TEST(pages_of_both_verbs_replace_each_other) {
  write_input(&verbs[0]);
  tool_ended(0, run_verb(&verbs[0], false));
  tool_ended(0, run_verb(&verbs[1], false));
  tool_ended(0, run_verb(&verbs[0], false));
}

TEST(each_page_of_a_folder) {
  const char *folder = tool_file("pages"), *trace = tool_file("b.pickle");
  ck_assert_int_eq(mkdir(folder, 0777), 0);
  out = tool_file("pages/b.html");
  write_trace(trace);
  tool_write_file(out, "a letter\n");
  assert_refused(tool_run("replay", "@bert-layer", trace, "--html", folder),
                 "--force");
  ck_assert_int_ne(access(tool_file("pages/bert-layer.html"), F_OK), 0);
  tool_ended(
      0, tool_run("replay", "@bert-layer", trace, "--html", folder, "--force"));
}

TEST(a_previous_plan_is_an_input) {
  write_input(&verbs[2]);
  tool_ended(0, run_verb(&verbs[2], false));
  assert_refused(
      tool_run("plan", in, "--previous", out, "--out", out, "--force"),
      "reads it");
}

// By whatever name, and whether it is there or not.
TEST(two_outputs_are_two_files) {
  static const char same[] = "--out and --svg name the same file";
  char other[1024];
  write_input(&verbs[2]);
  char *slash = strrchr(out, '/');
  snprintf(other, sizeof other, "%.*s/.%s", (int)(slash - out), out, slash);
  assert_misuse(tool_run("plan", in, "--out", out, "--svg", out), same);
  assert_misuse(tool_run("plan", in, "--out", out, "--svg", other), same);
  ck_assert_int_ne(access(out, F_OK), 0);
  tool_write_file(out, "");
  snprintf(other, sizeof other, "%s", tool_file("other"));
  ck_assert_int_eq(link(out, other), 0);
  assert_misuse(tool_run("plan", in, "--out", out, "--svg", other), same);
  assert_misuse(tool_run("plan", in, "--out", "-", "--svg", "/dev/stdout"),
                same);
}

TEST(standard_input_is_an_input) {
  write_input(&verbs[2]);
  ck_assert_ptr_nonnull(freopen(in, "r", stdin));
  out = in;
  assert_refused(tool_run("plan", "-", "--out", out, "--force"), "reads it");
  assert_text(in, TABLE);
}

TEST(bench_keeps_what_is_no_page) {
  write_input(&verbs[0]);
  tool_write_file(out, "a letter\n");
  assert_ended(tool_run("bench", "view", "--events", "1000", "--html", out), 1,
               "is not a page");
  assert_text(out, "a letter\n");
}

TEST(new_plugin_keeps_what_is_there) {
  write_input(&verbs[0]);
  tool_write_file(out, "");
  assert_refused(tool_run("new-plugin", "nemo", "--out", out),
                 "is there already");
}
