// Buffers: memory that is an object. One made with the property of
// cl_ext_buffer_device_address has an address, too.
#include <stdlib.h>
#include <string.h>

#include "faults.h"
#include "info.h"
#include "regions.h"
#include "report.h"
#include "settings.h"

static void end_buffer(void *object) {
  cl_mem buffer = object;
  for (const standin_map *map = buffer->region->maps; map != NULL;
       map = map->next) {
    if (map->is_active && !map->is_ending) {
      standin_wrong(CL_INVALID_OPERATION, "buffer %p ends while it is mapped",
                    object);
    }
  }
  standin_region_free(buffer->region);
}

// --- clCreateBuffer --------------------------------------------------------

static bool has_several(cl_mem_flags flags, cl_mem_flags of) {
  flags &= of;
  return (flags & (flags - 1)) != 0;
}

static cl_int check_flags(cl_mem_flags flags, const void *host_ptr) {
  const cl_mem_flags access =
      CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY;
  const cl_mem_flags pointer = CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR;
  const cl_mem_flags host =
      CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS;
  const cl_mem_flags all = access | pointer | host | CL_MEM_ALLOC_HOST_PTR;
  if ((flags & ~all) != 0 || has_several(flags, access) ||
      has_several(flags, pointer) || has_several(flags, host) ||
      has_several(flags, CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR)) {
    return standin_wrong(CL_INVALID_VALUE, "flags 0x%llx",
                         (unsigned long long)flags);
  }
  if ((host_ptr != NULL) == ((flags & pointer) != 0)) return CL_SUCCESS;
  return standin_wrong(CL_INVALID_HOST_PTR, "flags 0x%llx with %p",
                       (unsigned long long)flags, host_ptr);
}

static cl_int check_size(size_t size) {
  if (size == 0) return standin_wrong(CL_INVALID_BUFFER_SIZE, "0 bytes");
  // A driver's limit, which a program may try.
  if (size > (uint64_t)standin_number(STANDIN_MAX_ALLOC)) {
    return CL_INVALID_BUFFER_SIZE;
  }
  return CL_SUCCESS;
}

// |out_size|: bytes of the list, with its end.
static cl_int read_properties(const cl_mem_properties *list, bool *out_address,
                              size_t *out_size) {
  *out_address = false;
  *out_size = 0;
  if (list == NULL) return CL_SUCCESS;
  size_t at = 0;
  for (; list[at] != 0 && at < 2; at += 2) {
    if (list[at] != CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT ||
        !standin_has_address()) {
      return standin_wrong(CL_INVALID_PROPERTY, "property 0x%llx",
                           (unsigned long long)list[at]);
    }
    *out_address = list[at + 1] != CL_FALSE;
  }
  *out_size = (at + 1) * sizeof *list;
  return CL_SUCCESS;
}

static cl_int take_region(cl_context context, standin_sort sort,
                          cl_mem_flags flags, size_t size, void *host_ptr,
                          standin_region **out) {
  if ((flags & CL_MEM_USE_HOST_PTR) != 0) {
    if (sort != STANDIN_ADDRESS) {
      return standin_region_over(context, host_ptr, size, out);
    }
    return standin_wrong(CL_INVALID_VALUE,
                         "a buffer with an address over the program's memory");
  }
  cl_int error = standin_region_take(context, sort, size, out);
  if (error == CL_SUCCESS && host_ptr != NULL) {
    memcpy((*out)->bytes, host_ptr, size);
  }
  return error;
}

typedef struct request {
  cl_context context;
  const cl_mem_properties *properties;
  cl_mem_flags flags;
  size_t size;
  void *host_ptr;
} request;

static cl_int check_request(const request *wanted) {
  cl_int error = standin_check(wanted->context, STANDIN_CONTEXT);
  if (error == CL_SUCCESS) error = check_flags(wanted->flags, wanted->host_ptr);
  if (error == CL_SUCCESS) error = check_size(wanted->size);
  return error;
}

static cl_int make_buffer(const request *wanted, cl_mem *out) {
  bool address = false;
  size_t properties_size = 0;
  cl_int error = check_request(wanted);
  if (error != CL_SUCCESS) return error;
  error = read_properties(wanted->properties, &address, &properties_size);
  if (error != CL_SUCCESS) return error;
  standin_region *region = NULL;
  error =
      take_region(wanted->context, address ? STANDIN_ADDRESS : STANDIN_PLAIN,
                  wanted->flags, wanted->size, wanted->host_ptr, &region);
  if (error != CL_SUCCESS) return error;
  standin_ends_with(STANDIN_BUFFER, end_buffer);
  cl_mem made = standin_new(STANDIN_BUFFER, sizeof(struct _cl_mem));
  if (made == NULL) {
    standin_region_free(region);
    return CL_OUT_OF_HOST_MEMORY;
  }
  made->context = wanted->context;
  made->flags = wanted->flags != 0 ? wanted->flags : CL_MEM_READ_WRITE;
  made->region = region;
  if ((wanted->flags & CL_MEM_USE_HOST_PTR) != 0) {
    made->host_pointer = wanted->host_ptr;
  }
  if (properties_size > 0) {
    memcpy(made->properties, wanted->properties, properties_size);
  }
  made->properties_size = properties_size;
  *out = made;
  return CL_SUCCESS;
}

