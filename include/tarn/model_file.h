// model_file.h - parameters to and from files, tensors to and from others.
//
// Files are of the safetensors format (tarn/safetensors.h), tensors of other
// libraries come and go by DLPack (tarn/dlpack.h).
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

// Saving: states of optimisers too. Loading: also those, where the file has
// them.
#define TARN_FILE_STATES (1u << 0)
// Loading: parameters that the file does not have keep their values.
#define TARN_FILE_PARTIAL (1u << 1)
// Loading: into memory of the model's own, and the file is closed again.
#define TARN_FILE_COPY (1u << 2)

// Writes the data of all parameters to the file at |path|, each under its name,
// tied ones once, under the name that came first; what stood there is replaced
// by a whole file or not at all. It is the value of all of them at one moment:
// nobody can write them meanwhile. What nobody has written is zeros.
//
// Cost:           O(bytes); bytes at home or at the compute place are read from
//                 there in pieces of at most 256 KiB, others are brought to the
//                 host for a while.
// TARN_E_INVALID  an unknown flag, or a name that is no UTF-8, or that the
//                 format has for itself: "__metadata__".
// TARN_E_STATE    the model was never placed (states: never for training),
//                 somebody writes a parameter, or bytes of one are lost.
// TARN_E_IO       the file cannot be written.
// TARN_FULL       the host has no room for what must be brought there.
// TARN_E_DEVICE   a copy failed.
TARN_API TARN_MUST_CHECK tarn_status tarn_model_save(tarn_model *model,
                                                     const char *path,
                                                     uint32_t flags);

typedef struct tarn_model_loaded {
  size_t struct_size;
  size_t mapped;   // tensors that lie in the file, without a copy
  size_t copied;   // that were copied: not aligned, as asked, or without bytes
  size_t missing;  // parameters that the file does not have (allowed by
                   // TARN_FILE_PARTIAL), and states
  size_t unused;   // of the file, of no parameter's name, nor of a state's that
                   // was asked for
  size_t bytes;    // of mapped and copied ones
} tarn_model_loaded;

// Gives parameters the data that the file at |path| has under their names, a
// tied one under any of its own. All is checked before anything changes. Where
// a tensor is aligned in the file it is not copied: the parameter's host side
// is the file's pages, which are never written; the first write there moves it
// to memory of its own. What is copied goes to the model's home. |out_loaded|
// may be NULL.
//
// Lifetime: the file stays mapped until no parameter is in it any more. It must
//           not be cut or written meanwhile: replace it, as tarn_model_save
//           does, which may be given the same |path|.
// TARN_E_INVALID  a parameter is missing, or has another dtype or shape: the
//                 text names file, tensor and both; an unknown flag.
// TARN_E_STATE    the model was never placed (states: never for training), or
//                 an access to one is open.
// TARN_E_CORRUPT  the file is damaged: see tarn_safetensors_open.
// TARN_E_IO       it cannot be read.
// TARN_FULL       no room at home for what is copied.
//                 After each of these all parameters are as they were, but
//                 that one of which bytes were lost before may lose the others.
// TARN_E_DEVICE, TARN_E_NOMEM  likewise, but for what cannot be known before:
//                 a copy to a device fails, or the host has no memory to wait
//                 for streams that are still at work on what is mapped. Then
//                 parameters have either their new or their old values, but
//                 for the one at which a device failed, which may be lost; the
//                 text says how many were loaded.
TARN_API TARN_MUST_CHECK tarn_status
tarn_model_load(tarn_model *model, const char *path, uint32_t flags,
                tarn_model_loaded *out_loaded);

// ---------------------------------------------------------------------------
// DLPack
// ---------------------------------------------------------------------------

// Gives |part| of |tensor|, at the present batch, to another library: what is
// newest is brought to |place| and stays open there, for TARN_READ or
// TARN_READ_WRITE as |mode| says, until the deleter is called. The memory lives
// until then, also where the model ends before (only for parameters and states:
// a model with planned parts open cannot be released).
//
// Threads: the deleter may be called on any thread, but not from a stream's
//          callback. What fails there is only logged.
// TARN_E_INVALID      no such part or mode, more than TARN_DLPACK_MAX_NDIM
//                     dimensions, or a tensor of no model.
// TARN_E_STATE        the model is not placed, or it is not the part's turn, or
//                     as of tarn_synced_begin.
// TARN_E_UNSUPPORTED  a mask of bits, or a place that others have no name for.
// TARN_FULL, TARN_E_DEVICE  as of tarn_synced_begin.
TARN_API TARN_MUST_CHECK tarn_status
tarn_tensor_to_dlpack(tarn_tensor *tensor, tarn_part part, tarn_place place,
                      uint32_t mode, tarn_dlpack_managed **out_managed);

// The same with a version; TARN_READ sets TARN_DLPACK_READ_ONLY.
TARN_API TARN_MUST_CHECK tarn_status tarn_tensor_to_dlpack_versioned(
    tarn_tensor *tensor, tarn_part part, tarn_place place, uint32_t mode,
    tarn_dlpack_versioned **out_managed);

// Takes another library's tensor, of the same dtype and shape, as the newest
// value of |part|: of parameters and what is fed, not of planned parts. Where
// it has as many bytes as the buffer, the buffer lies in it, without a copy,
// until it lets go, and then calls the deleter; else, for a smaller batch or an
// address that is no multiple of an element's size, it is copied and released
// at once. With TARN_DLPACK_READ_ONLY the memory is never written.
//
// On failure |managed| remains the caller's.
//
// Threads: the deleter is called by whichever thread lets go.
// TARN_E_INVALID      another dtype or shape, or a damaged tensor: the text
//                     says which.
// TARN_E_STATE        not placed, a planned part, or an access is open.
// TARN_E_UNSUPPORTED  not compact, or memory of a device that is neither the
//                     model's home nor its compute place.
// TARN_FULL, TARN_E_DEVICE  it could not be copied; after the latter the part's
//                     own bytes may be lost.
TARN_API TARN_MUST_CHECK tarn_status tarn_tensor_from_dlpack(
    tarn_tensor *tensor, tarn_part part, tarn_dlpack_managed *managed);
TARN_API TARN_MUST_CHECK tarn_status tarn_tensor_from_dlpack_versioned(
    tarn_tensor *tensor, tarn_part part, tarn_dlpack_versioned *managed);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_MODEL_FILE_H_
