// `tarn conform` over the stand-in, as each major version of HIP, and as
// devices that lack something: no check fails, and the stand-in was never used
// wrongly. Nothing here says anything of a driver.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/effort.h"
#include "support/run.h"
#include "support/tool_run.h"

FIXTURE(tool_files_begin, tool_files_end);
SECONDS(600);

typedef struct hip_kind {
  const char *library;
  const char *setting;  // of the stand-in; NULL: none
  const char *value;
  const char *described;  // a part of what the tool says of hip:0
} hip_kind;

// One of each version first: a sanitizer has enough of these.
static const hip_kind kinds[] = {
    {TARN_STANDIN_HIP_6, NULL, NULL, "driver 6.2), ranges, sharing, pools"},
    {TARN_STANDIN_HIP_5, NULL, NULL, "driver 5.2), pools, managed, register"},
    {TARN_STANDIN_HIP_7, "DEVICES", "2", "driver 7.1), ranges, sharing, pools"},
    {TARN_STANDIN_HIP_5, "DEVICES", "2", "driver 5.2), pools"},
    {TARN_STANDIN_HIP_6, "WITHOUT", "pools", "ranges, sharing, managed"},
    {TARN_STANDIN_HIP_7, "WITHOUT", "ranges,managed", "pools, register"},
    {TARN_STANDIN_HIP_7, "WITHOUT", "sharing-late", "without sharing: hipMem"},
};
enum { ALL = sizeof kinds / sizeof *kinds, SOME = 3 };

static void set(const char *name, const char *value) {
  char whole[64];
  snprintf(whole, sizeof whole, "TARN_STANDIN_%s", name);
  ck_assert_int_eq(setenv(whole, value, 1), 0);
}

// The folder of the library is where the tool looks for one first.
static void set_up(const hip_kind *kind) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%s", kind->library);
  char *slash = strrchr(folder, '/');
  ck_assert_ptr_nonnull(slash);
  *slash = '\0';
  ck_assert_int_eq(setenv("LD_LIBRARY_PATH", folder, 1), 0);
  set("REPORT", tool_file("report"));
  if (kind->setting != NULL) set(kind->setting, kind->value);
}

static const char *text_of(const char *text) {
  return text != NULL ? text : "";
}

static void assert_no_report(const hip_kind *kind) {
  const char *report = tool_read_file(tool_file("report"));
  ck_assert_msg(report == NULL, "%s: %s", kind->library, text_of(report));
}

TEST_LOOP(no_check_fails, EFFORT(ALL, SOME)) {
  const hip_kind *kind = &kinds[_i];
  set_up(kind);
  tool_output o = tool_line("conform hip:0 --no-measure");
  ck_assert_msg(o.status == 0, "%s %s=%s: %s%s", kind->library,
                text_of(kind->setting), text_of(kind->value), o.out, o.err);
  ck_assert_msg(strstr(o.out, " 0 failed, ") != NULL, "%s", o.out);
  assert_no_report(kind);
}

// The lines of a description are broken at blanks.
static void join_lines(char *text) {
  char *to = text;
  for (const char *from = text; *from != '\0'; from++) {
    if (*from != '\n' && *from != ' ')
      *to++ = *from;
    else if (to == text || to[-1] != ' ')
      *to++ = ' ';
  }
  *to = '\0';
}

TEST_LOOP(the_tool_says_what_a_device_has, EFFORT(ALL, SOME)) {
  const hip_kind *kind = &kinds[_i];
  set_up(kind);
  tool_output o = tool_line("devices");
  join_lines(o.out);
  ck_assert_msg(strstr(o.out, kind->described) != NULL, "no '%s' in: %s",
                kind->described, o.out);
  ck_assert_msg(strstr(o.out, "without rows: ") != NULL, "%s", o.out);
  assert_no_report(kind);
}

TEST(an_ability_that_does_not_exist_is_refused) {
  set_up(&kinds[0]);
  ck_assert_int_eq(setenv("TARN_HIP_WITHOUT", "ranges,wings", 1), 0);
  tool_output o = tool_line("devices");
  const char *line = strstr(o.out, "hip: cannot be used: ");
  ck_assert_msg(line != NULL && strstr(line, "TARN_HIP_WITHOUT=ranges,wings"),
                "%s", o.out);
}

TEST(an_ability_can_be_done_without) {
  set_up(&kinds[0]);
  ck_assert_int_eq(setenv("TARN_HIP_WITHOUT", "pools", 1), 0);
  tool_output o = tool_line("devices");
  join_lines(o.out);
  ck_assert_msg(strstr(o.out, "driver 6.2), ranges, sharing, managed") != NULL,
                "%s", o.out);
}
