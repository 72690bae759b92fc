// aligned.h - allocations at a multiple of more than the driver promises.
//
// Where a driver cannot align, more is taken and an address within it handed
// out. Only of those does the device keep a note; it is looked for when memory
// is given back, and not at all while there is none.
#ifndef TARN_DEVICE_ALIGNED_H_
#define TARN_DEVICE_ALIGNED_H_

#include <stdatomic.h>

#include "tarn/device.h"

typedef struct tarn__device_aligned {
  tarn_list notes;       // guarded by the device's lock
  _Atomic size_t count;  // of the notes; written under the lock
} tarn__device_aligned;

void tarn__aligned_init(tarn__device_aligned *aligned);

// Frees the notes; what they tell of is not given back.
void tarn__aligned_free(tarn__device_aligned *aligned);

// Whether |addr| of |place| was handed out by a stand-in. If so, |*out_base|
// and |*out_size| are what the driver gave, and the note is gone.
bool tarn__aligned_take_note(tarn_device *device, tarn_place_kind kind,
                             tarn_addr addr, tarn_addr *out_base,
                             size_t *out_size);

// Whether there is such a note, which stays.
bool tarn__aligned_is_noted(tarn_device *device, tarn_place_kind kind,
                            tarn_addr addr);

#endif  // TARN_DEVICE_ALIGNED_H_
