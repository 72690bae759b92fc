// pools.h - memory that is allocated and freed in the order of streams. With
// the lock of objects held.
#ifndef TARN_TESTS_CUDA_STANDIN_POOLS_H_
#define TARN_TESTS_CUDA_STANDIN_POOLS_H_

#include "blocks.h"

// Something was waited for: pools give back what is over their thresholds, of
// which the streams are done.
void standin_pools_trim(void);

// Frees |block|, which is a pool's, behind |number| of |stream|; NULL: now.
tarn__cuda_result standin_pool_free(standin_block *block, CUstream stream);

#endif  // TARN_TESTS_CUDA_STANDIN_POOLS_H_
