// Gather and scatter against a plain model: the library's stand-in, on devices
// that have nothing but the ABI, and the functions of those that have them.
#include "tarn/rows.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/convert.h"
#include "device/device.h"
#include "device/plugin.h"
#include "rows_model.h"
#include "support/effort.h"
#include "support/fake_extension.h"
#include "support/fake_plugin.h"
#include "support/places.h"
#include "support/run.h"

// sim without its extension: the host cannot touch its memory, so the stand-in
// has to do all by copies.
static void bare_sim_init(CustomRuntimeParams *params) {
  static char type[] = "bare";
  tarn__sim_init_plugin(params);
  if (params->device_type != NULL) params->device_type = type;
}

// Those of the list, and that one.
#define ROW_DEVICES (TEST_DEVICES + 1)

static tarn_device *open_one(int i) {
  assert_ok(tarn_plugin_register(bare_sim_init, NULL, "bare"));
  return open_device(i < TEST_DEVICES ? test_devices[i] : "bare:0");
}

// The same where the library stands in; else NULL.
static tarn_device *open_bare(int i) {
  tarn_device *device = open_one(i);
  if ((tarn_device_extensions(device) & TARN_EXTENSION_GATHER) == 0)
    return device;
  close_device(device);
  return NULL;
}

static void try_shape(tarn_device *device, const rows_shape *c,
                      tarn_stream *stream) {
  for (int a = ROWS_GATHER; a < ROWS_ACTIONS; a++) {
    if (a == ROWS_SCATTER_ADD && !tarn__convert_can_add(c->table_dtype))
      continue;
    if (a == ROWS_SCATTER && c->index_count > c->table_count) continue;
    rows_stage s;
    rows_stage_set_up(&s, device, c);
    if (a == ROWS_SCATTER) rows_stage_make_distinct(&s);
    assert_ok(rows_stage_run(&s, (rows_action)a, stream));
    if (stream != NULL) assert_ok(tarn_stream_synchronize(stream));
    rows_stage_model(&s, (rows_action)a);
    rows_stage_expect(&s);
    rows_stage_tear_down(&s);
  }
}

// --- against the model -----------------------------------------------------

