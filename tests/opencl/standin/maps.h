// maps.h - parts of memory that the host reaches between two commands.
#ifndef TARN_TESTS_OPENCL_STANDIN_MAPS_H_
#define TARN_TESTS_OPENCL_STANDIN_MAPS_H_

#include "commands.h"

// Makes |command| the first of the two. |copied|: the host has bytes of its own
// meanwhile. |out_host|: where.
cl_int standin_map_begin(standin_command *command, const standin_bytes *bytes,
                         cl_map_flags flags, bool copied, void **out_host);

// Makes |command| the second, of the part whose bytes the host has at |host|.
cl_int standin_map_end(standin_command *command, standin_region *region,
                       const void *host);

#endif  // TARN_TESTS_OPENCL_STANDIN_MAPS_H_
