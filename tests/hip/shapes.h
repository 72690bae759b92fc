// shapes.h - the functions of HIP that the plug-in calls, as the plug-in
// declares them and as HIP's header does.
#ifndef TARN_TESTS_HIP_SHAPES_H_
#define TARN_TESTS_HIP_SHAPES_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HIP_PARAMETERS_MAX = 8 };

// Sizes in bytes, first of the result, then of each parameter; 0 behind the
// last. |targets|: what those that are pointers point to; 0 where that is not
// known, or they are none.
typedef struct hip_shape {
  size_t sizes[1 + HIP_PARAMETERS_MAX];
  size_t targets[1 + HIP_PARAMETERS_MAX];
} hip_shape;

typedef struct hip_function {
  const char *name;
  hip_shape ours;
  hip_shape theirs;
} hip_function;

extern const hip_function hip_functions[];
extern const size_t hip_functions_count;

#ifdef __cplusplus
}
#endif

#endif  // TARN_TESTS_HIP_SHAPES_H_
