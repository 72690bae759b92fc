// api.h - each function that the stand-in exports, declared from the very lists
// that the plug-in calls by: one with other arguments does not compile.
#ifndef TARN_TESTS_CUDA_STANDIN_API_H_
#define TARN_TESTS_CUDA_STANDIN_API_H_

#include "cuda/api.h"
#include "cuda/more.h"

#define STANDIN_DECLARE(field, cuda, hip, arguments) \
  __attribute__((visibility("default"))) tarn__cuda_result cuda arguments;
TARN__CU_REQUIRED(STANDIN_DECLARE)
TARN__CU_OPTIONAL(STANDIN_DECLARE)
TARN__CU_MORE(STANDIN_DECLARE)
#undef STANDIN_DECLARE

#endif  // TARN_TESTS_CUDA_STANDIN_API_H_
