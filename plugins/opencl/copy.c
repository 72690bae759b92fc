// Copies and fills, at once and queued.
//
// Either end is a buffer with an offset, or a pointer: to SVM, to unified
// memory, or to memory of the host that the driver does not know. The driver
// has a command for each pair. Where its SVM copies do not take plain memory of
// the host, the host copies by a map of the other end, once the stream is done:
// on a queue of the device's own, since a wait on the stream's would hold its
// record, which callbacks want, for which the wait would wait.
//
// A copy at once has no place in a stream's order. If memory is the host's own
// (a processor as the device), a map costs nothing, and the calling thread
// copies: nothing is handed to the driver's threads and back.
#include <string.h>

#include "opencl.h"

typedef tarn__opencl_device opencl;
typedef tarn__opencl_span span;
typedef tarn__opencl_work work;

// A copy with ends as the driver wants them.
typedef struct transfer {
  const char *call;
  span dst;
  span src;
  size_t size;
} transfer;

static void *pointer_to(const span *s) {
  return (void *)(uintptr_t)s->address;
}

static bool is_svm(const span *s) {
  return s->method == TARN__OPENCL_SVM;
}

static bool is_coarse(const span *s) {
  return is_svm(s) && s->kind == TARN__OPENCL_DEVICE;
}

static bool is_plain(const span *s) {
  return !tarn__opencl_is_pointer(s->method) &&
         !tarn__opencl_is_buffer(s->method);
}

// Whether a copy between pointers is one of SVM, to which all other memory is
// the host's. Unified memory's takes fine SVM as what it is, the host's memory.
static bool is_by_svm(const transfer *t) {
  bool has_usm =
      t->dst.method == TARN__OPENCL_USM || t->src.method == TARN__OPENCL_USM;
  return is_coarse(&t->dst) || is_coarse(&t->src) ||
         (!has_usm && (is_svm(&t->dst) || is_svm(&t->src)));
}

// --- maps ------------------------------------------------------------------

// No event is asked for where a map is nothing: that would be a command for a
// driver's thread. Elsewhere the event alone tells whether the bytes came.

// What stays mapped no command can use: where the driver refuses, it is asked
// once more.
static cl_int unmap(const work *w, const span *s, const char *call) {
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  cl_event event = NULL;
  cl_event *out_event = w->device->maps ? NULL : &event;
  if (!is_coarse(s)) return CL_SUCCESS;
  cl_int error =
      cl->EnqueueSVMUnmap(w->queue, pointer_to(s), 0, NULL, out_event);
  if (error != CL_SUCCESS) {
    (void)cl->EnqueueSVMUnmap(w->queue, pointer_to(s), 0, NULL, out_event);
  }
  tarn__opencl_keep(w->record, call, event);
  return error;
}

// The outcome of a map, whose |event| it takes.
static cl_int outcome_of(cl_event event) {
  cl_int status = tarn__opencl_status_of(event);
  (void)tarn__opencl_driver_get()->ReleaseEvent(event);
  if (status > CL_COMPLETE || status == -1) return CL_MAP_FAILURE;
  return status;
}

// Maps an end for the host; nothing where the host reaches it as it is.
static cl_int map(const work *w, const span *s, cl_map_flags flags,
                  const char *call, size_t size) {
  cl_event event = NULL;
  if (!is_coarse(s)) return CL_SUCCESS;
  cl_int error = tarn__opencl_driver_get()->EnqueueSVMMap(
      w->queue, CL_TRUE, flags, pointer_to(s), size, 0, NULL,
      w->device->maps ? NULL : &event);
  if (error != CL_SUCCESS || event == NULL) return error;
  cl_int outcome = outcome_of(event);
  if (outcome != CL_SUCCESS) (void)unmap(w, s, call);
  return outcome;
}

// Copies by the calling thread.
static cl_int copy_mapped(const work *w, const transfer *t) {
  cl_int error = map(w, &t->src, CL_MAP_READ, t->call, t->size);
  if (error != CL_SUCCESS) return error;
  error = map(w, &t->dst, CL_MAP_WRITE, t->call, t->size);
  if (error == CL_SUCCESS) {
    memmove(pointer_to(&t->dst), pointer_to(&t->src), t->size);
    error = unmap(w, &t->dst, t->call);
  }
  cl_int last = unmap(w, &t->src, t->call);
  cl_int finished = tarn__opencl_drain(w->queue);
  if (error == CL_SUCCESS) error = last;
  return error != CL_SUCCESS ? error : finished;
}

static cl_int set_mapped(const work *w, const span *s, unsigned char value,
                         size_t size) {
  const char *call = "device_memory_set";
  cl_int error = map(w, s, CL_MAP_WRITE, call, size);
  if (error != CL_SUCCESS) return error;
  memset(pointer_to(s), value, size);
  error = unmap(w, s, call);
  cl_int finished = tarn__opencl_drain(w->queue);
  return error != CL_SUCCESS ? error : finished;
}

