// dlpack.h - exchanges tensors with other libraries by DLPack.
//
// Import: check a tensor, use its memory in place, release it.
//
//   tarn_dlpack_view view;
//   if (tarn_dlpack_check(managed, &view) == TARN_OK)
//     use(view.address, view.dtype, view.shape);
//   tarn_dlpack_release(managed);
//
// Export: make a tensor around memory that lives until |release| is called.
//
//   const int64_t dims[] = {2, 3};
//   tarn_dlpack_source source = {.struct_size = sizeof source,
//                                .address = (tarn_addr)(uintptr_t)floats,
//                                .dtype = TARN_DTYPE_F32,
//                                .shape = {dims, 2},
//                                .release = free, .owner = floats};
//   tarn_dlpack_managed *managed;
//   tarn_dlpack_export(&source, &managed);
//
// The structs have the layout of DLPack's binary interface, under Tarn's own
// names, so that a program may also include DLPack's header and cast pointers:
//
//   tarn_dlpack_managed            DLManagedTensor, of before version 1
//   tarn_dlpack_versioned          DLManagedTensorVersioned, of version 1.x
//
// Tensors are compact and row-major. Nothing here copies bytes or waits for a
// stream: the two libraries must agree on when the bytes are ready.
//
// Threads: any; one struct by one thread at a time. A deleter may be called
//          from any thread.
#ifndef TARN_DLPACK_H_
#define TARN_DLPACK_H_

#include "tarn/base.h"
#include "tarn/device.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---------------------------------------------------------------------------
// The binary interface
// ---------------------------------------------------------------------------

// The version of DLPack that this header follows. Another major version has
// another layout; another minor version has other codes.
#define TARN_DLPACK_MAJOR 1
#define TARN_DLPACK_MINOR 1

typedef struct tarn_dlpack_version {
  uint32_t major;
  uint32_t minor;
} tarn_dlpack_version;

// Codes of the devices that Tarn has a place for.
#define TARN_DLPACK_CPU 1
#define TARN_DLPACK_CUDA 2
#define TARN_DLPACK_CUDA_HOST 3      // pinned; its id is 0
#define TARN_DLPACK_CUDA_MANAGED 13  // unified; its id is 0

typedef struct tarn_dlpack_device {
  int32_t type;
  int32_t id;
} tarn_dlpack_device;

// Codes of types of elements.
#define TARN_DLPACK_INT 0
#define TARN_DLPACK_UINT 1
#define TARN_DLPACK_FLOAT 2
#define TARN_DLPACK_BFLOAT 4
#define TARN_DLPACK_BOOL 6

typedef struct tarn_dlpack_dtype {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;  // 1 unless the element is a vector
} tarn_dlpack_dtype;

typedef struct tarn_dlpack_tensor {
  void *data;  // an address of the device
  tarn_dlpack_device device;
  int32_t ndim;
  tarn_dlpack_dtype dtype;
  int64_t *shape;        // |ndim| lengths
  int64_t *strides;      // |ndim| distances in elements; NULL: compact
  uint64_t byte_offset;  // from |data| to the first element
} tarn_dlpack_tensor;

typedef struct tarn_dlpack_managed {
  tarn_dlpack_tensor tensor;
  void *context;                                      // the maker's
  void (*deleter)(struct tarn_dlpack_managed *self);  // may be NULL
} tarn_dlpack_managed;

// Bits of |flags|.
#define TARN_DLPACK_READ_ONLY (UINT64_C(1) << 0)
#define TARN_DLPACK_COPIED \
  (UINT64_C(1) << 1)  // no other library sees the memory

typedef struct tarn_dlpack_versioned {
  tarn_dlpack_version version;
  void *context;
  void (*deleter)(struct tarn_dlpack_versioned *self);  // may be NULL
  uint64_t flags;
  tarn_dlpack_tensor tensor;
} tarn_dlpack_versioned;

// ---------------------------------------------------------------------------
// Types and places
// ---------------------------------------------------------------------------

// TARN_E_INVALID  |dtype| is not a dtype.
TARN_API TARN_MUST_CHECK tarn_status
tarn_dlpack_from_dtype(tarn_dtype dtype, tarn_dlpack_dtype *out_dtype);

// TARN_E_UNSUPPORTED  a type that Tarn lacks: vectors, complex numbers, floats
//                     of 8 bits and fewer; the text has code, bits and lanes.
TARN_API TARN_MUST_CHECK tarn_status
tarn_dlpack_to_dtype(tarn_dlpack_dtype dtype, tarn_dtype *out_dtype);

