// tarn record: a program under the recorder, and the trace that it leaves.
//
//   options ─► library, file ─► program runs and ends ─► what it and its
//   children left gets its names ─► what to type next
//
// Once the program runs, the exit status is that of the program, even if the
// trace cannot be finished: `tarn record --` can stand before any command.
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kit/format.h"
#include "kit/options.h"
#include "launch.h"
#include "preload.h"
#include "recorded.h"
#include "verbs.h"

static const char help[] =
    "usage: tarn record [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
    "       tarn record --finish FILE...\n"
    "\n"
    "Runs PROGRAM and records its large allocations, with the calls that led "
    "to\n"
    "them, into a trace: those of malloc and its kin, of mmap, and of device\n"
    "plug-ins. The trace is whole even if PROGRAM is killed.\n"
    "\n"
    "  --threshold BYTES  the smallest allocation to record (default: 64K)\n"
    "  --out FILE         the trace (default: PROGRAM.tarn in this folder, or\n"
    "                     PROGRAM-2.tarn and so on); a file that is there is "
    "not\n"
    "                     overwritten. FILE.1234 is that of the child process\n"
    "                     1234; if only one process has recorded anything, "
    "FILE\n"
    "                     is its\n"
    "  --no-stacks        without the calls, which is faster\n"
    "  --no-symbols       with addresses in modules for names of functions\n"
    "  --finish           runs nothing: gives names to what was recorded into "
    "each\n"
    "                     FILE by a `tarn record` that could not do so, since "
    "it\n"
    "                     was killed, say, or the program ran on\n"
    "  -h, --help         this text\n"
    "\n"
    "Exit status: that of PROGRAM, or 128 + the signal that ended it; 127 if\n"
    "there is no PROGRAM, 126 if it cannot be run, 1 if it could not be "
    "recorded\n"
    "and was not started, 2 if the command line is wrong.\n";

enum { THRESHOLD = 64 << 10 };

typedef struct command {
  const tool_verb *verb;
  options_list program;
  size_t threshold;
  const char *out;  // as the options say, or NULL
  bool no_stacks;
  bool no_symbols;
  bool finish_only;

  char *path;  // of the trace, from where the tool stands
  char *absolute;
  char *library;
  options_list before;  // files of that name of earlier children
  symbols *symbols;
  size_t found;
  size_t finished;
  size_t unwritten;  // files that had no room
  int error;         // of the last of them, as in errno
  uint64_t most_peak;
  char *most;  // the finished file with that peak: the one to ask about
} command;

// --- running it ------------------------------------------------------------

static int launch(const command *c, child *out_end) {
  char threshold[32];
  snprintf(threshold, sizeof threshold, "%zu", c->threshold);
  const launch_setting settings[] = {
      {"TARN_RECORD_OUT", c->absolute},
      {"TARN_RECORD_THRESHOLD", threshold},
      {"TARN_RECORD_STACKS", c->no_stacks ? "0" : "1"},
      {"TARN_RECORD_PID", NULL},
      {NULL, NULL},
  };
  char **program = tool_array(c->program.count + 1, sizeof *program);
  for (size_t i = 0; i < c->program.count; i++)
    program[i] = c->program.items[i];
  int error = launch_run(program, c->library, settings, out_end);
  free(program);
  return error;
}

// --- what it left ----------------------------------------------------------

static bool was_there(const command *c, const char *path) {
  for (size_t i = 0; i < c->before.count; i++) {
    if (strcmp(c->before.items[i], path) == 0) return true;
  }
  return false;
}

static options_list new_children(const command *c) {
  options_list all = {0}, children = {0};
  recorded_children(c->path, &all);
  for (size_t i = 0; i < all.count; i++) {
    if (was_there(c, all.items[i])) continue;
    options_list_add(&children, all.items[i], strlen(all.items[i]));
  }
  options_list_free(&all);
  return children;
}

static void note_finished(command *c, const char *path, uint64_t peak) {
  c->finished++;
  if (c->most != NULL && peak <= c->most_peak) return;
  free(c->most);
  c->most = tool_text(path);
  c->most_peak = peak;
}

static void finish(command *c, const char *path) {
  uint64_t peak = 0;
  if (recorded_is_unwritten(path, c->path)) {
    c->unwritten++;
    c->error = recorded_forget(path);
    return;
  }
  c->found++;
  if (recorded_is_open(path, c->path)) {
    tool_say(c->verb,
             "%s: its process still runs; what it records stays without "
             "names",
             path);
  } else if (recorded_finish(c->verb, path, c->program.items[0], c->symbols,
                             &peak) == TOOL_DONE) {
    note_finished(c, path, peak);
  }
}

// `tarn record -- sh -c train` records train's process: that one is meant.
static bool takes_name(const command *c, const options_list *children) {
  return children->count == 1 && access(c->path, F_OK) != 0 &&
         !recorded_is_open(children->items[0], c->path) &&
         rename(children->items[0], c->path) == 0;
}

