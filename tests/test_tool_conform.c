// `tarn conform`: what it writes, that what is in order passes, and that each
// fault is found by the check that is named for it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

static void assert_no(tool_output o, const char *part) {
  ck_assert_msg(o.status == 1, "exit %d: %s", o.status, o.err);
  ck_assert_str_eq(o.out, "");
  assert_contains(o.err, part);
  tool_output_free(&o);
}

// Under the address sanitizer, the allocator of a plug-in that uses the C
// library's would end the process where it should refuse.
static void set_up(void) {
  tool_files_begin();
  const char *before = getenv("ASAN_OPTIONS");
  char options[512];
  snprintf(options, sizeof options, "%s%sallocator_may_return_null=1",
           before != NULL ? before : "", before != NULL ? ":" : "");
  setenv("ASAN_OPTIONS", options, 1);
  unsetenv("TARN_FAULT");
}

static void tear_down(void) {
  tool_files_end();
}

// --- what is in order ------------------------------------------------------

static bool is_at(const char *json, const char *path, const char *value) {
  char quoted[256];
  snprintf(quoted, sizeof quoted, "\"%s\"", value);
  return json_is(json, path, quoted);
}

static const char begin[] = "{\"name\":\"";  // of each check

// Where the check |name| is among the checks; fails if it is not there. By the
// text alone: walking the document for each of 170 checks takes minutes.
static size_t find_check(const char *json, const char *name) {
  size_t index = 0;
  size_t length = strlen(name);
  for (const char *at = strstr(json, begin); at != NULL; index++) {
    at += strlen(begin);
    if (strncmp(at, name, length) == 0 && at[length] == '"') return index;
    at = strstr(at, begin);
  }
  ck_abort_msg("no check %s", name);
  return 0;
}

static void assert_level(const char *json, const char *name,
                         const char *level) {
  char path[64];
  snprintf(path, sizeof path, "checks.%zu.level", find_check(json, name));
  ck_assert_msg(is_at(json, path, level), "%s: %.40s, not %s", name,
                json_at(json, path), level);
}

static void assert_result(const char *json, const char *name,
                          const char *result) {
  char path[64];
  char detail[64];
  size_t index = find_check(json, name);
  snprintf(path, sizeof path, "checks.%zu.result", index);
  snprintf(detail, sizeof detail, "checks.%zu.detail", index);
  const char *text = json_at(json, detail);
  ck_assert_msg(is_at(json, path, result), "%s is not '%s': %.200s", name,
                result, text);
}

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
  ck_assert(json_valid(o->out));
  ck_assert_ptr_eq(strchr(o->out, '\n'), o->out + strlen(o->out) - 1);
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
  tool_output_free(&o);
}

static void assert_conforms(const char *what, const char *device) {
  tool_output o = tool_run("conform", what, "--no-measure", "-o", "json");
  assert_passed(what, &o);
  assert_checked(&o, device);
  ck_assert_uint_eq(json_size(o.out, "copies"), 0);
  tool_output_free(&o);
}

START_TEST(cpu_conforms) {
  assert_conforms_and_measures("cpu", "cpu:0");
}
END_TEST

START_TEST(sim_conforms) {
  assert_conforms_and_measures("sim:1", "sim:1");
}
END_TEST

START_TEST(cpu_plugin_conforms) {
  assert_conforms(TARN_CPU_PLUGIN, "cpu:0");
}
END_TEST

START_TEST(sim_plugin_conforms) {
  assert_conforms(TARN_SIM_PLUGIN, "sim:0");
}
END_TEST

START_TEST(faulty_conforms_without_a_fault) {
  assert_conforms(TARN_FAULTY_PLUGIN, "faulty:0");
}
END_TEST

// The least that the ABI allows: much is skipped, with the stand-in's name. It
// takes any id for its one device, and is told so.
START_TEST(small_is_told_of_stand_ins) {
  tool_output o =
      tool_run("conform", TARN_SMALL_PLUGIN, "--no-measure", "-o", "json");
  ck_assert_int_eq(o.status, 0);
  ck_assert(json_is(o.out, "failed", "0"));
  ck_assert(json_is(o.out, "quirks", "2"));
  ck_assert_uint_eq(json_size(o.out, "copies"), 0);
  assert_level(o.out, "devices.wrong_id_is_not_current", "quirk");
  assert_level(o.out, "devices.wrong_id_has_no_memory", "quirk");
  assert_result(o.out, "memory.set_values", "skip");
  assert_level(o.out, "memory.set_values", "none");
  assert_contains(o.out, "device_memory_set is not provided: Tarn ");
  tool_output_free(&o);
}
END_TEST

