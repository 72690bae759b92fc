// party.h - processes that meet by a path, each started by itself, and what
// becomes of them.
#ifndef TARN_TESTS_SUPPORT_PARTY_H_
#define TARN_TESTS_SUPPORT_PARTY_H_

#include <sys/types.h>

#include "tarn/comm.h"

enum { PARTY_MOST = 40 };

// What a process was told, and when.
typedef struct party_word {
  volatile tarn_status status;
  char text[512];
  volatile double called;
  volatile double answered;
  volatile int mixed;  // ranks of several parties have met
} party_word;

typedef struct party_guest {
  const char *path;
  size_t rank;
  size_t size;
  const char *job;
  uint64_t timeout_ms;  // 0: 20000
  void (*before)(void *context);
  void *context;
  int64_t party;     // those that meet must have the same
  party_word *word;  // in memory that the parent sees
} party_guest;

// A folder of its own, and a path in it, which are the same until the process
// ends; another test case has others.
const char *party_folder(void);
const char *party_path(void);

// Asserts that nothing is in the folder, and removes it.
void party_see_empty(void);

// Starts a process that does as |guest| says. Where all meet they pass a
// barrier. It must end with 0, or by the signal that the test sends it.
pid_t party_start(const party_guest *guest);

// Waits for the end; asserts that it was a good one.
void party_await(pid_t child);

// Starts |size| of one party, waits for all, and asserts that each was told
// |expected|.
void party_run(const party_guest *all, size_t size, tarn_status expected);

// Words for |PARTY_MOST| processes.
party_word *party_words(void);

// Waits until a socket is at the path, for a second at most.
void party_await_host(void *unused);

#endif  // TARN_TESTS_SUPPORT_PARTY_H_
