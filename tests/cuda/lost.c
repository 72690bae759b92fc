// What is broken or bad: machines without a device, memory that runs out,
// images that a driver refuses, devices that fall off, contexts that somebody
// else destroys. Over the stand-in: each text has the words that a driver
// gives, and what another place holds is there still.
#include "cuda/standin/api.h"
#include "over.h"
#include "tarn/range.h"
#include "tarn/rows.h"
#include "tarn/synced.h"

static tarn_stream *stream_on(tarn_device *device) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  return stream;
}

// --- memory that runs out --------------------------------------------------

enum { SIZE = 4096 };

typedef struct bench {
  tarn_device *device;
  tarn_place memory;
  tarn_stream *stream;
  tarn_event *event;
  tarn_addr block;  // all sevens
} bench;

static bench set_up(const char *name) {
  bench b = {.device = open_device(name)};
  b.memory = tarn_place_on(b.device);
  b.stream = stream_on(b.device);
  assert_ok(tarn_event_create(b.device, &b.event));
  assert_ok(tarn_device_allocate(b.memory, SIZE, &b.block));
  assert_ok(tarn_device_set(b.device, b.block, 7, SIZE, NULL));
  return b;
}

static void assert_sevens(const bench *b) {
  unsigned char bytes[SIZE] = {0};
  assert_ok(tarn_copy_d2h(b->device, bytes, b->block, SIZE, NULL));
  for (size_t i = 0; i < SIZE; i++)
    require(bytes[i] == 7);
}

static void clear(bench *b) {
  assert_ok(tarn_event_destroy(b->event));
  assert_ok(tarn_stream_destroy(b->stream));
  assert_ok(tarn_device_deallocate(b->memory, b->block, SIZE));
  close_device(b->device);
}

