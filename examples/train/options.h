// options.h - what the command line says.
#ifndef TARN_EXAMPLES_TRAIN_OPTIONS_H_
#define TARN_EXAMPLES_TRAIN_OPTIONS_H_

#include <tarn/tarn.h>

#include "job/arguments.h"

typedef struct options {
  size_t rows;   // of the table
  size_t batch;  // rows of a step, of all ranks together
  size_t width;  // of each hidden layer
  size_t steps;
  uint64_t seed;
  tarn_whole_type type;
  const char *device;
  const char *trace;  // a file for the timeline; NULL: none
  bool prefetch;
  bool json;
  bool help;
  char wrong[ARGUMENTS_WRONG_SIZE];  // what is wrong with them; "": nothing
} options;

// The defaults, and over them the arguments.
options options_read(int argc, char **argv);

void options_help(void);

#endif  // TARN_EXAMPLES_TRAIN_OPTIONS_H_
