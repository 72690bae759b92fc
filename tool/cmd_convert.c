// tarn convert: a trace into a file of another format.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "kit/options.h"
#include "load.h"
#include "outfile.h"
#include "verbs.h"

static const char help[] =
    "usage: tarn convert TRACE|@WORKLOAD FILE [OPTION]...\n"
    "\n"
    "Reads a trace of any format that is known, or makes that of a workload,\n"
    "and writes it to FILE.\n"
    "\n"
    "  --to FORMAT       tarn      Tarn's own, compact; all of a trace\n"
    "                    pytorch   a memory snapshot for PyTorch's viewers\n"
    "                    perfetto  JSON for https://ui.perfetto.dev\n"
    "                    (default: by FILE's ending: .tarn, .pickle or .pkl,\n"
    "                    .json)\n"
    "  --force           overwrite FILE if it exists\n"
    "  --trace-device N  of a recorded trace of several devices: which one\n"
    "                    (default: the one with most events)\n"
    "  -h, --help        this text\n"
    "\n"
    "Exit status: 1 if the trace cannot be read or the file not be written.\n";

typedef struct command {
  const tool_verb *verb;
  options_list words;  // the trace, and the file
  const char *to;
  bool force;
  tarn_trace_options trace_options;
} command;

static const struct ending {
  const char *text;
  tarn_trace_format format;
} endings[] = {
    {".tarn", TARN_TRACE_FORMAT_TARN},
    {".pickle", TARN_TRACE_FORMAT_PYTORCH},
    {".pkl", TARN_TRACE_FORMAT_PYTORCH},
    {".json", TARN_TRACE_FORMAT_PERFETTO},
};

static const char *format_name(size_t index) {
  return tarn_trace_format_name((tarn_trace_format)(index + 1));
}

static bool has_ending(const char *path, const char *ending) {
  size_t path_length = strlen(path);
  size_t length = strlen(ending);
  return path_length > length &&
         strcmp(path + path_length - length, ending) == 0;
}

static tool_exit find_by_ending(const command *c, const char *path,
                                tarn_trace_format *out_format) {
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    if (!has_ending(path, endings[i].text)) continue;
    *out_format = endings[i].format;
    return TOOL_DONE;
  }
  return tool_misuse(c->verb,
                     "'%s' has no ending that tells a format (.tarn, .pickle, "
                     ".pkl, .json); say --to FORMAT",
                     path);
}

static tool_exit find_format(const command *c, const char *path,
                             tarn_trace_format *out_format) {
  if (c->to == NULL) return find_by_ending(c, path, out_format);
  for (size_t i = 0; format_name(i) != NULL; i++) {
    if (strcmp(format_name(i), c->to) != 0) continue;
    *out_format = (tarn_trace_format)(i + 1);
    return TOOL_DONE;
  }
  return options_unknown(c->verb, "format", c->to, format_name);
}

static tool_exit check_words(const command *c) {
  if (c->words.count == 0) {
    return tool_misuse(c->verb, "which trace? A file, or a workload as '%s'",
                       tarn_trace_workload(0));
  }
  if (c->words.count == 1) return tool_misuse(c->verb, "into which file?");
  if (c->words.count == 2) return TOOL_DONE;
  return tool_misuse(c->verb, "'%s' is unexpected", c->words.items[2]);
}

enum { LARGE = 100 };  // times the trace

// No more is counted than has to be known.
static tarn_status count_piece(void *context, const void *bytes, size_t size) {
  size_t *left = context;
  (void)bytes;
  if (size > *left) return TARN_FULL;
  *left -= size;
  return TARN_OK;
}

// JSON repeats what a trace says in a byte or two. The user is warned of a file
// that is far larger than the trace before it fills the disk.
static void say_if_large(const command *c, const tarn_trace *trace) {
  struct stat file;
  size_t left = 0;
  if (c->words.items[0][0] == '@' || stat(c->words.items[0], &file) != 0 ||
      !tarn_size_mul((size_t)file.st_size, LARGE, &left)) {
    return;
  }
  if (tarn_trace_write_to(trace, TARN_TRACE_FORMAT_PERFETTO, count_piece,
                          &left) != TARN_FULL) {
    return;
  }
  tool_say(c->verb, "%s will have more than %d times as much as %s",
           c->words.items[1], LARGE, c->words.items[0]);
}

typedef struct output {
  FILE *file;
  int error;
} output;

static tarn_status put_piece(void *context, const void *bytes, size_t size) {
  output *out = context;
  if (fwrite(bytes, 1, size, out->file) == size) return TARN_OK;
  out->error = errno ? errno : EIO;
  return TARN_E_IO;
}

// What stdout leads to is not replaced: there may be something in it.
static tool_exit write_trace(const command *c, const tarn_trace *trace,
                             tarn_trace_format format) {
  const char *path = c->words.items[1];
  output out = {.file = tool_out()};
  tarn_status status = outfile_is_stdout(path)
                           ? tarn_trace_write_to(trace, format, put_piece, &out)
                           : tarn_trace_write(trace, format, path);
  if (status == TARN_OK) return TOOL_DONE;
  if (out.error == 0) return tool_fail(c->verb, "%s", tarn_last_error());
  return tool_fail(c->verb, "%s: %s", path, strerror(out.error));
}

static tool_exit convert(const command *c, tarn_trace_format format) {
  tarn_trace *trace = NULL;
  tool_exit status =
      load_trace(c->verb, c->words.items[0], &c->trace_options, &trace);
  if (status != TOOL_DONE) return status;
  if (format == TARN_TRACE_FORMAT_PERFETTO) say_if_large(c, trace);
  status = write_trace(c, trace, format);
  tarn_trace_destroy(trace);
  return status;
}

static tool_exit work(void *context) {
  command *c = context;
  tarn_trace_format format = 0;
  tool_exit status = check_words(c);
  if (status == TOOL_DONE) status = find_format(c, c->words.items[1], &format);
  if (status == TOOL_DONE) {
    status = load_check(c->verb, c->words.items[0], &c->trace_options);
  }
  if (status != TOOL_DONE) return status;
  outfile_rules rules = {
      .verb = c->verb, .input = c->words.items[0], .force = c->force};
  if (!outfile_try(&rules, OUTFILE_TRACE, c->words.items[1])) return TOOL_NO;
  return convert(c, format);
}

static const options_entry entries[] = {
    OPTION_FLAG("force", force),
    OPTION_TEXT("to", to),
    OPTION_TRACE_DEVICE(trace_options),
    {0},
};

const tool_verb verb_convert = {
    .name = "convert",
    .summary = "a trace into a file that other tools read",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.trace_options = {.struct_size =
                                          sizeof(tarn_trace_options)}),
    .words = offsetof(command, words),
    .work = work,
};
