// whose.h - whose memory an address is.
#ifndef TARN_SYNCED_WHOSE_H_
#define TARN_SYNCED_WHOSE_H_

#include "synced/core.h"

// Whether the bytes at |address| can be |core|'s memory at |place|, as far as
// the device knows. Without the gate. A device that cannot be asked is not
// called.
//
// TARN_E_INVALID  they are memory of another place, or of none.
// TARN_E_DEVICE   the driver failed.
TARN_MUST_CHECK tarn_status tarn__whose_check(tarn__synced_core *core,
                                              tarn_place place,
                                              tarn_addr address);

#endif  // TARN_SYNCED_WHOSE_H_
