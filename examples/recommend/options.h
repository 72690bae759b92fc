// options.h - what the command line says.
#ifndef TARN_EXAMPLES_RECOMMEND_OPTIONS_H_
#define TARN_EXAMPLES_RECOMMEND_OPTIONS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/arguments.h"

enum { OPTIONS_PATH_SIZE = 1024, OPTIONS_MOST_RANKS = 64 };

typedef struct options {
  size_t users;
  size_t items;
  size_t batch;  // pairs of a step, of all ranks together
  size_t steps;
  size_t flush;  // steps between two flushes
  uint64_t seed;
  const char *path;  // what the names of the table's files begin with
  bool anew;         // a table that is there is replaced
  bool json;
  bool help;
  char wrong[ARGUMENTS_WRONG_SIZE];  // what is wrong with them; "": nothing
} options;

// The defaults, and over them the arguments.
options options_read(int argc, char **argv);

void options_help(void);

#endif  // TARN_EXAMPLES_RECOMMEND_OPTIONS_H_
