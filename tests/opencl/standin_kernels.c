// The stand-in's programs and kernels: functions that stand for kernels, real
// kernels in OpenCL C, and refusals.
#include <stdlib.h>

#include "standin_ground.h"

enum { COUNT = 100 };

static const char SOURCE[] =
    "__kernel void scale(__global T *out, __global const T *in, T by) {}\n"
    "__kernel void collect(__global const ulong *at, __global uint *sum) {}\n"
    "__kernel void raise_halves(__global half *halves, float by) {}\n";

static cl_program make_program(const ground *on, const char *options) {
  const char *text = SOURCE;
  cl_int error = CL_SUCCESS;
  cl_program program =
      clCreateProgramWithSource(on->context, 1, &text, NULL, &error);
  done(error);
  done(clBuildProgram(program, 1, &on->device, options, NULL, NULL));
  return program;
}

static cl_kernel make_kernel(cl_program program, const char *name) {
  cl_int error = CL_SUCCESS;
  cl_kernel kernel = clCreateKernel(program, name, &error);
  done(error);
  return kernel;
}

static cl_int launch(const ground *on, cl_kernel kernel, size_t count) {
  return clEnqueueNDRangeKernel(on->queue, kernel, 1, NULL, &count, NULL, 0,
                                NULL, NULL);
}

static cl_mem make_buffer(const ground *on, size_t size, void *content) {
  cl_int error = CL_SUCCESS;
  cl_mem_flags flags =
      CL_MEM_READ_WRITE | (content != NULL ? CL_MEM_COPY_HOST_PTR : 0);
  cl_mem buffer = clCreateBuffer(on->context, flags, size, content, &error);
  done(error);
  return buffer;
}

static void read_back(const ground *on, cl_mem buffer, void *out, size_t size) {
  done(clEnqueueReadBuffer(on->queue, buffer, CL_TRUE, 0, size, out, 0, NULL,
                           NULL));
}

// --- programs --------------------------------------------------------------

TEST(a_program_is_made_again_from_its_binary) {
  ground on = ground_with("none");
  cl_program program = make_program(&on, "-DT=float -D X=1 -cl-std=CL1.2");
  size_t size = 0;
  done(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size,
                        NULL));
  ck_assert_uint_gt(size, sizeof SOURCE);
  unsigned char *binary = malloc(size);
  done(clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary,
                        NULL));
  done(clReleaseProgram(program));
  const unsigned char *bytes = binary;
  cl_int error = CL_SUCCESS, status = 1;
  program = clCreateProgramWithBinary(on.context, 1, &on.device, &size, &bytes,
                                      &status, &error);
  done(error);
  done(status);
  done(clBuildProgram(program, 1, &on.device, NULL, NULL, NULL));
  char options[64];
  done(clGetProgramBuildInfo(program, on.device, CL_PROGRAM_BUILD_OPTIONS,
                             sizeof options, options, NULL));
  ck_assert_str_eq(options, "-DT=float -D X=1 -cl-std=CL1.2");
  done(clReleaseKernel(make_kernel(program, "scale")));
  done(clReleaseProgram(program));
  binary[0] ^= 1;
  ck_assert_ptr_null(clCreateProgramWithBinary(on.context, 1, &on.device, &size,
                                               &bytes, &status, &error));
  gives(error, CL_INVALID_BINARY);
  free(binary);
  ground_close(&on);
}
END_TEST

TEST(a_program_fails_to_build_with_a_log) {
  ground on = ground_with("none");
  const char *text = SOURCE;
  char log[64] = "";
  ck_assert(tarn_standin_set("BUILD_FAILS", "line 3: no such type"));
  cl_program program =
      clCreateProgramWithSource(on.context, 1, &text, NULL, NULL);
  gives(clBuildProgram(program, 0, NULL, "", NULL, NULL),
        CL_BUILD_PROGRAM_FAILURE);
  done(clGetProgramBuildInfo(program, on.device, CL_PROGRAM_BUILD_LOG,
                             sizeof log, log, NULL));
  ck_assert_str_eq(log, "line 3: no such type");
  cl_int error = CL_SUCCESS;
  assert_misuses(0);
  refuses(clBuildProgram(program, 0, NULL, "--fast", NULL, NULL),
          CL_INVALID_BUILD_OPTIONS, "--fast");
  ck_assert_ptr_null(clCreateKernel(program, "scale", &error));
  gives(error, CL_INVALID_PROGRAM_EXECUTABLE);
  done(clReleaseProgram(program));
  ground_close(&on);
}
END_TEST

