// `tarn why`: what it says of small traces, word by word, of real ones and of
// bad ones; wrong use.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/json_check.h"
#include "support/tool_assert.h"
#include "tarn/trace_write.h"
#include "terminal.h"
#include "why_kit.h"

#define MIB (UINT64_C(1) << 20)

// ---------------------------------------------------------------------------
// A small training step that runs out of memory
// ---------------------------------------------------------------------------

static void segment(uint64_t address, uint64_t size) {
  tarn_trace_segment s = {.address = address, .size = size};
  assert_ok(tarn_trace_builder_segment(builder, &s));
}

static void event_at(tarn_trace_kind kind, uint64_t time_us, uint64_t address,
                     uint64_t size, uint32_t stack) {
  tarn_trace_event e = {.kind = kind,
                        .address = address,
                        .size = size,
                        .time_us = time_us,
                        .stack = stack};
  assert_ok(tarn_trace_builder_event(builder, &e));
}

static uint32_t stack_in_step(const char *file, uint32_t line,
                              const char *function) {
  tarn_trace_frame frames[] = {
      {"/venv/lib/python3.12/site-packages/torch/f.py", "linear", 114},
      {file, function, line},
      {"/home/me/run/train.py", "step", 30},
  };
  return stack_of(frames, 3);
}

// Weights of 64 MiB older than the trace; activations of 48 and 16 MiB; 8 MiB
// that come and go; and a request of 40 MiB that finds 56 MiB in two holes.
static void build_step(void) {
  uint32_t forward = stack_in_step("/home/me/run/net/model.py", 12, "forward");
  uint32_t loss = stack_in_step("/home/me/run/net/loss.py", 3, "loss");
  tarn_trace_block weights = {
      .size = 64 * MIB, .address = 256 * MIB, .stack = TARN_TRACE_NO_STACK};
  assert_ok(tarn_trace_builder_old(builder, &weights));
  event_at(TARN_TRACE_ALLOC, 1000000, 320 * MIB, 32 * MIB, forward);
  event_at(TARN_TRACE_ALLOC, 1250000, 352 * MIB, 16 * MIB, forward);
  event_at(TARN_TRACE_ALLOC, 1300000, 368 * MIB, 8 * MIB, loss);
  event_at(TARN_TRACE_FREE, 1400000, 368 * MIB, 8 * MIB, loss);
  event_at(TARN_TRACE_ALLOC, 1500000, 400 * MIB, 16 * MIB, loss);
  event_at(TARN_TRACE_OOM, 1750000, 0, 40 * MIB, forward);
  segment(256 * MIB, 184 * MIB);
}

static const char *step_path;

static const char *write_step(void) {
  begin();
  build_step();
  step_path = write_built("step.tarn");
  return step_path;
}

