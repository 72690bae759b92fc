// Shared virtual memory of the core: coarse and fine.
#include <string.h>

#include "faults.h"
#include "info.h"
#include "maps.h"
#include "moves.h"
#include "report.h"
#include "settings.h"

// --- clSVMAlloc ------------------------------------------------------------

static cl_int check_flags(cl_svm_mem_flags flags) {
  const cl_svm_mem_flags all = CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY |
                               CL_MEM_READ_ONLY | CL_MEM_SVM_FINE_GRAIN_BUFFER |
                               CL_MEM_SVM_ATOMICS;
  bool fine = (flags & CL_MEM_SVM_FINE_GRAIN_BUFFER) != 0;
  if ((flags & ~all) != 0 || ((flags & CL_MEM_SVM_ATOMICS) != 0 && !fine)) {
    return standin_wrong(CL_INVALID_VALUE, "flags 0x%llx",
                         (unsigned long long)flags);
  }
  // What the driver lacks a program may try.
  return (fine ? standin_has_fine() : standin_has_coarse())
             ? CL_SUCCESS
             : CL_INVALID_OPERATION;
}

static cl_int check_block(size_t size, cl_uint alignment) {
  if (size == 0) return standin_wrong(CL_INVALID_VALUE, "0 bytes");
  if ((alignment & (alignment - 1)) != 0) {
    return standin_wrong(CL_INVALID_VALUE, "an alignment of %u",
                         (unsigned)alignment);
  }
  if (alignment > (uint64_t)standin_number(STANDIN_MAX_ALIGN) ||
      size > (uint64_t)standin_number(STANDIN_MAX_ALLOC)) {
    return CL_INVALID_VALUE;
  }
  return CL_SUCCESS;
}

static void *take(cl_context context, cl_svm_mem_flags flags, size_t size,
                  cl_uint alignment) {
  standin_region *made = NULL;
  standin_sort sort = (flags & CL_MEM_SVM_FINE_GRAIN_BUFFER) != 0
                          ? STANDIN_FINE
                          : STANDIN_COARSE;
  if (standin_check(context, STANDIN_CONTEXT) != CL_SUCCESS ||
      check_flags(flags) != CL_SUCCESS ||
      check_block(size, alignment) != CL_SUCCESS ||
      standin_region_take(context, sort, size, &made) != CL_SUCCESS) {
    return NULL;
  }
  return made->pages.shown;
}

void *clSVMAlloc(cl_context context, cl_svm_mem_flags flags, size_t size,
                 cl_uint alignment) {
  ENTER_MAKER(NULL);
  if (standin_needs_version(20) != CL_SUCCESS) return NULL;
  standin_lock();
  void *made = take(context, flags, size, alignment);
  standin_unlock();
  return made;
}

static void give(cl_context context, void *pointer) {
  standin_bytes bytes;
  if (pointer == NULL ||
      standin_check(context, STANDIN_CONTEXT) != CL_SUCCESS ||
      standin_region_bytes(context, pointer, 0, STANDIN_ANY_SVM, false,
                           &bytes) != CL_SUCCESS) {
    return;
  }
  if (bytes.offset != 0) {
    standin_wrong(CL_INVALID_VALUE, "%p is byte %zu of a block", pointer,
                  bytes.offset);
    return;
  }
  for (const standin_map *map = bytes.region->maps; map != NULL;
       map = map->next) {
    if (map->is_active)
      standin_wrong(CL_INVALID_OPERATION, "%p is mapped", pointer);
  }
  standin_region_free(bytes.region);
}

// Commands that use the block are not waited for: the report names each that
// runs after this.
void clSVMFree(cl_context context, void *svm_pointer) {
  if (standin_enter(__func__) != CL_SUCCESS) return;
  if (standin_needs_version(20) != CL_SUCCESS) return;
  standin_lock();
  give(context, svm_pointer);
  standin_unlock();
}

// --- copies and fills ------------------------------------------------------

enum {
  HOSTS = 1 << STANDIN_USM_HOST | 1 << STANDIN_USM_SHARED,
};

// Whether the driver takes plain memory of the host a program may try; what
// another extension has made for the host is as plain as any.
static bool is_refused(const void *address) {
  const standin_region *region =
      standin_region_at((uint64_t)(uintptr_t)address);
  bool is_plain = region == NULL || (HOSTS & 1 << region->sort) != 0;
  return standin_number(STANDIN_PLAIN_HOST) == 0 && address != NULL && is_plain;
}

