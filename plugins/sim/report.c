// The report of misuse: a count, the newest line, and a file if one is named.
// Lines go to the log as well, which is where a program that links the library
// sees them.
#include <stdarg.h>
#include <stdio.h>

#include "base/status.h"
#include "sim.h"
#include "tarn/sim.h"

enum { LINE_SIZE = 256 };

static struct {
  size_t count;
  char newest[LINE_SIZE];
  char path[TARN__SIM_PATH_SIZE];
} report;

// Guards |report|. A child may misuse what it inherits, too.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
TARN__LOCK_AROUND_FORKS(LAST, report, &lock, unlock_report)

size_t tarn_sim_misuses(char *out, size_t out_size) {
  lock_report();
  size_t count = report.count;
  if (out != NULL) snprintf(out, out_size, "%s", report.newest);
  unlock_report();
  return count;
}

void tarn__sim_report_to(const char *path) {
  lock_report();
  snprintf(report.path, sizeof report.path, "%s", path);
  unlock_report();
}

// A file that cannot be written to is not tried again: the misuse itself is
// answered, counted and logged all the same.
static void append_locked(void) {
  char line[LINE_SIZE + 1];
  if (report.path[0] == '\0') return;
  int length = snprintf(line, sizeof line, "%s\n", report.newest);
  if (!tarn__os_append_file(report.path, line, (size_t)length)) {
    report.path[0] = '\0';
  }
}

static void add_line(const char *line) {
  lock_report();
  report.count++;
  snprintf(report.newest, sizeof report.newest, "%s", line);
  append_locked();
  unlock_report();
  tarn__log(TARN_LOG_ERROR, "%s", line);
}

C_Status tarn__sim_misuse(const char *format, ...) {
  char line[LINE_SIZE];
  va_list args;
  va_start(args, format);
  // This file is compiled twice, and at the second time clang-tidy sees no
  // va_start. NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized)
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  tarn__text_set(line);
  add_line(line);
  return C_ERROR;
}
