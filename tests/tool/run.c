// `tarn run`: what ranks are given, how they end, and what is refused.
#include <sys/resource.h>

#include "run_kit.h"
#include "tarn/comm.h"

// --- what they are given ---------------------------------------------------

static void check_numbers(size_t count) {
  char number[32], line[64];
  snprintf(number, sizeof number, "%zu", count);
  tool_output o =
      tool_as_done(run_script("echo =$TARN_RANK/$TARN_SIZE", "-n", number));
  ck_assert_uint_eq(count_of(o.out, "\n"), count);
  for (size_t i = 0; i < count; i++) {
    snprintf(line, sizeof line, "=%zu/%zu\n", i, count);
    ck_assert_uint_eq(count_of(o.out, line), 1);
  }
}

FIXTURE(tool_files_begin, tool_files_end);

TEST(each_has_its_number) {
  for (size_t count = 1; count <= 7; count++)
    check_numbers(count);
  check_numbers(64);
  check_numbers(TARN_COMM_MOST_RANKS);
}

TEST(number_of_an_outer_run_is_replaced) {
  setenv("TARN_COMM", "of another run", 1);
  setenv("TARN_RANK", "17", 1);
  setenv("TARN_SIZE", "18", 1);
  tool_output o =
      run_script("echo $TARN_RANK/$TARN_SIZE; echo $TARN_COMM", "-n", "1");
  assert_done(&o);
  assert_contains(o.out, "0/1\n");
  ck_assert_ptr_null(strstr(o.out, "another"));
}

TEST(timeout_is_told) {
  setenv("TARN_COMM_TIMEOUT_MS", "77", 1);
  tool_output o = tool_as_done(run_script("echo $TARN_COMM_TIMEOUT_MS", "-n2"));
  ck_assert_str_eq(o.out, "77\n77\n");
  o = tool_as_done(
      run_script("echo $TARN_COMM_TIMEOUT_MS", "-n2", "--timeout", "1500"));
  ck_assert_str_eq(o.out, "1500\n1500\n");
}

TEST(words_behind_the_program_are_its_own) {
  tool_output o = tool_done("run -n 1 echo -l -- --help");
  ck_assert_str_eq(o.out, "-l -- --help\n");
  o = tool_done("run --ranks 1 -- echo -n");
  ck_assert_str_eq(o.out, "");
}

// The first alone reads what the launcher is given.
TEST(stdin_is_rank_0s) {
  FILE *in = tmpfile();
  ck_assert_ptr_nonnull(in);
  fputs("one\ntwo\n", in);
  rewind(in);
  int kept = dup(STDIN_FILENO);
  dup2(fileno(in), STDIN_FILENO);
  tool_output o = tool_line("run -n 3 -l cat");
  dup2(kept, STDIN_FILENO);
  close(kept);
  fclose(in);
  assert_done(&o);
  ck_assert_str_eq(o.out, "[0] one\n[0] two\n");
}

// Of what the launcher holds, a rank gets its place and no more: the area, a
// way to each mailbox, and its own.
TEST(no_descriptor_leaks) {
  ck_assert_int_eq(close_range(3, ~0U, CLOSE_RANGE_CLOEXEC), 0);
  tool_output o =
      tool_as_done(run_script("ls -l /proc/$$/fd", "-n", "3", "-l"));
  for (int i = 0; i < 3; i++) {
    const char *const marks[] = {"[0] ", "[1] ", "[2] "};
    ck_assert_uint_gt(count_of(o.out, marks[i]), 3);
  }
  ck_assert_uint_eq(count_of(o.out, " -> pipe:"), 6);
  ck_assert_uint_eq(count_of(o.out, " -> /memfd:"), 3);
  ck_assert_uint_eq(count_of(o.out, " -> socket:"), 12);
  ck_assert_ptr_null(strstr(o.out, "signalfd"));
}

// Room is made for the launcher, where there may be more; ranks have what was.
TEST(file_limit_is_as_before) {
  tool_output o =
      tool_run_program("/bin/sh", -1,
                       (const char *const[]){"sh", "-c",
                                             "ulimit -Sn 32; exec " TARN_TOOL
                                             " run -n 24 -l sh -c 'ulimit -Sn'",
                                             NULL});
  assert_done(&o);
  ck_assert_uint_eq(count_of(o.out, "] 32\n"), 24);
}

// Where there may not, it is said.
TEST(file_limit_that_is_too_low) {
  tool_output o = tool_run_program(
      "/bin/sh", -1,
      (const char *const[]){
          "sh", "-c",
          "ulimit -n 32; exec " TARN_TOOL " run -n 64 -l sleep 1000", NULL});
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "Too many open files");
}

static void limit_files(void) {
  const struct rlimit limit = {32, 32};
  if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) != 0 ||
      setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    _exit(98);
  }
}

// So it is when some of them run already, which are ended.
TEST(file_limit_in_the_middle) {
  launcher l =
      launch(limit_files, (const char *const[]){"tarn", "run", "-n", "8", "-l",
                                                "sleep", "1000", NULL});
  ck_assert_int_eq(wait_for(&l), 1);
}

static void close_all_three(void) {
  for (int fd = 0; fd < 3; fd++)
    close(fd);
}

