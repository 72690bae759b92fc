#include "support/child.h"

#include <check.h>
#include <signal.h>
#include <sys/wait.h>

void child_begin(unsigned seconds) {
  signal(SIGALRM, SIG_DFL);  // Check's would end the test
  alarm(seconds);
}

void assert_child_ended_well(pid_t child) {
  int status = 0;
  ck_assert_int_gt(child, 0);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_msg(WIFEXITED(status), "the child died of signal %d",
                WTERMSIG(status));
  ck_assert_int_eq(WEXITSTATUS(status), 0);
}

void fork_and_run(void (*in_child)(void)) {
  pid_t child = fork();
  if (child == 0) {
    child_begin(30);
    in_child();
    _exit(0);
  }
  assert_child_ended_well(child);
}
