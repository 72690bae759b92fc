// standin.h - what tests say to the stand-in for a driver of NVIDIA GPUs.
//
// tests/cuda/standin is a shared object called libcuda.so.1 that behaves like a
// driver with a GPU behind it, and is neither: it runs on the host, it checks
// how it is called, and it fails when it is told to. A test that passes over it
// has shown nothing about any GPU.
//
// A program finds it by LD_LIBRARY_PATH, and these functions by
//
//   void *standin = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
//   dlsym(standin, "tarn_standin_set")
//
// or by linking it. All functions may be called from each thread.
//
// Memory of a device has addresses at which the host faults, except while a
// kernel runs. Each stream has a thread. What is queued runs late.
//
// As documented by NVIDIA: a failure of work sticks to its context, callbacks
// hear of it and host functions are not called; the legacy stream waits for
// blocking streams of its context, and they for it; memory of a pool is there
// in the order of its stream, and goes back when something is waited for; a
// copy from a small source that is not pinned has read it when the call
// returns, and a larger one may not have; ranges consist of whole granules, and
// are without rights at first; what the modes of captures forbid, and that an
// event of a capture, the legacy stream and callbacks break one.
//
// A reading of what is not: all calls that allocate, free, map, load or wait
// are potentially unsafe in a capture; work that meets memory without rights,
// freed or not there yet fails with CUDA_ERROR_ILLEGAL_ADDRESS; a copy within
// devices is of one context's memory; a context that was reset is good again
// when it is retained. Graphs do not allocate.
//
// Settings. Each is read from the environment when the stand-in is first used,
// as TARN_STANDIN_ and the name, and changed by tarn_standin_set.
//
// clang-format off
//   DEVICES           1             0: cuInit is CUDA_ERROR_NO_DEVICE; at most 2
//   DEVICE_NAME       Stand-in GPU
//   DRIVER_VERSION    13000
//   CAPABILITY        90            the compute capability, times 10
//   CAPACITY          1073741824    bytes of memory of each device, counted
//   ALIGN             256           of cuMemAlloc, which has no better one
//   GRANULARITY       2097152       of ranges
//   WITHOUT           (empty)       what a device lacks, by its attributes and
//                                   by CUDA_ERROR_NOT_SUPPORTED: ranges,
//                                   sharing, pools, managed, register,
//                                   separated by commas. sharing-late: the
//                                   attribute says yes, an export fails
//   GUARD             1             0: the host reaches memory of devices
//   LATE              20            microseconds by which a command is late at
//                                   most, at random; 0: none is
//   PAGEABLE          staged        when the source of a copy from host memory
//                                   that is not pinned is read: staged: at
//                                   once if it is 64 KiB or less, else when the
//                                   command runs; late: when it runs; waits:
//                                   the call returns when the copy is over
//   IMAGES            0             an error: cuModuleLoadData refuses all
//   INIT_FAILS        0             an error: cuInit's
//   RESERVE_MAX       0             bytes; the largest reservation; 0: any
//   ADDRESSES         0             bytes of all reservations together; 0: any
//   FAIL_CALL         (empty)       NAME:N:CODE, as tarn_standin_fail_call;
//                                   NAME * is any, a + behind: from there on
//   FAIL_COMMAND      (empty)       N:CODE, as tarn_standin_fail_command
//   LOSE              (empty)       N:CODE, as tarn_standin_lose
//   KERNELS           (empty)       path of a shared object with kernels, which
//                                   exports tarn_standin_kernels, see below
//   REPORT            (empty)       path of a file to which each wrong use and,
//                                   at the end, each leak adds a line
//   LOUD              0             1: the same to stderr
// clang-format on
#ifndef TARN_TESTS_CUDA_STANDIN_H_
#define TARN_TESTS_CUDA_STANDIN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TARN_STANDIN_API __attribute__((visibility("default")))

// Changes a setting; NULL: its initial value. False if there is no such name
// or |value| is longer than 255 bytes.
TARN_STANDIN_API bool tarn_standin_set(const char *name, const char *value);

