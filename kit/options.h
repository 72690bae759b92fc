// options.h - the parts of a command line that several verbs share.
#ifndef TARN_KIT_OPTIONS_H_
#define TARN_KIT_OPTIONS_H_

#include <stddef.h>
#include <stdint.h>

#include "tool.h"

typedef enum options_output {
  OUTPUT_TABLE = 0,
  OUTPUT_JSON,
  OUTPUT_CSV,
  OUTPUT_MARKDOWN,
} options_output;

// A list of texts that grows.
typedef struct options_list {
  char **items;
  size_t count;
} options_list;

// ---------------------------------------------------------------------------
// Command lines
// ---------------------------------------------------------------------------

typedef enum options_kind {
  OPTIONS_FLAG = 0,      // bool
  OPTIONS_TEXT,          // const char *
  OPTIONS_LIST,          // options_list: one more item each time
  OPTIONS_NAMES,         // options_list: "a,b" are two more
  OPTIONS_POOLS,         // options_list, as options_pools_split
  OPTIONS_NUMBER,        // uint64_t
  OPTIONS_BYTES,         // size_t
  OPTIONS_OUTPUT,        // options_output
  OPTIONS_TRACE_DEVICE,  // tarn_trace_options
  OPTIONS_CALL,          // what |call| makes of it
} options_kind;

// A long option, and where in the struct of the command line its value goes.
typedef struct options_entry {
  const char *name;  // without "--"; NULL ends the list
  char letter;       // a short option that says the same; 0: none
  options_kind kind;
  size_t offset;
  uint64_t least, most;  // of a number
  // False after a message on wrong use.
  bool (*call)(void *command, const char *text);
} options_entry;

// |at| is a member of the struct |command|.
#define OPTION_OF(name_, letter_, kind_, at)               \
  {                                                        \
    .name = (name_), .letter = (letter_), .kind = (kind_), \
    .offset = offsetof(command, at)                        \
  }
#define OPTION_FLAG_OR(name, letter, at) \
  OPTION_OF(name, letter, OPTIONS_FLAG, at)
#define OPTION_FLAG(name, at) OPTION_OF(name, 0, OPTIONS_FLAG, at)
#define OPTION_TEXT(name, at) OPTION_OF(name, 0, OPTIONS_TEXT, at)
#define OPTION_LIST(name, at) OPTION_OF(name, 0, OPTIONS_LIST, at)
#define OPTION_NAMES(name, at) OPTION_OF(name, 0, OPTIONS_NAMES, at)
#define OPTION_POOLS(name, at) OPTION_OF(name, 0, OPTIONS_POOLS, at)
#define OPTION_BYTES(name, at) OPTION_OF(name, 0, OPTIONS_BYTES, at)
#define OPTION_OUTPUT(at) OPTION_OF("output", 'o', OPTIONS_OUTPUT, at)
#define OPTION_TRACE_DEVICE(at) \
  OPTION_OF("trace-device", 0, OPTIONS_TRACE_DEVICE, at)
#define OPTION_NUMBER_OR(name_, letter_, at, least_, most_)             \
  {                                                                     \
    .name = (name_), .letter = (letter_), .kind = OPTIONS_NUMBER,       \
    .offset = offsetof(command, at), .least = (least_), .most = (most_) \
  }
#define OPTION_NUMBER(name, at, least, most) \
  OPTION_NUMBER_OR(name, 0, at, least, most)
#define OPTION_CALL_OR(name_, letter_, call_)                   \
  {                                                             \
    .name = (name_), .letter = (letter_), .kind = OPTIONS_CALL, \
    .call = (call_)                                             \
  }
#define OPTION_CALL(name, call) OPTION_CALL_OR(name, 0, call)

// What a verb says of a struct |command| with defaults.
#define OPTIONS_COMMAND(...)                              \
  .size = sizeof(command), .defaults = &(const command) { \
    __VA_ARGS__                                           \
  }

// Reads the command line into a struct of |verb|->size bytes and does the work;
// or writes the verb's help, or says what is wrong. Every command line has
// --help and -h. Frees the words and the lists of the entries.
tool_exit options_run(const tool_verb *verb, int argc, char **argv);

// What |verb| does with its command line.
tool_exit options_verb_run(const tool_verb *verb, int argc, char **argv);

// Each returns false after a message on wrong use.

// "table", "json", "csv" or "md".
bool options_output_parse(const tool_verb *verb, const char *text,
                          options_output *out);

// A whole number from |least| to |most|.
bool options_number_parse(const tool_verb *verb, const char *option,
                          const char *text, uint64_t least, uint64_t most,
                          uint64_t *out);

// A number of bytes from 1 on, with K, M, G or T behind it or without: 4096,
// 64K, 1.5G.
bool options_bytes_parse(const tool_verb *verb, const char *option,
                         const char *text, size_t *out);

// Whether the first |length| bytes of |name| are one of the names.
bool options_is_known(const char *name, size_t length, tool_name_fn *name_of);

// Wrong use: no |what| has that name. Says which there are, and which may have
// been meant. TOOL_MISUSE.
tool_exit options_unknown(const tool_verb *verb, const char *what,
                          const char *name, tool_name_fn *name_of);

// Appends a copy of the first |length| bytes of |text|.
void options_list_add(options_list *list, const char *text, size_t length);
void options_list_free(options_list *list);

// Wrong use if two of |list| are the same |what|: the results of the
// two could not be told apart. TOOL_DONE, or TOOL_MISUSE after a message.
tool_exit options_once(const tool_verb *verb, const char *what,
                       const options_list *list);

// Loads the plug-ins that --plugin names; a path with a '/' is made absolute,
// which is what the library wants. TOOL_DONE, or TOOL_NO after a message.
tool_exit options_plugins_load(const tool_verb *verb,
                               const options_list *paths);

// The same for the strategies that --strategy names.
tool_exit options_strategies_load(const tool_verb *verb,
                                  const options_list *paths);

// Appends "a" and "b" of "a,b"; empty names are left out.
void options_names_split(const char *text, options_list *out);

// Splits "a,b:page=65536,x=y,c" into "a", "b:page=65536,x=y", "c": a comma in
// front of key=value goes on with the options of the pool before it.
void options_pools_split(const char *text, options_list *out_pools);

// Whether a pool of that name and with these options can be had: TARN_OK, or
// TARN_E_INVALID, which is wrong use, or another error.
typedef tarn_status options_try_fn(const void *context, const char *pool);

// Looks |pools| up by their names and tries each once, which checks their
// options. TOOL_DONE, or TOOL_MISUSE or TOOL_NO after a message.
tool_exit options_pools_check(const tool_verb *verb, const options_list *pools,
                              options_try_fn *try_pool, const void *context);

// Makes a pool without memory at |place| and destroys it. |limit|: 0 for none.
tarn_status options_pool_try_dry(tarn_place place, const char *pool,
                                 size_t limit);

#endif  // TARN_KIT_OPTIONS_H_
