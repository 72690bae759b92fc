// AMD's HIP as a driver like CUDA's: the functions of libamdhip64.so, and in
// their place those of this file where the two differ.
//
// Contexts. HIP has a current device and no contexts: a context is a handle
// that is the device's number + 1. A push sets the device, and keeps the one
// before it for the pop, per thread.
//
// Streams. The stream that a program names by NULL has the handle 1 in the ABI,
// which HIP knows from 6.3 on: it is named by NULL here.
//
// Versions. The library that is loaded may be of HIP 5, 6 or 7, which differ in
// numbers and structs. It is asked for its version when it is initialised,
// since the question initialises it. HIP 5 has the functions of ranges, with a
// struct that is not CUDA's or without effect: there a device is said to have
// none.
#include "hip.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "driver.h"

// Written by fill, before any other function here is called.
static struct {
  atomic_int version;       // written by init; 0 before
  tarn__cuda_driver plain;  // as the library has them
// NOLINTBEGIN(bugprone-macro-parentheses)
#define FIELD(name, result, arguments) result(*(name)) arguments;
  TARN__HIP_REQUIRED(FIELD)
#undef FIELD
  // NOLINTEND(bugprone-macro-parentheses)
} hip;

static bool is_before(int major, int minor) {
  return atomic_load_explicit(&hip.version, memory_order_relaxed) <
         TARN__HIP_VERSION(major, minor);
}

// A library that does not tell its version is taken for the oldest.
static tarn__cuda_result init(unsigned flags) {
  tarn__cuda_result error = hip.plain.Init(flags);
  int version = 0;
  if (error != TARN__CU_SUCCESS) return error;
  if (hip.hipRuntimeGetVersion(&version) != TARN__CU_SUCCESS) version = 0;
  atomic_store_explicit(&hip.version, version, memory_order_relaxed);
  return TARN__CU_SUCCESS;
}

// In the form of CUDA's: 1000 for a major version, 10 for a minor one.
static tarn__cuda_result driver_get_version(int *out) {
  int version = atomic_load_explicit(&hip.version, memory_order_relaxed);
  *out = version / TARN__HIP_VERSION(1, 0) * 1000 +
         version % TARN__HIP_VERSION(1, 0) / TARN__HIP_VERSION(0, 1) * 10;
  return TARN__CU_SUCCESS;
}

// --- errors ----------------------------------------------------------------

static tarn__cuda_result get_error_name(tarn__cuda_result error,
                                        const char **out) {
  *out = hip.hipGetErrorName(error);
  return TARN__CU_SUCCESS;
}

static tarn__cuda_result get_error_string(tarn__cuda_result error,
                                          const char **out) {
  *out = hip.hipGetErrorString(error);
  return TARN__CU_SUCCESS;
}

static const struct {
  const char *cuda;
  const char *hip;
} calls[] = {{"cuCtxPushCurrent", "hipSetDevice"},
             {"cuCtxPopCurrent", "hipSetDevice"},
             {"cuCtxGetCurrent", "hipGetDevice"},
             {"cuDeviceGetAttribute", "hipDeviceGetAttribute"},
             {"cuPointerGetAttribute", "hipPointerGetAttributes"},
             {"cuMemcpyPeerAsync", "hipMemcpyPeerAsync"},
#define CALL(field, cuda, hip, arguments) {"cu" #field, #hip},
             TARN__CU_REQUIRED(CALL) TARN__CU_OPTIONAL(CALL)
#undef CALL
};

static bool is_none(const char *name) {
  return strcmp(name, "none") == 0;
}

// The first that fits.
static const char *name_call(const char *cuda) {
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
    if (strcmp(calls[i].cuda, cuda) == 0 && !is_none(calls[i].hip))
      return calls[i].hip;
  return cuda;
}

// --- devices ---------------------------------------------------------------

