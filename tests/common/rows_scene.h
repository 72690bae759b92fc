// rows_scene.h - a table, dense rows and indices in memory of the test, and a
// loop that takes one row after the other, beside tarn__rows_run.
#ifndef TARN_TESTS_COMMON_ROWS_SCENE_H_
#define TARN_TESTS_COMMON_ROWS_SCENE_H_

#include "base/rows.h"
#include "tarn/base.h"

enum {
  ROWS_SCENE_LINE = 64,
  ROWS_SCENE_CHUNKS = 4,  // at most
  ROWS_SCENE_TEXT = 160,
};

typedef struct rows_scene_shape {
  tarn_dtype table;
  tarn_dtype dense;
  size_t width;
  size_t table_count;
  size_t index_count;
  size_t table_gap;  // bytes between rows
  size_t dense_gap;
  size_t table_shift;  // of the first row, from the beginning of a line on
  size_t dense_shift;
  size_t chunks;  // 0: one
  size_t meet;    // rows among which indices are; 0: all
  uint32_t flags;
  uint32_t threads;
  bool narrow;  // i32 indices
} rows_scene_shape;

typedef struct rows_scene_block {
  unsigned char *bytes;  // what the library gets
  unsigned char *model;
  unsigned char *all;  // |bytes| and slack, whose size is |size|
  size_t size;
} rows_scene_block;

typedef struct rows_scene {
  rows_scene_block table;
  rows_scene_block dense;
  int64_t *wanted;
  void *indices;
  tarn_addr chunks[ROWS_SCENE_CHUNKS];
  size_t offsets[ROWS_SCENE_CHUNKS + 1];
  tarn_rows rows;
} rows_scene;

// A number below |below|, the same ones in every run.
size_t rows_scene_draw(size_t below);

tarn_addr rows_scene_address(const void *ptr);

// Makes all that |c| tells of; ends it.
void rows_scene_set_up(rows_scene *s, const rows_scene_shape *c);
void rows_scene_tear_down(rows_scene *s);

// Exchanges an index.
void rows_scene_put(rows_scene *s, size_t position, int64_t index);

// The call, with room of ROWS_SCENE_TEXT at |text|.
tarn_status rows_scene_run(rows_scene *s, tarn__rows_action action, char *text);

// Every byte of both blocks is as the model has it, and so are equal indices:
// of a scatter the last stays, and sums are made in order.
void rows_scene_expect(rows_scene *s, tarn__rows_action action);

#endif  // TARN_TESTS_COMMON_ROWS_SCENE_H_
