// standin.h - what tests say to the stand-in for an OpenCL driver.
//
// tests/opencl/standin is a shared object called libOpenCL.so.1 that behaves
// like a loader with a driver behind it, and is neither: it runs on the host,
// it checks how it is called, and it fails when it is told to. A test that
// passes over it has shown nothing about any driver.
//
// A program finds it by LD_LIBRARY_PATH, and these functions by
//
//   void *standin = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_NOLOAD);
//   dlsym(standin, "tarn_standin_set")
//
// or by linking it. All functions may be called from each thread.
//
// Settings. Each is read from the environment when the stand-in is first used,
// as TARN_STANDIN_ and the name, and changed by tarn_standin_set. Those marked
// with * count from the next clGetPlatformIDs on only as far as the caller asks
// again; all others at once.
//
// clang-format off
//   METHODS           coarse,fine   memory with an address, any of usm, coarse,
//                                   fine, address (a buffer with one, by
//                                   cl_ext_buffer_device_address), separated
//                                   by commas; "none": buffers
//   PLATFORMS *       1             0: CL_PLATFORM_NOT_FOUND_KHR
//   NO_PLATFORM_IS_OK 0             1: no platform is CL_SUCCESS and a count of
//                                   0
//   DEVICES *         1             on each platform; 0: CL_DEVICE_NOT_FOUND
//   DEVICE_TYPES *    cpu           cpu, gpu, accelerator, custom, separated by
//                                   commas, of the devices in turn
//   DEVICE_NAME       stand-in      with the device's number behind it
//   VERSION           3.0           1.2, 2.0 or 3.0
//   GLOBAL_SIZE       1073741824    bytes of memory that a device says to have
//   MAX_ALLOC         1073741824    the largest block
//   MAX_ALIGN         128           of memory with an address, which has no
//                                   better alignment than this
//   BASE_ALIGN        128           what MEM_BASE_ADDR_ALIGN says, here in
//                                   bytes
//   COUNTS_MEMORY     0             1: blocks beyond GLOBAL_SIZE are refused
//   PLAIN_HOST        1             0: copies between SVM refuse memory that
//                                   the driver did not make, which is no wrong
//                                   use: programs try it
//   GUARD             1             0: the host reaches coarse memory that is
//                                   not mapped
//   LAZY              0             1: a command begins after a flush, a finish
//                                   or a wait for it, not before
//   BUILD_FAILS       (empty)       a text: programs do not build, it is the
//                                   log
//   CONTEXT_FAILS     (empty)       a text: clCreateContext fails, after
//                                   telling it to the caller's function
//   FAILED_CALLBACKS  0             1: callbacks come after a failure too, as
//                                   the specification has it; PoCL's never come
//   FINISH_TELLS      0             1: clFinish and blocking commands return an
//                                   earlier command's failure
//   FOLLOW_STATUS     -14           of commands behind a failed one
//   RECOVERS          0             1: behind a clFinish a queue works again
//   FAIL_CALL         (empty)       NAME:N:CODE, as tarn_standin_fail_call;
//                                   NAME * is any, a + behind: from there on
//   FAIL_COMMAND      (empty)       N:STATUS, as tarn_standin_fail_command
//   KERNELS           (empty)       path of a shared object with kernels, which
//                                   exports tarn_standin_kernels, see below
//   REPORT            (empty)       path of a file to which each wrong use and,
//                                   at the end, each leak adds a line
//   LOUD              0             1: the same to stderr
// clang-format on
#ifndef TARN_TESTS_OPENCL_STANDIN_H_
#define TARN_TESTS_OPENCL_STANDIN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TARN_STANDIN_API __attribute__((visibility("default")))

// Changes a setting; NULL: its initial value. False if there is no such name
// or |value| is longer than 255 bytes.
TARN_STANDIN_API bool tarn_standin_set(const char *name, const char *value);

// All settings as they are without an environment, no faults, an empty report,
// counts of calls and misuses at zero. Objects stay as they are.
TARN_STANDIN_API void tarn_standin_reset(void);

// --- calls and faults ------------------------------------------------------

