// `tarn conform`: what it writes, and that what is in order passes.
#include <unistd.h>

#include "conform_kit.h"
#include "support/driver.h"

// --- what is in order ------------------------------------------------------

static void assert_names_distinct(const char *json) {
  size_t count = 0;
  for (const char *at = strstr(json, begin); at != NULL; count++) {
    char name[64];
    at += strlen(begin);
    size_t length = strcspn(at, "\"");
    require(length < sizeof name);
    memcpy(name, at, length);
    name[length] = '\0';
    require(find_check(json, name) == count);
    at = strstr(at, begin);
  }
  ck_assert_uint_eq(count, json_size(json, "checks"));
}

static void assert_passed(const char *what, const tool_output *o) {
  ck_assert_msg(o->status == 0, "%s: exit %d: %s%.3000s", what, o->status,
                o->err, o->out);
  ck_assert(json_is(o->out, "failed", "0"));
  ck_assert(json_is(o->out, "quirks", "0"));
}

static void assert_checked(const tool_output *o, const char *device) {
  char keys[256];
  assert_json_line(o->out);
  ck_assert_str_eq(json_keys(o->out, "", keys, sizeof keys),
                   "device,plugin,checks,passed,failed,skipped,quirks,notes,"
                   "copies,allocations");
  ck_assert_str_eq(json_keys(o->out, "checks.0", keys, sizeof keys),
                   "name,result,detail,level");
  ck_assert(is_at(o->out, "device", device));
  ck_assert_uint_ge(json_size(o->out, "checks"), 60);
  ck_assert_double_ge(json_number(o->out, "passed"), 50);
  ck_assert_uint_eq(
      json_size(o->out, "checks"),
      (size_t)(json_number(o->out, "passed") + json_number(o->out, "failed") +
               json_number(o->out, "skipped")));
  assert_names_distinct(o->out);
}

static void assert_measured(const tool_output *o) {
  char keys[256];
  ck_assert_uint_ge(json_size(o->out, "copies"), 12);
  ck_assert_str_eq(json_keys(o->out, "copies.0", keys, sizeof keys),
                   "kind,bytes,gbs");
  ck_assert_double_gt(json_number(o->out, "copies.0.gbs"), 0);
  ck_assert_str_eq(json_keys(o->out, "allocations.0", keys, sizeof keys),
                   "bytes,allocate_us,free_us");
}

static void assert_conforms_and_measures(const char *what, const char *device) {
  tool_output o = tool_run("conform", what, "-o", "json");
  assert_passed(what, &o);
  assert_checked(&o, device);
  assert_measured(&o);
}

static void assert_conforms(const char *what, const char *device) {
  tool_output o = tool_run("conform", what, "--no-measure", "-o", "json");
  assert_passed(what, &o);
  assert_checked(&o, device);
  ck_assert_uint_eq(json_size(o.out, "copies"), 0);
}

FIXTURE(set_up, tear_down);

TEST(cpu_conforms) {
  assert_conforms_and_measures("cpu", "cpu:0");
}

TEST(sim_conforms) {
  assert_conforms_and_measures("sim:1", "sim:1");
}

TEST(cpu_plugin_conforms) {
  assert_conforms(TARN_CPU_PLUGIN, "cpu:0");
}

TEST(sim_plugin_conforms) {
  assert_conforms(TARN_SIM_PLUGIN, "sim:0");
}

// In a run on a real device (support/driver.h) that device, by whatever method
// of memory the environment asks for.
#define REAL_DEVICES (test_is_on_devices(), driver_wanted() != NULL)

TEST_LOOP(the_real_device_conforms, REAL_DEVICES) {
  assert_conforms(driver_wanted(), driver_wanted());
}

TEST(faulty_conforms_without_a_fault) {
  assert_conforms(TARN_FAULTY_PLUGIN, "faulty:0");
}

// The least that the ABI allows: much is skipped, with the stand-in's name. It
// takes any id for its one device, and is told so.
TEST(small_is_told_of_stand_ins) {
  tool_output o =
      tool_ends(0, "conform", TARN_SMALL_PLUGIN, "--no-measure", "-o", "json");
  ck_assert(json_is(o.out, "failed", "0"));
  ck_assert(json_is(o.out, "quirks", "2"));
  ck_assert_uint_eq(json_size(o.out, "copies"), 0);
  assert_level(o.out, "devices.wrong_id_is_not_current", "quirk");
  assert_level(o.out, "devices.wrong_id_has_no_memory", "quirk");
  assert_result(o.out, "memory.set_values", "skip");
  assert_level(o.out, "memory.set_values", "none");
  assert_contains(o.out, "device_memory_set is not provided: Tarn ");
}

