// arguments.h - a command line, by hand: a name, and for most a value.
#ifndef TARN_EXAMPLES_JOB_ARGUMENTS_H_
#define TARN_EXAMPLES_JOB_ARGUMENTS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ARGUMENTS_WRONG_SIZE = 160 };

typedef enum argument_answer {
  ARGUMENT_READ,
  ARGUMENT_WRONG,
  ARGUMENT_UNKNOWN
} argument_answer;

// What a program takes, into its |options|.
typedef struct arguments {
  bool (*read_switch)(void *options, const char *name);
  argument_answer (*read_value)(void *options, const char *name,
                                const char *value);
} arguments;

// |out_wrong|, of ARGUMENTS_WRONG_SIZE bytes, tells what is wrong with the
// first argument that is; "": nothing.
void arguments_read(const arguments *of, void *options, int argc, char **argv,
                    char *out_wrong);

static inline argument_answer argument_answer_of(bool good) {
  return good ? ARGUMENT_READ : ARGUMENT_WRONG;
}

// Values, with nothing behind them: a number from |least| to |most|, ...
bool argument_number(const char *text, uint64_t least, uint64_t most,
                     uint64_t *out);
bool argument_count(const char *text, size_t least, size_t most, size_t *out);
// ... "json" or "text".
bool argument_output(const char *text, bool *out_json);

#endif  // TARN_EXAMPLES_JOB_ARGUMENTS_H_
