// names.h - a map from names to pointers, O(1), in order of adding.
//
// Open addressing over the entries' hashes; entries stand in one array in the
// order in which they came. Names are copied. Not locked.
#ifndef TARN_BASE_NAMES_H_
#define TARN_BASE_NAMES_H_

#include "tarn/base.h"

typedef struct tarn__name {
  char *name;
  void *value;
  uint64_t hash;
} tarn__name;

// Zero-filled is an empty map.
typedef struct tarn__names {
  tarn__name *entries;  // |count| of |capacity|
  size_t count;
  size_t capacity;
  uint32_t *slots;  // index + 1 into entries, 0: empty; 2 x capacity of them
} tarn__names;

void tarn__names_deinit(tarn__names *names);

// TARN_E_INVALID  NULL, empty, or already there.
// TARN_E_NOMEM    nothing was added.
TARN_MUST_CHECK tarn_status tarn__names_add(tarn__names *names,
                                            const char *name, void *value);

// The entry of |name|, or NULL. Moves when a name is added.
tarn__name *tarn__names_find(const tarn__names *names, const char *name);

// Writes "a, b, c" for an error's text; cut where it does not fit.
void tarn__names_text(const tarn__names *names, char *out, size_t out_size);

#endif  // TARN_BASE_NAMES_H_