static cl_int plan_copy(standin_command *command, void *to, const void *from,
                        size_t size) {
  cl_context context = command->queue->context;
  const int sorts = STANDIN_ANY_SVM | HOSTS;
  standin_bytes to_bytes, from_bytes;
  if (is_refused(to) || is_refused(from)) return CL_INVALID_VALUE;
  cl_int error =
      standin_region_bytes(context, to, size, sorts, true, &to_bytes);
  if (error != CL_SUCCESS) return error;
  error = standin_region_bytes(context, from, size, sorts, true, &from_bytes);
  if (error != CL_SUCCESS) return error;
  return standin_move_copy(command, &to_bytes, &from_bytes);
}

cl_int clEnqueueSVMMemcpy(cl_command_queue command_queue, cl_bool blocking_copy,
                          void *dst_ptr, const void *src_ptr, size_t size,
                          cl_uint num_events_in_wait_list,
                          const cl_event *event_wait_list, cl_event *event) {
  ENTER();
  standin_command *command = NULL;
  standin_lock();
  cl_int error = standin_needs_version(20);
  if (error == CL_SUCCESS) {
    error = standin_command_begin(command_queue, CL_COMMAND_SVM_MEMCPY,
                                  num_events_in_wait_list, event_wait_list,
                                  &command);
  }
  if (error == CL_SUCCESS) error = plan_copy(command, dst_ptr, src_ptr, size);
  error = standin_command_end(command, error, blocking_copy, event);
  standin_unlock();
  return error;
}

static cl_int plan_fill(standin_command *command, void *pointer,
                        const void *pattern, size_t pattern_size, size_t size) {
  standin_bytes bytes;
  cl_int error = standin_region_bytes(command->queue->context, pointer, size,
                                      STANDIN_ANY_SVM, false, &bytes);
  if (error != CL_SUCCESS) return error;
  return standin_move_fill(command, &bytes, pattern, pattern_size);
}

cl_int clEnqueueSVMMemFill(cl_command_queue command_queue, void *svm_ptr,
                           const void *pattern, size_t pattern_size,
                           size_t size, cl_uint num_events_in_wait_list,
                           const cl_event *event_wait_list, cl_event *event) {
  ENTER();
  standin_command *command = NULL;
  standin_lock();
  cl_int error = standin_needs_version(20);
  if (error == CL_SUCCESS) {
    error = standin_command_begin(command_queue, CL_COMMAND_SVM_MEMFILL,
                                  num_events_in_wait_list, event_wait_list,
                                  &command);
  }
  if (error == CL_SUCCESS) {
    error = plan_fill(command, svm_ptr, pattern, pattern_size, size);
  }
  error = standin_command_end(command, error, CL_FALSE, event);
  standin_unlock();
  return error;
}

// --- maps ------------------------------------------------------------------

static cl_int plan_map(standin_command *command, cl_map_flags flags,
                       void *pointer, size_t size) {
  standin_bytes bytes;
  void *host = NULL;
  cl_int error = standin_region_bytes(command->queue->context, pointer, size,
                                      STANDIN_ANY_SVM, false, &bytes);
  if (error != CL_SUCCESS) return error;
  return standin_map_begin(command, &bytes, flags, false, &host);
}

cl_int clEnqueueSVMMap(cl_command_queue command_queue, cl_bool blocking_map,
                       cl_map_flags flags, void *svm_ptr, size_t size,
                       cl_uint num_events_in_wait_list,
                       const cl_event *event_wait_list, cl_event *event) {
  ENTER();
  standin_command *command = NULL;
  standin_lock();
  cl_int error = standin_needs_version(20);
  if (error == CL_SUCCESS) {
    error = standin_command_begin(command_queue, CL_COMMAND_SVM_MAP,
                                  num_events_in_wait_list, event_wait_list,
                                  &command);
  }
  if (error == CL_SUCCESS) error = plan_map(command, flags, svm_ptr, size);
  error = standin_command_end(command, error, blocking_map, event);
  standin_unlock();
  return error;
}

cl_int clEnqueueSVMUnmap(cl_command_queue command_queue, void *svm_ptr,
                         cl_uint num_events_in_wait_list,
                         const cl_event *event_wait_list, cl_event *event) {
  ENTER();
  standin_command *command = NULL;
  standin_bytes bytes;
  standin_lock();
  cl_int error = standin_needs_version(20);
  if (error == CL_SUCCESS) {
    error = standin_command_begin(command_queue, CL_COMMAND_SVM_UNMAP,
                                  num_events_in_wait_list, event_wait_list,
                                  &command);
  }
  if (error == CL_SUCCESS) {
    error = standin_region_bytes(command_queue->context, svm_ptr, 0,
                                 STANDIN_ANY_SVM, false, &bytes);
  }
  if (error == CL_SUCCESS) {
    error = standin_map_end(command, bytes.region, svm_ptr);
  }
  error = standin_command_end(command, error, CL_FALSE, event);
  standin_unlock();
  return error;
}
