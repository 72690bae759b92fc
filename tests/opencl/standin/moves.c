// Copies and fills.
//
// A copy reads when it runs: what the program does to its memory before that is
// seen, and memory that it has freed is found by the address sanitizer.
#include "moves.h"

#include <string.h>

#include "report.h"

cl_int standin_buffer_bytes(cl_command_queue queue, cl_mem buffer,
                            size_t offset, size_t size, standin_bytes *out) {
  cl_int error = standin_check(buffer, STANDIN_BUFFER);
  if (error != CL_SUCCESS) return error;
  if (buffer->context != queue->context) {
    return standin_wrong(CL_INVALID_CONTEXT, "buffer %p is of another context",
                         (void *)buffer);
  }
  standin_region *region = buffer->region;
  if (offset > region->size || size > region->size - offset) {
    return standin_wrong(CL_INVALID_VALUE,
                         "%zu bytes from byte %zu of a buffer of %zu bytes",
                         size, offset, region->size);
  }
  *out = (standin_bytes){region, region->bytes + offset, offset, size};
  return CL_SUCCESS;
}

static cl_int run_copy(standin_command *command) {
  memcpy(command->to, command->from, command->size);
  return CL_SUCCESS;
}

static bool overlap(const standin_bytes *a, const standin_bytes *b) {
  return a->at < b->at + b->size && b->at < a->at + a->size;
}

cl_int standin_move_copy(standin_command *command, const standin_bytes *to,
                         const standin_bytes *from) {
  if (to->size == 0) return standin_wrong(CL_INVALID_VALUE, "0 bytes");
  if (overlap(to, from)) {
    return standin_wrong(CL_MEM_COPY_OVERLAP, "%zu bytes to %p overlap %p",
                         to->size, (void *)to->at, (void *)from->at);
  }
  cl_int error = standin_command_touch(command, to, true);
  if (error == CL_SUCCESS) error = standin_command_touch(command, from, false);
  command->to = to->at;
  command->from = from->at;
  command->size = to->size;
  command->run = run_copy;
  return error;
}

static cl_int run_fill(standin_command *command) {
  for (size_t at = 0; at < command->size; at += command->pattern_size) {
    memcpy(command->to + at, command->pattern, command->pattern_size);
  }
  return CL_SUCCESS;
}

static cl_int check_pattern(const standin_bytes *to, const void *pattern,
                            size_t pattern_size) {
  if (pattern == NULL || pattern_size == 0 ||
      pattern_size > STANDIN_PATTERN_MAX ||
      (pattern_size & (pattern_size - 1)) != 0) {
    return standin_wrong(CL_INVALID_VALUE, "a pattern of %zu bytes at %p",
                         pattern_size, pattern);
  }
  if (to->size == 0 || to->size % pattern_size != 0 ||
      to->offset % pattern_size != 0) {
    return standin_wrong(CL_INVALID_VALUE,
                         "%zu bytes from byte %zu by a pattern of %zu bytes",
                         to->size, to->offset, pattern_size);
  }
  return CL_SUCCESS;
}

cl_int standin_move_fill(standin_command *command, const standin_bytes *to,
                         const void *pattern, size_t pattern_size) {
  cl_int error = check_pattern(to, pattern, pattern_size);
  if (error != CL_SUCCESS) return error;
  memcpy(command->pattern, pattern, pattern_size);
  command->pattern_size = pattern_size;
  command->to = to->at;
  command->size = to->size;
  command->run = run_fill;
  return standin_command_touch(command, to, true);
}
