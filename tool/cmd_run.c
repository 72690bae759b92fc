// tarn run: a program as the ranks of one job on this machine.
//
//   options ─► places for N ranks ─► N processes ─► the first failure, or all
//   have ended
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit/options.h"
#include "ranks.h"
#include "verbs.h"

static const char help[] =
    "usage: tarn run -n N [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
    "\n"
    "Starts PROGRAM N times, as ranks 0 to N - 1 that find each other by\n"
    "tarn_comm_from_environment, and waits until all have ended. Nothing with "
    "a\n"
    "name is made, in no file system; if this command is killed, so are the "
    "ranks.\n"
    "\n"
    "  -n, --ranks N    how many, from 1 to 256\n"
    "  -l, --label      each line that rank 2 writes begins with \"[2] \"\n"
    "  --grace SECONDS  when a rank has failed, how long the others may take "
    "to\n"
    "                   find out and end, before they get SIGTERM, and SIGKILL "
    "2\n"
    "                   seconds later (default: 10); none: as long as they "
    "like\n"
    "  --timeout MS     how long ranks wait for each other\n"
    "                   (TARN_COMM_TIMEOUT_MS)\n"
    "  -h, --help       this text\n"
    "\n"
    "Rank 0 has the standard input, the others an empty one. TARN_RANK and\n"
    "TARN_SIZE tell a program that does not use the library what it is. "
    "Signals\n"
    "(HUP, INT, QUIT, TERM, USR1, USR2) go on to all ranks.\n"
    "\n"
    "Exit status: 0 if that of all ranks is, or that of the first to fail, or "
    "128 +\n"
    "the signal that ended it; 127 if there is no PROGRAM, 126 if it cannot be "
    "run,\n"
    "1 if ranks cannot be made, 2 if the command line is wrong.\n";

enum { GRACE_S = 10, GRACE_MOST_S = 1000000, TIMEOUT_MOST_MS = 1000000000 };

typedef struct command {
  const tool_verb *verb;
  options_list program;
  uint64_t count;  // 0: not given
  uint64_t grace_s;
  uint64_t timeout_ms;
  bool labelled;
} command;

static tool_exit work(void *context) {
  command *c = context;
  if (c->count == 0) return tool_misuse(c->verb, "how many ranks? -n N");
  if (c->program.count == 0)
    return tool_misuse(c->verb, "which program is to be run?");
  char **program = tool_array(c->program.count + 1, sizeof *program);
  memcpy(program, c->program.items, c->program.count * sizeof *program);
  const ranks_plan plan = {.verb = c->verb,
                           .program = program,
                           .count = c->count,
                           .timeout_ms = c->timeout_ms,
                           .grace_s = c->grace_s,
                           .labelled = c->labelled};
  tool_exit status = ranks_run(&plan);
  free(program);
  return status;
}

static bool parse_grace(void *context, const char *text) {
  command *c = context;
  c->grace_s = RANKS_FOR_EVER;
  return strcmp(text, "none") == 0 ||
         options_number_parse(c->verb, "--grace, unless none,", text, 0,
                              GRACE_MOST_S, &c->grace_s);
}

static const options_entry entries[] = {
    OPTION_CALL("grace", parse_grace),
    OPTION_FLAG_OR("label", 'l', labelled),
    OPTION_NUMBER_OR("ranks", 'n', count, 1, TARN_COMM_MOST_RANKS),
    OPTION_NUMBER("timeout", timeout_ms, 1, TIMEOUT_MOST_MS),
    {0},
};

const tool_verb verb_run = {
    .name = "run",
    .summary = "runs a program as the ranks of one job on this machine",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.grace_s = GRACE_S),
    .words = offsetof(command, program),
    .has_program = true,
    .work = work,
};
