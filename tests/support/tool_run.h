// tool_run.h - runs the built tool, TARN_TOOL, as a child and keeps what it
// wrote.
//
//   tool_output o = tool_line("replay @bert-layer -o json");
//   ck_assert_int_eq(o.status, 0);
//   ... o.out, o.err ...
//
// Texts and paths that these functions return stay until the process of the
// test ends; none of them has to be freed.
#ifndef TARN_TESTS_SUPPORT_TOOL_RUN_H_
#define TARN_TESTS_SUPPORT_TOOL_RUN_H_

#include <stddef.h>

typedef struct tool_output {
  int status;  // exit status; 128 + the signal that ended it
  char *out;   // all of stdout and stderr
  char *err;
  long peak_kib;  // the most memory that it had resident
} tool_output;

#define tool_run(...) tool_run_to(-1, __VA_ARGS__)

// The same with stdout on |out_fd| (-1: kept; TOOL_CLOSED: closed).
enum { TOOL_CLOSED = -2 };
#define tool_run_to(out_fd, ...) \
  tool_run_list(out_fd, (const char *const[]){"tarn", __VA_ARGS__, NULL})

// The same with the words of |line|, which single blanks separate.
#define tool_line(line) tool_run_line(TARN_TOOL, line)

#define tool_run_list(out_fd, ...) \
  tool_run_program(TARN_TOOL, out_fd, __VA_ARGS__)

// The same of another program.
tool_output tool_run_program(const char *path, int out_fd,
                             const char *const *argv);
tool_output tool_run_line(const char *path, const char *line);
void tool_output_free(tool_output *output);

// Keeps |text|, which is returned, until the process of the test ends.
char *tool_keep(char *text);

// The whole file at |path| as a text, or NULL.
char *tool_read_file(const char *path);

// Writes |text| into the file at |path|, which is returned.
const char *tool_write_file(const char *path, const char *text);

// A path in a folder of this test's own, which tool_files_end removes.
void tool_files_begin(void);
void tool_files_end(void);
const char *tool_file(const char *name);

#endif  // TARN_TESTS_SUPPORT_TOOL_RUN_H_
