// Inputs: told apart by their first bytes, and the code that all kinds share.
#include "plan_input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "kit/format.h"
#include "load.h"
#include "outfile.h"

enum { LOOK_SIZE = 4096 };  // how much of a file is looked at

// ---------------------------------------------------------------------------
// Which kind?
// ---------------------------------------------------------------------------

static bool is_column(const char *text, size_t length) {
  static const char *const columns[] = {"id",    "buffer", "buffer_id",
                                        "lower", "upper",  "begin",
                                        "start", "end",    "size"};
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
    if (strlen(columns[i]) == length &&
        strncasecmp(columns[i], text, length) == 0) {
      return true;
    }
  }
  return false;
}

// RMM's logs are CSV too.
static bool looks_like_rmm(const char *text) {
  return strncmp(text, "Thread,", 7) == 0;
}

// Whether a column of a table of buffers stands in |line|.
static bool has_column(const char *line) {
  for (const char *at = line;; at++) {
    at += strspn(at, " \t");
    size_t length = strcspn(at, ",\r\n");
    size_t used = length;
    while (used > 0 && (at[used - 1] == ' ' || at[used - 1] == '\t'))
      used--;
    if (is_column(at, used)) return true;
    at += length;
    if (*at != ',') return false;
  }
}

static bool is_named_csv(const char *path) {
  size_t length = strlen(path);
  return length >= 4 && strcmp(path + length - 4, ".csv") == 0;
}

// An input that cannot be read is taken for a table: its reader says why. Only
// files are looked at: opening a pipe waits for its writer.
static FILE *open_file(const char *path) {
  struct stat file;
  bool is_file = stat(path, &file) == 0 && S_ISREG(file.st_mode);
  return is_file ? fopen(path, "rb") : NULL;
}

static bool is_table(const char *path) {
  char text[LOOK_SIZE + 1] = {0};
  if (strcmp(path, "-") == 0) return true;
  if (load_is_workload(path)) return false;
  FILE *in = open_file(path);
  if (in == NULL) return true;
  size_t size = fread(text, 1, LOOK_SIZE, in);
  (void)fclose(in);
  text[size] = '\0';
  const char *line = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;
  line += strspn(line, " \t\r\n");
  return !looks_like_rmm(line) && (has_column(line) || is_named_csv(path));
}

tool_exit plan_input_load(const tool_verb *verb, const char *path,
                          const plan_input_options *options, plan_input *out) {
  *out = (plan_input){.verb = verb, .path = path};
  tool_exit status = is_table(path) ? plan_table_load(options, out)
                                    : plan_trace_load(options, out);
  if (status != TOOL_DONE) plan_input_deinit(out);
  return status;
}

void plan_input_deinit(plan_input *input) {
  if (input->kind != NULL && input->kind->destroy != NULL) {
    input->kind->destroy(input->source);
  }
  *input = (plan_input){0};
}

const char *plan_input_id(const plan_input *input, size_t index) {
  return input->kind->id(input, index);
}

char *plan_input_step(const plan_input *input, uint64_t step, char *out,
                      size_t size) {
  char number[FORMAT_SIZE];
  if (!input->kind->counts_events) {
    snprintf(out, size, " in step %s", format_count(number, step));
  } else if (step == 0) {
    snprintf(out, size, " before the first event");
  } else {
    snprintf(out, size, " at event %s", format_count(number, step - 1));
  }
  return out;
}

// ---------------------------------------------------------------------------
// Tables
// ---------------------------------------------------------------------------

static const char *table_id(const plan_input *input, size_t index) {
  return tarn_plan_table_id(input->source, index);
}

static tarn_status write_table(const plan_input *input, const uint64_t *offsets,
                               const uint32_t *arenas, const char *path) {
  return tarn_plan_table_write(input->source, offsets, arenas, path);
}

static void destroy_table(void *source) {
  tarn_plan_table_destroy(source);
}

static const plan_input_kind table_kind = {
    .id = table_id, .write = write_table, .destroy = destroy_table};

tool_exit plan_table_load(const plan_input_options *options, plan_input *out) {
  tarn_plan_csv_options wanted = {
      .struct_size = sizeof wanted,
      .offsets_are_answers = options->offsets_are_answers,
      .alignment = options->alignment};
  tarn_plan_table *table = NULL;
  if (options->trace.choose_device || options->pools.count > 0) {
    return tool_misuse(
        out->verb, "%s is no trace: no --trace-device, no --pool", out->path);
  }
  if (tarn_plan_table_read(out->path, &wanted, &table) != TARN_OK) {
    return tool_fail(out->verb, "%s", tarn_last_error());
  }
  out->kind = &table_kind;
  out->source = table;
  out->problem = *tarn_plan_table_problem(table);
  out->answers = tarn_plan_table_offsets(table);
  out->answer_arenas = tarn_plan_table_arenas(table);
  return TOOL_DONE;
}

// ---------------------------------------------------------------------------
// Writing
// ---------------------------------------------------------------------------

typedef struct writing {
  const plan_input *input;
  const uint64_t *offsets;
  const uint32_t *arenas;
} writing;

static void write_line(const writing *w, size_t index, FILE *out) {
  const tarn_plan_buffer *b = &w->input->problem.buffers[index];
  fprintf(out, "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
          plan_input_id(w->input, index), b->first, b->last, b->size,
          w->offsets[index]);
  if (w->arenas != NULL) fprintf(out, ",%" PRIu32, w->arenas[index]);
  fputc('\n', out);
}

static void write_lines(const void *context, FILE *out) {
  const writing *w = context;
  fprintf(out, "id,lower,upper,size,offset%s\n",
          w->arenas != NULL ? ",arena" : "");
  for (size_t i = 0; i < w->input->problem.count; i++)
    write_line(w, i, out);
}

static bool write_plain(const writing *w, const char *path) {
  if (strcmp(path, "-") != 0) {
    return outfile_write(w->input->verb, path, write_lines, w);
  }
  write_lines(w, tool_out());
  return true;
}

bool plan_input_write(const plan_input *input, const uint64_t *offsets,
                      const uint32_t *arenas, const char *path) {
  writing w = {input, offsets, arenas};
  if (outfile_is_stdout(path)) path = "-";  // which is not replaced
  if (input->kind->write == NULL) return write_plain(&w, path);
  if (input->kind->write(input, offsets, arenas, path) == TARN_OK) return true;
  tool_say(input->verb, "%s", tarn_last_error());
  return false;
}
