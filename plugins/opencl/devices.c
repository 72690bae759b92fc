// The devices by number, in the order of platforms and of their devices, and
// the functions of platforms' extensions.
//
// A driver is asked for its devices once, for good: from then on it may have
// threads, and a forked child cannot use it.
#include <string.h>

#include "devices.h"

tarn__opencl_registry tarn__opencl_devices = {.lock =
                                                  PTHREAD_MUTEX_INITIALIZER};

typedef tarn__opencl_registry registry;

static const cl_device_type TYPES =
    CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_ACCELERATOR;

// --- platforms -------------------------------------------------------------

// Copies a function of an extension to |slot|; NULL where there is none.
static void find_function(cl_platform_id platform, const char *name,
                          void *slot) {
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  void *function = cl->GetExtensionFunctionAddressForPlatform(platform, name);
  memcpy(slot, &function, sizeof function);
}

static void find_functions(tarn__opencl_platform *p) {
  const struct {
    const char *name;
    void *slot;
  } functions[] = {
      {"clDeviceMemAllocINTEL", &p->ext.device_mem_alloc},
      {"clHostMemAllocINTEL", &p->ext.host_mem_alloc},
      {"clSharedMemAllocINTEL", &p->ext.shared_mem_alloc},
      {"clMemFreeINTEL", &p->ext.mem_free},
      {"clEnqueueMemcpyINTEL", &p->ext.enqueue_memcpy},
      {"clEnqueueMemFillINTEL", &p->ext.enqueue_mem_fill},
      {"clSetKernelArgMemPointerINTEL", &p->ext.set_mem_pointer},
      {"clSetKernelArgDevicePointerEXT", &p->ext.set_device_pointer},
  };
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    find_function(p->handle, functions[i].name, functions[i].slot);
}

static void read_name(tarn__opencl_platform *p) {
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  if (cl->GetPlatformInfo(p->handle, CL_PLATFORM_NAME, sizeof p->name, p->name,
                          NULL) != CL_SUCCESS) {
    tarn__text_copy("a platform without a name", p->name, sizeof p->name);
  }
}

static C_Status no_platform(cl_int error) {
  if (error != CL_SUCCESS && error != CL_PLATFORM_NOT_FOUND_KHR) {
    return tarn__opencl_say(error, "clGetPlatformIDs");
  }
  (void)tarn__text_fail(TARN_E_DEVICE,
                        "libOpenCL.so.1 has no platform: no driver is "
                        "installed in /etc/OpenCL/vendors, or none loads");
  return C_FAILED;
}

static C_Status find_platforms(registry *all) {
  cl_platform_id handles[TARN__OPENCL_PLATFORMS_MAX];
  cl_uint count = 0;
  cl_int error = tarn__opencl_driver_get()->GetPlatformIDs(
      TARN__OPENCL_PLATFORMS_MAX, handles, &count);
  if (error != CL_SUCCESS || count == 0) return no_platform(error);
  if (count > TARN__OPENCL_PLATFORMS_MAX) count = TARN__OPENCL_PLATFORMS_MAX;
  for (cl_uint i = 0; i < count; i++) {
    tarn__opencl_platform *p = &all->platforms[i];
    *p = (tarn__opencl_platform){.handle = handles[i]};
    read_name(p);
  }
  all->platform_count = count;
  return C_SUCCESS;
}

C_Status tarn__opencl_find_platforms(void) {
  registry *all = &tarn__opencl_devices;
  if (tarn__opencl_load() == NULL) return C_FAILED;
  if (!tarn__opencl_options_read(&all->options)) return C_ERROR;
  pthread_mutex_lock(&all->lock);
  C_Status status = all->platform_count == 0 ? find_platforms(all) : C_SUCCESS;
  pthread_mutex_unlock(&all->lock);
  return status;
}

// --- devices ---------------------------------------------------------------

static bool is_selected(const registry *all, const tarn__opencl_device *d) {
  const char *part = all->options.select;
  return strcasestr(d->platform->name, part) != NULL ||
         strcasestr(d->name, part) != NULL;
}

// A number that the driver tells of the device; 0 where it does not know it.
// The first other error stays in |*error|.
static cl_ulong ask(const tarn__opencl_device *d, cl_device_info what,
                    size_t size, cl_int *error) {
  cl_ulong value = 0;
  cl_int answer = tarn__opencl_driver_get()->GetDeviceInfo(d->handle, what,
                                                           size, &value, NULL);
  if (answer == CL_SUCCESS) return value;
  if (*error == CL_SUCCESS && answer != CL_INVALID_VALUE) *error = answer;
  return 0;
}

cl_ulong tarn__opencl_ask(const tarn__opencl_device *d, cl_device_info what,
                          size_t size) {
  cl_int ignored = CL_SUCCESS;
  return ask(d, what, size, &ignored);
}

static size_t find_align(size_t bits) {
  enum { LEAST = 16, MOST = 4096 };
  size_t align = bits / 8;
  bool is_power = align != 0 && (align & (align - 1)) == 0;
  if (!is_power || align < LEAST) return LEAST;
  return align < MOST ? align : (size_t)MOST;
}

static cl_int measure(tarn__opencl_device *d, size_t wanted) {
  cl_int error = CL_SUCCESS;
  size_t whole = ask(d, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(cl_ulong), &error);
  size_t most = ask(d, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(cl_ulong), &error);
  d->capacity = wanted != 0 ? tarn__lesser(wanted, whole) : whole;
  d->max_alloc = tarn__lesser(most, d->capacity);
  d->align = find_align(
      ask(d, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(cl_uint), &error));
  d->units = ask(d, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(cl_uint), &error);
  d->group = ask(d, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t), &error);
  return error;
}

