// record_python.h - what the recorder costs a program of Python, beside memray.
//
// The program replaces blocks as record_bench.h has it, by bytearrays, which
// Python fills with zeros, through 4 to 19 functions of Python. It tells itself
// the processor's time of all its threads for each, without its start and end:
// memray takes longer to load than the recorder.
#ifndef TARN_BENCH_RECORD_PYTHON_H_
#define TARN_BENCH_RECORD_PYTHON_H_

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum { RECORD_PYTHON_TEXT = 192 };

typedef enum record_python_way {
  RECORD_PYTHON_NONE,
  RECORD_PYTHON_STACKS,  // the recorder with stacks of the machine alone
  RECORD_PYTHON_FRAMES,  // the recorder as it is
  RECORD_PYTHON_MEMRAY,  // memray, with stacks of the machine too
  RECORD_PYTHON_WAYS,
} record_python_way;

typedef struct record_python {
  char program[PATH_MAX];  // the Python; "": there is none
  char script[PATH_MAX];
  char out[PATH_MAX];  // what a recorder writes
  const char *recorder;
  uint64_t allocations;
  bool has_memray;
} record_python;

// Looks for Python as talk_python.h has it, and for memray; writes the script
// into |folder|. False: |why|, RECORD_PYTHON_TEXT bytes, says why not.
bool record_python_begin(record_python *p, const char *folder, char *why);
void record_python_end(const record_python *p);

// Runs it. False: |why| as above.
bool record_python_run(const record_python *p, record_python_way how,
                       double *out_ns, char *why);

#endif  // TARN_BENCH_RECORD_PYTHON_H_
