// csv_kit.h - what the tests of tables have in common.
#ifndef TARN_TESTS_PLAN_CSV_KIT_H_
#define TARN_TESTS_PLAN_CSV_KIT_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/faults.h"
#include "support/run.h"
#include "tarn/plan_csv.h"

#define FIRST "id,lower,upper,size\n"
#define ALL "id,lower,upper,size,alignment,gaps,offset,in_place_of,arena\n"
#define MOST "18446744073709551615"

static tarn_plan_table *table;
static char folder[64];
static char path[96];

static inline void begin(void) {
  table = NULL;
  snprintf(folder, sizeof folder, "/tmp/tarn-csv-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/made.csv", folder);
}

static inline void end(void) {
  tarn_plan_table_destroy(table);
  unlink(path);
  ck_assert_int_eq(rmdir(folder), 0);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// Of memory of just that size, so that a sanitizer sees a read beyond it.
static inline tarn_status read_bytes(const void *bytes, size_t size,
                                     const tarn_plan_csv_options *options) {
  char *own = malloc(size > 0 ? size : 1);
  require(own != NULL);
  if (size > 0) memcpy(own, bytes, size);
  tarn_plan_table_destroy(table);
  tarn_status status =
      tarn_plan_table_read_bytes(own, size, "made", options, &table);
  free(own);
  require((status == TARN_OK) == (table != NULL));
  return status;
}

static inline tarn_status read_text(const char *text) {
  return read_bytes(text, strlen(text), NULL);
}

static inline const tarn_plan_problem *read_good(const char *text) {
  assert_ok(read_text(text));
  const tarn_plan_problem *problem = tarn_plan_table_problem(table);
  uint64_t bound = 0;
  // What the reader takes, the planner takes.
  bool in_arenas = false;
  for (size_t i = 0; i < problem->count; i++)
    in_arenas |= (problem->buffers[i].flags & TARN_PLAN_IN_ARENA) != 0;
  if (!in_arenas) assert_ok(tarn_plan_lower_bound(problem, &bound));
  return problem;
}

static inline void assert_refused(const char *text, const char *what) {
  assert_status(read_text(text), TARN_E_CORRUPT);
  ck_assert_msg(strcmp(tarn_last_error(), what) == 0, "'%s' is not '%s'",
                tarn_last_error(), what);
}

static inline char *read_file(void) {
  FILE *file = fopen(path, "rb");
  ck_assert_ptr_nonnull(file);
  char *text = calloc(1, 1 << 20);
  require(text != NULL);
  size_t size = fread(text, 1, (1 << 20) - 1, file);
  text[size] = '\0';
  fclose(file);
  return text;
}

static inline void write_file(const char *text) {
  FILE *file = fopen(path, "wb");
  ck_assert_ptr_nonnull(file);
  fputs(text, file);
  fclose(file);
}

static inline void assert_written(const uint64_t *offsets,
                                  const uint32_t *arenas,
                                  const char *expected) {
  assert_ok(tarn_plan_table_write(table, offsets, arenas, path));
  char *text = read_file();
  ck_assert_str_eq(text, expected);
  free(text);
}

FIXTURE(begin, end);

#endif  // TARN_TESTS_PLAN_CSV_KIT_H_
