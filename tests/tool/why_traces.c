// `tarn why` on traces from elsewhere: real snapshots, names that mean harm,
// traces with nothing in them, damaged ones, and very large ones.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "snapshot_kit.h"
#include "support/effort.h"
#include "support/json_check.h"
#include "support/tool_assert.h"
#include "tarn/trace_write.h"
#include "why_kit.h"

#ifndef TARN_SHARED_DATA
#define TARN_SHARED_DATA "../shared/data"
#endif

// ---------------------------------------------------------------------------
// Real snapshots
// ---------------------------------------------------------------------------

// A path of the data, or NULL after a note.
static const char *data_file(const char *name) {
  static char path[512];
  const char *data = getenv("TARN_TEST_DATA");
  snprintf(path, sizeof path, "%s/traces/%s",
           data != NULL ? data : TARN_SHARED_DATA, name);
  if (access(path, R_OK) == 0) return path;
  note_skipped(name, "not in TARN_TEST_DATA nor beside the project");
  return NULL;
}

static void assert_holder(const char *json, const char *list, int row,
                          const char *frame, double bytes, double blocks) {
  char path[64], quoted[256];
  snprintf(quoted, sizeof quoted, "\"%s\"", frame);
  snprintf(path, sizeof path, "%s.%d.frame", list, row);
  assert_value(json, path, quoted);
  snprintf(path, sizeof path, "%s.%d.bytes", list, row);
  ck_assert_double_eq(json_number(json, path), bytes);
  snprintf(path, sizeof path, "%s.%d.blocks", list, row);
  ck_assert_double_eq(json_number(json, path), blocks);
}

static double sum_of(const char *json, const char *list) {
  char path[64];
  double sum = 0;
  for (size_t i = 0; i < json_size(json, list); i++) {
    snprintf(path, sizeof path, "%s.%zu.bytes", list, i);
    sum += json_number(json, path);
  }
  return sum;
}

#define NET "/home/lin/cs336/assignment2-systems/cs336-basics/cs336_basics/"
#define RUN                                      \
  "/home/lin/cs336/assignment2-systems/scripts/" \
  "../cs336_systems/nsys_profile.py:"

FIXTURE(tool_files_begin, tool_files_end);
SECONDS(880);

// Gradients, the optimizer's states and its temporaries: what a person finds
// at the peak of a training step.
TEST(a_real_training_step) {
  const char *path = data_file("torch-gpt-medium-128-training.pickle");
  if (path == NULL) return;
  tool_output o = tool_did("why", path, "-o", "json");
  ck_assert_double_eq(json_number(o.out, "peak_bytes"), 7013335044.0);
  ck_assert_double_eq(json_number(o.out, "peak_event"), 9966);
  ck_assert_double_eq(json_number(o.out, "baseline_bytes"), 5095321600.0);
  assert_holder(o.out, "holders", 0, "(before the trace began)", 5095321600.0,
                664);
  assert_holder(o.out, "holders", 1,
                "torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor,"
                " std::allocator<at::Tensor> >&&)",
                1651572736.0, 169);
  assert_holder(o.out, "holders", 2, NET "optimizer.py:80 step", 122880000, 3);
  assert_holder(o.out, "baseline", 0, "(never freed in the trace)",
                1709854720.0, 226);
  assert_holder(o.out, "baseline", 1, NET "optimizer.py:73 step", 1651773440.0,
                218);
  assert_holder(o.out, "baseline", 2, NET "optimizer.py:74 step", 1651773440.0,
                218);
  assert_holder(o.out, "baseline", 3, RUN "145 memory_profile", 81920000, 2);
  ck_assert_double_eq(sum_of(o.out, "holders"), 7013335044.0);
  ck_assert_double_eq(sum_of(o.out, "modules"), 7013335044.0);
  ck_assert_double_eq(sum_of(o.out, "size_classes"), 7013335044.0);
  ck_assert_double_eq(json_number(o.out, "what_if.0.reserved_bytes"),
                      7235174400.0);
}

