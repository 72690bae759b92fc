// launch.h - a program under the recorder, and how it ended.
#ifndef TARN_TOOL_LAUNCH_H_
#define TARN_TOOL_LAUNCH_H_

#include "tool.h"

// What the recorder is told in the program's environment.
typedef struct launch_setting {
  const char *name;  // "TARN_RECORD_FILE"
  const char *value;
} launch_setting;

typedef struct launch_end {
  int error;   // why the program was not started, as in errno; 0: it was
  int status;  // its exit status; 128 + the signal that ended it
  int signal;  // that signal, or 0
} launch_end;

// The recorder's library: TARN_RECORD_LIBRARY in the environment, or beside
// the tool, or where it is installed. Free it; NULL after a message.
char *launch_library(const tool_verb *verb);

// Runs |program|, found as execvp does, with |library| preloaded before what is
// preloaded anyway, and waits until it has ended. |settings| end with a name of
// NULL; a value of NULL becomes the program's process number. Meanwhile SIGHUP,
// SIGINT, SIGQUIT, SIGTERM, SIGUSR1 and SIGUSR2 do not end the tool: those that
// a process sends go on to the program; those of the terminal reach it anyway.
// The program starts with SIGPIPE as it should be.
launch_end launch_run(char *const *program, const char *library,
                      const launch_setting *settings);

#endif  // TARN_TOOL_LAUNCH_H_
