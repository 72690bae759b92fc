// The table of the plug-in's rows.cl, which is compiled once for each string of
// options that rows.c builds programs with on a processor: the kernels that run
// are those of the plug-in.
#define CL_TARGET_OPENCL_VERSION 300
#include "opencl/kernels/items.h"
#include "opencl/rows_args.h"

typedef void kernel_function(void *table, void *dense, const void *indices,
                             const void *chunks, void *fault,
                             tarn__opencl_rows_args args);

static int32_t run(const tarn_standin_launch *launch, kernel_function *kernel) {
  EACH_ITEM(launch) {
    kernel(MEMORY(launch, 0), MEMORY(launch, 1), MEMORY(launch, 2),
           MEMORY(launch, 3), MEMORY(launch, 4),
           VALUE(launch, 5, tarn__opencl_rows_args));
  }
  return 0;
}

#define VARIANT(name)                                            \
  kernel_function name;                                          \
  static int32_t run_##name(const tarn_standin_launch *launch) { \
    return run(launch, name);                                    \
  }

VARIANT(rows_gather_0)
VARIANT(rows_gather_1)
VARIANT(rows_gather_2)
VARIANT(rows_gather_4)
VARIANT(rows_gather_8)
VARIANT(rows_scatter_0)
VARIANT(rows_scatter_1)
VARIANT(rows_scatter_2)
VARIANT(rows_scatter_4)
VARIANT(rows_scatter_8)
VARIANT(rows_add)
VARIANT(rows_add_negative)

#define ROW(options, name) \
  { "tarn_rows", "-D " options " -D SOLO", "mmmmmv", run_##name }

// The stand-in looks from the end.
TARN_STANDIN_API extern const tarn_standin_kernel_entry tarn_standin_kernels[];
const tarn_standin_kernel_entry tarn_standin_kernels[] = {
    ROW("ACTION=0 -D UNIT=0", rows_gather_0),
    ROW("ACTION=0 -D UNIT=1", rows_gather_1),
    ROW("ACTION=0 -D UNIT=2", rows_gather_2),
    ROW("ACTION=0 -D UNIT=4", rows_gather_4),
    ROW("ACTION=0 -D UNIT=8", rows_gather_8),
    ROW("ACTION=1 -D UNIT=0", rows_scatter_0),
    ROW("ACTION=1 -D UNIT=1", rows_scatter_1),
    ROW("ACTION=1 -D UNIT=2", rows_scatter_2),
    ROW("ACTION=1 -D UNIT=4", rows_scatter_4),
    ROW("ACTION=1 -D UNIT=8", rows_scatter_8),
    ROW("ACTION=2 -D UNIT=0", rows_add),
    {"tarn_rows",
     "-D ACTION=2 -D UNIT=0 -D SOLO -D F64 -D DENORM -D NEGATIVE_NAN", "mmmmmv",
     run_rows_add_negative},
    {0},
};
