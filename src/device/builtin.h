// builtin.h - the plug-ins that are linked into the library.
#ifndef TARN_DEVICE_BUILTIN_H_
#define TARN_DEVICE_BUILTIN_H_

#include "device/plugin.h"

// plugins/cpu, compiled under this name instead of InitPlugin.
tarn__init_plugin tarn__cpu_init_plugin;

// plugins/sim, likewise. It does nothing until a device of it is asked for.
tarn__init_plugin tarn__sim_init_plugin;

#endif  // TARN_DEVICE_BUILTIN_H_