TEST(a_device_that_is_full) {
  tarn_addr large = 0, more = 0;
  over_begin(0);
  bench b = set_up("cuda:0");
  assert_ok(tarn_device_allocate(b.memory, (1 << 30) - (8 << 20), &large));
  assert_fails(tarn_device_allocate(b.memory, 16 << 20, &more), TARN_FULL,
               "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
  ck_assert_uint_eq(more, 0);
  assert_sevens(&b);
  assert_ok(tarn_device_deallocate(b.memory, large, (1 << 30) - (8 << 20)));
  assert_ok(tarn_device_allocate(b.memory, 16 << 20, &more));
  assert_ok(tarn_device_deallocate(b.memory, more, 16 << 20));
  clear(&b);
  over_assert_clean("a full device", 0);
}

static tarn_status take_place(const bench *b, tarn_place_kind kind) {
  tarn_addr block = 0;
  tarn_place place = {b->device, kind};
  tarn_status status = tarn_device_allocate(place, SIZE, &block);
  ck_assert(status == TARN_OK || block == 0);
  return status;
}

static tarn_status take_memory(const bench *b) {
  return take_place(b, TARN_PLACE_DEVICE);
}

static tarn_status take_pinned(const bench *b) {
  return take_place(b, TARN_PLACE_HOST);
}

static tarn_status take_managed(const bench *b) {
  return take_place(b, TARN_PLACE_UNIFIED);
}

static tarn_status take_on_stream(const bench *b) {
  tarn_addr block = 0;
  return tarn_device_allocate_on(b->stream, SIZE, &block);
}

static tarn_status take_stream(const bench *b) {
  tarn_stream *stream = NULL;
  return tarn_stream_create(b->device, &stream);
}

static tarn_status take_event(const bench *b) {
  tarn_event *event = NULL;
  tarn_status status = tarn_event_create(b->device, &event);
  if (status == TARN_OK) status = tarn_event_record(event, b->stream);
  return status;
}

static tarn_status take_range(const bench *b) {
  tarn_addr range = 0;
  return tarn_range_reserve(b->device, 2 << 20, 0, &range);
}

static tarn_status take_physical(const bench *b) {
  tarn_memory memory = 0;
  return tarn_memory_create(b->device, 2 << 20, 0, &memory);
}

static const struct {
  const char *function;
  const char *said;
  tarn_status (*take)(const bench *b);
  tarn_status status;
} takes[] = {
    {"cuMemAlloc_v2", "cuMemAlloc", take_memory, TARN_FULL},
    {"cuMemHostAlloc", "cuMemHostAlloc", take_pinned, TARN_FULL},
    {"cuMemAllocManaged", "cuMemAllocManaged", take_managed, TARN_FULL},
    {"cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync", take_on_stream,
     TARN_FULL},
    {"cuStreamCreate", "cuStreamCreate", take_stream, TARN_E_NOMEM},
    {"cuEventCreate", "cuEventCreate", take_event, TARN_E_NOMEM},
    {"cuMemAddressReserve", "cuMemAddressReserve", take_range, TARN_FULL},
    {"cuMemCreate", "cuMemCreate", take_physical, TARN_FULL},
};

// Once, and for good.
TEST_LOOP(a_call_that_finds_no_memory, sizeof takes / sizeof *takes) {
  over_begin(0);
  bench b = set_up("cuda:0");
  tarn_standin_fail_call(takes[_i].function, 1, TARN__CU_ERROR_OUT_OF_MEMORY,
                         true);
  for (int i = 0; i < 2; i++) {
    assert_fails(takes[_i].take(&b), takes[_i].status,
                 "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
    assert_error_says(takes[_i].said);
  }
  ck_assert_uint_ge(tarn_standin_faults(), 2);
  tarn_standin_fail_call(NULL, 0, 0, false);
  assert_sevens(&b);
  clear(&b);
  over_assert_clean(takes[_i].function, 0);
}

// --- images that a driver refuses ------------------------------------------

enum { ROWS = 4, WIDTH = 4, INDICES_AT = 64, DENSE_AT = 128 };

// The last row, and the first.
static void gather_two(const bench *b) {
  float table[ROWS * WIDTH], dense[2 * WIDTH] = {0};
  int32_t indices[2] = {ROWS - 1, 0};
  size_t offsets[2] = {0, sizeof table};
  for (int i = 0; i < ROWS * WIDTH; i++)
    table[i] = (float)i;
  assert_ok(tarn_copy_h2d(b->device, b->block, table, sizeof table, NULL));
  assert_ok(tarn_copy_h2d(b->device, b->block + INDICES_AT, indices,
                          sizeof indices, NULL));
  const tarn_rows rows = {
      .struct_size = sizeof rows,
      .table = {&b->block, offsets, 1},
      .table_dtype = TARN_DTYPE_F32,
      .table_count = ROWS,
      .width = WIDTH,
      .dense = b->block + DENSE_AT,
      .dense_dtype = TARN_DTYPE_F32,
      .indices = b->block + INDICES_AT,
      .index_dtype = TARN_DTYPE_I32,
      .index_count = 2,
  };
  assert_ok(tarn_rows_gather(b->device, &rows, NULL));
  assert_ok(
      tarn_copy_d2h(b->device, dense, b->block + DENSE_AT, sizeof dense, NULL));
  for (int i = 0; i < WIDTH; i++) {
    ck_assert(dense[i] == table[(ROWS - 1) * WIDTH + i]);
    ck_assert(dense[WIDTH + i] == table[i]);
  }
}

static const char *const images[] = {"", "IMAGES=200", "IMAGES=209",
                                     "IMAGES=222"};

TEST_LOOP(rows_are_moved_with_kernels_and_without,
          sizeof images / sizeof *images) {
  over_set(images[_i]);
  over_register();
  bench b = set_up("cuda:0");
  gather_two(&b);
  ck_assert(tarn_standin_calls("cuLaunchKernel") == 0 || _i == 0);
  clear(&b);
  over_assert_clean(images[_i], 0);
}

// --- a device that fails ---------------------------------------------------

// All that the bench has says so; nothing of it hangs.
static void assert_all_fail(bench *b, const char *word) {
  unsigned char bytes[SIZE] = {0};
  tarn_addr block = 0;
  tarn_stream *stream = NULL;
  assert_fails(tarn_stream_synchronize(b->stream), TARN_E_DEVICE, word);
  assert_fails(tarn_stream_query(b->stream), TARN_E_DEVICE, word);
  assert_fails(tarn_device_synchronize(b->device), TARN_E_DEVICE, word);
  assert_fails(tarn_copy_d2h(b->device, bytes, b->block, SIZE, NULL),
               TARN_E_DEVICE, word);
  assert_fails(tarn_copy_h2d(b->device, b->block, bytes, SIZE, b->stream),
               TARN_E_DEVICE, word);
  assert_fails(tarn_device_set(b->device, b->block, 0, SIZE, NULL),
               TARN_E_DEVICE, word);
  assert_fails(tarn_event_record(b->event, b->stream), TARN_E_DEVICE, word);
  assert_fails(tarn_device_allocate(b->memory, SIZE, &block), TARN_E_DEVICE,
               word);
  assert_fails(tarn_stream_create(b->device, &stream), TARN_E_DEVICE, word);
  ck_assert(block == 0 && stream == NULL);
}

// Host memory behind a first use, of which some stays.
static size_t host_memory_held(void) {
  bench b = set_up("cuda:0"), other = set_up("cuda:1");
  clear(&other);
  clear(&b);
  return tarn_host_memory();
}

// What a program gives back is gone for it, whatever the driver says.
static void give_all_back(bench *b) {
  (void)tarn_event_destroy(b->event);
  (void)tarn_stream_destroy(b->stream);
  (void)tarn_device_deallocate(b->memory, b->block, SIZE);
  (void)tarn_device_close(b->device);
  forget(b->device);
}

TEST(a_device_that_falls_off) {
  static const char word[] =
      "CUDA_ERROR_DEVICE_UNAVAILABLE (46): device(s) is/are busy or "
      "unavailable";
  over_begin(0);
  size_t held = host_memory_held();
  bench b = set_up("cuda:0");
  assert_ok(tarn_event_record(b.event, b.stream));
  tarn_standin_lose(1, TARN__CU_ERROR_DEVICE_UNAVAILABLE);
  assert_all_fail(&b, word);
  give_all_back(&b);
  ck_assert_uint_eq(tarn_host_memory(), held);
}

// The other device is none of its business.
TEST(a_device_whose_work_fails) {
  static const char word[] = "CUDA_ERROR_LAUNCH_FAILED (719)";
  over_begin(0);
  bench b = set_up("cuda:0"), other = set_up("cuda:1");
  tarn_standin_fail_command(1, TARN__CU_ERROR_LAUNCH_FAILED);
  assert_ok(tarn_event_record(b.event, b.stream));
  assert_all_fail(&b, word);
  assert_sevens(&other);
  clear(&other);
  give_all_back(&b);
}

// --- a context that somebody else destroys ---------------------------------

TEST(a_context_that_is_destroyed_from_outside) {
  static const char word[] = "CUDA_ERROR_CONTEXT_IS_DESTROYED (709)";
  over_begin(0);
  size_t held = host_memory_held();
  bench b = set_up("cuda:0"), other = set_up("cuda:1");
  assert_ok(tarn_event_record(b.event, b.stream));
  gather_two(&b);
  ck_assert_uint_eq(cuDevicePrimaryCtxReset_v2(0), TARN__CU_SUCCESS);
  assert_all_fail(&b, word);
  assert_sevens(&other);
  give_all_back(&b);
  bench again = set_up("cuda:0");
  assert_sevens(&again);
  clear(&again);
  clear(&other);
  ck_assert_uint_eq(tarn_host_memory(), held);
  over_assert_clean("a context that was destroyed", 0);
}

// --- what other places hold ------------------------------------------------

static tarn_synced *make_buffer(tarn_device *device, unsigned char value) {
  tarn_synced *buffer = NULL;
  void *bytes = NULL;
  const tarn_synced_options options = {.struct_size = sizeof options,
                                       .device = device};
  assert_ok(tarn_synced_create(SIZE, &options, &buffer));
  assert_ok(tarn_synced_mutable_cpu_data(buffer, &bytes));
  memset(bytes, value, SIZE);
  return buffer;
}

TEST(a_buffer_that_the_host_has_stays_when_the_device_falls_off) {
  tarn_addr there = 0;
  const void *bytes = NULL;
  over_begin(0);
  tarn_device *device = open_device("cuda:0");
  tarn_synced *both = make_buffer(device, 5), *ours = make_buffer(device, 6);
  tarn_synced *gone = make_buffer(device, 7);
  assert_ok(tarn_synced_gpu_data(both, &there));
  assert_ok(tarn_synced_mutable_gpu_data(gone, &there));
  tarn_standin_lose(1, TARN__CU_ERROR_DEVICE_UNAVAILABLE);
  assert_fails(tarn_synced_gpu_data(ours, &there), TARN_E_DEVICE,
               "CUDA_ERROR_DEVICE_UNAVAILABLE (46)");
  assert_fails(tarn_synced_cpu_data(gone, &bytes), TARN_E_DEVICE,
               "CUDA_ERROR_DEVICE_UNAVAILABLE (46)");
  assert_ok(tarn_synced_cpu_data(both, &bytes));
  ck_assert_uint_eq(*(const unsigned char *)bytes, 5);
  assert_ok(tarn_synced_cpu_data(ours, &bytes));
  ck_assert_uint_eq(((const unsigned char *)bytes)[SIZE - 1], 6);
  (void)tarn_synced_destroy(both);
  (void)tarn_synced_destroy(ours);
  (void)tarn_synced_destroy(gone);
  (void)tarn_device_close(device);
  forget(device);
}
