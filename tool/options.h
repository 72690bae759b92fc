// options.h - the parts of a command line that several verbs share.
#ifndef TARN_TOOL_OPTIONS_H_
#define TARN_TOOL_OPTIONS_H_

#include <getopt.h>
#include <stddef.h>
#include <stdint.h>

#include "tool.h"

typedef enum options_output {
  OUTPUT_TABLE = 0,
  OUTPUT_JSON,
  OUTPUT_CSV,
  OUTPUT_MARKDOWN,
} options_output;

// What getopt_long answers beside a verb's own values.
enum {
  OPTIONS_END = -1,
  OPTIONS_WRONG = '?',  // a message has been written
};

// The next option, as getopt_long finds it; a message where it finds none.
int options_next(const tool_verb *verb, int argc, char **argv,
                 const struct option *known);

// What a command line comes to.
typedef enum options_outcome {
  OUTCOME_RUN,
  OUTCOME_HELP,    // the help is wanted, and nothing else
  OUTCOME_MISUSE,  // a message has been written
} options_outcome;

// Each returns false after a message on wrong use.

// "table", "json", "csv" or "md".
bool options_output_parse(const tool_verb *verb, const char *text,
                          options_output *out);

// A whole number from 1 to |most|.
bool options_count_parse(const tool_verb *verb, const char *option,
                         const char *text, uint64_t most, uint64_t *out);

// Whether the first |length| bytes of |name| are one of the names.
bool options_is_known(const char *name, size_t length, tool_name_fn *name_of);

// Wrong use: no |what| has that name. Says which there are, and which may have
// been meant. TOOL_MISUSE.
tool_exit options_unknown(const tool_verb *verb, const char *what,
                          const char *name, tool_name_fn *name_of);

// A list of texts that grows.
typedef struct options_list {
  char **items;
  size_t count;
} options_list;

// Appends a copy of the first |length| bytes of |text|.
void options_list_add(options_list *list, const char *text, size_t length);
void options_list_free(options_list *list);

// Loads the plug-ins that --plugin names; a path with a '/' is made absolute,
// which is what the library wants. TOOL_DONE, or TOOL_NO after a message.
tool_exit options_plugins_load(const tool_verb *verb,
                               const options_list *paths);

// Splits "a,b:page=65536,x=y,c" into "a", "b:page=65536,x=y", "c": a comma in
// front of key=value goes on with the options of the pool before it.
void options_pools_split(const char *text, options_list *out_pools);

#endif  // TARN_TOOL_OPTIONS_H_
