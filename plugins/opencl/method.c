// The ways in which a driver gives memory an address, best first:
//
//   DEVICE   unified memory, coarse SVM, buffers with a device address, buffers
//            behind a window
//   HOST     unified memory, fine SVM, buffers that stay mapped
//   UNIFIED  unified memory, fine SVM
//
// They are chosen once for a device, at open.
#include <string.h>

#include "base/hostmem.h"
#include "opencl.h"

// --- what a driver has -----------------------------------------------------

static bool has_extension(const tarn__opencl_device *d, const char *name) {
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  size_t size = 0;
  if (cl->GetDeviceInfo(d->handle, CL_DEVICE_EXTENSIONS, 0, NULL, &size) !=
          CL_SUCCESS ||
      size == 0) {
    return false;
  }
  char *text = tarn__host_alloc(size);
  bool found = text != NULL &&
               cl->GetDeviceInfo(d->handle, CL_DEVICE_EXTENSIONS, size, text,
                                 NULL) == CL_SUCCESS &&
               strstr(text, name) != NULL;
  tarn__host_free(text, size);
  return found;
}

static bool has_usm(const tarn__opencl_device *d, tarn__opencl_kind kind) {
  static const cl_device_info capabilities[TARN__OPENCL_KINDS] = {
      CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL,
      CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL,
      CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL};
  const tarn__opencl_extensions *ext = &d->platform->ext;
  return ext->device_mem_alloc != NULL && ext->host_mem_alloc != NULL &&
         ext->shared_mem_alloc != NULL && ext->mem_free != NULL &&
         ext->enqueue_memcpy != NULL && ext->enqueue_mem_fill != NULL &&
         ext->set_mem_pointer != NULL &&
         has_extension(d, "cl_intel_unified_shared_memory") &&
         (tarn__opencl_ask(
              d, capabilities[kind],
              sizeof(cl_device_unified_shared_memory_capabilities_intel)) &
          CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL) != 0;
}

static bool has_svm(const tarn__opencl_device *d, cl_ulong grain) {
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  return cl->SVMAlloc != NULL && cl->SVMFree != NULL &&
         cl->EnqueueSVMMemcpy != NULL && cl->EnqueueSVMMemFill != NULL &&
         cl->EnqueueSVMMap != NULL && cl->EnqueueSVMUnmap != NULL &&
         cl->SetKernelArgSVMPointer != NULL && cl->SetKernelExecInfo != NULL &&
         (tarn__opencl_ask(d, CL_DEVICE_SVM_CAPABILITIES,
                           sizeof(cl_device_svm_capabilities)) &
          grain) != 0;
}

// Makes a buffer and asks for its address: drafts of the extension have its
// name but other numbers, and PoCL 6.0 has one.
static bool gives_address(const tarn__opencl_device *d) {
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  const cl_mem_properties properties[] = {TARN__OPENCL_MEM_PRIVATE_ADDRESS,
                                          CL_TRUE, 0};
  tarn__opencl_address addresses[TARN__OPENCL_DEVICES_MAX] = {0};
  cl_int error = CL_SUCCESS;
  cl_mem buffer = cl->CreateBufferWithProperties(
      d->context, properties, CL_MEM_READ_WRITE, d->align, NULL, &error);
  if (buffer == NULL) return false;
  error = cl->GetMemObjectInfo(buffer, TARN__OPENCL_MEM_DEVICE_ADDRESS,
                               sizeof addresses, addresses, NULL);
  (void)cl->ReleaseMemObject(buffer);
  return error == CL_SUCCESS && addresses[d->rank] != 0;
}

static bool has_addresses(const tarn__opencl_device *d) {
  return tarn__opencl_driver_get()->CreateBufferWithProperties != NULL &&
         tarn__opencl_driver_get()->SetKernelExecInfo != NULL &&
         d->platform->ext.set_device_pointer != NULL &&
         has_extension(d, "cl_ext_buffer_device_address") && gives_address(d);
}

static bool has_method(const tarn__opencl_device *d, tarn__opencl_kind kind,
                       tarn__opencl_method method) {
  bool is_device = kind == TARN__OPENCL_DEVICE;
  switch (method) {
    case TARN__OPENCL_NONE:
      return !is_device;
    case TARN__OPENCL_USM:
      return has_usm(d, kind);
    case TARN__OPENCL_SVM:
      return has_svm(d, is_device ? CL_DEVICE_SVM_COARSE_GRAIN_BUFFER
                                  : CL_DEVICE_SVM_FINE_GRAIN_BUFFER);
    case TARN__OPENCL_ADDRESS:
      return is_device && has_addresses(d);
    case TARN__OPENCL_WINDOW:
      return is_device;
    case TARN__OPENCL_MAPPED:
      return kind == TARN__OPENCL_HOST;
    default:
      return false;
  }
}

// --- the choice ------------------------------------------------------------

// The methods stand in the order of their worth.
static tarn__opencl_method find_best(const tarn__opencl_device *d,
                                     tarn__opencl_kind kind) {
  for (int i = TARN__OPENCL_USM; i < TARN__OPENCL_METHODS; i++)
    if (has_method(d, kind, (tarn__opencl_method)i)) {
      return (tarn__opencl_method)i;
    }
  return TARN__OPENCL_NONE;
}

static C_Status choose_kind(tarn__opencl_device *d, tarn__opencl_kind kind,
                            const tarn__opencl_options *options) {
  tarn__opencl_method wanted = options->methods[kind];
  if (!options->is_set[kind]) {
    d->methods[kind] = find_best(d, kind);
    return C_SUCCESS;
  }
  d->methods[kind] = wanted;
  if (has_method(d, kind, wanted)) return C_SUCCESS;
  (void)tarn__text_fail(
      TARN_E_UNSUPPORTED, "TARN_OPENCL_MEMORY: %s has no memory %s=%s", d->name,
      tarn__opencl_kind_name(kind), tarn__opencl_method_name(wanted));
  return C_FAILED;
}

C_Status tarn__opencl_choose(tarn__opencl_device *d,
                             const tarn__opencl_options *options) {
  for (int kind = 0; kind < TARN__OPENCL_KINDS; kind++) {
    C_Status status = choose_kind(d, (tarn__opencl_kind)kind, options);
    if (status != C_SUCCESS) return status;
  }
  cl_ulong type = tarn__opencl_ask(d, CL_DEVICE_TYPE, sizeof(cl_device_type));
  d->maps = (type & CL_DEVICE_TYPE_CPU) != 0 &&
            d->methods[TARN__OPENCL_DEVICE] == TARN__OPENCL_SVM;
  return C_SUCCESS;
}
