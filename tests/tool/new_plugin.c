// `tarn new-plugin`: what it writes compiles and conforms, and it overwrites
// nothing.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

// Under the address sanitizer, the allocator of a plug-in that uses the C
// library's would end the process where it should refuse.
static void set_up(void) {
  tool_files_begin();
  const char *before = getenv("ASAN_OPTIONS");
  char options[512];
  snprintf(options, sizeof options, "%s%sallocator_may_return_null=1",
           before != NULL ? before : "", before != NULL ? ":" : "");
  setenv("ASAN_OPTIONS", options, 1);
}

static void tear_down(void) {
  tool_files_end();
}

static bool has_compiler(void) {
  return system("cc --version >/dev/null 2>&1") == 0;
}

static void compile(const char *source, const char *object) {
  char command[2048];
  snprintf(command, sizeof command,
           "cc -std=c11 -Wall -Wextra -Wpedantic -Wconversion -Werror -shared "
           "-fPIC -I'%s' '%s' -o '%s'",
           TARN_INCLUDE, source, object);
  ck_assert_msg(system(command) == 0, "%s", command);
}

FIXTURE(set_up, tear_down);

TEST(new_plugin_conforms) {
  const char *source = tool_file("my-npu.2_plugin.c");
  const char *object = tool_file("libmy.so");
  tool_output o = tool_ends(0, "new-plugin", "my-npu.2", "--out", source);
  assert_contains(o.out, "cc -shared -fPIC $(pkg-config --cflags tarn) /");
  assert_contains(o.out, "\ntarn conform ./libmy-npu.2.so\n");
  if (!has_compiler()) {
    note_skipped("new_plugin_conforms", "no C compiler");
    return;
  }
  compile(source, object);
  o = tool_run("conform", object, "-o", "json");
  ck_assert_msg(o.status == 0, "exit %d: %s%s", o.status, o.err, o.out);
  ck_assert(json_is(o.out, "device", "\"my-npu.2:0\""));
  ck_assert(json_is(o.out, "failed", "0"));
  ck_assert_double_ge(json_number(o.out, "passed"), 50);
}

TEST(new_plugin_overwrites_nothing) {
  const char *path = tool_write_file(tool_file("x.c"), "mine");
  assert_exits(tool_run("new-plugin", "x", "--out", path), 1, "stays as it is");
  char *text = tool_read_file(path);
  ck_assert_str_eq(text, "mine");
  assert_exits(tool_line("new-plugin x --out /nowhere/x.c"), 1,
               "/nowhere/x.c: ");
}

TEST(new_plugin_writes_beside) {
  char here[512];
  ck_assert_ptr_nonnull(getcwd(here, sizeof here));
  ck_assert_int_eq(chdir(tool_file("")), 0);
  tool_output o = tool_ended(0, tool_line("new-plugin npu"));
  ck_assert_str_eq(o.out,
                   "cc -shared -fPIC $(pkg-config --cflags tarn) npu_plugin.c "
                   "-o libnpu.so\ntarn conform ./libnpu.so\n");
  char *text = tool_read_file("npu_plugin.c");
  ck_assert_ptr_nonnull(text);
  ck_assert_ptr_null(strchr(text, '@'));
  assert_contains(text, "static char type[] = \"npu\";");
  ck_assert_int_eq(chdir(here), 0);
}

TEST(new_plugin_wrong_use) {
  assert_misuse(tool_run("new-plugin"), "called?");
  assert_misused("new-plugin a b", "at a time");
  assert_misused("new-plugin a/b", "no device type");
  assert_misused("new-plugin 1a", "no device type");
  assert_misuse(tool_run("new-plugin", ""), "no device type");
  assert_misused("new-plugin a -o json", "-o");
  assert_misused(
      "new-plugin "
      "a123456789012345678901234567890123456789012345678901234567890123",
      "no device type");
}
