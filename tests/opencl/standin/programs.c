// Programs: the source and the options are kept, and nothing is compiled. What
// a program "is built" of, its binary, holds both.
//
//   binary   TARN STAND-IN BINARY\n  options \0  source \0
#include <stdlib.h>
#include <string.h>

#include "faults.h"
#include "info.h"
#include "objects.h"
#include "report.h"
#include "settings.h"

static const char MAGIC[] = "TARN STAND-IN BINARY\n";

static void end_program(void *object) {
  cl_program program = object;
  free(program->source);
  free(program->options);
  standin_unuse(program->context);
}

// Takes over |source|.
static cl_int make_program(cl_context context, char *source, cl_program *out) {
  cl_int error = standin_check(context, STANDIN_CONTEXT);
  if (error != CL_SUCCESS) return error;
  standin_ends_with(STANDIN_PROGRAM, end_program);
  cl_program made = standin_new(STANDIN_PROGRAM, sizeof(struct _cl_program));
  if (made == NULL) return CL_OUT_OF_HOST_MEMORY;
  made->context = context;
  made->source = source;
  made->status = CL_BUILD_NONE;
  standin_use(context);
  *out = made;
  return CL_SUCCESS;
}

// --- from source -----------------------------------------------------------

static size_t length_of(const char *text, const size_t *lengths, cl_uint i) {
  return lengths != NULL && lengths[i] != 0 ? lengths[i] : strlen(text);
}

static char *join(cl_uint count, const char **strings, const size_t *lengths) {
  size_t size = 1;
  for (cl_uint i = 0; i < count; i++) {
    size += length_of(strings[i], lengths, i);
  }
  char *all = malloc(size);
  if (all == NULL) return NULL;
  size_t at = 0;
  for (cl_uint i = 0; i < count; i++) {
    size_t length = length_of(strings[i], lengths, i);
    memcpy(all + at, strings[i], length);
    at += length;
  }
  all[at] = 0;
  return all;
}

static cl_int check_strings(cl_uint count, const char **strings) {
  if (count == 0 || strings == NULL) {
    return standin_wrong(CL_INVALID_VALUE, "no source");
  }
  for (cl_uint i = 0; i < count; i++) {
    if (strings[i] == NULL) {
      return standin_wrong(CL_INVALID_VALUE, "text %u is NULL", (unsigned)i);
    }
  }
  return CL_SUCCESS;
}

cl_program clCreateProgramWithSource(cl_context context, cl_uint count,
                                     const char **strings,
                                     const size_t *lengths,
                                     cl_int *errcode_ret) {
  ENTER_MAKER(errcode_ret);
  cl_program made = NULL;
  cl_int error = check_strings(count, strings);
  char *source = error == CL_SUCCESS ? join(count, strings, lengths) : NULL;
  if (error == CL_SUCCESS && source == NULL) error = CL_OUT_OF_HOST_MEMORY;
  if (error == CL_SUCCESS) {
    standin_lock();
    error = make_program(context, source, &made);
    standin_unlock();
  }
  if (error != CL_SUCCESS) free(source);
  standin_tell(errcode_ret, error);
  return made;
}

// --- building --------------------------------------------------------------

static bool is_option(const char *word) {
  return strncmp(word, "-D", 2) == 0 || strncmp(word, "-cl-", 4) == 0 ||
         strncmp(word, "-I", 2) == 0 || strcmp(word, "-w") == 0 ||
         strcmp(word, "-Werror") == 0;
}

// "-D NAME" is two words.
static cl_int check_options(const char *options) {
  char *copy = strdup(options);
  if (copy == NULL) return CL_OUT_OF_HOST_MEMORY;
  cl_int error = CL_SUCCESS;
  char *rest = NULL;
  bool takes_next = false;
  for (char *word = strtok_r(copy, " ", &rest);
       word != NULL && error == CL_SUCCESS; word = strtok_r(NULL, " ", &rest)) {
    if (!takes_next && !is_option(word)) {
      error = standin_wrong(CL_INVALID_BUILD_OPTIONS, "option '%s'", word);
    }
    takes_next = strcmp(word, "-D") == 0 || strcmp(word, "-I") == 0;
  }
  free(copy);
  return error;
}

