// folders.h - the folders in which the library looks for what it loads.
//
// They are seen from the file that holds this code, the library or a program
// that the library is linked into. A program may be run out of a folder in
// which others can make a folder, such as /tmp. So a folder counts only if it
// belongs to whom that file belongs to, to the user or to root, and not
// everyone may write there.
#ifndef TARN_BASE_FOLDERS_H_
#define TARN_BASE_FOLDERS_H_

#include <stdbool.h>
#include <stddef.h>

// |folder| is absolute, and no part of it depends on the current directory.
// False: no more folders.
typedef bool tarn__folder_visit(void *context, const char *folder);

// FOLDER/NAME. False if that is longer than PATH_MAX.
bool tarn__folders_join(char *out, const char *folder, const char *name);

// Visits those of the |count| |places| that are there and count, then the
// folder that TARN_PLUGIN_DIR names.
void tarn__folders_visit(const char *const *places, size_t count,
                         tarn__folder_visit *visit, void *context);

// The path of |name| in the first of these folders that has it, in |out|, of
// PATH_MAX bytes. False if none has.
bool tarn__folders_find(const char *const *places, size_t count,
                        const char *name, char *out);

#endif  // TARN_BASE_FOLDERS_H_
