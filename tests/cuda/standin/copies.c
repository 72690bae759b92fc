// Copies and fills.
#include "entry.h"
#include "report.h"
#include "streams.h"

static uint64_t address_of(const void *ptr) {
  return (uint64_t)(uintptr_t)ptr;
}

static tarn__cuda_result queue(CUcontext context, CUstream handle,
                               standin_task *task) {
  CUstream stream = NULL;
  tarn__cuda_result error = standin_stream_to_queue(context, handle, &stream);
  if (error != TARN__CU_SUCCESS) return error;
  task->call = standin_call();
  return standin_submit(stream, task);
}

tarn__cuda_result cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src,
                                       size_t size, CUstream stream) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  standin_task task = {.action = STANDIN_COPY,
                       .to = {context, STANDIN_OF_DEVICE, dst},
                       .from = {context, STANDIN_OF_HOST, address_of(src)},
                       .size = size};
  return END(queue(context, stream, &task));
}

tarn__cuda_result cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size,
                                       CUstream stream) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  standin_task task = {.action = STANDIN_COPY,
                       .to = {context, STANDIN_OF_HOST, address_of(dst)},
                       .from = {context, STANDIN_OF_DEVICE, src},
                       .size = size};
  return END(queue(context, stream, &task));
}

tarn__cuda_result cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src,
                                       size_t size, CUstream stream) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  standin_task task = {.action = STANDIN_COPY,
                       .to = {context, STANDIN_OF_DEVICE, dst},
                       .from = {context, STANDIN_OF_DEVICE, src},
                       .size = size};
  return END(queue(context, stream, &task));
}

static tarn__cuda_result check_peer(CUcontext context) {
  for (int i = 0; i < STANDIN_DEVICES_MAX; i++) {
    CUcontext known = standin_context_of(i);
    if (context == known && standin_context_is_active(known)) {
      return known->failure;
    }
  }
  return standin_wrong(TARN__CU_ERROR_INVALID_CONTEXT,
                       "%p is no context that is retained", (void *)context);
}

tarn__cuda_result cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context,
                                    CUdeviceptr src, CUcontext src_context,
                                    size_t size, CUstream stream) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  tarn__cuda_result error = check_peer(dst_context);
  if (error == TARN__CU_SUCCESS) error = check_peer(src_context);
  if (error != TARN__CU_SUCCESS) return END(error);
  standin_task task = {.action = STANDIN_COPY,
                       .to = {dst_context, STANDIN_OF_DEVICE, dst},
                       .from = {src_context, STANDIN_OF_DEVICE, src},
                       .size = size};
  return END(queue(context, stream, &task));
}

tarn__cuda_result cuMemsetD8Async(CUdeviceptr dst, unsigned char value,
                                  size_t size, CUstream stream) {
  CUcontext context = NULL;
  BEGIN(STANDIN_IN_CONTEXT, &context);
  standin_task task = {.action = STANDIN_FILL,
                       .to = {context, STANDIN_OF_DEVICE, dst},
                       .size = size,
                       .value = value};
  return END(queue(context, stream, &task));
}