// A slot that this one device cannot serve is as good as none.
START_TEST(unable_is_not_wrong) {
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
  tool_output_free(&o);
}
END_TEST

// --- faults ----------------------------------------------------------------

static const struct {
  const char *fault;
  const char *check;
  const char *says;  // in the detail
  const char *level;
} faults[] = {
    {"load_dies", "loading.accepted", "crashed: SIGABRT", "fault"},
    {"no_type", "loading.accepted", "names no device type", "fault"},
    {"half_of_streams", "loading.accepted", "destroy_stream", "fault"},
    {"table_overrun", "loading.table_of_912_bytes", "byte 912 of a table",
     "quirk"},
    {"size_cleared", "loading.size_kept", "is 0 after", "quirk"},
    {"slots_beyond", "loading.nothing_beyond_472", "from byte 496", "note"},
    {"slots_reserved", "loading.reserved_slots", "reserved_mem_api[1]",
     "quirk"},
    {"version_wrong", "loading.version", "0.2.1, not 0.1.1", "quirk"},
    {"type_differs", "loading.device_type", "'other' in a table of 912",
     "fault"},
    {"initialize_fails", "devices.initialize",
     "initialize answered C_INTERNAL_ERROR", "fault"},
    {"initialize_dies", "devices.initialize", "crashed: SIGABRT", "fault"},
    {"no_devices", "devices.initialize", "get_device_count says 0", "fault"},
    {"list_repeats", "devices.list_distinct", "says 0 twice", "fault"},
    {"list_too_long", "devices.list_bounds", "wrote [2]", "quirk"},
    {"any_id", "devices.wrong_id_is_not_current", "no such device", "quirk"},
    {"any_id", "devices.wrong_id_has_no_memory", "does not exist", "quirk"},
    {"finalize_fails", "devices.finalize", "C_ERROR, not C_SUCCESS", "fault"},
    {"no_total", "statistics.total", "0 bytes", "fault"},
    {"free_above_total", "statistics.free_within_total", "are free", "quirk"},
    {"total_shrinks", "statistics.total_constant", "in use", "fault"},
    {"stats_stand_still", "statistics.free_falls", "does not fall", "fault"},
    {"never_free", "statistics.free_rises", "does not rise", "fault"},
    {"min_chunk_0", "sizes.min_chunk", "is 0", "quirk"},
    {"min_chunk_odd", "sizes.min_chunk", "48, no power of two", "quirk"},
    {"max_alloc_above_total", "sizes.max_alloc", "bytes in all", "fault"},
    {"padding_huge", "sizes.padding", "1073741824", "fault"},
    {"misaligned", "memory.alignment_of_16", "no multiple of 16", "quirk"},
    {"aligned_to_16", "memory.alignment_of_min_chunk", "no multiple of 256",
     "quirk"},
    {"one_block_for_all", "memory.blocks_are_distinct", "blocks overlap",
     "fault"},
    {"one_block_for_all", "memory.contents_are_kept", "not 0x", "fault"},
    {"never_free", "memory.nothing_leaks", "C_FAILED, not C_SUCCESS", "fault"},
    {"free_fails", "memory.allocate_one_byte", "C_ERROR, not C_SUCCESS",
     "fault"},
    {"set_value_wrong", "memory.set_values", "is 0x00, not 0x80", "fault"},
    {"set_too_long", "memory.set_leaves_the_rest", "byte 5100 of 8192",
     "fault"},
    {"host_memory_null", "host_memory.odd_sizes", "set no pointer", "fault"},
    {"h2d_too_short", "copies.h2d_odd_lengths", "byte 0 of 8192", "fault"},
    {"d2h_too_long", "copies.d2h_at_offsets", "memory_copy_d2h of 100 bytes",
     "fault"},
    {"d2d_whole_words", "copies.d2d_odd_lengths", "memory_copy_d2d of 1 byte",
     "fault"},
    {"d2d_dies", "copies.d2d_within_a_block", "crashed: SIGABRT", "fault"},
    {"p2p_does_nothing", "two_devices.p2p_at_offsets", "memory_copy_p2p of",
     "fault"},
    {"p2p_does_nothing", "two_devices.p2p_the_other_way", "memory_copy_p2p of",
     "fault"},
    {"devices_share", "two_devices.separate_memory", "one device: byte",
     "fault"},
    {"current_decides", "two_devices.current_per_thread",
     "took memory of device 1, which was current", "fault"},
    {"size_fails", "sizes.max_alloc", "answered C_ERROR", "quirk"},
    {"current_is_global", "two_devices.current_per_thread", "in between",
     "quirk"},
    {"memory_in_common", "two_devices.current_per_thread", "in between",
     "quirk"},
    {"another_process", "two_devices.current_per_thread", "in between",
     "quirk"},
    {"synchronize_hangs", "streams.synchronize_idle",
     "did not return within 1 s", "fault"},
    {"synchronize_does_nothing", "queued.h2d_odd_lengths", "async_memory_copy",
     "fault"},
    {"query_says_yes", "streams.query_says_when_done", "byte 0 of", "fault"},
    {"destroy_drops_work", "streams.destroy_with_work", "byte 0 of", "fault"},
    {"callback_never", "streams.callback_is_called_once", "5 s after", "fault"},
    {"callback_twice", "streams.callback_is_called_once", "called 2 times",
     "fault"},
    {"callback_early", "streams.callback_runs_behind_work", "not yet the copy",
     "fault"},
    {"callback_status_wrong", "streams.callback_is_told_the_status", "C_FAILED",
     "fault"},
    {"queued_too_short", "queued.d2d_odd_lengths", "async_memory_copy_d2d of",
     "fault"},
    {"order_broken", "queued.run_in_order", "chain of 32", "fault"},
    {"order_broken", "queued.overwrite_in_order", "16 times", "fault"},
    {"event_never_happens", "events.query_after", "C_WARNING", "fault"},
    {"event_is_not_awaited", "events.synchronize", "byte 0 of", "fault"},
    {"event_unrecorded_fails", "events.synchronize_unrecorded", "C_ERROR",
     "fault"},
    {"wait_is_ignored", "events.wait_across_streams", "byte 0 of", "fault"},
    {"full_exits", "exhaustion.absurd_sizes", "ended the process with status 3",
     "fault"},
    {"full_is_internal", "exhaustion.more_than_total", "C_INTERNAL_ERROR",
     "fault"},
    {"promises_all", "exhaustion.until_full", "of 8388608 bytes", "fault"},
    {"never_free", "exhaustion.all_comes_back", "the second time", "fault"},
    {"import_is_a_copy", "handles.export_and_import",
     "memory, written by who imported", "fault"},
    {"import_takes_anything", "handles.import_refuses",
     "a handle of zeros is answered TARN_OK", "fault"},
    {"import_keeps_output", "handles.import_refuses", "0x1000 after a refusal",
     "fault"},
};
enum { FAULTS = sizeof faults / sizeof faults[0] };

