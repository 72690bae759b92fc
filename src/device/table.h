// table.h - a plug-in's function table: checked and completed once, at load.
//
// After tarn__table_complete no slot below byte 472 that Tarn calls is NULL:
// what a plug-in leaves out has become a stand-in of the same signature. A
// stand-in finds Tarn's own object by the handle that it is given, since the
// handle that every call passes is the one inside tarn_device.
#ifndef TARN_DEVICE_TABLE_H_
#define TARN_DEVICE_TABLE_H_

#include "tarn/device.h"
#include "tarn/device_abi.h"

// What a stand-in answers where there is nothing to stand in with: a number
// that no plug-in answers by chance.
#define TARN__C_UNSUPPORTED ((C_Status)0x5461726e)

// Refuses a table that lacks a required function or has half of a pair;
// |origin| is for the error's text.
//
// TARN_E_UNSUPPORTED  the text names the function.
TARN_MUST_CHECK tarn_status tarn__table_check(const C_DeviceInterface *abi,
                                              const char *origin);

// Fills every NULL with its stand-in; returns the tarn_device_function bits of
// what was the plug-in's own.
uint32_t tarn__table_complete(C_DeviceInterface *abi);

// Of a completed table makes the one for streams whose native handle is NULL:
// nothing is ever queued on them.
void tarn__table_make_sync(C_DeviceInterface *abi);

// memory_copy_p2p's stand-in, which also serves between different plug-ins:
// d2h + h2d through the source's staging ring, in pieces.
C_Status tarn__table_copy_p2p(const C_Device dst_device,
                              const C_Device src_device, void *dst,
                              const void *src, size_t size);

#endif  // TARN_DEVICE_TABLE_H_
