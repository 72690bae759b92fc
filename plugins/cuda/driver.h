// driver.h - the functions of the driver's library, which is loaded when the
// plug-in is first used, and the words for their errors.
//
//   const tarn__cuda_driver *cu = tarn__cuda_driver_get();
//   tarn__cuda_result error = cu->StreamSynchronize(stream);
//   if (error != TARN__CU_SUCCESS)
//     return tarn__cuda_say(error, "cuStreamSynchronize");
#ifndef TARN_PLUGINS_CUDA_DRIVER_H_
#define TARN_PLUGINS_CUDA_DRIVER_H_

#include <stdbool.h>

#include "api.h"
#include "common/plugin.h"
#include "tarn/base.h"

// The arguments are a list with parentheses of its own.
// NOLINTBEGIN(bugprone-macro-parentheses)
typedef struct tarn__cuda_driver {
#define TARN__CU_FIELD(field, cuda, hip, arguments) \
  tarn__cuda_result(*(field)) arguments;
  TARN__CU_REQUIRED(TARN__CU_FIELD)
  TARN__CU_OPTIONAL(TARN__CU_FIELD)
#undef TARN__CU_FIELD
} tarn__cuda_driver;
// NOLINTEND(bugprone-macro-parentheses)

// --- what differs between vendors ------------------------------------------
// cuda.c or hip.c: a module has one of the two.

typedef struct tarn__cuda_vendor {
  char *type;                    // of devices: "cuda", "hip"
  const char *library;           // the file that is loaded
  const char *const *otherwise;  // files to try after it, up to a NULL

  // Fills |out| from |library|, which is loaded. False, with the thread's text:
  // it lacks a function that every driver has.
  bool (*fill)(void *library, tarn__cuda_driver *out);

  // What the vendor calls the function that is |cuda| for CUDA, for texts of
  // errors; NULL: the same.
  const char *(*name_call)(const char *cuda);

  // The driver gets calls over several mappings wrong: each mapping is
  // unmapped, given rights, and copied to and from by a call of its own.
  bool maps_one_by_one;

  // The size of memory is that of its file descriptor. Such a driver need not
  // refuse a mapping that is larger.
  bool descriptors_have_sizes;

  // Kernels for rows are in the module.
  bool has_kernels;
} tarn__cuda_vendor;

extern const tarn__cuda_vendor tarn__cuda_vendor_of;

// --- loading ---------------------------------------------------------------

// Loads the library at the first call. NULL, with the thread's text: it cannot
// be loaded, or lacks a function that every driver has.
const tarn__cuda_driver *tarn__cuda_load(void);

// The functions, once tarn__cuda_load has given them.
const tarn__cuda_driver *tarn__cuda_driver_get(void);

// --- errors ----------------------------------------------------------------

// What the vendor calls the function that CUDA calls |call|.
const char *tarn__cuda_name(const char *call);

// The thread's text becomes "WHAT: CUDA_ERROR_OUT_OF_MEMORY (2): out of
// memory", with the driver's name and words for |error|. Returns C_SUCCESS for
// TARN__CU_SUCCESS, without a text; C_FAILED for a lack of memory or resources,
// C_ERROR for a wrong argument, C_INTERNAL_ERROR for all else. |what| is CUDA's
// name of the function that was called, or words of the caller's own.
C_Status tarn__cuda_say(tarn__cuda_result error, const char *what);

// The same meaning as a status of the extension: TARN_E_NOMEM, TARN_E_INVALID,
// TARN_E_DEVICE.
tarn_status tarn__cuda_answer(C_Status status);

#endif  // TARN_PLUGINS_CUDA_DRIVER_H_
