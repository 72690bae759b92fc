// info.h - how a function that is asked for information answers.
#ifndef TARN_TESTS_OPENCL_STANDIN_INFO_H_
#define TARN_TESTS_OPENCL_STANDIN_INFO_H_

#include <stdbool.h>
#include <stddef.h>

#include "api.h"

// Where the answer goes: the last three arguments of such a function.
typedef struct standin_answer {
  size_t size;
  void *value;
  size_t *size_ret;
} standin_answer;

// CL_INVALID_VALUE, a wrong use, if there is room for less than |size|.
cl_int standin_answer_bytes(const standin_answer *answer, const void *bytes,
                            size_t size);
cl_int standin_answer_text(const standin_answer *answer, const char *text);
cl_int standin_answer_uint(const standin_answer *answer, cl_uint value);
cl_int standin_answer_int(const standin_answer *answer, cl_int value);
cl_int standin_answer_bool(const standin_answer *answer, bool value);
cl_int standin_answer_ulong(const standin_answer *answer, cl_ulong value);
cl_int standin_answer_size(const standin_answer *answer, size_t value);
cl_int standin_answer_pointer(const standin_answer *answer, const void *value);

// What a function above the answers returns where it does not know the
// question, so that the next may be asked. None of OpenCL's.
enum { STANDIN_UNKNOWN = 1 };

// The end of each function that is asked: CL_INVALID_VALUE for what nobody
// knew, which is no misuse, since drivers differ in what they know.
cl_int standin_answered(cl_int error);

// CL_INVALID_OPERATION, a wrong use, if the version of OpenCL is below.
cl_int standin_needs_version(int version);

#endif  // TARN_TESTS_OPENCL_STANDIN_INFO_H_
