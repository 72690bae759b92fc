// Streams and events that a program made by the driver's own functions, over
// the stand-in: nothing here says anything of a driver.
#include <semaphore.h>
#include <stdatomic.h>

#include "cuda/standin/api.h"
#include "over.h"
#include "support/threads.h"
#include "tarn/rows.h"

static void begin(void) {
  over_begin(0);
}

static void end(void) {
  over_assert_clean("streams and events of the program", 0);
}

FIXTURE(begin, end);

static void ok(tarn__cuda_result error) {
  ck_assert_uint_eq(error, TARN__CU_SUCCESS);
}

// --- what the program makes ------------------------------------------------

// The context that the device holds too, as the thread's current one.
static void enter_context(void) {
  CUcontext context = NULL;
  ok(cuDevicePrimaryCtxRetain(&context, 0));
  ok(cuCtxPushCurrent_v2(context));
}

static void leave_context(void) {
  CUcontext context = NULL;
  ok(cuCtxPopCurrent_v2(&context));
  ok(cuDevicePrimaryCtxRelease_v2(0));
}

static CUstream make_stream(unsigned flags) {
  CUstream stream = NULL;
  enter_context();
  ok(cuStreamCreate(&stream, flags));
  leave_context();
  return stream;
}

// Nothing of Tarn's is to be under way there.
static void destroy_stream(CUstream stream) {
  enter_context();
  ok(cuStreamDestroy_v2(stream));
  leave_context();
}

static tarn_stream *adopt(tarn_device *device, void *native) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_adopt(device, native, &stream));
  return stream;
}

// An adopted stream counts until its work is done.
static void let_go(tarn_stream *stream) {
  tarn_device *device = tarn_stream_device(stream);
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_synchronize(device));
}

// Holds a stream up until it is opened.
typedef struct gate {
  sem_t opened;
} gate;

static void stand_at(void *user) {
  gate *g = user;
  while (sem_wait(&g->opened) != 0) {
  }
}

static void close_gate(gate *g, CUstream stream) {
  ck_assert_int_eq(sem_init(&g->opened, 0, 0), 0);
  enter_context();
  ok(cuLaunchHostFunc(stream, stand_at, g));
  leave_context();
}

static void open_gate(gate *g) {
  ck_assert_int_eq(sem_post(&g->opened), 0);
}

// --- streams ---------------------------------------------------------------

static tarn_addr block_with(tarn_device *device, int value) {
  tarn_addr block = 0;
  assert_ok(tarn_device_allocate(tarn_place_on(device), sizeof value, &block));
  assert_ok(tarn_copy_h2d(device, block, &value, sizeof value, NULL));
  return block;
}

static int value_of(tarn_device *device, tarn_addr block) {
  int value = 0;
  assert_ok(tarn_copy_d2h(device, &value, block, sizeof value, NULL));
  return value;
}

static void free_block(tarn_device *device, tarn_addr block) {
  assert_ok(tarn_device_deallocate(tarn_place_on(device), block, sizeof(int)));
}

static const unsigned stream_flags[] = {TARN__CU_STREAM_DEFAULT,
                                        TARN__CU_STREAM_NON_BLOCKING};

// A call without a stream waits for none of the program's.
TEST_LOOP(copies_follow_what_the_program_queued, 2) {
  tarn_device *device = open_device("cuda:0");
  CUstream native = make_stream(stream_flags[_i]);
  tarn_stream *stream = adopt(device, native);
  tarn_addr block = block_with(device, 1);
  gate g;
  int later = 2;
  close_gate(&g, native);
  assert_ok(tarn_copy_h2d(device, block, &later, sizeof later, stream));
  assert_status(tarn_stream_query(stream), TARN_PENDING);
  ck_assert_int_eq(value_of(device, block), 1);
  open_gate(&g);
  assert_ok(tarn_stream_synchronize(stream));
  assert_ok(tarn_stream_query(stream));
  ck_assert_int_eq(value_of(device, block), 2);
  free_block(device, block);
  let_go(stream);
  destroy_stream(native);
}

