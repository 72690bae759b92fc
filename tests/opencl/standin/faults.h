// faults.h - the gate that each function of OpenCL goes through.
#ifndef TARN_TESTS_OPENCL_STANDIN_FAULTS_H_
#define TARN_TESTS_OPENCL_STANDIN_FAULTS_H_

#include <stdbool.h>

#include "api.h"

// Counts a call of |name|. An error if it is to fail: by an injected fault, or
// because the process is a child of the one that asked for devices, where a
// driver hangs.
cl_int standin_enter(const char *name);

// True in such a child.
bool standin_in_child(void);

// Devices were asked for: children of this process may not call any more.
void standin_bind_process(void);

// What a queued command is to end with; 0 for most.
cl_int standin_next_command(void);

void standin_fail_call(const char *name, uint64_t n, cl_int error,
                       bool onwards);
void standin_fail_command(uint64_t n, cl_int status);
uint64_t standin_fault_count(void);
uint64_t standin_call_count(const char *name);
void standin_faults_reset(void);

// Sets the error that a maker returns beside its object.
static inline void standin_tell(cl_int *errcode_ret, cl_int error) {
  if (errcode_ret != NULL) *errcode_ret = error;
}

// The first line of a function that returns a status, and of one that makes.
#define ENTER()                                \
  do {                                         \
    cl_int entered = standin_enter(__func__);  \
    if (entered != CL_SUCCESS) return entered; \
  } while (0)
#define ENTER_MAKER(errcode_ret)              \
  do {                                        \
    cl_int entered = standin_enter(__func__); \
    standin_tell(errcode_ret, entered);       \
    if (entered != CL_SUCCESS) return NULL;   \
  } while (0)

#endif  // TARN_TESTS_OPENCL_STANDIN_FAULTS_H_