// The |n|-th call from now (1 is the next) of the function |name|, NULL: of
// any, fails with |error|; with |onwards|, each later one too. |n| 0: no call
// fails. Calls that release (clRelease..., clSVMFree, clMemFreeINTEL) count
// only where they are named: a program can do nothing about their failure.
TARN_STANDIN_API void tarn_standin_fail_call(const char *name, uint64_t n,
                                             int32_t error, bool onwards);

// The |n|-th command from now that is queued, on whatever queue, ends with
// |status|, which is negative, without having done anything.
TARN_STANDIN_API void tarn_standin_fail_command(uint64_t n, int32_t status);

// Faults of both kinds that struck since the last tarn_standin_reset.
TARN_STANDIN_API uint64_t tarn_standin_faults(void);

// Calls of the function |name|; NULL: of all that count for a fault of any.
TARN_STANDIN_API uint64_t tarn_standin_calls(const char *name);

// --- what was wrong, what is left ------------------------------------------

// Wrong uses since the last tarn_standin_reset.
TARN_STANDIN_API uint64_t tarn_standin_misuses(void);

// The texts of the first of them, one a line, cut to |size| bytes with the
// zero. Returns how many bytes there are.
TARN_STANDIN_API size_t tarn_standin_report(char *out, size_t size);

// How many of a kind live, after all commands that can end have ended: context,
// queue, buffer, event, program, kernel, svm, usm; NULL: of all these. An event
// counts while a command needs it, too.
TARN_STANDIN_API size_t tarn_standin_live(const char *kind);

// Bytes of buffers and of memory with an address.
TARN_STANDIN_API uint64_t tarn_standin_bytes(void);

// --- order -----------------------------------------------------------------

// While |on|, no command begins: what a program does before a command has run
// can be tried without waiting.
TARN_STANDIN_API void tarn_standin_hold(bool on);

// Commands that are queued and have not ended.
TARN_STANDIN_API size_t tarn_standin_queued(void);

// --- kernels ---------------------------------------------------------------

// One argument as it was set. |value| has |size| bytes and is what the kernel
// takes: the value itself, or, for memory, a pointer at which the function may
// read and write while it runs. |memory_size|: bytes from there to the end of
// the memory, 0 for what is none.
typedef struct tarn_standin_argument {
  const void *value;
  size_t size;
  size_t memory_size;
} tarn_standin_argument;

// |count| is that of the arguments. A dimension that the caller did not give
// has the size 1; |local| is 0 where the driver may choose.
typedef struct tarn_standin_launch {
  const char *kernel;
  const char *options;  // those of clBuildProgram
  size_t dimensions;
  size_t offset[3];
  size_t global[3];
  size_t local[3];
  size_t count;
  const tarn_standin_argument *arguments;
  void *inside;  // the stand-in's own
} tarn_standin_launch;

// Does what the kernel does, for all work items, on a thread of the stand-in.
// Returns 0, or the negative status that the command ends with.
typedef int32_t (*tarn_standin_function)(const tarn_standin_launch *launch);

// |name|: of the kernel. |options|: build options that contain this text; NULL
// or empty: any. |arguments|: a letter for each, m for memory or an address, v
// for a value; NULL: the caller says how many there are by setting them.
typedef struct tarn_standin_kernel_entry {
  const char *name;
  const char *options;
  const char *arguments;
  tarn_standin_function function;
} tarn_standin_kernel_entry;

// Adds one, before those that are there. The texts stay the caller's and must
// outlive the stand-in. False if there is no room.
TARN_STANDIN_API bool tarn_standin_kernel(
    const tarn_standin_kernel_entry *entry);

// What the shared object of the setting KERNELS exports: a table that ends with
// an entry whose name is NULL.
//
//   const tarn_standin_kernel_entry tarn_standin_kernels[];

// Where the function reads and writes the |size| bytes that a kernel has at
// |address|. While the kernel runs, the addresses themselves are usable, for
// all memory that the kernel was told of, by an argument or by
// clSetKernelExecInfo; all other memory is a wrong use and NULL here. |launch|
// NULL: for tests that look at memory of the device while nothing runs.
TARN_STANDIN_API void *tarn_standin_translate(const tarn_standin_launch *launch,
                                              uint64_t address, size_t size);

// A text that says what this is. Its being there tells a stand-in from a
// driver.
TARN_STANDIN_API const char *tarn_standin_name(void);

#endif  // TARN_TESTS_OPENCL_STANDIN_H_
