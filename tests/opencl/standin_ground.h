// standin_ground.h - what the tests of the stand-in have in common.
#ifndef TARN_TESTS_OPENCL_STANDIN_GROUND_H_
#define TARN_TESTS_OPENCL_STANDIN_GROUND_H_

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <string.h>

#include "opencl/standin.h"
#include "support/run.h"

// The extension's, where the distribution's headers do not have it.
#ifndef cl_ext_buffer_device_address
typedef cl_ulong cl_mem_device_address_ext;
#define CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT 0x5000
#define CL_MEM_DEVICE_ADDRESS_EXT 0x5001
#define CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT 0x5002
#endif

#define gives(expression, expected) ck_assert_int_eq(expression, expected)
#define done(expression) gives(expression, CL_SUCCESS)

// The stand-in has counted |expected| wrong uses, and no more.
#define assert_misuses(expected)                                              \
  do {                                                                        \
    char misuses_text[4096];                                                  \
    tarn_standin_report(misuses_text, sizeof misuses_text);                   \
    ck_assert_msg(tarn_standin_misuses() == (expected), "%u wrong uses:\n%s", \
                  (unsigned)tarn_standin_misuses(), misuses_text);            \
  } while (0)

// |expression| gives |expected|, and the report says |part| of it.
#define refuses(expression, expected, part)                                    \
  do {                                                                         \
    char refuses_text[16384];                                                  \
    uint64_t refuses_before = tarn_standin_misuses();                          \
    gives(expression, expected);                                               \
    ck_assert_uint_eq(tarn_standin_misuses(), refuses_before + 1);             \
    tarn_standin_report(refuses_text, sizeof refuses_text);                    \
    ck_assert_msg(strstr(refuses_text, part) != NULL, "no '%s' in:\n%s", part, \
                  refuses_text);                                               \
  } while (0)

typedef struct ground {
  cl_platform_id platform;
  cl_device_id device;
  cl_context context;
  cl_command_queue queue;
} ground;

// A context with one queue of the first device, over these memory methods.
// After the test nothing may be left of what it has made.
ground ground_with(const char *methods);

cl_command_queue ground_queue(const ground *on);

// Ends the context and the queue; nothing else may live.
void ground_close(ground *on);

// A buffer of |size| bytes.
cl_mem ground_buffer(const ground *on, cl_mem_flags flags, size_t size);

// Bytes that differ, and whether these, or all of them |value|, are there.
void fill_in(unsigned char *bytes, size_t size);
void assert_filled(const unsigned char *bytes, size_t size);
void assert_all(const unsigned char *bytes, size_t size, int value);

cl_int event_status(cl_event event);

// False where a read at |address| would fault.
bool host_reaches(const void *address);

// The function of that name of an extension of the platform.
void (*ground_function(const ground *on, const char *name))(void);

#endif  // TARN_TESTS_OPENCL_STANDIN_GROUND_H_
