// examples/recommend as it is run: it learns what chance does not reach, with a
// quarter of its table in memory, the same with any number of ranks; and
// killed in the middle it goes on from its last flush, and comes to the same.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/run.h"
#include "support/tool_assert.h"

static const char all_keys[] =
    "ranks,from,steps,loss,auc_before,auc,auc_hidden,auc_bound,rows_per_s,hits,"
    "blocks_read,blocks_written,table_bytes,memory_bytes";

enum { STEPS = 100, FLUSH = 20 };
#define SMALL \
  "--users 6000 --items 2000 --batch 256 --steps 100 --flush 20 --path %s%s"

// What `tarn` is told to run |ranks| ranks whose table is called |name|.
static const char *words_of(size_t ranks, const char *name, const char *more) {
  static char words[1024];
  snprintf(words, sizeof words, "run -n %zu -- %s " SMALL, ranks,
           TARN_EXAMPLE_RECOMMEND, tool_file(name), more);
  return words;
}

static tool_output recommend(size_t ranks, const char *name, const char *more) {
  return tool_line(words_of(ranks, name, more));
}

// --- results ---------------------------------------------------------------

static tool_output train(size_t ranks, const char *name) {
  tool_output o = recommend(ranks, name, " -o json");
  ck_assert_msg(o.status == 0, "exit %d: %s", o.status, o.err);
  assert_json_line(o.out);
  assert_keys(o.out, "", all_keys);
  assert_number(o.out, "ranks", (double)ranks);
  assert_number(o.out, "steps", STEPS);
  return o;
}

static void assert_learned(const char *out, size_t ranks) {
  double bound = json_number(out, "auc_bound");
  ck_assert_double_lt(json_number(out, "auc_before"), bound);
  ck_assert_double_gt(json_number(out, "auc"), bound + .08);
  ck_assert_double_lt(json_number(out, "auc"), json_number(out, "auc_hidden"));
  ck_assert_double_gt(json_number(out, "blocks_read"), 0);
  ck_assert_double_gt(json_number(out, "blocks_written"), 0);
  ck_assert_double_ge(json_number(out, "table_bytes"),
                      4 * json_number(out, "memory_bytes") * (double)ranks);
}

TEST(it_learns_the_same_with_any_number_of_ranks) {
  tool_files_begin();
  tool_output one = train(1, "one");
  assert_number(one.out, "from", 0);
  assert_learned(one.out, 1);
  tool_output three = train(3, "three");
  assert_learned(three.out, 3);
  assert_number(three.out, "auc", json_number(one.out, "auc"));
  tool_output_free(&three);
  tool_output_free(&one);
  tool_files_end();
}

// --- killed ----------------------------------------------------------------

enum { MOST_WORDS = 24 };

// `tarn` with |words|, which are cut; |*out_lines| is its stdout.
static pid_t start(char *words, FILE **out_lines) {
  char *argv[MOST_WORDS + 1] = {"tarn"};
  size_t count = 1;
  int ends[2];
  for (char *w = strtok(words, " "); w != NULL; w = strtok(NULL, " ")) {
    ck_assert_uint_lt(count, MOST_WORDS);
    argv[count++] = w;
  }
  ck_assert_int_eq(pipe(ends), 0);
  pid_t pid = fork();
  ck_assert_int_ge(pid, 0);
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(TARN_TOOL, argv);
    _exit(127);
  }
  close(ends[1]);
  *out_lines = fdopen(ends[0], "r");
  ck_assert_ptr_nonnull(*out_lines);
  return pid;
}

// The step of the next flush that is told; 0: there is none.
static size_t next_flush(FILE *lines) {
  char line[256];
  size_t step = 0;
  while (fgets(line, sizeof line, lines) != NULL)
    if (sscanf(line, "step %zu of", &step) == 1) return step;
  return 0;
}

// Kills it after its first flush, and returns the last step that was flushed,
// as far as it has told. When its lines end, no rank is left.
static size_t kill_in_the_middle(size_t ranks, const char *name) {
  FILE *lines = NULL;
  int status = 0;
  pid_t pid = start(tool_keep(strdup(words_of(ranks, name, ""))), &lines);
  size_t last = next_flush(lines);
  ck_assert_uint_gt(last, 0);
  ck_assert_int_eq(kill(pid, SIGKILL), 0);
  for (size_t step = last; step != 0; step = next_flush(lines))
    last = step;
  fclose(lines);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  return last;
}

