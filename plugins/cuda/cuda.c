// NVIDIA's driver: its library, and the names that it exports.
//
// The names are those with the version at their end, which cuda.h hides behind
// macros: dlsym of a plain cuMemAlloc gives a function of 2008 that takes sizes
// of 32 bits.
#include <dlfcn.h>
#include <string.h>

#include "driver.h"

static const char LIBRARY[] = "libcuda.so.1";

typedef struct entry {
  const char *name;
  size_t offset;
  bool is_optional;
} entry;

#define REQUIRED(field, cuda, hip, arguments) \
  {#cuda, offsetof(tarn__cuda_driver, field), false},
#define OPTIONAL(field, cuda, hip, arguments) \
  {#cuda, offsetof(tarn__cuda_driver, field), true},

static const entry entries[] = {TARN__CU_REQUIRED(REQUIRED)
                                    TARN__CU_OPTIONAL(OPTIONAL)};
enum { ENTRIES = sizeof entries / sizeof *entries };

static bool fill(void *library, tarn__cuda_driver *out) {
  for (size_t i = 0; i < ENTRIES; i++) {
    const entry *e = &entries[i];
    void *symbol = dlsym(library, e->name);
    if (symbol == NULL && !e->is_optional) {
      (void)tarn__text_fail(TARN_E_DEVICE, "%s: it has no %s", LIBRARY,
                            e->name);
      return false;
    }
    memcpy((char *)out + e->offset, &symbol, sizeof symbol);
  }
  return true;
}

static char type[] = "cuda";

const tarn__cuda_vendor tarn__cuda_vendor_of = {
    .type = type, .library = LIBRARY, .fill = fill, .has_kernels = true};
