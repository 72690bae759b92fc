// The functions that stand for kernels: those that tests add, and those of the
// shared object that a setting names, which is loaded when the first is looked
// for.
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "kernels.h"
#include "report.h"
#include "settings.h"

enum { FUNCTIONS_MAX = 256 };

// Guards both.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tarn_standin_kernel_entry all[FUNCTIONS_MAX];
static size_t count;

static pthread_once_t once = PTHREAD_ONCE_INIT;

bool standin_kernel_add(const tarn_standin_kernel_entry *entry) {
  pthread_mutex_lock(&lock);
  bool room = count < FUNCTIONS_MAX;
  if (room) all[count++] = *entry;
  pthread_mutex_unlock(&lock);
  return room;
}

static void load(void) {
  char path[STANDIN_TEXT_SIZE];
  standin_text(STANDIN_KERNELS, path);
  if (path[0] == 0) return;
  void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const tarn_standin_kernel_entry *table =
      object != NULL ? dlsym(object, "tarn_standin_kernels") : NULL;
  if (table == NULL) {
    standin_wrong(0, "no kernels: %s", dlerror());
    return;
  }
  for (; table->name != NULL; table++)
    (void)standin_kernel_add(table);
}

static bool fits(const tarn_standin_kernel_entry *entry, const char *name,
                 const char *options) {
  if (strcmp(entry->name, name) != 0) return false;
  return options == NULL || entry->options == NULL ||
         strstr(options, entry->options) != NULL;
}

const tarn_standin_kernel_entry *standin_kernel_find(const char *name,
                                                     const char *options) {
  pthread_once(&once, load);
  const tarn_standin_kernel_entry *found = NULL;
  pthread_mutex_lock(&lock);
  for (size_t i = count; i-- > 0 && found == NULL;) {
    if (fits(&all[i], name, options)) found = &all[i];
  }
  pthread_mutex_unlock(&lock);
  return found;
}

bool standin_kernel_known(const char *name) {
  return standin_kernel_find(name, NULL) != NULL;
}
