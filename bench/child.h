// child.h - runs a piece of work in a process of its own.
//
// What is measured there starts from a fresh heap and no device, and if it
// crashes or is killed, that is a result like any other.
//
//   if (!child_run(measure, &what, &figures, sizeof figures, why)) {
//     ... |why| says what became of it ...
//   }
#ifndef TARN_BENCH_CHILD_H_
#define TARN_BENCH_CHILD_H_

#include <stdbool.h>
#include <stddef.h>

enum { CHILD_TEXT_SIZE = 256 };

// The work: fills the zeroed |out_result|, which travels through a pipe as it
// is and so must hold no pointers.
typedef void child_work(void *context, void *out_result);

// Runs |work| in a child and copies what it has filled. False if there is no
// result: |why|, CHILD_TEXT_SIZE bytes, says how the child ended, and
// |out_result| is zero.
bool child_run(child_work *work, void *context, void *out_result, size_t size,
               char *why);

#endif  // TARN_BENCH_CHILD_H_
