// What a device holds of the driver, it gives back: with the last device of a
// platform closed, nobody has the context but the test.
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

// As await_last_holder_of.
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
  await_last_holder_of(queue);
  ck_assert_int_eq(driver()->ReleaseCommandQueue(queue), CL_SUCCESS);
}

// PoCL 6.0 keeps a reference for each block of unified memory, also for one
// that was freed.
static bool keeps_unified_memory(cl_context context) {
  const tarn__opencl_driver *cl = driver();
  cl_platform_id platform = NULL;
  cl_device_id device = NULL;
  clDeviceMemAllocINTEL_fn take = NULL;
  clMemFreeINTEL_fn give = NULL;
  cl_int error = CL_SUCCESS;
  ck_assert_int_eq(cl->GetPlatformIDs(1, &platform, NULL), CL_SUCCESS);
  ck_assert_int_eq(cl->GetContextInfo(context, CL_CONTEXT_DEVICES,
                                      sizeof(cl_device_id), &device, NULL),
                   CL_SUCCESS);
  *(void **)&take = cl->GetExtensionFunctionAddressForPlatform(
      platform, "clDeviceMemAllocINTEL");
  *(void **)&give =
      cl->GetExtensionFunctionAddressForPlatform(platform, "clMemFreeINTEL");
  cl_uint before = holders_of_context(context);
  void *block = take(context, device, NULL, 4096, 0, &error);
  ck_assert_ptr_nonnull(block);
  ck_assert_int_eq(give(context, block), CL_SUCCESS);
  return holders_of_context(context) != before;
}

static const char *const methods[] = {
    "device=svm,host=svm,unified=svm", "device=window,host=svm,unified=svm",
    "device=window,host=mapped,unified=none", "device=usm,host=usm,unified=usm",
    "device=address,host=mapped"};

// False: the driver lacks the methods, or keeps what was freed.
static bool can_be_tried(tarn_status opened, const char *wanted) {
  if (opened != TARN_OK) {
    assert_error_says("has no memory");
    note_skipped(wanted, "the driver lacks it");
    return false;
  }
  return true;
}

TEST_LOOP(a_closed_device_holds_nothing, sizeof methods / sizeof *methods) {
  tarn_device *device = NULL;
  ck_assert_int_eq(setenv("TARN_OPENCL_MEMORY", methods[_i], 1), 0);
  add_device("opencl:0");
  if (!can_be_tried(tarn_device_open("opencl:0", &device), methods[_i])) return;
  for (int round = 0; round < 3; round++) {
    tarn_stream *stream = stream_on(device);
    cl_context context = context_of(stream);
    ck_assert_int_eq(driver()->RetainContext(context), CL_SUCCESS);
    assert_ok(tarn_stream_destroy(stream));
    bool keeps =
        strstr(methods[_i], "usm") != NULL && keeps_unified_memory(context);
    use(device);
    assert_ok(tarn_device_close(device));
    if (keeps) {
      note_skipped(methods[_i], "the driver keeps references of freed memory");
      return;
    }
    await_last_holder(context);
    ck_assert_int_eq(driver()->ReleaseContext(context), CL_SUCCESS);
    assert_ok(tarn_device_open("opencl:0", &device));
  }
  assert_ok(tarn_device_close(device));
}
