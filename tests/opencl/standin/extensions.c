// Functions of extensions, found by name; none of an extension that the
// platform does not have.
#include <string.h>

#include "faults.h"
#include "objects.h"
#include "settings.h"

typedef void (*any_function)(void);

// Each has the type of its declaration, which its caller casts back to.
static const struct {
  const char *name;
  any_function function;
  bool (*is_there)(void);
} TABLE[] = {
    {"clHostMemAllocINTEL", (any_function)clHostMemAllocINTEL, standin_has_usm},
    {"clDeviceMemAllocINTEL", (any_function)clDeviceMemAllocINTEL,
     standin_has_usm},
    {"clSharedMemAllocINTEL", (any_function)clSharedMemAllocINTEL,
     standin_has_usm},
    {"clMemFreeINTEL", (any_function)clMemFreeINTEL, standin_has_usm},
    {"clMemBlockingFreeINTEL", (any_function)clMemBlockingFreeINTEL,
     standin_has_usm},
    {"clGetMemAllocInfoINTEL", (any_function)clGetMemAllocInfoINTEL,
     standin_has_usm},
    {"clSetKernelArgMemPointerINTEL",
     (any_function)clSetKernelArgMemPointerINTEL, standin_has_usm},
    {"clEnqueueMemFillINTEL", (any_function)clEnqueueMemFillINTEL,
     standin_has_usm},
    {"clEnqueueMemcpyINTEL", (any_function)clEnqueueMemcpyINTEL,
     standin_has_usm},
    {"clSetKernelArgDevicePointerEXT",
     (any_function)clSetKernelArgDevicePointerEXT, standin_has_address},
};

// C has no cast from a function to void *, POSIX has the representation.
static void *as_pointer(any_function function) {
  void *pointer = NULL;
  memcpy(&pointer, &function, sizeof pointer);
  return pointer;
}

static void *find(const char *name) {
  for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++) {
    if (strcmp(TABLE[i].name, name) == 0) {
      return TABLE[i].is_there() ? as_pointer(TABLE[i].function) : NULL;
    }
  }
  return NULL;
}

void *clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
                                               const char *func_name) {
  ENTER_MAKER(NULL);
  standin_lock();
  cl_int error = standin_check(platform, STANDIN_PLATFORM);
  standin_unlock();
  return error == CL_SUCCESS && func_name != NULL ? find(func_name) : NULL;
}

void *clGetExtensionFunctionAddress(const char *func_name) {
  ENTER_MAKER(NULL);
  return func_name != NULL ? find(func_name) : NULL;
}