static const struct {
  unsigned cuda;
  unsigned hip;
} attributes[] = {
#define ATTRIBUTE(cuda, hip, number) \
  {TARN__CU_DEVICE_ATTRIBUTE_##cuda, (number)},
    TARN__HIP_ATTRIBUTES(ATTRIBUTE)
#undef ATTRIBUTE
};

enum { RANGES = 89 };  // VirtualMemoryManagementSupported

static tarn__cuda_result device_get_attribute(int *out, unsigned attribute,
                                              CUdevice device) {
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
    if (attributes[i].cuda != attribute) continue;
    if (attributes[i].hip == RANGES && is_before(6, 0)) break;
    return hip.hipDeviceGetAttribute(out, attributes[i].hip, device);
  }
  return TARN__CU_ERROR_INVALID_VALUE;
}

// --- contexts --------------------------------------------------------------

static CUcontext context_of(CUdevice device) {
  return (CUcontext)((uintptr_t)device + 1);
}

static CUdevice device_of(CUcontext context) {
  return (CUdevice)((uintptr_t)context - 1);
}

static tarn__cuda_result primary_retain(CUcontext *out, CUdevice device) {
  *out = context_of(device);
  return TARN__CU_SUCCESS;
}

static tarn__cuda_result primary_release(CUdevice device) {
  (void)device;
  return TARN__CU_SUCCESS;
}

static tarn__cuda_result get_current(CUcontext *out) {
  CUdevice device = 0;
  tarn__cuda_result error = hip.hipGetDevice(&device);
  *out = error == TARN__CU_SUCCESS ? context_of(device) : NULL;
  return error;
}

// The thread's contexts before its pushes, the newest in the lowest byte, 0
// where there is none.
static _Thread_local uint64_t pushed;
enum { BITS_PER_CONTEXT = 8, CONTEXTS_MAX = UINT8_MAX };

static tarn__cuda_result push_current(CUcontext context) {
  CUcontext before = NULL;
  tarn__cuda_result error = get_current(&before);
  if (error != TARN__CU_SUCCESS) return error;
  bool is_full = pushed >> (64 - BITS_PER_CONTEXT) != 0;
  if (is_full || (uintptr_t)before > CONTEXTS_MAX)
    return TARN__CU_ERROR_INVALID_CONTEXT;
  error = hip.hipSetDevice(device_of(context));
  if (error == TARN__CU_SUCCESS)
    pushed = pushed << BITS_PER_CONTEXT | (uintptr_t)before;
  return error;
}

// The push is undone even where the driver does not tell what |*out| is.
static tarn__cuda_result pop_current(CUcontext *out) {
  *out = NULL;
  if (pushed == 0) return TARN__CU_ERROR_INVALID_CONTEXT;
  CUcontext before = (CUcontext)(uintptr_t)(pushed & CONTEXTS_MAX);
  pushed >>= BITS_PER_CONTEXT;
  (void)get_current(out);
  return hip.hipSetDevice(device_of(before));
}

// --- streams ---------------------------------------------------------------

static CUstream native(CUstream stream) {
  return stream == TARN__CU_STREAM_LEGACY ? NULL : stream;
}

// X(field, parameters, arguments): functions of api.h that take a stream.
#define REQUIRED_ON_STREAM(X)                                               \
  X(StreamQuery, (CUstream stream), (native(stream)))                       \
  X(StreamSynchronize, (CUstream stream), (native(stream)))                 \
  X(StreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),      \
    (native(stream), event, flags))                                         \
  X(StreamAddCallback,                                                      \
    (CUstream stream, tarn__cuda_callback * callback, void *user,           \
     unsigned flags),                                                       \
    (native(stream), callback, user, flags))                                \
  X(EventRecord, (CUevent event, CUstream stream), (event, native(stream))) \
  X(MemcpyHtoDAsync,                                                        \
    (CUdeviceptr dst, const void *src, size_t size, CUstream stream),       \
    (dst, src, size, native(stream)))                                       \
  X(MemcpyDtoHAsync,                                                        \
    (void *dst, CUdeviceptr src, size_t size, CUstream stream),             \
    (dst, src, size, native(stream)))                                       \
  X(MemcpyDtoDAsync,                                                        \
    (CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream),       \
    (dst, src, size, native(stream)))                                       \
  X(MemsetD8Async,                                                          \
    (CUdeviceptr dst, unsigned char value, size_t size, CUstream stream),   \
    (dst, value, size, native(stream)))

