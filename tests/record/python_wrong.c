// A recorder that is wrong about where Python keeps its frames, or meets a
// Python that it does not know: it says so once, and the program runs as if
// nothing had been.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pythons.h"
#include "record/python_layout.h"
#include "record_run.h"
#include "support/run.h"

enum {
  FIELDS = (sizeof(python_layout) - offsetof(python_layout, thread_frame)) /
           sizeof(uint16_t)
};

#define FIELD(name)                                                          \
  ((offsetof(python_layout, name) - offsetof(python_layout, thread_frame)) / \
   sizeof(uint16_t))

static const char *program;

static void run_moved(size_t field, int bytes) {
  char setting[64];
  snprintf(setting, sizeof setting, "TARN_WRONG_LAYOUT=%zu:%d", field, bytes);
  tool_output_free(&ran);
  const char *preload = "LD_PRELOAD=" TARN_WRONG_RECORDER;
  ran = tool_run(preload, record_setting(), setting, program, "-W", "ignore",
                 TARN_PYTHON_VICTIM, "at_exit");
  ck_assert_msg(ran.status == 0, "%s: status %d: %s", setting, ran.status,
                ran.err);
}

static bool has_frame(const char *file) {
  for (size_t i = 0; i < trace->frame_count; i++) {
    if (strstr(trace->frames[i].file, file) != NULL) return true;
  }
  return false;
}

// The double itself is a recorder as any.
TEST_RANGE(nothing_is_moved, PYTHONS_FIRST, PYTHONS_END) {
  program = pythons_find(_i);
  if (program == NULL) return;
  run_moved(0, 0);
  ck_assert_str_eq(ran.err, "");
  recorded("");
  ck_assert(has_frame("python_victim.py"));
}

// What no frame at the start of a program shows for certain: any byte but 0
// says that a frame has a call of its own, which decides about its place among
// those of the machine alone; and a name that is not ASCII is rare.
static bool is_shown(size_t field) {
  return field != FIELD(frame_is_entry) && field != FIELD(text_wide);
}

// The versions differ in what they have.
static bool has(int minor, size_t field) {
  if (field == FIELD(holder_frame)) return minor == 11 || minor == 12;
  if (field == FIELD(code_begin)) return minor >= 11;
  if (field == FIELD(frame_owner)) return minor >= 12;
  return true;
}

static void assert_told(size_t field, int bytes) {
  static const char begin[] = "tarn record: stacks have no lines of Python 3.";
  static const char end[] =
      ": its frames are not where this version keeps them\n";
  size_t length = strlen(ran.err);
  ck_assert_msg(strncmp(ran.err, begin, strlen(begin)) == 0 &&
                    length > strlen(end) &&
                    strcmp(ran.err + length - strlen(end), end) == 0,
                "field %zu, %d bytes: '%s'", field, bytes, ran.err);
  ck_assert(strchr(ran.err, '\n') == ran.err + length - 1);
  ck_assert(!has_frame("python_victim.py"));
}

static void move_field(int minor, size_t field, int bytes) {
  run_moved(field, bytes);
  recorded("");
  ck_assert_uint_gt(trace->block_count, 0);
  if (is_shown(field) && has(minor, field)) {
    assert_told(field, bytes);
  } else {
    ck_assert(*ran.err != '\0' || has_frame("python_victim.py"));
  }
  ck_assert_int_eq(remove(record_path("")), 0);
}

TEST_RANGE(each_field_is_moved, PYTHONS_FIRST, PYTHONS_SYSTEM) {
  static const int moves[] = {8, -8, 1, 4096};
  program = pythons_find(_i);
  if (program == NULL) return;
  for (size_t field = 0; field < FIELDS; field++) {
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
      move_field(_i, field, moves[i]);
  }
}

TEST(a_version_that_is_not_known) {
  program = pythons_find(8);
  if (program == NULL) return;
  run_moved(0, 0);
  ck_assert_ptr_nonnull(strstr(ran.err, ": it is not one of 3.9 to 3.13\n"));
  recorded("");
  ck_assert_uint_gt(trace->block_count, 0);
}

// As in a container.
TEST(what_checks_is_forbidden) {
  program = pythons_find(PYTHONS_SYSTEM);
  if (program == NULL) return;
  tool_output_free(&ran);
  ran = tool_run(record_preload(), record_setting(), TARN_RECORD_VICTIM,
                 "without_reads", program, TARN_PYTHON_VICTIM, "at_exit");
  if (ran.status == 5) {
    note_skipped("a filter of system calls", "the system has none");
    return;
  }
  ck_assert_msg(ran.status == 0, "status %d: %s", ran.status, ran.err);
  ck_assert_ptr_nonnull(strstr(ran.err,
                               ": process_vm_readv, which checks its "
                               "frames, is forbidden here\n"));
  recorded("");
  ck_assert(!has_frame("python_victim.py"));
}

FIXTURE(tool_files_begin, record_end);

int main(void) {
  return record_cannot() ? record_skip() : run_tests();
}