static tool_output run_fault(size_t index, const char *format, bool strict) {
  setenv("TARN_FAULT", faults[index].fault, 1);
  return tool_run("conform", TARN_FAULTY_PLUGIN, "--only", faults[index].check,
                  "--timeout", strstr(faults[index].says, " 1 s") ? "1" : "60",
                  "-o", format, strict ? "--strict" : NULL);
}

// Faults fail a run, quirks a strict one; a note does neither.
static bool is_failure(size_t index, bool strict) {
  const char *level = faults[index].level;
  return strcmp(level, "fault") == 0 || (strict && strcmp(level, "quirk") == 0);
}

static void assert_found(size_t i, bool strict) {
  const char *check = faults[i].check;
  char path[64];
  tool_output o = run_fault(i, "json", strict);
  ck_assert_msg(o.status == (is_failure(i, strict) ? 1 : 0),
                "%s: exit %d: %s%s", faults[i].fault, o.status, o.err, o.out);
  assert_result(o.out, check, is_failure(i, strict) ? "fail" : "pass");
  assert_level(o.out, check, faults[i].level);
  ck_assert_msg(strstr(o.out, faults[i].says) != NULL, "%s: '%s' is not in %s",
                faults[i].fault, faults[i].says, o.out);
  if (strcmp(faults[i].level, "note") != 0) {
    snprintf(path, sizeof path, "checks.%zu.code", find_check(o.out, check));
    const char *code = json_at(o.out, path);
    ck_assert_ptr_nonnull(code);
    ck_assert_int_gt((int)strcspn(code + 1, "\""), 20);
  }
  tool_output_free(&o);
}