static const char golden[] =
    "Out of memory in forward, at event 5 of 6 (0.750 s after the first): "
    "40.00 MiB (41943040 bytes) more were asked for while 128.00 MiB were "
    "alive: weights 64.00 MiB (50.0%), unknown 64.00 MiB (50.0%).\n"
    "By frame: 64.00 MiB of it (50.0%) was there before the trace began, "
    "most of the rest is net/model.py:12 forward: 48.00 MiB in 2 "
    "blocks (37.5%).\n"
    "Asked for by net/model.py:12 forward.\n"
    "The allocator held 184.00 MiB, 56.00 MiB of it free in 2 holes, "
    "the largest 32.00 MiB: enough, but not in one piece.\n"
    "\n"
    "Peak 128.00 MiB (134217728 bytes) in forward, at event 4 of 6 (0.500 s "
    "after the first): weights 64.00 MiB (50.0%), unknown 64.00 MiB "
    "(50.0%).\n"
    "By frame: 64.00 MiB of it (50.0%) was there before the trace "
    "began, most of the rest is net/model.py:12 forward: 48.00 MiB in "
    "2 blocks (37.5%).\n"
    "The trace has neither a backward pass nor an optimizer: it cannot tell "
    "weights from buffers, inputs or what an optimizer keeps.\n"
    "\n"
    "What it is for at the peak\n"
    "    bytes  share  blocks  role       rule\n"
    "64.00 MiB  50.0%       1  parameter  there before the first pass, never "
    "freed; no backward pass tells weights from buffers and inputs\n"
    "64.00 MiB  50.0%       3  unknown    born in forward, never freed; no "
    "backward pass tells activations from outputs and caches\n"
    "\n"
    "Who holds it at the peak\n"
    "    bytes  share  blocks  frame                     mostly called "
    "from\n"
    "64.00 MiB  50.0%       1  (before the trace began)  \n"
    "48.00 MiB  37.5%       2  net/model.py:12 forward   train.py:30 "
    "step\n"
    "16.00 MiB  12.5%       1  net/loss.py:3 loss        train.py:30 "
    "step\n"
    "Files are below /home/me/run/.\n"
    "\n"
    "What other allocators would have held to serve what was refused "
    "too\n"
    "reserved peak  over live  allocator\n"
    "   184.00 MiB      1.438  as recorded\n"
    "\n"
    "By module\n"
    "    bytes  share  blocks  module\n"
    "64.00 MiB  50.0%       1  (before the trace began)\n"
    "48.00 MiB  37.5%       2  net.model\n"
    "16.00 MiB  12.5%       1  net.loss\n"
    "\n"
    "By size of block\n"
    "    bytes  share  blocks  size\n"
    "64.00 MiB  50.0%       1  64 MiB to 128 MiB\n"
    "32.00 MiB  25.0%       1  32 MiB to 64 MiB\n"
    "32.00 MiB  25.0%       2  16 MiB to 32 MiB\n"
    "\n"
    "What came and went without counting at the peak\n"
    "   bytes   share  blocks  frame\n"
    "8.00 MiB  100.0%       1  net/loss.py:3 loss\n"
    "\n"
    "Holes\n"
    "184.00 MiB reserved, 56.00 MiB of it free in 2 holes, the largest "
    "32.00 MiB: 43% fragmented.\n";

FIXTURE(tool_files_begin, tool_files_end);

TEST(the_answer_comes_first) {
  tool_output o = tool_did("why", write_step(), "--pool", "none");
  ck_assert_str_eq(o.out, golden);
}

TEST(markdown_has_headings) {
  tool_output o =
      tool_did("why", write_step(), "--pool", "no_pool", "-o", "md");
  assert_contains(o.out, "### Who holds it at the peak\n\n| ");
  assert_contains(o.out, "| net/model.py:12 forward ");
  assert_contains(o.out,
                  "\n### What other allocators would have held to serve what "
                  "was refused too\n\n");
  assert_contains(o.out, "| no_pool");
}

// Whether what a terminal gets has a bold headline; the answer is shorter than
// what a terminal holds.
static bool is_coloured(const char *path) {
  int master, slave;
  char seen[8192] = "";
  ck_assert_int_eq(openpty(&master, &slave, NULL, NULL, NULL), 0);
  tool_output o = tool_run_list(
      slave,
      (const char *const[]){"tarn", "why", path, "--pool", "none", NULL});
  ck_assert_int_eq(o.status, 0);
  ck_assert_int_gt(read(master, seen, sizeof seen - 1), 100);
  close(slave);
  close(master);
  return strstr(seen, "\x1b[1mPeak 1.00 MiB") != NULL;
}

TEST(colours_are_for_terminals) {
  if (!has_terminals("colours of tarn why")) return;
  begin();
  alloc(MIB, MIB, TARN_TRACE_NO_STACK);
  const char *path = write_built("small.tarn");
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  ck_assert(is_coloured(path));
  setenv("NO_COLOR", "1", 1);
  ck_assert(!is_coloured(path));
  unsetenv("NO_COLOR");
  setenv("TERM", "dumb", 1);
  ck_assert(!is_coloured(path));
  setenv("TERM", "xterm", 1);
  tool_output o = tool_did("why", path, "--pool", "none");
  ck_assert_ptr_null(strchr(o.out, '\x1b'));
}

