// The functions that stand for kernels: those that tests add, and those of the
// shared object that a setting names, which is loaded when the first is looked
// for.
#include "kernels.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "api.h"
#include "report.h"
#include "settings.h"

enum { KERNELS_MAX = 256 };

// Guards all below.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const tarn_standin_kernel *all[KERNELS_MAX];
static size_t count;
static char loaded[STANDIN_TEXT_SIZE];

static bool add(const tarn_standin_kernel *kernel) {
  if (count == KERNELS_MAX) return false;
  all[count++] = kernel;
  return true;
}

bool standin_kernel_add(const tarn_standin_kernel *kernel) {
  pthread_mutex_lock(&lock);
  bool added = add(kernel);
  pthread_mutex_unlock(&lock);
  return added;
}

// Once for each value of the setting.
static void load(void) {
  char path[STANDIN_TEXT_SIZE];
  standin_text(STANDIN_KERNELS, path);
  if (path[0] == 0 || strcmp(path, loaded) == 0) return;
  memcpy(loaded, path, sizeof loaded);
  void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const tarn_standin_kernel *table =
      object != NULL ? dlsym(object, "tarn_standin_kernels") : NULL;
  if (table == NULL) {
    standin_wrong(TARN__CU_ERROR_NOT_FOUND, "no kernels: %s", dlerror());
    return;
  }
  while (table->name != NULL && add(table))
    table++;
}

const tarn_standin_kernel *standin_kernel_find(const char *name) {
  const tarn_standin_kernel *found = NULL;
  pthread_mutex_lock(&lock);
  load();
  for (size_t i = count; i-- > 0 && found == NULL;) {
    if (strcmp(all[i]->name, name) == 0) found = all[i];
  }
  pthread_mutex_unlock(&lock);
  return found;
}