// --- functions that stand for kernels --------------------------------------

// Each byte of |out| is that of |in| and a number more.
static int32_t scale_bytes(const tarn_standin_launch *launch) {
  unsigned char *out = *(unsigned char *const *)launch->arguments[0].value;
  const unsigned char *in = *(unsigned char *const *)launch->arguments[1].value;
  unsigned char more = *(const unsigned char *)launch->arguments[2].value;
  if (launch->arguments[0].memory_size < launch->global[0]) return -1;
  for (size_t i = launch->offset[0]; i < launch->global[0]; i++) {
    out[i] = (unsigned char)(in[i] + more);
  }
  return 0;
}

static const tarn_standin_kernel_entry SCALE = {"scale", "-DT=uchar", "mmv",
                                                scale_bytes};

TEST(a_function_stands_for_a_kernel) {
  ground on = ground_with("none");
  unsigned char bytes[COUNT] = {1, 2, 3}, out[COUNT] = {0};
  const unsigned char more = 4;
  ck_assert(tarn_standin_kernel(&SCALE));
  cl_program program = make_program(&on, "-DT=uchar");
  cl_kernel kernel = make_kernel(program, "scale");
  cl_mem in = make_buffer(&on, COUNT, bytes);
  cl_mem to = make_buffer(&on, COUNT, NULL);
  done(clSetKernelArg(kernel, 0, sizeof(cl_mem), &to));
  done(clSetKernelArg(kernel, 1, sizeof(cl_mem), &in));
  refuses(launch(&on, kernel, COUNT), CL_INVALID_KERNEL_ARGS,
          "argument 2 of 'scale' is not set");
  done(clSetKernelArg(kernel, 2, 1, &more));
  assert_misuses(1);
  done(launch(&on, kernel, COUNT));
  read_back(&on, to, out, COUNT);
  ck_assert_uint_eq(out[2], 7);
  ck_assert_uint_eq(out[COUNT - 1], 4);
  done(clReleaseMemObject(in));
  refuses(launch(&on, kernel, COUNT), CL_INVALID_KERNEL_ARGS, "was released");
  done(clReleaseMemObject(to));
  done(clReleaseKernel(kernel));
  done(clReleaseProgram(program));
  ground_close(&on);
}
END_TEST

TEST(a_kernel_fails_as_its_function_does) {
  ground on = ground_with("none");
  ck_assert(tarn_standin_kernel(&SCALE));
  cl_program program = make_program(&on, "-DT=uchar");
  cl_kernel kernel = make_kernel(program, "scale");
  cl_mem buffer = make_buffer(&on, COUNT, NULL);
  const unsigned char more = 4;
  done(clSetKernelArg(kernel, 0, sizeof(cl_mem), &buffer));
  done(clSetKernelArg(kernel, 1, sizeof(cl_mem), &buffer));
  done(clSetKernelArg(kernel, 2, 1, &more));
  cl_event event;
  size_t count = COUNT + 1;
  done(clEnqueueNDRangeKernel(on.queue, kernel, 1, NULL, &count, NULL, 0, NULL,
                              &event));
  done(clFinish(on.queue));
  gives(event_status(event), -1);
  done(clReleaseEvent(event));
  done(clReleaseMemObject(buffer));
  done(clReleaseKernel(kernel));
  done(clReleaseProgram(program));
  ground_close(&on);
}
END_TEST

