// plugin.h - plug-ins: how one is taken in, and the registry of all.
#ifndef TARN_DEVICE_PLUGIN_H_
#define TARN_DEVICE_PLUGIN_H_

#include "tarn/device.h"
#include "tarn/device_abi.h"
#include "tarn/device_ext.h"

// What a plug-in exports.
typedef struct tarn__device_plugin_entry {
  tarn_plugin_init *init;
  tarn_device_ext_function *ext;  // NULL: it has no extension
} tarn__device_plugin_entry;

// A plug-in as the library keeps it. Never freed: its code may be running.
typedef struct tarn__device_plugin {
  char *type;          // "cuda"
  char *origin;        // path of its shared object, "built-in", or the name
                       // that it was registered with
  bool is_host;        // the built-in cpu: memory is the host's own, no thread
                       // has a current device
  uint32_t functions;  // tarn_device_function bits of what is its own
  C_DeviceInterface own;       // checked; NULL is what it does not have
  C_DeviceInterface abi;       // the same, and without a NULL in it
  C_DeviceInterface abi_sync;  // the same for streams without a handle
  tarn_device_ext ext;         // checked; NULL is what it does not have

  bool initialized;     // guarded by the registry's lock, as all below
  uint32_t generation;  // of the process that initialised it
  size_t *ids;          // what the plug-in calls its devices
  size_t id_count;
} tarn__device_plugin;

// Takes in a plug-in; |origin| says where it came from. Not in the registry:
// whoever created it keeps it. Errors as tarn_plugin_load.
TARN_MUST_CHECK tarn_status
tarn__plugin_create(tarn__device_plugin_entry entry, const char *origin,
                    tarn__device_plugin **out_plugin);

// Frees one that was never initialised.
void tarn__plugin_destroy(tarn__device_plugin *plugin);

// Initialises |plugin| if that has not happened, and asks what devices it has.
// Caller holds the registry's lock.
//
// TARN_E_STATE   initialised by a parent before a fork.
// TARN_E_DEVICE  the plug-in failed.
TARN_MUST_CHECK tarn_status
tarn__plugin_initialize(tarn__device_plugin *plugin);

// Loads a shared object and finds what it exports; |*out_path|, to be freed
// with tarn__host_free_text, is where it was found. Errors as tarn_plugin_load.
TARN_MUST_CHECK tarn_status tarn__plugin_find(
    const char *path, tarn__device_plugin_entry *out_entry, char **out_path);

// What the built-in plug-in of |type| exports; false if there is none.
bool tarn__plugin_find_builtin(const char *type,
                               tarn__device_plugin_entry *out_entry);

#endif  // TARN_DEVICE_PLUGIN_H_
