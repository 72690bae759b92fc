// tarn: the tool. Finds the verb and sees to it that what was written to
// stdout has arrived.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kit/options.h"
#include "verbs.h"

static const tool_verb *const verbs[] = {
    &verb_why,     &verb_view,    &verb_record,  &verb_replay,
    &verb_plan,    &verb_convert, &verb_devices, &verb_bench,
    &verb_preload, &verb_conform, &verb_run,     &verb_new_plugin,
};

enum { VERB_COUNT = sizeof verbs / sizeof verbs[0] };

static const char *verb_name(size_t index) {
  return index < VERB_COUNT ? verbs[index]->name : NULL;
}

static const tool_verb *find_verb(const char *name) {
  for (size_t i = 0; i < VERB_COUNT; i++) {
    if (strcmp(verbs[i]->name, name) == 0) return verbs[i];
  }
  return NULL;
}

static tool_exit unknown_verb(const char *name) {
  const char *nearest = tool_nearest(name, verb_name);
  if (nearest == NULL) return tool_misuse(NULL, "no verb is named '%s'", name);
  return tool_misuse(NULL, "no verb is named '%s'; did you mean '%s'?", name,
                     nearest);
}

static void write_usage(FILE *out) {
  fputs(
      "tarn - the memory of deep-learning runtimes, explained and replayed\n"
      "\n"
      "usage: tarn VERB [OPTION]...\n"
      "\n",
      out);
  for (size_t i = 0; i < VERB_COUNT; i++) {
    fprintf(out, "  %-11s %s\n", verbs[i]->name, verbs[i]->summary);
  }
  fputs(
      "\n"
      "  tarn help VERB    what a verb does, and its options (or VERB --help)\n"
      "  tarn --version    the version, and how it was built\n"
      "\n"
      "Results go to stdout, progress and messages to stderr.\n"
      "Exit status: 0 done, 1 the answer is no or it could not be done, 2 "
      "wrong "
      "use.\n",
      out);
}

// For who types nothing but the name.
static void write_first(FILE *out) {
  fputs(
      "tarn tells what the memory of a deep-learning program is for, and how\n"
      "much less would do. It reads memory snapshots of PyTorch and what it\n"
      "records itself, replays them through other allocators, and plans them\n"
      "ahead of time. It needs no GPU and changes nothing in the program.\n"
      "\n"
      "  tarn why SNAPSHOT                     what held the memory at its "
      "peak\n"
      "  tarn view SNAPSHOT --html PAGE.html   the same as a page for a "
      "browser\n"
      "  tarn record PROGRAM                   a snapshot of any program\n"
      "\n"
      "usage: tarn VERB [OPTION]...            'tarn help' lists all verbs\n",
      out);
}

static tool_exit run_help(int argc, char **argv) {
  if (argc < 2) {
    write_usage(tool_out());
    return TOOL_DONE;
  }
  if (argc > 2) return tool_misuse(NULL, "help explains one verb at a time");
  const tool_verb *verb = find_verb(argv[1]);
  if (verb == NULL) return unknown_verb(argv[1]);
  fputs(verb->help, tool_out());
  return TOOL_DONE;
}

static bool is_either(const char *word, const char *a, const char *b) {
  return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

static tool_exit run(int argc, char **argv) {
  if (argc < 2) {
    write_first(stderr);
    return TOOL_MISUSE;
  }
  const char *word = argv[1];
  if (is_either(word, "--help", "-h")) return run_help(1, argv);
  if (strcmp(word, "help") == 0) return run_help(argc - 1, argv + 1);
  if (is_either(word, "--version", "-V")) {
    fprintf(tool_out(), "tarn %s\n%s\n", tarn_version(), TARN_BUILD);
    return TOOL_DONE;
  }
  if (word[0] == '-') return tool_misuse(NULL, "no option is named '%s'", word);
  const tool_verb *verb = find_verb(word);
  if (verb == NULL) return unknown_verb(word);
  return options_verb_run(verb, argc - 1, argv + 1);
}

// The next file that is opened would take the number of a closed standard
// descriptor, and results would go into that file. The replacement can be
// neither read nor written, nor opened for that by its name in /dev.
static void fill_standard(void) {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    if (fcntl(fd, F_GETFD) < 0) (void)!open("/", O_PATH | O_DIRECTORY);
  }
}

// A result that did not reach its reader is no result.
static tool_exit finish_output(tool_exit status) {
  errno = 0;
  bool failed = ferror(tool_out()) != 0;
  if (fflush(tool_out()) != 0) failed = true;
  if (!failed) return status;
  return tool_fail(NULL, "the result could not be written to stdout: %s",
                   errno ? strerror(errno) : "write error");
}

int main(int argc, char **argv) {
  // A closed pipe is to be an error that is reported. (A verb that starts
  // another program has to give that one SIG_DFL again.)
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // as is a limit on the size of files
  fill_standard();
  return (int)finish_output(run(argc, argv));
}