TEST(launches_that_are_not_good_are_refused) {
  ground on = ground_with("none");
  ck_assert(tarn_standin_kernel(&SCALE));
  cl_program program = make_program(&on, "-DT=uchar");
  cl_program other = make_program(&on, "-DT=ushort");
  cl_kernel kernel = make_kernel(program, "scale");
  cl_kernel nobody = make_kernel(other, "scale");
  const size_t global = 10, local = 4, none = 0;
  cl_mem gone = make_buffer(&on, COUNT, NULL);
  done(clReleaseMemObject(gone));
  cl_int error = CL_SUCCESS;
  ck_assert_ptr_null(clCreateKernel(program, "scal", &error));
  gives(error, CL_INVALID_KERNEL_NAME);
  refuses(clSetKernelArg(kernel, 3, 1, &local), CL_INVALID_ARG_INDEX,
          "argument 3 of 3");
  refuses(clSetKernelArg(kernel, 0, 4, &local), CL_INVALID_ARG_SIZE,
          "is memory, not 4 bytes");
  refuses(clEnqueueNDRangeKernel(on.queue, kernel, 1, NULL, &global, &local, 0,
                                 NULL, NULL),
          CL_INVALID_WORK_GROUP_SIZE, "groups of 4 of 10");
  refuses(clEnqueueNDRangeKernel(on.queue, kernel, 1, NULL, &none, NULL, 0,
                                 NULL, NULL),
          CL_INVALID_GLOBAL_WORK_SIZE, "no work items");
  refuses(clSetKernelArg(nobody, 0, sizeof gone, &gone), CL_INVALID_MEM_OBJECT,
          "was released");
  refuses(launch(&on, nobody, 1), CL_INVALID_KERNEL,
          "no function stands for 'scale' with options '-DT=ushort'");
  done(clReleaseKernel(nobody));
  done(clReleaseKernel(kernel));
  done(clReleaseProgram(other));
  done(clReleaseProgram(program));
  ground_close(&on);
}
END_TEST

// --- addresses in memory ---------------------------------------------------

// Adds up the first number behind each address.
static int32_t collect_first(const tarn_standin_launch *launch) {
  const uint64_t *addresses = *(uint64_t *const *)launch->arguments[0].value;
  uint32_t *sum = *(uint32_t *const *)launch->arguments[1].value;
  for (size_t i = 0; i < launch->global[0]; i++) {
    const uint32_t *at =
        tarn_standin_translate(launch, addresses[i], sizeof *at);
    if (at == NULL) return CL_OUT_OF_RESOURCES;
    *sum += *at;
  }
  return 0;
}

static const tarn_standin_kernel_entry COLLECT = {"collect", NULL, "mm",
                                                  collect_first};

TEST(a_kernel_has_to_be_told_of_what_it_finds_behind_addresses) {
  ground on = ground_with("coarse");
  ck_assert(tarn_standin_kernel(&COLLECT));
  uint32_t number = 21, out = 0;
  void *block = clSVMAlloc(on.context, 0, 4096, 0);
  done(clEnqueueSVMMemcpy(on.queue, CL_TRUE, block, &number, 4, 0, NULL, NULL));
  uint64_t addresses[2] = {(uint64_t)(uintptr_t)block,
                           (uint64_t)(uintptr_t)block};
  cl_mem list = make_buffer(&on, sizeof addresses, addresses);
  cl_mem sum = make_buffer(&on, sizeof out, &out);
  cl_program program = make_program(&on, "-DT=float");
  cl_kernel kernel = make_kernel(program, "collect");
  done(clSetKernelArg(kernel, 0, sizeof(cl_mem), &list));
  done(clSetKernelArg(kernel, 1, sizeof(cl_mem), &sum));
  cl_command_queue first = on.queue;
  on.queue = ground_queue(&on);
  done(launch(&on, kernel, 2));
  done(clFinish(on.queue));
  assert_misuses(1);
  done(clReleaseCommandQueue(on.queue));
  on.queue = first;
  const void *told = (const unsigned char *)block + 100;
  done(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof told,
                           &told));
  done(launch(&on, kernel, 2));
  read_back(&on, sum, &out, sizeof out);
  ck_assert_uint_eq(out, 42);
  assert_misuses(1);
  clSVMFree(on.context, block);
  refuses(launch(&on, kernel, 2), CL_INVALID_KERNEL_ARGS, "that was freed");
  done(clReleaseKernel(kernel));
  done(clReleaseProgram(program));
  done(clReleaseMemObject(list));
  done(clReleaseMemObject(sum));
  ground_close(&on);
}
END_TEST

// --- kernels in OpenCL C ---------------------------------------------------

#ifdef TARN_STANDIN_SAMPLE
static ground with_sample(const char *methods) {
  ck_assert(tarn_standin_set("KERNELS", TARN_STANDIN_SAMPLE));
  return ground_with(methods);
}

