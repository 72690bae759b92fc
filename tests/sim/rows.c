// Gather and scatter on simulated devices.
#include "rows_kit.h"

static void check_dense(int id, float factor) {
  float got[4 * WIDTH];
  ext_read(id, got, s.dense, sizeof got);
  for (int i = 0; i < 4; i++) {
    for (int k = 0; k < WIDTH; k++) {
      float value = (float)(wanted[i] * WIDTH + k) * factor;
      ck_assert_float_eq(got[i * WIDTH + k], value);
    }
  }
}

static void round_of_rows(C_Stream stream) {
  float zeros[4 * WIDTH] = {0};
  assert_ok(ext->gather(0, stream, &s.rows));
  if (stream != NULL) table.synchronize_stream(&ids[0], stream);
  check_dense(0, 1);
  assert_ok(ext->scatter_add(0, stream, &s.rows));
  assert_ok(ext->gather(0, stream, &s.rows));
  if (stream != NULL) table.synchronize_stream(&ids[0], stream);
  check_dense(0, 2);
  ext_write(0, s.dense, zeros, sizeof zeros);
  assert_ok(ext->scatter(0, stream, &s.rows));
  assert_ok(ext->gather(0, stream, &s.rows));
  if (stream != NULL) table.synchronize_stream(&ids[0], stream);
  check_dense(0, 0);
}

TEST(rows_go_there_and_back) {
  ext_init(0);
  set_up_rows(0);
  round_of_rows(NULL);
  ext_finalize(0);
}

TEST(rows_go_there_and_back_on_a_stream) {
  ext_init(1000);
  C_Stream stream = ext_stream(0);
  set_up_rows(0);
  round_of_rows(stream);
  assert_done(table.query_stream(&ids[0], stream));
  ext_finalize(0);
}

// A table in another device's range, indices and dense rows of the host.
TEST(rows_reach_what_the_device_does) {
  static float dense[4 * WIDTH];
  static int32_t indices[4];
  void *pinned = NULL;
  ext_init(0);
  set_up_rows(1);
  memcpy(indices, wanted, sizeof wanted);
  assert_done(table.host_memory_allocate(&ids[0], &pinned, sizeof dense));
  s.rows.dense = (uintptr_t)pinned;
  s.rows.indices = (uintptr_t)indices;
  assert_refused(ext->gather(0, NULL, &s.rows), "sim:0: gather of");
  assert_reported("no access: sim:0 may not read there");
  assert_ok(
      ext->range_set_access(1, s.range, 2 * GRANULE, 0, TARN_EXT_ACCESS_READ));
  assert_refused(ext->gather(0, NULL, &s.rows),
                 "an address of the host where one of sim:0 belongs");
  assert_ok(ext->host_register(0, indices, sizeof indices));
  assert_ok(ext->gather(0, NULL, &s.rows));
  ck_assert_float_eq(((float *)pinned)[WIDTH], 75);
  assert_refused(ext->scatter(0, NULL, &s.rows),
                 "no access: sim:0 may not write there");
  s.rows.dense = (uintptr_t)dense;
  assert_refused(ext->gather(0, NULL, &s.rows), "an address of the host");
  assert_ok(ext->host_register(0, dense, sizeof dense));
  assert_ok(ext->gather(0, NULL, &s.rows));
  ck_assert_float_eq(dense[WIDTH], 75);
  ext_finalize(4);
}

TEST(bad_indices_are_named) {
  static const int32_t bad[4] = {3, 16, 0, -1};
  ext_init(0);
  C_Stream stream = ext_stream(0);
  set_up_rows(0);
  ext_write(0, s.indices, bad, sizeof bad);
  assert_refused(ext->gather(0, NULL, &s.rows),
                 "sim:0: gather: index 16 at position 1");
  assert_ok(ext->scatter(0, stream, &s.rows));
  assert_c(table.synchronize_stream(&ids[0], stream), C_ERROR);
  assert_text_says(stream, "sim:0: scatter: index 16 at position 1");
  s.rows.flags = TARN_ROWS_SKIP_BAD;
  assert_ok(ext->gather(0, NULL, &s.rows));
  ext_finalize(2);
}

TEST(wrong_rows_are_refused) {
  ext_init(20000000);
  C_Stream stream = ext_stream(0);
  C_Stream other = ext_stream(1);
  set_up_rows(0);
  assert_refused(ext->scatter_add(0, other, &s.rows),
                 "scatter_add: no stream of this device");
  s.rows.dense += sizeof(float);
  assert_refused(ext->gather(0, stream, &s.rows),
                 "4 bytes beyond the end of a block");
  s.rows.dense -= sizeof(float);
  // A block that goes while rows are queued fails the stream.
  assert_ok(ext->gather(0, stream, &s.rows));
  assert_ok(ext->gather(0, stream, &s.rows));
  assert_done(give(0, s.dense, sizeof(float) * 4 * WIDTH));
  assert_c(table.synchronize_stream(&ids[0], stream), C_ERROR);
  assert_text_says(stream, "use after free of a block");
  assert_done(table.finalize());
}

// Rows that were queued before a block was given back on their stream.
TEST(rows_come_before_a_farewell) {
  ext_init(5000000);
  C_Stream stream = ext_stream(0);
  set_up_rows(0);
  assert_ok(ext->gather(0, stream, &s.rows));
  assert_ok(ext->scatter(0, stream, &s.rows));
  assert_ok(
      ext->deallocate_async(0, stream, s.dense, sizeof(float) * 4 * WIDTH));
  assert_refused(ext->gather(0, stream, &s.rows), "use after free");
  assert_done(table.synchronize_stream(&ids[0], stream));
  ext_finalize(1);
}