TEST(an_event_of_tarns_is_recorded_behind_what_the_program_queued) {
  tarn_device *device = open_device("cuda:0");
  CUstream native = make_stream(TARN__CU_STREAM_DEFAULT);
  tarn_stream *stream = adopt(device, native);
  tarn_event *event = NULL;
  gate g;
  assert_ok(tarn_event_create(device, &event));
  close_gate(&g, native);
  assert_ok(tarn_event_record(event, stream));
  assert_status(tarn_event_query(event), TARN_PENDING);
  open_gate(&g);
  assert_ok(tarn_event_synchronize(event));
  assert_ok(tarn_event_query(event));
  assert_ok(tarn_event_destroy(event));
  let_go(stream);
  destroy_stream(native);
}

TEST(a_stream_of_tarns_is_found_by_its_handle) {
  tarn_device *device = open_device("cuda:0");
  tarn_stream *made = NULL;
  assert_ok(tarn_stream_create(device, &made));
  ck_assert_ptr_eq(adopt(device, tarn_stream_native(made)), made);
  assert_ok(tarn_stream_destroy(made));
  assert_ok(tarn_stream_destroy(made));
}

// What a framework names by NULL waits for streams that block, and they for it.
TEST(null_is_the_legacy_stream) {
  tarn_device *device = open_device("cuda:0");
  CUstream blocking = make_stream(TARN__CU_STREAM_DEFAULT);
  tarn_stream *stream = adopt(device, NULL);
  ck_assert_ptr_eq(tarn_stream_native(stream), TARN__CU_STREAM_LEGACY);
  tarn_addr block = block_with(device, 1);
  gate g;
  int later = 2;
  close_gate(&g, blocking);
  assert_ok(tarn_copy_h2d(device, block, &later, sizeof later, stream));
  assert_status(tarn_stream_query(stream), TARN_PENDING);
  ck_assert_int_eq(value_of(device, block), 1);
  open_gate(&g);
  assert_ok(tarn_stream_synchronize(stream));
  ck_assert_int_eq(value_of(device, block), 2);
  free_block(device, block);
  let_go(stream);
  destroy_stream(blocking);
}

static void note_status(void *context, tarn_status status) {
  atomic_store((atomic_int *)context, status == TARN_OK ? 1 : -1);
}

TEST(callbacks_come_behind_what_the_program_queued) {
  tarn_device *device = open_device("cuda:0");
  CUstream native = make_stream(TARN__CU_STREAM_DEFAULT);
  tarn_stream *stream = adopt(device, native);
  atomic_int told = 0;
  gate g;
  close_gate(&g, native);
  assert_ok(tarn_stream_add_callback(stream, note_status, &told));
  ck_assert_int_eq(atomic_load(&told), 0);
  open_gate(&g);
  assert_ok(tarn_stream_synchronize(stream));
  ck_assert_int_eq(atomic_load(&told), 1);
  let_go(stream);
  destroy_stream(native);
}

// --- rows ------------------------------------------------------------------

enum { ROWS = 4, INDICES_AT = 64, DENSE_AT = 128, SIZE = 512 };

// A block with a table of four floats, and two indices behind it.
static tarn_addr make_rows(tarn_device *device, int32_t first, int32_t second) {
  const float table[ROWS] = {0, 1, 2, 3};
  const int32_t indices[2] = {first, second};
  tarn_addr block = 0;
  assert_ok(tarn_device_allocate(tarn_place_on(device), SIZE, &block));
  assert_ok(tarn_copy_h2d(device, block, table, sizeof table, NULL));
  assert_ok(
      tarn_copy_h2d(device, block + INDICES_AT, indices, sizeof indices, NULL));
  return block;
}

static void free_rows(tarn_device *device, tarn_addr block) {
  assert_ok(tarn_device_deallocate(tarn_place_on(device), block, SIZE));
}

static tarn_status gather(tarn_device *device, tarn_addr block,
                          tarn_stream *stream) {
  static const size_t offsets[2] = {0, ROWS * sizeof(float)};
  const tarn_rows rows = {
      .struct_size = sizeof rows,
      .table = {&block, offsets, 1},
      .table_dtype = TARN_DTYPE_F32,
      .table_count = ROWS,
      .width = 1,
      .dense = block + DENSE_AT,
      .dense_dtype = TARN_DTYPE_F32,
      .indices = block + INDICES_AT,
      .index_dtype = TARN_DTYPE_I32,
      .index_count = 2,
  };
  return tarn_rows_gather(device, &rows, stream);
}

