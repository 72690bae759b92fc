// The stand-in for an OpenCL driver itself: what it is told to be, memory by
// each method, order, faults, what is left, and refusals.
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "standin_ground.h"

enum { SIZE = 3 * 4096 + 100, SMALL = 64 };

static void fill_in(unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++)
    bytes[i] = (unsigned char)(i * 7 + i / 256);
}

static void assert_filled(const unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    require(bytes[i] == (unsigned char)(i * 7 + i / 256));
  }
}

static void assert_all(const unsigned char *bytes, size_t size, int value) {
  for (size_t i = 0; i < size; i++)
    require(bytes[i] == value);
}

static cl_mem make_buffer(const ground *on, cl_mem_flags flags, size_t size) {
  cl_int error = CL_SUCCESS;
  cl_mem buffer = clCreateBuffer(on->context, flags, size, NULL, &error);
  done(error);
  return buffer;
}

// --- what it is ------------------------------------------------------------

TEST(it_is_found_as_the_loader_and_says_that_it_is_none) {
  void *found = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_NOLOAD);
  ck_assert_ptr_nonnull(found);
  ck_assert_ptr_nonnull(dlsym(found, "clGetPlatformIDs"));
  ck_assert_ptr_nonnull(dlsym(found, "tarn_standin_set"));
  ck_assert_ptr_null(dlsym(found, "clHostMemAllocINTEL"));
  ck_assert_ptr_nonnull(strstr(tarn_standin_name(), "no driver"));
  dlclose(found);
}
END_TEST

static void assert_info(cl_device_id device, cl_device_info name,
                        const char *expected) {
  char text[256];
  done(clGetDeviceInfo(device, name, sizeof text, text, NULL));
  ck_assert_ptr_nonnull(strstr(text, expected));
}

TEST(settings_say_which_platforms_and_devices_there_are) {
  setenv("TARN_STANDIN_DEVICES", "3", 1);
  setenv("TARN_STANDIN_DEVICE_TYPES", "gpu,cpu", 1);
  ck_assert(tarn_standin_set("PLATFORMS", "2"));
  ck_assert(tarn_standin_set("VERSION", "1.2"));
  ck_assert(!tarn_standin_set("NOTHING", "1"));
  cl_platform_id platforms[2];
  cl_device_id devices[3];
  cl_uint count = 0;
  done(clGetPlatformIDs(2, platforms, &count));
  ck_assert_uint_eq(count, 2);
  done(clGetDeviceIDs(platforms[1], CL_DEVICE_TYPE_ALL, 3, devices, &count));
  ck_assert_uint_eq(count, 3);
  assert_info(devices[2], CL_DEVICE_NAME, "stand-in 2");
  assert_info(devices[0], CL_DEVICE_VERSION, "OpenCL 1.2 ");
  done(clGetDeviceIDs(platforms[0], CL_DEVICE_TYPE_CPU, 3, devices, &count));
  ck_assert_uint_eq(count, 1);
  gives(
      clGetDeviceIDs(platforms[0], CL_DEVICE_TYPE_ACCELERATOR, 0, NULL, &count),
      CL_DEVICE_NOT_FOUND);
  cl_ulong svm = 0;
  gives(clGetDeviceInfo(devices[0], CL_DEVICE_SVM_CAPABILITIES, sizeof svm,
                        &svm, NULL),
        CL_INVALID_VALUE);
  assert_misuses(0);
}
END_TEST

TEST(there_may_be_no_platform_and_no_device) {
  cl_platform_id platform;
  cl_uint count = 7;
  ck_assert(tarn_standin_set("DEVICES", "0"));
  done(clGetPlatformIDs(1, &platform, NULL));
  gives(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count),
        CL_DEVICE_NOT_FOUND);
  ck_assert_uint_eq(count, 0);
  ck_assert(tarn_standin_set("PLATFORMS", "0"));
  gives(clGetPlatformIDs(1, &platform, &count), CL_PLATFORM_NOT_FOUND_KHR);
  ck_assert(tarn_standin_set("NO_PLATFORM_IS_OK", "1"));
  done(clGetPlatformIDs(0, NULL, &count));
  ck_assert_uint_eq(count, 0);
}
END_TEST

static void CL_CALLBACK keep_text(const char *text, const void *info,
                                  size_t size, void *out) {
  (void)info;
  (void)size;
  snprintf(out, 64, "%s", text);
}

