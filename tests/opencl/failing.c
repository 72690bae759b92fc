// What fails: queues, later; options; a machine without a driver. The text has
// the driver's words or the option's value.
#include <unistd.h>

#include "kit.h"
#include "support/child.h"

int main(void) {
  return run_with_driver();
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

// PoCL finishes a queue with CL_SUCCESS whose commands were not run, and does
// not call their callbacks.
TEST(a_queue_that_fails_later_fails_its_stream) {
  tarn_device *device = open_device("opencl:0");
  tarn_stream *stream = stream_on(device);
  tarn_event *before = NULL;
  tarn_event *behind = NULL;
  tarn_addr block = 0;
  int sent = 1;
  int seen = 0;
  notice n = {0, TARN_OK};
  assert_ok(tarn_event_create(device, &before));
  assert_ok(tarn_event_create(device, &behind));
  assert_ok(tarn_device_allocate(tarn_place_on(device), sizeof sent, &block));
  assert_ok(tarn_copy_h2d(device, block, &sent, sizeof sent, NULL));
  assert_ok(tarn_event_record(before, stream));
  assert_ok(tarn_stream_synchronize(stream));
  gate g = close_gate(stream, tarn_stream_native(stream));
  int later = 2;
  assert_ok(tarn_copy_h2d(device, block, &later, sizeof later, stream));
  assert_ok(tarn_event_record(behind, stream));
  assert_ok(tarn_stream_add_callback(stream, note, &n));
  set_gate(g, CL_OUT_OF_RESOURCES);
  assert_fails(tarn_stream_synchronize(stream), TARN_E_DEVICE, "(-");
  ck_assert_int_eq(n.calls, 1);
  ck_assert_int_eq(n.status, TARN_E_DEVICE);
  assert_ok(tarn_event_query(before));
  assert_status(tarn_event_query(behind), TARN_E_DEVICE);
  assert_status(tarn_stream_query(stream), TARN_E_DEVICE);
  assert_status(tarn_copy_d2h(device, &seen, block, sizeof seen, stream),
                TARN_E_DEVICE);
  assert_ok(tarn_copy_d2h(device, &seen, block, sizeof seen, NULL));
  ck_assert_int_eq(seen, 1);
  assert_ok(tarn_event_destroy(before));
  assert_ok(tarn_event_destroy(behind));
  assert_ok(tarn_device_deallocate(tarn_place_on(device), block, sizeof sent));
  assert_status(tarn_stream_destroy(stream), TARN_E_DEVICE);
}

TEST(another_stream_does_not_fail_for_one_that_has_failed) {
  tarn_device *device = open_device("opencl:0");
  tarn_stream *failed = stream_on(device);
  tarn_stream *other = stream_on(device);
  gate g = close_gate(failed, tarn_stream_native(failed));
  tarn_event *event = NULL;
  assert_ok(tarn_event_create(device, &event));
  assert_ok(tarn_event_record(event, failed));
  set_gate(g, CL_OUT_OF_RESOURCES);
  assert_status(tarn_event_synchronize(event), TARN_E_DEVICE);
  assert_status(tarn_stream_wait_event(other, event), TARN_E_DEVICE);
  assert_ok(tarn_stream_synchronize(other));
  assert_ok(tarn_event_destroy(event));
  assert_status(tarn_stream_destroy(failed), TARN_E_DEVICE);
  assert_ok(tarn_stream_destroy(other));
}

// --- memory ----------------------------------------------------------------

TEST(what_is_beyond_the_capacity_is_refused) {
  ck_assert_int_eq(setenv("TARN_OPENCL_CAPACITY", "1M", 1), 0);
  tarn_device *device = open_device("opencl:0");
  tarn_addr first = 0;
  tarn_addr second = 0;
  size_t total = 0;
  size_t available = 0;
  assert_ok(tarn_device_allocate(tarn_place_on(device), 700000, &first));
  assert_ok(tarn_device_memory(device, &total, &available));
  ck_assert_uint_eq(total, 1 << 20);
  ck_assert_uint_eq(available, (1 << 20) - 700000);
  assert_fails(tarn_device_allocate(tarn_place_on(device), 400000, &second),
               TARN_FULL, "400000 bytes, of 348576 that are left of 1048576");
  assert_fails(tarn_device_allocate(tarn_place_on(device), 2 << 20, &second),
               TARN_FULL, "2097152 bytes, of 1048576 that a block can have");
  assert_ok(tarn_device_deallocate(tarn_place_on(device), first, 700000));
}

TEST(a_copy_beyond_a_block_is_refused) {
  tarn_device *device = open_device("opencl:0");
  tarn_addr block = 0;
  char bytes[200] = {0};
  assert_ok(tarn_device_allocate(tarn_place_on(device), 100, &block));
  assert_ok(tarn_copy_h2d(device, block + 1, bytes, 99, NULL));
  assert_fails(tarn_copy_h2d(device, block + 1, bytes, 100, NULL),
               TARN_E_DEVICE, "1 are beyond the end of a block of 100");
  assert_ok(tarn_device_deallocate(tarn_place_on(device), block, 100));
}

// --- options ---------------------------------------------------------------

static const struct {
  const char *variable;
  const char *value;
  const char *text;
} bad[] = {
    {"TARN_OPENCL", "no such device", "of which the name has 'no such device'"},
    {"TARN_OPENCL_MEMORY", "device=fast",
     "TARN_OPENCL_MEMORY=device=fast: not like"},
    {"TARN_OPENCL_MEMORY", "disk=svm", "TARN_OPENCL_MEMORY=disk=svm: not like"},
    {"TARN_OPENCL_MEMORY", "svm", "TARN_OPENCL_MEMORY=svm: not like"},
    {"TARN_OPENCL_MEMORY", "host=window", "no memory host=window"},
    {"TARN_OPENCL_MEMORY", "device=none", "no memory device=none"},
    {"TARN_OPENCL_CAPACITY", "much", "TARN_OPENCL_CAPACITY=much: not a size"},
    {"TARN_OPENCL_CAPACITY", "0", "TARN_OPENCL_CAPACITY=0: not a size"},
};

TEST_LOOP(a_bad_option_is_named, sizeof bad / sizeof *bad) {
  tarn_device *device = NULL;
  ck_assert_int_eq(setenv(bad[_i].variable, bad[_i].value, 1), 0);
  add_device("opencl:0");
  assert_fails(tarn_device_open("opencl:0", &device), TARN_E_DEVICE,
               bad[_i].text);
  ck_assert_ptr_null(device);
}

// --- what is said of a device ----------------------------------------------

static const char *const methods[] = {"device=svm,host=svm,unified=svm",
                                      "device=window,host=svm,unified=svm",
                                      "device=svm,host=mapped,unified=none",
                                      "device=window,host=mapped,unified=none"};

TEST_LOOP(a_device_says_its_methods, sizeof methods / sizeof *methods) {
  char wanted[128];
  snprintf(wanted, sizeof wanted, "memory %s", methods[_i]);
  ck_assert_int_eq(setenv("TARN_OPENCL_MEMORY", methods[_i], 1), 0);
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_query(open_device("opencl:0"), &info));
  ck_assert_msg(strstr(info.description, wanted) != NULL, "%s",
                info.description);
}

// --- forks -----------------------------------------------------------------

static void open_in_child(void) {
  tarn_device *device = NULL;
  MUST(tarn_device_open("opencl:0", &device) == TARN_E_STATE);
}

TEST(a_child_of_a_process_with_devices_is_refused) {
  (void)open_device("opencl:0");
  fork_and_run(open_in_child);
}