#define OPTIONAL_ON_STREAM(X)                                             \
  X(StreamIsCapturing, (CUstream stream, unsigned *out),                  \
    (native(stream), out))                                                \
  X(MemAllocFromPoolAsync,                                                \
    (CUdeviceptr * out, size_t size, CUmemoryPool pool, CUstream stream), \
    (out, size, pool, native(stream)))                                    \
  X(MemFreeAsync, (CUdeviceptr address, CUstream stream),                 \
    (address, native(stream)))

#define DEFINE_ON_STREAM(field, parameters, arguments)    \
  static tarn__cuda_result on_stream_##field parameters { \
    return hip.plain.field arguments;                     \
  }
REQUIRED_ON_STREAM(DEFINE_ON_STREAM)
OPTIONAL_ON_STREAM(DEFINE_ON_STREAM)
#undef DEFINE_ON_STREAM

// --- memory ----------------------------------------------------------------

static tarn__cuda_result memcpy_peer_async(CUdeviceptr dst,
                                           CUcontext dst_context,
                                           CUdeviceptr src,
                                           CUcontext src_context, size_t size,
                                           CUstream stream) {
  return hip.hipMemcpyPeerAsync((void *)(uintptr_t)dst, device_of(dst_context),
                                (const void *)(uintptr_t)src,
                                device_of(src_context), size, native(stream));
}

enum {
#define NUMBER_5(name, number) MEMORY_5_##name = (number),
#define NUMBER_6(name, number) MEMORY_6_##name = (number),
  TARN__HIP_MEMORY_5(NUMBER_5) TARN__HIP_MEMORY_6(NUMBER_6)
#undef NUMBER_5
#undef NUMBER_6
};

// CUDA's type of memory; 0: HIP does not know the memory.
static unsigned type_of(const tarn__cuda_hip_pointer *pointer) {
  if (pointer->is_managed != 0) return TARN__CU_MEMORYTYPE_DEVICE;
  bool is_5 = is_before(6, 0);
  if (pointer->type == (is_5 ? MEMORY_5_Host : MEMORY_6_Host))
    return TARN__CU_MEMORYTYPE_HOST;
  if (pointer->type == (is_5 ? MEMORY_5_Device : MEMORY_6_Device))
    return TARN__CU_MEMORYTYPE_DEVICE;
  return 0;
}

// hipPointerGetAttribute writes a bool for one attribute, and 32 bits for a
// size.
static tarn__cuda_result of_pointer(void *out, unsigned attribute,
                                    CUdeviceptr address) {
  tarn__cuda_hip_pointer pointer = {0};
  tarn__cuda_result error =
      hip.hipPointerGetAttributes(&pointer, (const void *)(uintptr_t)address);
  if (error != TARN__CU_SUCCESS) return error;
  unsigned type = type_of(&pointer);
  if (type == 0) return TARN__CU_ERROR_INVALID_VALUE;
  switch (attribute) {
    case TARN__CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *(unsigned *)out = type;
      return TARN__CU_SUCCESS;
    case TARN__CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *(unsigned *)out = pointer.is_managed != 0;
      return TARN__CU_SUCCESS;
    default:
      *(int *)out = pointer.device;
      return TARN__CU_SUCCESS;
  }
}

// Of registered host memory HIP tells the size, and no address.
static tarn__cuda_result of_range(void *out, unsigned attribute,
                                  CUdeviceptr address) {
  CUdeviceptr base = 0;
  size_t size = 0;
  tarn__cuda_result error = hip.plain.MemGetAddressRange(&base, &size, address);
  if (error != TARN__CU_SUCCESS) return error;
  if (address < base || address - base >= size)
    return TARN__CU_ERROR_INVALID_VALUE;
  if (attribute == TARN__CU_POINTER_ATTRIBUTE_RANGE_SIZE)
    *(size_t *)out = size;
  else
    *(CUdeviceptr *)out = base;
  return TARN__CU_SUCCESS;
}

