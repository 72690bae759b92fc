// devices.h - the devices that there are, for the files that open them.
#ifndef TARN_PLUGINS_CUDA_DEVICES_H_
#define TARN_PLUGINS_CUDA_DEVICES_H_

#include "gpu.h"

typedef struct tarn__cuda_registry {
  pthread_mutex_t lock;  // guards all below, and every open and close; what is
                         // listed never changes
  tarn__cuda_options options;
  tarn__cuda_device devices[TARN__CUDA_DEVICES_MAX];
  size_t count;
  bool is_listed;
  int version;          // of the driver, 1000 times the major and 10 times the
                        // minor number
  uint32_t generation;  // of the process that initialised the driver
} tarn__cuda_registry;

extern tarn__cuda_registry tarn__cuda_devices;

// Loads the driver, which a fork survives.
//
// C_ERROR   an option is bad.
// C_FAILED  the library cannot be loaded.
C_Status tarn__cuda_find_driver(void);

// The same, initialises the driver and lists the devices, which no fork
// survives.
//
// C_FAILED  there is none, or a driver's failure: the text says which.
// C_ERROR   an option is bad, or a parent has listed them.
C_Status tarn__cuda_find_devices(void);

// The device that |device| names, open or not; NULL, with the thread's text, as
// tarn__cuda_device_of.
tarn__cuda_device *tarn__cuda_listed(const struct C_Device_st *device);

// A number that the driver tells of the device; 0 where it does not know it.
int tarn__cuda_ask(const tarn__cuda_device *device, unsigned attribute);

// open.c: gives back whatever is left of all devices.
C_Status tarn__cuda_finalize(void);

#endif  // TARN_PLUGINS_CUDA_DEVICES_H_
