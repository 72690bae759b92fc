// Real drivers in tests: their plug-ins, and whether they are there.
#include "support/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/run.h"
#include "tarn/device.h"

#ifdef TARN_OPENCL_PLUGIN
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#else
#define TARN_OPENCL_PLUGIN NULL  // not built: no headers of OpenCL
#endif

typedef struct driver {
  const char *prefix;    // of the names of its devices
  const char *plugin;    // the file; NULL: not built
  const char *capacity;  // the variable that limits a device's memory
} driver;

static const driver drivers[] = {
    {"opencl:", TARN_OPENCL_PLUGIN, "TARN_OPENCL_CAPACITY"},
    {"cuda:", TARN_CUDA_PLUGIN, "TARN_STANDIN_CAPACITY"},
    {"hip:", TARN_HIP_PLUGIN, "TARN_STANDIN_CAPACITY"},
};

// The driver of the device |name|; NULL: it is a device of the tests' own.
static const driver *driver_of(const char *name) {
  for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
    if (strncmp(name, drivers[i].prefix, strlen(drivers[i].prefix)) == 0)
      return &drivers[i];
  return NULL;
}

const char *driver_wanted(void) {
  const char *name = getenv("TARN_TEST_DEVICE");
  return name != NULL && *name != '\0' ? name : NULL;
}

static tarn_status load(const char *name) {
  const driver *d = driver_of(name);
  if (d == NULL || d->plugin == NULL) return TARN_OK;
  tarn_status status = tarn_plugin_load(d->plugin);
  return status == TARN_E_STATE ? TARN_OK : status;  // loaded before
}

void driver_add(const char *name) {
  assert_ok(load(name));
}

bool driver_shrink(const char *name, size_t capacity) {
  const driver *d = driver_of(name);
  char text[32];
  if (d == NULL) return false;
  snprintf(text, sizeof text, "%zu", capacity);
  ck_assert_int_eq(setenv(d->capacity, text, 1), 0);
  return true;
}

// --- gates -----------------------------------------------------------------
// A callback of a stream of OpenCL holds up nothing but callbacks. A user event
// does, which the stream waits for.

static void *loader(void) {
  return dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
}

#ifdef CL_VERSION_1_1

// Copies a function of the loader to |slot|.
static void find(const char *name, void *slot) {
  void *function = dlsym(loader(), name);
  ck_assert_ptr_nonnull(function);
  memcpy(slot, &function, sizeof function);
}

static cl_event make_gate(tarn_stream *stream) {
  cl_int (*ask)(cl_command_queue, cl_command_queue_info, size_t, void *,
                size_t *);
  cl_event (*create)(cl_context, cl_int *);
  cl_context context = NULL;
  cl_int error = CL_SUCCESS;
  find("clGetCommandQueueInfo", &ask);
  find("clCreateUserEvent", &create);
  ck_assert_int_eq(ask(tarn_stream_native(stream), CL_QUEUE_CONTEXT,
                       sizeof(cl_context), &context, NULL),
                   CL_SUCCESS);
  cl_event gate = create(context, &error);
  ck_assert_int_eq(error, CL_SUCCESS);
  return gate;
}

void *driver_close_gate(tarn_stream *stream) {
  tarn_device *device = tarn_stream_device(stream);
  tarn_event *event = NULL;
  if (driver_of(tarn_device_name(device)) != &drivers[0]) return NULL;
  cl_event gate = make_gate(stream);
  assert_ok(tarn_event_adopt(device, gate, &event));
  assert_ok(tarn_stream_wait_event(stream, event));
  assert_ok(tarn_event_destroy(event));
  return gate;
}

void driver_open_gate(void *gate) {
  cl_int (*set)(cl_event, cl_int);
  cl_int (*release)(cl_event);
  find("clSetUserEventStatus", &set);
  find("clReleaseEvent", &release);
  ck_assert_int_eq(set(gate, CL_COMPLETE), CL_SUCCESS);
  ck_assert_int_eq(release(gate), CL_SUCCESS);
}

#else

void *driver_close_gate(tarn_stream *stream) {
  (void)stream;
  return NULL;
}

void driver_open_gate(void *gate) {
  (void)gate;
}

#endif

// --- is it there? ----------------------------------------------------------

// Maps the drivers, of which the children then have their part: a compiler is
// among them, and each child would spend most of its time on loading it. No
// driver starts by this.
static void load_drivers(void) {
  typedef int platforms(unsigned count, void **out, unsigned *out_count);
  platforms *ask = NULL;
  unsigned count = 0;
  void *library = loader();
  void *function = library != NULL ? dlsym(library, "clGetPlatformIDs") : NULL;
  memcpy(&ask, &function, sizeof ask);
  if (ask != NULL) (void)ask(0, NULL, &count);
}

// Writes why |name| cannot be opened to |out|, and nothing if it can.
_Noreturn static void try_to_open(const char *name, int out) {
  tarn_device *device = NULL;
  tarn_status status = load(name);
  if (status == TARN_OK) status = tarn_device_open(name, &device);
  const char *reason = status == TARN_OK ? "" : tarn_last_error();
  ssize_t written = write(out, reason, strlen(reason));
  _exit(written == (ssize_t)strlen(reason) ? 0 : 1);
}

// All that comes, as text; false if there is no room for it.
static bool read_all(int in, char *out, size_t size) {
  size_t length = 0;
  ssize_t now = 0;
  while (length < size && (now = read(in, out + length, size - length)) > 0)
    length += (size_t)now;
  if (length == size) return false;
  out[length] = '\0';
  return now == 0;
}

bool driver_is_there(const char *name, char *out_reason, size_t size) {
  int ends[2];
  int ended = 0;
  load_drivers();
  if (pipe(ends) != 0) abort();
  pid_t child = fork();
  if (child < 0) abort();
  if (child == 0) try_to_open(name, ends[1]);
  close(ends[1]);
  bool told = read_all(ends[0], out_reason, size);
  close(ends[0]);
  if (waitpid(child, &ended, 0) != child) abort();
  if (!told || !WIFEXITED(ended) || WEXITSTATUS(ended) != 0) {
    snprintf(out_reason, size, "the process that opens it dies");
    return false;
  }
  return *out_reason == '\0';
}
