// program.h - kernels of rows.cl, built for a device when they are first used.
#ifndef TARN_PLUGINS_OPENCL_PROGRAM_H_
#define TARN_PLUGINS_OPENCL_PROGRAM_H_

#include "opencl.h"

// A program on a device, by the options that it was built with.
typedef struct tarn__opencl_program tarn__opencl_program;

// A kernel that is the caller's own until it gives it back: arguments are part
// of a kernel.
typedef struct tarn__opencl_kernel {
  tarn__opencl_program *program;
  cl_kernel handle;
} tarn__opencl_kernel;

// Takes the kernel of the program with |options|, and builds it before, at the
// first time: that takes a second or more, unless a device that was closed has
// left it.
//
// TARN_E_NOMEM        no memory.
// TARN_E_UNSUPPORTED  the driver has no compiler.
// TARN_E_DEVICE       the text has what the compiler says.
TARN_MUST_CHECK tarn_status
tarn__opencl_kernel_take(const tarn__opencl_device *device, const char *options,
                         tarn__opencl_kernel *out);

// Gives it back; what is queued keeps what it needs. |as_new| false: the kernel
// has more than arguments, and is not used again.
void tarn__opencl_kernel_give(tarn__opencl_kernel *kernel, bool as_new);

// The text of the kernels, which the build makes of rows_args.h and rows.cl.
extern const char tarn__opencl_source[];
extern const size_t tarn__opencl_source_size;

#endif  // TARN_PLUGINS_OPENCL_PROGRAM_H_
