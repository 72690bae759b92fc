// launch.h - a program under the recorder, and how it ended.
#ifndef TARN_TOOL_LAUNCH_H_
#define TARN_TOOL_LAUNCH_H_

#include "children.h"
#include "kit/tool.h"

// The recorder's settings in the program's environment.
typedef struct launch_setting {
  const char *name;  // "TARN_RECORD_FILE"
  const char *value;
} launch_setting;

// A file that comes with the tool: beside it, or where it is installed. Free
// it; NULL if it was not found.
char *launch_find(const char *name);

// A library to preload.
typedef struct launch_object {
  const char *name;      // "libtarn-record.so"
  const char *variable;  // of the environment, which says where it is
} launch_object;

extern const launch_object launch_recorder;
extern const launch_object launch_malloc;

// Where |object| is: as its variable says, or beside the tool, or where it is
// installed. Free it; NULL after a message.
char *launch_library(const tool_verb *verb, const launch_object *object);

// Runs |program|, found as execvp does, with |library| preloaded before what is
// preloaded anyway, and waits until it has ended, which |out_end| tells.
// |settings| end with a name of NULL; a value of NULL becomes the program's
// process number. Signals as children.h says. 0, or why the program was not
// started, as children_start has it.
int launch_run(char *const *program, const char *library,
               const launch_setting *settings, child *out_end);

#endif  // TARN_TOOL_LAUNCH_H_
