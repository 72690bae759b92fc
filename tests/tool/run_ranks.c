// `tarn run`: programs whose ranks are a communicator.
#include "run_kit.h"
#include "tarn/comm.h"

// --- that go well ----------------------------------------------------------

static void check_example(size_t count) {
  char number[32], line[96];
  snprintf(number, sizeof number, "%zu", count);
  tool_output o = tool_did("run", "-n", number, TARN_RANKS);
  size_t sum = (count - 1) * count * (2 * count - 1) / 6;
  for (size_t i = 0; i < count; i++) {
    snprintf(line, sizeof line, "rank %zu of %zu: %zu is the sum", i, count,
             sum);
    ck_assert_uint_eq(count_of(o.out, line), 1);
  }
  ck_assert_uint_eq(count_of(o.out, count > 1 ? "another's\n" : "mine\n"),
                    count);
}

TEST(example_of_any_size) {
  for (size_t count = 1; count <= 7; count++)
    check_example(count);
  check_example(64);
}

// Places pass through what becomes the program in the end.
TEST(shell_in_between) {
  const char *script = "exec " TARN_RANKS;
  tool_output o = tool_as_done(run_script(script, "-n", "3", "-l"));
  assert_contains(o.out, "[2] rank 2 of 3: 5 is the sum of the squares");
}

TEST(run_within_a_rank) {
  tool_output o =
      tool_did("run", "-n", "2", TARN_TOOL, "run", "-n", "3", TARN_RANKS);
  ck_assert_uint_eq(count_of(o.out, " of 3: 5 is the sum"), 6);
}

// --- that lose one ---------------------------------------------------------

// The others find out by themselves, and have no need to be ended.
static void check_found_out(const char *way, int status, const char *says) {
  tool_output o = tool_run("run", "-n", "5", "-l", TARN_VICTIM, "2", way);
  ck_assert_msg(o.status == status, "exit %d: %s", o.status, o.err);
  assert_contains(o.err, says);
  ck_assert_ptr_null(strstr(o.err, "still run"));
  for (int i = 0; i < 5; i++) {
    char mark[16];
    snprintf(mark, sizeof mark, "[%d] ", i);
    ck_assert_uint_eq(count_of(o.err, mark), i != 2);
  }
}

TEST(killed_rank) {
  check_found_out("kill", 128 + SIGKILL,
                  "tarn run: rank 2 was ended by signal 9 (Killed)\n");
}

// The others are told when it has ended, and so end after it.
TEST(killed_rank_whose_files_close_before) {
  check_found_out("close", 128 + SIGKILL,
                  "tarn run: rank 2 was ended by signal 9 (Killed)\n");
}

TEST(rank_that_leaves) {
  check_found_out("exit", 7, "tarn run: rank 2 ended with exit status 7\n");
}

// It has not failed, and others do for want of it.
TEST(rank_that_never_joins) {
  check_found_out("absent", 3, " ended with exit status 3\n");
}

// Others give it up when their time is over; it is ended in the end.
TEST(stopped_rank) {
  tool_output o = tool_ends(3, "run", "-n", "3", "--timeout", "300", "--grace",
                            "1", TARN_VICTIM, "1", "stop");
  assert_contains(o.err, "tarn run: rank 1 still runs: SIGTERM\n");
  assert_contains(o.err, "tarn run: rank 1 still runs: SIGKILL\n");
}
