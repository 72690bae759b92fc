// What is broken or bad: machines without a device, drivers without memory of a
// kind, kernels that do not build, queues that fail later. Over the stand-in:
// each text has the words that a driver gives.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

#include "over.h"
#include "tarn/rows.h"

static void open_fails(const char *part) {
  tarn_device *device = NULL;
  assert_fails(tarn_device_open("opencl:0", &device), TARN_E_DEVICE, part);
  ck_assert_ptr_null(device);
  over_assert_clean("a device that does not open", 0);
}

static tarn_stream *stream_on(tarn_device *device) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(device, &stream));
  return stream;
}

// --- no device -------------------------------------------------------------

static const struct {
  const char *settings;
  const char *text;
} machines[] = {
    {"PLATFORMS=0", "libOpenCL.so.1 has no platform"},
    {"PLATFORMS=0 NO_PLATFORM_IS_OK=1", "libOpenCL.so.1 has no platform"},
    {"DEVICES=0", "no GPU, CPU or accelerator on 1 platform"},
    {"DEVICES=0 PLATFORMS=2", "no GPU, CPU or accelerator on 2 platforms"},
    {"DEVICE_TYPES=custom,custom", "no GPU, CPU or accelerator on 1 platform"},
};

TEST_LOOP(a_machine_without_a_device, sizeof machines / sizeof *machines) {
  over_set(machines[_i].settings);
  over_register();
  open_fails(machines[_i].text);
  over_set("");
  (void)open_device("opencl:0");  // which another try finds
}

// Each call that a first open makes fails, in a process of its own: what is
// listed stays.
enum { CALLS_OF_AN_OPEN = 60 };

TEST_LOOP(a_driver_that_fails_while_it_is_asked, CALLS_OF_AN_OPEN) {
  tarn_device *device = NULL;
  over_set("");
  over_register();
  tarn_standin_fail_call(NULL, (uint64_t)_i + 1, CL_OUT_OF_RESOURCES, false);
  tarn_status status = tarn_device_open("opencl:0", &device);
  tarn_standin_fail_call(NULL, 0, 0, false);
  if (status != TARN_OK) {
    ck_assert_int_eq(status, TARN_E_DEVICE);
    assert_error_says("CL_OUT_OF_RESOURCES (-5)");
    assert_ok(tarn_device_open("opencl:0", &device));
  }
  size_t total = 0;
  size_t available = 0;
  assert_ok(tarn_device_memory(device, &total, &available));
  ck_assert_uint_eq(total, 1 << 30);
  assert_ok(tarn_device_close(device));
  over_assert_clean("an open", (size_t)_i + 1);
}

TEST(a_context_that_is_refused_with_words) {
  over_set("");
  over_register();
  ck_assert(tarn_standin_set("CONTEXT_FAILS", "the card is on fire"));
  open_fails("clCreateContext: ");
  assert_error_says(": the card is on fire");
  ck_assert(tarn_standin_set("CONTEXT_FAILS", NULL));
  close_device(open_device("opencl:0"));
  over_assert_clean("behind a context that was refused", 0);
}

// --- memory that a driver lacks --------------------------------------------

TEST(a_driver_without_memory_with_an_address) {
  over_set("METHODS=none");
  over_register();
  tarn_device *device = open_device("opencl:0");
  tarn_place unified = {device, TARN_PLACE_UNIFIED};
  tarn_addr block = 0;
  assert_status(tarn_device_allocate(unified, 64, &block), TARN_E_UNSUPPORTED);
  assert_ok(tarn_device_allocate(tarn_place_on(device), 64, &block));
  assert_ok(tarn_device_deallocate(tarn_place_on(device), block, 64));
}

static const char *const lacking[][2] = {
    {"METHODS=none", "device=svm"},
    {"METHODS=none", "device=usm"},
    {"METHODS=none", "device=address"},
    {"METHODS=none", "unified=svm"},
    {"METHODS=coarse", "host=svm"},
    {"METHODS=usm", "device=svm"},
    {"METHODS=coarse,fine VERSION=1.2", "device=svm"},
};

TEST_LOOP(a_method_that_the_driver_lacks, sizeof lacking / sizeof *lacking) {
  char text[64];
  over_set(lacking[_i][0]);
  over_register();
  ck_assert_int_eq(setenv("TARN_OPENCL_MEMORY", lacking[_i][1], 1), 0);
  snprintf(text, sizeof text, "has no memory %s", lacking[_i][1]);
  open_fails(text);
}

