// footprint_bench.h - what a job of several ranks takes of each: messages,
// memory of the library, and memory that ranks of a machine share. Nothing is
// timed.
//
// `tarn bench whole --footprint --help` tells what is measured. The ranks are a
// launcher's, and all of them call the same functions.
#ifndef TARN_BENCH_FOOTPRINT_BENCH_H_
#define TARN_BENCH_FOOTPRINT_BENCH_H_

#include "whole_bench.h"

// One after the other, in a process that has done nothing else.
typedef enum footprint_step {
  FOOTPRINT_COMM = 0,      // to join the others
  FOOTPRINT_TABLE,         // to create a distributed table
  FOOTPRINT_FIRST_GATHER,  // which makes the staging
  FOOTPRINT_GATHER,        // another one of as many rows
  FOOTPRINT_FETCH,         // the first one that is begun and ended
  FOOTPRINT_STEPS
} footprint_step;

const char *footprint_step_name(footprint_step step);  // "communicator"

// At one moment, in this process.
typedef struct footprint_view {
  uint64_t messages;    // sent by MPI_Isend, if they are counted
  size_t host_bytes;    // of the library's own memory
  size_t peak_bytes;    // the most of it since the last look; 0: not watched
  size_t mapped_bytes;  // of the library's files that ranks share
  size_t descriptors;   // open files of the process
} footprint_view;

// Begins to watch the library's memory: to be called before all else. Without
// it peaks are not known.
void footprint_watch(void);

footprint_view footprint_look(void);

// The library that counts messages is preloaded.
bool footprint_counts_messages(void);

// What a step has taken of the rank that it has taken most of. NaN: not known.
typedef struct footprint_figure {
  double messages;       // sent
  double messages_mean;  // by a rank
  double host_bytes;     // that stay
  double peak_bytes;     // at a time, above what there was before
  double shared_bytes;   // a rank's share of what its machine's ranks share
  double mapped_bytes;   // of those, as each rank maps them
  double descriptors;    // files that are open then, MPI's among them
} footprint_figure;

typedef struct footprint_result {
  size_t ranks;
  size_t machines;
  footprint_figure figures[FOOTPRINT_STEPS];
  size_t count;                  // of them
  char failed[WHOLE_TEXT_SIZE];  // why there are no more; "": all are there
} footprint_result;

// Of the ranks of |bench|, with its first size of rows. |joined|: what was seen
// as soon as the communicator was there.
void footprint_bench_run(const whole_bench *bench, footprint_view joined,
                         footprint_result *out);

#endif  // TARN_BENCH_FOOTPRINT_BENCH_H_
