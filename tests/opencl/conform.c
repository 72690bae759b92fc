// `tarn conform` over the stand-in, for each way in which memory has an address
// and each kind of driver: no check fails, and the stand-in was never used
// wrongly. Nothing here says anything of a driver.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/effort.h"
#include "support/run.h"
#include "support/tool_run.h"

FIXTURE(tool_files_begin, tool_files_end);
SECONDS(600);

typedef struct driver_kind {
  const char *methods;  // METHODS of the stand-in
  const char *setting;  // another one; NULL: none
  const char *value;
  const char *memory;  // TARN_OPENCL_MEMORY; NULL: what is best
  const char *chosen;  // what the plug-in says of its memory
} driver_kind;

// The ways in which memory has an address first: a sanitizer has enough of
// these.
static const driver_kind kinds[] = {
    {"coarse,fine", NULL, NULL, NULL, "device=svm,host=svm,unified=svm"},
    {"coarse", NULL, NULL, NULL, "device=svm,host=mapped,unified=none"},
    {"none", NULL, NULL, NULL, "device=window,host=mapped,unified=none"},
    {"usm", NULL, NULL, NULL, "device=usm,host=usm,unified=usm"},
    {"address", NULL, NULL, NULL, "device=address,host=mapped,unified=none"},
    {"fine,address", NULL, NULL, "device=address",
     "device=address,host=svm,unified=svm"},
    {"coarse,fine", "PLAIN_HOST", "0", NULL, "device=svm,host=svm,unified=svm"},
    {"usm,coarse,fine", NULL, NULL, "device=usm,host=svm,unified=svm",
     "device=usm,host=svm,unified=svm"},
    {"usm,coarse,fine", NULL, NULL, "device=svm,host=usm,unified=usm",
     "device=svm,host=usm,unified=usm"},
    {"usm,coarse,fine", "PLAIN_HOST", "0", "device=svm,host=usm,unified=usm",
     "device=svm,host=usm,unified=usm"},
    {"usm", "PLAIN_HOST", "0", NULL, "device=usm,host=usm,unified=usm"},
    {"coarse", "PLAIN_HOST", "0", NULL, "device=svm,host=mapped,unified=none"},
    {"coarse,fine", "DEVICE_TYPES", "accelerator", NULL,
     "device=svm,host=svm,unified=svm"},
    {"coarse,fine", "PLATFORMS", "2", NULL, "device=svm,host=svm,unified=svm"},
    {"none", "PLATFORMS", "2", NULL, "device=window,host=mapped,unified=none"},
    {"coarse,fine", "DEVICES", "2", NULL, "device=svm,host=svm,unified=svm"},
    {"none", "DEVICES", "2", NULL, "device=window,host=mapped,unified=none"},
    {"address", "DEVICES", "2", NULL,
     "device=address,host=mapped,unified=none"},
    {"coarse,fine", "VERSION", "1.2", NULL,
     "device=window,host=mapped,unified=none"},
    {"coarse,fine", "LAZY", "1", NULL, "device=svm,host=svm,unified=svm"},
    {"none", "LAZY", "1", NULL, "device=window,host=mapped,unified=none"},
    {"usm", "LAZY", "1", NULL, "device=usm,host=usm,unified=usm"},
    {"coarse,fine", "BASE_ALIGN", "16", NULL,
     "device=svm,host=svm,unified=svm"},
};
enum { ALL = sizeof kinds / sizeof *kinds, SOME = 6 };

static void set(const char *name, const char *value) {
  char whole[64];
  snprintf(whole, sizeof whole, "TARN_STANDIN_%s", name);
  ck_assert_int_eq(setenv(whole, value, 1), 0);
}

// The folder of the stand-in is where the tool looks for a loader first.
static void set_up(const driver_kind *kind) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%s", TARN_STANDIN);
  char *slash = strrchr(folder, '/');
  ck_assert_ptr_nonnull(slash);
  *slash = '\0';
  ck_assert_int_eq(setenv("LD_LIBRARY_PATH", folder, 1), 0);
  set("METHODS", kind->methods);
  set("KERNELS", TARN_STANDIN_ROWS);
  set("REPORT", tool_file("report"));
  if (kind->setting != NULL) set(kind->setting, kind->value);
  if (kind->memory != NULL)
    ck_assert_int_eq(setenv("TARN_OPENCL_MEMORY", kind->memory, 1), 0);
}

static const char *text_of(const char *text) {
  return text != NULL ? text : "";
}

TEST_LOOP(no_check_fails, EFFORT(ALL, SOME)) {
  const driver_kind *kind = &kinds[_i];
  set_up(kind);
  tool_output o = tool_line("conform opencl:0 --no-measure");
  ck_assert_msg(o.status == 0, "%s %s=%s %s: %s%s", kind->methods,
                text_of(kind->setting), text_of(kind->value),
                text_of(kind->memory), o.out, o.err);
  ck_assert_msg(strstr(o.out, " 0 failed, ") != NULL, "%s", o.out);
  ck_assert_msg(strstr(o.out, "pass  rows.") != NULL, "%s", o.out);
  const char *report = tool_read_file(tool_file("report"));
  ck_assert_msg(report == NULL, "%s: %s", kind->methods, text_of(report));
}

TEST_LOOP(the_tool_says_how_memory_is_had, EFFORT(ALL, SOME)) {
  const driver_kind *kind = &kinds[_i];
  set_up(kind);
  tool_output o = tool_line("devices");
  ck_assert_msg(strstr(o.out, kind->chosen) != NULL, "no '%s' in: %s",
                kind->chosen, o.out);
  ck_assert_ptr_null(tool_read_file(tool_file("report")));
}
