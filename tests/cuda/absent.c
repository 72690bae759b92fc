// A machine without a driver, with one that is broken, or with one that has no
// device: `tarn devices` tells in one line why, and from which file the plug-in
// comes, and is content.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/run.h"
#include "support/tool_run.h"

FIXTURE(tool_files_begin, tool_files_end);

static void assert_unusable(const char *reason) {
  tool_output o = tool_line("devices");
  ck_assert_msg(o.status == 0, "%d: %s", o.status, o.err);
  char *line = strstr(o.out, "cuda: cannot be used: ");
  ck_assert_msg(line != NULL, "%s", o.out);
  line[strcspn(line, "\n")] = '\0';
  ck_assert_msg(strstr(line, TARN_CUDA_PLUGIN) != NULL, "%s", line);
  ck_assert_msg(strstr(line, reason) != NULL, "'%s' does not say '%s'", line,
                reason);
}

// The folder is where the tool looks for a driver first.
static void look_in(const char *folder) {
  ck_assert_int_eq(setenv("LD_LIBRARY_PATH", folder, 1), 0);
}

static void look_beside(const char *library) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%s", library);
  char *slash = strrchr(folder, '/');
  ck_assert_ptr_nonnull(slash);
  *slash = '\0';
  look_in(folder);
}

TEST(no_driver_is_installed) {
  if (dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != NULL)
    note_skipped("a machine without a driver", "libcuda.so.1 is installed");
  else
    assert_unusable("libcuda.so.1: cannot open shared object file");
}

TEST(the_library_does_not_load) {
  const char *folder = tool_file("driver");
  ck_assert_int_eq(mkdir(folder, 0755), 0);
  (void)tool_write_file(tool_file("driver/libcuda.so.1"), "no library\n");
  look_in(folder);
  assert_unusable("libcuda.so.1: file too short");
}

TEST(the_library_lacks_a_function) {
  look_beside(TARN_STANDIN_LACKING);
  assert_unusable("cuMemsetD8Async");
}

TEST(there_is_no_device) {
  look_beside(TARN_STANDIN);
  setenv("TARN_STANDIN_DEVICES", "0", 1);
  assert_unusable("cuInit: CUDA_ERROR_NO_DEVICE (100): no device is detected");
}

TEST(the_driver_does_not_start) {
  look_beside(TARN_STANDIN);
  setenv("TARN_STANDIN_INIT_FAILS", "999", 1);
  assert_unusable("cuInit: CUDA_ERROR_UNKNOWN (999)");
}

// Each in turn, whichever the plug-in asks first.
static const char *const functions[] = {"cuDeviceGetCount", "cuDeviceGet",
                                        "cuDeviceTotalMem_v2"};

TEST_LOOP(the_driver_does_not_tell_of_its_devices,
          sizeof functions / sizeof *functions) {
  char text[64];
  look_beside(TARN_STANDIN);
  snprintf(text, sizeof text, "%s:1:999+", functions[_i]);
  setenv("TARN_STANDIN_FAIL_CALL", text, 1);
  assert_unusable("CUDA_ERROR_UNKNOWN (999)");
}