START_TEST(each_fault_is_found) {
  assert_found((size_t)_i, false);
  if (!is_failure((size_t)_i, false)) assert_found((size_t)_i, true);
}
END_TEST

// A child that has died takes no other check with it.
START_TEST(goes_on_after_a_crash) {
  setenv("TARN_FAULT", "d2d_dies", 1);
  tool_output o =
      tool_run("conform", TARN_FAULTY_PLUGIN, "--no-measure", "-o", "json");
  ck_assert_int_eq(o.status, 1);
  assert_result(o.out, "copies.d2d_odd_lengths", "fail");
  assert_result(o.out, "copies.d2d_large", "fail");
  assert_result(o.out, "copies.h2d_odd_lengths", "pass");
  assert_result(o.out, "copies.the_last_one_counts", "pass");
  assert_result(o.out, "exhaustion.all_comes_back", "pass");
  tool_output_free(&o);
}
END_TEST

START_TEST(what_is_not_loaded_is_not_checked) {
  setenv("TARN_FAULT", "no_type", 1);
  tool_output o = tool_run("conform", TARN_FAULTY_PLUGIN, "-o", "json");
  ck_assert_int_eq(o.status, 1);
  ck_assert(json_is(o.out, "failed", "1"));
  ck_assert(json_is(o.out, "passed", "0"));
  assert_result(o.out, "loading.accepted", "fail");
  assert_result(o.out, "copies.d2d_odd_lengths", "skip");
  assert_contains(o.out, "\"detail\":\"not loaded\"");
  tool_output_free(&o);
  setenv("TARN_FAULT", "initialize_dies", 1);
  o = tool_run("conform", TARN_FAULTY_PLUGIN, "-o", "json");
  ck_assert_int_eq(o.status, 1);
  ck_assert(json_is(o.out, "failed", "1"));
  assert_result(o.out, "loading.version", "pass");
  assert_contains(o.out, "\"detail\":\"not initialised\"");
  tool_output_free(&o);
}
END_TEST

// "Full" as C_SUCCESS with a NULL pointer is an answer like any other.
START_TEST(full_may_be_null) {
  setenv("TARN_FAULT", "full_is_null", 1);
  tool_output o = tool_run("conform", TARN_FAULTY_PLUGIN, "--only",
                           "exhaustion", "-o", "json");
  ck_assert_msg(o.status == 0, "exit %d: %s%s", o.status, o.err, o.out);
  ck_assert(json_is(o.out, "passed", "6"));
  tool_output_free(&o);
}
END_TEST

// Others hold memory of the same device: that is no fault of the plug-in.
START_TEST(others_hold_memory) {
  setenv("TARN_FAULT", "mostly_taken", 1);
  tool_output o = tool_run("conform", TARN_FAULTY_PLUGIN, "--only",
                           "exhaustion", "-o", "json");
  ck_assert_msg(o.status == 0, "exit %d: %s%s", o.status, o.err, o.out);
  ck_assert(json_is(o.out, "passed", "6"));
  tool_output_free(&o);
}
END_TEST

// --- what is written -------------------------------------------------------

START_TEST(table_shows_the_code) {
  setenv("TARN_FAULT", "set_too_long", 1);
  tool_output o = tool_run("conform", TARN_FAULTY_PLUGIN, "--only", "memory");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.out, "faulty:0 (/");
  assert_contains(o.out, "\nFAIL  memory.set_leaves_the_rest ");
  assert_contains(o.out, "byte 5100 of 8192 is 0xc3, not 0x");
  assert_contains(o.out,
                  "\n        table->device_memory_set(&d, (char *)block "
                  "+ 1001, 0xc3, 4099);\n");
  assert_contains(o.out, "\npass  memory.set_values\n");
  assert_contains(o.out, " passed, 1 failed, ");
  ck_assert_ptr_null(strstr(o.out, "copies"));
  tool_output_free(&o);
}
END_TEST

