// process.h - starts a process and waits for it.
//
//   const char *words[] = {"chromium", address, NULL};
//   process_spec spec = {.words = words, .out = ends[1]};
//   pid_t pid = process_start(&spec);        -1: errno says why
//   int status = process_wait(pid, 0, &use);
//
// children.h of the tool is for programs that get the signals of the tool.
#ifndef TARN_KIT_PROCESS_H_
#define TARN_KIT_PROCESS_H_

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { PROCESS_NOWHERE = -1, PROCESS_TEXT_SIZE = 128 };

// A zero-filled one inherits everything and lacks only |words| or |run|.
typedef struct process_spec {
  const char *const *words;   // a program, found on PATH, and its arguments
  int (*run)(void *context);  // or what runs: returns the exit status
  void (*prepare)(void *context);  // runs before |words|; NULL: nothing
  void *context;
  int in, out, err;  // descriptors that become 0, 1 and 2; 0: inherited,
                     // PROCESS_NOWHERE: /dev/null
  int death_signal;  // sent when the parent ends; 0: SIGKILL
  bool own_group;    // leads a process group of its own
} process_spec;

// Starts it. A program that cannot be run exits with status 127. A child that
// runs |run| leaves without the exit handlers and buffers of the parent.
pid_t process_start(const process_spec *spec);

typedef struct process_use {
  double wall;    // seconds since process_wait was called
  double cpu;     // seconds of a processor, of the kernel for it included
  double system;  // of these, the kernel's
  double faults;  // of pages, without a device
  double peak;    // bytes that were resident at most
} process_use;

// Waits until it has ended, and kills it after |seconds|, unless 0. Returns the
// status as of waitpid; -1: it cannot be waited for. |out_use|: NULL: not
// asked.
int process_wait(pid_t pid, double seconds, process_use *out_use);

bool process_did_well(int status);  // exit status 0

// "was ended by signal 9 (Killed)" or "ended with status 1" into |out|, of
// PROCESS_TEXT_SIZE bytes, which it returns.
char *process_explain(int status, char *out);

// Seconds of CLOCK_MONOTONIC.
double process_clock(void);

#endif  // TARN_KIT_PROCESS_H_
