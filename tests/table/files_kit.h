// files_kit.h - tables to store and to load, and a folder for their files.
#ifndef TARN_TESTS_TABLE_FILES_KIT_H_
#define TARN_TESTS_TABLE_FILES_KIT_H_

#include "tarn/table.h"
#include "whole/kit.h"

static char folder[64];
static char path[128];

static inline void make_folder(void) {
  snprintf(folder, sizeof folder, "/tmp/tarn-files-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline void remove_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  ck_assert_int_eq(system(command), 0);
}

static inline const char *in_folder(const char *name) {
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static inline size_t count_names(void) {
  char command[128];
  size_t count = 0;
  snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
  FILE *names = popen(command, "r");
  ck_assert_ptr_nonnull(names);
  ck_assert_int_eq(fscanf(names, "%zu", &count), 1);
  pclose(names);
  return count;
}

// --- tables ----------------------------------------------------------------

typedef struct shape {
  tarn_dtype dtype;
  size_t rows;
  size_t width;  // 0: a vector
} shape;

static inline tarn_whole_tensor make(const shape *s, tarn_whole_type type,
                                     tarn_place place) {
  tarn_whole_tensor made;
  const tarn_whole_table_options options = {.struct_size = sizeof options,
                                            .type = type,
                                            .place = place,
                                            .dtype = s->dtype,
                                            .rows = s->rows,
                                            .width = s->width};
  MUST_BE(tarn_whole_table_create(my.comm, &options, &made), TARN_OK);
  return made;
}

typedef struct own {
  size_t first;
  size_t count;
  size_t row;
  tarn_addr address;
} own;

static inline own own_of(const tarn_whole_tensor *t) {
  own o = {.row = t->width * tarn_dtype_size(t->dtype)};
  MUST_BE(tarn_whole_tensor_rows(t, my.rank, &o.first, &o.count), TARN_OK);
  MUST_BE(tarn_whole_tensor_local(t, &o.address), TARN_OK);
  return o;
}

// --- floats ----------------------------------------------------------------

static inline float value_of(size_t row, size_t column) {
  return (float)(row * 64 + column) / 8;
}

static const shape floats = {TARN_DTYPE_F32, 3000, 40};

static inline void fill_floats(const tarn_whole_tensor *t, float sign) {
  own o = own_of(t);
  float *values = host_bytes(o.address);
  for (size_t i = 0; i < o.count * t->width; i++)
    values[i] = sign * value_of(o.first + i / t->width, i % t->width);
  meet_all();
}

// All of this rank's rows are those of fill_floats.
static inline void see_floats(const tarn_whole_tensor *t, float sign) {
  own o = own_of(t);
  const float *values = host_bytes(o.address);
  for (size_t i = 0; i < o.count * t->width; i++)
    MUST(values[i] == sign * value_of(o.first + i / t->width, i % t->width));
  meet_all();
}

#endif  // TARN_TESTS_TABLE_FILES_KIT_H_
