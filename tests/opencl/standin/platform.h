// platform.h - the platforms and devices that the settings describe.
#ifndef TARN_TESTS_OPENCL_STANDIN_PLATFORM_H_
#define TARN_TESTS_OPENCL_STANDIN_PLATFORM_H_

#include "objects.h"
#include "settings.h"

// How many the settings want. With the lock held for the two that return an
// object, which is made when it is first asked for; NULL: no host memory.
cl_uint standin_platform_count(void);
cl_uint standin_device_count(void);
cl_platform_id standin_platform(cl_uint number);
cl_device_id standin_device(cl_platform_id platform, cl_uint number);

cl_device_type standin_device_type(const struct _cl_device_id *device);

// "OpenCL 3.0 " and the like.
void standin_version_text(const char *before, char out[STANDIN_TEXT_SIZE]);

// Names of extensions, with blanks between.
void standin_extensions(char out[STANDIN_TEXT_SIZE]);

#endif  // TARN_TESTS_OPENCL_STANDIN_PLATFORM_H_
