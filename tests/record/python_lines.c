// Tables of lines: what each form says of each position, and tables of any
// bytes.
#include "record/python_lines.h"

#include <stdlib.h>
#include <string.h>

#include "support/mix.h"
#include "support/run.h"

static uint32_t find(python_lines form, const char *bytes, size_t size,
                     int32_t position) {
  const python_line_table table = {form, (const unsigned char *)bytes, size,
                                   100};
  return python_lines_find(&table, position);
}

#define FIND(form, text, position) \
  find(form, (text), sizeof(text) - 1, position)

// 6 bytes of line 100, 50 of line 101, 6 of 361, 6 of 362 (as
// lnotab_notes.txt of 3.9 has it), and back to 360.
TEST(form_of_3_9) {
  static const char table[] =
      "\x06\x01\x32\x7f\x00\x7f\x00\x06\x06\x01\x06\xfe";
  ck_assert_uint_eq(FIND(PYTHON_LINES_9, table, -1), 100);
  ck_assert_uint_eq(FIND(PYTHON_LINES_9, table, 0), 100);
  ck_assert_uint_eq(FIND(PYTHON_LINES_9, table, 5), 100);
  ck_assert_uint_eq(FIND(PYTHON_LINES_9, table, 6), 101);
  ck_assert_uint_eq(FIND(PYTHON_LINES_9, table, 55), 101);
  ck_assert_uint_eq(FIND(PYTHON_LINES_9, table, 56), 361);
  ck_assert_uint_eq(FIND(PYTHON_LINES_9, table, 62), 362);
  ck_assert_uint_eq(FIND(PYTHON_LINES_9, table, 68), 360);
  ck_assert_uint_eq(FIND(PYTHON_LINES_9, "", 10), 100);
}

// 4 bytes of line 100, 6 without a line, 2 of 90, and none behind.
TEST(form_of_3_10) {
  static const char table[] = "\x04\x00\x06\x80\x02\xf6";
  ck_assert_uint_eq(FIND(PYTHON_LINES_10, table, -2), 100);
  ck_assert_uint_eq(FIND(PYTHON_LINES_10, table, 3), 100);
  ck_assert_uint_eq(FIND(PYTHON_LINES_10, table, 4), 0);
  ck_assert_uint_eq(FIND(PYTHON_LINES_10, table, 10), 90);
  ck_assert_uint_eq(FIND(PYTHON_LINES_10, table, 12), 0);
}

// A short form, one on the second line from there, one without columns 20
// lines back, a long one 100 lines on, and one without a line.
TEST(form_of_3_11) {
  static const char table[] =
      "\x80\x00"
      "\xe1\x01\x02"
      "\xe8\x29"
      "\xf0\x48\x03\x00\x01\x02"
      "\xf8";
  ck_assert_uint_eq(FIND(PYTHON_LINES_11, table, -2), 100);
  ck_assert_uint_eq(FIND(PYTHON_LINES_11, table, 1), 100);
  ck_assert_uint_eq(FIND(PYTHON_LINES_11, table, 2), 102);
  ck_assert_uint_eq(FIND(PYTHON_LINES_11, table, 5), 102);
  ck_assert_uint_eq(FIND(PYTHON_LINES_11, table, 6), 82);
  ck_assert_uint_eq(FIND(PYTHON_LINES_11, table, 8), 182);
  ck_assert_uint_eq(FIND(PYTHON_LINES_11, table, 10), 0);
  ck_assert_uint_eq(FIND(PYTHON_LINES_11, table, 12), 0);
}

// Of any length and bytes, in memory that ends where they do; the answer is
// the same each time.
TEST_LOOP(any_bytes, 3) {
  enum { ROUNDS = 20000, LONGEST = 40 };
  uint64_t random = 1;
  for (int i = 0; i < ROUNDS; i++) {
    random = mix(random, 1);
    size_t size = random % LONGEST;
    char *bytes = malloc(size + (size == 0));
    for (size_t j = 0; j < size; j++)
      bytes[j] = (char)(random = mix(random, 1));
    int32_t position = (int32_t)(mix(random, 3) % 300) - 4;
    uint32_t line = find((python_lines)_i, bytes, size, position);
    require(line == find((python_lines)_i, bytes, size, position));
    require(line <= INT32_MAX);
    free(bytes);
  }
}
