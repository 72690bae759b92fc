// What the tests of the stand-in begin and end with.
#include "standin_ground.h"

#include <unistd.h>

CUstream ground_stream(unsigned flags) {
  CUstream stream = NULL;
  done(cuStreamCreate(&stream, flags));
  return stream;
}

CUevent ground_event(void) {
  CUevent event = NULL;
  done(cuEventCreate(&event, TARN__CU_EVENT_DISABLE_TIMING));
  return event;
}

ground ground_open(void) {
  ground on = {0};
  done(cuInit(0));
  done(cuDevicePrimaryCtxRetain(&on.context, 0));
  done(cuCtxPushCurrent_v2(on.context));
  on.stream = ground_stream(TARN__CU_STREAM_NON_BLOCKING);
  return on;
}

void ground_close(ground *on) {
  CUcontext popped = NULL;
  done(cuStreamDestroy_v2(on->stream));
  ck_assert_uint_eq(tarn_standin_live(NULL), 1);
  done(cuCtxPopCurrent_v2(&popped));
  ck_assert_ptr_eq(popped, on->context);
  done(cuDevicePrimaryCtxRelease_v2(0));
  ck_assert_uint_eq(tarn_standin_live(NULL), 0);
  ck_assert_uint_eq(tarn_standin_bytes(), 0);
}

CUdeviceptr ground_block(size_t size) {
  CUdeviceptr block = 0;
  done(cuMemAlloc_v2(&block, size));
  return block;
}

bool host_reaches(CUdeviceptr address) {
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  bool reached = write(ends[1], (const void *)(uintptr_t)address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return reached;
}

void fill_in(unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++)
    bytes[i] = (unsigned char)(i * 7 + i / 256);
}

void assert_filled(const unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    require(bytes[i] == (unsigned char)(i * 7 + i / 256));
  }
}

void assert_all(const unsigned char *bytes, size_t size, int value) {
  for (size_t i = 0; i < size; i++)
    require(bytes[i] == value);
}
