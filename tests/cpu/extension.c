// The cpu plug-in beyond the ABI, but for ranges: blocks, stream order,
// registration, addresses, texts, rows.
#include <pthread.h>

#include "base/rows.h"
#include "host.h"
#include "support/faults.h"

static const tarn_device_ext *ext;
static C_DeviceInterface cpu;

static uint64_t address_of(const void *ptr) {
  return (uint64_t)(uintptr_t)ptr;
}

static void *pointer_to(uint64_t addr) {
  return (void *)(uintptr_t)addr;
}

// But for handles of allocations, since cpu has ranges, which share memory, and
// for what is about streams.
TEST(the_table_is_whole) {
  ck_assert_uint_eq(ext->struct_size, sizeof *ext);
  ck_assert_uint_eq(ext->version, TARN_DEVICE_EXT_VERSION);
  ck_assert_uint_eq(ext->flags, 0);
  size_t head = offsetof(tarn_device_ext, alignment);
  size_t handles = offsetof(tarn_device_ext, allocation_export);
  for (size_t at = head; at < sizeof *ext; at += sizeof(void *)) {
    void *slot = NULL;
    memcpy(&slot, (const char *)ext + at, sizeof slot);
    bool has = at < handles || at == offsetof(tarn_device_ext, range_move);
    ck_assert_msg((slot != NULL) == has, "the slot at byte %zu", at);
  }
}

// --- blocks ----------------------------------------------------------------

TEST(alignment_is_kept) {
  size_t align = 0;
  assert_ext_ok(ext->alignment(0, &align));
  ck_assert_uint_eq(align, 256);
  for (size_t size = 1; size < (size_t)1 << 20; size = size * 3 + 1) {
    void *ptr = NULL;
    assert_done(cpu.device_memory_allocate(CPU, &ptr, size));
    ck_assert_uint_eq(address_of(ptr) % align, 0);
    assert_done(cpu.device_memory_deallocate(CPU, ptr, size));
  }
}

TEST(any_alignment_of_any_size) {
  static const size_t sizes[] = {1,      100,     4096,    131071,
                                 131072, 1000000, 3 << 20, 200};
  for (size_t align = 1; align <= (size_t)64 << 20; align *= 2) {
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
      uint64_t addr = 0;
      assert_ext_ok(ext->allocate_aligned(0, sizes[i], align, &addr));
      require(addr % align == 0 && addr % 256 == 0);
      char *bytes = pointer_to(addr);
      bytes[0] = bytes[sizes[i] - 1] = 1;
      require(cpu.device_memory_deallocate(CPU, bytes, sizes[i]) == C_SUCCESS);
    }
  }
}

TEST(blocks_that_cannot_be) {
  uint64_t addr = 1;
  size_t align = 1;
  assert_ext_wrong(ext->alignment(1, &align), "there is no device 1");
  ck_assert_uint_eq(align, 0);
  assert_ext_wrong(ext->allocate_aligned(-1, 1, 1, &addr), "no device -1");
  ck_assert_uint_eq(addr, 0);
  assert_ext_wrong(ext->allocate_aligned(0, 0, 1, &addr), "0 bytes");
  assert_ext_wrong(ext->allocate_aligned(0, 1, 0, &addr), "alignment of 0");
  assert_ext_wrong(ext->allocate_aligned(0, 1, 48, &addr), "alignment of 48");
  addr = 1;
  assert_ext(ext->allocate_aligned(0, (size_t)1 << 60, 256, &addr), TARN_FULL);
  ck_assert_uint_eq(addr, 0);
  assert_ext(ext->allocate_aligned(0, 1 << 20, (size_t)1 << 62, &addr),
             TARN_FULL);
  assert_ext(ext->allocate_aligned(0, SIZE_MAX, 256, &addr), TARN_FULL);
  ck_assert_ptr_nonnull(strstr(ext_text(NULL), "at a multiple of 256"));
}

// --- stream order ----------------------------------------------------------

