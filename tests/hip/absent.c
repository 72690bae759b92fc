// A machine without HIP, without a device of it, or with a library that is not
// HIP's: `tarn devices` tells in one line why, and from which file the plug-in
// comes, and is content.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/run.h"
#include "support/tool_run.h"

FIXTURE(tool_files_begin, tool_files_end);

static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6",
                                    "libamdhip64.so.5", "libamdhip64.so"};
enum { NAMES = sizeof names / sizeof *names };

// The line about the plug-in; NULL: it has a device.
static char *line_of_tool(void) {
  tool_output o = tool_line("devices");
  ck_assert_msg(o.status == 0, "%d: %s", o.status, o.err);
  char *line = strstr(o.out, "hip: cannot be used: ");
  if (line == NULL) return NULL;
  line[strcspn(line, "\n")] = '\0';
  ck_assert_msg(strstr(line, TARN_HIP_PLUGIN) != NULL, "%s", line);
  return line;
}

static void assert_unusable(const char *reason) {
  const char *line = line_of_tool();
  ck_assert_ptr_nonnull(line);
  ck_assert_msg(strstr(line, reason) != NULL, "'%s' does not say '%s'", line,
                reason);
}

// The tool looks in this folder first.
static const char *library_folder(void) {
  const char *folder = tool_file("hip");
  ck_assert_int_eq(mkdir(folder, 0755), 0);
  ck_assert_int_eq(setenv("LD_LIBRARY_PATH", folder, 1), 0);
  return folder;
}

static const char *library_file(int i) {
  char name[64];
  snprintf(name, sizeof name, "hip/%s", names[i]);
  return tool_file(name);
}

static bool is_installed(void) {
  for (int i = 0; i < NAMES; i++)
    if (dlopen(names[i], RTLD_LAZY | RTLD_LOCAL) != NULL) return true;
  return false;
}

TEST(the_library_is_not_installed) {
  if (is_installed())
    note_skipped("a machine without HIP", "libamdhip64.so is installed");
  else
    assert_unusable("libamdhip64.so.7: cannot open shared object file");
}

TEST(there_is_no_device) {
  if (!is_installed()) {
    note_skipped("HIP without a device", "libamdhip64.so is not installed");
    return;
  }
  const char *line = line_of_tool();
  if (line == NULL)
    note_skipped("HIP without a device", "there is one");
  else
    ck_assert_msg(strstr(line, "hipInit: hipError") != NULL, "%s", line);
}

TEST(the_library_does_not_load) {
  (void)library_folder();
  for (int i = 0; i < NAMES; i++)
    (void)tool_write_file(library_file(i), "no library\n");
  assert_unusable("libamdhip64.so.7: file too short");
}

TEST(the_library_is_not_hips) {
  (void)library_folder();
  ck_assert_int_eq(symlink(TARN_NO_HIP, library_file(0)), 0);
  assert_unusable("libamdhip64.so: it has no hipInit");
}
