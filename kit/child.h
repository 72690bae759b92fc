// child.h - runs a piece of work in a process of its own.
//
// A measurement in a child starts with a fresh heap and no device. A crash is a
// result like any other.
//
//   child_limits limits = {.bytes = 1 << 30};
//   if (!child_run(measure, &what, limits, &figures, sizeof figures, why)) {
//     ... |why| says how the child ended ...
//   }
#ifndef TARN_KIT_CHILD_H_
#define TARN_KIT_CHILD_H_

#include <stdbool.h>
#include <stddef.h>

enum { CHILD_TEXT_SIZE = 256 };

// The work: fills the zeroed |out_result|, which travels through a pipe as it
// is and so must hold no pointers.
typedef void child_work(void *context, void *out_result);

// The limits of a child; 0: no limit. Its resident memory is read from outside
// every few milliseconds: limits of the kernel count mapped or reserved memory,
// which costs nothing.
typedef struct child_limits {
  size_t bytes;
  double seconds;
} child_limits;

// What |why| begins with where a limit has ended the child.
#define CHILD_OVER "over the limit: "

// Runs |work| in a child and copies what it has filled. False if there is no
// result: |why|, CHILD_TEXT_SIZE bytes, says how the child ended, and
// |out_result| is zero.
bool child_run(child_work *work, void *context, child_limits limits,
               void *out_result, size_t size, char *why);

#endif  // TARN_KIT_CHILD_H_
