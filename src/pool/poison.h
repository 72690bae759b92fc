// poison.h - bytes of a block: filled, compared, and hidden from the program.
//
// Through the host where it can touch them, else through the device. All are
// done when the call returns, and need the streams' work to be over.
#ifndef TARN_POOL_POISON_H_
#define TARN_POOL_POISON_H_

#include "tarn/device.h"

TARN_MUST_CHECK tarn_status tarn__poison_fill(tarn_place place,
                                              tarn_addr address, size_t size,
                                              unsigned char value);

// The first of |size| bytes that is not |value|; |*out_offset| is |size| if all
// are.
TARN_MUST_CHECK tarn_status tarn__poison_compare(tarn_place place,
                                                 tarn_addr address, size_t size,
                                                 unsigned char value,
                                                 size_t *out_offset,
                                                 unsigned char *out_byte);

// Tells AddressSanitizer and valgrind, if one of them watches the program, that
// it may not touch these bytes, or may again: then they count as
// uninitialised, or as having the value that they have. Bytes that the host
// cannot touch anyway are left alone.
void tarn__poison_hide(tarn_place place, tarn_addr address, size_t size);
void tarn__poison_show_fresh(tarn_place place, tarn_addr address, size_t size);
void tarn__poison_show(tarn_place place, tarn_addr address, size_t size);

#endif  // TARN_POOL_POISON_H_
