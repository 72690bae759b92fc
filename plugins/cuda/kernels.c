// The module of kernels, loaded into the context of a device when that is
// opened. Where it cannot be, the device has no TARN__CUDA_ROWS, and its
// why_not tells what the driver said: a driver that is older than the nvcc that
// made the image refuses it, and a GPU that the image is not for.
//
// Invariants:
//   * |module| is NULL, and there are no |kernels|, unless the device has
//     TARN__CUDA_ROWS.
#include <string.h>

#include "gpu.h"
#include "image.h"

typedef tarn__cuda_device gpu;

static const char *const names[TARN__CUDA_KERNEL_NAMES][2] = {
#define NAMES(name) {"tarn_" #name, "tarn_" #name "_many"},
    TARN__CUDA_KERNELS(NAMES)
#undef NAMES
};

static bool has_functions(const tarn__cuda_driver *cu) {
  return cu->ModuleLoadData != NULL && cu->ModuleUnload != NULL &&
         cu->ModuleGetFunction != NULL && cu->LaunchKernel != NULL;
}

// Why the device has none before the driver is asked; NULL: it may have.
static const char *why_none(void) {
  if (!tarn__cuda_vendor_of.has_kernels)
    return "there are no kernels for this vendor's devices";
  if (tarn__cuda_image_size == 0)
    return "this plug-in was built without nvcc, and has no kernels";
  if (!has_functions(tarn__cuda_driver_get()))
    return "the driver has no functions to load and launch kernels";
  return NULL;
}

static tarn__cuda_result find_kernels(gpu *d) {
  tarn__cuda_result error = TARN__CU_SUCCESS;
  for (size_t i = 0; i < TARN__CUDA_KERNEL_NAMES; i++)
    for (size_t many = 0; many < 2 && error == TARN__CU_SUCCESS; many++)
      error = tarn__cuda_driver_get()->ModuleGetFunction(
          &d->kernels[i][many], d->module, names[i][many]);
  return error;
}

// The driver's words; NULL: all kernels are there.
static const char *load(gpu *d) {
  tarn__cuda_result error =
      tarn__cuda_driver_get()->ModuleLoadData(&d->module, tarn__cuda_image);
  if (error != TARN__CU_SUCCESS) {
    d->module = NULL;
    (void)tarn__cuda_say(error, "cuModuleLoadData");
    return tarn__text_line();
  }
  error = find_kernels(d);
  if (error == TARN__CU_SUCCESS) return NULL;
  (void)tarn__cuda_say(error, "cuModuleGetFunction");
  return tarn__text_line();
}

void tarn__cuda_kernels_open(tarn__cuda_device *device,
                             const tarn__cuda_options *options) {
  if (!tarn__cuda_is_wanted(device, TARN__CUDA_ROWS, options)) return;
  const char *why = why_none();
  if (why == NULL) why = load(device);
  tarn__cuda_settle(device, TARN__CUDA_ROWS, why);
  if (why != NULL) tarn__cuda_kernels_close(device);
}

void tarn__cuda_kernels_close(tarn__cuda_device *device) {
  if (device->module != NULL)
    (void)tarn__cuda_driver_get()->ModuleUnload(device->module);
  device->module = NULL;
  memset(device->kernels, 0, sizeof device->kernels);
}