// --- rows ------------------------------------------------------------------

enum { INDICES_AT = 64, DENSE_AT = 128, SIZE = 512 };

// Two of four rows.
static tarn_status gather(tarn_device *device, tarn_addr block,
                          tarn_stream *stream) {
  size_t offsets[2] = {0, INDICES_AT};
  const tarn_rows rows = {
      .struct_size = sizeof rows,
      .table = {&block, offsets, 1},
      .table_dtype = TARN_DTYPE_F32,
      .table_count = 4,
      .width = 4,
      .dense = block + DENSE_AT,
      .dense_dtype = TARN_DTYPE_F32,
      .indices = block + INDICES_AT,
      .index_dtype = TARN_DTYPE_I32,
      .index_count = 2,
  };
  return tarn_rows_gather(device, &rows, stream);
}

static tarn_addr take_block(tarn_device *device) {
  static const char zeros[SIZE];
  tarn_addr block = 0;
  assert_ok(tarn_device_allocate(tarn_place_on(device), SIZE, &block));
  assert_ok(tarn_copy_h2d(device, block, zeros, SIZE, NULL));
  return block;
}

static void give_block(tarn_device *device, tarn_addr block) {
  assert_ok(tarn_device_deallocate(tarn_place_on(device), block, SIZE));
}

TEST_LOOP(kernels_that_do_not_build, OVER_KINDS) {
  over_begin(_i);
  tarn_device *device = open_device("opencl:0");
  tarn_addr block = take_block(device);
  ck_assert(tarn_standin_set("BUILD_FAILS", "rows.cl:7: 'fast' is no type"));
  assert_fails(gather(device, block, NULL), TARN_E_DEVICE,
               "kernels (-D ACTION=0 -D UNIT=8 -D SOLO) do not build: "
               "rows.cl:7: 'fast' is no type");
  ck_assert(tarn_standin_set("BUILD_FAILS", NULL));
  assert_ok(gather(device, block, NULL));
  give_block(device, block);
  close_device(device);
  over_assert_clean(over_kinds[_i].name, 0);
}

// --- a queue that fails later ----------------------------------------------

typedef struct notice {
  int calls;
  tarn_status status;
} notice;

static void note(void *context, tarn_status status) {
  notice *n = context;
  n->calls++;
  n->status = status;
}

typedef struct bench {
  tarn_device *device;
  tarn_stream *stream;
  tarn_event *event;
  tarn_addr block;
  tarn_addr other;
  char bytes[SIZE];
} bench;

static tarn_status to_device(bench *b) {
  return tarn_copy_h2d(b->device, b->block, b->bytes, SIZE, b->stream);
}

static tarn_status from_device(bench *b) {
  return tarn_copy_d2h(b->device, b->bytes, b->block, SIZE, b->stream);
}

static tarn_status on_device(bench *b) {
  return tarn_copy_d2d(b->device, b->other, b->block, SIZE, b->stream);
}

static tarn_status record(bench *b) {
  return tarn_event_record(b->event, b->stream);
}

static tarn_status gather_rows(bench *b) {
  return gather(b->device, b->block, b->stream);
}

// Of a copy by the host nothing is queued.
static const struct {
  const char *name;  // as the text has it
  tarn_status (*queue)(bench *b);
  bool is_copy_of_host;
} commands[] = {
    {"async_memory_copy_h2d: ", to_device, true},
    {"async_memory_copy_d2h: ", from_device, true},
    {"async_memory_copy_d2d: ", on_device, false},
    {"record_event: ", record, false},
    {"rows: ", gather_rows, false},
};
enum { COMMANDS = sizeof commands / sizeof *commands, WAYS = 8 };

// What drivers do behind a failure; PoCL nothing of it.
static void set_way(int way) {
  ck_assert(tarn_standin_set("FAILED_CALLBACKS", way & 1 ? "1" : "0"));
  ck_assert(tarn_standin_set("FINISH_TELLS", way & 2 ? "1" : "0"));
  ck_assert(tarn_standin_set("RECOVERS", way & 4 ? "1" : "0"));
}

static bench set_up(tarn_device *device) {
  bench b = {.device = device, .stream = stream_on(device)};
  assert_ok(tarn_event_create(device, &b.event));
  b.block = take_block(device);
  b.other = take_block(device);
  return b;
}

