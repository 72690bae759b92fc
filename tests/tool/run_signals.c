// `tarn run`: signals that go on to ranks, and ranks that go with the launcher.
#include <pty.h>
#include <time.h>

#include "run_kit.h"
#include "terminal.h"

enum { RANKS = 3 };

#define READY "echo ready; " WAIT_HERE

static char *read_rest(const launcher *l) {
  return read_lines(l, SIZE_MAX);
}

static void rest(void) {
  nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

// --- passed on -------------------------------------------------------------

static void check_passed_on(int number, const char *name) {
  char script[256];
  snprintf(script, sizeof script, "trap 'echo got; exit 0' %s; " READY, name);
  launcher l = launch_script(NULL, script, "-n", "3");
  await_lines(&l, RANKS);
  ck_assert_int_eq(kill(l.pid, number), 0);
  char *text = read_rest(&l);
  ck_assert_str_eq(text, "got\ngot\ngot\n");
  free(text);
  ck_assert_int_eq(wait_for(&l), 0);
}

TEST(all_get_what_the_launcher_gets) {
  check_passed_on(SIGHUP, "HUP");
  check_passed_on(SIGINT, "INT");
  check_passed_on(SIGQUIT, "QUIT");
  check_passed_on(SIGTERM, "TERM");
  check_passed_on(SIGUSR1, "USR1");
  check_passed_on(SIGUSR2, "USR2");
}

TEST(ranks_may_end_by_it) {
  launcher l = launch_script(NULL, "echo ready; exec sleep 1000", "-n", "3");
  await_lines(&l, RANKS);
  ck_assert_int_eq(kill(l.pid, SIGTERM), 0);
  ck_assert_int_eq(wait_for(&l), 128 + SIGTERM);
}

static void ignore_some(void) {
  signal(SIGHUP, SIG_IGN);
  signal(SIGCHLD, SIG_IGN);
}

// As nohup has it, in the launcher and in its ranks.
TEST(ignored_stays_ignored) {
  const char *script = "kill -HUP $$; trap 'exit 7' USR1; " READY;
  launcher l = launch_script(ignore_some, script, "-n", "3");
  await_lines(&l, RANKS);
  ck_assert_int_eq(kill(l.pid, SIGHUP), 0);
  ck_assert_int_eq(kill(l.pid, SIGUSR1), 0);
  ck_assert_int_eq(wait_for(&l), 7);
}

// The launcher in front of a terminal of its own, whose other end is |out|.
static launcher launch_on_terminal(const char *const *argv) {
  launcher l = {-1, -1};
  l.pid = forkpty(&l.out, NULL, NULL, NULL);
  ck_assert_int_ge(l.pid, 0);
  if (l.pid > 0) return l;
  execv(TARN_TOOL, (char *const *)argv);
  _exit(99);
}

static void press_interrupt(const launcher *l) {
  ck_assert_int_eq(write(l->out, "\3", 1), 1);
}

// The keys of a terminal reach ranks once, and not by way of the launcher too.
TEST(terminal_key_comes_once) {
  if (!has_terminals("a key of a terminal comes once")) return;
  const char *script = "trap 'echo int' INT; trap 'exit 0' USR1; " READY;
  launcher l = launch_on_terminal((const char *const[]){
      "tarn", "run", "-n", "3", "sh", "-c", script, NULL});
  await_lines(&l, RANKS);
  press_interrupt(&l);
  await_lines(&l, RANKS);
  for (int i = 0; i < 20; i++)
    rest();  // in which a second one would be told
  ck_assert_int_eq(kill(l.pid, SIGUSR1), 0);
  char *text = read_rest(&l);
  ck_assert_str_eq(text, "");
  free(text);
  ck_assert_int_eq(wait_for(&l), 0);
}

// They reach ranks that are not there yet: else those would stay.
TEST(terminal_key_while_it_starts) {
  if (!has_terminals("a key of a terminal while ranks start")) return;
  launcher l = launch_on_terminal(
      (const char *const[]){"tarn", "run", "-n", "64", "--grace", "none", "sh",
                            "-c", "echo ready; exec sleep 1000", NULL});
  await_lines(&l, 1);
  press_interrupt(&l);
  ck_assert_int_eq(wait_for(&l), 128 + SIGINT);
}

// --- gone together ---------------------------------------------------------

// The ranks hold the test's pipe: it is at its end when none is left.
static void check_none_left(const char *const *argv) {
  launcher l = launch(NULL, argv);
  await_lines(&l, RANKS);
  ck_assert_int_eq(kill(l.pid, SIGKILL), 0);
  char *text = read_rest(&l);
  ck_assert_str_eq(text, "");
  free(text);
  ck_assert_int_eq(wait_for(&l), 128 + SIGKILL);
}

TEST(killed_launcher_leaves_none) {
  check_none_left((const char *const[]){"tarn", "run", "-n", "3", "sh", "-c",
                                        "echo ready; exec sleep 1000", NULL});
}

// Neither those that would not end for it.
TEST(killed_launcher_leaves_no_stubborn) {
  check_none_left((const char *const[]){
      "tarn", "run", "-n", "3", "sh", "-c",
      "trap '' TERM HUP INT; echo ready; exec sleep 1000", NULL});
}

// Killed at any moment of its start: in the test's way of telling, a rank that
// was left would hold the pipe for ever.
TEST(killed_while_it_starts) {
  for (long wait_us = 0; wait_us < 60000; wait_us += 1500) {
    launcher l = launch_script(NULL, "exec sleep 1000", "-n", "16");
    nanosleep(&(struct timespec){.tv_nsec = wait_us * 1000}, NULL);
    ck_assert_int_eq(kill(l.pid, SIGKILL), 0);
    char *text = read_rest(&l);
    ck_assert_str_eq(text, "");
    free(text);
    ck_assert_int_eq(wait_for(&l), 128 + SIGKILL);
  }
}

// --- which was the first ---------------------------------------------------

static char state_of(pid_t pid) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
  FILE *in = fopen(path, "r");
  ck_assert_ptr_nonnull(in);
  char *line = fgets(text, sizeof text, in);
  fclose(in);
  ck_assert_ptr_nonnull(line);
  return strrchr(text, ')')[2];
}

