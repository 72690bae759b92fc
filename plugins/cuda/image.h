// image.h - the kernels of rows.cu as the driver loads them: a fatbin of nvcc's
// (kernels.cmake), or none (no_image.c).
#ifndef TARN_PLUGINS_CUDA_IMAGE_H_
#define TARN_PLUGINS_CUDA_IMAGE_H_

#include <stddef.h>

// |tarn__cuda_image_size| 0: the module was built without kernels.
extern const unsigned char tarn__cuda_image[];
extern const size_t tarn__cuda_image_size;

#endif  // TARN_PLUGINS_CUDA_IMAGE_H_
