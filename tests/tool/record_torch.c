// `tarn record` of a training with PyTorch: allocations have lines of Python,
// and `tarn why` names those of the model.
#include "record_kit.h"
#include "support/json_check.h"

enum { LARGE = 65536 };

// The Python with PyTorch, or NULL.
static const char *find_python(void) {
  const char *chosen = getenv("TARN_PYTHON");
  const char *all[] = {chosen != NULL ? chosen : "python3", "/usr/bin/python3"};
  for (size_t i = 0; i < 2; i++) {
    char command[512];
    snprintf(command, sizeof command,
             "%s -c 'from torch import nn' 2>/dev/null", all[i]);
    if (system(command) == 0) return all[i];  // NOLINT(cert-env33-c)
  }
  return NULL;
}

static bool has_line(const tarn_trace *trace, uint32_t stack) {
  if (stack == TARN_TRACE_NO_STACK) return false;
  const tarn_trace_stack *s = &trace->stacks[stack];
  for (uint32_t i = 0; i < s->count; i++) {
    const tarn_trace_frame *f =
        &trace->frames[trace->frame_indices[s->first + i]];
    size_t length = strlen(f->file);
    if (length > 3 && strcmp(f->file + length - 3, ".py") == 0 && f->line > 0)
      return true;
  }
  return false;
}

// What is born before the check of Python's layout has none, nor has what
// threads of OpenBLAS make.
static void assert_lines(void) {
  tarn_trace *trace = read_out();
  size_t large = 0, named = 0;
  for (size_t i = 0; i < trace->block_count; i++) {
    if (trace->blocks[i].size < LARGE) continue;
    large++;
    named += has_line(trace, trace->blocks[i].stack);
  }
  printf("record_torch: %zu of %zu large allocations have a line\n", named,
         large);
  ck_assert_uint_gt(large, 500);
  ck_assert_uint_ge(named * 100, large * 95);
  tarn_trace_destroy(trace);
}

TEST(lines_of_a_training) {
  const char *python = find_python();
  if (python == NULL) {
    note_skipped("a training", "no python3 here has PyTorch");
    return;
  }
  tool_output o = tool_run("record", "--out", out, python, TARN_TRAINING);
  ck_assert_msg(o.status == 0, "status %d: %s", o.status, o.err);
  ck_assert_ptr_null(strstr(o.err, "no lines of Python"));
  assert_lines();
  o = tool_run("why", "-o", "json", out);
  ck_assert_int_eq(o.status, 0);
  ck_assert(json_valid(o.out));
  // Activations, parameters, and what a backward of its own makes.
  assert_contains(o.out, "record_training.py:18 forward");
  assert_contains(o.out, "record_training.py:14 __init__");
  assert_contains(o.out, "record_training.py:28 backward");
  o = tool_run("why", out);
  assert_contains(o.out, "most is held by record_training.py:");
}