static const char bad_row[] = "index 9 at position 1 is not in 0..3";

// Each way in which the outcome of a stream is learned.
typedef tarn_status learn(tarn_device *device, tarn_stream *stream);

static tarn_status learn_by_wait(tarn_device *device, tarn_stream *stream) {
  (void)device;
  return tarn_stream_synchronize(stream);
}

static tarn_status learn_by_query(tarn_device *device, tarn_stream *stream) {
  (void)device;
  tarn_status status = TARN_PENDING;
  while (status == TARN_PENDING)
    status = tarn_stream_query(stream);
  return status;
}

static tarn_status learn_by_event(tarn_device *device, tarn_stream *stream) {
  tarn_event *event = NULL;
  assert_ok(tarn_event_create(device, &event));
  assert_ok(tarn_event_record(event, stream));
  tarn_status status = tarn_event_synchronize(event);
  assert_ok(tarn_event_destroy(event));
  return status;
}

static tarn_status learn_by_event_query(tarn_device *device,
                                        tarn_stream *stream) {
  tarn_event *event = NULL;
  assert_ok(tarn_event_create(device, &event));
  assert_ok(tarn_event_record(event, stream));
  tarn_status status = TARN_PENDING;
  while (status == TARN_PENDING)
    status = tarn_event_query(event);
  assert_ok(tarn_event_destroy(event));
  return status;
}

static tarn_status learn_by_callback(tarn_device *device, tarn_stream *stream) {
  (void)device;
  atomic_int told = 0;
  assert_ok(tarn_stream_add_callback(stream, note_status, &told));
  tarn_status status = tarn_stream_synchronize(stream);
  ck_assert_int_eq(atomic_load(&told), status == TARN_OK ? 1 : -1);
  return status;
}

static tarn_status learn_by_device(tarn_device *device, tarn_stream *stream) {
  tarn_status status = tarn_device_synchronize(device);
  if (status != TARN_OK) assert_error_says(bad_row);
  return tarn_stream_synchronize(stream);
}

static learn *const ways[] = {learn_by_wait,     learn_by_query,
                              learn_by_event,    learn_by_event_query,
                              learn_by_callback, learn_by_device};
enum { WAYS = sizeof ways / sizeof *ways };

// A stream is a handle of the program's: 0 one that it made, 1 the legacy one,
// 2 that of its thread.
enum { HANDLES = 3 };

static CUstream handle_of(int which) {
  if (which == 1) return TARN__CU_STREAM_LEGACY;
  if (which == 2) return TARN__CU_STREAM_PER_THREAD;
  return make_stream(TARN__CU_STREAM_NON_BLOCKING);
}

static void end_handle(int which, CUstream native) {
  if (which == 0) destroy_stream(native);
}

// A stream that is adopted anew begins without a failure. What the plug-in knew
// of it is gone once its rows are over, but for memory that the device keeps.
TEST_LOOP(a_bad_row_is_told_once, WAYS *HANDLES) {
  tarn_device *device = open_device("cuda:0");
  CUstream native = handle_of(_i % HANDLES);
  tarn_addr good = make_rows(device, 3, 0);
  tarn_addr bad = make_rows(device, 1, 9);
  size_t known = 0;
  for (int round = 0; round < 3; round++) {
    tarn_stream *stream = adopt(device, native);
    assert_ok(gather(device, good, stream));
    assert_ok(ways[_i / HANDLES](device, stream));
    assert_ok(gather(device, bad, stream));
    assert_fails(ways[_i / HANDLES](device, stream), TARN_E_DEVICE, bad_row);
    assert_fails(tarn_stream_synchronize(stream), TARN_E_DEVICE, bad_row);
    (void)tarn_stream_destroy(stream);
    assert_ok(tarn_device_synchronize(device));
    if (round == 0) known = tarn_host_memory();
    ck_assert_uint_eq(tarn_host_memory(), known);
  }
  free_rows(device, bad);
  free_rows(device, good);
  end_handle(_i % HANDLES, native);
}