static void await_state(pid_t pid, char state) {
  while (state_of(pid) != state)
    rest();
}

// What each of two ranks is, by its number.
static void read_pids(const launcher *l, pid_t *out_pids) {
  char *text = read_lines(l, 2);
  for (char *line = text; *line != '\0'; line++) {
    char *end = NULL;
    long rank = strtol(line, &end, 10);
    ck_assert(rank == 0 || rank == 1);
    out_pids[rank] = (pid_t)strtol(end, &line, 10);
    ck_assert_int_gt(out_pids[rank], 1);
  }
  free(text);
}

// The launcher sleeps over the ends of both of its ranks: first that of rank
// |first|, by SIGKILL, then that of the other, which gives up for it.
static void check_first(int first) {
  const char *script = "trap 'exit 1' TERM; echo $TARN_RANK $$; " WAIT_HERE;
  launcher l = launch_script(NULL, script, "-n", "2", "--grace", "none");
  pid_t pids[2] = {0};
  read_pids(&l, pids);
  ck_assert_int_eq(kill(l.pid, SIGSTOP), 0);
  await_state(l.pid, 'T');
  ck_assert_int_eq(kill(pids[first], SIGKILL), 0);
  await_state(pids[first], 'Z');
  ck_assert_int_eq(kill(pids[1 - first], SIGTERM), 0);
  await_state(pids[1 - first], 'Z');
  ck_assert_int_eq(kill(l.pid, SIGCONT), 0);
  ck_assert_int_eq(wait_for(&l), 128 + SIGKILL);
}

TEST(first_is_first_however_late_it_is_seen) {
  check_first(0);
  check_first(1);
}
