// A forked process that sends its result through a pipe.
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"
#include "process.h"

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

typedef struct job {
  child_work *work;
  void *context;
  int fd;
  size_t size;
} job;

static int run_job(void *context) {
  job *j = context;
  void *result = calloc(1, j->size);
  if (result == NULL) return EXIT_FAILURE;
  j->work(j->context, result);
  return write_all(j->fd, result, j->size) ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---------------------------------------------------------------------------
// In the parent
// ---------------------------------------------------------------------------

// Reads up to |size| bytes, or fewer if the other end closes before.
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

// Whether the child uses more than it may: |why| says what.
static bool is_over(pid_t pid, child_limits limits, double begin, char *why) {
  double mib = (double)limits.bytes / (1 << 20);
  if (limits.bytes > 0 && memory_resident(pid) > limits.bytes) {
    snprintf(why, CHILD_TEXT_SIZE, CHILD_OVER "%.0f MiB of resident memory",
             mib);
    return true;
  }
  if (limits.seconds > 0 && process_clock() - begin > limits.seconds) {
    snprintf(why, CHILD_TEXT_SIZE, CHILD_OVER "%.0f seconds", limits.seconds);
    return true;
  }
  return false;
}

// Until the child has something to say, or has ended. False: it was ended.
static bool watch(pid_t pid, int fd, child_limits limits, char *why) {
  enum { LOOK_MS = 20 };
  struct pollfd end = {.fd = fd, .events = POLLIN};
  double begin = process_clock();
  while (poll(&end, 1, LOOK_MS) <= 0) {
    if (!is_over(pid, limits, begin, why)) continue;
    (void)kill(pid, SIGKILL);
    return false;
  }
  return true;
}

static bool collect(pid_t pid, int fd, child_limits limits, void *out_result,
                    size_t size, char *why) {
  bool within = watch(pid, fd, limits, why);
  size_t got = within ? read_all(fd, out_result, size) : 0;
  int status = process_wait(pid, 0, NULL);
  char end[PROCESS_TEXT_SIZE];
  if (got == size && status != -1 && WIFEXITED(status)) return true;
  if (within)
    snprintf(why, CHILD_TEXT_SIZE, "no result: the process %s",
             process_explain(status, end));
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
  if (pipe2(ends, O_CLOEXEC) != 0) return no_child(why);
  job j = {work, context, ends[1], size};
  process_spec spec = {.run = run_job, .context = &j};
  pid_t pid = process_start(&spec);
  close(ends[1]);
  bool done = pid > 0 ? collect(pid, ends[0], limits, out_result, size, why)
                      : no_child(why);
  close(ends[0]);
  return done;
}
