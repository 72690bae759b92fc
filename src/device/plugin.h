// plugin.h - plug-ins: loading, checking and completing one, at load; and the
// plug-ins that are linked into the library.
//
// tarn__table_complete replaces a missing function by a stand-in of the same
// signature. Some functions have none and stay NULL: unified memory, sizes, the
// list of devices, and what needs the handle of a stream or event. Tarn checks
// for those before it calls them. A stand-in finds Tarn's object by the handle
// that it is given, since every call passes the handle inside tarn_device.
#ifndef TARN_DEVICE_PLUGIN_H_
#define TARN_DEVICE_PLUGIN_H_

#include <string.h>

#include "base/status.h"
#include "tarn/device.h"
#include "tarn/device_abi.h"
#include "tarn/device_ext.h"

// The functions that a plug-in exports.
typedef struct tarn__device_plugin_entry {
  tarn_plugin_init *init;
  tarn_device_ext_function *ext;  // NULL: it has no extension
} tarn__device_plugin_entry;

enum { TARN__TYPE_MAX = 63 };  // bytes of a type's name, without the NUL

// Whether |type| can stand in front of ":0", in messages and in names of files.
static inline bool tarn__plugin_is_type(const char *type) {
  size_t length = strnlen(type, TARN__TYPE_MAX + 1);
  if (length == 0 || length > TARN__TYPE_MAX) return false;
  return strspn(type,
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                "0123456789_-.") == length;
}

// A plug-in as the library keeps it. Never freed: its code may be running.
typedef struct tarn__device_plugin {
  char *type;          // "cuda"
  char *origin;        // path of its shared object, "built-in", or the name
                       // that it was registered with
  bool is_host;        // the built-in cpu: memory is the host's own, no thread
                       // has a current device
  bool is_found;       // by the name of its file: nobody has asked for it
  uint32_t functions;  // tarn_device_function bits of what is its own
  C_DeviceInterface own;  // checked; functions that it lacks are NULL
  C_DeviceInterface abi;  // the same with stand-ins
  tarn_device_ext ext;    // checked; slots that it lacks are NULL

  bool initialized;     // guarded by the registry's lock, as all below
  uint32_t generation;  // of the process that initialised it
  size_t *ids;          // the plug-in's numbers of its devices
  size_t id_count;
} tarn__device_plugin;

// Checks a plug-in and completes its tables; |origin| is for error texts. The
// registry does not know it: it is the caller's. Errors as tarn_plugin_load.
TARN_MUST_CHECK tarn_status
tarn__plugin_create(tarn__device_plugin_entry entry, const char *origin,
                    tarn__device_plugin **out_plugin);

// Frees a plug-in that was never initialised.
void tarn__plugin_destroy(tarn__device_plugin *plugin);

// Initialises |plugin| at the first call, and lists its devices.
// Caller holds the registry's lock.
//
// TARN_E_STATE   initialised by a parent before a fork.
// TARN_E_DEVICE  the plug-in failed.
TARN_MUST_CHECK tarn_status
tarn__plugin_initialize(tarn__device_plugin *plugin);

// Loads a shared object and finds its functions. |*out_path|, which the caller
// frees with tarn__host_free_text, is its path. Errors as tarn_plugin_load.
TARN_MUST_CHECK tarn_status tarn__plugin_find(
    const char *path, tarn__device_plugin_entry *out_entry, char **out_path);

// The functions of the built-in plug-in of |type|; false if there is none.
bool tarn__plugin_find_builtin(const char *type,
                               tarn__device_plugin_entry *out_entry);

// --- those that are known --------------------------------------------------
// They are never removed, so that a plug-in stays good without the lock.

// Loads the module at |path| and makes its |type| known, unless it is.
//
// TARN_E_UNSUPPORTED  as tarn_plugin_load, or it has another type.
// TARN_E_STATE        called from within a plug-in, or a stream's callback.
// Others as tarn_plugin_load.
TARN_MUST_CHECK tarn_status tarn__plugin_take_module(const char *path,
                                                     const char *type);

// The |index|-th; NULL: there are no more. |*out_started| is the answer of
// tarn__plugin_initialize, whose text is then the last error.
TARN_MUST_CHECK tarn_status tarn__plugin_at(size_t index,
                                            tarn__device_plugin **out_plugin,
                                            tarn_status *out_started);

// --- the tables ------------------------------------------------------------
// Either is a struct of pointers to functions, in which a place is an offset.

typedef struct tarn__device_table_entry {
  size_t offset;
  const char *name;
} tarn__device_table_entry;

#define TARN__ABI_ENTRY(function) \
  { offsetof(C_DeviceInterface, function), #function }
#define TARN__EXT_ENTRY(slot) \
  { offsetof(tarn_device_ext, slot), #slot }

// A function of any type. A pointer to it is cast to the function's own type
// before the call.
typedef void tarn__device_any_function(void);

// The function of |table| at |offset|; NULL: it has none.
static inline tarn__device_any_function *tarn__table_at(const void *table,
                                                        size_t offset) {
  tarn__device_any_function *function = NULL;
  memcpy(&function, (const char *)table + offset, sizeof function);
  return function;
}

// Refuses a table that lacks a required function or has half of a pair;
// |origin| is for the error's text.
//
// TARN_E_UNSUPPORTED  the text names the function.
TARN_MUST_CHECK tarn_status tarn__table_check(const C_DeviceInterface *abi,
                                              const char *origin);

// Copies the known slots of |offered| (may be NULL) to |*out| and sets the
// others to NULL. A table of another version is ignored, with a log message.
//
// TARN_E_UNSUPPORTED  part of a set of slots is missing, or the size is not
//                     that of a table: the text names it.
TARN_MUST_CHECK tarn_status tarn__extension_take(const tarn_device_ext *offered,
                                                 const char *origin,
                                                 tarn_device_ext *out);

// ": " and what the driver says of the thread's last failed call, or of
// |stream|; "" if it says nothing.
typedef struct tarn__device_words {
  char text[TARN__ERROR_TEXT];
} tarn__device_words;

// Asks for them. Returns the text of |out|.
const char *tarn__extension_words(const tarn_device_ext *ext, int id,
                                  C_Stream stream, tarn__device_words *out);

// The tarn_device_function bits of a table that is not completed, and the
// tarn_device_extension bits.
uint32_t tarn__table_bits(const C_DeviceInterface *abi);
uint32_t tarn__extension_bits(const tarn_device_ext *ext);

// --- stand-ins -------------------------------------------------------------
// Replaces every NULL that has a stand-in. Returns the tarn_device_function
// bits of the plug-in's own functions.
uint32_t tarn__table_complete(C_DeviceInterface *abi);

// Copies between devices that cannot access each other: d2h and h2d through the
// staging memory of the source, in pieces. |*out_at| is the device that
// answered last, whose text a failure quotes.
C_Status tarn__table_copy_across(const C_Device dst_device,
                                 const C_Device src_device, void *dst,
                                 const void *src, size_t size,
                                 tarn_device **out_at);

// --- plug-ins in the library -----------------------------------------------

// plugins/cpu, compiled with these names in place of InitPlugin and
// TarnDeviceExt.
tarn_plugin_init tarn__cpu_init_plugin;
tarn_device_ext_function tarn__cpu_device_ext;

// plugins/sim, likewise. It does nothing until a simulated device is opened.
tarn_plugin_init tarn__sim_init_plugin;
tarn_device_ext_function tarn__sim_device_ext;

#endif  // TARN_DEVICE_PLUGIN_H_
