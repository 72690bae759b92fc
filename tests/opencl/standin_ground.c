// What the tests of the stand-in begin and end with.
#include "standin_ground.h"

#include <unistd.h>

cl_command_queue ground_queue(const ground *on) {
  cl_int error = CL_SUCCESS;
  cl_command_queue queue =
      clCreateCommandQueue(on->context, on->device, 0, &error);
  done(error);
  return queue;
}

ground ground_with(const char *methods) {
  ground on = {0};
  ck_assert(tarn_standin_set("METHODS", methods));
  done(clGetPlatformIDs(1, &on.platform, NULL));
  done(clGetDeviceIDs(on.platform, CL_DEVICE_TYPE_ALL, 1, &on.device, NULL));
  cl_int error = CL_SUCCESS;
  on.context = clCreateContext(NULL, 1, &on.device, NULL, NULL, &error);
  done(error);
  on.queue = ground_queue(&on);
  return on;
}

void ground_close(ground *on) {
  done(clReleaseCommandQueue(on->queue));
  ck_assert_uint_eq(tarn_standin_live(NULL), 1);
  done(clReleaseContext(on->context));
  ck_assert_uint_eq(tarn_standin_live(NULL), 0);
  ck_assert_uint_eq(tarn_standin_bytes(), 0);
}

cl_int event_status(cl_event event) {
  cl_int status = 1;
  done(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status,
                      &status, NULL));
  return status;
}

bool host_reaches(const void *address) {
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  bool reached = write(ends[1], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return reached;
}

void (*ground_function(const ground *on, const char *name))(void) {
  void *found = clGetExtensionFunctionAddressForPlatform(on->platform, name);
  void (*function)(void) = NULL;
  memcpy(&function, &found, sizeof found);
  return function;
}

void fill_in(unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++)
    bytes[i] = (unsigned char)(i * 7 + i / 256);
}

void assert_filled(const unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    require(bytes[i] == (unsigned char)(i * 7 + i / 256));
  }
}

void assert_all(const unsigned char *bytes, size_t size, int value) {
  for (size_t i = 0; i < size; i++)
    require(bytes[i] == value);
}

cl_mem ground_buffer(const ground *on, cl_mem_flags flags, size_t size) {
  cl_int error = CL_SUCCESS;
  cl_mem buffer = clCreateBuffer(on->context, flags, size, NULL, &error);
  done(error);
  return buffer;
}
