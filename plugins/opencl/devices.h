// devices.h - the platforms and devices that there are, for the files that open
// them.
#ifndef TARN_PLUGINS_OPENCL_DEVICES_H_
#define TARN_PLUGINS_OPENCL_DEVICES_H_

#include "opencl.h"

enum { TARN__OPENCL_PLATFORMS_MAX = 16 };

typedef struct tarn__opencl_registry {
  pthread_mutex_t lock;  // guards all below, and every open and close; what is
                         // listed never changes
  tarn__opencl_options options;
  tarn__opencl_platform platforms[TARN__OPENCL_PLATFORMS_MAX];
  size_t platform_count;
  tarn__opencl_device devices[TARN__OPENCL_DEVICES_MAX];
  size_t count;
  bool is_listed;
  uint32_t generation;  // of the process that asked for the devices
} tarn__opencl_registry;

extern tarn__opencl_registry tarn__opencl_devices;

// Loads the driver and finds the platforms, which a fork survives.
//
// C_ERROR  an option is bad.
// C_FAILED the library cannot be loaded, or there is no platform.
C_Status tarn__opencl_find_platforms(void);

// The same, and finds the devices, which no fork survives.
//
// C_FAILED  there is none that is selected.
C_Status tarn__opencl_find_devices(void);

// The device that |device| names, open or not; NULL, with the thread's text, as
// tarn__opencl_device_of.
tarn__opencl_device *tarn__opencl_listed(const struct C_Device_st *device);

// open.c: gives back whatever is left of all devices.
C_Status tarn__opencl_finalize(void);

#endif  // TARN_PLUGINS_OPENCL_DEVICES_H_
