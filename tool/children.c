// Children, and the signals that are meant for them.
//
// All signals that matter are blocked while there are children, and read from
// a descriptor: so a signal waits until there is somebody to send it to, and
// nothing is ever sent to a process number that has become another's.
#include "children.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

// As shells have them.
enum { CANNOT_RUN = 126, NOT_FOUND = 127 };

// --- signals ---------------------------------------------------------------

static const int passed_on[CHILDREN_PASSED_ON] = {SIGHUP,  SIGINT,  SIGQUIT,
                                                  SIGTERM, SIGUSR1, SIGUSR2};

// Whoever starts the tool may have it ignore the end of children, which would
// take their statuses away.
static void begin_signals(child_set *c, sigset_t *out_all) {
  sigemptyset(out_all);
  sigaddset(out_all, SIGCHLD);
  for (int i = 0; i < CHILDREN_PASSED_ON; i++) {
    sigaction(passed_on[i], NULL, &c->before[i]);
    if (c->before[i].sa_handler == SIG_IGN) continue;
    sigaddset(out_all, passed_on[i]);
  }
  sigprocmask(SIG_BLOCK, out_all, &c->mask);
  const struct sigaction usual = {.sa_handler = SIG_DFL,
                                  .sa_flags = SA_NOCLDSTOP};
  sigaction(SIGCHLD, &usual, &c->before_chld);
}

// Ignoring a signal drops those that wait.
static void restore(int number, const struct sigaction *before) {
  signal(number, SIG_IGN);
  sigaction(number, before, NULL);
}

static void end_signals(const child_set *c) {
  for (int i = 0; i < CHILDREN_PASSED_ON; i++)
    restore(passed_on[i], &c->before[i]);
  restore(SIGCHLD, &c->before_chld);
  sigprocmask(SIG_SETMASK, &c->mask, NULL);
}

int children_begin(child_set *c, size_t most) {
  sigset_t all;
  *c = (child_set){0};
  begin_signals(c, &all);
  c->events = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
  if (c->events < 0) {
    int error = errno;
    end_signals(c);
    return error;
  }
  c->all = tool_array(most, sizeof *c->all);
  return 0;
}

void children_end(child_set *c) {
  close(c->events);
  free(c->all);
  end_signals(c);
  *c = (child_set){.events = -1};
}

// --- beginning -------------------------------------------------------------

void children_set(const char *name, const char *value) {
  if (setenv(name, value, 1) == 0) return;
  tool_say(NULL, "no memory for %s in the environment", name);
  _exit(EXIT_FAILURE);
}

// Says on |out| why it did not become the program.
static _Noreturn void become(const child_set *c, char *const *program,
                             children_prepare_fn *prepare, void *context,
                             int out) {
  int error = CHILDREN_UNPREPARED;
  end_signals(c);
  signal(SIGPIPE, SIG_DFL);
  if (prepare(context)) {
    execvp(program[0], program);
    error = errno;
  }
  (void)!write(out, &error, sizeof error);
  _exit(EXIT_FAILURE);
}

// The pipe closes without a word when the child has become the program.
static int hear_error(const int *pipe_ends) {
  int error = 0;
  ssize_t size;
  close(pipe_ends[1]);
  do {
    size = read(pipe_ends[0], &error, sizeof error);
  } while (size < 0 && errno == EINTR);
  close(pipe_ends[0]);
  return size == (ssize_t)sizeof error ? error : 0;
}

static void forget(pid_t pid) {
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
  }
}

int children_start(child_set *c, char *const *program,
                   children_prepare_fn *prepare, void *context) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -errno;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) become(c, program, prepare, context, ends[1]);
  int fork_error = errno;
  int error = hear_error(ends);
  if (pid < 0) return -fork_error;
  if (error != 0) {
    forget(pid);
    return error;
  }
  c->all[c->count++] = (child){.pid = pid};
  c->left++;
  return 0;
}

tool_exit children_say_not_run(const tool_verb *verb, const char *program,
                               int error) {
  if (error == CHILDREN_UNPREPARED) return TOOL_NO;
  if (error < 0) {
    return tool_fail(verb, "no process for %s: %s", program, strerror(-error));
  }
  tool_say(verb, "%s: %s", program, strerror(error));
  return (tool_exit)(error == ENOENT ? NOT_FOUND : CANNOT_RUN);
}

// --- while they run --------------------------------------------------------

void children_send(const child_set *c, int signal) {
  for (size_t i = 0; i < c->count; i++) {
    if (c->all[i].pid != 0) kill(c->all[i].pid, signal);
  }
}

// What the kernel sends for a terminal's keys, it sends to all in front of it.
// Returns whether a child may have ended.
static bool pass_on(const child_set *c) {
  struct signalfd_siginfo info;
  bool any = false;
  while (read(c->events, &info, sizeof info) == (ssize_t)sizeof info) {
    if (info.ssi_signo == SIGCHLD) {
      any = true;
    } else if (info.ssi_code <= 0) {
      children_send(c, (int)info.ssi_signo);
    }
  }
  return any;
}

static bool has_ended(child *c) {
  int status = 0;
  if (c->pid == 0 || waitpid(c->pid, &status, WNOHANG) <= 0) return false;
  c->pid = 0;
  c->status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) {
    c->signal = WTERMSIG(status);
    c->status = 128 + c->signal;
  }
  return true;
}

size_t children_attend(child_set *c) {
  size_t ended = 0;
  if (!pass_on(c)) return 0;
  for (size_t i = 0; i < c->count; i++) {
    if (has_ended(&c->all[i])) ended++;
  }
  c->left -= ended;
  return ended;
}

void children_wait(child_set *c) {
  struct pollfd events = {.fd = c->events, .events = POLLIN};
  for (; c->left > 0; children_attend(c))
    poll(&events, 1, -1);
}