// It may have flushed once more, and not have told so.
static void assert_goes_on(size_t ranks, size_t flushed, const char *whole) {
  tool_output o = train(ranks, "killed");
  double from = json_number(o.out, "from");
  ck_assert_double_ge(from, (double)flushed);
  ck_assert_double_le(from, (double)(flushed + FLUSH));
  ck_assert_double_lt(from, STEPS);
  assert_contains(o.err, "goes on from step ");
  assert_number(o.out, "auc", json_number(whole, "auc"));
  tool_output_free(&o);
}

TEST_LOOP(killed_it_goes_on_from_the_last_flush, 2) {
  size_t ranks = (size_t)_i + 1;
  tool_files_begin();
  tool_output whole = train(ranks, "whole");
  size_t first = kill_in_the_middle(ranks, "killed");
  size_t second = kill_in_the_middle(ranks, "killed");
  ck_assert_uint_gt(second, first);
  assert_goes_on(ranks, second, whole.out);
  tool_output_free(&whole);
  tool_files_end();
}

// --- for people ------------------------------------------------------------

TEST(one_rank_reports) {
  tool_files_begin();
  tool_output o = recommend(2, "table", " --steps 30");
  assert_done(&o);
  assert_contains(o.out, "begins: no step was flushed before");
  assert_contains(o.out, "step    30 of 30: loss ");
  assert_contains(o.out, "MiB of memory at each of 2 ranks");
  const char *first = strstr(o.out, "held out");
  ck_assert_ptr_nonnull(first);
  ck_assert_ptr_null(strstr(first + 1, "held out"));
  tool_output_free(&o);
  o = recommend(2, "table", " --steps 30");
  assert_done(&o);
  assert_contains(o.out, "goes on from step 30, which was flushed");
  tool_output_free(&o);
  o = recommend(2, "table", " --steps 10 --new");
  assert_done(&o);
  assert_contains(o.out, "begins: no step was flushed before");
  tool_output_free(&o);
  tool_files_end();
}

TEST(help_tells_the_options) {
  tool_output o = recommend(2, "table", " -h");
  assert_done(&o);
  assert_contains(o.out, "--new");
  ck_assert_ptr_null(strstr(strstr(o.out, "Usage") + 1, "Usage"));
  tool_output_free(&o);
}

// --- that fail -------------------------------------------------------------

// `tarn run` adds a line of its own.
static void assert_told_once(tool_output o, int status, const char *part) {
  ck_assert_msg(o.status == status, "exit %d: %s", o.status, o.err);
  assert_contains(o.err, part);
  const char *told = strstr(o.err, "recommend: ");
  ck_assert_ptr_nonnull(told);
  ck_assert_ptr_null(strstr(told + 1, "recommend: "));
  tool_output_free(&o);
}

TEST(wrong_options_are_refused) {
  static const char *const wrong[][2] = {
      {" --users 99", "'--users'"},  {" --items -1", "'--items'"},
      {" --batch x", "'--batch'"},   {" --batch 33", "no multiple of 32"},
      {" --steps 1.5", "'--steps'"}, {" --flush 0", "'--flush'"},
      {" --seed -1", "'--seed'"},    {" -o yaml", "'-o'"},
      {" --colour", "'--colour'"},   {" --items", "a value is wanted"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_told_once(recommend(2, "table", wrong[i][0]), 2, wrong[i][1]);
}

TEST(another_training_does_not_go_on_with_the_table) {
  tool_files_begin();
  tool_output o = recommend(2, "table", " --steps 10");
  assert_done(&o);
  tool_output_free(&o);
  assert_told_once(recommend(2, "table", " --seed 2"), 1,
                   "begun with --users 6000 --batch 256 --seed 1");
  assert_told_once(recommend(2, "table", " --items 3000"), 1, "9001");
  tool_files_end();
}

TEST(a_table_needs_a_folder) {
  assert_told_once(recommend(2, "table", " --path /no/such/folder/x"), 1,
                   "/no/such/folder/x");
}