START_TEST(table_tells_levels) {
  setenv("TARN_FAULT", "aligned_to_16", 1);
  tool_output o = tool_run("conform", TARN_FAULTY_PLUGIN, "--only", "memory");
  ck_assert_int_eq(o.status, 0);
  assert_contains(o.out, "\nquirk memory.alignment_of_min_chunk ");
  assert_contains(o.out, "; Tarn promises no alignment that it does not make");
  assert_contains(o.out,
                  "        assert((uintptr_t)block % min_chunk == 0);\n");
  assert_contains(o.out, " 0 failed, ");
  assert_contains(o.out, "; 1 quirk, 0 notes\n");
  tool_output_free(&o);
  o = tool_run("conform", TARN_FAULTY_PLUGIN, "--only", "memory", "--strict");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.out, "\nFAIL  memory.alignment_of_min_chunk ");
  assert_contains(o.out, " 1 failed, ");
  tool_output_free(&o);
  setenv("TARN_FAULT", "slots_beyond", 1);
  o = tool_run("conform", TARN_FAULTY_PLUGIN, "--only", "loading", "--strict");
  ck_assert_int_eq(o.status, 0);
  assert_contains(o.out, "\nnote  loading.nothing_beyond_472 ");
  tool_output_free(&o);
}
END_TEST

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

START_TEST(junit) {
  setenv("TARN_FAULT", "set_too_long", 1);
  tool_output o = tool_run("conform", TARN_FAULTY_PLUGIN, "--only",
                           "memory,extension.alignment", "-o", "junit");
  ck_assert_int_eq(o.status, 1);
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
  tool_output_free(&o);
}
END_TEST

START_TEST(junit_tells_levels) {
  setenv("TARN_FAULT", "aligned_to_16", 1);
  tool_output o = tool_run("conform", TARN_FAULTY_PLUGIN, "--only", "memory",
                           "-o", "junit");
  ck_assert_int_eq(o.status, 0);
  assert_xml(o.out);
  assert_contains(o.out, " failures=\"0\" ");
  assert_contains(o.out, "\n    <system-out>quirk: a block of ");
  tool_output_free(&o);
  o = tool_run("conform", TARN_FAULTY_PLUGIN, "--only", "memory", "--strict",
               "-o", "junit");
  ck_assert_int_eq(o.status, 1);
  assert_xml(o.out);
  assert_contains(o.out, " failures=\"1\" ");
  assert_contains(o.out, " type=\"quirk\">");
  tool_output_free(&o);
}
END_TEST

START_TEST(list) {
  tool_output o = tool_run("conform", "--list");
  ck_assert_int_eq(o.status, 0);
  ck_assert_uint_ge(count_of(o.out, "\n"), 75);
  assert_contains(o.out, "\nmemory.allocate_odd_sizes\n");
  tool_output_free(&o);
}
END_TEST

START_TEST(in_process) {
  tool_output o = tool_run("conform", "sim", "--in-process", "--only",
                           "memory,devices,loading.version", "-o", "json");
  ck_assert_msg(o.status == 0, "exit %d: %s%s", o.status, o.err, o.out);
  assert_result(o.out, "memory.set_values", "pass");
  assert_result(o.out, "devices.finalize", "pass");
  assert_result(o.out, "loading.version", "pass");
  tool_output_free(&o);
}
END_TEST

START_TEST(device_of_a_plugin) {
  tool_output o =
      tool_run("conform", "faulty:1", "--plugin", TARN_SMALL_PLUGIN, "--plugin",
               TARN_FAULTY_PLUGIN, "--only", "two_devices", "-o", "json");
  ck_assert_msg(o.status == 0, "exit %d: %s%s", o.status, o.err, o.out);
  ck_assert(is_at(o.out, "device", "faulty:1"));
  ck_assert(json_is(o.out, "failed", "0"));
  tool_output_free(&o);
  o = tool_run("conform", TARN_FAULTY_PLUGIN, "--device", "faulty:1", "--only",
               "devices.count", "-o", "json");
  ck_assert_int_eq(o.status, 0);
  ck_assert(is_at(o.out, "device", "faulty:1"));
  tool_output_free(&o);
}
END_TEST

