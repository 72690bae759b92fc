// Programs of rows.cl: one for each device and string of options, built when it
// is first used.
//
//   options ──> program ──> kernels that are idle ──> one call's
//                  └─ binary ──> the program, when the device is open again
//
// Invariants:
//   * A program never leaves the list, and its device and options never change:
//     a closed device leaves it for the next time, with its binary.
//   * |handle| is not NULL only while the device is open. Idle kernels are of
//     it. Once there is a binary, it stays.
//   * Nothing is built with the lock held: two threads may build the same at
//     once, and the second one drops what it has.
#include "program.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"

enum { OPTIONS = 128, IDLE_MOST = 8 };

struct tarn__opencl_program {
  tarn__opencl_program *next;
  cl_device_id device;
  char options[OPTIONS];
  cl_program handle;
  unsigned char *binary;  // NULL: the driver gave none
  size_t binary_size;
  cl_kernel idle[IDLE_MOST];
  size_t idle_count;
};

typedef tarn__opencl_program program;
typedef tarn__opencl_kernel kernel;

static struct {
  pthread_mutex_t lock;  // guards all programs
  program *first;
} programs = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const tarn__opencl_driver *driver(void) {
  return tarn__opencl_driver_get();
}

static tarn_status fail(cl_int error, const char *call) {
  tarn_status status = tarn__opencl_answer(tarn__opencl_say(error, call));
  return status == TARN_E_INVALID ? TARN_E_DEVICE : status;
}

// --- building --------------------------------------------------------------

// Makes one line of a log: what a compiler says first is what counts.
static void flatten(char *log) {
  char *to = log;
  for (const char *from = log; *from != '\0'; from++) {
    bool is_space = isspace((unsigned char)*from) != 0;
    if (is_space && (to == log || to[-1] == ' ')) continue;
    *to = *from;
    if (is_space) *to = ' ';
    to++;
  }
  *to = '\0';
}

// Of a log that is longer than its room drivers give nothing.
static void read_log(cl_program handle, cl_device_id device, char *out,
                     size_t out_size) {
  size_t size = 0;
  out[0] = '\0';
  if (driver()->GetProgramBuildInfo(handle, device, CL_PROGRAM_BUILD_LOG, 0,
                                    NULL, &size) != CL_SUCCESS) {
    return;
  }
  char *log = tarn__host_alloc(size + 1);
  if (log == NULL) return;
  if (driver()->GetProgramBuildInfo(handle, device, CL_PROGRAM_BUILD_LOG, size,
                                    log, NULL) == CL_SUCCESS) {
    flatten(log);
    tarn__text_copy(log, out, out_size);
  }
  tarn__host_free(log, size + 1);
}

static tarn_status say_build(const tarn__opencl_device *device,
                             const char *options, cl_program handle,
                             cl_int error) {
  char log[TARN__COMMON_LINE];
  if (error != CL_BUILD_PROGRAM_FAILURE && error != CL_COMPILER_NOT_AVAILABLE) {
    return fail(error, "clBuildProgram");
  }
  if (error == CL_COMPILER_NOT_AVAILABLE) {
    return tarn__text_fail(TARN_E_UNSUPPORTED,
                           "opencl:%d: the driver has no compiler for kernels",
                           device->id);
  }
  read_log(handle, device->handle, log, sizeof log);
  return tarn__text_fail(TARN_E_DEVICE,
                         "opencl:%d: kernels (%s) do not build: %s", device->id,
                         options, log);
}

static cl_int build(const tarn__opencl_device *device, const char *options,
                    cl_program handle) {
  return driver()->BuildProgram(handle, 1, &device->handle, options, NULL,
                                NULL);
}

static tarn_status build_source(const tarn__opencl_device *device,
                                const char *options, cl_program *out) {
  const char *source = tarn__opencl_source;
  cl_int error = CL_SUCCESS;
  cl_program handle = driver()->CreateProgramWithSource(
      device->context, 1, &source, &tarn__opencl_source_size, &error);
  if (handle == NULL) return fail(error, "clCreateProgramWithSource");
  error = build(device, options, handle);
  if (error == CL_SUCCESS) {
    *out = handle;
    return TARN_OK;
  }
  tarn_status status = say_build(device, options, handle, error);
  (void)driver()->ReleaseProgram(handle);
  return status;
}

// --- binaries --------------------------------------------------------------

// What the driver built, to build from without the compiler.
typedef struct binary {
  unsigned char *bytes;  // NULL: there is none
  size_t size;
} binary;

// The place of |device| among those of a program, which are all of its context.
static bool find_place(cl_program handle, cl_device_id device,
                       size_t *out_place) {
  cl_device_id all[TARN__OPENCL_DEVICES_MAX] = {0};
  size_t size = 0;
  if (driver()->GetProgramInfo(handle, CL_PROGRAM_DEVICES, sizeof all, all,
                               &size) != CL_SUCCESS) {
    return false;
  }
  size_t count = size / sizeof *all;
  for (*out_place = 0; *out_place < count; (*out_place)++)
    if (all[*out_place] == device) return true;
  return false;
}

static size_t binary_size(cl_program handle, size_t place) {
  size_t sizes[TARN__OPENCL_DEVICES_MAX] = {0};
  cl_int error = driver()->GetProgramInfo(handle, CL_PROGRAM_BINARY_SIZES,
                                          sizeof sizes, sizes, NULL);
  return error == CL_SUCCESS ? sizes[place] : 0;
}