static tarn__cuda_result pointer_get_attribute(void *out, unsigned attribute,
                                               CUdeviceptr address) {
  switch (attribute) {
    case TARN__CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case TARN__CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case TARN__CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return of_pointer(out, attribute, address);
    case TARN__CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case TARN__CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return of_range(out, attribute, address);
    default:
      return TARN__CU_ERROR_INVALID_VALUE;
  }
}

// |handle| is a file descriptor, as it is for HIP from 7.1 on; before, it was
// the address of one.
static tarn__cuda_result import_memory(CUmemGenericAllocationHandle *out,
                                       void *handle, unsigned type) {
  int descriptor = (int)(intptr_t)handle;
  bool is_address = is_before(7, 1);
  return hip.plain.MemImportFromShareableHandle(
      out, is_address ? &descriptor : handle, type);
}

// --- the table -------------------------------------------------------------

typedef struct entry {
  const char *name;
  void *out;
  bool is_optional;
} entry;

static bool look_up(void *library, const entry *entries, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const entry *e = &entries[i];
    if (is_none(e->name)) continue;
    void *symbol = dlsym(library, e->name);
    if (symbol == NULL && !e->is_optional) {
      (void)tarn__text_fail(TARN_E_DEVICE, "libamdhip64.so: it has no %s",
                            e->name);
      return false;
    }
    memcpy(e->out, &symbol, sizeof symbol);
  }
  return true;
}

static bool look_up_all(void *library) {
#define REQUIRED(field, cuda, name, arguments) {#name, &hip.plain.field, false},
#define OPTIONAL(field, cuda, name, arguments) {#name, &hip.plain.field, true},
#define OWN_REQUIRED(name, result, arguments) {#name, &hip.name, false},
  const entry entries[] = {TARN__CU_REQUIRED(REQUIRED) TARN__CU_OPTIONAL(
      OPTIONAL) TARN__HIP_REQUIRED(OWN_REQUIRED)};
#undef REQUIRED
#undef OPTIONAL
#undef OWN_REQUIRED
  return look_up(library, entries, sizeof entries / sizeof *entries);
}

static void put_own(tarn__cuda_driver *out) {
  out->Init = init;
  out->DriverGetVersion = driver_get_version;
  out->GetErrorName = get_error_name;
  out->GetErrorString = get_error_string;
  out->DeviceGetAttribute = device_get_attribute;
  out->DevicePrimaryCtxRetain = primary_retain;
  out->DevicePrimaryCtxRelease = primary_release;
  out->CtxGetCurrent = get_current;
  out->CtxPushCurrent = push_current;
  out->CtxPopCurrent = pop_current;
  out->MemcpyPeerAsync = memcpy_peer_async;
  out->PointerGetAttribute = pointer_get_attribute;
#define PUT(field, parameters, arguments) out->field = on_stream_##field;
#define PUT_IF_THERE(field, parameters, arguments) \
  if (out->field != NULL) out->field = on_stream_##field;
  REQUIRED_ON_STREAM(PUT)
  OPTIONAL_ON_STREAM(PUT_IF_THERE)
#undef PUT
#undef PUT_IF_THERE
  if (out->MemImportFromShareableHandle != NULL)
    out->MemImportFromShareableHandle = import_memory;
}

static bool fill(void *library, tarn__cuda_driver *out) {
  if (!look_up_all(library)) return false;
  *out = hip.plain;
  put_own(out);
  return true;
}

static char type[] = "hip";

// The unversioned name is that of a development package, and PyTorch's own.
static const char *const otherwise[] = {"libamdhip64.so.6", "libamdhip64.so.5",
                                        "libamdhip64.so", NULL};

const tarn__cuda_vendor tarn__cuda_vendor_of = {
    .type = type,
    .library = "libamdhip64.so.7",
    .otherwise = otherwise,
    .fill = fill,
    .name_call = name_call,
    .maps_one_by_one = true,
    .descriptors_have_sizes = true,
    .has_kernels = false,
};
