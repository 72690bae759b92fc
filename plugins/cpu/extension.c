// What the cpu plug-in has beyond the ABI.
#include "tarn/device_ext.h"

static const tarn_device_ext ext = {
    .struct_size = sizeof ext,
    .version = TARN_DEVICE_EXT_VERSION,
};

const tarn_device_ext *TarnDeviceExt(void) {
  return &ext;
}
