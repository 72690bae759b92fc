// hits.h - blocks that are allocated and freed, by C and by tarn.hpp.
#ifndef TARN_TESTS_CPP_HITS_H_
#define TARN_TESTS_CPP_HITS_H_

#include "tarn/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// |count| times. Returns the sum of the addresses.
tarn_addr hits_by_c(tarn_pool *pool, size_t count);
tarn_addr hits_by_cpp(tarn_pool *pool, size_t count);

#ifdef __cplusplus
}
#endif

#endif  // TARN_TESTS_CPP_HITS_H_
