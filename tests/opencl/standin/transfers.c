// Commands on buffers: read, write, copy, fill; and those that do nothing.
#include <string.h>

#include "faults.h"
#include "moves.h"
#include "report.h"

// --- to and from the host --------------------------------------------------

typedef struct host_end {
  cl_mem buffer;
  size_t offset;
  size_t size;
  const void *pointer;
} host_end;

static cl_int check_host_flags(const struct _cl_mem *buffer,
                               cl_mem_flags forbidden) {
  if ((buffer->flags & (forbidden | CL_MEM_HOST_NO_ACCESS)) == 0) {
    return CL_SUCCESS;
  }
  return standin_wrong(CL_INVALID_OPERATION, "the buffer has the flags 0x%llx",
                       (unsigned long long)buffer->flags);
}

static cl_int plan_transfer(standin_command *command, const host_end *end,
                            bool reads) {
  standin_bytes device, host;
  cl_int error = standin_buffer_bytes(command->queue, end->buffer, end->offset,
                                      end->size, &device);
  if (error != CL_SUCCESS) return error;
  error = check_host_flags(
      end->buffer, reads ? CL_MEM_HOST_WRITE_ONLY : CL_MEM_HOST_READ_ONLY);
  if (error != CL_SUCCESS) return error;
  error = standin_region_host(command->queue->context, end->pointer, end->size,
                              &host);
  if (error != CL_SUCCESS) return error;
  // The host's end is mapped, if it must be: that is no conflict.
  const standin_bytes held = {.region = host.region};
  error = standin_command_touch(command, &held, false);
  if (error != CL_SUCCESS) return error;
  host.region = NULL;
  return reads ? standin_move_copy(command, &host, &device)
               : standin_move_copy(command, &device, &host);
}

cl_int clEnqueueReadBuffer(cl_command_queue command_queue, cl_mem buffer,
                           cl_bool blocking_read, size_t offset, size_t size,
                           void *ptr, cl_uint num_events_in_wait_list,
                           const cl_event *event_wait_list, cl_event *event) {
  ENTER();
  const host_end end = {buffer, offset, size, ptr};
  standin_command *command = NULL;
  standin_lock();
  cl_int error =
      standin_command_begin(command_queue, CL_COMMAND_READ_BUFFER,
                            num_events_in_wait_list, event_wait_list, &command);
  if (error == CL_SUCCESS) error = plan_transfer(command, &end, true);
  error = standin_command_end(command, error, blocking_read, event);
  standin_unlock();
  return error;
}

cl_int clEnqueueWriteBuffer(cl_command_queue command_queue, cl_mem buffer,
                            cl_bool blocking_write, size_t offset, size_t size,
                            const void *ptr, cl_uint num_events_in_wait_list,
                            const cl_event *event_wait_list, cl_event *event) {
  ENTER();
  const host_end end = {buffer, offset, size, ptr};
  standin_command *command = NULL;
  standin_lock();
  cl_int error =
      standin_command_begin(command_queue, CL_COMMAND_WRITE_BUFFER,
                            num_events_in_wait_list, event_wait_list, &command);
  if (error == CL_SUCCESS) error = plan_transfer(command, &end, false);
  error = standin_command_end(command, error, blocking_write, event);
  standin_unlock();
  return error;
}

// --- on the device ---------------------------------------------------------

static cl_int plan_copy(standin_command *command, cl_mem to, size_t to_offset,
                        cl_mem from, size_t from_offset, size_t size) {
  standin_bytes to_bytes, from_bytes;
  cl_int error = standin_buffer_bytes(command->queue, from, from_offset, size,
                                      &from_bytes);
  if (error != CL_SUCCESS) return error;
  error = standin_buffer_bytes(command->queue, to, to_offset, size, &to_bytes);
  if (error != CL_SUCCESS) return error;
  return standin_move_copy(command, &to_bytes, &from_bytes);
}

cl_int clEnqueueCopyBuffer(cl_command_queue command_queue, cl_mem src_buffer,
                           cl_mem dst_buffer, size_t src_offset,
                           size_t dst_offset, size_t size,
                           cl_uint num_events_in_wait_list,
                           const cl_event *event_wait_list, cl_event *event) {
  ENTER();
  standin_command *command = NULL;
  standin_lock();
  cl_int error =
      standin_command_begin(command_queue, CL_COMMAND_COPY_BUFFER,
                            num_events_in_wait_list, event_wait_list, &command);
  if (error == CL_SUCCESS) {
    error = plan_copy(command, dst_buffer, dst_offset, src_buffer, src_offset,
                      size);
  }
  error = standin_command_end(command, error, CL_FALSE, event);
  standin_unlock();
  return error;
}

static cl_int plan_fill(standin_command *command, cl_mem buffer, size_t offset,
                        size_t size, const void *pattern, size_t pattern_size) {
  standin_bytes bytes;
  cl_int error =
      standin_buffer_bytes(command->queue, buffer, offset, size, &bytes);
  if (error != CL_SUCCESS) return error;
  return standin_move_fill(command, &bytes, pattern, pattern_size);
}

cl_int clEnqueueFillBuffer(cl_command_queue command_queue, cl_mem buffer,
                           const void *pattern, size_t pattern_size,
                           size_t offset, size_t size,
                           cl_uint num_events_in_wait_list,
                           const cl_event *event_wait_list, cl_event *event) {
  ENTER();
  standin_command *command = NULL;
  standin_lock();
  cl_int error =
      standin_command_begin(command_queue, CL_COMMAND_FILL_BUFFER,
                            num_events_in_wait_list, event_wait_list, &command);
  if (error == CL_SUCCESS) {
    error = plan_fill(command, buffer, offset, size, pattern, pattern_size);
  }
  error = standin_command_end(command, error, CL_FALSE, event);
  standin_unlock();
  return error;
}

// --- that do nothing -------------------------------------------------------

static cl_int queue_nothing(cl_command_queue queue, cl_command_type type,
                            cl_uint count, const cl_event *list,
                            cl_event *event) {
  standin_command *command = NULL;
  standin_lock();
  cl_int error = standin_command_begin(queue, type, count, list, &command);
  error = standin_command_end(command, error, CL_FALSE, event);
  standin_unlock();
  return error;
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue command_queue,
                                   cl_uint num_events_in_wait_list,
                                   const cl_event *event_wait_list,
                                   cl_event *event) {
  ENTER();
  return queue_nothing(command_queue, CL_COMMAND_MARKER,
                       num_events_in_wait_list, event_wait_list, event);
}

cl_int clEnqueueBarrierWithWaitList(cl_command_queue command_queue,
                                    cl_uint num_events_in_wait_list,
                                    const cl_event *event_wait_list,
                                    cl_event *event) {
  ENTER();
  return queue_nothing(command_queue, CL_COMMAND_BARRIER,
                       num_events_in_wait_list, event_wait_list, event);
}
