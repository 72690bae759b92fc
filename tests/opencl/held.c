// What a device holds of the driver, it gives back: with the last device of a
// platform closed, nobody has the context but the test.
#include <unistd.h>

#include "kit.h"

int main(void) {
  return run_with_driver();
}

static cl_uint holders_of_context(cl_context context) {
  cl_uint count = 0;
  ck_assert_int_eq(driver()->GetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT,
                                            sizeof count, &count, NULL),
                   CL_SUCCESS);
  return count;
}

// A thread of the driver's lets go of an event when its callback has returned,
// which may be a moment later.
static void await_last_holder(cl_context context) {
  for (int i = 0; i < 5000 && holders_of_context(context) != 1; i++)
    usleep(1000);
  ck_assert_uint_eq(holders_of_context(context), 1);
}

static void copy_around(tarn_device *device, tarn_place place,
                        tarn_stream *stream) {
  enum { SIZE = 10000 };
  char bytes[SIZE] = {1};
  tarn_addr block = 0;
  tarn_status status = tarn_device_allocate(place, SIZE, &block);
  if (status == TARN_E_UNSUPPORTED) return;  // no unified memory
  assert_ok(status);
  assert_ok(tarn_copy_h2d(device, block, bytes, SIZE, NULL));
  assert_ok(tarn_copy_h2d(device, block, bytes, SIZE, stream));
  assert_ok(tarn_copy_d2h(device, bytes, block, SIZE, stream));
  assert_ok(tarn_stream_synchronize(stream));
  assert_ok(tarn_device_set(device, block, 7, SIZE, NULL));
  assert_ok(tarn_device_deallocate(place, block, SIZE));
}

static void count(void *context, tarn_status status) {
  if (status == TARN_OK) ++*(int *)context;
}

static void use(tarn_device *device) {
  tarn_stream *stream = stream_on(device);
  tarn_stream *adopted = NULL;
  tarn_event *event = NULL;
  int calls = 0;
  cl_command_queue queue = queue_beside(stream, 0);
  assert_ok(tarn_stream_adopt(device, queue, &adopted));
  assert_ok(tarn_event_create(device, &event));
  for (int kind = 0; kind <= TARN_PLACE_UNIFIED; kind++) {
    tarn_place place = {device, (tarn_place_kind)kind};
    copy_around(device, place, stream);
    copy_around(device, place, adopted);
  }
  assert_ok(tarn_event_record(event, stream));
  assert_ok(tarn_stream_wait_event(adopted, event));
  assert_ok(tarn_stream_add_callback(adopted, count, &calls));
  assert_ok(tarn_stream_synchronize(adopted));
  ck_assert_int_eq(calls, 1);
  assert_ok(tarn_event_destroy(event));
  assert_ok(tarn_stream_destroy(adopted));
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_synchronize(device));
  ck_assert_uint_eq(holders_of(queue), 1);
  ck_assert_int_eq(driver()->ReleaseCommandQueue(queue), CL_SUCCESS);
}

static const char *const methods[] = {"", "device=window",
                                      "device=window,host=mapped,unified=none"};

TEST_LOOP(a_closed_device_holds_nothing, sizeof methods / sizeof *methods) {
  ck_assert_int_eq(setenv("TARN_OPENCL_MEMORY", methods[_i], 1), 0);
  cl_context before = NULL;
  for (int round = 0; round < 3; round++) {
    tarn_device *device = open_opencl(0);
    tarn_stream *stream = stream_on(device);
    cl_context context = context_of(stream);
    ck_assert_int_eq(driver()->RetainContext(context), CL_SUCCESS);
    assert_ok(tarn_stream_destroy(stream));
    use(device);
    close_device(device);
    await_last_holder(context);
    ck_assert_ptr_ne(context, before);
    if (before != NULL) driver()->ReleaseContext(before);
    before = context;
  }
  driver()->ReleaseContext(before);
}
