// extension.h - a plug-in's extension table: taken in and checked, at load.
#ifndef TARN_DEVICE_EXTENSION_H_
#define TARN_DEVICE_EXTENSION_H_

#include "tarn/device.h"
#include "tarn/device_ext.h"

// Copies what |offered| (NULL: nothing) has of the slots known here to |*out|;
// the others are NULL there. A table of another version is left unused, which
// is logged.
//
// TARN_E_UNSUPPORTED  part of a set whose slots come all or none, or a size
//                     that is no table's: the text names it.
TARN_MUST_CHECK tarn_status tarn__extension_take(const tarn_device_ext *offered,
                                                 const char *origin,
                                                 tarn_device_ext *out);

// The tarn_device_extension bits of a table.
uint32_t tarn__extension_bits(const tarn_device_ext *ext);

#endif  // TARN_DEVICE_EXTENSION_H_
