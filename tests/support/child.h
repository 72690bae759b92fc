// child.h - what a test does in a child of its own, which has no part in Check.
#ifndef TARN_TESTS_SUPPORT_CHILD_H_
#define TARN_TESTS_SUPPORT_CHILD_H_

#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#include "tarn/base.h"

// In a child: the first thing that does not hold ends it.
#define MUST(condition)                                         \
  do {                                                          \
    if (!(condition)) {                                         \
      fprintf(stderr, "in the child: not %s: %s\n", #condition, \
              tarn_last_error());                               \
      _exit(1);                                                 \
    }                                                           \
  } while (0)

// Returns when all other threads of this process sleep. A thread that is just
// starting, or taking memory, may hold a lock of the address sanitizer's, which
// forks do not look after: in a child it would stay locked for ever.
void await_sleeping_threads(void);

// Ends this child if it is still there after so many seconds.
void child_begin(unsigned seconds);

// Waits for |child|, the answer of fork, and asserts that it ended with 0.
void assert_child_ended_well(pid_t child);

// Runs |in_child| in a child that may take half a minute, and waits for it.
void fork_and_run(void (*in_child)(void));

#endif  // TARN_TESTS_SUPPORT_CHILD_H_
