// program.h - the program around a net: options, memory, training, report.
#ifndef TARN_EXAMPLES_NETS_PROGRAM_H_
#define TARN_EXAMPLES_NETS_PROGRAM_H_

#include "net.h"
#include "options.h"

typedef struct net_example {
  const char *name;
  net_dataset images;
  void (*describe)(net *n, const net_options *options);
  net_sgd sgd;
  net_options defaults;
} net_example;

// All that main() does; returns what it returns: 0, 1 for a failure, 2 for
// wrong options.
int net_program(const net_example *example, int argc, char **argv);

#endif  // TARN_EXAMPLES_NETS_PROGRAM_H_
