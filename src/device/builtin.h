// builtin.h - the plug-ins that are linked into the library.
#ifndef TARN_DEVICE_BUILTIN_H_
#define TARN_DEVICE_BUILTIN_H_

#include "device/plugin.h"

// plugins/cpu, compiled under these names instead of
// InitPlugin and TarnDeviceExt.
tarn_plugin_init tarn__cpu_init_plugin;
tarn_device_ext_function tarn__cpu_device_ext;

// plugins/sim, likewise. It does nothing until a device of it is asked for.
tarn_plugin_init tarn__sim_init_plugin;
tarn_device_ext_function tarn__sim_device_ext;

#endif  // TARN_DEVICE_BUILTIN_H_