static void assert_role(const char *json, const char *role, double bytes) {
  for (size_t i = 0; i < json_size(json, "roles"); i++) {
    if (!json_is_text(json, json_path("roles", i, "role"), role)) continue;
    ck_assert_double_eq(json_number(json, json_path("roles", i, "bytes")),
                        bytes);
    return;
  }
  ck_abort_msg("no role %s", role);
}

TEST(roles_of_a_real_training_step) {
  const char *path = data_file("torch-gpt-medium-128-training.pickle");
  if (path == NULL) return;
  tool_output o = tool_did("why", path, "-o", "json", "--pool", "none");
  assert_value(o.out, "phase", "\"optimizer\"");
  assert_role(o.out, "parameter", 1692733440);
  assert_role(o.out, "optimizer state", 3467395072);
  assert_role(o.out, "gradient", 1692733440);
  assert_role(o.out, "activation", 20480004);
  assert_role(o.out, "temporary", 122880000);
  assert_role(o.out, "workspace", 17039360);
  assert_role(o.out, "input", 73728);
  ck_assert_uint_eq(json_size(o.out, "roles"), 7);
  ck_assert_double_eq(sum_of(o.out, "roles"), 7013335044.0);
}

// Without gradients weights are what is never freed, and the rule says so.
TEST(roles_of_a_real_inference) {
  const char *path = data_file("torch-gpt-medium-512-inference.pickle");
  if (path == NULL) return;
  tool_output o = tool_did("why", path, "-o", "json", "--pool", "none");
  assert_value(o.out, "phase", "\"forward\"");
  assert_role(o.out, "parameter", 1692733440 + 229376);
  assert_role(o.out, "temporary", 247861248);
  assert_role(o.out, "workspace", 8519680);
  ck_assert_double_eq(sum_of(o.out, "roles"), 1949343744.0);
}

// The matrix of attention's softmax, three times.
TEST(a_real_inference) {
  const char *path = data_file("torch-gpt-medium-512-inference.pickle");
  if (path == NULL) return;
  tool_output o = tool_did("why", path, "-o", "json");
  ck_assert_double_eq(json_number(o.out, "peak_bytes"), 1949343744.0);
  assert_holder(o.out, "holders", 1, NET "nn_utils.py:7 softmax", 67239936, 2);
  assert_holder(o.out, "holders", 2, NET "nn_utils.py:6 softmax", 67108864, 1);
  assert_holder(o.out, "holders", 3,
                NET "model.py:430 scaled_dot_product_attention", 33554432, 1);
  ck_assert_double_eq(sum_of(o.out, "holders"), 1949343744.0);
  o = tool_did("why", path, "--pool", "none");
  assert_contains(
      o.out,
      "Peak 1.81 GiB (1949343744 bytes) in forward, at event 315 of "
      "4,998 ");
  assert_contains(o.out,
                  "most of the rest is cs336-basics/cs336_basics/nn_utils.py:7 "
                  "softmax: 64.12 MiB in 2 blocks (3.4%).\n");
  assert_contains(o.out, "model.py:432 scaled_dot_product_attention\n");
}

// What was written as a trace of Tarn's own says the same.
TEST(formats_agree) {
  const char *path = data_file("torch-gpt-medium-512-inference.pickle");
  if (path == NULL) return;
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_read(path, NULL, &trace));
  assert_ok(
      tarn_trace_write(trace, TARN_TRACE_FORMAT_TARN, tool_file("same.tarn")));
  tarn_trace_destroy(trace);
  tool_output a = tool_run("why", path, "-o", "json", "--pool", "none");
  tool_output b =
      tool_run("why", tool_file("same.tarn"), "-o", "json", "--pool", "none");
  assert_done(&a);
  assert_done(&b);
  const char *mine = strstr(a.out, "\"peak_bytes\"");
  const char *theirs = strstr(b.out, "\"peak_bytes\"");
  ck_assert_ptr_nonnull(mine);
  ck_assert_ptr_nonnull(theirs);
  size_t length = (size_t)(strstr(mine, "\"fragmentation\"") - mine);
  ck_assert_int_eq(strncmp(mine, theirs, length), 0);
}

