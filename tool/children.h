// children.h - programs that run as children of the tool, until all have ended.
//
//   children_begin ─► children_start, for each ─► poll(.events) and
//   children_attend, until .left is 0 ─► children_end
//
// In between, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1 and SIGUSR2 do not end
// the tool. Signals that a process sends are passed on to every child. Those of
// the terminal reach the foreground processes by themselves; children that are
// started later get them as well. An ignored signal, such as SIGHUP under
// nohup, stays ignored in the children. One set at a time; no other thread.
#ifndef TARN_TOOL_CHILDREN_H_
#define TARN_TOOL_CHILDREN_H_

#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <sys/types.h>

#include "kit/tool.h"

enum { CHILDREN_PASSED_ON = 6 };

typedef struct child {
  pid_t pid;  // 0: it has ended, and the number is another's
  int pidfd;
  size_t end;  // the how manieth to end, from 1 on
  int status;  // its exit status; 128 + the signal that ended it
  int signal;  // that signal, or 0
} child;

typedef struct child_set {
  child *all;
  size_t count;   // that have been started
  size_t left;    // of these, that have not ended
  int events;     // readable when children_attend has something to do
  int signals;    // that have come
  sigset_t keys;  // of the terminal, pressed while children were started

  // The state in which the tool was started.
  struct sigaction before[CHILDREN_PASSED_ON];
  struct sigaction before_chld;
  sigset_t mask;
} child_set;

// Room for |most| of them. Returns 0, or why not, as in errno.
int children_begin(child_set *c, size_t most);

// Makes a child ready to become its program: sets its environment, say, or
// redirects its output. Runs in the child. False after a message.
typedef bool children_prepare_fn(void *context);

// Sets |name| in the environment, over what it may be there. For preparing.
void children_set(const char *name, const char *value);

// Starts |program|, found as execvp does, with SIGPIPE, SIGXFSZ and the signals
// above as the tool was started with; returns when it runs. 0, or why it does
// not: above 0, what execvp said, as in errno; below, -errno of why there is no
// process; CHILDREN_UNPREPARED: |prepare| has said so.
int children_start(child_set *c, char *const *program,
                   children_prepare_fn *prepare, void *context);
#define CHILDREN_UNPREPARED INT_MIN

// Passes on the signals that have come. Returns how many children have ended.
// Waits for nothing.
size_t children_attend(child_set *c);

void children_send(const child_set *c, int signal);

// Attends until all have ended.
void children_wait(child_set *c);

// Signals are as they were before. What still waits was meant for children,
// and is dropped. None must be left.
void children_end(child_set *c);

// Says that |program| was not started for |error| of children_start. Returns
// the exit status that says the same: 127, 126 or TOOL_NO.
tool_exit children_say_not_run(const tool_verb *verb, const char *program,
                               int error);

#endif  // TARN_TOOL_CHILDREN_H_