// Order and names of what the reader of JSON may rely on.
TEST(json_has_the_published_keys) {
  tool_output o = tool_did("why", write_step(), "-o", "json");
  assert_json_line(o.out);
  assert_keys(o.out, "",
              "trace,peak_bytes,peak_event,holders,fragmentation,what_if,"
              "events,at,reserved_bytes,free_bytes,largest_hole_bytes,holes,"
              "baseline_bytes,baseline,modules,size_classes,tags,churn,"
              "oom_count,oom,roles,phase,would_help");
  assert_keys(o.out, "roles.0", "role,bytes,rule,blocks");
  assert_keys(o.out, "holders.0", "frame,bytes,blocks,kind");
  assert_keys(o.out, "what_if.0", "strategy,reserved_bytes,fits");
  assert_keys(o.out, "oom.0",
              "event,time_us,request_bytes,frame,tag,device_free_bytes,reason,"
              "live_bytes,reserved_bytes,"
              "free_bytes,largest_hole_bytes,holes,fragmentation,holders,"
              "roles,phase");
}

TEST(json_has_the_figures) {
  tool_output o = tool_did("why", write_step(), "-o", "json");
  assert_number(o.out, "peak_bytes", (double)(128 * MIB));
  assert_number(o.out, "peak_event", 4);
  assert_value(o.out, "holders.0.frame", "\"(before the trace began)\"");
  assert_value(o.out, "holders.1.frame",
               "\"/home/me/run/net/model.py:12 forward\"");
  assert_number(o.out, "holders.1.bytes", (double)(48 * MIB));
  assert_number(o.out, "holders.1.blocks", 2);
  assert_value(o.out, "holders.2.frame", "\"/home/me/run/net/loss.py:3 loss\"");
  assert_number(o.out, "fragmentation", 1 - 32.0 / 56);
  assert_number(o.out, "largest_hole_bytes", (double)(32 * MIB));
  assert_number(o.out, "baseline_bytes", (double)(64 * MIB));
  assert_value(o.out, "modules.1.module", "\"net.model\"");
  assert_number(o.out, "churn.bytes", (double)(8 * MIB));
  assert_value(o.out, "oom.0.reason", "\"fragmented\"");
  assert_value(o.out, "oom.0.frame",
               "\"/home/me/run/net/model.py:12 forward\"");
  assert_value(o.out, "oom.0.device_free_bytes", "null");
  assert_number(o.out, "oom.0.request_bytes", (double)(40 * MIB));
  assert_value(o.out, "what_if.0.strategy", "\"as recorded\"");
  assert_number(o.out, "what_if.0.reserved_bytes", (double)(184 * MIB));
  assert_value(o.out, "what_if.0.fits", "null");
  ck_assert_uint_eq(json_size(o.out, "what_if"), 6);
  assert_value(o.out, "what_if.5.strategy", "\"plan\"");
  assert_number(o.out, "what_if.5.reserved_bytes", (double)(168 * MIB));
  assert_value(o.out, "what_if.5.fits", "null");
}

// ---------------------------------------------------------------------------
// Options
// ---------------------------------------------------------------------------

// 128 MiB are alive when 40 more are refused by an allocator that holds 184.
TEST(capacity_is_answered) {
  tool_output o =
      tool_did("why", write_step(), "--capacity", "224M", "-o", "json");
  assert_value(o.out, "what_if.0.fits", "true");
  o = tool_did("why", step_path, "--capacity", "184M", "-o", "json", "--pool",
               "arena_pool");
  assert_value(o.out, "what_if.0.fits", "false");
  assert_value(o.out, "what_if.1.fits", "true");
  assert_number(o.out, "what_if.1.reserved_bytes", (double)(168 * MIB));
  assert_value(o.out, "what_if.2.fits", "true");
  o = tool_ends(1, "why", step_path, "--capacity", "167M", "-o", "json");
  assert_value(o.out, "what_if.5.fits", "false");
  o = tool_ends(1, "why", step_path, "--capacity", "167M");
  ck_assert_str_eq(o.err, "");
  assert_contains(o.out,
                  "No allocator could have fitted it into 167.00 MiB: 168.00 "
                  "MiB were needed at once.\n");
}

