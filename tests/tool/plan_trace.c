// `tarn plan TRACE`: what has to go, what would be saved, and wrong use.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/json_check.h"
#include "support/tool_assert.h"
#include "tarn/trace_write.h"
#include "why_kit.h"

#define MIB (UINT64_C(1) << 20)

static uint32_t stack_named(const char *function) {
  return stack_at("/home/me/net.py", 7, function);
}

// 64 MiB are older than the trace; at its peak 136 MiB live.
static const char *write_step(void) {
  begin();
  tarn_trace_block weights = {
      .size = 64 * MIB, .address = 1, .stack = TARN_TRACE_NO_STACK};
  assert_ok(tarn_trace_builder_old(builder, &weights));
  alloc(0x100 * MIB, 40 * MIB, stack_named("forward"));
  alloc(0x200 * MIB, 32 * MIB, stack_named("loss"));
  release(0x200 * MIB);
  alloc(0x300 * MIB, 24 * MIB, stack_named("backward"));
  release(0x300 * MIB);
  release(0x100 * MIB);
  return write_built("step.tarn");
}

FIXTURE(tool_files_begin, tool_files_end);

TEST(a_trace_is_planned) {
  tool_output o = tool_did("plan", write_step(), "-o", "json", "--verify");
  ck_assert(json_valid(o.out));
  assert_number(o.out, "buffers", 4);
  assert_number(o.out, "height", (double)(136 * MIB));
  assert_number(o.out, "lower_bound", (double)(136 * MIB));
  assert_value(o.out, "status", "\"optimal\"");
  assert_value(o.out, "verified", "true");
  ck_assert_uint_eq(json_size(o.out, "what_if"), 4);
  assert_value(o.out, "what_if.2.strategy", "\"buddy_pool\"");
  ck_assert_double_eq(
      json_number(o.out, "what_if.2.saved_bytes"),
      json_number(o.out, "what_if.2.reserved_bytes") - (double)(136 * MIB));
  assert_value(o.out, "what_if.2.fits", "null");
  ck_assert_uint_eq(json_size(o.out, "must_move"), 0);
  assert_value(o.out, "scale", "null");
  assert_value(o.out, "scale_young", "null");
}

// Too much at two moments: what lives at both is enough.
TEST(what_must_move_is_named) {
  tool_output o =
      tool_ends(1, "plan", write_step(), "--capacity", "120M", "-o", "json");
  ck_assert_str_eq(o.err, "");
  ck_assert(json_valid(o.out));
  assert_value(o.out, "status", "\"infeasible\"");
  ck_assert_uint_eq(json_size(o.out, "must_move"), 1);
  assert_value(o.out, "must_move.0.id", "\"block-1\"");
  assert_value(o.out, "must_move.0.frame", "\"/home/me/net.py:7 forward\"");
  assert_value(o.out, "must_move.0.tag", "\"\"");
  assert_number(o.out, "must_move.0.bytes", (double)(40 * MIB));
  assert_number(o.out, "must_move.0.born", 0);
  assert_number(o.out, "must_move.0.died", 5);
  assert_value(o.out, "what_if.1.fits", "false");
  // 120 / 136, and (120 - 64) / (136 - 64), cut to four digits.
  assert_number(o.out, "scale", 0.8823);
  assert_number(o.out, "scale_young", 0.7777);
}

TEST(what_must_move_is_told) {
  tool_output o = tool_ends(1, "plan", write_step(), "--capacity", "120M");
  static const char first[] =
      "16.00 MiB too much at event 1; moving this one suffices.\n";
  ck_assert_int_eq(strncmp(o.out, first, strlen(first)), 0);
  assert_contains(o.out,
                  "\nMoved elsewhere, it takes 40.00 MiB; a plan of all others "
                  "needs 96.00 MiB of 120.00 MiB.\n");
  assert_contains(o.out, "/home/me/net.py:7 forward\n");
  assert_contains(o.out,
                  "\nOr all sizes could be smaller: 0.8823 of what they "
                  "are.\nOf all but what is older than the trace, "
                  "0.7777.\n");
  assert_contains(o.out, "\nWhat a plan of 136.00 MiB would save\n");
  assert_contains(o.out, " together at event 1; the capacity is 120.00 MiB.");
}

// What is older than the trace has no event, and may have to go too.
TEST(old_blocks_can_be_named) {
  tool_output o = tool_ends(1, "plan", write_step(), "--capacity", "60M", "-o",
                            "json", "--pool", "none");
  ck_assert_uint_eq(json_size(o.out, "what_if"), 0);
  assert_value(o.out, "must_move.0.frame", "\"(before the trace began)\"");
  assert_value(o.out, "must_move.0.born", "null");
  assert_value(o.out, "must_move.0.died", "null");
  assert_value(o.out, "scale_young", "null");
}

TEST(what_fits_need_not_move) {
  tool_output o =
      tool_did("plan", write_step(), "--capacity", "136M", "-o", "json");
  ck_assert_uint_eq(json_size(o.out, "must_move"), 0);
  assert_value(o.out, "scale", "null");
}

