// The stand-in for an OpenCL driver itself: what it is told to be, and memory
// by each method.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "standin_ground.h"

enum { SIZE = 3 * 4096 + 100, SMALL = 64 };

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

TEST(two_devices_share_a_context) {
  ck_assert(tarn_standin_set("DEVICES", "2"));
  cl_platform_id platform;
  cl_device_id devices[2], again;
  done(clGetPlatformIDs(1, &platform, NULL));
  done(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 2, devices, NULL));
  cl_int error = CL_SUCCESS;
  cl_context context = clCreateContext(NULL, 2, devices, NULL, NULL, &error);
  done(error);
  unsigned char in[SMALL] = {6}, out[SMALL] = {0};
  cl_command_queue queues[2];
  for (size_t i = 0; i < 2; i++) {
    queues[i] = clCreateCommandQueue(context, devices[i], 0, &error);
    done(error);
  }
  cl_event written;
  void *block = clSVMAlloc(context, 0, SMALL, 0);
  done(clEnqueueSVMMemcpy(queues[0], CL_FALSE, block, in, SMALL, 0, NULL,
                          &written));
  done(clEnqueueSVMMemcpy(queues[1], CL_TRUE, out, block, SMALL, 1, &written,
                          NULL));
  ck_assert_mem_eq(in, out, SMALL);
  ck_assert(tarn_standin_set("DEVICES", "3"));
  done(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &again, NULL));
  ck_assert_ptr_eq(again, devices[0]);
  done(clReleaseEvent(written));
  clSVMFree(context, block);
  for (size_t i = 0; i < 2; i++)
    done(clReleaseCommandQueue(queues[i]));
  done(clReleaseContext(context));
  ck_assert_uint_eq(tarn_standin_live(NULL), 0);
  assert_misuses(0);
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
  cl_mem a = ground_buffer(&on, 0, SIZE), b = ground_buffer(&on, 0, SIZE);
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
    cl_mem buffer = ground_buffer(&on, flags[i], SIZE);
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
  ck_assert_uint_eq((uintptr_t)block % 256, 128);
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
  cl_mem buffer = make_addressed(&on, SIZE),
         plain = ground_buffer(&on, 0, SIZE);
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
  assert_misuses(0);
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