static void finish_all(command *c) {
  options_list children = new_children(c);
  bool taken = takes_name(c, &children);
  if (access(c->path, F_OK) == 0) finish(c, c->path);
  for (size_t i = 0; !taken && i < children.count; i++)
    finish(c, children.items[i]);
  options_list_free(&children);
}

static void say_unwritten(const command *c) {
  const char *why = c->error != 0
                        ? strerror(c->error)
                        : "there was no room for it while it was wanted";
  if (c->unwritten == 1) {
    tool_say(c->verb, "nothing was recorded: %s could not be written: %s",
             c->path, why);
  } else {
    tool_say(c->verb,
             "nothing was recorded of %zu processes: their files beside %s "
             "could not be written: %s",
             c->unwritten, c->path, why);
  }
}

static void say_nothing(const command *c) {
  const char *program = c->program.items[0];
  const char *reason = preload_refused(program);
  char bytes[FORMAT_SIZE];
  if (reason != NULL) {
    tool_say(c->verb,
             "nothing was recorded: %s %s, and the system preloads nothing "
             "into such a program",
             program, reason);
    return;
  }
  tool_say(c->verb,
           "nothing was recorded: no allocation of %s or more was seen "
           "(--threshold sets less)",
           format_bytes(bytes, c->threshold));
}

// As a word of a shell, where that needs no more than quotes.
static void say_next(const command *c) {
  const char *path = c->most;
  if (path == NULL) return;
  bool plain = strpbrk(path, " \t\n\"'\\$`&;|<>()*?[]#~!{}") == NULL;
  const char *dot = path[0] == '-' ? "./" : "";
  const char *quote = plain ? "" : "'";
  if (strchr(path, '\'') != NULL) return;
  tool_say(c->verb, "next: tarn why %s%s%s%s", quote, dot, path, quote);
}

static void report(command *c, const child *end) {
  if (end->signal != 0) {
    tool_say(c->verb, "%s was ended by signal %d (%s)", c->program.items[0],
             end->signal, strsignal(end->signal));
  }
  bool wants_symbols = !c->no_symbols && !c->no_stacks;
  if (wants_symbols) c->symbols = symbols_open();
  finish_all(c);
  if (c->unwritten > 0) say_unwritten(c);
  if (c->found + c->unwritten == 0) say_nothing(c);
  if (c->finished > 0 && wants_symbols && !symbols_are_read()) {
    tool_say(c->verb,
             "functions have no names: this tool was built without libdw");
  }
  say_next(c);
}

// --- what an earlier one left ----------------------------------------------

static tool_exit finish_named(command *c) {
  tool_exit done = TOOL_DONE;
  if (c->out != NULL) {
    return tool_misuse(c->verb, "--finish writes each FILE in its own place");
  }
  if (!c->no_symbols) c->symbols = symbols_open();
  for (size_t i = 0; i < c->program.count; i++) {
    const char *path = c->program.items[i];
    uint64_t peak = 0;
    if (recorded_is_in_use(path)) {
      done = tool_fail(c->verb, "%s: a process still writes it", path);
    } else if (recorded_finish(c->verb, path, path, c->symbols, &peak) !=
               TOOL_DONE) {
      done = TOOL_NO;
    }
  }
  return done;
}

// --- the verb --------------------------------------------------------------

static bool prepare(command *c) {
  c->library = launch_library(c->verb, &launch_recorder);
  if (c->library == NULL) return false;
  c->path =
      c->out != NULL ? tool_text(c->out) : recorded_name(c->program.items[0]);
  c->absolute = recorded_absolute(c->verb, c->path);
  if (c->absolute == NULL) return false;
  recorded_children(c->path, &c->before);
  return true;
}

static tool_exit work(void *context) {
  command *c = context;
  if (c->program.count == 0) {
    return tool_misuse(c->verb, c->finish_only
                                    ? "which files are to be finished?"
                                    : "which program is to be recorded?");
  }
  if (c->finish_only) return finish_named(c);
  if (!prepare(c)) return TOOL_NO;
  child end = {0};
  int error = launch(c, &end);
  if (error != 0) {
    return children_say_not_run(c->verb, c->program.items[0], error);
  }
  report(c, &end);
  return (tool_exit)end.status;
}

static void deinit(void *context) {
  command *c = context;
  symbols_close(c->symbols);
  options_list_free(&c->before);
  free(c->most);
  free(c->library);
  free(c->absolute);
  free(c->path);
}

static const options_entry entries[] = {
    OPTION_FLAG("finish", finish_only),    OPTION_FLAG("no-stacks", no_stacks),
    OPTION_FLAG("no-symbols", no_symbols), OPTION_TEXT("out", out),
    OPTION_BYTES("threshold", threshold),  {0},
};

const tool_verb verb_record = {
    .name = "record",
    .summary = "runs a program and records its allocations",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.threshold = THRESHOLD),
    .words = offsetof(command, program),
    .has_program = true,
    .work = work,
    .end = deinit,
};
