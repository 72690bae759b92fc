// Answers to questions: the size that is needed, and the value if there is
// room.
#include "info.h"

#include <string.h>

#include "report.h"
#include "settings.h"

cl_int standin_answer_bytes(const standin_answer *answer, const void *bytes,
                            size_t size) {
  if (answer->value != NULL && answer->size < size) {
    return standin_wrong(CL_INVALID_VALUE, "room for %zu bytes of %zu",
                         answer->size, size);
  }
  if (answer->value != NULL && size > 0) memcpy(answer->value, bytes, size);
  if (answer->size_ret != NULL) *answer->size_ret = size;
  return CL_SUCCESS;
}

cl_int standin_answer_text(const standin_answer *answer, const char *text) {
  return standin_answer_bytes(answer, text, strlen(text) + 1);
}

cl_int standin_answer_uint(const standin_answer *answer, cl_uint value) {
  return standin_answer_bytes(answer, &value, sizeof value);
}

cl_int standin_answer_int(const standin_answer *answer, cl_int value) {
  return standin_answer_bytes(answer, &value, sizeof value);
}

cl_int standin_answer_bool(const standin_answer *answer, bool value) {
  return standin_answer_uint(answer, value ? CL_TRUE : CL_FALSE);
}

cl_int standin_answer_ulong(const standin_answer *answer, cl_ulong value) {
  return standin_answer_bytes(answer, &value, sizeof value);
}

cl_int standin_answer_size(const standin_answer *answer, size_t value) {
  return standin_answer_bytes(answer, &value, sizeof value);
}

cl_int standin_answer_pointer(const standin_answer *answer, const void *value) {
  return standin_answer_bytes(answer, &value, sizeof value);
}

cl_int standin_answered(cl_int error) {
  return error == STANDIN_UNKNOWN ? CL_INVALID_VALUE : error;
}

cl_int standin_needs_version(int version) {
  if (standin_version() >= version) return CL_SUCCESS;
  return standin_wrong(CL_INVALID_OPERATION,
                       "the platform's OpenCL %d.%d does not have it",
                       standin_version() / 10, standin_version() % 10);
}
