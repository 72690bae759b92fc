// tarn conform: does a device plug-in keep to the ABI? Finds the plug-in, runs
// the checks and reports.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conform_report.h"
#include "kit/options.h"
#include "kit/stopwatch.h"
#include "kit/text.h"
#include "verbs.h"

static const char help[] =
    "usage: tarn conform DEVICE|PLUGIN.so [OPTION]...\n"
    "\n"
    "Checks whether a device plug-in keeps to the plug-in ABI, with its own\n"
    "table and without any stand-in of Tarn's; what is found comes with the\n"
    "few lines of C that show it. Then measures copies and allocations. Each\n"
    "check runs in a child process: one that crashes, hangs or exits has\n"
    "failed, and the next goes on.\n"
    "\n"
    "A finding is a fault, a quirk, which the ABI does not allow but with "
    "which\n"
    "Tarn copes, or a note.\n"
    "\n"
    "  DEVICE          cpu, cpu:0, sim:1: a type, and which device of it\n"
    "  PLUGIN.so       a path with a '/', or a name that ends in .so, which\n"
    "                  is looked for in $TARN_PLUGIN_DIR\n"
    "  --device D      which device of the plug-in: a number or NAME:NUMBER\n"
    "                  (default: 0)\n"
    "  --plugin FILE   where DEVICE may come from; may be given several "
    "times;\n"
    "                  others are found as by tarn devices\n"
    "  --only A,B      these checks only, or all of a subject: memory\n"
    "  --list          the names of the checks\n"
    "  --strict        a quirk is a failure, too\n"
    "  --timeout S     seconds that a check may take (default: 30)\n"
    "  --no-measure    checks only\n"
    "  --in-process    no child processes: for debuggers\n"
    "  -o FORMAT       table (default), json or junit\n"
    "  -h, --help      this text\n"
    "\n"
    "Exit status: 0 if no check found a fault, 1 if one did or there is "
    "nothing\n"
    "to check, 2 if the command line is wrong.\n";

enum { TIMEOUT_MAX_S = 86400, DEVICE_MAX = 4095, NAME_SIZE = 160 };

typedef struct command {
  const tool_verb *verb;
  options_list words;
  options_list plugins;
  options_list only;
  const char *device;  // as --device says it; NULL: it does not
  uint64_t timeout_s;
  conform_output output;
  bool lists;
  bool no_measure;
  bool in_process;
  bool strict;

  char *path;  // of the shared object
  char *type;  // or of a plug-in that is built in or found
  bool *wanted;
  conform_findings *found;
  tool_progress progress;
} command;

// ---------------------------------------------------------------------------
// Options
// ---------------------------------------------------------------------------

static bool parse_output(void *context, const char *text) {
  command *c = context;
  static const char *const names[] = {"table", "json", "junit"};
  for (int i = 0; i < 3; i++) {
    if (strcmp(text, names[i]) != 0) continue;
    c->output = (conform_output)i;
    return true;
  }
  tool_misuse(c->verb, "'%s' is not a format: table, json or junit", text);
  return false;
}

static bool take_only(void *context, const char *text) {
  command *c = context;
  size_t before = c->only.count;
  options_names_split(text, &c->only);
  if (c->only.count > before) return true;
  tool_misuse(c->verb, "--only names no check; --list has all");
  return false;
}

// ---------------------------------------------------------------------------
// Which checks
// ---------------------------------------------------------------------------

// "memory.set_values", or "memory" for all of the subject.
static bool want(command *c, const char *name) {
  bool any = false;
  size_t length = strlen(name);
  for (size_t i = 0; conform_name(i) != NULL; i++) {
    const char *check = conform_name(i);
    bool is_subject = strncmp(check, name, length) == 0 && check[length] == '.';
    if (!is_subject && strcmp(check, name) != 0) continue;
    c->wanted[i] = any = true;
  }
  return any;
}

