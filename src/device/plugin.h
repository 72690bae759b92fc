// plugin.h - plug-ins: how one is taken in, and the registry of all.
#ifndef TARN_DEVICE_PLUGIN_H_
#define TARN_DEVICE_PLUGIN_H_

#include "tarn/device.h"
#include "tarn/device_abi.h"

typedef void tarn__init_plugin(CustomRuntimeParams *params);

// A plug-in as the library keeps it. Never freed: its code may be running.
typedef struct tarn__plugin {
  char *type;          // "cuda"
  char *origin;        // path of its shared object, or "built-in"
  bool is_host;        // the built-in cpu: memory is the host's own, no thread
                       // has a current device
  uint32_t functions;  // tarn_device_function bits of what is its own
  C_DeviceInterface abi;       // checked, and without a NULL in it
  C_DeviceInterface abi_sync;  // the same for streams without a handle

  bool initialized;     // guarded by the registry's lock, as all below
  uint32_t generation;  // of the process that initialised it
  size_t *ids;          // what the plug-in calls its devices
  size_t id_count;
} tarn__plugin;

// Takes in a plug-in by its InitPlugin; |origin| says where it came from.
// Caller holds the registry's lock. Errors as tarn_plugin_load.
TARN_MUST_CHECK tarn_status tarn__plugin_create(tarn__init_plugin *init,
                                                const char *origin,
                                                tarn__plugin **out_plugin);

// Frees one that was never initialised.
void tarn__plugin_destroy(tarn__plugin *plugin);

// Initialises |plugin| if that has not happened, and asks what devices it has.
// Caller holds the registry's lock.
//
// TARN_E_STATE   initialised by a parent before a fork.
// TARN_E_DEVICE  the plug-in failed.
TARN_MUST_CHECK tarn_status tarn__plugin_initialize(tarn__plugin *plugin);

// Loads a shared object and finds its InitPlugin. Errors as tarn_plugin_load.
TARN_MUST_CHECK tarn_status tarn__plugin_find_init(const char *path,
                                                   tarn__init_plugin **out_init,
                                                   char **out_path);

// Adds a plug-in that is linked into the program: tests do.
TARN_MUST_CHECK tarn_status tarn__plugin_add(tarn__init_plugin *init,
                                             const char *origin);

#endif  // TARN_DEVICE_PLUGIN_H_
