// Kernels: their arguments, and the memory that they use beside those.
//
// What is an 8-byte argument of clSetKernelArg, a buffer or a number? A
// compiler would know. The letters of the entry say it, and without them a
// handle that lives, or has lived, is a buffer.
#include "kernels.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults.h"
#include "info.h"
#include "report.h"
#include "settings.h"

// --- making ----------------------------------------------------------------

static void end_kernel(void *object) {
  cl_kernel kernel = object;
  for (size_t i = 0; i < STANDIN_LISTS; i++)
    free(kernel->lists[i].items);
  standin_unuse(kernel->program);
}

static bool is_word_part(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

static bool has_word(const char *text, const char *word) {
  size_t length = strlen(word);
  for (const char *at = strstr(text, word); at != NULL;
       at = strstr(at + 1, word)) {
    bool begins = at == text || !is_word_part(at[-1]);
    if (begins && !is_word_part(at[length])) return true;
  }
  return false;
}

// A name that the preprocessor puts together is known by its function.
static bool has_kernel(const struct _cl_program *program, const char *name) {
  return has_word(program->source, name) || standin_kernel_known(name);
}

static cl_int make_kernel(cl_program program, const char *name,
                          cl_kernel *out) {
  cl_int error = standin_check(program, STANDIN_PROGRAM);
  if (error != CL_SUCCESS) return error;
  if (name == NULL) return standin_wrong(CL_INVALID_VALUE, "no name");
  if (!program->built) {
    return standin_wrong(CL_INVALID_PROGRAM_EXECUTABLE,
                         "the program is not built");
  }
  if (!has_kernel(program, name) || strlen(name) >= sizeof(*out)->name) {
    return standin_wrong(CL_INVALID_KERNEL_NAME, "no kernel '%s'", name);
  }
  standin_ends_with(STANDIN_KERNEL, end_kernel);
  cl_kernel made = standin_new(STANDIN_KERNEL, sizeof(struct _cl_kernel));
  if (made == NULL) return CL_OUT_OF_HOST_MEMORY;
  made->program = program;
  snprintf(made->name, sizeof made->name, "%s", name);
  standin_use(program);
  *out = made;
  return CL_SUCCESS;
}

cl_kernel clCreateKernel(cl_program program, const char *kernel_name,
                         cl_int *errcode_ret) {
  ENTER_MAKER(errcode_ret);
  cl_kernel made = NULL;
  standin_lock();
  cl_int error = make_kernel(program, kernel_name, &made);
  standin_unlock();
  standin_tell(errcode_ret, error);
  return made;
}

cl_int clRetainKernel(cl_kernel kernel) {
  ENTER();
  return standin_retain(kernel, STANDIN_KERNEL);
}

cl_int clReleaseKernel(cl_kernel kernel) {
  ENTER();
  return standin_release(kernel, STANDIN_KERNEL);
}

// --- arguments -------------------------------------------------------------

// The letters of the kernel's entry; NULL: nobody says.
static const char *letters_of(const struct _cl_kernel *kernel) {
  const tarn_standin_kernel_entry *entry =
      standin_kernel_find(kernel->name, kernel->program->options);
  return entry != NULL ? entry->arguments : NULL;
}

static cl_int check_index(const struct _cl_kernel *kernel, cl_uint index) {
  const char *letters = letters_of(kernel);
  size_t count = letters != NULL ? strlen(letters) : STANDIN_ARGUMENTS_MAX;
  if (index < count) return CL_SUCCESS;
  return standin_wrong(CL_INVALID_ARG_INDEX, "argument %u of %zu of '%s'",
                       (unsigned)index, count, kernel->name);
}

// True if the bytes are a handle of a buffer, also of one of old.
static bool holds_buffer(const void *value, size_t size, cl_mem *out) {
  if (size != sizeof *out || value == NULL) return false;
  memcpy(out, value, sizeof *out);
  return standin_is(*out, STANDIN_BUFFER) || standin_was(*out, STANDIN_BUFFER);
}

static cl_int set_memory(const struct _cl_kernel *kernel, cl_uint index,
                         size_t size, const void *value,
                         standin_parameter *out) {
  cl_mem buffer = NULL;
  if (size != sizeof buffer) {
    return standin_wrong(CL_INVALID_ARG_SIZE,
                         "argument %u of '%s' is memory, not %zu bytes",
                         (unsigned)index, kernel->name, size);
  }
  if (value != NULL) memcpy(&buffer, value, sizeof buffer);
  if (buffer != NULL) {
    cl_int error = standin_check(buffer, STANDIN_BUFFER);
    if (error != CL_SUCCESS) return error;
  }
  if (buffer != NULL && buffer->context != kernel->program->context) {
    return standin_wrong(CL_INVALID_MEM_OBJECT,
                         "buffer %p is of another context", (void *)buffer);
  }
  *out = (standin_parameter){
      .how = buffer != NULL ? STANDIN_OBJECT : STANDIN_POINTER,
      .size = size,
      .buffer = buffer};
  return CL_SUCCESS;
}

static cl_int set_value(const struct _cl_kernel *kernel, cl_uint index,
                        size_t size, const void *value,
                        standin_parameter *out) {
  if (size == 0 || (value != NULL && size > STANDIN_VALUE_MAX)) {
    return standin_wrong(CL_INVALID_ARG_SIZE, "argument %u of '%s': %zu bytes",
                         (unsigned)index, kernel->name, size);
  }
  *out = (standin_parameter){
      .how = value != NULL ? STANDIN_VALUE : STANDIN_LOCAL, .size = size};
  if (value != NULL) memcpy(out->value, value, size);
  return CL_SUCCESS;
}

static cl_int set_argument(cl_kernel kernel, cl_uint index, size_t size,
                           const void *value) {
  cl_int error = standin_check(kernel, STANDIN_KERNEL);
  if (error != CL_SUCCESS) return error;
  error = check_index(kernel, index);
  if (error != CL_SUCCESS) return error;
  const char *letters = letters_of(kernel);
  cl_mem buffer = NULL;
  bool memory = letters != NULL ? letters[index] == 'm'
                                : holds_buffer(value, size, &buffer);
  return memory ? set_memory(kernel, index, size, value,
                             &kernel->parameters[index])
                : set_value(kernel, index, size, value,
                            &kernel->parameters[index]);
}

cl_int clSetKernelArg(cl_kernel kernel, cl_uint arg_index, size_t arg_size,
                      const void *arg_value) {
  ENTER();
  standin_lock();
  cl_int error = set_argument(kernel, arg_index, arg_size, arg_value);
  standin_unlock();
  return error;
}

// |sorts| 0: any address, also one of nothing.
static cl_int set_pointer(cl_kernel kernel, cl_uint index, uint64_t address,
                          int sorts) {
  cl_int error = standin_check(kernel, STANDIN_KERNEL);
  if (error != CL_SUCCESS) return error;
  error = check_index(kernel, index);
  if (error != CL_SUCCESS) return error;
  const char *letters = letters_of(kernel);
  if (letters != NULL && letters[index] != 'm') {
    return standin_wrong(CL_INVALID_ARG_VALUE,
                         "argument %u of '%s' is no memory", (unsigned)index,
                         kernel->name);
  }
  standin_bytes bytes;
  if (address != 0 && sorts != 0 &&
      standin_region_bytes(kernel->program->context,
                           (const void *)(uintptr_t)address, 0, sorts, false,
                           &bytes) != CL_SUCCESS) {
    return CL_INVALID_ARG_VALUE;
  }
  kernel->parameters[index] = (standin_parameter){
      .how = STANDIN_POINTER, .size = sizeof address, .address = address};
  return CL_SUCCESS;
}

static cl_int set_pointer_locked(cl_kernel kernel, cl_uint index,
                                 uint64_t address, int sorts) {
  standin_lock();
  cl_int error = set_pointer(kernel, index, address, sorts);
  standin_unlock();
  return error;
}

static cl_int lacks_extension(void) {
  return standin_wrong(CL_INVALID_OPERATION,
                       "the platform does not have the extension");
}

cl_int clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint arg_index,
                                const void *arg_value) {
  ENTER();
  cl_int error = standin_needs_version(20);
  if (error != CL_SUCCESS) return error;
  return set_pointer_locked(kernel, arg_index, (uint64_t)(uintptr_t)arg_value,
                            STANDIN_ANY_SVM);
}

