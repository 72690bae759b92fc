// run_kit.h - what the tests of `tarn run` have in common: a launcher
// that runs beside the test, and what it writes.
#ifndef TARN_TESTS_TOOL_RUN_KIT_H_
#define TARN_TESTS_TOOL_RUN_KIT_H_

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/run.h"
#include "support/tool_assert.h"

// A shell that waits for signals. (It sees them when a sleep is over.)
#define WAIT_HERE "while :; do sleep 0.02; done"

// `tarn run -n N ... sh -c SCRIPT`, and what it says.
#define run_script(script, ...) tool_run("run", __VA_ARGS__, "sh", "-c", script)

// By memchr, since of strstr, memmem and their kin the address sanitizer looks
// at all the rest of |text| each time.
static inline size_t count_of(const char *text, const char *part) {
  const char *at = text, *end = text + strlen(text);
  size_t count = 0, size = strlen(part);
  while ((at = memchr(at, part[0], (size_t)(end - at))) != NULL) {
    count += (size_t)(end - at) >= size && memcmp(at, part, size) == 0;
    at++;
  }
  return count;
}

// A launcher that runs; |out| is the end of its stdout that is read.
typedef struct launcher {
  pid_t pid;
  int out;
} launcher;

// In the child that becomes the launcher; NULL: nothing.
typedef void launcher_fn(void);

static inline launcher launch(launcher_fn *first, const char *const *argv) {
  int ends[2];
  ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
  pid_t pid = fork();
  ck_assert_int_ge(pid, 0);
  if (pid == 0) {
    signal(SIGPIPE, SIG_DFL);
    dup2(ends[1], STDOUT_FILENO);
    if (first != NULL) first();
    execv(TARN_TOOL, (char *const *)argv);
    _exit(99);
  }
  close(ends[1]);
  return (launcher){pid, ends[0]};
}

#define launch_script(first, script, ...)                                     \
  launch(first, (const char *const[]){"tarn", "run", __VA_ARGS__, "sh", "-c", \
                                      script, NULL})

// Reads until |count| lines have come, or the end.
static inline char *read_lines(const launcher *l, size_t count) {
  char *text = NULL, c;
  size_t size = 0;
  FILE *to = open_memstream(&text, &size);
  ck_assert_ptr_nonnull(to);
  ssize_t got = 0;
  while (count > 0 && ((got = read(l->out, &c, 1)) == 1 || errno == EINTR)) {
    if (got != 1) break;
    putc(c, to);
    if (c == '\n') count--;
  }
  fclose(to);
  return text;
}

static inline void await_lines(const launcher *l, size_t count) {
  char *text = read_lines(l, count);
  ck_assert_uint_eq(count_of(text, "\n"), count);
  free(text);
}

// Its exit status; 128 + the signal that ended it. What it still writes is not
// read.
static inline int wait_for(const launcher *l) {
  int status = 0;
  ck_assert_int_eq(waitpid(l->pid, &status, 0), l->pid);
  if (l->out >= 0) close(l->out);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif  // TARN_TESTS_TOOL_RUN_KIT_H_