TEST(a_context_can_fail_with_a_text) {
  ground on = ground_with("none");
  char text[64] = "";
  cl_int error = CL_SUCCESS;
  ck_assert(tarn_standin_set("CONTEXT_FAILS", "the card is on fire"));
  ck_assert_ptr_null(
      clCreateContext(NULL, 1, &on.device, keep_text, text, &error));
  gives(error, CL_OUT_OF_RESOURCES);
  ck_assert_str_eq(text, "the card is on fire");
  ground_close(&on);
}
END_TEST

TEST(a_child_of_the_process_may_not_call) {
  ground on = ground_with("none");
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) _exit(clFinish(on.queue) == CL_OUT_OF_RESOURCES ? 0 : 1);
  int status = 1;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ground_close(&on);
}
END_TEST

// --- memory by each method -------------------------------------------------

TEST(buffers_are_written_copied_filled_and_read) {
  ground on = ground_with("none");
  unsigned char in[SIZE], out[SIZE] = {0};
  fill_in(in, SIZE);
  cl_mem a = make_buffer(&on, 0, SIZE), b = make_buffer(&on, 0, SIZE);
  done(clEnqueueWriteBuffer(on.queue, a, CL_FALSE, 0, SIZE, in, 0, NULL, NULL));
  done(clEnqueueCopyBuffer(on.queue, a, b, 5, 9, 1000, 0, NULL, NULL));
  const cl_uint pattern = 0x5a5a5a5a;
  done(clEnqueueFillBuffer(on.queue, a, &pattern, sizeof pattern, 0, 64, 0,
                           NULL, NULL));
  done(clEnqueueReadBuffer(on.queue, b, CL_TRUE, 9, 1000, out, 0, NULL, NULL));
  ck_assert_mem_eq(out, in + 5, 1000);
  done(clEnqueueReadBuffer(on.queue, a, CL_TRUE, 0, 65, out, 0, NULL, NULL));
  assert_all(out, 64, 0x5a);
  ck_assert_uint_eq(out[64], in[64]);
  ck_assert_uint_eq(tarn_standin_bytes(), (size_t)2 * SIZE);
  done(clReleaseMemObject(a));
  done(clReleaseMemObject(b));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

TEST(a_mapped_buffer_is_written_back) {
  ground on = ground_with("none");
  cl_mem_flags flags[] = {0, CL_MEM_ALLOC_HOST_PTR};
  for (size_t i = 0; i < 2; i++) {
    unsigned char out[SIZE];
    cl_int error = CL_SUCCESS;
    cl_mem buffer = make_buffer(&on, flags[i], SIZE);
    unsigned char *host =
        clEnqueueMapBuffer(on.queue, buffer, CL_TRUE, CL_MAP_WRITE, 0, SIZE, 0,
                           NULL, NULL, &error);
    done(error);
    fill_in(host, SIZE);
    done(clEnqueueUnmapMemObject(on.queue, buffer, host, 0, NULL, NULL));
    done(clEnqueueReadBuffer(on.queue, buffer, CL_TRUE, 0, SIZE, out, 0, NULL,
                             NULL));
    assert_filled(out, SIZE);
    done(clReleaseMemObject(buffer));
  }
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

TEST(coarse_memory_is_reached_by_copies_and_while_it_is_mapped) {
  ground on = ground_with("coarse");
  unsigned char in[SIZE], out[SIZE];
  fill_in(in, SIZE);
  unsigned char *block = clSVMAlloc(on.context, CL_MEM_READ_WRITE, SIZE, 0);
  ck_assert_ptr_nonnull(block);
  ck_assert(!host_reaches(block));
  done(clEnqueueSVMMemcpy(on.queue, CL_FALSE, block, in, SIZE, 0, NULL, NULL));
  done(
      clEnqueueSVMMemcpy(on.queue, CL_TRUE, out, block + 1, 77, 0, NULL, NULL));
  ck_assert_mem_eq(out, in + 1, 77);
  done(clEnqueueSVMMap(on.queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, block + 3,
                       5000, 0, NULL, NULL));
  ck_assert_mem_eq(block + 3, in + 3, 5000);
  ck_assert(!host_reaches(block + 8192));
  done(clEnqueueSVMUnmap(on.queue, block + 3, 0, NULL, NULL));
  done(clFinish(on.queue));
  ck_assert(!host_reaches(block + 3));
  ck_assert_uint_eq(tarn_standin_live("svm"), 1);
  clSVMFree(on.context, block);
  ck_assert(!host_reaches(block));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

TEST(fine_memory_is_always_reached) {
  ground on = ground_with("fine");
  unsigned char *block = clSVMAlloc(
      on.context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, SIZE, 64);
  ck_assert_ptr_nonnull(block);
  const unsigned char pattern = 9;
  done(clEnqueueSVMMemFill(on.queue, block, &pattern, 1, SIZE, 0, NULL, NULL));
  done(clFinish(on.queue));
  assert_all(block, SIZE, 9);
  clSVMFree(on.context, block);
  ck_assert_ptr_null(clSVMAlloc(on.context, 0, SIZE, 256));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

#define FUNCTION(on, name) ((name##_fn)ground_function(on, #name))

static void try_usm(const ground *on, unsigned char *block, bool reached,
                    cl_uint type) {
  unsigned char in[SIZE], out[SIZE];
  fill_in(in, SIZE);
  ck_assert_ptr_nonnull(block);
  ck_assert(host_reaches(block) == reached);
  done(FUNCTION(on, clEnqueueMemcpyINTEL)(on->queue, CL_FALSE, block, in, SIZE,
                                          0, NULL, NULL));
  done(FUNCTION(on, clEnqueueMemcpyINTEL)(on->queue, CL_TRUE, out, block, SIZE,
                                          0, NULL, NULL));
  assert_filled(out, SIZE);
  const cl_ushort pattern = 0x0707;
  done(FUNCTION(on, clEnqueueMemFillINTEL)(on->queue, block, &pattern, 2, 100,
                                           0, NULL, NULL));
  done(FUNCTION(on, clEnqueueMemcpyINTEL)(on->queue, CL_TRUE, out, block, 100,
                                          0, NULL, NULL));
  assert_all(out, 100, 7);
  cl_uint found = 0;
  done(FUNCTION(on, clGetMemAllocInfoINTEL)(on->context, block + 9,
                                            CL_MEM_ALLOC_TYPE_INTEL,
                                            sizeof found, &found, NULL));
  ck_assert_uint_eq(found, type);
  ck_assert_uint_eq(tarn_standin_live("usm"), 1);
  done(FUNCTION(on, clMemBlockingFreeINTEL)(on->context, block));
}

TEST(unified_memory_of_three_kinds_is_copied_and_filled) {
  ground on = ground_with("usm");
  cl_int error = CL_SUCCESS;
  try_usm(&on,
          FUNCTION(&on, clDeviceMemAllocINTEL)(on.context, on.device, NULL,
                                               SIZE, 0, &error),
          false, CL_MEM_TYPE_DEVICE_INTEL);
  try_usm(&on,
          FUNCTION(&on, clHostMemAllocINTEL)(on.context, NULL, SIZE, 0, &error),
          true, CL_MEM_TYPE_HOST_INTEL);
  try_usm(&on,
          FUNCTION(&on, clSharedMemAllocINTEL)(on.context, on.device, NULL,
                                               SIZE, 0, &error),
          true, CL_MEM_TYPE_SHARED_INTEL);
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

static uint64_t address_of(cl_mem buffer) {
  cl_mem_device_address_ext address = 0;
  done(clGetMemObjectInfo(buffer, CL_MEM_DEVICE_ADDRESS_EXT, sizeof address,
                          &address, NULL));
  return address;
}

static cl_mem make_addressed(const ground *on, size_t size) {
  const cl_mem_properties properties[] = {CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT,
                                          CL_TRUE, 0};
  cl_int error = CL_SUCCESS;
  cl_mem buffer = clCreateBufferWithProperties(
      on->context, properties, CL_MEM_READ_WRITE, size, NULL, &error);
  done(error);
  return buffer;
}

TEST(a_buffer_with_an_address_is_reached_by_the_device_alone) {
  ground on = ground_with("address");
  unsigned char in[SIZE];
  fill_in(in, SIZE);
  cl_mem buffer = make_addressed(&on, SIZE), plain = make_buffer(&on, 0, SIZE);
  uint64_t address = address_of(buffer);
  ck_assert(!host_reaches((const void *)(uintptr_t)address));
  done(clEnqueueWriteBuffer(on.queue, buffer, CL_TRUE, 0, SIZE, in, 0, NULL,
                            NULL));
  assert_filled(tarn_standin_translate(NULL, address, SIZE), SIZE);
  assert_misuses(0);
  refuses(clGetMemObjectInfo(plain, CL_MEM_DEVICE_ADDRESS_EXT, sizeof address,
                             &address, NULL),
          CL_INVALID_OPERATION, "has no address");
  done(clReleaseMemObject(plain));
  done(clReleaseMemObject(buffer));
  ground_close(&on);
}
END_TEST

TEST(methods_that_are_not_there_are_not_found) {
  ground on = ground_with("coarse");
  ck_assert(ground_function(&on, "clDeviceMemAllocINTEL") == NULL);
  ck_assert(ground_function(&on, "clSetKernelArgDevicePointerEXT") == NULL);
  ck_assert_ptr_null(
      clSVMAlloc(on.context, CL_MEM_SVM_FINE_GRAIN_BUFFER, SIZE, 0));
  cl_ulong capabilities = 0;
  done(clGetDeviceInfo(on.device, CL_DEVICE_SVM_CAPABILITIES,
                       sizeof capabilities, &capabilities, NULL));
  ck_assert_uint_eq(capabilities, CL_DEVICE_SVM_COARSE_GRAIN_BUFFER);
  ground_close(&on);
}
END_TEST

TEST(plain_memory_in_copies_between_addresses_may_be_refused) {
  ground on = ground_with("coarse");
  unsigned char in[SMALL] = {0};
  void *block = clSVMAlloc(on.context, 0, SMALL, 0);
  ck_assert(tarn_standin_set("PLAIN_HOST", "0"));
  gives(clEnqueueSVMMemcpy(on.queue, CL_TRUE, block, in, SMALL, 0, NULL, NULL),
        CL_INVALID_VALUE);
  clSVMFree(on.context, block);
  ground_close(&on);
}
END_TEST

TEST(memory_may_end) {
  ground on = ground_with("coarse");
  cl_int error = CL_SUCCESS;
  ck_assert(tarn_standin_set("GLOBAL_SIZE", "10000"));
  ck_assert(tarn_standin_set("MAX_ALLOC", "8000"));
  ck_assert(tarn_standin_set("COUNTS_MEMORY", "1"));
  ck_assert_ptr_null(clSVMAlloc(on.context, 0, 8001, 0));
  void *block = clSVMAlloc(on.context, 0, 8000, 0);
  ck_assert_ptr_nonnull(block);
  ck_assert_ptr_null(clCreateBuffer(on.context, 0, 2001, NULL, &error));
  gives(error, CL_MEM_OBJECT_ALLOCATION_FAILURE);
  clSVMFree(on.context, block);
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

// --- order -----------------------------------------------------------------

TEST(commands_run_later_and_in_order) {
  ground on = ground_with("none");
  unsigned char bytes[SMALL] = {1}, out[SMALL] = {0};
  cl_mem buffer = make_buffer(&on, 0, SMALL);
  cl_event event;
  tarn_standin_hold(true);
  done(clEnqueueWriteBuffer(on.queue, buffer, CL_FALSE, 0, SMALL, bytes, 0,
                            NULL, &event));
  done(clEnqueueReadBuffer(on.queue, buffer, CL_FALSE, 0, SMALL, out, 0, NULL,
                           NULL));
  const unsigned char pattern = 3;
  done(clEnqueueFillBuffer(on.queue, buffer, &pattern, 1, 0, SMALL, 0, NULL,
                           NULL));
  ck_assert_uint_eq(tarn_standin_queued(), 3);
  gives(event_status(event), CL_QUEUED);
  bytes[0] = 2;
  tarn_standin_hold(false);
  done(clFinish(on.queue));
  gives(event_status(event), CL_COMPLETE);
  ck_assert_uint_eq(out[0], 2);
  done(clEnqueueReadBuffer(on.queue, buffer, CL_TRUE, 0, SMALL, out, 0, NULL,
                           NULL));
  assert_all(out, SMALL, 3);
  done(clReleaseEvent(event));
  done(clReleaseMemObject(buffer));
  ground_close(&on);
}
END_TEST

TEST(memory_that_a_command_needs_outlives_its_release) {
  ground on = ground_with("none");
  unsigned char out[SMALL];
  cl_mem buffer = make_buffer(&on, 0, SMALL);
  const unsigned char pattern = 3;
  tarn_standin_hold(true);
  done(clEnqueueFillBuffer(on.queue, buffer, &pattern, 1, 0, SMALL, 0, NULL,
                           NULL));
  done(clEnqueueReadBuffer(on.queue, buffer, CL_FALSE, 0, SMALL, out, 0, NULL,
                           NULL));
  done(clReleaseMemObject(buffer));
  tarn_standin_hold(false);
  done(clFinish(on.queue));
  assert_all(out, SMALL, 3);
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

TEST(a_queue_waits_for_an_event_of_another) {
  ground on = ground_with("none");
  cl_command_queue other = ground_queue(&on);
  cl_int error = CL_SUCCESS;
  cl_event gate = clCreateUserEvent(on.context, &error), first, second;
  done(error);
  done(clEnqueueMarkerWithWaitList(on.queue, 1, &gate, &first));
  done(clEnqueueBarrierWithWaitList(other, 1, &first, &second));
  ck_assert_uint_eq(tarn_standin_queued(), 2);
  ck_assert_int_gt(event_status(second), CL_COMPLETE);
  done(clSetUserEventStatus(gate, CL_COMPLETE));
  done(clWaitForEvents(1, &second));
  gives(event_status(first), CL_COMPLETE);
  done(clReleaseEvent(gate));
  done(clReleaseEvent(first));
  done(clReleaseEvent(second));
  done(clReleaseCommandQueue(other));
  ground_close(&on);
}
END_TEST

TEST(a_lazy_driver_begins_after_a_flush) {
  ground on = ground_with("none");
  cl_event event;
  ck_assert(tarn_standin_set("LAZY", "1"));
  done(clEnqueueMarkerWithWaitList(on.queue, 0, NULL, &event));
  ck_assert_uint_eq(tarn_standin_live("event"), 1);
  gives(event_status(event), CL_QUEUED);
  done(clFlush(on.queue));
  ck_assert_uint_eq(tarn_standin_live("event"), 1);
  gives(event_status(event), CL_COMPLETE);
  done(clReleaseEvent(event));
  ground_close(&on);
}
END_TEST

typedef struct told {
  pthread_t thread;
  _Atomic int count;
  _Atomic int status;
} told;

static void CL_CALLBACK tell(cl_event event, cl_int status, void *out) {
  (void)event;
  told *to = out;
  to->thread = pthread_self();
  to->status = status;
  to->count++;
}

TEST(callbacks_come_on_the_queues_thread_or_at_once) {
  ground on = ground_with("none");
  told later = {.status = 1}, now = {.status = 1};
  cl_event event;
  tarn_standin_hold(true);
  done(clEnqueueMarkerWithWaitList(on.queue, 0, NULL, &event));
  done(clSetEventCallback(event, CL_COMPLETE, tell, &later));
  ck_assert_int_eq(later.count, 0);
  tarn_standin_hold(false);
  done(clFinish(on.queue));
  ck_assert_int_eq(later.count, 1);
  ck_assert_int_eq(later.status, CL_COMPLETE);
  ck_assert(!pthread_equal(later.thread, pthread_self()));
  done(clSetEventCallback(event, CL_COMPLETE, tell, &now));
  ck_assert_int_eq(now.count, 1);
  ck_assert(pthread_equal(now.thread, pthread_self()));
  done(clReleaseEvent(event));
  ground_close(&on);
}
END_TEST

static void CL_CALLBACK wait_inside(cl_event event, cl_int status, void *out) {
  (void)event;
  (void)status;
  cl_command_queue *queue = out;
  gives(clFinish(*queue), CL_INVALID_OPERATION);
}

TEST(a_callback_may_not_wait) {
  ground on = ground_with("none");
  cl_event event;
  done(clEnqueueMarkerWithWaitList(on.queue, 0, NULL, &event));
  done(clSetEventCallback(event, CL_COMPLETE, wait_inside, &on.queue));
  done(clFinish(on.queue));
  assert_misuses(1);
  done(clReleaseEvent(event));
  ground_close(&on);
}
END_TEST

// --- faults ----------------------------------------------------------------

TEST(a_command_fails_later_and_so_does_what_follows) {
  ground on = ground_with("none");
  unsigned char in[SMALL] = {5}, out[SMALL] = {0};
  cl_mem buffer = make_buffer(&on, 0, SMALL);
  cl_event events[3];
  told silent = {.status = 1};
  tarn_standin_hold(true);
  tarn_standin_fail_command(2, CL_OUT_OF_RESOURCES);
  done(clEnqueueMarkerWithWaitList(on.queue, 0, NULL, &events[0]));
  done(clEnqueueWriteBuffer(on.queue, buffer, CL_FALSE, 0, SMALL, in, 0, NULL,
                            &events[1]));
  done(clEnqueueReadBuffer(on.queue, buffer, CL_FALSE, 0, SMALL, out, 0, NULL,
                           &events[2]));
  done(clSetEventCallback(events[1], CL_COMPLETE, tell, &silent));
  tarn_standin_hold(false);
  done(clFinish(on.queue));
  gives(event_status(events[0]), CL_COMPLETE);
  gives(event_status(events[1]), CL_OUT_OF_RESOURCES);
  gives(event_status(events[2]), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  ck_assert_int_eq(silent.count, 0);
  assert_all(out, SMALL, 0);
  ck_assert_uint_eq(tarn_standin_faults(), 1);
  gives(clWaitForEvents(1, &events[1]),
        CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  for (size_t i = 0; i < 3; i++)
    done(clReleaseEvent(events[i]));
  done(clReleaseMemObject(buffer));
  ground_close(&on);
}
END_TEST

TEST(a_driver_may_tell_of_a_failure_as_the_specification_has_it) {
  ground on = ground_with("none");
  told loud = {.status = 1};
  cl_event event;
  ck_assert(tarn_standin_set("FAILED_CALLBACKS", "1"));
  ck_assert(tarn_standin_set("FINISH_TELLS", "1"));
  tarn_standin_hold(true);
  tarn_standin_fail_command(1, -42);
  done(clEnqueueMarkerWithWaitList(on.queue, 0, NULL, &event));
  done(clSetEventCallback(event, CL_COMPLETE, tell, &loud));
  tarn_standin_hold(false);
  gives(clFinish(on.queue), -42);
  ck_assert_int_eq(loud.count, 1);
  ck_assert_int_eq(loud.status, -42);
  done(clReleaseEvent(event));
  ground_close(&on);
}
END_TEST

TEST(a_gate_that_fails_fails_what_waits_for_it) {
  ground on = ground_with("none");
  cl_event gate = clCreateUserEvent(on.context, NULL), event;
  ck_assert(tarn_standin_set("FOLLOW_STATUS", "-1"));
  done(clEnqueueMarkerWithWaitList(on.queue, 1, &gate, &event));
  done(clSetUserEventStatus(gate, -7));
  done(clFinish(on.queue));
  gives(event_status(event), -1);
  refuses(clSetUserEventStatus(gate, 0), CL_INVALID_OPERATION, "its status");
  done(clReleaseEvent(gate));
  done(clReleaseEvent(event));
  ground_close(&on);
}
END_TEST

// A program that copies through memory of each kind, and gives up at the first
// failure, with nothing left.
static cl_int use_memory(const ground *on, cl_command_queue queue) {
  cl_int error = CL_SUCCESS;
  unsigned char bytes[SMALL] = {0};
  cl_mem buffer = clCreateBuffer(on->context, 0, SMALL, NULL, &error);
  if (buffer == NULL) return error;
  void *block = clSVMAlloc(on->context, 0, SMALL, 0);
  if (block == NULL) error = CL_OUT_OF_HOST_MEMORY;
  if (error == CL_SUCCESS) {
    error =
        clEnqueueSVMMemcpy(queue, CL_FALSE, block, bytes, SMALL, 0, NULL, NULL);
  }
  if (error == CL_SUCCESS) {
    error = clEnqueueWriteBuffer(queue, buffer, CL_FALSE, 0, SMALL, bytes, 0,
                                 NULL, NULL);
  }
  // Also after an error, so that no command needs |bytes| any more.
  cl_int finished = clFinish(queue);
  if (finished != CL_SUCCESS) finished = clFinish(queue);
  done(finished);
  clSVMFree(on->context, block);
  done(clReleaseMemObject(buffer));
  return error;
}

static cl_int use_queue(const ground *on) {
  cl_int error = CL_SUCCESS;
  cl_command_queue queue =
      clCreateCommandQueueWithProperties(on->context, on->device, NULL, &error);
  if (queue == NULL) return error;
  error = use_memory(on, queue);
  done(clReleaseCommandQueue(queue));
  return error;
}

TEST(each_call_can_fail_by_its_number) {
  ground on = ground_with("coarse");
  uint64_t failed = 0;
  for (uint64_t n = 1;; n++) {
    uint64_t before = tarn_standin_faults();
    tarn_standin_fail_call(NULL, n, CL_OUT_OF_RESOURCES, false);
    cl_int error = use_queue(&on);
    if (tarn_standin_faults() == before) break;
    failed += error != CL_SUCCESS ? 1 : 0;
    ck_assert_uint_eq(tarn_standin_live(NULL), 2);
  }
  // clCreateCommandQueueWithProperties, clCreateBuffer, clSVMAlloc, the two
  // that queue; clFinish is tried again.
  ck_assert_uint_eq(failed, 5);
  ck_assert_uint_eq(tarn_standin_faults(), 6);
  assert_misuses(0);
  tarn_standin_fail_call(NULL, 0, 0, false);
  ground_close(&on);
}
END_TEST

TEST(a_named_call_fails_from_there_on) {
  setenv("TARN_STANDIN_FAIL_CALL", "clFlush:2:-5+", 1);
  ground on = ground_with("none");
  done(clFlush(on.queue));
  gives(clFlush(on.queue), CL_OUT_OF_RESOURCES);
  gives(clFlush(on.queue), CL_OUT_OF_RESOURCES);
  done(clFinish(on.queue));
  ck_assert_uint_eq(tarn_standin_calls("clFlush"), 3);
  tarn_standin_fail_call("clReleaseCommandQueue", 1, -6, false);
  gives(clReleaseCommandQueue(on.queue), -6);
  ground_close(&on);
}
END_TEST

// --- what is left ----------------------------------------------------------

static cl_uint references(cl_context context) {
  cl_uint count = 0;
  done(clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof count,
                        &count, NULL));
  return count;
}

TEST(what_lives_is_counted) {
  ground on = ground_with("coarse");
  cl_uint before = references(on.context);
  void *block = clSVMAlloc(on.context, 0, SMALL, 0);
  cl_mem buffer = make_buffer(&on, 0, SMALL);
  cl_event event = clCreateUserEvent(on.context, NULL);
  ck_assert_uint_eq(references(on.context), before + 3);
  ck_assert_uint_eq(tarn_standin_live("svm"), 1);
  ck_assert_uint_eq(tarn_standin_live("buffer"), 1);
  ck_assert_uint_eq(tarn_standin_live("event"), 1);
  ck_assert_uint_eq(tarn_standin_live(NULL), 5);
  clSVMFree(on.context, block);
  done(clReleaseMemObject(buffer));
  done(clReleaseEvent(event));
  ck_assert_uint_eq(references(on.context), before);
  done(clRetainContext(on.context));
  ck_assert_uint_eq(references(on.context), before + 1);
  done(clReleaseContext(on.context));
  ground_close(&on);
}
END_TEST

// Uses the stand-in wrongly, leaves a buffer, and ends.
static void end_badly(void) {
  ground on = ground_with("none");
  (void)make_buffer(&on, 0, SMALL);
  (void)clFlush(NULL);
  exit(0);
}

TEST(a_file_tells_what_was_wrong_and_what_is_left) {
  char path[] = "/tmp/tarn_standin_XXXXXX", text[1024] = "";
  int file = mkstemp(path);
  ck_assert_int_ge(file, 0);
  setenv("TARN_STANDIN_REPORT", path, 1);
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) end_badly();
  ck_assert_int_eq(waitpid(child, NULL, 0), child);
  ck_assert_int_gt(read(file, text, sizeof text - 1), 0);
  close(file);
  unlink(path);
  ck_assert_ptr_nonnull(strstr(text, "clFlush: no queue: NULL (-36)\n"));
  ck_assert_ptr_nonnull(strstr(text, "at the end: 1 of buffer left\n"));
  ck_assert_ptr_nonnull(strstr(text, "at the end: 1 of context left\n"));
}
END_TEST

// --- refusals --------------------------------------------------------------

TEST(handles_that_are_not_good_are_refused) {
  ground on = ground_with("none");
  cl_mem buffer = make_buffer(&on, 0, SMALL);
  unsigned char bytes[SMALL] = {0};
  refuses(clFinish((cl_command_queue)buffer), CL_INVALID_COMMAND_QUEUE,
          "is no queue but a buffer");
  refuses(clFlush((cl_command_queue)bytes), CL_INVALID_COMMAND_QUEUE,
          "was never a queue");
  refuses(clFlush(NULL), CL_INVALID_COMMAND_QUEUE, "NULL");
  done(clReleaseMemObject(buffer));
  refuses(clReleaseMemObject(buffer), CL_INVALID_MEM_OBJECT, "was released");
  refuses(clEnqueueWriteBuffer(on.queue, buffer, CL_FALSE, 0, SMALL, bytes, 0,
                               NULL, NULL),
          CL_INVALID_MEM_OBJECT, "clEnqueueWriteBuffer: buffer");
  ground_close(&on);
}
END_TEST

TEST(copies_that_are_not_good_are_refused) {
  ground on = ground_with("coarse");
  unsigned char in[SMALL] = {0};
  cl_mem buffer = make_buffer(&on, 0, SMALL);
  unsigned char *block = clSVMAlloc(on.context, 0, SMALL, 0);
  refuses(
      clEnqueueWriteBuffer(on.queue, buffer, CL_FALSE, 0, 0, in, 0, NULL, NULL),
      CL_INVALID_VALUE, "0 bytes");
  refuses(clEnqueueWriteBuffer(on.queue, buffer, CL_FALSE, 1, SMALL, in, 0,
                               NULL, NULL),
          CL_INVALID_VALUE, "of a buffer of 64 bytes");
  refuses(
      clEnqueueCopyBuffer(on.queue, buffer, buffer, 0, 8, 16, 0, NULL, NULL),
      CL_MEM_COPY_OVERLAP, "overlap");
  refuses(clEnqueueSVMMemcpy(on.queue, CL_FALSE, block + 1, in, SMALL, 0, NULL,
                             NULL),
          CL_INVALID_VALUE, "byte 1 of coarse memory of 64 bytes");
  refuses(clEnqueueSVMMemFill(on.queue, block, in, 3, 9, 0, NULL, NULL),
          CL_INVALID_VALUE, "a pattern of 3 bytes");
  refuses(clEnqueueWriteBuffer(on.queue, buffer, CL_FALSE, 0, SMALL, block, 0,
                               NULL, NULL),
          CL_INVALID_VALUE, "coarse memory that is not mapped");
  refuses(clEnqueueSVMUnmap(on.queue, block, 0, NULL, NULL), CL_INVALID_VALUE,
          "nothing is mapped");
  clSVMFree(on.context, block);
  refuses(
      clEnqueueSVMMemcpy(on.queue, CL_FALSE, block, in, SMALL, 0, NULL, NULL),
      CL_INVALID_VALUE, "that was freed");
  done(clReleaseMemObject(buffer));
  ground_close(&on);
}
END_TEST

TEST(contexts_are_kept_apart) {
  ground on = ground_with("coarse"), other = ground_with("coarse");
  cl_event event = clCreateUserEvent(other.context, NULL);
  cl_mem buffer = make_buffer(&other, 0, SMALL);
  void *block = clSVMAlloc(other.context, 0, SMALL, 0);
  unsigned char in[SMALL] = {0};
  refuses(clEnqueueMarkerWithWaitList(on.queue, 1, &event, NULL),
          CL_INVALID_CONTEXT, "of another context");
  refuses(clEnqueueWriteBuffer(on.queue, buffer, CL_FALSE, 0, SMALL, in, 0,
                               NULL, NULL),
          CL_INVALID_CONTEXT, "of another context");
  refuses(
      clEnqueueSVMMemcpy(on.queue, CL_FALSE, block, in, SMALL, 0, NULL, NULL),
      CL_INVALID_CONTEXT, "of another context");
  clSVMFree(other.context, block);
  done(clReleaseMemObject(buffer));
  done(clReleaseEvent(event));
  done(clReleaseCommandQueue(other.queue));
  done(clReleaseContext(other.context));
  ground_close(&on);
}
END_TEST

TEST(memory_that_is_freed_too_early_is_found_when_the_command_runs) {
  ground on = ground_with("coarse");
  unsigned char in[SMALL] = {0};
  void *block = clSVMAlloc(on.context, 0, SMALL, 0);
  tarn_standin_hold(true);
  done(clEnqueueSVMMemcpy(on.queue, CL_FALSE, block, in, SMALL, 0, NULL, NULL));
  clSVMFree(on.context, block);
  assert_misuses(0);
  tarn_standin_hold(false);
  done(clFinish(on.queue));
  assert_misuses(1);
  ground_close(&on);
}
END_TEST

TEST(the_device_may_not_write_what_the_host_has_mapped) {
  ground on = ground_with("coarse");
  unsigned char bytes[SMALL] = {0};
  unsigned char *block = clSVMAlloc(on.context, 0, SMALL, 0);
  done(clEnqueueSVMMap(on.queue, CL_TRUE, CL_MAP_READ, block, 32, 0, NULL,
                       NULL));
  done(clEnqueueSVMMemcpy(on.queue, CL_TRUE, bytes, block, 32, 0, NULL, NULL));
  done(clEnqueueSVMMemcpy(on.queue, CL_TRUE, block + 32, bytes, 32, 0, NULL,
                          NULL));
  assert_misuses(0);
  done(clEnqueueSVMMemcpy(on.queue, CL_TRUE, block + 31, bytes, 2, 0, NULL,
                          NULL));
  assert_misuses(1);
  done(clEnqueueSVMUnmap(on.queue, block, 0, NULL, NULL));
  done(clFinish(on.queue));
  clSVMFree(on.context, block);
  assert_misuses(1);
  ground_close(&on);
}
END_TEST

// --- threads ---------------------------------------------------------------

static void *copy_on_a_thread(void *context) {
  const ground *on = context;
  cl_command_queue queue = ground_queue(on);
  for (int i = 0; i < 50; i++)
    done(use_memory(on, queue));
  done(clReleaseCommandQueue(queue));
  return NULL;
}

TEST(threads_have_queues_of_their_own) {
  ground on = ground_with("coarse");
  pthread_t threads[3];
  for (size_t i = 0; i < 3; i++) {
    ck_assert_int_eq(pthread_create(&threads[i], NULL, copy_on_a_thread, &on),
                     0);
  }
  for (size_t i = 0; i < 3; i++)
    pthread_join(threads[i], NULL);
  assert_misuses(0);
  ground_close(&on);
}
END_TEST