// All settings as they are without an environment, no faults, an empty report,
// counts of calls and misuses at zero, contexts without a failure. Objects stay
// as they are.
TARN_STANDIN_API void tarn_standin_reset(void);

// --- calls and faults ------------------------------------------------------

// The |n|-th call from now (1 is the next) of the function |name|, NULL: of
// any, fails with |error|; with |onwards|, each later one too. |n| 0: no call
// fails. Calls that release, and those that make a context current, count only
// where they are named: a program can do nothing about their failure.
TARN_STANDIN_API void tarn_standin_fail_call(const char *name, uint64_t n,
                                             unsigned error, bool onwards);

// The |n|-th command from now that is queued, on whatever stream, fails with
// |error|, without having done anything. It sticks to the context, as all
// failures of work do.
TARN_STANDIN_API void tarn_standin_fail_command(uint64_t n, unsigned error);

// The device falls off: from the |n|-th call from now on every call, of
// whatever function, fails with |error|, and so does what is queued. |n| 0: it
// is there again.
TARN_STANDIN_API void tarn_standin_lose(uint64_t n, unsigned error);

// Faults that struck since the last tarn_standin_reset.
TARN_STANDIN_API uint64_t tarn_standin_faults(void);

// Calls of the function |name|; NULL: of all that count for a fault of any.
TARN_STANDIN_API uint64_t tarn_standin_calls(const char *name);

// --- what was wrong, what is left ------------------------------------------

// Wrong uses since the last tarn_standin_reset.
TARN_STANDIN_API uint64_t tarn_standin_misuses(void);

// The texts of the first of them, one a line, cut to |size| bytes with the
// zero. Returns how many bytes there are.
TARN_STANDIN_API size_t tarn_standin_report(char *out, size_t size);

// How many of a kind the program has, after all commands that can end have
// ended: context (those that are retained), stream, event, module, pool,
// physical, reserved, device, pooled, mapped, pinned, registered, managed,
// graph, exec; NULL: of all these.
TARN_STANDIN_API size_t tarn_standin_live(const char *kind);

// Bytes of memory of all devices that are not free.
TARN_STANDIN_API uint64_t tarn_standin_bytes(void);

// --- order -----------------------------------------------------------------

// While |on|, no command begins: what a program does before a command has run
// can be tried without waiting.
TARN_STANDIN_API void tarn_standin_hold(bool on);

// Commands that are queued and have not ended.
TARN_STANDIN_API size_t tarn_standin_queued(void);

// --- kernels ---------------------------------------------------------------

// A launch. |arguments| is the one struct that each kernel takes by value. A
// kernel uses addresses as they are.
typedef struct tarn_standin_launch {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_size;
  const void *arguments;
} tarn_standin_launch;

// Does what the kernel does, for all threads of the grid, on a thread of the
// stand-in. Returns 0, or the error that sticks to the context.
typedef unsigned tarn_standin_function(const tarn_standin_launch *launch);

typedef struct tarn_standin_kernel {
  const char *name;
  size_t size;  // of the struct
  tarn_standin_function *function;
} tarn_standin_kernel;

// What the shared object of the setting KERNELS exports: a table that ends with
// an entry whose name is NULL.
//
//   const tarn_standin_kernel tarn_standin_kernels[];

// Adds one, before those that are there. It stays the caller's and must outlive
// the stand-in. False if there is no room.
TARN_STANDIN_API bool tarn_standin_add_kernel(
    const tarn_standin_kernel *kernel);

// Where a test reads and writes the |size| bytes that the device has at
// |address|, while nothing runs. NULL: they are not in one block.
TARN_STANDIN_API void *tarn_standin_translate(uint64_t address, size_t size);

// What cuModuleLoadData takes beside fatbins: an image of the stand-in's, with
// all its kernels.
#define TARN_STANDIN_IMAGE "tarn stand-in image"

// A text that says what this is. Its being there tells a stand-in from a
// driver.
TARN_STANDIN_API const char *tarn_standin_name(void);

#endif  // TARN_TESTS_CUDA_STANDIN_H_