static tool_exit choose(command *c) {
  c->wanted = tool_array(conform_count(), sizeof *c->wanted);
  for (size_t i = 0; i < conform_count(); i++)
    c->wanted[i] = c->only.count == 0;
  for (size_t i = 0; i < c->only.count; i++) {
    const char *name = c->only.items[i];
    if (want(c, name)) continue;
    const char *nearest = tool_nearest(name, conform_name);
    return tool_misuse(c->verb, "no check is named '%s'%s%s%s; --list has all",
                       name, nearest != NULL ? "; did you mean '" : "",
                       nearest != NULL ? nearest : "",
                       nearest != NULL ? "'?" : "");
  }
  return TOOL_DONE;
}

// ---------------------------------------------------------------------------
// Which plug-in
// ---------------------------------------------------------------------------

static bool ends_in_so(const char *word) {
  size_t length = strlen(word);
  return length > 3 && strcmp(word + length - 3, ".so") == 0;
}

// As the library wants it: absolute, or a bare name.
static tool_exit take_path(command *c, const char *word, char **out) {
  if (strchr(word, '/') == NULL) {
    *out = tool_text(word);
    return TOOL_DONE;
  }
  *out = realpath(word, NULL);
  if (*out != NULL) return TOOL_DONE;
  return tool_fail(c->verb, "%s: %s", word, strerror(errno));
}

// The first of --plugin whose devices are of the type; |c->path| stays NULL if
// none is.
static tool_exit look_among_plugins(command *c) {
  for (size_t i = 0; i < c->plugins.count; i++) {
    char type[CONFORM_TYPE_SIZE];
    char why[CONFORM_DETAIL_SIZE];
    char *path = NULL;
    tool_exit status = take_path(c, c->plugins.items[i], &path);
    if (status != TOOL_DONE) return status;
    if (!conform_type_of(path, (unsigned)c->timeout_s, type, why)) {
      free(path);
      return tool_fail(c->verb, "%s", why);
    }
    if (strcmp(type, c->type) == 0) {
      c->path = path;
      return TOOL_DONE;
    }
    free(path);
  }
  return TOOL_DONE;
}

static tool_exit take_number(command *c, const char *text, size_t *out) {
  uint64_t number = 0;
  if (!options_number_parse(c->verb, "a device", text, 0, DEVICE_MAX,
                            &number)) {
    return TOOL_MISUSE;
  }
  *out = (size_t)number;
  return TOOL_DONE;
}

// Whether |type| begins with the |length| bytes at |name|, and ends there.
static bool is_type(const char *type, const char *name, size_t length) {
  return strncmp(type, name, length) == 0 && type[length] == '\0';
}

// --device must name the tested type. A file is asked for its type; if it has
// none, the checks say why.
static tool_exit check_type(const command *c, const char *name, size_t length) {
  char type[CONFORM_TYPE_SIZE];
  char why[CONFORM_DETAIL_SIZE];
  if (c->type != NULL) {
    snprintf(type, sizeof type, "%s", c->type);
  } else if (!conform_type_of(c->path, (unsigned)c->timeout_s, type, why)) {
    return TOOL_DONE;
  }
  if (is_type(type, name, length)) return TOOL_DONE;
  return tool_misuse(c->verb, "--device %s: the tested plug-in is %s",
                     c->device, type);
}

// "1", or "sim:1".
static tool_exit take_device(command *c, size_t *out) {
  if (c->device == NULL) return TOOL_DONE;
  const char *colon = strrchr(c->device, ':');
  if (colon != NULL) {
    tool_exit status = check_type(c, c->device, (size_t)(colon - c->device));
    if (status != TOOL_DONE) return status;
  }
  return take_number(c, colon != NULL ? colon + 1 : c->device, out);
}

static tool_exit take_name(command *c, const char *word, size_t *out_device) {
  size_t length = strcspn(word, ":");
  c->type = tool_array(length + 1, 1);
  memcpy(c->type, word, length);
  if (word[length] == ':') {
    tool_exit status = take_number(c, word + length + 1, out_device);
    if (status != TOOL_DONE) return status;
  }
  return look_among_plugins(c);
}

static tool_exit identify(command *c, size_t *out_device) {
  const char *word = c->words.items[0];
  bool is_file = strchr(word, '/') != NULL || ends_in_so(word);
  tool_exit status =
      is_file ? take_path(c, word, &c->path) : take_name(c, word, out_device);
  return status == TOOL_DONE ? take_device(c, out_device) : status;
}

// ---------------------------------------------------------------------------
// The work
// ---------------------------------------------------------------------------

