// The driver's own copies, on the queue of the probe's stream and without Tarn:
// what a copy on that stream cannot be faster than.
//
// For CUDA, device_cuda.c does that. For OpenCL, the native handle of a stream
// is a cl_command_queue; its context and its device come from there. Where the
// device's memory is SVM, which the driver is asked, the same block is copied
// to by clEnqueueSVMMemcpy; else a buffer of the driver's own, as the driver
// knows no address of the plug-in's.
//
// libOpenCL.so.1 is the one that the plug-in has loaded. A build without the
// headers of OpenCL has nothing of that.
#if defined(__has_include)
#if __has_include(<CL/cl.h>)
#define HAS_OPENCL 1
#endif
#endif

#include "device_cuda.h"
#include "device_figures.h"

#include <stdio.h>

#if defined(HAS_OPENCL)

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>
#include <dlfcn.h>
#include <string.h>

#define NEEDED(X)        \
  X(GetCommandQueueInfo) \
  X(GetDeviceInfo)       \
  X(CreateBuffer)        \
  X(ReleaseMemObject)    \
  X(GetMemObjectInfo)    \
  X(EnqueueWriteBuffer)  \
  X(EnqueueSVMMemcpy)    \
  X(Finish)

typedef struct driver {
  void *library;
#define FIELD(name) __typeof__ (&cl##name)(name);
  NEEDED(FIELD)
#undef FIELD
  cl_command_queue queue;
  cl_context context;
  cl_device_id device;
  cl_mem buffer;  // NULL: the probe's own memory is copied to
  cl_int error;   // of the copy that failed
} driver;

// ---------------------------------------------------------------------------
// Beginning and end
// ---------------------------------------------------------------------------

static bool find_functions(driver *d) {
  bool found = true;
#define FIND(name)                                    \
  *(void **)&d->name = dlsym(d->library, "cl" #name); \
  found = found && d->name != NULL;
  NEEDED(FIND)
#undef FIND
  return found;
}

static bool ask_queue(driver *d) {
  return d->GetCommandQueueInfo(d->queue, CL_QUEUE_CONTEXT, sizeof(cl_context),
                                &d->context, NULL) == CL_SUCCESS &&
         d->GetCommandQueueInfo(d->queue, CL_QUEUE_DEVICE, sizeof(cl_device_id),
                                &d->device, NULL) == CL_SUCCESS;
}

static void close_driver(driver *d) {
  if (d->buffer != NULL) (void)d->ReleaseMemObject(d->buffer);
  if (d->library != NULL) (void)dlclose(d->library);
  *d = (driver){.queue = NULL};
}

static bool open_driver(const probe *p, driver *d) {
  *d = (driver){.queue = tarn_stream_native(p->stream)};
  if (strcmp(tarn_device_type(p->device), "opencl") != 0 || d->queue == NULL) {
    return false;
  }
  d->library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (d->library != NULL && find_functions(d) && ask_queue(d)) return true;
  close_driver(d);
  return false;
}

static bool opencl_is_known(const probe *p) {
  driver d;
  bool is_known = open_driver(p, &d);
  close_driver(&d);
  return is_known;
}

// ---------------------------------------------------------------------------
// Memory
// ---------------------------------------------------------------------------

// Whether a block of SVM begins there: a buffer made of it says so.
static bool is_svm(const driver *d, tarn_addr address, size_t size) {
  cl_bool is = CL_FALSE;
  cl_mem made =
      d->CreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, size,
                      (void *)(uintptr_t)address, NULL);
  if (made == NULL) return false;
  cl_int error =
      d->GetMemObjectInfo(made, CL_MEM_USES_SVM_POINTER, sizeof is, &is, NULL);
  (void)d->ReleaseMemObject(made);
  return error == CL_SUCCESS && is == CL_TRUE;
}

// ---------------------------------------------------------------------------
// Words
// ---------------------------------------------------------------------------

static void opencl_version(const probe *p, char *out) {
  driver d;
  char text[BENCH_NAME_SIZE] = "";
  *out = '\0';
  if (!open_driver(p, &d)) return;
  if (d.GetDeviceInfo(d.device, CL_DRIVER_VERSION, sizeof text - 1, text,
                      NULL) == CL_SUCCESS)
    memcpy(out, text, sizeof text);
  close_driver(&d);
}

// ---------------------------------------------------------------------------
// Copies
// ---------------------------------------------------------------------------

static cl_int queue_copy(const driver *d, const probe *p) {
  if (d->buffer != NULL) {
    return d->EnqueueWriteBuffer(d->queue, d->buffer, CL_FALSE, 0, p->size,
                                 p->source, 0, NULL, NULL);
  }
  return d->EnqueueSVMMemcpy(d->queue, CL_FALSE, (void *)(uintptr_t)p->here,
                             p->source, p->size, 0, NULL, NULL);
}

static bool copy_by_driver(probe *p, size_t count) {
  driver *d = p->scene;
  for (size_t i = 0; i < count && d->error == CL_SUCCESS; i++) {
    d->error = queue_copy(d, p);
    if (d->error == CL_SUCCESS) d->error = d->Finish(d->queue);
  }
  return d->error == CL_SUCCESS;
}

static bool prepare(const probe *p, driver *d, char *why) {
  cl_int error = CL_SUCCESS;
  if (!open_driver(p, d)) {
    snprintf(why, PROBE_TEXT_SIZE, "the driver cannot be asked");
    return false;
  }
  if (!is_svm(d, p->here, p->size))
    d->buffer =
        d->CreateBuffer(d->context, CL_MEM_READ_WRITE, p->size, NULL, &error);
  if (error == CL_SUCCESS) return true;
  snprintf(why, PROBE_TEXT_SIZE, "clCreateBuffer: error %d", error);
  close_driver(d);
  return false;
}

static bool opencl_copy(probe *p, probe_times *out, char *why) {
  driver d;
  if (!prepare(p, &d, why)) return false;
  p->scene = &d;
  bool timed =
      probe_time_beside(p, device_h2d_on_stream, copy_by_driver, out, why);
  if (d.error != CL_SUCCESS)
    snprintf(why, PROBE_TEXT_SIZE, "the driver's own copy: error %d", d.error);
  p->scene = NULL;
  close_driver(&d);
  return timed;
}

#else  // no headers

static bool opencl_is_known(const probe *p) {
  (void)p;
  return false;
}

static void opencl_version(const probe *p, char *out) {
  (void)p;
  *out = '\0';
}

static bool opencl_copy(probe *p, probe_times *out, char *why) {
  (void)p;
  *out = (probe_times){0};
  snprintf(why, PROBE_TEXT_SIZE, "built without the headers of OpenCL");
  return false;
}

#endif

// ---------------------------------------------------------------------------
// Whichever it is
// ---------------------------------------------------------------------------

bool device_driver_is_known(const probe *p) {
  return device_cuda_is_known(p) || opencl_is_known(p);
}

void device_driver_version(const probe *p, char *out) {
  device_cuda_version(p, out);
  if (*out == '\0') opencl_version(p, out);
}

bool device_driver_copy(probe *p, probe_times *out, char *why) {
  return device_cuda_is_known(p) ? device_cuda_copy(p, out, why)
                                 : opencl_copy(p, out, why);
}
