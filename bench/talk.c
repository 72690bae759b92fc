// A child with two pipes. Its messages are kept in memory for a failure.
#include "talk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kit/process.h"
#include "kit/tool.h"

enum { END_MS = 10000 };

struct talk {
  talk_spec spec;
  pid_t pid;
  int in;      // its input
  int out;     // its output
  int errors;  // a file in memory
};

// ---------------------------------------------------------------------------
// Lines
// ---------------------------------------------------------------------------

static int milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int)(now.tv_sec % 1000000 * 1000 + now.tv_nsec / 1000000);
}

// A line without its end; false if there is none in time.
static bool read_line(talk *t, char *line) {
  struct pollfd there = {.fd = t->out, .events = POLLIN};
  int begin = milliseconds();
  for (size_t used = 0; used + 1 < TALK_LINE_SIZE;) {
    int left = TALK_WAIT_MS - (milliseconds() - begin);
    if (left <= 0 || poll(&there, 1, left) <= 0) return false;
    if (read(t->out, line + used, 1) != 1) return false;
    if (line[used] == '\n') {
      line[used] = '\0';
      return true;
    }
    used++;
  }
  return false;
}

// The first line of what it complained about that says something.
static bool find_complaint(const talk *t, char *out) {
  char text[4096];
  ssize_t size = pread(t->errors, text, sizeof text - 1, 0);
  text[size > 0 ? size : 0] = '\0';
  char *rest = NULL;
  for (char *line = strtok_r(text, "\n", &rest); line != NULL;
       line = strtok_r(NULL, "\n", &rest)) {
    if (strspn(line, " -*=") == strlen(line)) continue;
    snprintf(out, TALK_TEXT_SIZE, "%s", line);
    return true;
  }
  return false;
}

static bool fail(const talk *t, const char *what, char *why) {
  if (!find_complaint(t, why))
    snprintf(why, TALK_TEXT_SIZE, "%s %s", t->spec.name, what);
  return false;
}

bool talk_ask(talk *t, const char *question, char *answer, char *why) {
  size_t size = strlen(question);
  if (write(t->in, question, size) == (ssize_t)size && read_line(t, answer))
    return true;
  return fail(t, "has ended, or hangs", why);
}

// ---------------------------------------------------------------------------
// Beginning and end
// ---------------------------------------------------------------------------

// In a process group of its own it does not get a second signal from a key of
// the terminal.
static pid_t run(const talk *t, int in, int out) {
  process_spec spec = {.words = t->spec.words,
                       .prepare = t->spec.prepare,
                       .in = in,
                       .out = out,
                       .err = t->errors,
                       .death_signal = t->spec.end_signal,
                       .own_group = true};
  return process_start(&spec);
}

static bool start(talk *t, char *why) {
  int in[2] = {-1, -1};
  int out[2] = {-1, -1};
  t->errors = memfd_create("talk", MFD_CLOEXEC);
  bool piped =
      t->errors >= 0 && pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0;
  t->pid = piped ? run(t, in[0], out[1]) : -1;
  if (t->pid < 0)
    snprintf(why, TALK_TEXT_SIZE, "no process for it: %s", strerror(errno));
  if (in[0] >= 0) (void)close(in[0]);
  if (out[1] >= 0) (void)close(out[1]);
  t->in = in[1];
  t->out = out[0];
  return t->pid > 0;
}

talk *talk_start(const talk_spec *spec, char *why) {
  char line[TALK_LINE_SIZE];
  (void)signal(SIGPIPE, SIG_IGN);
  talk *t = tool_array(1, sizeof *t);
  t->spec = *spec;
  bool started = start(t, why);
  if (started && read_line(t, line) && strcmp(line, spec->ready) == 0) return t;
  if (started) (void)fail(t, "does not say that it is ready", why);
  talk_stop(t, false);
  return NULL;
}

void talk_leave(talk *t) {
  if (t == NULL) return;
  if (t->in >= 0) (void)close(t->in);
  if (t->out >= 0) (void)close(t->out);
  if (t->errors >= 0) (void)close(t->errors);
}

// It ends by itself when there is nothing more to read. It is asked once only:
// mpirun, asked twice, leaves its ranks and their files behind.
static void wait_for_end(const talk *t, int patience_ms) {
  static const struct timespec pause = {.tv_nsec = 5000000};
  int begin = milliseconds();
  bool asked = false;
  while (waitpid(t->pid, NULL, WNOHANG) == 0) {
    int passed = milliseconds() - begin;
    if (passed >= patience_ms && !asked) (void)kill(t->pid, t->spec.end_signal);
    if (passed >= patience_ms + END_MS) (void)kill(t->pid, SIGKILL);
    asked = passed >= patience_ms;
    (void)nanosleep(&pause, NULL);
  }
}

void talk_stop(talk *t, bool at_once) {
  if (t == NULL) return;
  talk_leave(t);
  if (t->pid > 0) wait_for_end(t, at_once ? 0 : END_MS);
  free(t);
}
