// What the tests of `tarn plan` have in common: small tables.
#ifndef TARN_TESTS_TOOL_PLAN_KIT_H_
#define TARN_TESTS_TOOL_PLAN_KIT_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"
#include "support/tool_run.h"
#include "tarn/plan_csv.h"

// b lies over a and c, which share bytes: 5120 bytes.
#define THREE             \
  "id,lower,upper,size\n" \
  "a,0,3,1024\n"          \
  "b,1,5,4096\n"          \
  "c,3,6,1024\n"

// A file with |text| in it.
static inline const char *plan_file(const char *name, const char *text) {
  return tool_write_file(tool_file(name), text);
}

// Writes a table of |count| buffers that overlap at random, always the same;
// with |alignment| no proof of the lowest plan comes to an end.
static inline const char *plan_random_file(const char *name, int count,
                                           unsigned alignment) {
  const char *path = tool_file(name);
  unsigned state = 1;
  FILE *out = fopen(path, "w");
  ck_assert_ptr_nonnull(out);
  fputs("id,lower,upper,size,alignment\n", out);
  for (int i = 0; i < count; i++) {
    state = state * 1103515245 + 12345;
    unsigned first = state >> 16 & 1023;
    state = state * 1103515245 + 12345;
    unsigned length = 1 + (state >> 16 & 255);
    state = state * 1103515245 + 12345;
    unsigned size = 1 + (state >> 16 & 4095);
    fprintf(out, "%d,%u,%u,%u,%u\n", i, first, first + length, size, alignment);
  }
  ck_assert_int_eq(fclose(out), 0);
  return path;
}

// The file is a plan: checked by the library's own check. Returns its height.
static inline uint64_t assert_plan(const char *path) {
  tarn_plan_csv_options options = {.struct_size = sizeof options,
                                   .offsets_are_answers = true};
  tarn_plan_table *table = NULL;
  uint64_t height = 0;
  assert_ok(tarn_plan_table_read(path, &options, &table));
  const uint64_t *offsets = tarn_plan_table_offsets(table);
  ck_assert_ptr_nonnull(offsets);
  assert_ok(
      tarn_plan_verify(tarn_plan_table_problem(table), offsets, NULL, &height));
  tarn_plan_table_destroy(table);
  return height;
}

#endif  // TARN_TESTS_TOOL_PLAN_KIT_H_
