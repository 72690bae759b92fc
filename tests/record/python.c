// The recorder in programs of Python, each version that the machine has: what
// stacks name is what Python says itself.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pythons.h"
#include "record_run.h"
#include "support/run.h"

enum { FRAMES_MOST = 64, NEXT_SIZE = 100 };

// Runs the victim, which has to succeed without a word on stderr.
static bool record_python(int which, const char *setting, const char *mode) {
  const char *program = pythons_find(which);
  if (program == NULL) return false;
  tool_output_free(&ran);
  ran = tool_run(record_preload(), record_setting(), setting, program, "-W",
                 "ignore", TARN_PYTHON_VICTIM, mode, TARN_RECORD_CHURN);
  ck_assert_msg(ran.status == 0 && *ran.err == '\0', "%s %s: status %d: %s",
                program, mode, ran.status, ran.err);
  return true;
}

// ---------------------------------------------------------------------------
// Frames
// ---------------------------------------------------------------------------

// What is not an address in a module.
static bool is_of_python(const tarn_trace_frame *frame) {
  return frame->line != 0 || (strncmp(frame->function, "+0x", 3) != 0 &&
                              strncmp(frame->function, "0x", 2) != 0);
}

// The frames of Python of |stack| as "FILE:LINE FUNCTION|...", at most
// FRAMES_MOST.
static void write_frames(uint32_t stack, char *text, size_t room) {
  size_t used = 0;
  text[0] = '\0';
  if (stack == TARN_TRACE_NO_STACK) return;
  const tarn_trace_stack *s = &trace->stacks[stack];
  for (uint32_t i = 0; i < s->count; i++) {
    const tarn_trace_frame *f =
        &trace->frames[trace->frame_indices[s->first + i]];
    if (!is_of_python(f)) continue;
    int length = snprintf(text + used, room - used, "%s%s:%u %s",
                          used > 0 ? "|" : "", f->file, f->line, f->function);
    ck_assert(length > 0 && (size_t)length < room - used);
    used += (size_t)length;
  }
}

// The only block of |size| bytes, or some more.
static const tarn_trace_block *find_block(uint64_t size) {
  const tarn_trace_block *found = NULL;
  for (size_t i = 0; i < trace->block_count; i++) {
    const tarn_trace_block *b = &trace->blocks[i];
    if (b->size < size || b->size >= size + NEXT_SIZE) continue;
    ck_assert_msg(found == NULL, "two blocks of %lu", (unsigned long)size);
    found = b;
  }
  ck_assert_msg(found != NULL, "no block of %lu bytes", (unsigned long)size);
  return found;
}

static void cut_frames(char *text) {
  for (int i = 0; i < FRAMES_MOST && text != NULL; i++) {
    text = strchr(text + (i > 0), '|');
    if (text != NULL && i == FRAMES_MOST - 1) *text = '\0';
  }
}

static void assert_frames(char *line) {
  static char read[1 << 16];
  char *told = strchr(line, '|');
  ck_assert_ptr_nonnull(told);
  cut_frames(told + 1);
  const tarn_trace_block *block = find_block(strtoull(line, NULL, 10));
  write_frames(block->stack, read, sizeof read);
  ck_assert_msg(strcmp(read, told + 1) == 0, "read %s\ntold %s", read,
                told + 1);
}

// Returns how many it has compared; |*out_child|, where there is one, is the
// line of a child.
static int assert_all_frames(const char *text, const char **out_child) {
  char *copy = strdup(text);
  int count = 0;
  for (char *rest = copy, *line; (line = strsep(&rest, "\n")) != NULL;) {
    if (*line == '\0') continue;
    if (strncmp(line, "child|", 6) == 0) {
      *out_child = strstr(text, "child|") + 6;
    } else {
      assert_frames(line);
      count++;
    }
  }
  free(copy);
  return count;
}

// ---------------------------------------------------------------------------
// One process
// ---------------------------------------------------------------------------

static void run_mode(int which, const char *mode, int least) {
  if (!record_python(which, "NONE=", mode)) return;
  recorded("");
  ck_assert_uint_eq(trace->lost_count, 0);
  ck_assert_int_ge(assert_all_frames(ran.out, NULL), least);
}

#define EACH(name) TEST_RANGE(name, PYTHONS_FIRST, PYTHONS_END)

// Recursion, generators, methods, calls that go through C.
EACH(all_kinds_of_calls) {
  run_mode(_i, "plain", 20);
}

EACH(a_stack_is_cut_at_its_outer_end) {
  run_mode(_i, "deep", 2);
}

// Code at an address that other code had, under other names.
EACH(code_that_comes_and_goes) {
  run_mode(_i, "reuse", 402);
}

EACH(threads_each_have_their_own) {
  run_mode(_i, "threads", 200);
}

EACH(coroutines_and_executors) {
  run_mode(_i, "coroutines", 11);
}

EACH(handlers_at_exit) {
  run_mode(_i, "at_exit", 2);
}

EACH(an_exit_without_an_end) {
  run_mode(_i, "exit_at_once", 1);
}

EACH(threads_that_outlive_python) {
  for (int i = 0; i < 5; i++) {
    run_mode(_i, "daemons", 1);
    ck_assert_int_eq(unlink(record_path("")), 0);
  }
}

// As the header of python_frames.h has it.
EACH(frames_of_subinterpreters) {
  static char read[1 << 16];
  enum { BYTES = 5000000 };
  run_mode(_i, "interpreters", 9);
  if (trace == NULL) return;
  int count = 0;
  for (size_t i = 0; i < trace->block_count; i++) {
    if (trace->blocks[i].size < BYTES) continue;
    write_frames(trace->blocks[i].stack, read, sizeof read);
    bool own = strncmp(read, "<string>:2 other|<string>:3 <module>", 36) == 0;
    bool waiting = strstr(read, "python_victim.py:") != NULL &&
                   strstr(read, " interpreters|") != NULL;
    bool knows_own = _i == 12 || _i == 13;
    bool knows_none = _i < 12;
    ck_assert_msg((own && !knows_none) || (waiting && !knows_own), "%s", read);
    count++;
  }
  ck_assert_int_ge(count, 3);
}

EACH(without_frames_of_python_if_told_so) {
  static char read[1 << 16];
  if (!record_python(_i, "TARN_RECORD_PYTHON=0", "deep")) return;
  recorded("");
  ck_assert_uint_gt(trace->block_count, 2);
  for (size_t i = 0; i < trace->block_count; i++) {
    write_frames(trace->blocks[i].stack, read, sizeof read);
    ck_assert_str_eq(read, "");
  }
}

// ---------------------------------------------------------------------------
// Several
// ---------------------------------------------------------------------------

// Each line is in the trace of one of the two.
EACH(a_child_has_frames_of_its_own) {
  const char *child = NULL;
  if (!record_python(_i, "NONE=", "fork")) return;
  char *second = strchr(ran.out, '\n');
  ck_assert_ptr_nonnull(second);
  *second = '\0';
  recorded("");
  assert_frames(ran.out);
  child = strstr(second + 1, "child|");
  ck_assert_ptr_nonnull(child);
  *strstr(second + 1, "child|") = '\0';
  recorded(record_of(child + 6));
  ck_assert_int_eq(assert_all_frames(second + 1, &child), 2);
}

EACH(children_while_other_threads_run) {
  if (!record_python(_i, "NONE=", "fork_many")) return;
  recorded("");
  ck_assert_uint_eq(trace->lost_count, 0);
}

FIXTURE(tool_files_begin, record_end);

int main(void) {
  return record_cannot() ? record_skip() : run_tests();
}
