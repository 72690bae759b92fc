// No kernels: of a vendor for whom there are none, or built without nvcc.
#include "image.h"

const unsigned char tarn__cuda_image[] = {0};
const size_t tarn__cuda_image_size = 0;