// ---------------------------------------------------------------------------
// What is no trace
// ---------------------------------------------------------------------------

static const struct {
  const char *bytes;
  size_t size;
  const char *looks;
} foreign[] = {
    {"\x7f"
     "ELF\x02\x01",
     6, "looks like a program"},
    {"PK\x03\x04 archive", 12, "looks like a zip archive, as torch.save"},
    {"{\"traceEvents\": []}\n", 20, "looks like a timeline for chrome"},
    {"\x08\0\0\0\0\0\0\0{\"a\": 1}", 16, "looks like weights in safet"},
    {"print(1)\n", 9, "looks like a text"},
    {"\x80\x04}.", 4, "looks like a pickle of Python without a memory"},
    {"", 0, "looks like nothing: it is empty"},
    {"\x01\x02\x03\x04", 4, "looks like nothing that is known here"},
};

TEST_LOOP(what_is_no_trace_is_told, (int)COUNT(foreign)) {
  const char *path = tool_file("foreign");
  FILE *file = fopen(path, "w");
  ck_assert_ptr_nonnull(file);
  fwrite(foreign[_i].bytes, 1, foreign[_i].size, file);
  ck_assert_int_eq(fclose(file), 0);
  tool_output o = tool_ends(1, "why", path);
  ck_assert_str_eq(o.out, "");
  assert_contains(o.err, foreign[_i].looks);
  assert_contains(o.err, "_record_memory_history()");
  assert_contains(o.err, "'tarn record PROGRAM'");
}