// Four weights, each with a gradient, of a step of PyTorch: a plan's picture
// has a box for the weights, and says what the peak is for.
TEST(roles_of_a_plan) {
  begin();
  for (uint64_t i = 0; i < 4; i++) {
    tarn_trace_block old = {
        .size = MIB, .address = (100 + i) * MIB, .stack = TARN_TRACE_NO_STACK};
    assert_ok(tarn_trace_builder_old(builder, &old));
  }
  uint32_t forward = stack_at("/v/torch/nn/modules/module.py", 1, "_call_impl");
  uint32_t backward =
      stack_at("??", 0, "torch::autograd::Engine::thread_main()");
  uint32_t optimizer = stack_at("/v/torch/optim/optimizer.py", 1, "wrapper");
  event(TARN_TRACE_ALLOC, MIB, 100, forward);
  for (uint64_t i = 2; i < 6; i++)
    event(TARN_TRACE_ALLOC, i * MIB, MIB, backward);
  event(TARN_TRACE_FREE, MIB, 0, backward);
  event(TARN_TRACE_ALLOC, 9 * MIB, MIB, optimizer);
  event(TARN_TRACE_FREE, 9 * MIB, 0, optimizer);
  const char *path = write_built("step.tarn"), *svg = tool_file("step.svg");
  tool_output o = tool_ends(0, "plan", path, "--svg", svg);
  assert_contains(o.out,
                  "\nPeak in the optimizer: weights 4.00 MiB, gradients 4.00 "
                  "MiB, temporaries 1.00 MiB.\n");
  o = tool_ends(0, "plan", path, "-o", "json");
  assert_value(o.out, "phase", "\"optimizer\"");
  assert_value(o.out, "roles.0.role", "\"parameter\"");
  assert_number(o.out, "roles.0.bytes", (double)(4 * MIB));
  assert_number(o.out, "roles.0.blocks", 4);
  char *text = tool_read_file(svg);
  assert_contains(text, "<g class=\"r0\">\n<rect ");
  assert_contains(text, "and 3 more\nweights\n4.00 MiB (4194304 bytes)");
  assert_contains(text, ">Peak in the optimizer: weights 4.00 MiB, ");
  assert_contains(text, ">peak</text>");
}

// A request that found no memory is no buffer of the program, however large it
// was, and is told of.
TEST(refused_requests_do_not_count) {
  begin();
  alloc(MIB, 100 * MIB, stack_named("forward"));
  event(TARN_TRACE_OOM, 0, 50 * MIB, stack_named("attention"));
  event(TARN_TRACE_OOM, 0, UINT64_MAX, stack_named("mistake"));
  const char *refused = write_built("refused.tarn");
  tool_output o =
      tool_ends(0, "plan", refused, "-o", "json", "--pool", "no_pool");
  assert_number(o.out, "height", (double)(100 * MIB));
  assert_number(o.out, "what_if.0.reserved_bytes", (double)(100 * MIB));
  assert_contains(o.err,
                  "refused.tarn: 2 requests, of up to 15.99 EiB, that found no "
                  "memory are no part of the plan; tarn why tells of them\n");
  o = tool_ends(0, "plan", refused, "--capacity", "120M", "-o", "json");
}

TEST(sizes_are_whole_units) {
  begin();
  alloc(MIB, 1000, TARN_TRACE_NO_STACK);
  const char *odd = write_built("odd.tarn");
  tool_output o = tool_did("plan", odd, "-o", "json");
  assert_number(o.out, "height", 1024);
  o = tool_did("plan", odd, "-o", "json", "--align", "1");
  assert_number(o.out, "height", 1000);
}

// The table that is written is a plan of the blocks.
TEST(a_plan_of_a_trace_can_be_checked) {
  const char *plan = tool_file("plan.csv");
  tool_did("plan", write_step(), "--out", plan);
  tool_output o = tool_did("plan", plan, "--check", "-o", "json");
  assert_number(o.out, "height", (double)(136 * MIB));
}

TEST(workloads_are_planned) {
  tool_output o = tool_done("plan @bert-layer -o json --nodes 1000");
  assert_value(o.out, "file", "\"@bert-layer\"");
  ck_assert_double_ge(json_number(o.out, "height"),
                      json_number(o.out, "lower_bound"));
  ck_assert_uint_eq(json_size(o.out, "what_if"), 4);
}

TEST(more_than_twenty_are_cut) {
  begin();
  for (uint64_t i = 1; i <= 40; i++)
    alloc(i * MIB, MIB, TARN_TRACE_NO_STACK);
  const char *path = write_built("many.tarn");
  tool_output o =
      tool_ends(1, "plan", path, "--capacity", "10M", "--pool", "none");
  assert_contains(o.out, "30.00 MiB too much at event 39; moving these 30 ");
  assert_contains(o.out, "they take 30.00 MiB;");
  assert_contains(o.out, "and 10 smaller ones; -o json names all\n");
  assert_contains(o.out, "These 11 buffers cannot lie together:");
  o = tool_ends(1, "plan", path, "--capacity", "25M", "--pool", "none");
  ck_assert_ptr_null(strstr(o.out, "cannot lie together"));
}

TEST(an_empty_trace_needs_nothing) {
  begin();
  tool_output o = tool_ends(0, "plan", write_built("empty.tarn"), "-o", "json",
                            "--capacity", "1K");
  assert_number(o.out, "height", 0);
  ck_assert_uint_eq(json_size(o.out, "must_move"), 0);
}

TEST(wrong_use) {
  assert_misused("plan @nothing", "no workload is named");
  assert_misused("plan @bert-layer --pool arena", "no pool is named 'arena'");
  assert_misused("plan @bert-layer --pool no_pool,no_pool", "named twice");
  assert_misused("plan @bert-layer --trace-device 0",
                 "--trace-device is for recorded traces");
  assert_misused("plan @bert-layer --check", "it has no plan to check");
}