// A slot that this one device cannot serve is as good as none.
TEST(unable_is_not_wrong) {
  tool_output o = tool_run("conform", TARN_UNABLE_PLUGIN, "--only",
                           "extension,ranges,sharing,handles,rows",
                           "--no-measure", "-o", "json");
  assert_passed("unable", &o);
  assert_result(o.out, "extension.allocate_aligned_refuses", "skip");
  assert_result(o.out, "ranges.reserve", "skip");
  assert_result(o.out, "sharing.export_refuses", "skip");
  assert_result(o.out, "handles.import_refuses", "skip");
  assert_result(o.out, "rows.bad_index_is_refused", "skip");
  assert_contains(o.out, "gather answered TARN_E_UNSUPPORTED");
}

// --- what is written -------------------------------------------------------

TEST(table_shows_the_code) {
  setenv("TARN_FAULT", "set_too_long", 1);
  tool_output o =
      tool_ends(1, "conform", TARN_FAULTY_PLUGIN, "--only", "memory");
  assert_contains(o.out, "faulty:0 (/");
  assert_contains(o.out, "\nFAIL  memory.set_leaves_the_rest ");
  assert_contains(o.out, "byte 5100 of 8192 is 0xc3, not 0x");
  assert_contains(o.out,
                  "\n        table->device_memory_set(&d, (char *)block "
                  "+ 1001, 0xc3, 4099);\n");
  assert_contains(o.out, "\npass  memory.set_values\n");
  assert_contains(o.out, " passed, 1 failed, ");
  ck_assert_ptr_null(strstr(o.out, "copies"));
}

TEST(table_tells_levels) {
  setenv("TARN_FAULT", "aligned_to_16", 1);
  tool_output o =
      tool_ends(0, "conform", TARN_FAULTY_PLUGIN, "--only", "memory");
  assert_contains(o.out, "\nquirk memory.alignment_of_min_chunk ");
  assert_contains(o.out, "; Tarn promises no alignment that it does not make");
  assert_contains(o.out,
                  "        assert((uintptr_t)block % min_chunk == 0);\n");
  assert_contains(o.out, " 0 failed, ");
  assert_contains(o.out, "; 1 quirk, 0 notes\n");
  o = tool_ends(1, "conform", TARN_FAULTY_PLUGIN, "--only", "memory",
                "--strict");
  assert_contains(o.out, "\nFAIL  memory.alignment_of_min_chunk ");
  assert_contains(o.out, " 1 failed, ");
  setenv("TARN_FAULT", "slots_beyond", 1);
  o = tool_ends(0, "conform", TARN_FAULTY_PLUGIN, "--only", "loading",
                "--strict");
  assert_contains(o.out, "\nnote  loading.nothing_beyond_472 ");
}

static size_t count_of(const char *text, const char *part) {
  size_t count = 0;
  for (; (text = strstr(text, part)) != NULL; text++)
    count++;
  return count;
}

// As far as one can see without a parser: what opens closes, and '<' and '&'
// stand for nothing but themselves.
static void assert_xml(const char *text) {
  ck_assert_int_eq(strncmp(text, "<?xml version=\"1.0\"", 19), 0);
  ck_assert_uint_eq(count_of(text, "<"), count_of(text, ">"));
  ck_assert_uint_eq(count_of(text, "<testsuite "), 1);
  ck_assert_uint_eq(count_of(text, "</testsuite>"), 1);
  ck_assert_uint_eq(count_of(text, "<failure "), count_of(text, "</failure>"));
  ck_assert_uint_eq(count_of(text, "</testcase>"),
                    count_of(text, "<failure ") + count_of(text, "<skipped ") +
                        count_of(text, "<system-out>"));
  for (const char *at = text; (at = strchr(at, '&')) != NULL; at++) {
    require(strncmp(at, "&lt;", 4) == 0 || strncmp(at, "&gt;", 4) == 0 ||
            strncmp(at, "&amp;", 5) == 0 || strncmp(at, "&quot;", 6) == 0);
  }
}

TEST(junit) {
  setenv("TARN_FAULT", "set_too_long", 1);
  tool_output o = tool_ends(1, "conform", TARN_FAULTY_PLUGIN, "--only",
                            "memory,extension.alignment", "-o", "junit");
  assert_xml(o.out);
  assert_contains(o.out,
                  "<testsuite name=\"faulty:0\" tests=\"17\" "
                  "failures=\"1\" errors=\"0\" skipped=\"");
  assert_contains(o.out,
                  "<testcase classname=\"memory\" "
                  "name=\"set_leaves_the_rest\">\n    <failure "
                  "message=\"");
  assert_contains(o.out, " type=\"fault\">");
  assert_contains(o.out, "table-&gt;device_memory_set(&amp;d,");
  assert_contains(o.out,
                  "<skipped message=\"alignment is not in its extension");
}

