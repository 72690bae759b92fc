// plan_input.h - what there is to plan: a table of buffers, or a trace.
//
//   plan_input input;
//   tool_exit status = plan_input_load(verb, path, &options, &input);
//   ... input.problem ...
//   plan_input_deinit(&input);
//
// Which of the two it is, the content says. Each kind fills in a plan_input and
// the functions that it has for one.
#ifndef TARN_TOOL_PLAN_INPUT_H_
#define TARN_TOOL_PLAN_INPUT_H_

#include "kit/json.h"
#include "kit/options.h"
#include "kit/tool.h"

struct plan_answer;  // plan_report.h

typedef struct plan_input plan_input;

// The functions of a kind of input. All but |id| may be NULL.
typedef struct plan_input_kind {
  // The name of a buffer, as it was in the file; until the next call.
  const char *(*id)(const plan_input *input, size_t index);
  // Writes the table with offsets; NULL: one of ids, lifetimes and sizes is
  // written. A status of the library.
  tarn_status (*write)(const plan_input *input, const uint64_t *offsets,
                       const uint32_t *arenas, const char *path);
  // The number of questions that |ask| answers by plans of its own where there
  // is a capacity.
  int questions;
  // Finds the parts of an answer that only this kind has, before anything is
  // written. False after a message.
  bool (*ask)(const plan_input *input, const struct plan_answer *answer);
  // Names buffers: a table. NULL: ids, sizes and steps are enough.
  void (*list)(const plan_input *input, const size_t *buffers, size_t count,
               FILE *out);
  // Writes them: lines after the table, and keys after the common ones.
  void (*tell)(const plan_input *input, const struct plan_answer *answer,
               FILE *out);
  void (*tell_json)(const plan_input *input, const struct plan_answer *answer,
                    json *out);
  // What the buffers of a picture are told apart by: a colour below
  // PLAN_COLOURS for each, the class of the style sheet's colours, and their
  // names (NULL: it is not used). NULL: their sizes.
  uint8_t (*colour)(const plan_input *input, size_t index);
  char (*colour_class)(const plan_input *input);
  const char *(*colour_name)(const plan_input *input, int colour);
  // The step in which most is needed at once, and what it is then, into |out|.
  // False: unknown. NULL with |colour|.
  bool (*explain)(const plan_input *input, uint64_t *out_step, char *out,
                  size_t size);
  void (*destroy)(void *source);
  bool counts_events;  // step k is the time behind event k - 1
} plan_input_kind;

struct plan_input {
  const tool_verb *verb;
  const char *path;           // as the command line names it; borrowed
  tarn_plan_problem problem;  // without capacities
  // Offsets and arenas in the file, where they are answers; NULL: not all
  // buffers have one.
  const uint64_t *answers;
  const uint32_t *answer_arenas;
  const plan_input_kind *kind;
  void *source;  // what |problem| lies in
};

typedef struct plan_input_options {
  bool offsets_are_answers;  // as of tarn_plan_csv_options
  size_t alignment;          // the least of all buffers; 0: 1
  // Of traces only.
  tarn_trace_options trace;
  options_list pools;  // whose memory to compare with; none: the usual ones
  size_t capacity;     // 0: none was given
} plan_input_options;

// Reads |path|, "-" for the standard input, or "@workload". TOOL_DONE; or,
// after a message and with |*out| zero, TOOL_NO or TOOL_MISUSE.
tool_exit plan_input_load(const tool_verb *verb, const char *path,
                          const plan_input_options *options, plan_input *out);

// A zero-filled input is allowed.
void plan_input_deinit(plan_input *input);

// As of the kind.
const char *plan_input_id(const plan_input *input, size_t index);

// " at event 9,966", " in step 7": |step| as the input counts, into |out|.
char *plan_input_step(const plan_input *input, uint64_t step, char *out,
                      size_t size);

// Writes ids, lifetimes, sizes and offsets, and |arenas| unless it is NULL, as
// tarn_plan_table_read reads them. False after a message.
bool plan_input_write(const plan_input *input, const uint64_t *offsets,
                      const uint32_t *arenas, const char *path);

// The kinds. As plan_input_load; |out| has only |verb| and |path| set.
tool_exit plan_table_load(const plan_input_options *options, plan_input *out);
tool_exit plan_trace_load(const plan_input_options *options, plan_input *out);

#endif  // TARN_TOOL_PLAN_INPUT_H_
