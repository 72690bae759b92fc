// fork, execvp and wait4.
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CANNOT_RUN = 127 };

// ---------------------------------------------------------------------------
// In the child
// ---------------------------------------------------------------------------

static void redirect(int from, int to) {
  if (from == PROCESS_NOWHERE) from = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (from == 0) return;
  if (from < 0 || dup2(from, to) < 0) _exit(CANNOT_RUN);
}

static _Noreturn void become(const process_spec *spec) {
  (void)prctl(PR_SET_PDEATHSIG,
              spec->death_signal ? spec->death_signal : SIGKILL);
  if (spec->own_group) (void)setpgid(0, 0);
  redirect(spec->in, STDIN_FILENO);
  redirect(spec->out, STDOUT_FILENO);
  redirect(spec->err, STDERR_FILENO);
  if (spec->run != NULL) _exit(spec->run(spec->context));
  (void)signal(SIGPIPE, SIG_DFL);
  if (spec->prepare != NULL) spec->prepare(spec->context);
  (void)execvp(spec->words[0], (char *const *)spec->words);
  _exit(CANNOT_RUN);
}

pid_t process_start(const process_spec *spec) {
  pid_t pid = fork();
  if (pid == 0) become(spec);
  return pid;
}

// ---------------------------------------------------------------------------
// In the parent
// ---------------------------------------------------------------------------

double process_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double seconds_of(struct timeval time) {
  return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

int process_wait(pid_t pid, double seconds, process_use *out_use) {
  static const struct timespec pause = {.tv_nsec = 2000000};
  struct rusage used = {0};
  int status = -1;
  double begin = process_clock();
  for (;;) {
    pid_t ended = wait4(pid, &status, seconds > 0 ? WNOHANG : 0, &used);
    if (ended == pid) break;
    if (ended < 0 && errno != EINTR) return -1;
    if (ended < 0) continue;
    if (process_clock() - begin > seconds) (void)kill(pid, SIGKILL);
    (void)nanosleep(&pause, NULL);
  }
  if (out_use != NULL) {
    *out_use = (process_use){
        .wall = process_clock() - begin,
        .cpu = seconds_of(used.ru_utime) + seconds_of(used.ru_stime),
        .system = seconds_of(used.ru_stime),
        .faults = (double)used.ru_minflt,
        .peak = (double)used.ru_maxrss * 1024};
  }
  return status;
}

bool process_did_well(int status) {
  return status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

char *process_explain(int status, char *out) {
  if (status == -1) {
    snprintf(out, PROCESS_TEXT_SIZE, "cannot be waited for");
  } else if (WIFSIGNALED(status)) {
    snprintf(out, PROCESS_TEXT_SIZE, "was ended by signal %d (%s)",
             WTERMSIG(status), strsignal(WTERMSIG(status)));
  } else {
    snprintf(out, PROCESS_TEXT_SIZE, "ended with status %d",
             WEXITSTATUS(status));
  }
  return out;
}
