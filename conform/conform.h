// conform.h - does a device plug-in keep to the ABI? What the tool asks of it.
//
//   conform_request request = {.type = "cpu"};
//   conform_findings *found = conform_findings_create();
//   conform_run(&request, found);
//   ... found->outcomes[i] is what came of the check conform_name(i) ...
//   conform_findings_destroy(found);
//
// Checks run in a child process: a check that crashes, hangs or exits is a
// failed check and not the end. After each that failed, a new child goes on
// with the next, so that none suffers from the one before. The parent never
// loads the plug-in.
#ifndef TARN_CONFORM_CONFORM_H_
#define TARN_CONFORM_CONFORM_H_

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum {
  CONFORM_DETAIL_SIZE = 384,
  CONFORM_TYPE_SIZE = 64,
  CONFORM_KINDS = 4,  // h2d, d2h, d2d, p2p
  CONFORM_SIZES_MAX = 8,
  CONFORM_TIMEOUT_S = 30,
};

typedef enum conform_result {
  CONFORM_SKIP = 0,  // |detail| says why
  CONFORM_PASS,
  CONFORM_FAIL,  // of faults; of quirks in a strict run
} conform_result;

// How much a finding matters.
typedef enum conform_level {
  CONFORM_NONE = 0,  // nothing was found
  CONFORM_NOTE,      // the ABI allows it; worth knowing
  CONFORM_QUIRK,     // the ABI does not allow it; Tarn copes
  CONFORM_FAULT,     // the ABI does not allow it; programs go wrong
} conform_level;

typedef struct conform_outcome {
  conform_result result;
  conform_level level;
  char detail[CONFORM_DETAIL_SIZE];  // expected and found values
} conform_outcome;

// The checks, in the order in which they run; NULL from |index| on that is
// beyond the last.
const char *conform_name(size_t index);

// A few lines of C that show what a check does, each with its '\n'.
const char *conform_code(size_t index);

size_t conform_count(void);

typedef struct conform_request {
  const char *path;    // a shared object, as tarn_plugin_load wants it; NULL:
  const char *type;    // the plug-in of this type, built in or a module that
                       // tarn_device_open would find
  size_t device;       // which of its devices, in the plug-in's order
  unsigned timeout_s;  // of each check; 0: CONFORM_TIMEOUT_S
  bool in_process;     // no child, no timeout: for debuggers
  bool measures;       // copies and allocations, when the checks are done
  bool strict;         // a quirk is a failure
  const bool *wanted;  // by check; NULL: all

  // Told before each check and figure; may be NULL.
  void (*progress)(void *context, const char *what);
  void *context;
} conform_request;

typedef struct conform_copy {
  char kind[4];  // "h2d", "d2h", "d2d", "p2p"
  size_t bytes;
  double gbs;  // 10^9 bytes per second, the median of several copies
} conform_copy;

typedef struct conform_allocation {
  size_t bytes;
  double allocate_us;  // medians
  double free_us;
} conform_allocation;

typedef enum conform_verdict {
  CONFORM_DONE = 0,
  CONFORM_NO_PLUGIN,  // there is no such plug-in: |why|
  CONFORM_NO_DEVICE,  // it has no such device: |why|
} conform_verdict;

typedef struct conform_findings {
  conform_outcome *outcomes;  // conform_count() of them ...
  bool *ran;                  // ... of those that were wanted, and of those
                              // before that failed and so kept them from it
  char why[CONFORM_DETAIL_SIZE];

  char type[CONFORM_TYPE_SIZE];  // "" if it could not be loaded
  char origin[PATH_MAX];         // path, or "built-in"
  size_t devices;                // how many it has

  conform_copy copies[CONFORM_KINDS * CONFORM_SIZES_MAX];
  size_t copy_count;
  conform_allocation allocations[CONFORM_SIZES_MAX];
  size_t allocation_count;
  char unmeasured[CONFORM_DETAIL_SIZE];  // why figures are missing, or ""
} conform_findings;

// NULL: out of memory.
conform_findings *conform_findings_create(void);
void conform_findings_destroy(conform_findings *findings);

// How many of the outcomes are |result|, and how many are of |level|.
size_t conform_tally(const conform_findings *findings, conform_result result);
size_t conform_tally_level(const conform_findings *findings,
                           conform_level level);

// Fills |found|, which is fresh.
conform_verdict conform_run(const conform_request *request,
                            conform_findings *found);

// The type of the devices of the plug-in at |path|, asked in a child that may
// take |timeout_s|, as above, into |out|, CONFORM_TYPE_SIZE bytes. False:
// |why|, CONFORM_DETAIL_SIZE bytes.
bool conform_type_of(const char *path, unsigned timeout_s, char *out,
                     char *why);

#endif  // TARN_CONFORM_CONFORM_H_
