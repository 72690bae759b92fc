// placed.h - a planned net in memory: blocks, buffers, and the present time.
#ifndef TARN_MODEL_PLACED_H_
#define TARN_MODEL_PLACED_H_

#include "model/model.h"

// Gives everything back, also parameters; NULL members are allowed.
//
// TARN_E_STATE   an access is open: nothing has changed.
// TARN_E_DEVICE  done, but a device refused some memory.
tarn_status tarn__placed_end(tarn_model *model);

#endif  // TARN_MODEL_PLACED_H_