// An event tells of what was before it, and of nothing behind it.
TEST(an_event_does_not_tell_of_rows_behind_it) {
  tarn_device *device = open_device("cuda:0");
  CUstream native = make_stream(TARN__CU_STREAM_NON_BLOCKING);
  tarn_stream *stream = adopt(device, native);
  tarn_addr good = make_rows(device, 3, 0);
  tarn_addr bad = make_rows(device, 1, 9);
  tarn_event *events[2] = {NULL, NULL};
  for (int i = 0; i < 2; i++) {
    assert_ok(tarn_event_create(device, &events[i]));
    assert_ok(gather(device, i == 0 ? good : bad, stream));
    assert_ok(tarn_event_record(events[i], stream));
  }
  assert_fails(tarn_event_synchronize(events[1]), TARN_E_DEVICE, bad_row);
  assert_ok(tarn_event_synchronize(events[0]));
  assert_fails(tarn_stream_synchronize(stream), TARN_E_DEVICE, bad_row);
  for (int i = 0; i < 2; i++)
    assert_ok(tarn_event_destroy(events[i]));
  (void)tarn_stream_destroy(stream);
  free_rows(device, bad);
  free_rows(device, good);
  destroy_stream(native);
}

// --- the stream of each thread ---------------------------------------------

typedef struct thread {
  tarn_device *device;
  tarn_addr block;
  bool is_bad;
} thread;

static bool goes_as_it_should(const thread *t, tarn_stream *stream) {
  if (gather(t->device, t->block, stream) != TARN_OK) return false;
  tarn_status status = tarn_stream_synchronize(stream);
  if (!t->is_bad) return status == TARN_OK;
  return status == TARN_E_DEVICE && strstr(tarn_last_error(), bad_row) != NULL;
}

// The library has one stream for all threads, so that each asks the plug-in for
// a stream in turn: what one has seen fail is no other thread's failure.
static void *use_own_stream(void *context) {
  thread *t = context;
  tarn_stream *stream = NULL;
  expect(tarn_stream_adopt(t->device, TARN__CU_STREAM_PER_THREAD, &stream) ==
         TARN_OK);
  expect(goes_as_it_should(t, stream));
  (void)tarn_stream_destroy(stream);
  return NULL;
}

TEST(each_thread_has_a_stream_of_its_own) {
  tarn_device *device = open_device("cuda:0");
  thread good = {device, make_rows(device, 3, 0), false};
  thread bad = {device, make_rows(device, 1, 9), true};
  for (int round = 0; round < 2; round++) {
    run_threads_on(use_own_stream, 1, &bad);
    run_threads_on(use_own_stream, 1, &good);
  }
  assert_as_expected();
  assert_ok(tarn_device_synchronize(device));
  free_rows(device, bad.block);
  free_rows(device, good.block);
}

// --- events ----------------------------------------------------------------

TEST(an_event_of_the_program_is_waited_for) {
  tarn_device *device = open_device("cuda:0");
  CUstream native = make_stream(TARN__CU_STREAM_NON_BLOCKING);
  CUevent handle = NULL;
  tarn_stream *stream = NULL;
  tarn_event *event = NULL;
  gate g;
  assert_ok(tarn_stream_create(device, &stream));
  enter_context();
  ok(cuEventCreate(&handle, TARN__CU_EVENT_DEFAULT));
  leave_context();
  assert_ok(tarn_event_adopt(device, handle, &event));
  assert_ok(tarn_event_query(event));
  close_gate(&g, native);
  enter_context();
  ok(cuEventRecord(handle, native));
  leave_context();
  assert_status(tarn_event_query(event), TARN_PENDING);
  assert_ok(tarn_stream_wait_event(stream, event));
  assert_status(tarn_stream_query(stream), TARN_PENDING);
  open_gate(&g);
  assert_ok(tarn_event_synchronize(event));
  assert_ok(tarn_stream_synchronize(stream));
  assert_ok(tarn_event_record(event, stream));
  assert_ok(tarn_event_synchronize(event));
  assert_ok(tarn_event_destroy(event));
  enter_context();
  ok(cuEventDestroy_v2(handle));
  leave_context();
  assert_ok(tarn_stream_destroy(stream));
  destroy_stream(native);
}