// A request that no machine can serve, as malloc(-1), is told of, and does not
// keep the others from being tried.
TEST(what_no_machine_has_does_not_count) {
  begin();
  alloc(MIB, 100, TARN_TRACE_NO_STACK);
  event_at(TARN_TRACE_OOM, 1, 0, UINT64_MAX, TARN_TRACE_NO_STACK);
  const char *path = write_built("mistake.tarn");
  tool_output o = tool_ends(0, "why", path, "-o", "json", "--pool", "no_pool");
  ck_assert_str_eq(o.err, "");
  ck_assert_uint_eq(json_size(o.out, "what_if"), 2);
  assert_value(o.out, "oom_count", "1");
  o = tool_ends(0, "why", path, "--capacity", "1G");
  assert_contains(o.out, "15.99 EiB");
}

// Sizes that are mistakes are not tried for hours.
TEST(what_no_machine_has_is_not_tried) {
  begin();
  alloc(MIB, UINT64_C(1) << 50, TARN_TRACE_NO_STACK);
  const char *path = write_built("mistake.tarn");
  tool_output o = tool_ends(0, "why", path, "-o", "json");
  ck_assert_uint_eq(json_size(o.out, "what_if"), 0);
  assert_contains(o.err,
                  "mistake.tarn: 1.00 PiB were needed at once: too much "
                  "to try other allocators\n");
  o = tool_ends(1, "why", path, "--capacity", "1G");
  assert_contains(o.out, "No allocator could have fitted it into 1.00 GiB: ");
}

// Thousands that live at once take long to be planned.
TEST(a_plan_is_left_out_where_it_takes_long) {
  begin();
  for (uint64_t i = 1; i <= 4100; i++)
    event(TARN_TRACE_ALLOC, i * MIB, 1000, TARN_TRACE_NO_STACK);
  const char *path = write_built("many.tarn");
  tool_output o = tool_ends(0, "why", path, "-o", "json", "--pool", "no_pool");
  ck_assert_uint_eq(json_size(o.out, "what_if"), 1);
  assert_contains(o.err, "many.tarn: too large to be planned at once");
}

// What fits once it gives back what is idle does fit: the page unit pool keeps
// 32 chunks of each size that it has seen.
TEST(a_squeeze_is_tried) {
  begin();
  for (uint64_t i = 1; i <= 16; i++) {
    event(TARN_TRACE_ALLOC, MIB, i * MIB, TARN_TRACE_NO_STACK);
    release(MIB);
  }
  const char *path = write_built("growing.tarn");
  tool_output o =
      tool_did("why", path, "--pool", "page_unit_pool", "-o", "json");
  assert_number(o.out, "what_if.0.reserved_bytes", (double)(136 * MIB));
  o = tool_did("why", path, "--pool", "page_unit_pool", "-o", "json",
               "--capacity", "20M");
  assert_value(o.out, "what_if.0.fits", "true");
  ck_assert_double_le(json_number(o.out, "what_if.0.reserved_bytes"),
                      (double)(20 * MIB));
}

TEST(other_moments) {
  tool_output o = tool_did("why", write_step(), "--at", "0", "-o", "json");
  assert_number(o.out, "peak_event", 4);
  assert_number(o.out, "at.event", 0);
  assert_number(o.out, "at.live_bytes", (double)(96 * MIB));
  o = tool_did("why", step_path, "--at", "oom", "--pool", "none");
  assert_contains(o.out,
                  "\n128.00 MiB (134217728 bytes) alive in forward, at event "
                  "5 of 6 (0.750 s after the first): ");
  o = tool_did("why", step_path, "--at", "end", "-o", "json");
  assert_number(o.out, "at.event", 5);
  assert_exits(tool_run("why", step_path, "--at", "6"), 1,
               "step.tarn: no event 6: it has 6");
  assert_exits(tool_line("why @bert-layer --at oom"), 1,
               "@bert-layer: no request was refused in it");
}

TEST(libraries_can_be_named) {
  tool_output o = tool_did("why", write_step(), "-o", "json", "--pool", "none",
                           "--libraries", "*/net/*");
  assert_value(o.out, "holders.0.frame", "\"/home/me/run/train.py:30 step\"");
  o = tool_did("why", step_path, "-o", "json", "--pool", "none", "--libraries",
               "none", "--top", "1");
  assert_value(o.out, "holders.0.frame",
               "\"/venv/lib/python3.12/site-packages/torch/f.py:114 linear\"");
}

