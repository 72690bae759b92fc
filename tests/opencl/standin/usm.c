// Intel's unified shared memory: of the device, of the host, and shared.
#include "events.h"
#include "faults.h"
#include "info.h"
#include "moves.h"
#include "report.h"
#include "settings.h"

// --- taking ----------------------------------------------------------------

static cl_int check_properties(const cl_mem_properties_intel *list) {
  for (; list != NULL && list[0] != 0; list += 2) {
    if (list[0] == CL_MEM_ALLOC_FLAGS_INTEL) continue;
    return standin_wrong(CL_INVALID_PROPERTY, "property 0x%llx",
                         (unsigned long long)list[0]);
  }
  return CL_SUCCESS;
}

static cl_int check_block(size_t size, cl_uint alignment) {
  if (size == 0) return standin_wrong(CL_INVALID_BUFFER_SIZE, "0 bytes");
  if ((alignment & (alignment - 1)) != 0) {
    return standin_wrong(CL_INVALID_VALUE, "an alignment of %u",
                         (unsigned)alignment);
  }
  if (alignment > (uint64_t)standin_number(STANDIN_MAX_ALIGN)) {
    return CL_INVALID_VALUE;
  }
  return size > (uint64_t)standin_number(STANDIN_MAX_ALLOC)
             ? CL_INVALID_BUFFER_SIZE
             : CL_SUCCESS;
}

static cl_int check_device(const struct _cl_context *context,
                           cl_device_id device) {
  cl_int error = standin_check(device, STANDIN_DEVICE);
  if (error != CL_SUCCESS) return error;
  for (cl_uint i = 0; i < context->device_count; i++) {
    if (context->devices[i] == device) return CL_SUCCESS;
  }
  return standin_wrong(CL_INVALID_DEVICE, "the device is not the context's");
}

typedef struct request {
  standin_sort sort;
  cl_context context;
  cl_device_id device;
  const cl_mem_properties_intel *properties;
  size_t size;
  cl_uint alignment;
} request;

static cl_int check_method(void) {
  if (standin_has_usm()) return CL_SUCCESS;
  return standin_wrong(CL_INVALID_OPERATION,
                       "the platform does not have the extension");
}

static cl_int take(const request *wanted, standin_region **out) {
  cl_int error = check_method();
  if (error == CL_SUCCESS) {
    error = standin_check(wanted->context, STANDIN_CONTEXT);
  }
  // Shared memory may be of no device.
  bool needs_device =
      wanted->sort == STANDIN_USM_DEVICE ||
      (wanted->sort == STANDIN_USM_SHARED && wanted->device != NULL);
  if (error == CL_SUCCESS && needs_device) {
    error = check_device(wanted->context, wanted->device);
  }
  if (error == CL_SUCCESS) error = check_properties(wanted->properties);
  if (error == CL_SUCCESS) error = check_block(wanted->size, wanted->alignment);
  if (error != CL_SUCCESS) return error;
  error = standin_region_take(wanted->context, wanted->sort, wanted->size, out);
  if (error == CL_SUCCESS) (*out)->device = wanted->device;
  return error;
}

static void *take_and_tell(const request *wanted, cl_int *errcode_ret) {
  standin_region *made = NULL;
  standin_lock();
  cl_int error = take(wanted, &made);
  void *shown = made != NULL ? made->pages.shown : NULL;
  standin_unlock();
  standin_tell(errcode_ret, error);
  return shown;
}

void *clDeviceMemAllocINTEL(cl_context context, cl_device_id device,
                            const cl_mem_properties_intel *properties,
                            size_t size, cl_uint alignment,
                            cl_int *errcode_ret) {
  ENTER_MAKER(errcode_ret);
  const request wanted = {STANDIN_USM_DEVICE, context, device,
                          properties,         size,    alignment};
  return take_and_tell(&wanted, errcode_ret);
}

