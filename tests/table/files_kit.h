// files_kit.h - tables to store and to load, and a folder for their files.
#ifndef TARN_TESTS_TABLE_FILES_KIT_H_
#define TARN_TESTS_TABLE_FILES_KIT_H_

#include <fcntl.h>

#include "tarn/table.h"
#include "whole/kit.h"

static char folder[64];
static char path[128];

static inline void make_folder_in(const char *parent) {
  snprintf(folder, sizeof folder, "%s/tarn-files-XXXXXX", parent);
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline void make_folder(void) {
  make_folder_in("/tmp");
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
  snprintf(command, sizeof command, "ls -A %s | grep -vcx lost+found", folder);
  FILE *names = popen(command, "r");
  ck_assert_ptr_nonnull(names);
  ck_assert_int_eq(fscanf(names, "%zu", &count), 1);
  pclose(names);
  return count;
}

// Takes what is on the disk out of the page cache.
static inline void forget_cached(const char *file) {
  int fd = open(file, O_RDONLY | O_CLOEXEC);
  MUST(fd >= 0);
  MUST(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
  MUST(close(fd) == 0);
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

// Whether |values| are those of fill_floats, from row |first| on.
static inline bool are_floats(const float *values, size_t first, size_t rows,
                              size_t width, float sign) {
  for (size_t i = 0; i < rows * width; i++)
    if (values[i] != sign * value_of(first + i / width, i % width))
      return false;
  return true;
}

// Whether all of this rank's rows are.
static inline bool has_floats(const tarn_whole_tensor *t, float sign) {
  own o = own_of(t);
  return are_floats(host_bytes(o.address), o.first, o.count, t->width, sign);
}

static inline void see_floats(const tarn_whole_tensor *t, float sign) {
  MUST(has_floats(t, sign));
  meet_all();
}

#endif  // TARN_TESTS_TABLE_FILES_KIT_H_