static void show_progress(void *context, const char *what) {
  command *c = context;
  tool_progress_step(&c->progress, what);
}

static void name_device(const command *c, size_t device, char *out) {
  if (c->found->type[0] == '\0') {
    snprintf(out, NAME_SIZE, "%.100s", c->words.items[0]);
  } else {
    snprintf(out, NAME_SIZE, "%s:%zu", c->found->type, device);
  }
}

static tool_exit tell(command *c, size_t device, double seconds) {
  char name[NAME_SIZE];
  name_device(c, device, name);
  conform_report report = {c->found, name, c->found->origin, seconds};
  conform_report_write(&report, c->output);
  if (c->found->unmeasured[0] != '\0') {
    tool_say(c->verb, "figures are missing: %s", c->found->unmeasured);
  }
  return conform_tally(c->found, CONFORM_FAIL) > 0 ? TOOL_NO : TOOL_DONE;
}

static tool_exit nothing_to_test(const command *c) {
  if (c->path != NULL || c->found->why[0] != '\0') {
    return tool_fail(c->verb, "%s", c->found->why);
  }
  return tool_fail(c->verb,
                   "no device type is named '%s'; built in are cpu and sim, "
                   "--plugin FILE brings others, and a file tarn_%s.so is "
                   "found beside the library and in TARN_PLUGIN_DIR",
                   c->type, c->type);
}

static tool_exit test(command *c, size_t device) {
  conform_request request = {.path = c->path,
                             .type = c->type,
                             .device = device,
                             .timeout_s = (unsigned)c->timeout_s,
                             .in_process = c->in_process,
                             .measures = !c->no_measure && c->only.count == 0,
                             .strict = c->strict,
                             .wanted = c->wanted,
                             .progress = show_progress,
                             .context = c};
  c->found = conform_findings_create();
  if (c->found == NULL) return tool_fail(c->verb, "out of memory");
  fflush(tool_out());  // else each child has a copy of the buffer
  uint64_t begin = stopwatch_clock_ns();
  tool_progress_begin(&c->progress, conform_count());
  conform_verdict verdict = conform_run(&request, c->found);
  tool_progress_end(&c->progress);
  if (verdict == CONFORM_NO_DEVICE) {
    return tool_fail(c->verb, "%s", c->found->why);
  }
  if (verdict == CONFORM_NO_PLUGIN) return nothing_to_test(c);
  return tell(c, device, (double)(stopwatch_clock_ns() - begin) / 1e9);
}

static tool_exit list(void) {
  for (size_t i = 0; conform_name(i) != NULL; i++)
    fprintf(tool_out(), "%s\n", conform_name(i));
  return TOOL_DONE;
}

static tool_exit work(void *context) {
  command *c = context;
  size_t device = 0;
  if (c->lists) return list();
  if (c->words.count != 1) {
    return tool_misuse(c->verb, c->words.count == 0
                                    ? "which device or plug-in?"
                                    : "one device or plug-in at a time");
  }
  tool_out_guard();
  tool_exit status = choose(c);
  if (status == TOOL_DONE) status = identify(c, &device);
  return status == TOOL_DONE ? test(c, device) : status;
}

static void deinit(void *context) {
  command *c = context;
  conform_findings_destroy(c->found);
  options_list_free(&c->only);
  free(c->wanted);
  free(c->path);
  free(c->type);
}

static const options_entry entries[] = {
    OPTION_TEXT("device", device),
    OPTION_FLAG("in-process", in_process),
    OPTION_FLAG("list", lists),
    OPTION_FLAG("no-measure", no_measure),
    OPTION_CALL("only", take_only),
    OPTION_CALL_OR("output", 'o', parse_output),
    OPTION_LIST("plugin", plugins),
    OPTION_FLAG("strict", strict),
    OPTION_NUMBER("timeout", timeout_s, 1, TIMEOUT_MAX_S),
    {0},
};

const tool_verb verb_conform = {
    .name = "conform",
    .summary = "does a device plug-in keep to the ABI, and how fast is it?",
    .help = help,
    .entries = entries,
    .size = sizeof(command),
    .words = offsetof(command, words),
    .work = work,
    .end = deinit,
};