TEST(blocks_go_when_the_stream_gets_there) {
  C_Stream stream = new_stream(&cpu);
  gate g;
  uint64_t addr[2] = {0, 0};
  static const size_t sizes[2] = {1000, 1 << 20};
  for (size_t i = 0; i < 2; i++)
    assert_ext_ok(ext->allocate_async(0, stream, sizes[i], &addr[i]));
  gate_close(&g, &cpu, stream);
  for (size_t i = 0; i < 2; i++) {
    assert_ext_ok(ext->deallocate_async(0, stream, addr[i], sizes[i]));
    memset(pointer_to(addr[i]), 1, sizes[i]);
  }
  gate_open(&g);
  assert_done(cpu.synchronize_stream(CPU, stream));
  assert_done(cpu.destroy_stream(CPU, stream));
}

TEST(either_way_back_will_do) {
  C_Stream stream = new_stream(&cpu);
  uint64_t addr = 0;
  void *ptr = NULL;
  assert_ext_ok(ext->allocate_async(0, stream, 1 << 20, &addr));
  assert_done(cpu.device_memory_deallocate(CPU, pointer_to(addr), 1 << 20));
  assert_done(cpu.device_memory_allocate(CPU, &ptr, 500));
  assert_ext_ok(ext->deallocate_async(0, stream, address_of(ptr), 500));
  assert_ext_ok(ext->allocate_async(0, NULL, 500, &addr));
  assert_ext_ok(ext->deallocate_async(0, NULL, addr, 500));
  assert_done(cpu.destroy_stream(CPU, stream));
}

TEST(stream_order_that_cannot_be) {
  C_Stream stream = new_stream(&cpu);
  uint64_t addr = 1;
  assert_ext_wrong(ext->allocate_async(1, stream, 8, &addr), "no device 1");
  ck_assert_uint_eq(addr, 0);
  assert_ext_wrong(ext->allocate_async(0, stream, 0, &addr), "0 bytes");
  assert_ext(ext->allocate_async(0, stream, (size_t)1 << 60, &addr), TARN_FULL);
  assert_ext_wrong(ext->deallocate_async(0, stream, 0, 8), "no block");
  assert_ext_wrong(ext->deallocate_async(0, stream, 4096, 0), "no block");
  assert_ext_wrong(ext->deallocate_async(2, stream, 4096, 8), "no device 2");
  assert_done(cpu.destroy_stream(CPU, stream));
}

// --- registration and addresses --------------------------------------------

