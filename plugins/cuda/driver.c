// The functions of the driver's library. They are looked up once and stay: a
// driver that was unloaded would take its threads' code with it.
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>

static struct {
  pthread_mutex_t lock;  // guards all below, but for reads once it is loaded
  bool is_loaded;
  tarn__cuda_driver functions;
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

// --- loading ---------------------------------------------------------------

// The library under the first of its names that is there. |how|: 0, or
// RTLD_NOLOAD for one that the program has loaded. The thread's text is about
// the first name, which is the one that documents tell of.
static void *open_library(int how) {
  const tarn__cuda_vendor *vendor = &tarn__cuda_vendor_of;
  void *library = dlopen(vendor->library, RTLD_NOW | RTLD_LOCAL | how);
  if (library != NULL) return library;
  const char *why = dlerror();
  if (why != NULL) (void)tarn__text_fail(TARN_E_DEVICE, "%s", why);
  for (const char *const *name = vendor->otherwise;
       name != NULL && *name != NULL && library == NULL; name++)
    library = dlopen(*name, RTLD_NOW | RTLD_LOCAL | how);
  return library;
}

static bool load_locked(void) {
  if (driver.is_loaded) return true;
  // Of several releases the program's own: two in a process do not go together.
  void *library = open_library(RTLD_NOLOAD);
  if (library == NULL) library = open_library(0);
  if (library == NULL) return false;
  driver.is_loaded = tarn__cuda_vendor_of.fill(library, &driver.functions);
  if (!driver.is_loaded) dlclose(library);
  return driver.is_loaded;
}

const tarn__cuda_driver *tarn__cuda_load(void) {
  pthread_mutex_lock(&driver.lock);
  bool loaded = load_locked();
  pthread_mutex_unlock(&driver.lock);
  return loaded ? &driver.functions : NULL;
}

const tarn__cuda_driver *tarn__cuda_driver_get(void) {
  return &driver.functions;
}

// --- errors ----------------------------------------------------------------

// What the ABI's answers call exhausted, wrong and broken.
static C_Status sort(tarn__cuda_result error) {
  switch (error) {
    case TARN__CU_SUCCESS:
      return C_SUCCESS;
    case TARN__CU_ERROR_OUT_OF_MEMORY:
    case TARN__CU_ERROR_LAUNCH_OUT_OF_RESOURCES:
      return C_FAILED;
    case TARN__CU_ERROR_INVALID_VALUE:
    case TARN__CU_ERROR_INVALID_DEVICE:
    case TARN__CU_ERROR_INVALID_HANDLE:
    case TARN__CU_ERROR_HOST_MEMORY_ALREADY_REGISTERED:
    case TARN__CU_ERROR_HOST_MEMORY_NOT_REGISTERED:
      return C_ERROR;
    default:
      return C_INTERNAL_ERROR;
  }
}

// |*out| stays where the driver does not know the error.
static void ask_words(tarn__cuda_result error, const char **out_name,
                      const char **out_words) {
  const char *name = NULL;
  const char *words = NULL;
  if (driver.functions.GetErrorName(error, &name) == TARN__CU_SUCCESS &&
      name != NULL) {
    *out_name = name;
  }
  if (driver.functions.GetErrorString(error, &words) == TARN__CU_SUCCESS &&
      words != NULL) {
    *out_words = words;
  }
}

const char *tarn__cuda_name(const char *call) {
  const char *(*name)(const char *) = tarn__cuda_vendor_of.name_call;
  return name != NULL ? name(call) : call;
}

C_Status tarn__cuda_say(tarn__cuda_result error, const char *what) {
  if (error == TARN__CU_SUCCESS) return C_SUCCESS;
  const char *name = "an error that the driver has no name for";
  const char *words = "";
  ask_words(error, &name, &words);
  (void)tarn__text_fail(TARN_E_DEVICE, "%s: %s (%u)%s%s", tarn__cuda_name(what),
                        name, error, *words != '\0' ? ": " : "", words);
  return sort(error);
}

tarn_status tarn__cuda_answer(C_Status status) {
  switch (status) {
    case C_SUCCESS:
      return TARN_OK;
    case C_FAILED:
      return TARN_E_NOMEM;
    case C_ERROR:
      return TARN_E_INVALID;
    default:
      return TARN_E_DEVICE;
  }
}
