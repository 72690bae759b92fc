// rows_model.h - gather and scatter on a device beside a plain model of them.
#ifndef TARN_TESTS_DEVICE_ROWS_MODEL_H_
#define TARN_TESTS_DEVICE_ROWS_MODEL_H_

#include "tarn/device.h"

typedef enum rows_action {
  ROWS_GATHER,
  ROWS_SCATTER,
  ROWS_SCATTER_ADD,
  ROWS_ACTIONS
} rows_action;

typedef struct rows_shape {
  tarn_dtype table_dtype;
  tarn_dtype dense_dtype;
  tarn_dtype index_dtype;
  size_t width;
  size_t table_count;
  size_t index_count;
  size_t table_gap;  // bytes between rows
  size_t dense_gap;
  size_t offset;
  bool in_chunks;  // the table lies in two
  uint32_t flags;
} rows_shape;

// What is on the device, and the same on the host. It must stay where it is.
typedef struct rows_stage {
  tarn_device *device;
  tarn_rows rows;
  tarn_addr chunks[2];
  size_t offsets[3];
  size_t table_size;
  size_t dense_size;
  size_t index_size;
  unsigned char *table;
  unsigned char *dense;
  int64_t *indices;
} rows_stage;

// Random numbers of |dtype| into |size| bytes.
void rows_fill(unsigned char *bytes, size_t size, tarn_dtype dtype);

// Takes memory of |device| for a case and fills it.
void rows_stage_set_up(rows_stage *s, tarn_device *device, const rows_shape *c);
void rows_stage_tear_down(rows_stage *s);

// After |indices| were changed.
void rows_stage_upload_indices(rows_stage *s);

// All indices different: a scatter of equal ones may leave any of the rows.
void rows_stage_make_distinct(rows_stage *s);

// Does it on the device; on the host.
tarn_status rows_stage_run(rows_stage *s, rows_action a, tarn_stream *stream);
void rows_stage_model(rows_stage *s, rows_action a);

// Table and dense rows are the same on both, gaps included.
void rows_stage_expect(const rows_stage *s);

#endif  // TARN_TESTS_DEVICE_ROWS_MODEL_H_