TEST(junit_tells_levels) {
  setenv("TARN_FAULT", "aligned_to_16", 1);
  tool_output o = tool_ends(0, "conform", TARN_FAULTY_PLUGIN, "--only",
                            "memory", "-o", "junit");
  assert_xml(o.out);
  assert_contains(o.out, " failures=\"0\" ");
  assert_contains(o.out, "\n    <system-out>quirk: a block of ");
  o = tool_ends(1, "conform", TARN_FAULTY_PLUGIN, "--only", "memory",
                "--strict", "-o", "junit");
  assert_xml(o.out);
  assert_contains(o.out, " failures=\"1\" ");
  assert_contains(o.out, " type=\"quirk\">");
}

TEST(list) {
  tool_output o = tool_ended(0, tool_line("conform --list"));
  ck_assert_uint_ge(count_of(o.out, "\n"), 75);
  assert_contains(o.out, "\nmemory.allocate_odd_sizes\n");
}

TEST(in_process) {
  tool_output o = tool_line(
      "conform sim --in-process --only memory,devices,loading.version -o json");
  ck_assert_msg(o.status == 0, "exit %d: %s%s", o.status, o.err, o.out);
  assert_result(o.out, "memory.set_values", "pass");
  assert_result(o.out, "devices.finalize", "pass");
  assert_result(o.out, "loading.version", "pass");
}

TEST(device_of_a_plugin) {
  tool_output o =
      tool_run("conform", "faulty:1", "--plugin", TARN_SMALL_PLUGIN, "--plugin",
               TARN_FAULTY_PLUGIN, "--only", "two_devices", "-o", "json");
  ck_assert_msg(o.status == 0, "exit %d: %s%s", o.status, o.err, o.out);
  ck_assert(is_at(o.out, "device", "faulty:1"));
  ck_assert(json_is(o.out, "failed", "0"));
  o = tool_ends(0, "conform", TARN_FAULTY_PLUGIN, "--device", "faulty:1",
                "--only", "devices.count", "-o", "json");
  ck_assert(is_at(o.out, "device", "faulty:1"));
}

TEST(a_module_by_its_type) {
  const char *path = tool_file("tarn_small.so");
  ck_assert_int_eq(symlink(TARN_SMALL_PLUGIN, path), 0);
  tool_write_file(tool_file("tarn_broken.so"), "broken");
  setenv("TARN_PLUGIN_DIR", tool_file(""), 1);
  tool_output o = tool_ends(0, "conform", "small:0", "--only", "devices.count",
                            "-o", "json");
  ck_assert(is_at(o.out, "device", "small:0"));
  assert_exits(tool_line("conform broken:0"), 1,
               "tarn_broken.so: file too short");
}

TEST(nothing_to_test) {
  assert_exits(tool_line("conform nope"), 1, "no device type is named 'nope'");
  assert_exits(tool_line("conform ./nope.so"), 1, "./nope.so: ");
  assert_exits(tool_line("conform nope.so"), 1, "TARN_PLUGIN_DIR");
  ck_assert_str_eq(tool_ends(1, "conform", TARN_TOOL).out, "");
  assert_exits(tool_run("conform", TARN_NO_PLUGIN), 1, "it has no InitPlugin");
  assert_exits(tool_line("conform cpu:1"), 1, "cpu has no device 1");
  assert_exits(tool_run("conform", "x", "--plugin", TARN_NO_PLUGIN), 1,
               "it has no InitPlugin");
}

// A plug-in that does not return when its type is asked for.
TEST(type_has_its_time) {
  setenv("TARN_FAULT", "load_hangs", 1);
  assert_exits(tool_run("conform", "x", "--plugin", TARN_FAULTY_PLUGIN,
                        "--timeout", "1"),
               1, "did not return within 1 s");
}

TEST(wrong_use) {
  assert_misuse(tool_run("conform"), "which device");
  assert_misused("conform cpu sim", "at a time");
  assert_misused("conform cpu -o csv", "not a format");
  assert_misused("conform cpu --timeout 0", "--timeout");
  assert_misused("conform cpu:x", "whole number");
  assert_misused("conform cpu --device -1", "whole number");
  assert_misused("conform cpu --only memory.set_value",
                 "did you mean 'memory.set_values'?");
  assert_misused("conform cpu --only ,", "names no check");
  assert_misused("conform sim --device cpu:1", "the tested plug-in is sim");
  assert_misuse(tool_run("conform", TARN_FAULTY_PLUGIN, "--device", "sim:1"),
                "the tested plug-in is faulty");
  assert_misused("conform cpu --only mem", "no check");
}