static cl_int check_build(cl_program program, cl_uint count,
                          const cl_device_id *devices) {
  cl_int error = standin_check(program, STANDIN_PROGRAM);
  if (error != CL_SUCCESS) return error;
  if ((count == 0) != (devices == NULL)) {
    return standin_wrong(CL_INVALID_VALUE, "%u devices at %p", (unsigned)count,
                         (const void *)devices);
  }
  for (cl_uint i = 0; i < count; i++) {
    error = standin_check(devices[i], STANDIN_DEVICE);
    if (error != CL_SUCCESS) return error;
  }
  if (program->object.uses == 0) return CL_SUCCESS;
  return standin_wrong(CL_INVALID_OPERATION, "the program has kernels");
}

// A text in the setting is the log of a failure.
static cl_int build(cl_program program, const char *options) {
  char *copy = strdup(options);
  if (copy == NULL) return CL_OUT_OF_HOST_MEMORY;
  if (!program->from_binary) {
    free(program->options);
    program->options = copy;
  } else {
    free(copy);
  }
  standin_text(STANDIN_BUILD_FAILS, program->log);
  program->built = program->log[0] == 0;
  program->status = program->built ? CL_BUILD_SUCCESS : CL_BUILD_ERROR;
  return program->built ? CL_SUCCESS : CL_BUILD_PROGRAM_FAILURE;
}

cl_int clBuildProgram(cl_program program, cl_uint num_devices,
                      const cl_device_id *device_list, const char *options,
                      void(CL_CALLBACK *pfn_notify)(cl_program program,
                                                    void *user_data),
                      void *user_data) {
  ENTER();
  if (options == NULL) options = "";
  cl_int error = check_options(options);
  if (error != CL_SUCCESS) return error;
  standin_lock();
  error = check_build(program, num_devices, device_list);
  if (error == CL_SUCCESS) error = build(program, options);
  standin_unlock();
  if (pfn_notify != NULL) pfn_notify(program, user_data);
  return error;
}

// --- binaries --------------------------------------------------------------

static size_t binary_size(const struct _cl_program *program) {
  if (!program->built) return 0;
  return sizeof MAGIC - 1 + strlen(program->options) + 1 +
         strlen(program->source) + 1;
}

static void write_binary(const struct _cl_program *program,
                         unsigned char *out) {
  size_t options = strlen(program->options) + 1;
  memcpy(out, MAGIC, sizeof MAGIC - 1);
  memcpy(out + sizeof MAGIC - 1, program->options, options);
  memcpy(out + sizeof MAGIC - 1 + options, program->source,
         strlen(program->source) + 1);
}

// NULL if it is none of ours. |out_source| begins in |binary|.
static const char *read_binary(const unsigned char *binary, size_t size,
                               const char **out_source) {
  size_t magic = sizeof MAGIC - 1;
  if (size < magic + 2 || memcmp(binary, MAGIC, magic) != 0) return NULL;
  const char *options = (const char *)binary + magic;
  const char *end = memchr(options, 0, size - magic);
  if (end == NULL || binary[size - 1] != 0) return NULL;
  if (end + 1 >= (const char *)binary + size) return NULL;
  *out_source = end + 1;
  return options;
}

static cl_int from_binary(cl_context context, const unsigned char *binary,
                          size_t size, cl_program *out) {
  const char *source = NULL;
  const char *options = read_binary(binary, size, &source);
  if (options == NULL) return CL_INVALID_BINARY;
  char *source_copy = strdup(source), *options_copy = strdup(options);
  cl_int error = source_copy != NULL && options_copy != NULL
                     ? make_program(context, source_copy, out)
                     : CL_OUT_OF_HOST_MEMORY;
  if (error != CL_SUCCESS) {
    free(source_copy);
    free(options_copy);
    return error;
  }
  (*out)->options = options_copy;
  (*out)->from_binary = true;
  return CL_SUCCESS;
}

// One for all devices: they are all alike here.
cl_program clCreateProgramWithBinary(cl_context context, cl_uint num_devices,
                                     const cl_device_id *device_list,
                                     const size_t *lengths,
                                     const unsigned char **binaries,
                                     cl_int *binary_status,
                                     cl_int *errcode_ret) {
  ENTER_MAKER(errcode_ret);
  if (num_devices == 0 || device_list == NULL || lengths == NULL ||
      binaries == NULL || lengths[0] == 0 || binaries[0] == NULL) {
    standin_tell(errcode_ret, standin_wrong(CL_INVALID_VALUE, "no binary"));
    return NULL;
  }
  cl_program made = NULL;
  standin_lock();
  cl_int error = from_binary(context, binaries[0], lengths[0], &made);
  standin_unlock();
  for (cl_uint i = 0; binary_status != NULL && i < num_devices; i++) {
    binary_status[i] = error;
  }
  standin_tell(errcode_ret, error);
  return made;
}