cl_int clSetKernelArgMemPointerINTEL(cl_kernel kernel, cl_uint arg_index,
                                     const void *arg_value) {
  ENTER();
  if (!standin_has_usm()) return lacks_extension();
  return set_pointer_locked(kernel, arg_index, (uint64_t)(uintptr_t)arg_value,
                            STANDIN_ANY_USM);
}

// The extension allows each value: one of nothing may only not be used.
cl_int clSetKernelArgDevicePointerEXT(cl_kernel kernel, cl_uint arg_index,
                                      cl_mem_device_address_ext arg_value) {
  ENTER();
  if (!standin_has_address()) return lacks_extension();
  return set_pointer_locked(kernel, arg_index, arg_value, 0);
}

// --- clSetKernelExecInfo ---------------------------------------------------

static cl_int check_pointers(const struct _cl_kernel *kernel,
                             const uint64_t *items, size_t count, int sorts) {
  for (size_t i = 0; i < count; i++) {
    standin_bytes bytes;
    cl_int error = standin_region_bytes(kernel->program->context,
                                        (const void *)(uintptr_t)items[i], 0,
                                        sorts, false, &bytes);
    if (error != CL_SUCCESS) return CL_INVALID_VALUE;
  }
  return CL_SUCCESS;
}

// A list takes the place of the one before.
static cl_int set_list(cl_kernel kernel, standin_list list, int sorts,
                       size_t size, const void *value) {
  uint64_t *items = NULL;
  size_t count = size / sizeof *items;
  if (size == 0 || size % sizeof *items != 0 || value == NULL) {
    return standin_wrong(CL_INVALID_VALUE, "%zu bytes of pointers at %p", size,
                         value);
  }
  items = malloc(size);
  if (items == NULL) return CL_OUT_OF_HOST_MEMORY;
  memcpy(items, value, size);
  cl_int error = check_pointers(kernel, items, count, sorts);
  if (error != CL_SUCCESS) {
    free(items);
    return error;
  }
  free(kernel->lists[list].items);
  kernel->lists[list] = (standin_pointers){items, count};
  return CL_SUCCESS;
}

