// Copies. Every direction is the same memcpy: both ends are host memory.
#include <string.h>

#include "cpu.h"

static bool overlap(const void *a, const void *b, size_t size) {
  uintptr_t x = (uintptr_t)a;
  uintptr_t y = (uintptr_t)b;
  return (x < y ? y - x : x - y) < size;
}

static bool is_copy(const void *dst, const void *src, size_t size) {
  return dst != NULL && src != NULL && size != 0 && !overlap(dst, src, size);
}

C_Status tarn__cpu_copy(const C_Device device, void *dst, const void *src,
                        size_t size) {
  if (!tarn__cpu_is_device(device) || !is_copy(dst, src, size))
    return tarn__wordless(C_ERROR);
  memcpy(dst, src, size);
  return C_SUCCESS;
}

C_Status tarn__cpu_copy_p2p(const C_Device dst_device,
                            const C_Device src_device, void *dst,
                            const void *src, size_t size) {
  if (!tarn__cpu_is_device(src_device)) return tarn__wordless(C_ERROR);
  return tarn__cpu_copy(dst_device, dst, src, size);
}

static void run_copy(const tarn__common_queue_op *op) {
  memcpy(op->copy.dst, op->copy.src, op->copy.size);
}

C_Status tarn__cpu_async_copy(const C_Device device, C_Stream stream, void *dst,
                              const void *src, size_t size) {
  if (!tarn__queue_is_stream(device, stream) || !is_copy(dst, src, size)) {
    return tarn__wordless(C_ERROR);
  }
  tarn__common_queue_op op = {
      .run = run_copy,
      .brief = size <= TARN__CPU_BRIEF_SIZE,
      .copy = {dst, src, size},
  };
  return tarn__queue_submit(stream, &op);
}

C_Status tarn__cpu_async_copy_p2p(const C_Device dst_device,
                                  const C_Device src_device, C_Stream stream,
                                  void *dst, const void *src, size_t size) {
  if (!tarn__cpu_is_device(src_device)) return tarn__wordless(C_ERROR);
  return tarn__cpu_async_copy(dst_device, stream, dst, src, size);
}
