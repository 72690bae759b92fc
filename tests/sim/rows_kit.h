// rows_kit.h - a table of rows on a simulated device, for tests.
#ifndef TARN_TESTS_SIM_ROWS_KIT_H_
#define TARN_TESTS_SIM_ROWS_KIT_H_

#include "ext_kit.h"

static inline uint64_t take(int id, size_t size) {
  void *block = NULL;
  require(table.device_memory_allocate(&ids[id], &block, size) == C_SUCCESS);
  return (uintptr_t)block;
}

static inline C_Status give(int id, uint64_t address, size_t size) {
  return table.device_memory_deallocate(&ids[id], ext_pointer(address), size);
}

enum { ROWS = 16, WIDTH = 5 };

// A table of ROWS rows that goes over an edge between two mappings.
typedef struct setting {
  uint64_t range;
  uint64_t table;
  uint64_t dense;
  uint64_t indices;
  size_t offsets[2];
  tarn_rows rows;
} setting;

static setting s;

static const int32_t wanted[4] = {3, 15, 0, 7};

static inline void set_up_rows(int id) {
  static float values[ROWS * WIDTH];
  s.range = ext_reserve(id, 2 * GRANULE);
  ext_map(id, s.range, GRANULE, ext_create(0, GRANULE, 0));
  ext_map(id, s.range + GRANULE, GRANULE, ext_create(1, GRANULE, 0));
  s.table = s.range + GRANULE - 150;  // an edge within an element
  s.dense = take(id, sizeof(float) * 4 * WIDTH);
  s.indices = take(id, sizeof wanted);
  for (int i = 0; i < ROWS * WIDTH; i++)
    values[i] = (float)i;
  ext_write(id, s.table, values, sizeof values);
  ext_write(id, s.indices, wanted, sizeof wanted);
  s.offsets[1] = sizeof values;
  s.rows = (tarn_rows){.struct_size = sizeof s.rows,
                       .table = {&s.table, s.offsets, 1},
                       .table_dtype = TARN_DTYPE_F32,
                       .table_stride = sizeof(float) * WIDTH,
                       .table_count = ROWS,
                       .width = WIDTH,
                       .dense = s.dense,
                       .dense_dtype = TARN_DTYPE_F32,
                       .dense_stride = sizeof(float) * WIDTH,
                       .indices = s.indices,
                       .index_dtype = TARN_DTYPE_I32,
                       .index_count = 4};
}

#endif  // TARN_TESTS_SIM_ROWS_KIT_H_
