// Modules and kernels in the stand-in.
#include <stdatomic.h>

#include "standin_ground.h"

enum { SMALL = 64 };

typedef struct arguments {
  CUdeviceptr to;
  uint32_t count;
  uint32_t value;
} arguments;

// A kernel's address is used as it is.
static unsigned fill(const tarn_standin_launch *launch) {
  const arguments *a = launch->arguments;
  unsigned char *to = (unsigned char *)(uintptr_t)a->to;
  for (uint32_t i = 0; i < a->count; i++)
    to[i] = (unsigned char)(a->value + launch->grid[0]);
  return 0;
}

static unsigned fail_it(const tarn_standin_launch *launch) {
  (void)launch;
  return TARN__CU_ERROR_ASSERT;
}

static const tarn_standin_kernel fill_kernel = {"fill", sizeof(arguments),
                                                fill};
static const tarn_standin_kernel fail_kernel = {"fail", sizeof(arguments),
                                                fail_it};

static CUmodule load(void) {
  CUmodule module = NULL;
  ck_assert(tarn_standin_add_kernel(&fill_kernel));
  ck_assert(tarn_standin_add_kernel(&fail_kernel));
  done(cuModuleLoadData(&module, TARN_STANDIN_IMAGE));
  return module;
}

static CUfunction function_of(CUmodule module, const char *name) {
  CUfunction function = NULL;
  done(cuModuleGetFunction(&function, module, name));
  return function;
}

static tarn__cuda_result launch(CUfunction function, const arguments *a,
                                CUstream stream) {
  arguments copy = *a;
  void *list[] = {&copy};
  return cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, stream, list, NULL);
}

TEST(a_kernel_reaches_memory_that_the_host_does_not) {
  ground on = ground_open();
  CUmodule module = load();
  CUfunction function = function_of(module, "fill");
  CUdeviceptr block = ground_block(SMALL);
  done(launch(function, &(arguments){block, SMALL, 5}, on.stream));
  done(cuStreamSynchronize(on.stream));
  assert_all(tarn_standin_translate(block, SMALL), SMALL, 7);
  ck_assert(!host_reaches(block));
  done(cuMemFree_v2(block));
  done(cuModuleUnload(module));
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

TEST(a_kernel_may_fail) {
  ground on = ground_open();
  CUfunction function = function_of(load(), "fail");
  done(launch(function, &(arguments){0}, on.stream));
  gives(cuStreamSynchronize(on.stream), TARN__CU_ERROR_ASSERT);
  done(cuDevicePrimaryCtxReset_v2(0));
  ck_assert_uint_eq(tarn_standin_live(NULL), 1);
  assert_misuses(0);
}
END_TEST

TEST(memory_of_a_kernel_is_there_when_it_runs) {
  ground on = ground_open();
  CUfunction function = function_of(load(), "fill");
  CUdeviceptr block = ground_block(SMALL);
  tarn_standin_hold(true);
  done(launch(function, &(arguments){block, SMALL, 5}, on.stream));
  done(cuMemFree_v2(block));
  tarn_standin_hold(false);
  gives(cuStreamSynchronize(on.stream), TARN__CU_ERROR_ILLEGAL_ADDRESS);
  assert_misuses(1);
  done(cuDevicePrimaryCtxReset_v2(0));
}
END_TEST

TEST(images_are_told_by_their_magic) {
  static const uint32_t fatbin[4] = {0xba55ed50};
  ground on = ground_open();
  CUmodule module = NULL;
  done(cuModuleLoadData(&module, fatbin));
  done(cuModuleUnload(module));
  gives(cuModuleLoadData(&module, "no image at all"),
        TARN__CU_ERROR_INVALID_IMAGE);
  ck_assert(tarn_standin_set("IMAGES", "209"));
  gives(cuModuleLoadData(&module, fatbin), TARN__CU_ERROR_NO_BINARY_FOR_GPU);
  assert_misuses(0);
  ground_close(&on);
}
END_TEST

TEST(launches_that_are_not_good_are_refused) {
  ground on = ground_open();
  CUmodule module = load();
  CUfunction function = function_of(module, "fill"), none = NULL;
  arguments a = {0};
  void *list[] = {&a};
  gives(cuModuleGetFunction(&none, module, "absent"), TARN__CU_ERROR_NOT_FOUND);
  refuses(
      cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, on.stream, list, NULL),
      TARN__CU_ERROR_INVALID_VALUE, "blocks of 2048 threads");
  refuses(cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, on.stream, list, NULL),
          TARN__CU_ERROR_INVALID_VALUE, "0 x 1 x 1 blocks");
  done(cuModuleUnload(module));
  refuses(launch(function, &a, on.stream), TARN__CU_ERROR_INVALID_HANDLE,
          "was destroyed");
  ground_close(&on);
}
END_TEST
