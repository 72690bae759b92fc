// Runs the victim by the tool, with a report in a file of the test's.
#include "preload_run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/json_check.h"
#include "support/run.h"

tool_output ran;

void preload_end(void) {
  tool_files_end();
}

bool preload_cannot(void) {
  return *TARN_SANITIZE != '\0';
}

int preload_skip(void) {
  return skip_program("libtarn-malloc.so",
                      "this build's sanitizer (" TARN_SANITIZE
                      ") has the functions that it stands before");
}

static const char *report_path(void) {
  return tool_file("report");
}

void preload_on(const char *pool, const char *mode) {
  unlink(report_path());
  ran = tool_run("preload", "--report-out", report_path(), "--pool", pool, "--",
                 TARN_PRELOAD_VICTIM, mode);
  ck_assert_msg(ran.status == 0, "%s on %s: status %d: %s", mode, pool,
                ran.status, ran.err);
  ck_assert_str_eq(ran.err, "");
}

void preload(const char *mode) {
  preload_on("arena_pool", mode);
}

void preload_line(const char *line) {
  char whole[4096];
  snprintf(whole, sizeof whole, "preload %s", line);
  ran = tool_line(whole);
}

double preload_report(const char *key) {
  char *text = tool_read_file(report_path());
  ck_assert_msg(text != NULL, "there is no report");
  char *last = text;
  for (char *at = text; *at != '\0'; at++) {
    if (*at == '\n' && at[1] != '\0') last = at + 1;
  }
  double value = json_number(last, key);
  return value;
}
