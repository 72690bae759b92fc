// `tarn conform` and faults: each is found by the check that is named for it,
// and takes no other check with it.
#include "conform_kit.h"

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
    {"move_loses_bytes", "ranges.move", "memory that has moved", "fault"},
    {"move_says_nothing", "ranges.move", "succeeded and says 0", "fault"},
    {"move_whole_only", "ranges.move_parts", "range_move", "fault"},
    {"move_over_others", "ranges.move_refuses", "where something is mapped",
     "fault"},
    {"move_of_nothing", "ranges.move_refuses", "where nothing is mapped",
     "fault"},
    {"move_keeps_count", "ranges.move_refuses", "after a refusal, not 0",
     "fault"},
    {"default_stream_is_null", "streams.default_stream", "default_stream gave",
     "fault"},
    {"default_stream_changes", "streams.default_stream", "then", "fault"},
    {"capturing_is_always", "streams.capturing", "captures a graph", "fault"},
    {"capturing_refuses", "streams.capturing", "stream_capturing answered",
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
}

FIXTURE(set_up, tear_down);

TEST_LOOP(each_fault_is_found, FAULTS) {
  assert_found((size_t)_i, false);
  if (!is_failure((size_t)_i, false)) assert_found((size_t)_i, true);
}

// A child that has died takes no other check with it.
TEST(goes_on_after_a_crash) {
  setenv("TARN_FAULT", "d2d_dies", 1);
  tool_output o =
      tool_ends(1, "conform", TARN_FAULTY_PLUGIN, "--no-measure", "-o", "json");
  assert_result(o.out, "copies.d2d_odd_lengths", "fail");
  assert_result(o.out, "copies.d2d_large", "fail");
  assert_result(o.out, "copies.h2d_odd_lengths", "pass");
  assert_result(o.out, "copies.the_last_one_counts", "pass");
  assert_result(o.out, "exhaustion.all_comes_back", "pass");
}

TEST(what_is_not_loaded_is_not_checked) {
  setenv("TARN_FAULT", "no_type", 1);
  tool_output o = tool_ends(1, "conform", TARN_FAULTY_PLUGIN, "-o", "json");
  ck_assert(json_is(o.out, "failed", "1"));
  ck_assert(json_is(o.out, "passed", "0"));
  assert_result(o.out, "loading.accepted", "fail");
  assert_result(o.out, "copies.d2d_odd_lengths", "skip");
  assert_contains(o.out, "\"detail\":\"not loaded\"");
  setenv("TARN_FAULT", "initialize_dies", 1);
  o = tool_ends(1, "conform", TARN_FAULTY_PLUGIN, "-o", "json");
  ck_assert(json_is(o.out, "failed", "1"));
  assert_result(o.out, "loading.version", "pass");
  assert_contains(o.out, "\"detail\":\"not initialised\"");
}

// "Full" as C_SUCCESS with a NULL pointer is an answer like any other.
TEST(full_may_be_null) {
  setenv("TARN_FAULT", "full_is_null", 1);
  tool_output o = tool_run("conform", TARN_FAULTY_PLUGIN, "--only",
                           "exhaustion", "-o", "json");
  ck_assert_msg(o.status == 0, "exit %d: %s%s", o.status, o.err, o.out);
  ck_assert(json_is(o.out, "passed", "6"));
}

// Others hold memory of the same device: that is no fault of the plug-in.
TEST(others_hold_memory) {
  setenv("TARN_FAULT", "mostly_taken", 1);
  tool_output o = tool_run("conform", TARN_FAULTY_PLUGIN, "--only",
                           "exhaustion", "-o", "json");
  ck_assert_msg(o.status == 0, "exit %d: %s%s", o.status, o.err, o.out);
  ck_assert(json_is(o.out, "passed", "6"));
}
