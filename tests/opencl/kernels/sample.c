// The table of sample.cl, which is compiled twice: with T a float, and an int
// under a name of its own.
#include "opencl/kernels/items.h"

void scale(void *out, const void *in, float by);
void scale_int(void *out, const void *in, int32_t by);
void collect(const void *addresses, void *sum);
void raise_halves(void *halves, float by);

static int32_t run_scale(const tarn_standin_launch *launch) {
  EACH_ITEM(launch) {
    scale(MEMORY(launch, 0), MEMORY(launch, 1), VALUE(launch, 2, float));
  }
  return 0;
}

static int32_t run_scale_int(const tarn_standin_launch *launch) {
  EACH_ITEM(launch) {
    scale_int(MEMORY(launch, 0), MEMORY(launch, 1), VALUE(launch, 2, int32_t));
  }
  return 0;
}

static int32_t run_collect(const tarn_standin_launch *launch) {
  EACH_ITEM(launch) collect(MEMORY(launch, 0), MEMORY(launch, 1));
  return 0;
}

static int32_t run_raise_halves(const tarn_standin_launch *launch) {
  EACH_ITEM(launch) raise_halves(MEMORY(launch, 0), VALUE(launch, 1, float));
  return 0;
}

// The stand-in looks from the end.
TARN_STANDIN_API extern const tarn_standin_kernel_entry tarn_standin_kernels[];
const tarn_standin_kernel_entry tarn_standin_kernels[] = {
    {"scale", NULL, "mmv", run_scale},
    {"scale", "-DT=int", "mmv", run_scale_int},
    {"collect", NULL, "mm", run_collect},
    {"raise_halves", NULL, "mv", run_raise_halves},
    {0},
};