static const rows_shape shapes[] = {
    {.width = 16, .table_count = 40, .index_count = 25},
    {.width = 1, .table_count = 300, .index_count = 200},
    {.width = 3, .table_count = 40, .index_count = 25, .table_gap = 8},
    {.width = 3, .table_count = 40, .index_count = 25, .dense_gap = 8},
    {.width = 5, .table_count = 9, .index_count = 31, .offset = 24},
    {.width = 7, .table_count = 12, .index_count = 11, .in_chunks = true},
    {.width = 7, .table_count = 12, .index_count = 40, .flags = 1},
    {.width = 4, .table_count = 0, .index_count = 5, .offset = 8, .flags = 1},
    {.width = 4, .table_count = 8, .index_count = 0},
    {.width = 0, .table_count = 8, .index_count = 5, .offset = 8},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

TEST_LOOP(every_shape, ROW_DEVICES) {
  tarn_device *device = open_one(_i);
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  for (size_t i = 0; i < SHAPES; i++) {
    rows_shape c = shapes[i];
    c.table_dtype = c.dense_dtype = TARN_DTYPE_F32;
    c.index_dtype = i % 2 ? TARN_DTYPE_I32 : TARN_DTYPE_I64;
    try_shape(device, &c, NULL);
    try_shape(device, &c, stream);
    c.table_dtype = TARN_DTYPE_F64;  // the same where it has to convert
    try_shape(device, &c, stream);
  }
  assert_ok(tarn_stream_destroy(stream));
}

TEST_LOOP(every_pair_of_dtypes, ROW_DEVICES) {
  tarn_device *device = open_one(_i);
  for (int to = TARN_DTYPE_F64; to <= TARN_DTYPE_BOOL; to++) {
    for (int from = TARN_DTYPE_F64; from <= TARN_DTYPE_BOOL; from++) {
      if (!tarn__convert_is_possible((tarn_dtype)to, (tarn_dtype)from))
        continue;
      rows_shape c = {.table_dtype = (tarn_dtype)to,
                      .dense_dtype = (tarn_dtype)from,
                      .index_dtype = TARN_DTYPE_I32,
                      .width = 6,
                      .table_count = 10,
                      .index_count = 9};
      try_shape(device, &c, NULL);
    }
  }
}

// More indices than are read at once, more rows than come to the host at once,
// and rows that do not fit into a staging slot.
static const rows_shape large[] = {
    {.width = 1, .table_count = 50000, .index_count = 40000},
    {.width = 300, .table_count = 2000, .index_count = 1700},
    {.width = TARN__STAGING_SLOT_SIZE / 4 + 77,
     .table_count = 3,
     .index_count = 3},
    {.width = TARN__STAGING_SLOT_SIZE / 4 + 77,
     .table_count = 3,
     .index_count = 4,
     .flags = 1},
};
enum { LARGE = sizeof large / sizeof large[0] };

TEST_LOOP(more_than_fits_in_staging,
          THREADS_ARE_WATCHED ? 0 : ROW_DEVICES *LARGE) {
  tarn_device *device = open_bare(_i % ROW_DEVICES);
  if (device == NULL) return;
  rows_shape c = large[_i / ROW_DEVICES];
  c.table_dtype = c.dense_dtype = TARN_DTYPE_F32;
  c.index_dtype = TARN_DTYPE_I64;
  try_shape(device, &c, NULL);
  c.dense_dtype = TARN_DTYPE_F16;
  try_shape(device, &c, NULL);
}

// --- what is refused -------------------------------------------------------

static const rows_shape plain = {.table_dtype = TARN_DTYPE_F32,
                                 .dense_dtype = TARN_DTYPE_F32,
                                 .index_dtype = TARN_DTYPE_I64,
                                 .width = 4,
                                 .table_count = 10,
                                 .index_count = 20000};

// The bad index is in the second piece; no row of the first has moved.
TEST_LOOP(a_bad_index_moves_nothing, ROW_DEVICES *ROWS_ACTIONS) {
  tarn_device *device = open_bare(_i % ROW_DEVICES);
  if (device == NULL) return;
  rows_action a = (rows_action)(_i / ROW_DEVICES);
  rows_stage s;
  rows_stage_set_up(&s, device, &plain);
  s.indices[19990] = 10;
  s.indices[19991] = -1;
  rows_stage_upload_indices(&s);
  assert_fails(rows_stage_run(&s, a, NULL), TARN_E_INVALID,
               "index 10 at position 19990 is not in 0..9");
  assert_error_says(a == ROWS_GATHER ? ":0: gather: " : ":0: scatter");
  rows_stage_expect(&s);
  rows_stage_tear_down(&s);
}

TEST_LOOP(a_bad_index_is_told_everywhere, ROW_DEVICES) {
  tarn_device *device = open_one(_i);
  rows_stage s;
  rows_stage_set_up(&s, device, &plain);
  s.indices[7] = 1 << 20;
  rows_stage_upload_indices(&s);
  assert_fails(tarn_rows_gather(device, &s.rows, NULL), TARN_E_INVALID,
               "index 1048576 at position 7 is not in 0..9");
  rows_stage_tear_down(&s);
}

TEST_LOOP(a_row_in_two_chunks_is_refused, ROW_DEVICES) {
  rows_shape c = plain;
  c.in_chunks = true;
  tarn_device *device = open_one(_i);
  rows_stage s;
  rows_stage_set_up(&s, device, &c);
  s.offsets[1] -= 4;  // the last element of row 4 is said to be elsewhere
  s.indices[19999] = 4;
  rows_stage_upload_indices(&s);
  assert_fails(tarn_rows_scatter(device, &s.rows, NULL), TARN_E_INVALID,
               "row 4 of the table spans two chunks");
  s.offsets[1] += 4;
  rows_stage_tear_down(&s);
}

TEST(impossible_rows_are_refused) {
  tarn_device *device = open_device("fake:0");
  tarn_device *cpu = NULL;
  tarn_stream *strange = NULL;
  rows_stage s;
  rows_stage_set_up(&s, device, &plain);
  assert_ok(tarn_device_open("cpu:0", &cpu));
  assert_ok(tarn_stream_create(cpu, &strange));
  assert_status(tarn_rows_gather(device, NULL, NULL), TARN_E_INVALID);
  assert_status(tarn_rows_gather(NULL, &s.rows, NULL), TARN_E_INVALID);
  assert_status(tarn_rows_gather(device, &s.rows, strange), TARN_E_INVALID);
  s.rows.table_dtype = TARN_DTYPE_I32;
  assert_fails(tarn_rows_scatter(device, &s.rows, NULL), TARN_E_INVALID,
               "no conversion");
  s.rows.table_dtype = s.rows.dense_dtype = TARN_DTYPE_BOOL;
  assert_fails(tarn_rows_scatter_add(device, &s.rows, NULL), TARN_E_INVALID,
               "elements of bool cannot be added");
  s.rows.flags = 4;
  assert_status(tarn_rows_gather(device, &s.rows, NULL), TARN_E_INVALID);
  rows_stage_tear_down(&s);
  assert_ok(tarn_stream_destroy(strange));
  assert_ok(tarn_device_close(cpu));
}

// --- the device's own functions --------------------------------------------

TEST_LOOP(the_slots_are_called, 2) {
  static const uint64_t slots[] = {FAKE_SLOT(gather), FAKE_SLOT(scatter),
                                   FAKE_SLOT(scatter_add)};
  tarn_stream *stream = NULL;
  fake_ext.there = true;
  fake.null_handles = _i != 0;
  tarn_device *device = open_device("fake:0");
  rows_stage s;
  rows_stage_set_up(&s, device, &plain);
  assert_ok(tarn_stream_create(device, &stream));
  for (int a = ROWS_GATHER; a < ROWS_ACTIONS; a++) {
    fake_ext_seen.called = 0;
    assert_ok(rows_stage_run(&s, (rows_action)a, stream));
    ck_assert_uint_eq(fake_ext_seen.called, slots[a]);
    ck_assert_ptr_eq(fake_ext_seen.stream, tarn_stream_native(stream));
    ck_assert_uint_eq(fake_ext_seen.rows.table_stride, 16);  // strides are set
    ck_assert_uint_eq(fake_ext_seen.rows.dense_stride, 16);
  }
  // Nothing to do is no call.
  fake_ext_seen.called = 0;
  s.rows.index_count = 0;
  assert_ok(tarn_rows_gather(device, &s.rows, stream));
  ck_assert_uint_eq(fake_ext_seen.called, 0);
  s.rows.index_count = plain.index_count;
  assert_ok(tarn_stream_destroy(stream));
  rows_stage_tear_down(&s);
}

TEST(refusals_of_the_slots) {
  tarn_stream *stream = NULL;
  fake_ext.there = true;
  fake_ext.text = "index 7 at position 3";
  tarn_device *device = open_device("fake:0");
  rows_stage s;
  rows_stage_set_up(&s, device, &plain);
  assert_ok(tarn_stream_create(device, &stream));
  fake_ext.refusing = FAKE_SLOT(gather);
  fake_ext.answer = TARN_E_INVALID;
  assert_fails(
      tarn_rows_gather(device, &s.rows, stream), TARN_E_INVALID,
      "fake:0: gather answered -1 (TARN_E_INVALID): index 7 at position 3");
  fake_ext.answer = TARN_E_NOMEM;
  assert_status(tarn_rows_gather(device, &s.rows, stream), TARN_E_NOMEM);
  assert_ok(tarn_stream_query(stream));
  fake_ext.answer = TARN_E_UNSUPPORTED;  // then the library stands in
  assert_ok(tarn_rows_gather(device, &s.rows, stream));
  rows_stage_model(&s, ROWS_GATHER);
  rows_stage_expect(&s);
  fake_ext.answer = TARN_E_DEVICE;
  assert_status(tarn_rows_gather(device, &s.rows, stream), TARN_E_DEVICE);
  assert_status(tarn_stream_query(stream), TARN_E_DEVICE);
  assert_status(tarn_rows_gather(device, &s.rows, stream), TARN_E_DEVICE);
  assert_status(tarn_stream_destroy(stream), TARN_E_DEVICE);
  rows_stage_tear_down(&s);
}

// --- order and failures ----------------------------------------------------

// What is queued before it has been done by the time that rows are moved.
TEST(the_stand_in_waits_for_the_stream) {
  tarn_stream *stream = NULL;
  tarn_device *device = open_device("fake:0");
  rows_stage s;
  rows_stage_set_up(&s, device, &plain);
  assert_ok(tarn_stream_create(device, &stream));
  rows_fill(s.table, s.table_size, TARN_DTYPE_F32);
  assert_ok(tarn_copy_h2d(device, s.chunks[0], s.table, s.table_size, stream));
  assert_ok(tarn_rows_gather(device, &s.rows, stream));
  rows_stage_model(&s, ROWS_GATHER);
  rows_stage_expect(&s);
  assert_ok(tarn_stream_destroy(stream));
  rows_stage_tear_down(&s);
}

TEST(a_failed_copy_fails_the_stream) {
  tarn_stream *stream = NULL;
  tarn_device *device = open_device("fake:0");
  rows_stage s;
  rows_stage_set_up(&s, device, &plain);
  assert_ok(tarn_stream_create(device, &stream));
  fake.copy_answer = C_FAILED;  // no resources: nothing sticks
  assert_status(tarn_rows_gather(device, &s.rows, stream), TARN_E_NOMEM);
  assert_ok(tarn_stream_query(stream));
  fake.copy_answer = C_ERROR;
  assert_status(tarn_rows_gather(device, &s.rows, stream), TARN_E_DEVICE);
  fake.copy_answer = C_SUCCESS;
  assert_status(tarn_rows_gather(device, &s.rows, stream), TARN_E_DEVICE);
  assert_status(tarn_stream_destroy(stream), TARN_E_DEVICE);
  rows_stage_tear_down(&s);
}

TEST(no_staging_is_no_memory) {
  tarn_device *device = open_device("fake:0");
  rows_stage s;
  rows_stage_set_up(&s, device, &plain);
  fake.capacity = fake_seen.live_bytes;
  assert_status(tarn_rows_gather(device, &s.rows, NULL), TARN_E_NOMEM);
  rows_stage_expect(&s);
  fake.capacity = SIZE_MAX;
  assert_ok(tarn_rows_gather(device, &s.rows, NULL));
  rows_stage_tear_down(&s);
}

static void expect_state(rows_stage *s) {
  for (int a = ROWS_GATHER; a < ROWS_ACTIONS; a++) {
    assert_status(rows_stage_run(s, (rows_action)a, NULL), TARN_E_STATE);
  }
}

static void on_done(void *context, tarn_status status) {
  assert_ok(status);
  expect_state(context);
}

TEST(not_in_callbacks_nor_children) {
  tarn_stream *stream = NULL;
  tarn_device *device = open_device("fake:0");
  rows_stage s;
  rows_stage_set_up(&s, device, &plain);
  assert_ok(tarn_stream_create(device, &stream));
  assert_ok(tarn_stream_add_callback(stream, on_done, &s));
  assert_ok(tarn_stream_destroy(stream));
  pid_t child = fork();
  if (child == 0) {
    expect_state(&s);
    _exit(0);
  }
  int status = 1;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  rows_stage_tear_down(&s);
}
