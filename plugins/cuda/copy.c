// Copies and fills, at once and queued.
//
// All are the driver's asynchronous calls. Without a stream they are made on a
// stream of the plug-in's own, which is waited for: cuMemcpyDtoD and cuMemsetD8
// may return before they are done, and the legacy stream, on which they run,
// does not order with streams that are non-blocking. Memory of the host that is
// not pinned goes the driver's own way.
//
// Between devices the stream is one of the source's.
#include "gpu.h"

typedef tarn__cuda_device cuda;
typedef tarn__cuda_work work;

typedef enum way { H2D, D2H, D2D, P2P, WAYS } copy_way;

static const char *const calls[WAYS] = {
    [H2D] = "cuMemcpyHtoDAsync",
    [D2H] = "cuMemcpyDtoHAsync",
    [D2D] = "cuMemcpyDtoDAsync",
    [P2P] = "cuMemcpyPeerAsync",
};

// A copy. An end in memory of the host has no device.
typedef struct copy {
  copy_way way;
  cuda *to;
  cuda *from;
  void *dst;
  const void *src;
  size_t size;
} copy;

static C_Status refuse(const cuda *d, const char *call) {
  (void)tarn__text_fail(TARN_E_INVALID, "%s:%d: %s: no address",
                        tarn__cuda_vendor_of.type, d->id, call);
  return C_ERROR;
}

// --- pieces ----------------------------------------------------------------

static CUdeviceptr address_of(const void *ptr, size_t offset) {
  return (uintptr_t)ptr + offset;
}

static size_t piece_of(cuda *d, const void *ptr, size_t offset, size_t size) {
  return d != NULL ? tarn__cuda_piece(d, address_of(ptr, offset), size) : size;
}

static tarn__cuda_result queue_piece(const work *w, const copy *c,
                                     size_t offset, size_t size) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  CUdeviceptr dst = address_of(c->dst, offset);
  CUdeviceptr src = address_of(c->src, offset);
  switch (c->way) {
    case H2D:
      return cu->MemcpyHtoDAsync(dst, (const char *)c->src + offset, size,
                                 w->stream);
    case D2H:
      return cu->MemcpyDtoHAsync((char *)c->dst + offset, src, size, w->stream);
    case D2D:
      return cu->MemcpyDtoDAsync(dst, src, size, w->stream);
    default:
      return cu->MemcpyPeerAsync(dst, c->to->context, src, c->from->context,
                                 size, w->stream);
  }
}

static tarn__cuda_result queue_copy(const work *w, const copy *c) {
  size_t now = 0;
  for (size_t done = 0; done < c->size; done += now) {
    now = piece_of(c->to, c->dst, done, c->size - done);
    now = piece_of(c->from, c->src, done, now);
    tarn__cuda_result error = queue_piece(w, c, done, now);
    if (error != TARN__CU_SUCCESS) return error;
  }
  return TARN__CU_SUCCESS;
}

// --- copies ----------------------------------------------------------------

// |stream|, of |d|, NULL: at once.
static C_Status run(cuda *d, C_Stream stream, const copy *c) {
  work w;
  if (c->size == 0) return C_SUCCESS;
  if (c->dst == NULL || c->src == NULL) return refuse(d, calls[c->way]);
  C_Status status = tarn__cuda_begin(d, stream, &w);
  if (status != C_SUCCESS) return status;
  return tarn__cuda_end(&w, calls[c->way], queue_copy(&w, c));
}

static C_Status copy_on(copy_way way, const C_Device device, C_Stream stream,
                        void *dst, const void *src, size_t size) {
  cuda *d = tarn__cuda_device_of(device);
  if (d == NULL) return C_ERROR;
  const copy c = {.way = way,
                  .to = way == D2H ? NULL : d,
                  .from = way == H2D ? NULL : d,
                  .dst = dst,
                  .src = src,
                  .size = size};
  return run(d, stream, &c);
}

#define DEFINE_COPIES(name, way)                                               \
  C_Status tarn__cuda_memory_copy_##name(const C_Device device, void *dst,     \
                                         const void *src, size_t size) {       \
    return copy_on(way, device, NULL, dst, src, size);                         \
  }                                                                            \
  C_Status tarn__cuda_async_memory_copy_##name(const C_Device device,          \
                                               C_Stream stream, void *dst,     \
                                               const void *src, size_t size) { \
    if (stream == NULL) return tarn__wordless(C_ERROR);                        \
    return copy_on(way, device, stream, dst, src, size);                       \
  }

DEFINE_COPIES(h2d, H2D)
DEFINE_COPIES(d2h, D2H)
DEFINE_COPIES(d2d, D2D)

// --- between devices -------------------------------------------------------

static C_Status copy_p2p(const C_Device dst_device, const C_Device src_device,
                         C_Stream stream, void *dst, const void *src,
                         size_t size) {
  cuda *to = tarn__cuda_device_of(dst_device);
  cuda *from = tarn__cuda_device_of(src_device);
  if (to == NULL || from == NULL) return C_ERROR;
  const copy c = {.way = to == from ? D2D : P2P,
                  .to = to,
                  .from = from,
                  .dst = dst,
                  .src = src,
                  .size = size};
  return run(from, stream, &c);
}

C_Status tarn__cuda_memory_copy_p2p(const C_Device dst_device,
                                    const C_Device src_device, void *dst,
                                    const void *src, size_t size) {
  return copy_p2p(dst_device, src_device, NULL, dst, src, size);
}

C_Status tarn__cuda_async_memory_copy_p2p(const C_Device dst_device,
                                          const C_Device src_device,
                                          C_Stream stream, void *dst,
                                          const void *src, size_t size) {
  if (stream == NULL) return tarn__wordless(C_ERROR);
  return copy_p2p(dst_device, src_device, stream, dst, src, size);
}

// --- fills -----------------------------------------------------------------

static tarn__cuda_result queue_fill(const work *w, void *ptr,
                                    unsigned char value, size_t size) {
  size_t now = 0;
  for (size_t done = 0; done < size; done += now) {
    now = piece_of(w->device, ptr, done, size - done);
    tarn__cuda_result error = tarn__cuda_driver_get()->MemsetD8Async(
        address_of(ptr, done), value, now, w->stream);
    if (error != TARN__CU_SUCCESS) return error;
  }
  return TARN__CU_SUCCESS;
}

C_Status tarn__cuda_device_memory_set(const C_Device device, void *ptr,
                                      unsigned char value, size_t size) {
  static const char call[] = "cuMemsetD8Async";
  cuda *d = tarn__cuda_device_of(device);
  work w;
  if (d == NULL) return C_ERROR;
  if (size == 0) return C_SUCCESS;
  if (ptr == NULL) return refuse(d, call);
  C_Status status = tarn__cuda_begin(d, NULL, &w);
  if (status != C_SUCCESS) return status;
  return tarn__cuda_end(&w, call, queue_fill(&w, ptr, value, size));
}