// Without a binary the next open compiles anew: that is no failure.
static binary read_binary(cl_program handle, cl_device_id device) {
  unsigned char *all[TARN__OPENCL_DEVICES_MAX] = {0};
  size_t place = 0;
  if (!find_place(handle, device, &place)) return (binary){0};
  size_t size = binary_size(handle, place);
  unsigned char *bytes = size != 0 ? tarn__host_alloc(size) : NULL;
  if (bytes == NULL) return (binary){0};
  all[place] = bytes;
  if (driver()->GetProgramInfo(handle, CL_PROGRAM_BINARIES, sizeof all, all,
                               NULL) == CL_SUCCESS) {
    return (binary){bytes, size};
  }
  tarn__host_free(bytes, size);
  return (binary){0};
}

// NULL: the driver does not take what it gave.
static cl_program build_binary(const tarn__opencl_device *device,
                               const char *options, binary from) {
  cl_int error = CL_SUCCESS;
  cl_int taken = CL_SUCCESS;
  const unsigned char *bytes = from.bytes;
  cl_program handle = driver()->CreateProgramWithBinary(
      device->context, 1, &device->handle, &from.size, &bytes, &taken, &error);
  if (handle == NULL) return NULL;
  if (build(device, options, handle) == CL_SUCCESS) return handle;
  (void)driver()->ReleaseProgram(handle);
  return NULL;
}

// --- the list --------------------------------------------------------------

// The program, which is entered if it is new; NULL: no memory.
static program *find_locked(cl_device_id device, const char *options) {
  program *p = programs.first;
  while (p != NULL && (p->device != device || strcmp(p->options, options) != 0))
    p = p->next;
  if (p != NULL) return p;
  p = tarn__host_alloc(sizeof *p);
  if (p == NULL) return NULL;
  p->device = device;
  snprintf(p->options, sizeof p->options, "%s", options);
  p->next = programs.first;
  programs.first = p;
  return p;
}

// What was built last is |handle|, and |built| its binary, unless another
// thread was first.
static void keep(program *p, cl_program handle, binary built) {
  pthread_mutex_lock(&programs.lock);
  bool is_first = p->handle == NULL;
  bool is_new = p->binary == NULL;
  if (is_first) p->handle = handle;
  if (is_new) {
    p->binary = built.bytes;
    p->binary_size = built.size;
  }
  pthread_mutex_unlock(&programs.lock);
  if (!is_first) (void)driver()->ReleaseProgram(handle);
  if (!is_new) tarn__host_free(built.bytes, built.size);
}

// Builds |p|, whose binary is |known|.
static tarn_status open_program(const tarn__opencl_device *device, program *p,
                                binary known) {
  cl_program handle = NULL;
  binary built = {0};
  if (known.bytes != NULL) handle = build_binary(device, p->options, known);
  if (handle == NULL) {
    TARN__TRY(build_source(device, p->options, &handle));
    built = read_binary(handle, device->handle);
  }
  keep(p, handle, built);
  return TARN_OK;
}

// --- kernels ---------------------------------------------------------------

// |out->handle| is NULL if none is idle.
static tarn_status find(const tarn__opencl_device *device, const char *options,
                        kernel *out) {
  pthread_mutex_lock(&programs.lock);
  program *p = find_locked(device->handle, options);
  *out = (kernel){.program = p};
  if (p != NULL && p->idle_count != 0) out->handle = p->idle[--p->idle_count];
  bool is_open = p != NULL && p->handle != NULL;
  binary known = {0};
  if (p != NULL) known = (binary){p->binary, p->binary_size};
  pthread_mutex_unlock(&programs.lock);
  if (p == NULL) {
    return tarn__text_fail(TARN_E_NOMEM, "no host memory for kernels");
  }
  return is_open ? TARN_OK : open_program(device, p, known);
}

tarn_status tarn__opencl_kernel_take(const tarn__opencl_device *device,
                                     const char *options, kernel *out) {
  cl_int error = CL_SUCCESS;
  tarn_status status = find(device, options, out);
  if (status == TARN_OK && out->handle == NULL) {
    // Until the device is closed, the program's handle stays.
    out->handle =
        driver()->CreateKernel(out->program->handle, "tarn_rows", &error);
    if (out->handle == NULL) status = fail(error, "clCreateKernel");
  }
  if (status != TARN_OK) *out = (kernel){0};
  return status;
}

void tarn__opencl_kernel_give(kernel *k, bool as_new) {
  program *p = k->program;
  pthread_mutex_lock(&programs.lock);
  bool is_kept = as_new && p->idle_count < IDLE_MOST;
  if (is_kept) p->idle[p->idle_count++] = k->handle;
  pthread_mutex_unlock(&programs.lock);
  if (!is_kept) (void)driver()->ReleaseKernel(k->handle);
  *k = (kernel){0};
}

void tarn__opencl_programs_close(tarn__opencl_device *device) {
  pthread_mutex_lock(&programs.lock);
  for (program *p = programs.first; p != NULL; p = p->next) {
    if (p->device != device->handle) continue;
    while (p->idle_count != 0)
      (void)driver()->ReleaseKernel(p->idle[--p->idle_count]);
    if (p->handle != NULL) (void)driver()->ReleaseProgram(p->handle);
    p->handle = NULL;
  }
  pthread_mutex_unlock(&programs.lock);
}
