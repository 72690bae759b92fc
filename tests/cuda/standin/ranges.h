// ranges.h - how many reservations of addresses there are. With the lock of
// objects held.
#ifndef TARN_TESTS_CUDA_STANDIN_RANGES_H_
#define TARN_TESTS_CUDA_STANDIN_RANGES_H_

#include <stddef.h>

size_t standin_reservations(void);

#endif  // TARN_TESTS_CUDA_STANDIN_RANGES_H_