// A trace that is cut is a damaged one, and nothing else.
TEST(what_is_damaged_is_not_guessed_at) {
  const char *path = data_file("torch-gpt-medium-512-inference.pickle");
  if (path == NULL) return;
  static char bytes[100000];
  FILE *file = fopen(path, "r");
  ck_assert_ptr_nonnull(file);
  ck_assert_uint_eq(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
  fclose(file);
  file = fopen(tool_file("cut.pickle"), "w");
  ck_assert_ptr_nonnull(file);
  fwrite(bytes, 1, sizeof bytes, file);
  fclose(file);
  tool_output o = tool_ends(1, "why", tool_file("cut.pickle"));
  ck_assert_ptr_null(strstr(o.err, "looks like"));
}

// ---------------------------------------------------------------------------
// Out of memory, as PyTorch writes it down
// ---------------------------------------------------------------------------

TEST(a_snapshot_out_of_memory) {
  begin_snapshot_of_block(0x200000, 0x400000, 0x100000, 0xfff00);
  pickle_event(&w, "alloc", 0x300000, 0x100000);
  pickle_event(&w, "segment_free", 0x800000, 0x200000);
  pickle_event(&w, "oom", 0, 0x500000);
  tool_output o =
      tool_did("why", write_snapshot("oom.pickle"), "--pool", "none");
  assert_contains(o.out,
                  "Out of memory at event 2 of 3: 5.00 MiB (5242880 bytes) "
                  "more were asked for while 1.99 MiB were alive; ");
  assert_contains(o.out,
                  "The allocator held 4.00 MiB, 2.00 MiB of it free in 1 hole, "
                  "the largest 2.00 MiB: less than was asked for, and the "
                  "device or a limit gave no more.\n");
  // Before that segment was given back there was more.
  o = tool_did("why", tool_file("oom.pickle"), "--at", "0", "-o", "json");
  ck_assert_double_eq(json_number(o.out, "reserved_bytes"), 0x600000);
  ck_assert_double_eq(json_number(o.out, "holes"), 2);
  ck_assert_double_eq(json_number(o.out, "what_if.0.reserved_bytes"), 0x600000);
}

// ---------------------------------------------------------------------------
// Names that mean harm
// ---------------------------------------------------------------------------

#define EVIL_FILE "/a/\033]0;owned\a|`x`<script>.py"

// U+202E turns around what follows.
static const char turn_around[] = {'\xe2', '\x80', '\xae', '\0'};

static const char *write_evil(void) {
  begin();
  char name[64];
  snprintf(name, sizeof name, "\033[31mred%s\\|`f`", turn_around);
  alloc(4096, 100, stack_at(EVIL_FILE, 1, name));
  return write_built("evil.tarn");
}

static void assert_harmless(const char *text) {
  ck_assert_ptr_null(strchr(text, '\033'));
  ck_assert_ptr_null(strchr(text, '\a'));
  ck_assert_ptr_null(strstr(text, turn_around));
}

TEST(hostile_names_are_neutral) {
  const char *path = write_evil();
  tool_output o = tool_did("why", path, "--pool", "none");
  assert_harmless(o.out);
  assert_contains(o.out, "?]0;owned?|`x`<script>.py:1 ?[31mred?\\|`f`");
  o = tool_did("why", path, "--pool", "none", "-o", "md");
  assert_harmless(o.out);
  assert_contains(o.out,
                  "| ?]0;owned?\\|\\`x\\`\\<script>.py:1 "
                  "?[31mred?\\\\\\|\\`f\\` ");
  assert_contains(o.out, "most is held by ?\\]0;owned?\\|\\`x\\`\\<script\\>");
  o = tool_did("why", path, "--pool", "none", "-o", "json");
  ck_assert(json_valid(o.out));
  assert_harmless(o.out);
}

// ---------------------------------------------------------------------------
// Hardly anything, and far too much
// ---------------------------------------------------------------------------

TEST(a_trace_of_nothing) {
  begin();
  const char *path = write_built("nothing.tarn");
  tool_output o = tool_ends(0, "why", path);
  assert_contains(o.out,
                  "Nothing was ever alive in this trace: its peak is 0 "
                  "bytes.\n");
  assert_contains(o.err, "no events recorded");
  o = tool_ends(0, "why", path, "-o", "json", "--diff", "@bert-layer", "--at",
                "end", "--capacity", "1");
  ck_assert(json_valid(o.out));
  assert_value(o.out, "peak_event", "null");
  assert_value(o.out, "at.event", "null");
  ck_assert_uint_eq(json_size(o.out, "holders"), 0);
}

// The peak is before the first event, of which there is none.
TEST(a_snapshot_without_history) {
  begin_snapshot_of_block(0x200000, 0x200000, 0x1000, 0x1000);
  tool_output o =
      tool_ends(0, "why", write_snapshot("still.pickle"), "--pool", "none");
  assert_contains(o.out,
                  "Peak 4.00 KiB (4096 bytes) before the first event; "
                  "4.00 KiB of it (100.0%) was there before the trace "
                  "began.\n");
  assert_contains(o.out,
                  "\n2.00 MiB reserved, 1.99 MiB of it free in 1 hole, "
                  "the largest 1.99 MiB: 0% fragmented.\n");
  assert_contains(o.err, "_record_memory_history()");
}

TEST(bad_files_are_named) {
  assert_exits(tool_run("why", "/nowhere/x.pickle"), 1,
               "tarn why: /nowhere/x.pickle: ");
  const char *bad = tool_write_file(tool_file("bad.pickle"), "\x80\x04}q");
  assert_exits(tool_run("why", bad, "-o", "json"), 1, "bad.pickle: ");
}

PART("slow");

// Every list is as long as the trace: nothing may be quadratic.
TEST(a_million_distinct_frames) {
  enum { FRAMES = EFFORT(1000000, 100000) };
  char file[64];
  begin();
  for (uint32_t i = 0; i < FRAMES; i++) {
    snprintf(file, sizeof file, "/home/me/run/f%u.py", i);
    alloc(UINT64_C(1) << 20 | (uint64_t)i << 21, 512 + i % 7,
          stack_at(file, i + 1, "f"));
  }
  const char *path = write_built("million.tarn");
  tool_output o =
      tool_did("why", path, "--diff", path, "-o", "md", "--pool", "none");
  assert_contains(o.out, EFFORT("(999,990 others)", "(99,990 others)"));
  o = tool_did("why", path, "--top", "0", "--pool", "none");
  assert_contains(o.out, EFFORT("f999999.py:1000000 f", "f99999.py:100000 f"));
}
