// model_file.h - saves and loads parameters, exports and imports tensors.
//
//   tarn_model_save(net, "net.safetensors", TARN_FILE_STATES);
//
//   tarn_model_loaded loaded = {.struct_size = sizeof loaded};
//   tarn_model_load(net, "net.safetensors", TARN_FILE_PARTIAL, &loaded);
//   // loaded.mapped tensors lie in the file, loaded.missing kept their values
//
//   tarn_dlpack_managed *weight;
//   tarn_tensor_to_dlpack(tarn_model_param(net, "fc.weight"), TARN_DATA,
//                         TARN_HOST, TARN_READ, &weight);
//   // another library reads it in place, and calls weight->deleter at the end
//
// Files are in the safetensors format (tarn/safetensors.h). Tensors are
// exchanged with other libraries by DLPack (tarn/dlpack.h).
//
// Threads, fork, errors: as in tarn/model.h.
#ifndef TARN_MODEL_FILE_H_
#define TARN_MODEL_FILE_H_

#include "tarn/dlpack.h"
#include "tarn/model.h"
#include "tarn/safetensors.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---------------------------------------------------------------------------
// Parameters and files
// ---------------------------------------------------------------------------

// Save and load states of optimizers too. A load keeps the values of states
// that the file lacks.
#define TARN_FILE_STATES (1u << 0)
// Load: parameters that the file lacks keep their values.
#define TARN_FILE_PARTIAL (1u << 1)
// Load: copy all tensors into memory of the model's own, and close the file.
#define TARN_FILE_COPY (1u << 2)

// Saves the data of all parameters to the file at |path|, each under its name;
// tied parameters once, under the first name. An existing file is replaced as a
// whole or not at all. All values are of one moment: writes are refused during
// the save. Data that was never written is saved as zeros.
//
// Cost:           O(bytes). Bytes at home or at the compute place are read from
//                 there in pieces of at most 256 KiB; other bytes are brought
//                 to the host for the time of the save.
// TARN_E_INVALID  an unknown flag; a name that is not UTF-8, or is
//                 "__metadata__", which the format reserves.
// TARN_E_STATE    the model was never placed (states: never for training), a
//                 write access to a parameter is open, or bytes of one are
//                 lost.
// TARN_E_IO       the file cannot be written.
// TARN_FULL       the host has no room for bytes that must be brought there.
// TARN_E_DEVICE   a copy failed.
TARN_API TARN_MUST_CHECK tarn_status tarn_model_save(tarn_model *model,
                                                     const char *path,
                                                     uint32_t flags);

typedef struct tarn_model_loaded {
  size_t struct_size;
  size_t mapped;   // tensors that lie in the file, without a copy
  size_t copied;   // tensors copied: not aligned, empty, or TARN_FILE_COPY
  size_t missing;  // parameters (with TARN_FILE_PARTIAL) and states that the
                   // file lacks
  size_t unused;   // tensors of the file that the model has no parameter for,
                   // nor a state that was asked for
  size_t bytes;    // of mapped and copied tensors
} tarn_model_loaded;

// Loads the parameters from the file at |path|, by name; a tied parameter by
// any of its names. All checks come before the first change. A tensor that is
// aligned in the file is not copied: the parameter's host side is the file's
// pages, which are never written; the first write at the host moves it to
// memory of its own. Other tensors are copied to the model's home. |out_loaded|
// may be NULL.
//
// Lifetime: the file stays mapped as long as a parameter lies in it. It must
//           not be cut or written meanwhile. Replace it instead, as
//           tarn_model_save does, also with the same |path|.
// TARN_E_INVALID  a parameter is missing, or has another dtype or shape: the
//                 text names the file, the tensor and both; an unknown flag.
// TARN_E_STATE    the model was never placed (states: never for training), or
//                 an access to a parameter is open.
// TARN_E_CORRUPT  the file is damaged: see tarn_safetensors_open.
// TARN_E_IO       the file cannot be read.
// TARN_FULL       no room at home for copied tensors.
//                 After each of these errors all parameters are unchanged,
//                 except that a parameter with lost bytes may lose the rest.
// TARN_E_DEVICE, TARN_E_NOMEM  likewise, with two exceptions: a copy to a
//                 device failed, or the host had no memory to wait for streams
//                 that still use a parameter. Then each parameter has its new
//                 or its old value, and the one whose copy failed may be lost;
//                 the text says how many were loaded.
TARN_API TARN_MUST_CHECK tarn_status
tarn_model_load(tarn_model *model, const char *path, uint32_t flags,
                tarn_model_loaded *out_loaded);

// ---------------------------------------------------------------------------
// DLPack
// ---------------------------------------------------------------------------

// Exports |part| of |tensor|, at the present batch, to another library. The
// newest bytes are brought to |place| and stay open there, for TARN_READ or
// TARN_READ_WRITE as |mode| says, until the deleter is called. The memory lives
// until then. A parameter or state may outlive its model; a model with an
// exported planned part cannot be released.
//
// Threads: the deleter may be called on any thread, but not from a stream's
//          callback. Its failures are logged.
// TARN_E_INVALID      no such part or mode, more than TARN_DLPACK_MAX_NDIM
//                     dimensions, or a tensor without a model.
// TARN_E_STATE        the model is not placed, the part is outside its
//                     lifetime, or as tarn_synced_begin.
// TARN_E_UNSUPPORTED  a mask of bits, or a place that DLPack cannot name.
// TARN_FULL, TARN_E_DEVICE  as tarn_synced_begin.
TARN_API TARN_MUST_CHECK tarn_status
tarn_tensor_to_dlpack(tarn_tensor *tensor, tarn_part part, tarn_place place,
                      uint32_t mode, tarn_dlpack_managed **out_managed);

// The same with a version; TARN_READ sets TARN_DLPACK_READ_ONLY.
TARN_API TARN_MUST_CHECK tarn_status tarn_tensor_to_dlpack_versioned(
    tarn_tensor *tensor, tarn_part part, tarn_place place, uint32_t mode,
    tarn_dlpack_versioned **out_managed);

// Imports another library's tensor, of the same dtype and shape, as the newest
// value of |part|, which must not be planned: of a parameter, its diff, a state
// or a fed output. A tensor as large as the buffer is not copied: it becomes
// the buffer's memory, until the buffer drops it and calls the deleter. A
// tensor of a smaller batch, or whose address is not a multiple of its element
// size, is copied and released at once. With TARN_DLPACK_READ_ONLY the memory
// is never written.
//
// On failure |managed| remains the caller's.
//
// Threads: the deleter is called on the thread on which the buffer drops it.
// TARN_E_INVALID      another dtype or shape, or a damaged tensor: the text
//                     says which.
// TARN_E_STATE        the model is not placed, the part is planned, or an
//                     access to it is open.
// TARN_E_UNSUPPORTED  not compact, or memory of a device that is neither the
//                     model's home nor its compute place.
// TARN_FULL, TARN_E_DEVICE  the copy failed; after TARN_E_DEVICE the part's own
//                     bytes may be lost.
TARN_API TARN_MUST_CHECK tarn_status tarn_tensor_from_dlpack(
    tarn_tensor *tensor, tarn_part part, tarn_dlpack_managed *managed);
TARN_API TARN_MUST_CHECK tarn_status tarn_tensor_from_dlpack_versioned(
    tarn_tensor *tensor, tarn_part part, tarn_dlpack_versioned *managed);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_MODEL_FILE_H_