static cl_int set_indirect(cl_kernel kernel, standin_sort sort, size_t size,
                           const void *value) {
  cl_bool on = CL_FALSE;
  if (size != sizeof on || value == NULL) {
    return standin_wrong(CL_INVALID_VALUE, "%zu bytes of a bool at %p", size,
                         value);
  }
  memcpy(&on, value, sizeof on);
  kernel->indirect &= ~(1 << sort);
  if (on) kernel->indirect |= 1 << sort;
  return CL_SUCCESS;
}

static cl_int set_usm_info(cl_kernel kernel, cl_kernel_exec_info name,
                           size_t size, const void *value) {
  switch (name) {
    case CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL:
      return set_list(kernel, STANDIN_LIST_USM, STANDIN_ANY_USM, size, value);
    case CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL:
      return set_indirect(kernel, STANDIN_USM_DEVICE, size, value);
    case CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL:
      return set_indirect(kernel, STANDIN_USM_HOST, size, value);
    case CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL:
      return set_indirect(kernel, STANDIN_USM_SHARED, size, value);
    default:
      return STANDIN_UNKNOWN;
  }
}

static cl_int set_info(cl_kernel kernel, cl_kernel_exec_info name, size_t size,
                       const void *value) {
  cl_int error = standin_check(kernel, STANDIN_KERNEL);
  if (error != CL_SUCCESS) return error;
  if (name == CL_KERNEL_EXEC_INFO_SVM_PTRS && standin_has_coarse()) {
    return set_list(kernel, STANDIN_LIST_SVM, STANDIN_ANY_SVM, size, value);
  }
  if (name == CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT && standin_has_address()) {
    return set_list(kernel, STANDIN_LIST_ADDRESS, 1 << STANDIN_ADDRESS, size,
                    value);
  }
  error = standin_has_usm() ? set_usm_info(kernel, name, size, value)
                            : STANDIN_UNKNOWN;
  if (error != STANDIN_UNKNOWN) return error;
  return standin_wrong(CL_INVALID_VALUE, "information 0x%x", (unsigned)name);
}

cl_int clSetKernelExecInfo(cl_kernel kernel, cl_kernel_exec_info param_name,
                           size_t param_value_size, const void *param_value) {
  ENTER();
  cl_int error = standin_needs_version(20);
  if (error != CL_SUCCESS) return error;
  standin_lock();
  error = set_info(kernel, param_name, param_value_size, param_value);
  standin_unlock();
  return error;
}
