// terminal.h - terminals that a test makes, which not every container has.
#ifndef TARN_TESTS_TOOL_TERMINAL_H_
#define TARN_TESTS_TOOL_TERMINAL_H_

#include <pty.h>
#include <unistd.h>

#include "support/run.h"

// Whether the system gives out terminals. If not, |what| is noted as skipped.
static inline bool has_terminals(const char *what) {
  int master = -1;
  int slave = -1;
  if (openpty(&master, &slave, NULL, NULL, NULL) != 0) {
    note_skipped(what, "no terminal can be made: there is no /dev/pts");
    return false;
  }
  close(master);
  close(slave);
  return true;
}

#endif  // TARN_TESTS_TOOL_TERMINAL_H_
