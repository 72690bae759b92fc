// `tarn bench view`: what it tells with a browser, without one, and of one that
// is none. No figure is compared with a time.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

FIXTURE(tool_files_begin, tool_files_end);

TEST(without_a_browser) {
  setenv("TARN_CHROMIUM", "/nowhere/chromium", 1);
  tool_output o = tool_line("bench view -o json");
  unsetenv("TARN_CHROMIUM");
  ck_assert_int_eq(o.status, 0);
  assert_contains(o.err, "SKIPPED: there is no Chromium");
  ck_assert(json_valid(o.out));
  ck_assert_double_eq(json_number(o.out, "events"), 100000);
  assert_value(o.out, "results.0.name", "\"file_size\"");
  assert_value(o.out, "results.0.met", "true");
  ck_assert_double_gt(json_number(o.out, "results.0.value"), 1);
  ck_assert_double_le(json_number(o.out, "results.0.value"), 12);
  assert_value(o.out, "results.1.value", "null");
  assert_value(o.out, "results.1.met", "null");
}

TEST(with_a_browser_that_is_none) {
  setenv("TARN_CHROMIUM", "/bin/true", 1);
  tool_output o = tool_line("bench view --events 1000");
  unsetenv("TARN_CHROMIUM");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "/bin/true: no page within");
  assert_contains(o.out, "\nfile_size ");
}

// A program that gives out a page that was measured.
TEST(reads_what_the_page_measured) {
  const char *program = tool_write_file(
      tool_file("browser"),
      "#!/bin/sh\necho '<pre id=\"measured\">{\"drawn_ms\":100.5,\"pan\":"
      "{\"frames_per_second\":20},\"first_paint_ms\":null}</pre>'\n");
  ck_assert_int_eq(chmod(program, 0755), 0);
  setenv("TARN_CHROMIUM", program, 1);
  tool_output o = tool_done("bench view --events 1000 -o json");
  assert_value(o.out, "results.1.value", "null");
  assert_value(o.out, "results.2.value", "100.5");
  assert_value(o.out, "results.2.met", "true");
  assert_value(o.out, "results.3.value", "20");
  assert_value(o.out, "results.3.met", "false");
  o = tool_line("bench view --events 1000 -o csv");
  unsetenv("TARN_CHROMIUM");
  assert_contains(o.out, "name,value,unit,goal,met,what,machine\n");
  assert_contains(o.out, "\npan,20,/s,>= 30,NO,");
}

TEST(wrong_use) {
  assert_misused("bench view --events 10", "--events");
  assert_misused("bench view -o yaml", "yaml");
  tool_output o = tool_done("bench view --help");
  assert_contains(o.out, "usage: tarn bench view ");
}
