// Queues and events that a program made by the driver's own functions.
#include "kit.h"

int main(void) {
  return run_with_driver();
}

static tarn_stream *adopt(tarn_device *device, cl_command_queue queue) {
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_adopt(device, queue, &stream));
  return stream;
}

TEST(copies_follow_what_the_program_queued) {
  tarn_device *device = open_device("opencl:0");
  tarn_stream *made = stream_on(device);
  cl_command_queue queue = queue_beside(made, 0);
  tarn_stream *stream = adopt(device, queue);
  tarn_addr block = 0;
  int sent = 1;
  int seen = 0;
  assert_ok(tarn_device_allocate(tarn_place_on(device), sizeof sent, &block));
  assert_ok(tarn_copy_h2d(device, block, &sent, sizeof sent, NULL));
  gate g = close_gate(made, queue);
  int later = 2;
  assert_ok(tarn_copy_h2d(device, block, &later, sizeof later, stream));
  assert_status(tarn_stream_query(stream), TARN_PENDING);
  assert_ok(tarn_copy_d2h(device, &seen, block, sizeof seen, NULL));
  ck_assert_int_eq(seen, 1);
  set_gate(g, CL_COMPLETE);
  assert_ok(tarn_stream_synchronize(stream));
  assert_ok(tarn_copy_d2h(device, &seen, block, sizeof seen, NULL));
  ck_assert_int_eq(seen, 2);
  assert_ok(tarn_device_deallocate(tarn_place_on(device), block, sizeof sent));
  assert_ok(tarn_stream_destroy(stream));
  assert_ok(tarn_device_synchronize(device));
  await_last_holder_of(queue);
  driver()->ReleaseCommandQueue(queue);
  assert_ok(tarn_stream_destroy(made));
}

// The plug-in queued nothing: the marker of a query does not overtake it.
TEST(a_query_and_a_wait_see_what_the_program_queued) {
  tarn_device *device = open_device("opencl:0");
  tarn_stream *made = stream_on(device);
  tarn_event *event = NULL;
  assert_ok(tarn_event_create(device, &event));
  gate g = close_gate(made, tarn_stream_native(made));
  assert_status(tarn_stream_query(made), TARN_PENDING);
  assert_ok(tarn_event_record(event, made));
  assert_status(tarn_event_query(event), TARN_PENDING);
  set_gate(g, CL_COMPLETE);
  assert_ok(tarn_stream_synchronize(made));
  assert_ok(tarn_stream_query(made));
  assert_ok(tarn_event_query(event));
  assert_ok(tarn_event_destroy(event));
  assert_ok(tarn_stream_destroy(made));
}

TEST(a_stream_of_tarns_is_found_by_its_queue) {
  tarn_device *device = open_device("opencl:0");
  tarn_stream *made = stream_on(device);
  ck_assert_ptr_eq(adopt(device, tarn_stream_native(made)), made);
  assert_ok(tarn_stream_destroy(made));
  assert_ok(tarn_stream_destroy(made));
}

static void assert_refused(tarn_device *device, cl_command_queue queue,
                           const char *why) {
  tarn_stream *stream = adopt(device, queue);
  char cell = 0;
  tarn_addr block = 0;
  assert_ok(tarn_device_allocate(tarn_place_on(device), 1, &block));
  assert_fails(tarn_copy_h2d(device, block, &cell, 1, stream), TARN_E_DEVICE,
               why);
  assert_ok(tarn_device_deallocate(tarn_place_on(device), block, 1));
  (void)tarn_stream_destroy(stream);
}

TEST(a_queue_out_of_order_is_no_stream) {
  tarn_device *device = open_device("opencl:0");
  tarn_stream *made = stream_on(device);
  cl_command_queue queue =
      queue_beside(made, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  assert_refused(device, queue, "no stream: it is out of order");
  driver()->ReleaseCommandQueue(queue);
  assert_ok(tarn_stream_destroy(made));
}

TEST(a_queue_of_another_context_is_no_stream) {
  tarn_device *device = open_device("opencl:0");
  tarn_stream *made = stream_on(device);
  cl_device_id handle = device_of(made);
  cl_int error = CL_SUCCESS;
  cl_context context =
      driver()->CreateContext(NULL, 1, &handle, NULL, NULL, &error);
  ck_assert_int_eq(error, CL_SUCCESS);
  cl_command_queue queue =
      driver()->CreateCommandQueue(context, handle, 0, &error);
  ck_assert_int_eq(error, CL_SUCCESS);
  assert_refused(device, queue, "in another context");
  driver()->ReleaseCommandQueue(queue);
  driver()->ReleaseContext(context);
  assert_ok(tarn_stream_destroy(made));
}

TEST(an_event_of_the_program_is_waited_for) {
  tarn_device *device = open_device("opencl:0");
  tarn_stream *stream = stream_on(device);
  tarn_event *event = NULL;
  cl_int error = CL_SUCCESS;
  cl_event user = driver()->CreateUserEvent(context_of(stream), &error);
  ck_assert_int_eq(error, CL_SUCCESS);
  assert_ok(tarn_event_adopt(device, user, &event));
  assert_status(tarn_event_query(event), TARN_PENDING);
  assert_ok(tarn_stream_wait_event(stream, event));
  assert_status(tarn_stream_query(stream), TARN_PENDING);
  ck_assert_int_eq(driver()->SetUserEventStatus(user, CL_COMPLETE), CL_SUCCESS);
  assert_ok(tarn_event_synchronize(event));
  assert_ok(tarn_stream_synchronize(stream));
  assert_fails(tarn_event_record(event, stream), TARN_E_DEVICE,
               "a cl_event cannot be recorded");
  assert_ok(tarn_event_destroy(event));
  driver()->ReleaseEvent(user);
  (void)tarn_stream_destroy(stream);
}