TEST(two_traces_differ) {
  begin();
  alloc(MIB, 10, stack_at("/home/me/run/net/model.py", 9, "forward"));
  char other[512];
  snprintf(other, sizeof other, "%s", write_built("other.tarn"));
  tool_output o = tool_did("why", write_step(), "--diff", other, "-o", "json");
  assert_keys(o.out, "diff", "other,other_peak_bytes,frames");
  assert_number(o.out, "diff.other_peak_bytes", 10);
  assert_value(o.out, "diff.frames.1.frame",
               "\"/home/me/run/net/model.py:12 forward\"");
  assert_number(o.out, "diff.frames.1.other_bytes", 10);
  assert_number(o.out, "diff.frames.1.bytes", (double)(48 * MIB));
  o = tool_did("why", step_path, "--diff", other, "--pool", "none");
  assert_contains(o.out,
                  "That is 127.99 MiB (134217718 bytes) more than the "
                  "peak of ");
  assert_contains(o.out, "+47.99 MiB  48.00 MiB");
  o = tool_did("why", step_path, "--diff", step_path, "--pool", "none");
  assert_contains(o.out, "That is as much as the peak of ");
  assert_exits(tool_run("why", step_path, "--diff", "/nowhere"), 1,
               "/nowhere: ");
}

TEST(top_cuts_and_adds_up) {
  char path[64];
  double sum = 0;
  tool_output o = tool_done("why @resnet50-b8 --top 3 -o json");
  ck_assert_uint_eq(json_size(o.out, "holders"), 4);
  assert_value(o.out, "holders.3.kind", "\"others\"");
  for (int i = 0; i < 4; i++) {
    snprintf(path, sizeof path, "holders.%d.bytes", i);
    sum += json_number(o.out, path);
  }
  ck_assert_double_eq(sum, json_number(o.out, "peak_bytes"));
  o = tool_done("why @resnet50-b8 --top 0 -o json");
  ck_assert_uint_gt(json_size(o.out, "holders"), 11);
}

TEST(every_workload_is_answered) {
  for (size_t i = 0; tarn_trace_workload(i) != NULL; i++) {
    tool_output o = tool_did("why", tarn_trace_workload(i), "-o", "json");
    ck_assert(json_valid(o.out));
    assert_value(o.out, "fragmentation", "null");
    ck_assert_uint_eq(json_size(o.out, "what_if"), 5);
    assert_value(o.out, "what_if.4.strategy", "\"plan\"");
    ck_assert_double_ge(json_number(o.out, "what_if.4.reserved_bytes"),
                        json_number(o.out, "peak_bytes"));
  }
}

TEST(wrong_use) {
  assert_misuse(tool_run("why"), "which trace?");
  assert_misused("why a b", "one trace at a time; --diff b");
  assert_misused("why @nothing", "no workload is named");
  assert_misused("why @bert-layer --diff @x", "no workload is named");
  assert_misused("why @bert-layer -o csv", "not csv");
  assert_misused("why @bert-layer -o xml", "is not a format");
  assert_misused("why @bert-layer --at noon", "--at");
  assert_misused("why @bert-layer --top -1", "--top");
  assert_misused("why @bert-layer --module-depth x", "--module-depth");
  assert_misused("why @bert-layer --capacity 0", "--capacity");
  assert_misused("why @bert-layer --pool arena", "no pool is named 'arena'");
  assert_misused("why @bert-layer --pool no_pool,no_pool", "named twice");
  assert_misused("why @bert-layer --pool arena_pool:x=1", "arena_pool");
  assert_misused("why @bert-layer --trace-device 0",
                 "--trace-device is for recorded traces");
  assert_misused("why x --trace-device y", "--trace-device");
}

TEST(strategies_can_be_loaded) {
  tool_output o = tool_did("why", "@bert-layer", "--strategy", TARN_POWER_POOL,
                           "--pool", "power_pool:least=4K", "-o", "json");
  assert_value(o.out, "what_if.0.strategy", "\"power_pool:least=4K\"");
  assert_exits(tool_line("why @bert-layer --strategy ./nothing.so"), 1,
               "./nothing.so: No such file");
}
