// moves.h - copies and fills, once both ends are known.
#ifndef TARN_TESTS_OPENCL_STANDIN_MOVES_H_
#define TARN_TESTS_OPENCL_STANDIN_MOVES_H_

#include "commands.h"

// The |size| bytes from |offset| on of a buffer of the queue's context.
cl_int standin_buffer_bytes(cl_command_queue queue, cl_mem buffer,
                            size_t offset, size_t size, standin_bytes *out);

// Makes |command| a copy; refuses one of 0 bytes, or of ends that overlap.
cl_int standin_move_copy(standin_command *command, const standin_bytes *to,
                         const standin_bytes *from);

// Makes |command| a fill; refuses what is no multiple of the pattern.
cl_int standin_move_fill(standin_command *command, const standin_bytes *to,
                         const void *pattern, size_t pattern_size);

#endif  // TARN_TESTS_OPENCL_STANDIN_MOVES_H_