static cl_mem make_and_tell(const request *wanted, cl_int *errcode_ret) {
  cl_mem made = NULL;
  standin_lock();
  cl_int error = make_buffer(wanted, &made);
  standin_unlock();
  standin_tell(errcode_ret, error);
  return made;
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                      void *host_ptr, cl_int *errcode_ret) {
  ENTER_MAKER(errcode_ret);
  const request wanted = {context, NULL, flags, size, host_ptr};
  return make_and_tell(&wanted, errcode_ret);
}

cl_mem clCreateBufferWithProperties(cl_context context,
                                    const cl_mem_properties *properties,
                                    cl_mem_flags flags, size_t size,
                                    void *host_ptr, cl_int *errcode_ret) {
  ENTER_MAKER(errcode_ret);
  cl_int error = standin_needs_version(30);
  standin_tell(errcode_ret, error);
  if (error != CL_SUCCESS) return NULL;
  const request wanted = {context, properties, flags, size, host_ptr};
  return make_and_tell(&wanted, errcode_ret);
}

// --- the rest --------------------------------------------------------------

cl_int clRetainMemObject(cl_mem memobj) {
  ENTER();
  return standin_retain(memobj, STANDIN_BUFFER);
}

cl_int clReleaseMemObject(cl_mem memobj) {
  ENTER();
  return standin_release(memobj, STANDIN_BUFFER);
}

static cl_uint count_maps(const standin_region *region) {
  cl_uint count = 0;
  for (const standin_map *map = region->maps; map != NULL; map = map->next) {
    count++;
  }
  return count;
}

// One address for each device: here they are all the same.
static cl_int answer_address(cl_mem buffer, const standin_answer *answer) {
  if (buffer->region->sort != STANDIN_ADDRESS) {
    return standin_wrong(CL_INVALID_OPERATION, "buffer %p has no address",
                         (void *)buffer);
  }
  cl_mem_device_address_ext addresses[STANDIN_DEVICES_MAX];
  cl_uint count = buffer->context->device_count;
  for (cl_uint i = 0; i < count; i++)
    addresses[i] = buffer->region->address;
  return standin_answer_bytes(answer, addresses, count * sizeof *addresses);
}

static cl_int answer_buffer(cl_mem buffer, cl_mem_info name,
                            const standin_answer *answer) {
  switch (name) {
    case CL_MEM_TYPE:
      return standin_answer_uint(answer, CL_MEM_OBJECT_BUFFER);
    case CL_MEM_FLAGS:
      return standin_answer_ulong(answer, buffer->flags);
    case CL_MEM_SIZE:
      return standin_answer_size(answer, buffer->region->size);
    case CL_MEM_HOST_PTR:
      return standin_answer_pointer(answer, buffer->host_pointer);
    case CL_MEM_MAP_COUNT:
      return standin_answer_uint(answer, count_maps(buffer->region));
    case CL_MEM_REFERENCE_COUNT:
      return standin_answer_uint(answer, buffer->object.refs);
    case CL_MEM_CONTEXT:
      return standin_answer_pointer(answer, buffer->context);
    case CL_MEM_OFFSET:
      return standin_answer_size(answer, 0);
    case CL_MEM_ASSOCIATED_MEMOBJECT:
      return standin_answer_pointer(answer, NULL);
    case CL_MEM_USES_SVM_POINTER:
      return standin_answer_bool(answer, buffer->region->lent != NULL);
    case CL_MEM_PROPERTIES:
      return standin_answer_bytes(answer, buffer->properties,
                                  buffer->properties_size);
    case CL_MEM_DEVICE_ADDRESS_EXT:
      return standin_has_address() ? answer_address(buffer, answer)
                                   : STANDIN_UNKNOWN;
    default:
      return STANDIN_UNKNOWN;
  }
}

cl_int clGetMemObjectInfo(cl_mem memobj, cl_mem_info param_name,
                          size_t param_value_size, void *param_value,
                          size_t *param_value_size_ret) {
  ENTER();
  const standin_answer answer = {param_value_size, param_value,
                                 param_value_size_ret};
  standin_lock();
  cl_int error = standin_check(memobj, STANDIN_BUFFER);
  if (error == CL_SUCCESS) error = answer_buffer(memobj, param_name, &answer);
  standin_unlock();
  return standin_answered(error);
}
