// To be written.
#include "base/status.h"
#include "model/placed.h"

tarn_status tarn__placed_end(tarn_model *model) {
  (void)model;
  return TARN_OK;
}
