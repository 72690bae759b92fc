// options.h - what the command line says.
#ifndef TARN_EXAMPLES_NETS_OPTIONS_H_
#define TARN_EXAMPLES_NETS_OPTIONS_H_

#include <stdbool.h>
#include <stddef.h>

enum { NET_MOST_HIDDEN = 16 };

typedef struct net_options {
  size_t batch;
  size_t steps;
  size_t hidden[NET_MOST_HIDDEN];  // widths of hidden layers
  size_t hidden_count;             // 0 at first: the net has no choice of them
  const char *device;
  bool infer;
  bool dry_run;
  bool queued;
  bool json;
  const char *svg;   // a file for the picture; NULL: none
  const char *load;  // parameters to start with; NULL: by chance
  const char *save;  // a file for those at the end; NULL: none
  bool help;
} net_options;

// Reads the arguments over what |options| holds, the defaults. False: one is
// wrong, and standard error has been told which.
bool net_options_read(net_options *options, int argc, char **argv);

void net_options_help(const char *name, const net_options *defaults);

#endif  // TARN_EXAMPLES_NETS_OPTIONS_H_