static void assert_stays_failed(bench *b, const char *name) {
  int seen = 0;
  assert_fails(tarn_stream_synchronize(b->stream), TARN_E_DEVICE, name);
  assert_fails(tarn_stream_query(b->stream), TARN_E_DEVICE, name);
  assert_fails(
      tarn_copy_d2h(b->device, &seen, b->block, sizeof seen, b->stream),
      TARN_E_DEVICE, name);
}

static void assert_others_work(bench *b) {
  tarn_stream *other = stream_on(b->device);
  assert_ok(tarn_copy_d2d(b->device, b->other, b->block, SIZE, other));
  assert_ok(tarn_stream_synchronize(other));
  assert_ok(tarn_copy_d2h(b->device, b->bytes, b->block, SIZE, NULL));
  assert_ok(gather(b->device, b->block, NULL));
  assert_ok(tarn_stream_destroy(other));
}

static void clear(bench *b) {
  assert_ok(tarn_event_destroy(b->event));
  assert_status(tarn_stream_destroy(b->stream), TARN_E_DEVICE);
  give_block(b->device, b->block);
  give_block(b->device, b->other);
}

static void fail_later(tarn_device *device, int command) {
  const char *name = commands[command].name;
  bench b = set_up(device);
  notice n = {0, TARN_OK};
  assert_ok(on_device(&b));
  tarn_standin_hold(true);
  tarn_standin_fail_command(1, CL_OUT_OF_RESOURCES);
  assert_ok(commands[command].queue(&b));
  assert_ok(tarn_stream_add_callback(b.stream, note, &n));
  tarn_standin_hold(false);
  assert_fails(tarn_stream_synchronize(b.stream), TARN_E_DEVICE, name);
  assert_error_says("CL_OUT_OF_RESOURCES (-5)");
  ck_assert_int_eq(n.calls, 1);
  ck_assert_int_eq(n.status, TARN_E_DEVICE);
  assert_stays_failed(&b, name);
  assert_others_work(&b);
  clear(&b);
  ck_assert_int_eq(n.calls, 1);
}

TEST_LOOP(a_command_that_fails_fails_its_stream, OVER_KINDS *WAYS) {
  int kind = _i / WAYS;
  over_begin(kind);
  bool by_host = strstr(over_kinds[kind].settings, "PLAIN_HOST=0") != NULL;
  set_way(_i % WAYS);
  tarn_device *device = open_device("opencl:0");
  for (int i = 0; i < COMMANDS; i++)
    if (!by_host || !commands[i].is_copy_of_host) fail_later(device, i);
  close_device(device);
  over_assert_clean(over_kinds[kind].name, (size_t)_i);
}

// --- what is given back ----------------------------------------------------

static cl_context context_of(tarn_stream *stream) {
  cl_context context = NULL;
  ck_assert_int_eq(
      clGetCommandQueueInfo(tarn_stream_native(stream), CL_QUEUE_CONTEXT,
                            sizeof(cl_context), &context, NULL),
      CL_SUCCESS);
  return context;
}

// The program leaves everything to the close of the device, and a hold of its
// own is the last one.
TEST_LOOP(a_device_that_is_closed_holds_nothing, OVER_KINDS) {
  over_begin(_i);
  tarn_device *device = NULL;
  assert_ok(tarn_device_open("opencl:0", &device));
  bench b = set_up(device);
  assert_ok(to_device(&b));
  assert_ok(gather_rows(&b));
  assert_ok(record(&b));
  assert_ok(tarn_stream_synchronize(b.stream));
  cl_context context = context_of(b.stream);
  ck_assert_int_eq(clRetainContext(context), CL_SUCCESS);
  assert_ok(tarn_event_destroy(b.event));
  assert_ok(tarn_stream_destroy(b.stream));
  give_block(device, b.block);
  give_block(device, b.other);
  assert_ok(tarn_device_close(device));
  ck_assert_uint_eq(tarn_standin_live(NULL), 1);
  cl_uint count = 0;
  ck_assert_int_eq(clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT,
                                    sizeof count, &count, NULL),
                   CL_SUCCESS);
  ck_assert_uint_eq(count, 1);
  ck_assert_int_eq(clReleaseContext(context), CL_SUCCESS);
  over_assert_clean(over_kinds[_i].name, 0);
}
