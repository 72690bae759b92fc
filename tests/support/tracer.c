// Steps of a child, by ptrace.
//
// A child that is held at a step cannot run, whatever it is sent, until it is
// let go on: so a stop needs nothing but leaving it there. It is sent SIGSTOP
// all the same, for its other threads.
#include "support/tracer.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/run.h"

enum { AT_CALL = SIGTRAP | 0x80 };

static bool offer(void) {
  return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 && raise(SIGSTOP) == 0;
}

bool tracer_works(void) {
  int end = 0;
  pid_t child = fork();
  if (child == 0) _exit(offer() ? 0 : 1);
  if (child < 0 || waitpid(child, &end, 0) != child) return false;
  if (!WIFSTOPPED(end)) return false;
  kill(child, SIGKILL);
  waitpid(child, &end, 0);
  return true;
}

void tracer_offer(void) {
  if (!offer()) _exit(99);
}

static void wait_for(tracer *made) {
  pid_t got = 0;
  do {
    got = waitpid(made->child, &made->end, 0);
  } while (got < 0 && errno == EINTR);
  require(got == made->child);
  made->ended = !WIFSTOPPED(made->end);
}

tracer tracer_begin(pid_t child) {
  tracer made = {.child = child};
  wait_for(&made);
  if (made.ended) return made;
  ck_assert_int_eq(WSTOPSIG(made.end), SIGSTOP);
  ck_assert_int_eq(ptrace(PTRACE_SETOPTIONS, child, NULL,
                          PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL),
                   0);
  return made;
}

static void show(const tracer *made, tracer_look *look, void *context) {
  struct __ptrace_syscall_info info = {0};
  if (look == NULL) return;
  long size = ptrace(PTRACE_GET_SYSCALL_INFO, made->child, sizeof info, &info);
  if (size <= 0 || info.op != PTRACE_SYSCALL_INFO_ENTRY) return;
  uint64_t arguments[6];
  for (int i = 0; i < 6; i++)
    arguments[i] = info.entry.args[i];
  look(context, info.entry.nr, arguments);
}

// To the next step; signals that come on the way are handed on.
static bool make_step(tracer *made) {
  int signal = 0;
  do {
    if (ptrace(PTRACE_SYSCALL, made->child, NULL, signal) != 0) {
      require(errno == ESRCH);  // it has been killed
    }
    wait_for(made);
    if (made->ended) return false;
    signal = WSTOPSIG(made->end);
  } while (signal != AT_CALL);
  made->steps++;
  return true;
}

bool tracer_run(tracer *made, size_t step, tracer_look *look, void *context) {
  while (!made->ended && made->steps < step) {
    if (make_step(made)) show(made, look, context);
  }
  return !made->ended;
}

void tracer_kill(tracer *made) {
  ck_assert_int_eq(kill(made->child, SIGKILL), 0);
  do {
    wait_for(made);
  } while (!made->ended);
}

void tracer_stop(tracer *made) {
  ck_assert_int_eq(kill(made->child, SIGSTOP), 0);
}

void tracer_continue(tracer *made) {
  ck_assert_int_eq(kill(made->child, SIGCONT), 0);
  ck_assert_int_eq(ptrace(PTRACE_DETACH, made->child, NULL, NULL), 0);
}
