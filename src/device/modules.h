// modules.h - plug-ins that stand where they are found: files tarn_TYPE.so
// beside the library, and in TARN_PLUGIN_DIR.
//
// Nothing is loaded here.
#ifndef TARN_DEVICE_MODULES_H_
#define TARN_DEVICE_MODULES_H_

#include "tarn/base.h"

// The file for |type| in the first folder that has one, to be freed with
// tarn__host_free_text; NULL: no folder has one, or |type| is no name of a
// type.
TARN_MUST_CHECK tarn_status tarn__module_find(const char *type,
                                              char **out_path);

// Writes the folders that are searched, "/a, /b", for an error's text; cut
// where they do not fit. "": none of them is there.
void tarn__module_folders(char *out, size_t out_size);

typedef struct tarn__device_module {
  char *type;  // as the file's name says
  char *path;
  char *reason;        // why it cannot be used; NULL: nobody has tried, or it
  tarn_status status;  // can. Both are the caller's to set, the text to be
                       // freed with the list
} tarn__device_module;

// Zero-filled is an empty list.
typedef struct tarn__device_modules {
  tarn__device_module *items;  // |count| of |capacity|
  size_t count;
  size_t capacity;
} tarn__device_modules;

// Lists the file that tarn__module_find gives for each type, in the order of
// the search, and by name within a folder. TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__modules_list(tarn__device_modules *out);
void tarn__modules_deinit(tarn__device_modules *modules);

#endif  // TARN_DEVICE_MODULES_H_
