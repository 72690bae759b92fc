// rows.h - gather and scatter where the device has no function for it.
#ifndef TARN_DEVICE_ROWS_H_
#define TARN_DEVICE_ROWS_H_

#include "tarn/device.h"

typedef enum tarn__rows_verb {
  TARN__ROWS_VERB_GATHER,
  TARN__ROWS_VERB_SCATTER,
  TARN__ROWS_VERB_SCATTER_ADD,
} tarn__rows_verb;

// "gather", ...: what the slot is called.
const char *tarn__rows_verb_name(tarn__rows_verb verb);

// Does it by copies; what is on the stream has been waited for. |rows| was
// checked. A bad index is found before any row is moved.
TARN_MUST_CHECK tarn_status tarn__rows_stand_in(tarn_device *device,
                                                tarn__rows_verb verb,
                                                const tarn_rows *rows);

#endif  // TARN_DEVICE_ROWS_H_