START_TEST(nothing_to_test) {
  assert_no(tool_run("conform", "nope"), "no device type is named 'nope'");
  assert_no(tool_run("conform", "./nope.so"), "./nope.so: ");
  assert_no(tool_run("conform", "nope.so"), "TARN_PLUGIN_DIR");
  assert_no(tool_run("conform", TARN_TOOL), "");
  assert_no(tool_run("conform", TARN_NO_PLUGIN), "it has no InitPlugin");
  assert_no(tool_run("conform", "cpu:1"), "cpu has no device 1");
  assert_no(tool_run("conform", "x", "--plugin", TARN_NO_PLUGIN),
            "it has no InitPlugin");
}
END_TEST

// A plug-in that does not return when its type is asked for.
START_TEST(type_has_its_time) {
  setenv("TARN_FAULT", "load_hangs", 1);
  assert_no(tool_run("conform", "x", "--plugin", TARN_FAULTY_PLUGIN,
                     "--timeout", "1"),
            "did not return within 1 s");
}
END_TEST

START_TEST(wrong_use) {
  assert_misuse(tool_run("conform"), "which device");
  assert_misuse(tool_run("conform", "cpu", "sim"), "at a time");
  assert_misuse(tool_run("conform", "cpu", "-o", "csv"), "no output");
  assert_misuse(tool_run("conform", "cpu", "--timeout", "0"), "--timeout");
  assert_misuse(tool_run("conform", "cpu:x"), "whole number");
  assert_misuse(tool_run("conform", "cpu", "--device", "-1"), "whole number");
  assert_misuse(tool_run("conform", "cpu", "--only", "memory.set_value"),
                "did you mean 'memory.set_values'?");
  assert_misuse(tool_run("conform", "cpu", "--only", ","), "names no check");
  assert_misuse(tool_run("conform", "sim", "--device", "cpu:1"),
                "what is tested is sim");
  assert_misuse(tool_run("conform", TARN_FAULTY_PLUGIN, "--device", "sim:1"),
                "what is tested is faulty");
  assert_misuse(tool_run("conform", "cpu", "--only", "mem"), "no check");
}
END_TEST

// ---------------------------------------------------------------------------

static void add_fixture_case(Suite *suite, const char *name,
                             const TTest *const *tests, size_t count) {
  TCase *tcase = tcase_create(name);
  tcase_set_timeout(tcase, 240);
  tcase_add_checked_fixture(tcase, set_up, tear_down);
  for (size_t i = 0; i < count; i++)
    tcase_add_test(tcase, tests[i]);
  suite_add_tcase(suite, tcase);
}

#define ADD(suite, name, ...)                           \
  add_fixture_case(                                     \
      suite, name, (const TTest *const[]){__VA_ARGS__}, \
      sizeof((const TTest *const[]){__VA_ARGS__}) / sizeof(const TTest *))

static void plant_faults(Suite *suite) {
  TCase *tcase = tcase_create("faults, each");
  tcase_set_timeout(tcase, 120);
  tcase_add_checked_fixture(tcase, set_up, tear_down);
  tcase_add_loop_test(tcase, each_fault_is_found, 0, FAULTS);
  suite_add_tcase(suite, tcase);
}

// Two programs in one, which can run side by side: with the argument "faults"
// it plants each fault.
int main(int argc, char **argv) {
  Suite *suite = suite_create("tool conform");
  if (argc > 1 && strcmp(argv[1], "faults") == 0) {
    plant_faults(suite);
    return run_suite(suite);
  }
  ADD(suite, "in order", cpu_conforms, sim_conforms, cpu_plugin_conforms,
      sim_plugin_conforms, faulty_conforms_without_a_fault,
      small_is_told_of_stand_ins, unable_is_not_wrong);
  ADD(suite, "faults", goes_on_after_a_crash, what_is_not_loaded_is_not_checked,
      full_may_be_null, others_hold_memory);
  ADD(suite, "written", table_shows_the_code, table_tells_levels, junit,
      junit_tells_levels, list, in_process);
  ADD(suite, "choice", device_of_a_plugin, nothing_to_test, type_has_its_time,
      wrong_use);
  return run_suite(suite);
}