// Runs the kernel on 0, 1, 2 ... and checks that the third is |by| times 2.
static void try_scale(const ground *on, const char *options, const void *by,
                      const void *in, const void *expected, size_t size) {
  cl_program program = make_program(on, options);
  cl_kernel kernel = make_kernel(program, "scale");
  void *content = malloc(size);
  memcpy(content, in, size);
  cl_mem from = make_buffer(on, size, content),
         to = make_buffer(on, size, NULL);
  done(clSetKernelArg(kernel, 0, sizeof(cl_mem), &to));
  done(clSetKernelArg(kernel, 1, sizeof(cl_mem), &from));
  done(clSetKernelArg(kernel, 2, 4, by));
  done(launch(on, kernel, size / 4));
  read_back(on, to, content, size);
  ck_assert_mem_eq(content, expected, size);
  free(content);
  done(clReleaseMemObject(from));
  done(clReleaseMemObject(to));
  done(clReleaseKernel(kernel));
  done(clReleaseProgram(program));
}

TEST(a_kernel_in_opencl_c_runs_by_its_options) {
  ground on = with_sample("none");
  float f[COUNT], f_out[COUNT], f_by = 0.5f;
  int32_t n[COUNT], n_out[COUNT], n_by = -3;
  for (int32_t i = 0; i < COUNT; i++) {
    f[i] = (float)i;
    n[i] = i;
    f_out[i] = f[i] * f_by;
    n_out[i] = i * n_by;
  }
  try_scale(&on, "-DT=float", &f_by, f, f_out, sizeof f);
  try_scale(&on, "-DT=int", &n_by, n, n_out, sizeof n);
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

// Memory of the device, with what the kernel reads in it. |exec|: by which the
// kernel is told of it.
static void try_collect(const ground *on, uint64_t block,
                        cl_kernel_exec_info exec) {
  uint32_t numbers[8] = {1, 2, 3, 4, 10, 20, 30, 40}, out = 0;
  memcpy(tarn_standin_translate(NULL, block, sizeof numbers), numbers,
         sizeof numbers);
  uint64_t addresses[2] = {block, block + 16};
  cl_mem list = make_buffer(on, sizeof addresses, addresses);
  cl_mem sum = make_buffer(on, sizeof out, &out);
  cl_program program = make_program(on, "-DT=float");
  cl_kernel kernel = make_kernel(program, "collect");
  done(clSetKernelArg(kernel, 0, sizeof(cl_mem), &list));
  done(clSetKernelArg(kernel, 1, sizeof(cl_mem), &sum));
  done(clSetKernelExecInfo(kernel, exec, sizeof block, &block));
  done(launch(on, kernel, 2));
  read_back(on, sum, &out, sizeof out);
  ck_assert_uint_eq(out, 110);
  ck_assert(!host_reaches((const void *)(uintptr_t)block));
  done(clReleaseKernel(kernel));
  done(clReleaseProgram(program));
  done(clReleaseMemObject(list));
  done(clReleaseMemObject(sum));
}

TEST(a_kernel_in_opencl_c_reads_behind_addresses) {
  ground on = with_sample("coarse,usm,address");
  void *coarse = clSVMAlloc(on.context, 0, 4096, 0);
  try_collect(&on, (uint64_t)(uintptr_t)coarse, CL_KERNEL_EXEC_INFO_SVM_PTRS);
  clSVMFree(on.context, coarse);

  cl_int error = CL_SUCCESS;
  void *device =
      ((clDeviceMemAllocINTEL_fn)ground_function(&on, "clDeviceMemAllocINTEL"))(
          on.context, on.device, NULL, 4096, 0, &error);
  done(error);
  try_collect(&on, (uint64_t)(uintptr_t)device,
              CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL);
  done(((clMemFreeINTEL_fn)ground_function(&on, "clMemFreeINTEL"))(on.context,
                                                                   device));

  const cl_mem_properties properties[] = {CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT,
                                          CL_TRUE, 0};
  cl_mem buffer = clCreateBufferWithProperties(on.context, properties, 0, 4096,
                                               NULL, &error);
  done(error);
  cl_mem_device_address_ext address = 0;
  done(clGetMemObjectInfo(buffer, CL_MEM_DEVICE_ADDRESS_EXT, sizeof address,
                          &address, NULL));
  try_collect(&on, address, CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT);
  done(clReleaseMemObject(buffer));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

// Pointers as arguments, each by the function of its method.
TEST(a_kernel_in_opencl_c_takes_addresses_as_arguments) {
  ground on = with_sample("coarse");
  cl_program program = make_program(&on, "-DT=float");
  cl_kernel kernel = make_kernel(program, "raise_halves");
  unsigned short halves[4] = {0x3c00, 0x0001, 0x7bff, 0x8000};
  const unsigned short expected[4] = {0x3e00, 0x3800, 0x7bff, 0x3800};
  float by = 0.5f;
  unsigned char *block = clSVMAlloc(on.context, 0, 4096, 0);
  done(clEnqueueSVMMemcpy(on.queue, CL_TRUE, block + 8, halves, sizeof halves,
                          0, NULL, NULL));
  done(clSetKernelArgSVMPointer(kernel, 0, block + 8));
  done(clSetKernelArg(kernel, 1, sizeof by, &by));
  done(launch(&on, kernel, 4));
  done(clEnqueueSVMMemcpy(on.queue, CL_TRUE, halves, block + 8, sizeof halves,
                          0, NULL, NULL));
  ck_assert_mem_eq(halves, expected, sizeof halves);
  refuses(clSetKernelArgSVMPointer(kernel, 0, halves), CL_INVALID_ARG_VALUE,
          "no memory of the driver");
  assert_misuses(1);
  clSVMFree(on.context, block);
  done(clReleaseKernel(kernel));
  done(clReleaseProgram(program));
  ground_close(&on);
}
END_TEST
// One half in memory of the device, whose address is argument 0, is raised.
static void try_raise(const ground *on, cl_kernel kernel, uint64_t address) {
  unsigned short *half = tarn_standin_translate(NULL, address, sizeof *half);
  float by = 1.0f;
  *half = 0x3c00;
  done(clSetKernelArg(kernel, 1, sizeof by, &by));
  done(launch(on, kernel, 1));
  done(clFinish(on->queue));
  ck_assert_uint_eq(*half, 0x4000);
}

typedef cl_int (*set_address_fn)(cl_kernel, cl_uint, cl_mem_device_address_ext);

TEST(each_method_has_a_function_for_its_addresses) {
  ground on = with_sample("usm,address");
  cl_program program = make_program(&on, "-DT=float");
  cl_kernel kernel = make_kernel(program, "raise_halves");
  cl_int error = CL_SUCCESS;
  clDeviceMemAllocINTEL_fn take =
      (clDeviceMemAllocINTEL_fn)ground_function(&on, "clDeviceMemAllocINTEL");
  clMemFreeINTEL_fn give =
      (clMemFreeINTEL_fn)ground_function(&on, "clMemFreeINTEL");
  clSetKernelArgMemPointerINTEL_fn set_pointer =
      (clSetKernelArgMemPointerINTEL_fn)ground_function(
          &on, "clSetKernelArgMemPointerINTEL");
  set_address_fn set_address =
      (set_address_fn)ground_function(&on, "clSetKernelArgDevicePointerEXT");

  unsigned char *block = take(on.context, on.device, NULL, 4096, 0, &error);
  done(error);
  done(set_pointer(kernel, 0, block + 20));
  try_raise(&on, kernel, (uint64_t)(uintptr_t)block + 20);

  const cl_mem_properties properties[] = {CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT,
                                          CL_TRUE, 0};
  cl_mem buffer = clCreateBufferWithProperties(on.context, properties, 0, 4096,
                                               NULL, &error);
  done(error);
  cl_mem_device_address_ext address = 0;
  done(clGetMemObjectInfo(buffer, CL_MEM_DEVICE_ADDRESS_EXT, sizeof address,
                          &address, NULL));
  done(set_address(kernel, 0, address + 6));
  try_raise(&on, kernel, address + 6);
  assert_misuses(0);
  refuses(set_pointer(kernel, 0, (const void *)(uintptr_t)address),
          CL_INVALID_ARG_VALUE, "is in buffer with an address");
  done(give(on.context, block));
  done(clReleaseMemObject(buffer));
  done(clReleaseKernel(kernel));
  done(clReleaseProgram(program));
  ground_close(&on);
}
END_TEST
#else
TEST(kernels_in_opencl_c) {
  note_skipped("kernels in OpenCL C on the stand-in", "no clang");
}
END_TEST
#endif
