// dlpack.h - tensors handed from library to library, as DLPack has them.
//
// The structs are those of DLPack's binary interface, under names of Tarn's
// own, so that a program may include DLPack's header besides: a pointer to the
// one is cast to a pointer to the other.
//
//   tarn_dlpack_managed            DLManagedTensor, of before version 1
//   tarn_dlpack_versioned          DLManagedTensorVersioned, of version 1.x
//
// Who is given one of them checks it (tarn_dlpack_check), uses the memory where
// it is, and calls the deleter when done (tarn_dlpack_release). Who gives one
// makes it around memory that lives until then (tarn_dlpack_export).
//
// What crosses is compact and row-major. Nothing is copied here, and no stream
// is waited for: that both sides agree when the bytes are there is the
// exchange's own matter.
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

// What this header was written for. Another major version has another layout;
// another minor one has more codes.
#define TARN_DLPACK_MAJOR 1
#define TARN_DLPACK_MINOR 1

typedef struct tarn_dlpack_version {
  uint32_t major;
  uint32_t minor;
} tarn_dlpack_version;

// Codes of devices, those that Tarn has a place for.
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
  uint16_t lanes;  // 1, but for vectors
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
#define TARN_DLPACK_COPIED (UINT64_C(1) << 1)  // nobody else sees the memory

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

// TARN_E_INVALID  |dtype| is none.
TARN_API TARN_MUST_CHECK tarn_status
tarn_dlpack_from_dtype(tarn_dtype dtype, tarn_dlpack_dtype *out_dtype);

// TARN_E_UNSUPPORTED  Tarn has no such type: vectors, complex numbers, floats
//                     of 8 bits and fewer; the text has code, bits and lanes.
TARN_API TARN_MUST_CHECK tarn_status
tarn_dlpack_to_dtype(tarn_dlpack_dtype dtype, tarn_dtype *out_dtype);

// The device by which others know |place|.
//
//   cuda:N, its pinned memory, its unified memory   CUDA, CUDA_HOST, _MANAGED
//   all else that the host can touch                CPU
//
// TARN_E_UNSUPPORTED  others have no name for it: memory of a device that is
//                     its own, as that of sim, or that DLPack knows by a
//                     handle in the place of an address, as that of opencl.
//                     Copy it to the host.
TARN_API TARN_MUST_CHECK tarn_status
tarn_dlpack_from_place(tarn_place place, tarn_dlpack_device *out_device);

// What |device| is in Tarn: a name for tarn_device_open, of at most 31 bytes,
// and a kind of place. The host is "cpu:0" and TARN_PLACE_HOST.
//
// TARN_E_INVALID      a negative id.
// TARN_E_UNSUPPORTED  a type of device that Tarn has no place for.
TARN_API TARN_MUST_CHECK tarn_status tarn_dlpack_to_place(
    tarn_dlpack_device device, char out_name[32], tarn_place_kind *out_kind);

// ---------------------------------------------------------------------------
// Taking
// ---------------------------------------------------------------------------

// More dimensions are taken for damage.
#define TARN_DLPACK_MAX_NDIM 1024

// What was taken, once it is known to be good.
typedef struct tarn_dlpack_view {
  tarn_addr address;          // of the first element; 0 where |size| is 0
  tarn_dlpack_device device;  // see tarn_dlpack_to_place
  tarn_dtype dtype;
  tarn_shape shape;      // the tensor's own lengths
  size_t size;           // bytes
  uint64_t flags;        // TARN_DLPACK_... bits; others are dropped
  uint64_t reserved[2];  // 0
} tarn_dlpack_view;

// Checks what another library gives, and says what it is. An address is not
// touched; that it is what the tensor says remains the giver's word.
//
// Lifetime: the view's until the tensor is released, which is the caller's to
//           do, whatever this returns.
// Cost:     O(ndim).
// TARN_E_INVALID      damaged: a negative or too large ndim, lengths that are
//                     negative, NULL or overflow, an address that is NULL or
//                     runs over, an id of a device that is negative.
// TARN_E_UNSUPPORTED  good, but not for Tarn: its type, its device, or its
//                     strides, where it is not compact.
TARN_API TARN_MUST_CHECK tarn_status tarn_dlpack_check(
    const tarn_dlpack_managed *managed, tarn_dlpack_view *out_view);

// TARN_E_UNSUPPORTED  also of another major version, of which nothing but the
//                     version is looked at.
TARN_API TARN_MUST_CHECK tarn_status tarn_dlpack_check_versioned(
    const tarn_dlpack_versioned *managed, tarn_dlpack_view *out_view);

// Calls the deleter, if there is one. NULL is allowed.
TARN_API void tarn_dlpack_release(tarn_dlpack_managed *managed);
TARN_API void tarn_dlpack_release_versioned(tarn_dlpack_versioned *managed);

// ---------------------------------------------------------------------------
// Giving
// ---------------------------------------------------------------------------

// Is called once, when nobody uses the memory any more, on any thread.
typedef void tarn_dlpack_release_fn(void *owner);

typedef struct tarn_dlpack_source {
  size_t struct_size;
  tarn_place place;
  tarn_addr address;  // 0 only where there are no bytes
  tarn_dtype dtype;
  tarn_shape shape;                 // without TARN_DIM_BATCH
  uint64_t flags;                   // TARN_DLPACK_... bits
  tarn_dlpack_release_fn *release;  // NULL: nobody needs to know
  void *owner;                      // for |release|
} tarn_dlpack_source;

// Makes a tensor around memory that is there. Lengths are copied, strides are
// always given.
//
// Lifetime: until its deleter is called, once, by whoever got it; that frees
//           the struct and then calls |release|. On failure |release| is not
//           called.
// TARN_E_INVALID      an argument is NULL, struct_size is unknown, a flag too;
//                     the dtype is none; a length is negative; sizes overflow;
//                     the address is 0 where there are bytes; more than
//                     TARN_DLPACK_MAX_NDIM dimensions.
// TARN_E_UNSUPPORTED  as tarn_dlpack_from_place; of the one without a version
//                     also any flag, which that cannot tell.
// TARN_E_NOMEM        no host memory.
TARN_API TARN_MUST_CHECK tarn_status tarn_dlpack_export(
    const tarn_dlpack_source *source, tarn_dlpack_managed **out_managed);
TARN_API TARN_MUST_CHECK tarn_status tarn_dlpack_export_versioned(
    const tarn_dlpack_source *source, tarn_dlpack_versioned **out_managed);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_DLPACK_H_
