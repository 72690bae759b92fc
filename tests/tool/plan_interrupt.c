// How the search of `tarn plan` ends: the line of progress on a terminal,
// Ctrl-C, nodes, or too much to search.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plan_kit.h"
#include "terminal.h"

typedef struct running {
  pid_t child;
  int terminal;  // what it says on stderr
  char text[65536];
  size_t used;
} running;

// The tool with stderr on a terminal of its own, which is not its controlling
// one, and stdout to |out|.
static void start(running *r, const char *out, const char *const *argv) {
  int err = -1;
  *r = (running){.terminal = -1};
  ck_assert_int_eq(openpty(&r->terminal, &err, NULL, NULL, NULL), 0);
  r->child = fork();
  if (r->child == 0) {
    int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(fd, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execv(TARN_TOOL, (char *const *)argv);
    _exit(127);
  }
  close(err);
}

// Reads on until |part| was said.
static void wait_for_text(running *r, const char *part) {
  while (strstr(r->text, part) == NULL) {
    ssize_t got =
        read(r->terminal, r->text + r->used, sizeof r->text - 1 - r->used);
    if (got < 0 && errno == EINTR) continue;
    ck_assert_msg(got > 0, "it ended without '%s': %s", part, r->text);
    r->used += (size_t)got;
  }
}

static int finish(running *r) {
  int status = 0;
  ck_assert_int_eq(waitpid(r->child, &status, 0), r->child);
  close(r->terminal);
  ck_assert_msg(WIFEXITED(status), "signal %d", WTERMSIG(status));
  return WEXITSTATUS(status);
}

FIXTURE(tool_files_begin, tool_files_end);

TEST(interrupted) {
  if (!has_terminals("Ctrl-C ends the search")) return;
  const char *table = plan_random_file("random.csv", 150, 64);
  const char *plan = tool_file("out.csv");
  const char *said = tool_file("said");
  running r;
  start(&r, said,
        (const char *const[]){"tarn", "plan", table, "--time-limit", "none",
                              "--out", plan, NULL});
  wait_for_text(&r, " nodes, ");
  assert_contains(r.text, "\r\033[Kbest ");
  assert_contains(r.text, ", bound ");
  ck_assert_int_eq(kill(r.child, SIGINT), 0);
  ck_assert_int_eq(finish(&r), 0);
  char *text = tool_read_file(said);
  assert_contains(text, "The search was ended by Ctrl-C.");
  ck_assert_uint_gt(assert_plan(plan), 0);
}

// Started to ignore the signal, as a job in the background: it goes on until
// its nodes are used up.
TEST(ignored_stays_ignored) {
  if (!has_terminals("an ignored Ctrl-C stays ignored")) return;
  const char *table = plan_random_file("random.csv", 150, 64);
  const char *said = tool_file("said");
  running r;
  signal(SIGINT, SIG_IGN);
  start(&r, said,
        (const char *const[]){"tarn", "plan", table, "--time-limit", "none",
                              "--nodes", "30000", "-o", "json", NULL});
  wait_for_text(&r, " nodes, ");
  ck_assert_int_eq(kill(r.child, SIGINT), 0);
  ck_assert_int_eq(finish(&r), 0);
  char *text = tool_read_file(said);
  ck_assert(json_is(text, "cancelled", "false"));
  ck_assert_double_ge(json_number(text, "nodes"), 30000);
}

// Without a limit it ends all the same, and says that it was no proof. How far
// it is stands on stderr, where that takes seconds.
TEST(too_large_to_be_searched) {
  const char *path = plan_random_file("random.csv", 4000, 64);
  tool_output o = tool_ends(0, "plan", path, "--time-limit", "none");
  assert_contains(o.out, "It is too large for a proof: a time limit gives");
  o = tool_ends(0, "plan", path, "--time-limit", "none", "--capacity", "1G");
  assert_contains(o.out, "It fits: ");
  ck_assert_ptr_null(strstr(o.out, "too large"));
}

TEST(nodes_that_ended_it) {
  const char *path = plan_random_file("random.csv", 120, 64);
  tool_output o =
      tool_did("plan", path, "--time-limit", "none", "--nodes", "1000");
  assert_contains(o.out, "% above. The search ended after ");
  assert_contains(o.out, " nodes.\n");
}