// --- what is asked ---------------------------------------------------------

cl_int clRetainProgram(cl_program program) {
  ENTER();
  return standin_retain(program, STANDIN_PROGRAM);
}

cl_int clReleaseProgram(cl_program program) {
  ENTER();
  return standin_release(program, STANDIN_PROGRAM);
}

static cl_int answer_binaries(cl_program program, bool sizes,
                              const standin_answer *answer) {
  cl_uint count = program->context->device_count;
  size_t all_sizes[STANDIN_DEVICES_MAX];
  for (cl_uint i = 0; i < count; i++)
    all_sizes[i] = binary_size(program);
  if (sizes) {
    return standin_answer_bytes(answer, all_sizes, count * sizeof *all_sizes);
  }
  if (answer->value != NULL && answer->size < count * sizeof(void *)) {
    return standin_wrong(CL_INVALID_VALUE, "room for %zu bytes of pointers",
                         answer->size);
  }
  unsigned char **places = answer->value;
  for (cl_uint i = 0; places != NULL && program->built && i < count; i++) {
    if (places[i] != NULL) write_binary(program, places[i]);
  }
  if (answer->size_ret != NULL) *answer->size_ret = count * sizeof(void *);
  return CL_SUCCESS;
}

static cl_int answer_program(cl_program program, cl_program_info name,
                             const standin_answer *answer) {
  const struct _cl_context *context = program->context;
  switch (name) {
    case CL_PROGRAM_REFERENCE_COUNT:
      return standin_answer_uint(answer, program->object.refs);
    case CL_PROGRAM_CONTEXT:
      return standin_answer_pointer(answer, context);
    case CL_PROGRAM_NUM_DEVICES:
      return standin_answer_uint(answer, context->device_count);
    case CL_PROGRAM_DEVICES:
      return standin_answer_bytes(
          answer, context->devices,
          context->device_count * sizeof *context->devices);
    case CL_PROGRAM_SOURCE:
      return standin_answer_text(answer,
                                 program->from_binary ? "" : program->source);
    case CL_PROGRAM_BINARY_SIZES:
      return answer_binaries(program, true, answer);
    case CL_PROGRAM_BINARIES:
      return answer_binaries(program, false, answer);
    default:
      return STANDIN_UNKNOWN;
  }
}

cl_int clGetProgramInfo(cl_program program, cl_program_info param_name,
                        size_t param_value_size, void *param_value,
                        size_t *param_value_size_ret) {
  ENTER();
  const standin_answer answer = {param_value_size, param_value,
                                 param_value_size_ret};
  standin_lock();
  cl_int error = standin_check(program, STANDIN_PROGRAM);
  if (error == CL_SUCCESS) error = answer_program(program, param_name, &answer);
  standin_unlock();
  return standin_answered(error);
}

static cl_int answer_build(cl_program program, cl_program_build_info name,
                           const standin_answer *answer) {
  switch (name) {
    case CL_PROGRAM_BUILD_STATUS:
      return standin_answer_int(answer, program->status);
    case CL_PROGRAM_BUILD_OPTIONS:
      return standin_answer_text(
          answer, program->options != NULL ? program->options : "");
    case CL_PROGRAM_BUILD_LOG:
      return standin_answer_text(answer, program->log);
    case CL_PROGRAM_BINARY_TYPE:
      return standin_answer_uint(answer, program->built
                                             ? CL_PROGRAM_BINARY_TYPE_EXECUTABLE
                                             : CL_PROGRAM_BINARY_TYPE_NONE);
    default:
      return STANDIN_UNKNOWN;
  }
}

cl_int clGetProgramBuildInfo(cl_program program, cl_device_id device,
                             cl_program_build_info param_name,
                             size_t param_value_size, void *param_value,
                             size_t *param_value_size_ret) {
  ENTER();
  const standin_answer answer = {param_value_size, param_value,
                                 param_value_size_ret};
  standin_lock();
  cl_int error = standin_check(program, STANDIN_PROGRAM);
  if (error == CL_SUCCESS) error = standin_check(device, STANDIN_DEVICE);
  if (error == CL_SUCCESS) error = answer_build(program, param_name, &answer);
  standin_unlock();
  return standin_answered(error);
}