// --- commands --------------------------------------------------------------

static cl_int copy_buffers(const work *w, const transfer *t,
                           cl_event *out_event) {
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  const span *dst = &t->dst;
  const span *src = &t->src;
  if (!tarn__opencl_is_buffer(src->method)) {
    return cl->EnqueueWriteBuffer(w->queue, dst->buffer, CL_FALSE, dst->offset,
                                  t->size, pointer_to(src), 0, NULL, out_event);
  }
  if (!tarn__opencl_is_buffer(dst->method)) {
    return cl->EnqueueReadBuffer(w->queue, src->buffer, CL_FALSE, src->offset,
                                 t->size, pointer_to(dst), 0, NULL, out_event);
  }
  return cl->EnqueueCopyBuffer(w->queue, src->buffer, dst->buffer, src->offset,
                               dst->offset, t->size, 0, NULL, out_event);
}

static cl_int copy_pointers(const work *w, const transfer *t,
                            cl_event *out_event) {
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  if (is_by_svm(t)) {
    return cl->EnqueueSVMMemcpy(w->queue, CL_FALSE, pointer_to(&t->dst),
                                pointer_to(&t->src), t->size, 0, NULL,
                                out_event);
  }
  return w->device->platform->ext.enqueue_memcpy(
      w->queue, CL_FALSE, pointer_to(&t->dst), pointer_to(&t->src), t->size, 0,
      NULL, out_event);
}

// Whether the host has to copy: no command takes these two ends.
static bool is_hosts(const opencl *d, const transfer *t) {
  if (tarn__opencl_is_buffer(t->dst.method) ||
      tarn__opencl_is_buffer(t->src.method)) {
    return false;
  }
  if (is_plain(&t->dst) && is_plain(&t->src)) return true;
  return is_by_svm(t) && !d->copies_plain &&
         (!is_svm(&t->dst) || !is_svm(&t->src));
}

static bool is_mapped_copy(const opencl *d, const transfer *t) {
  return d->maps && (is_coarse(&t->dst) || is_coarse(&t->src)) &&
         !tarn__opencl_is_buffer(t->dst.method) &&
         !tarn__opencl_is_buffer(t->src.method);
}

static cl_int queue_transfer(work *w, const transfer *t, cl_event *out_event) {
  const opencl *d = w->device;
  if (tarn__opencl_is_buffer(t->dst.method) ||
      tarn__opencl_is_buffer(t->src.method)) {
    return copy_buffers(w, t, out_event);
  }
  if (is_hosts(d, t) || (w->waits && is_mapped_copy(d, t))) {
    return copy_mapped(w, t);
  }
  return copy_pointers(w, t, out_event);
}

// --- the functions ---------------------------------------------------------

static C_Status refuse(const opencl *d, const char *call, const char *why) {
  (void)tarn__text_fail(TARN_E_INVALID, "opencl:%d: %s: %s", d->id, call, why);
  return C_ERROR;
}

static C_Status run(opencl *d, C_Stream stream, const transfer *t) {
  work w;
  cl_event event = NULL;
  C_Status status = C_SUCCESS;
  if (stream != NULL && is_hosts(d, t)) {
    struct C_Device_st device = {d->id};
    status = tarn__opencl_synchronize_stream(&device, stream);
    stream = NULL;
  }
  if (status == C_SUCCESS) status = tarn__opencl_begin(d, stream, &w);
  if (status != C_SUCCESS) return status;
  cl_int error = queue_transfer(&w, t, &event);
  return tarn__opencl_end(&w, t->call, error, event);
}

// |stream|, of |from|, NULL: at once. The ends are at |to| and |from| of these
// devices, which share a context.
static C_Status copy(const char *call, opencl *to, opencl *from,
                     C_Stream stream, void *dst, const void *src, size_t size) {
  transfer t = {.call = call, .size = size};
  if (dst == NULL || src == NULL) return refuse(from, call, "no address");
  if (size == 0) return refuse(from, call, "no bytes");
  if (!tarn__opencl_find(to, (uintptr_t)dst, size, &t.dst) ||
      !tarn__opencl_find(from, (uintptr_t)src, size, &t.src)) {
    return C_ERROR;
  }
  return run(from, stream, &t);
}

static C_Status copy_on(const char *call, const C_Device device,
                        C_Stream stream, void *dst, const void *src,
                        size_t size) {
  opencl *d = tarn__opencl_device_of(device);
  return d != NULL ? copy(call, d, d, stream, dst, src, size) : C_ERROR;
}

