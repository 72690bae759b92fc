// The image that the stand-in takes for a module: all of its kernels.
#include "cuda/image.h"

#include "cuda/standin.h"

const unsigned char tarn__cuda_image[] = TARN_STANDIN_IMAGE;
const size_t tarn__cuda_image_size = sizeof tarn__cuda_image;
