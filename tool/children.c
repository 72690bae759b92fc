// Children, and the signals that are meant for them.
//
// While there are children, the signals for them are blocked and read from a
// signalfd. A signal so waits until its child exists, and is never sent to a
// process number that has been reused.
//
// A terminal sends its signals to all processes that exist when a key is
// pressed. The tool passes them on to children that are started later, before
// they run.
//
// epoll reports the ends of children in their order, so the first failure is
// known even if the tool looks late.
#include "children.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// As shells have them.
enum { CANNOT_RUN = 126, NOT_FOUND = 127 };

// What epoll has for the signals in place of a child's index.
#define SIGNALS UINT64_MAX

// --- signals ---------------------------------------------------------------

static const int passed_on[CHILDREN_PASSED_ON] = {SIGHUP,  SIGINT,  SIGQUIT,
                                                  SIGTERM, SIGUSR1, SIGUSR2};

// The tool may have been started with SIGCHLD ignored: children would then have
// no status to wait for.
static void begin_signals(child_set *c, sigset_t *out_all) {
  sigemptyset(out_all);
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

static void give_back_signals(const child_set *c) {
  for (int i = 0; i < CHILDREN_PASSED_ON; i++)
    sigaction(passed_on[i], &c->before[i], NULL);
  sigaction(SIGCHLD, &c->before_chld, NULL);
  sigprocmask(SIG_SETMASK, &c->mask, NULL);
}

// Ignoring a signal drops those that wait.
static void drop_signals(void) {
  for (int i = 0; i < CHILDREN_PASSED_ON; i++)
    signal(passed_on[i], SIG_IGN);
}

// What the kernel sends for a terminal's keys, it sends to all in front of it.
static bool is_key(const struct signalfd_siginfo *info) {
  return info->ssi_code > 0;
}

static bool listen_to(const child_set *c, int fd, size_t index) {
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = index};
  return epoll_ctl(c->events, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void close_end(int fd) {
  if (fd >= 0) close(fd);
}

int children_begin(child_set *c, size_t most) {
  sigset_t all;
  *c = (child_set){.events = -1, .signals = -1};
  sigemptyset(&c->keys);
  begin_signals(c, &all);
  c->all = tool_array(most, sizeof *c->all);
  c->events = epoll_create1(EPOLL_CLOEXEC);
  c->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
  if (c->events >= 0 && c->signals >= 0 && listen_to(c, c->signals, SIGNALS)) {
    return 0;
  }
  int error = errno;
  children_end(c);
  return error;
}

void children_end(child_set *c) {
  close_end(c->signals);
  close_end(c->events);
  free(c->all);
  drop_signals();
  give_back_signals(c);
  *c = (child_set){.events = -1, .signals = -1};
}

// --- beginning -------------------------------------------------------------

void children_set(const char *name, const char *value) {
  if (setenv(name, value, 1) == 0) return;
  tool_say(NULL, "no memory for %s in the environment", name);
  _exit(EXIT_FAILURE);
}

// Reads one byte; false at the end.
static bool hear_word(int from) {
  char word;
  ssize_t size;
  do {
    size = read(from, &word, sizeof word);
  } while (size < 0 && errno == EINTR);
  return size == (ssize_t)sizeof word;
}

// Waits for the message at the second of |ends|. Reports there why it did not
// become the program. Signals that have arrived by then are the child's own.
static _Noreturn void become(const child_set *c, char *const *program,
                             children_prepare_fn *prepare, void *context,
                             const int *ends) {
  int error = CHILDREN_UNPREPARED;
  close(ends[0]);
  if (!hear_word(ends[1])) _exit(EXIT_FAILURE);
  give_back_signals(c);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  if (prepare(context)) {
    execvp(program[0], program);
    error = errno;
  }
  (void)!write(ends[1], &error, sizeof error);
  _exit(EXIT_FAILURE);
}

// The other end closes without a word when the child has become the program.
static int hear_error(int from) {
  int error = 0;
  ssize_t size;
  do {
    size = read(from, &error, sizeof error);
  } while (size < 0 && errno == EINTR);
  return size == (ssize_t)sizeof error ? error : 0;
}

// It is listened to before it is a program, which others could outlive.
static int hear_of(child_set *c, child *made) {
  made->pidfd = (int)syscall(SYS_pidfd_open, made->pid, 0);
  if (made->pidfd >= 0 && listen_to(c, made->pidfd, c->count)) return 0;
  return -errno;
}

// What processes have sent goes on waiting, for all that are to come.
static void note_keys(child_set *c) {
  struct signalfd_siginfo info;
  sigset_t sent;
  sigemptyset(&sent);
  while (read(c->signals, &info, sizeof info) == (ssize_t)sizeof info)
    sigaddset(is_key(&info) ? &c->keys : &sent, (int)info.ssi_signo);
  for (int i = 0; i < CHILDREN_PASSED_ON; i++) {
    if (sigismember(&sent, passed_on[i])) raise(passed_on[i]);
  }
}

// A signal that was sent since the child exists is pending there already, and
// is not delivered twice.
static int let_go(child_set *c, const child *made, int end) {
  note_keys(c);
  for (int i = 0; i < CHILDREN_PASSED_ON; i++) {
    if (sigismember(&c->keys, passed_on[i])) kill(made->pid, passed_on[i]);
  }
  (void)!send(end, "", 1, MSG_NOSIGNAL);
  return hear_error(end);
}

static void forget(const child *made) {
  close_end(made->pidfd);
  kill(made->pid, SIGKILL);
  while (waitpid(made->pid, NULL, 0) < 0 && errno == EINTR) {
  }
}

int children_start(child_set *c, char *const *program,
                   children_prepare_fn *prepare, void *context) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return -errno;
  fflush(NULL);
  child made = {.pid = fork(), .pidfd = -1};
  int error = made.pid < 0 ? -errno : 0;
  if (made.pid == 0) become(c, program, prepare, context, ends);
  close(ends[1]);
  if (error == 0) error = hear_of(c, &made);
  if (error == 0) error = let_go(c, &made, ends[0]);
  close(ends[0]);
  if (error == 0) {
    c->all[c->count++] = made;
    c->left++;
  } else if (made.pid > 0) {
    forget(&made);
  }
  return error;
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

static void pass_on(const child_set *c) {
  struct signalfd_siginfo info;
  while (read(c->signals, &info, sizeof info) == (ssize_t)sizeof info) {
    if (!is_key(&info)) children_send(c, (int)info.ssi_signo);
  }
}

static void note_end(child_set *c, child *ended) {
  int status = 0;
  while (waitpid(ended->pid, &status, 0) < 0 && errno == EINTR) {
  }
  close(ended->pidfd);  // which removes it from the epoll set
  *ended = (child){.pidfd = -1, .end = c->count - --c->left};
  ended->status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) {
    ended->signal = WTERMSIG(status);
    ended->status = 128 + ended->signal;
  }
}

size_t children_attend(child_set *c) {
  struct epoll_event events[16];
  size_t left = c->left;
  int count = epoll_wait(c->events, events, 16, 0);
  for (int i = 0; i < count; i++) {
    if (events[i].data.u64 == SIGNALS) {
      pass_on(c);
    } else {
      note_end(c, &c->all[events[i].data.u64]);
    }
  }
  return left - c->left;
}

void children_wait(child_set *c) {
  struct pollfd events = {.fd = c->events, .events = POLLIN};
  for (; c->left > 0; children_attend(c))
    poll(&events, 1, -1);
}