// What is made for the ranks does not take the places of what is closed, where
// their output would seem to have arrived.
TEST(closed_outputs_stay_closed) {
  launcher l =
      launch_script(close_all_three,
                    "! echo out && ! echo err >&2 && ! read line", "-n", "2");
  char *text = read_lines(&l, 1);
  ck_assert_str_eq(text, "");
  free(text);
  ck_assert_int_eq(wait_for(&l), 0);
}

// --- how they end ----------------------------------------------------------

TEST(status_of_the_one_that_fails) {
  tool_output o = run_script("test $TARN_RANK != 2 || exit 9", "-n", "4");
  assert_ended(o, 9, "tarn run: rank 2 ended with exit status 9\n");
}

TEST(signal_of_the_one_that_fails) {
  tool_output o =
      run_script("test $TARN_RANK != 1 || kill -KILL $$", "-n", "4");
  assert_ended(o, 128 + SIGKILL,
               "tarn run: rank 1 was ended by signal 9 (Killed)\n");
}

// The first fails when the others are ready: each makes a file then.
#define FAIL_WHEN_READY(count, status)                                     \
  "if test $TARN_RANK = 0; then while test $(ls $READY | wc -l) != " count \
  "; do sleep 0.02; done; exit " status "; fi; "
#define SAY_READY ": >$READY/$TARN_RANK; " WAIT_HERE

// Others that fail for it are not the cause, and are not named.
TEST(first_failure_counts) {
  const char *script =
      FAIL_WHEN_READY("2", "5") "trap 'exit 6' TERM; " SAY_READY;
  setenv("READY", tool_file(""), 1);
  tool_output o = tool_ended(5, run_script(script, "-n", "3", "--grace", "0"));
  ck_assert_str_eq(o.err,
                   "tarn run: rank 0 ended with exit status 5\n"
                   "tarn run: ranks 1, 2 still run: SIGTERM\n");
}

TEST(sigpipe_ends_a_rank) {
  tool_output o = run_script("kill -PIPE $$; exit 3", "-n", "1");
  assert_ended(o, 128 + SIGPIPE, "rank 0 was ended by signal 13");
}

TEST(others_may_end_by_themselves) {
  const char *script = "test $TARN_RANK != 0 || exit 3; sleep 0.3; echo done";
  tool_output o = tool_ended(3, run_script(script, "-n", "3"));
  ck_assert_str_eq(o.out, "done\ndone\n");
  ck_assert_ptr_null(strstr(o.err, "still run"));
}

TEST(grace_of_none_is_for_ever) {
  const char *script = "test $TARN_RANK != 0 || exit 3; sleep 0.3; echo done";
  tool_output o =
      tool_ended(3, run_script(script, "-n", "2", "--grace", "none"));
  ck_assert_str_eq(o.out, "done\n");
  ck_assert_str_eq(o.err, "tarn run: rank 0 ended with exit status 3\n");
}

TEST(stubborn_are_killed) {
  const char *script = FAIL_WHEN_READY("1", "4") "trap '' TERM; " SAY_READY;
  setenv("READY", tool_file(""), 1);
  tool_output o = tool_ended(4, run_script(script, "-n", "2", "--grace", "0"));
  ck_assert_str_eq(o.err,
                   "tarn run: rank 0 ended with exit status 4\n"
                   "tarn run: rank 1 still runs: SIGTERM\n"
                   "tarn run: rank 1 still runs: SIGKILL\n");
}

TEST(many_that_are_left_are_counted) {
  const char *script = "test $TARN_RANK != 0 || exit 1; exec sleep 1000";
  tool_output o = run_script(script, "-n", "13", "--grace", "0");
  assert_ended(o, 1, "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 4 more still run: ");
}

// --- what is refused -------------------------------------------------------

TEST(missing_program_is_127) {
  tool_output o = tool_ended(127, tool_line("run -n 3 tarn-no-such-program"));
  ck_assert_str_eq(
      o.err, "tarn run: tarn-no-such-program: No such file or directory\n");
}

TEST(what_cannot_be_run_is_126) {
  assert_exits(tool_line("run -n 3 /dev/null"), 126,
               "tarn run: /dev/null: Permission denied\n");
}

TEST(wrong_use) {
  assert_misused("run true", "how many ranks? -n N\n");
  assert_misused("run -n", "option '-n' needs a value");
  assert_misused("run -n 0 true",
                 "--ranks wants a whole number from 1 to 256, not '0'");
  assert_misused("run -n 257 true", "not '257'");
  assert_misused("run -n two true", "not 'two'");
  assert_misused("run -n 2", "which program");
  assert_misused("run -n 2 --", "which program");
  assert_misused(
      "run -n2 --grace -1 true",
      "--grace, unless none, wants a whole number from 0 to 1000000");
  assert_misused("run -n2 --timeout 0 true",
                 "--timeout wants a whole number from 1 to ");
  assert_misused("run -n2 --nothing true", "no option is named '--nothing'");
  assert_misused("run -n2 -x true", "no option is named '-x'");
  assert_misused("run -n2 -o json true", "no option is named '-o'");
}

TEST(help_is_there) {
  tool_output o = tool_done("run --help");
  assert_contains(o.out, "usage: tarn run -n N ");
}
