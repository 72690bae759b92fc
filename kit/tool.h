// tool.h - messages, results, memory and progress of a verb of the tool.
//
// Results go to stdout, everything else to stderr, and the exit status is one
// of three.
#ifndef TARN_KIT_TOOL_H_
#define TARN_KIT_TOOL_H_

#include <stdio.h>
#include <tarn/tarn.h>

typedef enum tool_exit {
  TOOL_DONE = 0,
  TOOL_NO = 1,      // the answer is no, or it could not be done
  TOOL_MISUSE = 2,  // the command line is wrong
} tool_exit;

typedef struct tool_verb {
  const char *name;
  const char *summary;  // its line in `tarn --help`
  const char *help;     // what `tarn VERB --help` prints
  // |argv|[0] is the verb's name. NULL: options_run (options.h) reads the
  // command line by the table below.
  tool_exit (*run)(const struct tool_verb *verb, int argc, char **argv);

  const struct options_entry *entries;
  // The struct that the command line is read into; its first member points to
  // the verb.
  size_t size;
  const void *defaults;  // such a struct; NULL: all zero
  size_t words;          // where in it the list of the words that are no
                         // options is; 0: there must be none
  bool has_program;      // the first word is a program, and all behind it is
                         // the program's
  // Does the work, when the whole command line was accepted.
  tool_exit (*work)(void *command);
  // Frees the rest of |command|, after success and failure; NULL: nothing to
  // do.
  void (*end)(void *command);
} tool_verb;

// "tarn VERB: text" on stderr; |verb| NULL: "tarn: text". The text, parts of
// which may come from a file, is neutralised as in text.h.
void tool_say(const tool_verb *verb, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// The same, returning TOOL_NO.
tool_exit tool_fail(const tool_verb *verb, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// The same, followed by a pointer to the help, returning TOOL_MISUSE.
tool_exit tool_misuse(const tool_verb *verb, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Where results go: the stdout that the tool was started with. Nothing else in
// the tool writes to stdout.
FILE *tool_out(void);

// Whether results may be coloured: tool_out() is a terminal that is not dumb,
// and the environment has no NO_COLOR (https://no-color.org).
bool tool_has_colours(void);

// Redirects stdout, descriptor 1 and stdio alike, to stderr until the process
// ends; tool_out() still writes to the former stdout. To be called before a
// plug-in or a strategy is loaded into this process. Ends the tool if there is
// no descriptor left.
void tool_out_guard(void);

// The path by which results can be written to what |path| names: |path|, unless
// it is stdout by name ("/dev/stdout") and descriptor 1 leads elsewhere by now.
const char *tool_out_path(const char *path);

// Names by index; NULL from |index| on that is beyond the last.
typedef const char *tool_name_fn(size_t index);

// The name that |word| is most likely a slip of; NULL if it is like none.
const char *tool_nearest(const char *word, tool_name_fn *name_of);

// Adds |text| to the text in |out|, after |gap| unless that is empty; cut to
// |out_size| bytes.
void tool_append(char *out, size_t out_size, const char *gap, const char *text);

// "a, b, c" into |out|, cut to |out_size| bytes. Returns |out|.
char *tool_join(tool_name_fn *name_of, char *out, size_t out_size);

// Zeroed memory of the tool itself; free it with free(). Without memory the
// tool ends with a message.
void *tool_array(size_t count, size_t size);
_Noreturn void tool_no_memory(size_t count, size_t size);
char *tool_text(const char *text);

// The same, and written to: nothing of it is touched for the first time while
// something is measured.
void *tool_array_ready(size_t count, size_t size);

// |path| without its folders; within |path|.
const char *tool_base_name(const char *path);

// For qsort and bsearch: the smaller first.
int tool_compare_uint64(const void *a, const void *b);

// How far a long piece of work has come, as a bar on stderr if that is a
// terminal and nothing otherwise.
typedef struct tool_progress {
  size_t total;
  size_t done;
  bool shown;
} tool_progress;

void tool_progress_begin(tool_progress *progress, size_t total);
void tool_progress_step(tool_progress *progress, const char *what);
void tool_progress_end(tool_progress *progress);

#endif  // TARN_KIT_TOOL_H_
