// `tarn conform` over the stand-in, for drivers and devices of each kind: no
// check fails, and the stand-in was never used wrongly. Nothing here says
// anything of a GPU.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/effort.h"
#include "support/run.h"
#include "support/tool_run.h"

FIXTURE(tool_files_begin, tool_files_end);
SECONDS(600);

typedef struct driver_kind {
  const char *library;
  const char *settings;  // of the stand-in: "NAME=VALUE NAME=VALUE"
  const char *without;   // TARN_CUDA_WITHOUT; NULL: not set
  const char *told;      // a part of what the tool says of cuda:0
} driver_kind;

// Those that differ most first: a sanitizer has enough of these. Of the last
// ones only the description is of interest.
static const driver_kind kinds[] = {
    {TARN_STANDIN, "", NULL, "ranges, sharing, pools, managed, register"},
    {TARN_STANDIN, "DEVICES=2 LATE=200 PAGEABLE=late", NULL,
     "ranges, sharing, pools, managed, register"},
    {TARN_STANDIN_OLD, "DRIVER_VERSION=10020", NULL,
     "driver 10.2), managed, register"},
    {TARN_STANDIN, "WITHOUT=ranges,pools,managed,register", NULL,
     "without register: "},
    {TARN_STANDIN, "PAGEABLE=waits LATE=0", NULL, "ranges, sharing"},
    {TARN_STANDIN, "WITHOUT=ranges", NULL, "pools, managed, register"},
    {TARN_STANDIN, "WITHOUT=sharing-late", NULL, "without sharing: "},
    {TARN_STANDIN, "IMAGES=209", NULL, "CUDA_ERROR_NO_BINARY_FOR_GPU (209)"},
    {TARN_STANDIN, "GRANULARITY=65536 ALIGN=512", NULL, "ranges, sharing"},
    {TARN_STANDIN, "CAPACITY=402653184 RESERVE_MAX=4294967296", NULL,
     "ranges, sharing"},
    {TARN_STANDIN, "DEVICES=2", "rows,pools", "ranges, sharing, managed"},
    {TARN_STANDIN, "WITHOUT=sharing", NULL, "ranges, pools"},
    {TARN_STANDIN, "WITHOUT=pools", NULL, "ranges, sharing, managed"},
    {TARN_STANDIN, "WITHOUT=managed", NULL, "pools, register"},
    {TARN_STANDIN, "WITHOUT=register", NULL, "pools, managed"},
    {TARN_STANDIN, "IMAGES=222", NULL, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
    {TARN_STANDIN, "CAPABILITY=75", NULL, "compute 7.5"},
    {TARN_STANDIN, "", "ranges,managed", "pools, register"},
};
enum { ALL = sizeof kinds / sizeof *kinds, CHECKED = 11, SOME = 4 };

static void set(const char *name, const char *value) {
  char whole[64];
  snprintf(whole, sizeof whole, "TARN_STANDIN_%s", name);
  ck_assert_int_eq(setenv(whole, value, 1), 0);
}

static void set_all(const char *settings) {
  char text[256], *rest = NULL;
  snprintf(text, sizeof text, "%s", settings);
  for (char *pair = strtok_r(text, " ", &rest); pair != NULL;
       pair = strtok_r(NULL, " ", &rest)) {
    char *equals = strchr(pair, '=');
    ck_assert_ptr_nonnull(equals);
    *equals = '\0';
    set(pair, equals + 1);
  }
}

// The folder of the stand-in is where the tool looks for a driver first.
static void set_up(const driver_kind *kind) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%s", kind->library);
  char *slash = strrchr(folder, '/');
  ck_assert_ptr_nonnull(slash);
  *slash = '\0';
  ck_assert_int_eq(setenv("LD_LIBRARY_PATH", folder, 1), 0);
  set("KERNELS", TARN_STANDIN_ROWS);
  set("REPORT", tool_file("report"));
  set_all(kind->settings);
  if (kind->without != NULL)
    ck_assert_int_eq(setenv("TARN_CUDA_WITHOUT", kind->without, 1), 0);
}

static void assert_no_report(const driver_kind *kind) {
  const char *report = tool_read_file(tool_file("report"));
  ck_assert_msg(report == NULL, "%s: %s", kind->settings,
                report != NULL ? report : "");
}

TEST_LOOP(no_check_fails, EFFORT(CHECKED, SOME)) {
  const driver_kind *kind = &kinds[_i];
  set_up(kind);
  tool_output o = tool_line("conform cuda:0 --no-measure");
  ck_assert_msg(o.status == 0, "%s: %s%s", kind->settings, o.out, o.err);
  ck_assert_msg(strstr(o.out, " 0 failed, ") != NULL, "%s", o.out);
  ck_assert_msg(strstr(o.out, "0 quirks, 0 notes") != NULL, "%s", o.out);
  assert_no_report(kind);
}

// The lines of a description are broken at blanks.
static void join_lines(char *text) {
  char *to = text;
  for (const char *from = text; *from != '\0'; from++) {
    bool is_blank = *from == '\n' || *from == ' ';
    if (!is_blank) *to++ = *from;
    if (is_blank && (to == text || to[-1] != ' ')) *to++ = ' ';
  }
  *to = '\0';
}

TEST_LOOP(the_tool_says_what_a_device_has, EFFORT(ALL, SOME)) {
  const driver_kind *kind = &kinds[_i];
  set_up(kind);
  tool_output o = tool_line("devices");
  join_lines(o.out);
  ck_assert_msg(strstr(o.out, "described Stand-in GPU (compute ") != NULL, "%s",
                o.out);
  ck_assert_msg(strstr(o.out, kind->told) != NULL, "no '%s' in: %s", kind->told,
                o.out);
  assert_no_report(kind);
}
