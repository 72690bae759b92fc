// object.h - shared objects that are loaded at run time.
#ifndef TARN_BASE_OBJECT_H_
#define TARN_BASE_OBJECT_H_

#include "tarn/base.h"

// Loads the shared object at |path|, which is absolute, or a file name without
// '/' that stands in the directory named by TARN_PLUGIN_DIR. |what| says in
// texts what it is to be. |*out_path|, to be freed with tarn__host_free_text,
// is where it was found.
//
// TARN_E_INVALID  |path| is neither of the two.
// TARN_E_IO       the system cannot load it; the text says why.
TARN_MUST_CHECK tarn_status tarn__object_open(const char *what,
                                              const char *path,
                                              void **out_handle,
                                              char **out_path);

// Unloads it: only while nothing of it has been called.
void tarn__object_close(void *handle);

// The address of what it exports under |name|; NULL if it does not.
void *tarn__object_symbol(void *handle, const char *name);

#endif  // TARN_BASE_OBJECT_H_