void *clHostMemAllocINTEL(cl_context context,
                          const cl_mem_properties_intel *properties,
                          size_t size, cl_uint alignment, cl_int *errcode_ret) {
  ENTER_MAKER(errcode_ret);
  const request wanted = {STANDIN_USM_HOST, context, NULL,
                          properties,       size,    alignment};
  return take_and_tell(&wanted, errcode_ret);
}

void *clSharedMemAllocINTEL(cl_context context, cl_device_id device,
                            const cl_mem_properties_intel *properties,
                            size_t size, cl_uint alignment,
                            cl_int *errcode_ret) {
  ENTER_MAKER(errcode_ret);
  const request wanted = {STANDIN_USM_SHARED, context, device,
                          properties,         size,    alignment};
  return take_and_tell(&wanted, errcode_ret);
}

// --- giving back -----------------------------------------------------------

static void flush(void *object, void *context) {
  cl_command_queue queue = object;
  if (queue->context == context) queue->flushed = queue->queued;
}

static void wait_unused(cl_context context, const standin_region *region) {
  standin_each(STANDIN_QUEUE, flush, context);
  standin_tell_all();
  while (region->uses > 0)
    standin_wait_any();
}

// Commands that use the block: the blocking call waits for them, the other does
// not, and each that runs later is in the report.
static cl_int give(cl_context context, void *pointer, bool waits) {
  cl_int error = check_method();
  if (error == CL_SUCCESS) error = standin_check(context, STANDIN_CONTEXT);
  if (error != CL_SUCCESS || pointer == NULL) return error;
  standin_bytes bytes;
  error =
      standin_region_bytes(context, pointer, 0, STANDIN_ANY_USM, false, &bytes);
  if (error != CL_SUCCESS) return error;
  if (bytes.offset != 0) {
    return standin_wrong(CL_INVALID_VALUE, "%p is byte %zu of a block", pointer,
                         bytes.offset);
  }
  if (waits) wait_unused(context, bytes.region);
  standin_region_free(bytes.region);
  return CL_SUCCESS;
}

cl_int clMemFreeINTEL(cl_context context, void *ptr) {
  ENTER();
  standin_lock();
  cl_int error = give(context, ptr, false);
  standin_unlock();
  return error;
}

cl_int clMemBlockingFreeINTEL(cl_context context, void *ptr) {
  ENTER();
  cl_int error = standin_may_wait();
  if (error != CL_SUCCESS) return error;
  standin_lock();
  error = give(context, ptr, true);
  standin_unlock();
  return error;
}

// --- what a pointer is -----------------------------------------------------

static cl_unified_shared_memory_type_intel type_of(
    const standin_region *region) {
  if (region == NULL) return CL_MEM_TYPE_UNKNOWN_INTEL;
  switch (region->sort) {
    case STANDIN_USM_DEVICE:
      return CL_MEM_TYPE_DEVICE_INTEL;
    case STANDIN_USM_HOST:
      return CL_MEM_TYPE_HOST_INTEL;
    case STANDIN_USM_SHARED:
      return CL_MEM_TYPE_SHARED_INTEL;
    default:
      return CL_MEM_TYPE_UNKNOWN_INTEL;
  }
}

static cl_int answer_pointer(cl_context context, const void *pointer,
                             cl_mem_info_intel name,
                             const standin_answer *answer) {
  const standin_region *region =
      standin_region_at((uint64_t)(uintptr_t)pointer);
  cl_unified_shared_memory_type_intel type = type_of(region);
  if (type == CL_MEM_TYPE_UNKNOWN_INTEL || region->freed ||
      region->context != context) {
    type = CL_MEM_TYPE_UNKNOWN_INTEL;
    region = NULL;
  }
  switch (name) {
    case CL_MEM_ALLOC_TYPE_INTEL:
      return standin_answer_uint(answer, type);
    case CL_MEM_ALLOC_BASE_PTR_INTEL:
      return standin_answer_pointer(
          answer, region != NULL ? region->pages.shown : NULL);
    case CL_MEM_ALLOC_SIZE_INTEL:
      return standin_answer_size(answer, region != NULL ? region->size : 0);
    case CL_MEM_ALLOC_DEVICE_INTEL:
      return standin_answer_pointer(answer,
                                    region != NULL ? region->device : NULL);
    default:
      return STANDIN_UNKNOWN;
  }
}

