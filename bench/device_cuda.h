// device_cuda.h - the copies of NVIDIA's driver without Tarn, beside Tarn's, on
// a device of type cuda; no other device has them.
#ifndef TARN_BENCH_DEVICE_CUDA_H_
#define TARN_BENCH_DEVICE_CUDA_H_

#include "device_figures.h"

bool device_cuda_is_known(const probe *p);

// "CUDA 13.0": the newest that the driver knows, BENCH_NAME_SIZE bytes; "": it
// is not known.
void device_cuda_version(const probe *p, char *out);

// device_h2d_on_stream beside the driver's own on the same stream.
device_measure device_cuda_copy;

// From and to memory that the driver has pinned: queued, and waited for.
device_measure device_cuda_pinned_h2d;
device_measure device_cuda_pinned_d2h;

// Out of plain memory, by one call.
device_measure device_cuda_pageable_h2d;

#endif  // TARN_BENCH_DEVICE_CUDA_H_
