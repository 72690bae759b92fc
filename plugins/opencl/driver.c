// The functions of libOpenCL.so.1. They are looked up once and stay: a driver
// that was unloaded would take its threads' code with it.
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char LIBRARY[] = "libOpenCL.so.1";

static struct {
  pthread_mutex_t lock;  // guards all below, but for reads once it is loaded
  bool is_loaded;
  tarn__opencl_driver functions;
  char words[TARN__COMMON_LINE];  // what a driver said last of a context
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

// --- loading ---------------------------------------------------------------

typedef struct entry {
  const char *name;
  size_t offset;
  bool is_optional;
} entry;

#define REQUIRED(name) {"cl" #name, offsetof(tarn__opencl_driver, name), false},
#define OPTIONAL(name) {"cl" #name, offsetof(tarn__opencl_driver, name), true},

static const entry entries[] = {TARN__OPENCL_REQUIRED(REQUIRED)
                                    TARN__OPENCL_OPTIONAL(OPTIONAL)};
enum { ENTRIES = sizeof entries / sizeof *entries };

static bool look_up(void *library, tarn__opencl_driver *out) {
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

static bool load_locked(void) {
  if (driver.is_loaded) return true;
  void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    (void)tarn__text_fail(TARN_E_DEVICE, "%s", dlerror());
    return false;
  }
  driver.is_loaded = look_up(library, &driver.functions);
  if (!driver.is_loaded) dlclose(library);
  return driver.is_loaded;
}

const tarn__opencl_driver *tarn__opencl_load(void) {
  pthread_mutex_lock(&driver.lock);
  bool loaded = load_locked();
  pthread_mutex_unlock(&driver.lock);
  return loaded ? &driver.functions : NULL;
}

const tarn__opencl_driver *tarn__opencl_driver_get(void) {
  return &driver.functions;
}

// --- errors ----------------------------------------------------------------

#define NAME(error) \
  { error, #error }

static const struct {
  cl_int error;
  const char *name;
} names[] = {
    NAME(CL_DEVICE_NOT_FOUND),
    NAME(CL_DEVICE_NOT_AVAILABLE),
    NAME(CL_COMPILER_NOT_AVAILABLE),
    NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    NAME(CL_OUT_OF_RESOURCES),
    NAME(CL_OUT_OF_HOST_MEMORY),
    NAME(CL_MEM_COPY_OVERLAP),
    NAME(CL_BUILD_PROGRAM_FAILURE),
    NAME(CL_MAP_FAILURE),
    NAME(CL_MISALIGNED_SUB_BUFFER_OFFSET),
    NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
    NAME(CL_INVALID_VALUE),
    NAME(CL_INVALID_DEVICE_TYPE),
    NAME(CL_INVALID_PLATFORM),
    NAME(CL_INVALID_DEVICE),
    NAME(CL_INVALID_CONTEXT),
    NAME(CL_INVALID_QUEUE_PROPERTIES),
    NAME(CL_INVALID_COMMAND_QUEUE),
    NAME(CL_INVALID_HOST_PTR),
    NAME(CL_INVALID_MEM_OBJECT),
    NAME(CL_INVALID_BINARY),
    NAME(CL_INVALID_BUILD_OPTIONS),
    NAME(CL_INVALID_PROGRAM),
    NAME(CL_INVALID_PROGRAM_EXECUTABLE),
    NAME(CL_INVALID_KERNEL_NAME),
    NAME(CL_INVALID_KERNEL_DEFINITION),
    NAME(CL_INVALID_KERNEL),
    NAME(CL_INVALID_ARG_INDEX),
    NAME(CL_INVALID_ARG_VALUE),
    NAME(CL_INVALID_ARG_SIZE),
    NAME(CL_INVALID_KERNEL_ARGS),
    NAME(CL_INVALID_WORK_DIMENSION),
    NAME(CL_INVALID_WORK_GROUP_SIZE),
    NAME(CL_INVALID_WORK_ITEM_SIZE),
    NAME(CL_INVALID_GLOBAL_OFFSET),
    NAME(CL_INVALID_EVENT_WAIT_LIST),
    NAME(CL_INVALID_EVENT),
    NAME(CL_INVALID_OPERATION),
    NAME(CL_INVALID_BUFFER_SIZE),
    NAME(CL_INVALID_GLOBAL_WORK_SIZE),
    NAME(CL_INVALID_PROPERTY),
    NAME(CL_PLATFORM_NOT_FOUND_KHR),
};

static const char *name_of(cl_int error) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].error == error) return names[i].name;
  return "an error without a name";
}

void CL_CALLBACK tarn__opencl_hear(const char *words, const void *details,
                                   size_t details_size, void *unused) {
  (void)details;
  (void)details_size;
  (void)unused;
  pthread_mutex_lock(&driver.lock);
  tarn__text_copy(words, driver.words, sizeof driver.words);
  pthread_mutex_unlock(&driver.lock);
}

static void take_words(char out[TARN__COMMON_LINE]) {
  pthread_mutex_lock(&driver.lock);
  tarn__text_copy(driver.words, out, TARN__COMMON_LINE);
  driver.words[0] = '\0';
  pthread_mutex_unlock(&driver.lock);
}

// What the ABI's answers call exhausted, wrong and broken.
static C_Status sort(cl_int error) {
  switch (error) {
    case CL_SUCCESS:
      return C_SUCCESS;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
      return C_FAILED;
    case CL_MEM_COPY_OVERLAP:
      return C_ERROR;
    default:
      return error <= CL_INVALID_VALUE && error > -1000 ? C_ERROR
                                                        : C_INTERNAL_ERROR;
  }
}

C_Status tarn__opencl_say(cl_int error, const char *what) {
  char words[TARN__COMMON_LINE];
  take_words(words);
  (void)tarn__text_fail(TARN_E_DEVICE, "%s: %s (%d)%s%s", what, name_of(error),
                        (int)error, words[0] != '\0' ? ": " : "", words);
  return sort(error);
}

// PoCL's status of whatever fails is -1, which as an error has another meaning.
C_Status tarn__opencl_say_failed(cl_int status, const char *what) {
  if (status != -1) {
    (void)tarn__opencl_say(status, what);
    return C_INTERNAL_ERROR;
  }
  char words[TARN__COMMON_LINE];
  take_words(words);
  (void)tarn__text_fail(TARN_E_DEVICE, "%s failed when it ran (-1)%s%s", what,
                        words[0] != '\0' ? ": " : "", words);
  return C_INTERNAL_ERROR;
}

tarn_status tarn__opencl_answer(C_Status status) {
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
