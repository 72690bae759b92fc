// rows.h - gather and scatter where the device has no function for it.
#ifndef TARN_DEVICE_ROWS_H_
#define TARN_DEVICE_ROWS_H_

#include "base/rows.h"
#include "tarn/device.h"

// "gather", ...: the name of the function.
const char *tarn__rows_action_name(tarn__rows_action action);

// Moves the rows by copies, after the stream was waited for. |rows| was
// checked. A bad index is found before any row is moved.
TARN_MUST_CHECK tarn_status tarn__rows_stand_in(tarn_device *device,
                                                tarn__rows_action action,
                                                const tarn_rows *rows);

#endif  // TARN_DEVICE_ROWS_H_
