// picture.h - a plan as a picture: bytes over time, each part a box.
#ifndef TARN_EXAMPLES_NETS_PICTURE_H_
#define TARN_EXAMPLES_NETS_PICTURE_H_

#include <tarn/tarn.h>

// Writes the plan of |model| as SVG to the file |path|. False: the system
// refused, and errno says why; or, with errno 0, the model is not planned.
bool net_picture_write(tarn_model *model, const char *path);

#endif  // TARN_EXAMPLES_NETS_PICTURE_H_
