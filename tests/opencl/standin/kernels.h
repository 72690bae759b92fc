// kernels.h - kernels, and the functions that stand for them.
#ifndef TARN_TESTS_OPENCL_STANDIN_KERNELS_H_
#define TARN_TESTS_OPENCL_STANDIN_KERNELS_H_

#include "opencl/standin.h"
#include "regions.h"

enum { STANDIN_ARGUMENTS_MAX = 32, STANDIN_VALUE_MAX = 1024 };

// How an argument was set.
typedef enum standin_how {
  STANDIN_UNSET,
  STANDIN_VALUE,
  STANDIN_LOCAL,    // |size| bytes for each work group
  STANDIN_OBJECT,   // a buffer
  STANDIN_POINTER,  // an address
} standin_how;

typedef struct standin_parameter {
  standin_how how;
  size_t size;
  unsigned char value[STANDIN_VALUE_MAX];
  cl_mem buffer;     // which the kernel does not hold
  uint64_t address;  // 0: NULL
} standin_parameter;

// Addresses that a kernel has beside those in its arguments.
typedef struct standin_pointers {
  uint64_t *items;
  size_t count;
} standin_pointers;

typedef enum standin_list {
  STANDIN_LIST_SVM,
  STANDIN_LIST_USM,
  STANDIN_LIST_ADDRESS,
  STANDIN_LISTS,
} standin_list;

struct _cl_kernel {
  standin_object object;
  cl_program program;
  char name[128];
  standin_parameter parameters[STANDIN_ARGUMENTS_MAX];
  standin_pointers lists[STANDIN_LISTS];
  int indirect;  // sorts of Intel's memory of which all is meant
};

// The function that was added last for the kernel; NULL: none. Without a lock.
const tarn_standin_kernel_entry *standin_kernel_find(const char *name,
                                                     const char *options);
bool standin_kernel_add(const tarn_standin_kernel_entry *entry);

// True if there is one of that name for some options.
bool standin_kernel_known(const char *name);

#endif  // TARN_TESTS_OPENCL_STANDIN_KERNELS_H_