// What kernels are built for.
static cl_int ask_for_kernels(tarn__opencl_device *d) {
  const cl_device_fp_config denorms = CL_FP_DENORM | CL_FP_ROUND_TO_NEAREST;
  cl_int error = CL_SUCCESS;
  cl_ulong type = ask(d, CL_DEVICE_TYPE, sizeof(cl_device_type), &error);
  cl_ulong floats =
      ask(d, CL_DEVICE_SINGLE_FP_CONFIG, sizeof(cl_device_fp_config), &error);
  cl_ulong doubles =
      ask(d, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof(cl_device_fp_config), &error);
  d->is_gpu = (type & CL_DEVICE_TYPE_GPU) != 0;
  d->has_f64 = doubles != 0;
  d->has_denorms = (floats & denorms) == denorms;
  return error;
}

// A device of which the driver does not tell what it has is none.
static cl_int add_device(registry *all, tarn__opencl_platform *p,
                         cl_device_id handle) {
  if (all->count == TARN__OPENCL_DEVICES_MAX) return CL_SUCCESS;
  tarn__opencl_device *d = &all->devices[all->count];
  *d = (tarn__opencl_device){
      .id = (int)all->count, .handle = handle, .platform = p};
  if (tarn__opencl_driver_get()->GetDeviceInfo(handle, CL_DEVICE_NAME,
                                               sizeof d->name, d->name,
                                               NULL) != CL_SUCCESS) {
    tarn__text_copy("a device without a name", d->name, sizeof d->name);
  }
  if (!is_selected(all, d)) return CL_SUCCESS;
  cl_int error = measure(d, all->options.capacity);
  if (error == CL_SUCCESS) error = ask_for_kernels(d);
  if (error != CL_SUCCESS) return error;
  pthread_mutex_init(&d->lock, NULL);
  all->count++;
  return CL_SUCCESS;
}

// The first error, but that there is none of the types.
static cl_int find_devices_of(registry *all, tarn__opencl_platform *p) {
  cl_device_id handles[TARN__OPENCL_DEVICES_MAX];
  cl_uint count = 0;
  cl_int error = tarn__opencl_driver_get()->GetDeviceIDs(
      p->handle, TYPES, TARN__OPENCL_DEVICES_MAX, handles, &count);
  if (error == CL_DEVICE_NOT_FOUND) return CL_SUCCESS;
  if (error != CL_SUCCESS) return error;
  if (count > TARN__OPENCL_DEVICES_MAX) count = TARN__OPENCL_DEVICES_MAX;
  find_functions(p);
  for (cl_uint i = 0; i < count; i++) {
    cl_int failed = add_device(all, p, handles[i]);
    if (failed != CL_SUCCESS) error = failed;
  }
  return error;
}

// One driver that is broken must not hide those of others.
static C_Status find_devices(registry *all) {
  cl_int broken = CL_SUCCESS;
  for (size_t i = 0; i < all->platform_count; i++) {
    cl_int error = find_devices_of(all, &all->platforms[i]);
    if (error != CL_SUCCESS) broken = error;
  }
  all->generation = tarn__os_generation();
  all->is_listed = all->count != 0;
  if (all->is_listed) return C_SUCCESS;
  if (broken != CL_SUCCESS)
    return tarn__opencl_say(broken, "the list of devices");
  const char *part = all->options.select;
  (void)tarn__text_fail(
      TARN_E_DEVICE, "no GPU, CPU or accelerator on %zu platform%s%s%s%s%s",
      all->platform_count, all->platform_count == 1 ? ", " : "s, such as ",
      all->platforms[0].name, *part != '\0' ? ", of which the name has '" : "",
      part, *part != '\0' ? "' in it" : "");
  return C_FAILED;
}

C_Status tarn__opencl_find_devices(void) {
  registry *all = &tarn__opencl_devices;
  C_Status status = tarn__opencl_find_platforms();
  if (status != C_SUCCESS) return status;
  pthread_mutex_lock(&all->lock);
  status = all->is_listed ? C_SUCCESS : find_devices(all);
  pthread_mutex_unlock(&all->lock);
  return status;
}

tarn__opencl_device *tarn__opencl_listed(const struct C_Device_st *device) {
  registry *all = &tarn__opencl_devices;
  if (device == NULL || device->id < 0 || (size_t)device->id >= all->count) {
    (void)tarn__text_fail(TARN_E_INVALID, "there is no device %d",
                          device != NULL ? device->id : -1);
    return NULL;
  }
  if (all->generation != tarn__os_generation()) {
    (void)tarn__text_fail(TARN_E_STATE,
                          "the driver was asked for its devices before a "
                          "fork: its threads are not in this process");
    return NULL;
  }
  return &all->devices[device->id];
}

tarn__opencl_device *tarn__opencl_device_of(const struct C_Device_st *device) {
  tarn__opencl_device *d = tarn__opencl_listed(device);
  if (d == NULL || atomic_load_explicit(&d->ready, memory_order_acquire)) {
    return d;
  }
  (void)tarn__text_fail(TARN_E_INVALID, "device %d is not initialised", d->id);
  return NULL;
}

tarn__opencl_device *tarn__opencl_nth(size_t number) {
  registry *all = &tarn__opencl_devices;
  return number < all->count ? &all->devices[number] : NULL;
}

tarn_status tarn__opencl_admit(int id, tarn__opencl_device **out) {
  struct C_Device_st device = {id};
  *out = tarn__opencl_device_of(&device);
  return *out != NULL ? TARN_OK : TARN_E_INVALID;
}