#define DEFINE_COPIES(way)                                                     \
  C_Status tarn__opencl_memory_copy_##way(const C_Device device, void *dst,    \
                                          const void *src, size_t size) {      \
    return copy_on("memory_copy_" #way, device, NULL, dst, src, size);         \
  }                                                                            \
  C_Status tarn__opencl_async_memory_copy_##way(                               \
      const C_Device device, C_Stream stream, void *dst, const void *src,      \
      size_t size) {                                                           \
    if (stream == NULL) return tarn__wordless(C_ERROR);                        \
    return copy_on("async_memory_copy_" #way, device, stream, dst, src, size); \
  }

DEFINE_COPIES(h2d)
DEFINE_COPIES(d2h)
DEFINE_COPIES(d2d)

// --- between devices -------------------------------------------------------

// Between two drivers, or two methods, of which no command takes both: by
// memory of the host, a piece at a time, at once.
static C_Status bounce(const char *call, opencl *to, opencl *from,
                       unsigned char *dst, const unsigned char *src,
                       size_t size) {
  unsigned char piece[64 << 10];
  size_t now = 0;
  for (size_t done = 0; done < size; done += now) {
    now = tarn__lesser(size - done, sizeof piece);
    C_Status status = copy(call, from, from, NULL, piece, src + done, now);
    if (status == C_SUCCESS)
      status = copy(call, to, to, NULL, dst + done, piece, now);
    if (status != C_SUCCESS) return status;
  }
  return C_SUCCESS;
}

static C_Status copy_p2p(const char *call, const C_Device dst_device,
                         const C_Device src_device, C_Stream stream, void *dst,
                         const void *src, size_t size) {
  opencl *to = tarn__opencl_device_of(dst_device);
  opencl *from = tarn__opencl_device_of(src_device);
  if (to == NULL || from == NULL) return C_ERROR;
  if (to->context == from->context &&
      to->methods[TARN__OPENCL_DEVICE] == from->methods[TARN__OPENCL_DEVICE]) {
    return copy(call, to, from, stream, dst, src, size);
  }
  if (dst == NULL || src == NULL) return refuse(from, call, "no address");
  if (size == 0) return refuse(from, call, "no bytes");
  C_Status status = stream != NULL
                        ? tarn__opencl_synchronize_stream(src_device, stream)
                        : C_SUCCESS;
  return status == C_SUCCESS ? bounce(call, to, from, dst, src, size) : status;
}

C_Status tarn__opencl_memory_copy_p2p(const C_Device dst_device,
                                      const C_Device src_device, void *dst,
                                      const void *src, size_t size) {
  return copy_p2p("memory_copy_p2p", dst_device, src_device, NULL, dst, src,
                  size);
}

C_Status tarn__opencl_async_memory_copy_p2p(const C_Device dst_device,
                                            const C_Device src_device,
                                            C_Stream stream, void *dst,
                                            const void *src, size_t size) {
  if (stream == NULL) return tarn__wordless(C_ERROR);
  return copy_p2p("async_memory_copy_p2p", dst_device, src_device, stream, dst,
                  src, size);
}

// --- fills -----------------------------------------------------------------

static cl_int queue_fill(const work *w, const span *s, unsigned char value,
                         size_t size, cl_event *out_event) {
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  if (tarn__opencl_is_buffer(s->method)) {
    return cl->EnqueueFillBuffer(w->queue, s->buffer, &value, 1, s->offset,
                                 size, 0, NULL, out_event);
  }
  if (s->method == TARN__OPENCL_USM) {
    return w->device->platform->ext.enqueue_mem_fill(
        w->queue, pointer_to(s), &value, 1, size, 0, NULL, out_event);
  }
  if (!is_svm(s) || (w->waits && w->device->maps)) {
    return set_mapped(w, s, value, size);
  }
  return cl->EnqueueSVMMemFill(w->queue, pointer_to(s), &value, 1, size, 0,
                               NULL, out_event);
}

C_Status tarn__opencl_device_memory_set(const C_Device device, void *ptr,
                                        unsigned char value, size_t size) {
  const char *call = "device_memory_set";
  opencl *d = tarn__opencl_device_of(device);
  span s;
  work w;
  cl_event event = NULL;
  if (d == NULL) return C_ERROR;
  if (ptr == NULL) return refuse(d, call, "no address");
  if (size == 0) return refuse(d, call, "no bytes");
  if (!tarn__opencl_find(d, (uintptr_t)ptr, size, &s)) return C_ERROR;
  C_Status status = tarn__opencl_begin(d, NULL, &w);
  if (status != C_SUCCESS) return status;
  cl_int error = queue_fill(&w, &s, value, size, &event);
  return tarn__opencl_end(&w, call, error, event);
}
