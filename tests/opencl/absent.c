// A machine without a driver, or with one that is broken: `tarn devices` tells
// in one line why, and from which file the plug-in comes, and is content.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/run.h"
#include "support/tool_run.h"

int main(void) {
  return run_tests();
}

FIXTURE(tool_files_begin, tool_files_end);

static void assert_found_but_unusable(const char *reason) {
  tool_output o = tool_line("devices");
  ck_assert_msg(o.status == 0, "%d: %s", o.status, o.err);
  const char *line = strstr(o.out, "opencl: cannot be used: ");
  ck_assert_msg(line != NULL, "%s", o.out);
  const char *end = strchr(line, '\n');
  ck_assert_ptr_nonnull(strstr(line, TARN_OPENCL_PLUGIN));
  const char *why = strstr(line, reason);
  ck_assert_msg(why != NULL && why < end, "'%s' does not say '%s'", line,
                reason);
}

TEST(no_driver_is_installed) {
  setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
  assert_found_but_unusable("libOpenCL.so.1 has no platform");
}

TEST(a_driver_does_not_load) {
  const char *vendors = tool_file("vendors");
  ck_assert_int_eq(mkdir(vendors, 0755), 0);
  (void)tool_write_file(tool_file("vendors/broken.icd"),
                        "/nonexistent/libdriver.so\n");
  setenv("OCL_ICD_VENDORS", vendors, 1);
  assert_found_but_unusable("libOpenCL.so.1 has no platform");
}

TEST(the_loader_does_not_load) {
  const char *folder = tool_file("loader");
  ck_assert_int_eq(mkdir(folder, 0755), 0);
  (void)tool_write_file(tool_file("loader/libOpenCL.so.1"), "no library\n");
  setenv("LD_LIBRARY_PATH", folder, 1);
  assert_found_but_unusable("libOpenCL.so.1: file too short");
}

TEST(no_device_has_the_name_that_is_asked_for) {
  setenv("TARN_OPENCL", "no such device", 1);
  assert_found_but_unusable("'no such device'");
}
