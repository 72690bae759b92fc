// A child of fork, a pipe, and what became of the two.
#include "child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "memory.h"

// ---------------------------------------------------------------------------
// In the child
// ---------------------------------------------------------------------------

static bool write_all(int fd, const char *bytes, size_t size) {
  while (size > 0) {
    ssize_t written = write(fd, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    size -= (size_t)written;
  }
  return true;
}

// Leaves without the parent's exit handlers and buffers.
static _Noreturn void work_and_leave(child_work *work, void *context, int fd,
                                     size_t size) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody would read the result
  void *result = calloc(1, size);
  if (result == NULL) _exit(EXIT_FAILURE);
  work(context, result);
  _exit(write_all(fd, result, size) ? EXIT_SUCCESS : EXIT_FAILURE);
}

// ---------------------------------------------------------------------------
// In the parent
// ---------------------------------------------------------------------------

// Up to |size| bytes, or what there is until the other end closes.
static size_t read_all(int fd, char *bytes, size_t size) {
  size_t used = 0;
  while (used < size) {
    ssize_t got = read(fd, bytes + used, size - used);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    used += (size_t)got;
  }
  return used;
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// Whether the child uses more than it may: |why| says what.
static bool is_over(pid_t pid, child_limits limits, double begin, char *why) {
  double mib = (double)limits.bytes / (1 << 20);
  if (limits.bytes > 0 && memory_resident(pid) > limits.bytes) {
    snprintf(why, CHILD_TEXT_SIZE, CHILD_OVER "%.0f MiB of resident memory",
             mib);
    return true;
  }
  if (limits.seconds > 0 && seconds_now() - begin > limits.seconds) {
    snprintf(why, CHILD_TEXT_SIZE, CHILD_OVER "%.0f seconds", limits.seconds);
    return true;
  }
  return false;
}

// Until the child has something to say, or has ended. False: it was ended.
static bool watch(pid_t pid, int fd, child_limits limits, char *why) {
  enum { LOOK_MS = 20 };
  struct pollfd end = {.fd = fd, .events = POLLIN};
  double begin = seconds_now();
  while (poll(&end, 1, LOOK_MS) <= 0) {
    if (!is_over(pid, limits, begin, why)) continue;
    (void)kill(pid, SIGKILL);
    return false;
  }
  return true;
}

static int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return status;
}

static void explain(int status, char *why) {
  if (status != -1 && WIFSIGNALED(status)) {
    snprintf(why, CHILD_TEXT_SIZE, "the process was ended by signal %d (%s)",
             WTERMSIG(status), strsignal(WTERMSIG(status)));
  } else {
    snprintf(why, CHILD_TEXT_SIZE,
             "the process ended with status %d and no result",
             status == -1 ? -1 : WEXITSTATUS(status));
  }
}

static bool collect(pid_t pid, int fd, child_limits limits, void *out_result,
                    size_t size, char *why) {
  bool within = watch(pid, fd, limits, why);
  size_t got = within ? read_all(fd, out_result, size) : 0;
  int status = wait_for(pid);
  if (got == size && status != -1 && WIFEXITED(status)) return true;
  if (within) explain(status, why);
  memset(out_result, 0, size);
  return false;
}

static bool no_child(char *why) {
  snprintf(why, CHILD_TEXT_SIZE, "no process to run it in: %s",
           strerror(errno));
  return false;
}

bool child_run(child_work *work, void *context, child_limits limits,
               void *out_result, size_t size, char *why) {
  int ends[2];
  memset(out_result, 0, size);
  if (pipe(ends) != 0) return no_child(why);
  pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    work_and_leave(work, context, ends[1], size);
  }
  close(ends[1]);
  bool done = pid > 0 ? collect(pid, ends[0], limits, out_result, size, why)
                      : no_child(why);
  close(ends[0]);
  return done;
}