// DLPack's code for |place|.
//
//   cuda:N, its pinned memory, its unified memory   CUDA, CUDA_HOST, _MANAGED
//   other memory that the host can touch            CPU
//
// TARN_E_UNSUPPORTED  DLPack has no code for the device (sim), or uses a handle
//                     in place of an address (opencl). Copy the bytes to the
//                     host.
TARN_API TARN_MUST_CHECK tarn_status
tarn_dlpack_from_place(tarn_place place, tarn_dlpack_device *out_device);

// Tarn's name for |device|, for tarn_device_open, of at most 31 bytes, and its
// kind of place. The host is "cpu:0" and TARN_PLACE_HOST.
//
// TARN_E_INVALID      a negative id.
// TARN_E_UNSUPPORTED  a type of device that Tarn has no place for.
TARN_API TARN_MUST_CHECK tarn_status tarn_dlpack_to_place(
    tarn_dlpack_device device, char out_name[32], tarn_place_kind *out_kind);

// ---------------------------------------------------------------------------
// Import
// ---------------------------------------------------------------------------

// The most dimensions of a tensor; more are TARN_E_INVALID.
#define TARN_DLPACK_MAX_NDIM 1024

// A checked tensor.
typedef struct tarn_dlpack_view {
  tarn_addr address;          // of the first element; 0 where |size| is 0
  tarn_dlpack_device device;  // see tarn_dlpack_to_place
  tarn_dtype dtype;
  tarn_shape shape;      // the tensor's own lengths
  size_t size;           // bytes
  uint64_t flags;        // TARN_DLPACK_... bits; others are dropped
  uint64_t reserved[2];  // 0
} tarn_dlpack_view;

// Checks another library's tensor and describes it in |*out_view|. The memory
// itself is not touched: the exporting library answers for its address.
//
// Lifetime: the view's, until the caller releases the tensor, which it must do
//           on failure too.
// Cost:     O(ndim).
// TARN_E_INVALID      a damaged tensor: ndim is negative or too large, lengths
//                     are negative, NULL or overflow, the address is NULL or
//                     overflows, the id of the device is negative.
// TARN_E_UNSUPPORTED  a type or device that Tarn lacks, or strides that are not
//                     compact.
TARN_API TARN_MUST_CHECK tarn_status tarn_dlpack_check(
    const tarn_dlpack_managed *managed, tarn_dlpack_view *out_view);

// TARN_E_UNSUPPORTED  also for another major version; then only the version is
//                     read.
TARN_API TARN_MUST_CHECK tarn_status tarn_dlpack_check_versioned(
    const tarn_dlpack_versioned *managed, tarn_dlpack_view *out_view);

// Calls the deleter, unless it is NULL. NULL is allowed.
TARN_API void tarn_dlpack_release(tarn_dlpack_managed *managed);
TARN_API void tarn_dlpack_release_versioned(tarn_dlpack_versioned *managed);

// ---------------------------------------------------------------------------
// Export
// ---------------------------------------------------------------------------

// Called once, on any thread, when the memory is no longer used.
typedef void tarn_dlpack_release_fn(void *owner);

typedef struct tarn_dlpack_source {
  size_t struct_size;
  tarn_place place;
  tarn_addr address;  // may be 0 if there are no bytes
  tarn_dtype dtype;
  tarn_shape shape;                 // without TARN_DIM_BATCH
  uint64_t flags;                   // TARN_DLPACK_... bits
  tarn_dlpack_release_fn *release;  // may be NULL
  void *owner;                      // for |release|
} tarn_dlpack_source;

// Makes a tensor around existing memory. Lengths are copied, and strides are
// always set.
//
// Lifetime: until its deleter is called, once, by the importing library; that
//           frees the struct and then calls |release|. On failure |release| is
//           not called.
// TARN_E_INVALID      an argument is NULL; struct_size or a flag is unknown;
//                     the dtype is not a dtype; a length is negative; sizes
//                     overflow; the address is 0 for more than 0 bytes; more
//                     than TARN_DLPACK_MAX_NDIM dimensions.
// TARN_E_UNSUPPORTED  as tarn_dlpack_from_place; without a version also any
//                     flag, since that struct has no flags.
// TARN_E_NOMEM        no host memory.
TARN_API TARN_MUST_CHECK tarn_status tarn_dlpack_export(
    const tarn_dlpack_source *source, tarn_dlpack_managed **out_managed);
TARN_API TARN_MUST_CHECK tarn_status tarn_dlpack_export_versioned(
    const tarn_dlpack_source *source, tarn_dlpack_versioned **out_managed);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_DLPACK_H_
