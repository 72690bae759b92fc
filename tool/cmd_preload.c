// tarn preload: a program on Tarn's pool of host memory.
//
//   options ─► can anything be preloaded? ─► environment ─► the program itself
//
// The tool becomes the program, so that signals, exit status and terminal are
// the program's.
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "children.h"
#include "kit/options.h"
#include "launch.h"
#include "preload.h"
#include "verbs.h"

static const char help[] =
    "usage: tarn preload [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
    "\n"
    "Runs PROGRAM with libtarn-malloc.so: large requests of malloc and its "
    "kin\n"
    "are served by Tarn's pool of host memory, all others by the C library.\n"
    "Processes that it starts do the same.\n"
    "\n"
    "  --from BYTES        the smallest request that the pool serves\n"
    "                      (default: 64K)\n"
    "  --pool POOL         the pool's strategy, as NAME or NAME:KEY=VALUE,...\n"
    "                      (default: TARN_POOL, or arena_pool)\n"
    "  --report            each process that exits tells on stderr what the "
    "pool\n"
    "                      did for it\n"
    "  --report-out FILE   the same as a line of JSON, appended to FILE\n"
    "  --why SIGNAL[:FILE] at this signal, as in USR1, the program writes a\n"
    "                      snapshot for `tarn why` (default:\n"
    "                      tarn-PROCESS-NUMBER.tarn)\n"
    "  -h, --help          this text\n"
    "\n"
    "Exit status: that of PROGRAM; 127 if there is no PROGRAM, 126 if it "
    "cannot\n"
    "be run, 1 if nothing can be preloaded into it, 2 if the command line is\n"
    "wrong.\n";

enum { FROM = 64 << 10 };

typedef struct command {
  const tool_verb *verb;
  options_list program;
  options_list pools;
  size_t from;
  bool report;
  const char *report_out;
  const char *why;
  char *library;
} command;

// --- the command line ------------------------------------------------------

static tarn_status try_pool(const void *context, const char *pool) {
  (void)context;
  return options_pool_try_dry(TARN_HOST, pool, 0);
}

static tool_exit check(const command *c) {
  if (c->program.count == 0) {
    return tool_misuse(c->verb, "which program is to be run?");
  }
  if (c->pools.count > 1) {
    return tool_misuse(c->verb, "--pool: a program has one pool, not %zu",
                       c->pools.count);
  }
  if (c->report && c->report_out != NULL) {
    return tool_misuse(c->verb, "--report or --report-out, not both");
  }
  return options_pools_check(c->verb, &c->pools, try_pool, NULL);
}

// --- the program -----------------------------------------------------------

static tool_exit check_program(const command *c) {
  const char *program = c->program.items[0];
  const char *reason = preload_refused(program);
  if (reason != NULL) {
    return tool_fail(c->verb,
                     "%s %s, and the system preloads nothing into such a "
                     "program",
                     program, reason);
  }
  if (preload_has_malloc(program)) {
    tool_say(c->verb,
             "%s has a malloc of its own: only what its libraries ask for can "
             "come to the pool",
             program);
  }
  return TOOL_DONE;
}

static bool is_recorder(const char *at, size_t length) {
  const char *name = launch_recorder.name;
  size_t size = strlen(name);
  return length >= size && strncmp(at + length - size, name, size) == 0;
}

// The length of what of |present| stands before the library: a recorder sees
// the calls of the program, and another allocator those for small blocks.
static size_t before_library(const char *present) {
  static const char ends[] = " :";
  size_t before = 0;
  for (size_t at = 0; present[at] != '\0';) {
    size_t length = strcspn(present + at, ends);
    if (is_recorder(present + at, length)) before = at + length;
    at += length;
    at += strspn(present + at, ends);
  }
  return before;
}

static char *preload_list(const char *library) {
  const char *present = getenv("LD_PRELOAD");
  if (present == NULL) present = "";
  size_t before = before_library(present);
  size_t room = strlen(present) + strlen(library) + 3;
  char *list = tool_array(room, 1);
  snprintf(list, room, "%.*s%s%s%s%s", (int)before, present,
           before > 0 ? ":" : "", library, present[before] != '\0' ? ":" : "",
           present + before);
  return list;
}

// The program may change its folder.
static char *absolute(const char *path) {
  char folder[PATH_MAX];
  if (path[0] == '/' || getcwd(folder, sizeof folder) == NULL) {
    return tool_text(path);
  }
  size_t room = strlen(folder) + strlen(path) + 2;
  char *whole = tool_array(room, 1);
  snprintf(whole, room, "%s/%s", folder, path);
  return whole;
}

static void set_up(const command *c) {
  char from[32];
  char *list = preload_list(c->library);
  snprintf(from, sizeof from, "%zu", c->from);
  children_set("LD_PRELOAD", list);
  children_set("TARN_PRELOAD_FROM", from);
  if (c->pools.count > 0) children_set("TARN_POOL", c->pools.items[0]);
  if (c->report) children_set("TARN_PRELOAD_REPORT", "-");
  if (c->report_out != NULL) {
    char *path = absolute(c->report_out);
    children_set("TARN_PRELOAD_REPORT", path);
    free(path);
  }
  if (c->why != NULL) children_set("TARN_PRELOAD_WHY", c->why);
  free(list);
}

static tool_exit become(const command *c) {
  char **program = tool_array(c->program.count + 1, sizeof *program);
  for (size_t i = 0; i < c->program.count; i++)
    program[i] = c->program.items[i];
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  execvp(program[0], program);
  int error = errno;
  free(program);
  return children_say_not_run(c->verb, c->program.items[0], error);
}

static tool_exit work(void *context) {
  command *c = context;
  tool_exit status = check(c);
  if (status != TOOL_DONE) return status;
  c->library = launch_library(c->verb, &launch_malloc);
  if (c->library == NULL) return TOOL_NO;
  status = check_program(c);
  if (status != TOOL_DONE) return status;
  set_up(c);
  return become(c);
}

static void deinit(void *context) {
  command *c = context;
  free(c->library);
}

static const options_entry entries[] = {
    OPTION_BYTES("from", from),    OPTION_POOLS("pool", pools),
    OPTION_FLAG("report", report), OPTION_TEXT("report-out", report_out),
    OPTION_TEXT("why", why),       {0},
};

const tool_verb verb_preload = {
    .name = "preload",
    .summary = "runs a program on the pool of host memory",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.from = FROM),
    .words = offsetof(command, program),
    .has_program = true,
    .work = work,
    .end = deinit,
};