TEST(registrations) {
  static char bytes[4096];
  tarn_ext_pointer p;
  assert_ext_ok(ext->host_register(0, bytes, 1000));
  assert_ext_ok(ext->pointer_query(0, address_of(bytes + 999), &p));
  ck_assert_int_eq(p.kind, TARN_EXT_KIND_HOST);
  ck_assert_uint_eq(p.base, address_of(bytes));
  ck_assert_uint_eq(p.size, 1000);
  assert_ext_ok(ext->host_register(0, bytes + 1000, 1000));
  assert_ext_ok(ext->host_register(0, bytes + 3000, 96));
  assert_ext_wrong(ext->host_register(0, bytes, 1000), "registered already");
  assert_ext_wrong(ext->host_register(0, bytes + 1999, 2), "registered");
  assert_ext_wrong(ext->host_register(0, bytes + 2000, 1001), "registered");
  assert_ext_wrong(ext->host_register(0, bytes + 3001, 1), "registered");
  assert_ext_wrong(ext->host_unregister(0, bytes + 1), "no registration");
  assert_ext_wrong(ext->host_unregister(0, NULL), "no registration");
  assert_ext_wrong(ext->host_unregister(1, bytes), "no device 1");
  assert_ext_ok(ext->host_unregister(0, bytes));
  assert_ext_wrong(ext->host_unregister(0, bytes), "no registration");
  assert_ext_ok(ext->host_unregister(0, bytes + 1000));
  assert_ext_ok(ext->host_unregister(0, bytes + 3000));
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

TEST(what_cannot_be_registered) {
  static char bytes[64];
  assert_ext_wrong(ext->host_register(0, NULL, 8), "no memory");
  assert_ext_wrong(ext->host_register(0, bytes, 0), "no memory");
  assert_ext_wrong(ext->host_register(0, bytes, SIZE_MAX), "no memory");
  assert_ext_wrong(ext->host_register(0, bytes, (size_t)1 << 46), "no memory");
  assert_ext_wrong(ext->host_register(0, pointer_to(64), 8), "no memory");
  assert_ext_wrong(ext->host_register(3, bytes, 8), "no device 3");
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

TEST(many_registrations_in_any_order) {
  enum { COUNT = 500, STEP = 16 };
  static char bytes[COUNT * STEP];
  for (size_t i = 0; i < COUNT; i++) {
    char *at = bytes + i * 7 % COUNT * STEP;
    require(ext->host_register(0, at, STEP) == TARN_OK);
  }
  for (size_t i = 0; i < COUNT; i++) {
    tarn_ext_pointer p;
    char *at = bytes + i * 11 % COUNT * STEP;
    require(ext->pointer_query(0, address_of(at + 15), &p) == TARN_OK);
    require(p.base == address_of(at) && p.size == STEP);
    require(ext->host_unregister(0, at) == TARN_OK);
  }
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

TEST(addresses_of_others) {
  int local = 0;
  tarn_ext_pointer p = {.size = 1};
  assert_ext_ok(ext->pointer_query(0, address_of(&local), &p));
  ck_assert_int_eq(p.kind, TARN_EXT_KIND_HOST);
  ck_assert_int_eq(p.id, 0);
  ck_assert_uint_eq(p.base, 0);
  ck_assert_uint_eq(p.size, 0);
  assert_ext_wrong(ext->pointer_query(0, 0, &p), "no memory at 0x0");
  assert_ext_wrong(ext->pointer_query(0, UINT64_MAX, &p), "no memory");
  assert_ext_wrong(ext->pointer_query(9, address_of(&local), &p),
                   "no device 9");
}

// --- rows ------------------------------------------------------------------

enum { WIDTH = 64, TABLE_ROWS = 500, DENSE_ROWS = 700 };

typedef struct tables {
  float table[TABLE_ROWS][WIDTH];
  float dense[DENSE_ROWS][WIDTH];
  int32_t indices[DENSE_ROWS];
  tarn_addr chunks[2];
  size_t offsets[3];
  tarn_rows rows;
} tables;

static tables t;

static void make_tables(size_t index_count) {
  memset(&t, 0, sizeof t);
  for (int i = 0; i < TABLE_ROWS; i++)
    t.table[i][i % WIDTH] = (float)i;
  for (int i = 0; i < DENSE_ROWS; i++)
    t.indices[i] = i * 7 % TABLE_ROWS;
  t.chunks[0] = address_of(t.table);
  t.chunks[1] = address_of(t.table[100]);
  t.offsets[1] = sizeof t.table[0] * 100;
  t.offsets[2] = sizeof t.table;
  tarn_rows rows = {
      .struct_size = sizeof rows,
      .table = {t.chunks, t.offsets, 2},
      .table_dtype = TARN_DTYPE_F32,
      .table_count = TABLE_ROWS,
      .width = WIDTH,
      .dense = address_of(t.dense),
      .dense_dtype = TARN_DTYPE_F32,
      .indices = address_of(t.indices),
      .index_dtype = TARN_DTYPE_I32,
      .index_count = index_count,
  };
  assert_ok(tarn__rows_check(&rows, &t.rows));
}

// Short ones run at once on an idle stream, long ones on the worker.
static const size_t COUNTS[] = {8, DENSE_ROWS};

static void expect_gathered(size_t count) {
  for (size_t i = 0; i < count * WIDTH; i++) {
    require(t.dense[i / WIDTH][i % WIDTH] ==
            t.table[t.indices[i / WIDTH]][i % WIDTH]);
  }
}

TEST(rows_are_gathered) {
  C_Stream stream = new_stream(&cpu);
  for (size_t i = 0; i < 2; i++) {
    make_tables(COUNTS[i]);
    assert_ext_ok(ext->gather(0, NULL, &t.rows));
    expect_gathered(COUNTS[i]);
    memset(t.dense, 0, sizeof t.dense);
    assert_ext_ok(ext->gather(0, stream, &t.rows));
    assert_done(cpu.synchronize_stream(CPU, stream));
    expect_gathered(COUNTS[i]);
  }
  assert_done(cpu.destroy_stream(CPU, stream));
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// The rows and their arrays are the caller's again when the call is over.
TEST(queued_rows_need_nothing_of_the_caller) {
  C_Stream stream = new_stream(&cpu);
  gate g;
  make_tables(DENSE_ROWS);
  gate_close(&g, &cpu, stream);
  assert_ext_ok(ext->gather(0, stream, &t.rows));
  memset(&t.rows, 0xff, sizeof t.rows);
  memset(t.chunks, 0xff, sizeof t.chunks);
  memset(t.offsets, 0xff, sizeof t.offsets);
  gate_open(&g);
  assert_done(cpu.synchronize_stream(CPU, stream));
  expect_gathered(DENSE_ROWS);
  assert_done(cpu.destroy_stream(CPU, stream));
}

TEST(rows_are_scattered_and_added) {
  C_Stream stream = new_stream(&cpu);
  for (size_t i = 0; i < 2; i++) {
    void *on = i == 0 ? NULL : stream;
    make_tables(TABLE_ROWS);
    for (int k = 0; k < TABLE_ROWS; k++)
      t.dense[k][5] = (float)k;
    assert_ext_ok(ext->scatter(0, on, &t.rows));
    assert_ext_ok(ext->scatter_add(0, on, &t.rows));
    assert_done(cpu.synchronize_stream(CPU, stream));
    for (int k = 0; k < TABLE_ROWS; k++)
      require(t.table[t.indices[k]][5] == 2 * (float)k);
  }
  assert_done(cpu.destroy_stream(CPU, stream));
}

TEST(bad_rows_at_once) {
  make_tables(8);
  t.indices[3] = TABLE_ROWS;
  assert_ext_wrong(ext->gather(0, NULL, &t.rows),
                   "index 500 at position 3 is not in 0..499");
  assert_ext_wrong(ext->gather(0, NULL, NULL), "rows is NULL");
  assert_ext_wrong(ext->scatter(1, NULL, &t.rows), "no device 1");
}

TEST(rows_of_a_newer_library_are_left_to_it) {
  C_Stream stream = new_stream(&cpu);
  make_tables(8);
  t.rows.flags = UINT64_C(1) << 40;  // none that there is
  assert_ext(ext->gather(0, NULL, &t.rows), TARN_E_UNSUPPORTED);
  assert_ext(ext->scatter(0, stream, &t.rows), TARN_E_UNSUPPORTED);
  assert_done(cpu.destroy_stream(CPU, stream));
}

TEST(bad_rows_fail_the_stream) {
  for (size_t i = 0; i < 2; i++) {
    C_Stream stream = new_stream(&cpu);
    make_tables(COUNTS[i]);
    ck_assert_str_eq(ext_text(stream), "");
    t.indices[3] = -4;
    assert_ext_ok(ext->scatter_add(0, stream, &t.rows));
    assert_c(cpu.synchronize_stream(CPU, stream), C_ERROR);
    ck_assert_str_eq(ext_text(stream),
                     "index -4 at position 3 is not in 0..499");
    t.indices[2] = -5;  // the first failure stays
    assert_ext_ok(ext->gather(0, stream, &t.rows));
    assert_c(cpu.synchronize_stream(CPU, stream), C_ERROR);
    ck_assert_ptr_nonnull(strstr(ext_text(stream), "index -4"));
    assert_done(cpu.destroy_stream(CPU, stream));
  }
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// Rows that wait at a stream's end go with it; those that cannot be queued
// leave nothing.
static void queue_rows(void *context) {
  C_Stream stream = NULL;
  (void)context;
  if (cpu.create_stream(CPU, &stream) != C_SUCCESS) return;
  tarn_status status = ext->gather(0, stream, &t.rows);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  void *block = NULL;
  require(cpu.device_memory_allocate(CPU, &block, 8) == C_SUCCESS);
  status = ext->deallocate_async(0, stream, address_of(block), 8);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  if (status != TARN_OK) (void)cpu.device_memory_deallocate(CPU, block, 8);
  require(cpu.destroy_stream(CPU, stream) == C_SUCCESS);
}

TEST(rows_survive_every_fault) {
  make_tables(DENSE_ROWS);
  ck_assert_uint_ge(faults_sweep(queue_rows, NULL), 6);
}

// --- texts -----------------------------------------------------------------

static void *text_of_thread(void *context) {
  ext->error_text(0, NULL, context, EXT_TEXT_SIZE);
  return NULL;
}

TEST(texts_are_each_threads_own) {
  char of_other[EXT_TEXT_SIZE] = "?";
  char cut[8];
  pthread_t other;
  size_t align = 0;
  assert_ext(ext->alignment(77, &align), TARN_E_INVALID);
  ck_assert_int_eq(pthread_create(&other, NULL, text_of_thread, of_other), 0);
  ck_assert_int_eq(pthread_join(other, NULL), 0);
  ck_assert_str_eq(of_other, "");
  ck_assert_str_eq(ext_text(NULL), "there is no device 77");
  ext->error_text(0, NULL, cut, sizeof cut);
  ck_assert_str_eq(cut, "there i");
  ext->error_text(0, NULL, cut, 0);
  ext->error_text(0, NULL, NULL, 0);
  ck_assert_str_eq(cut, "there i");
}

TEST(streams_of_others_have_no_text) {
  C_Stream stream = new_stream(&cpu);
  char text[8] = "?";
  ext->error_text(1, stream, text, sizeof text);
  ck_assert_str_eq(text, "");
  assert_ext_wrong(ext->gather(1, stream, &t.rows), "no device 1");
  assert_done(cpu.destroy_stream(CPU, stream));
}

// Others ask for the text while the stream fails.
static void *ask_for_text(void *context) {
  static const char whole[] = "index -1 at position 699 is not in 0..499";
  for (;;) {
    const char *text = ext_text(context);
    if (strcmp(text, whole) == 0) return NULL;
    require(text[0] == '\0');
  }
}

TEST(texts_are_seen_whole) {
  for (int i = 0; i < 50; i++) {
    C_Stream stream = new_stream(&cpu);
    pthread_t asker;
    make_tables(DENSE_ROWS);
    t.indices[DENSE_ROWS - 1] = -1;
    ck_assert_int_eq(pthread_create(&asker, NULL, ask_for_text, stream), 0);
    assert_ext_ok(ext->gather(0, stream, &t.rows));
    ck_assert_int_eq(pthread_join(asker, NULL), 0);
    assert_done(cpu.destroy_stream(CPU, stream));
  }
}

// Which stream failed is the device's to say; what this thread did last is
// beside the point.
TEST(a_device_that_is_waited_for_says_why_its_stream_failed) {
  C_Stream stream = new_stream(&cpu);
  make_tables(DENSE_ROWS);
  t.indices[DENSE_ROWS - 1] = -1;
  assert_ext_ok(ext->gather(0, stream, &t.rows));
  size_t align = 0;
  assert_ext(ext->alignment(77, &align), TARN_E_INVALID);
  ck_assert_int_eq(cpu.synchronize_device(CPU), C_ERROR);
  ck_assert_str_eq(ext_text(NULL), "index -1 at position 699 is not in 0..499");
  assert_done(cpu.destroy_stream(CPU, stream));
}

int main(void) {
  faults_install();
  ext = TarnDeviceExt();
  cpu = cpu_table();
  return run_tests();
}
