// group.h - processes that meet by a path, each started by itself, and what
// becomes of them.
#ifndef TARN_TESTS_SUPPORT_GROUP_H_
#define TARN_TESTS_SUPPORT_GROUP_H_

#include <sys/types.h>

#include "tarn/comm.h"

enum { GROUP_MOST = 40 };

// What a process was told, and when.
typedef struct group_word {
  volatile tarn_status status;
  char text[512];
  volatile double called;
  volatile double answered;
  volatile int mixed;  // ranks of several parties have met
} group_word;

typedef struct group_joiner {
  const char *path;
  size_t rank;
  size_t size;
  const char *job;
  uint64_t timeout_ms;  // 0: 20000
  void (*before)(void *context);
  void *context;
  int64_t group;     // those that meet must have the same
  group_word *word;  // in memory that the parent sees
} group_joiner;

// A folder of its own, and a path in it, which are the same until the process
// ends; another test case has others.
const char *group_folder(void);
const char *group_path(void);

// Asserts that nothing is in the folder, and removes it.
void group_see_empty(void);

// Starts a process that does as |joiner| says. Where all meet they pass a
// barrier. It must end with 0, or by the signal that the test sends it.
pid_t group_start(const group_joiner *joiner);

// Waits for the end; asserts that it was a good one.
void group_await(pid_t child);

// Starts |size| of one group, waits for all, and asserts that each was told
// |expected|.
void group_run(const group_joiner *all, size_t size, tarn_status expected);

// Words for |GROUP_MOST| processes.
group_word *group_words(void);

// Waits until a socket is at the path, for a second at most.
void group_await_host(void *unused);

#endif  // TARN_TESTS_SUPPORT_GROUP_H_