cl_int clGetMemAllocInfoINTEL(cl_context context, const void *ptr,
                              cl_mem_info_intel param_name,
                              size_t param_value_size, void *param_value,
                              size_t *param_value_size_ret) {
  ENTER();
  const standin_answer answer = {param_value_size, param_value,
                                 param_value_size_ret};
  standin_lock();
  cl_int error = check_method();
  if (error == CL_SUCCESS) error = standin_check(context, STANDIN_CONTEXT);
  if (error == CL_SUCCESS) {
    error = answer_pointer(context, ptr, param_name, &answer);
  }
  standin_unlock();
  return standin_answered(error);
}

// --- copies and fills ------------------------------------------------------

// The extension takes any memory of the host, whatever SVM's copies do; fine
// SVM is that too.
static cl_int plan_copy(standin_command *command, void *to, const void *from,
                        size_t size) {
  cl_context context = command->queue->context;
  const int sorts = STANDIN_ANY_USM | 1 << STANDIN_FINE;
  standin_bytes to_bytes, from_bytes;
  cl_int error =
      standin_region_bytes(context, to, size, sorts, true, &to_bytes);
  if (error != CL_SUCCESS) return error;
  error = standin_region_bytes(context, from, size, sorts, true, &from_bytes);
  if (error != CL_SUCCESS) return error;
  return standin_move_copy(command, &to_bytes, &from_bytes);
}

cl_int clEnqueueMemcpyINTEL(cl_command_queue command_queue, cl_bool blocking,
                            void *dst_ptr, const void *src_ptr, size_t size,
                            cl_uint num_events_in_wait_list,
                            const cl_event *event_wait_list, cl_event *event) {
  ENTER();
  standin_command *command = NULL;
  standin_lock();
  cl_int error = check_method();
  if (error == CL_SUCCESS) {
    error = standin_command_begin(command_queue, CL_COMMAND_MEMCPY_INTEL,
                                  num_events_in_wait_list, event_wait_list,
                                  &command);
  }
  if (error == CL_SUCCESS) error = plan_copy(command, dst_ptr, src_ptr, size);
  error = standin_command_end(command, error, blocking, event);
  standin_unlock();
  return error;
}

static cl_int plan_fill(standin_command *command, void *pointer,
                        const void *pattern, size_t pattern_size, size_t size) {
  standin_bytes bytes;
  cl_int error = standin_region_bytes(command->queue->context, pointer, size,
                                      STANDIN_ANY_USM, false, &bytes);
  if (error != CL_SUCCESS) return error;
  return standin_move_fill(command, &bytes, pattern, pattern_size);
}

cl_int clEnqueueMemFillINTEL(cl_command_queue command_queue, void *dst_ptr,
                             const void *pattern, size_t pattern_size,
                             size_t size, cl_uint num_events_in_wait_list,
                             const cl_event *event_wait_list, cl_event *event) {
  ENTER();
  standin_command *command = NULL;
  standin_lock();
  cl_int error = check_method();
  if (error == CL_SUCCESS) {
    error = standin_command_begin(command_queue, CL_COMMAND_MEMFILL_INTEL,
                                  num_events_in_wait_list, event_wait_list,
                                  &command);
  }
  if (error == CL_SUCCESS) {
    error = plan_fill(command, dst_ptr, pattern, pattern_size, size);
  }
  error = standin_command_end(command, error, CL_FALSE, event);
  standin_unlock();
  return error;
}
