// safetensors.h - an open safetensors file, and the dtypes of the format.
#ifndef TARN_MODEL_SAFETENSORS_H_
#define TARN_MODEL_SAFETENSORS_H_

#include "base/budget.h"
#include "base/intern.h"
#include "tarn/safetensors.h"

// The key of the header's metadata.
#define TARN__SAFETENSORS_METADATA "__metadata__"

enum { TARN__SAFETENSORS_LENGTH = 8 };  // bytes of the header's length

// A dtype of the format.
typedef struct tarn__model_safetensors_dtype {
  const char *text;
  tarn_dtype dtype;  // TARN_DTYPE_NONE: Tarn lacks it
  uint8_t bits;      // of an element
} tarn__model_safetensors_dtype;

// The dtype called |text|; NULL if unknown.
const tarn__model_safetensors_dtype *tarn__safetensors_dtype_find(
    const char *text);

// The format's dtype for one of Tarn's; NULL if there is none. Tensors are
// written in descending order of these pointers.
const tarn__model_safetensors_dtype *tarn__safetensors_dtype_of(
    tarn_dtype dtype);

struct tarn_safetensors {
  const unsigned char *bytes;
  size_t size;
  bool mapped;       // |bytes| are a mapping of the file
  const char *name;  // for errors, while the header is read
  tarn__budget budget;
  tarn__intern names;   // by tensor, each with a zero byte
  tarn__intern dtypes;  // texts of unknown dtypes, each with a zero byte
  tarn__array dims;     // int64_t, of all tensors
  tarn__array tensors;  // tarn_safetensor
  tarn__intern keys;    // of metadata, each with a zero byte
  tarn__array values;   // uint32_t, by key: its value's number in |texts|
  tarn__intern texts;   // values of metadata, each with a zero byte
};

// Reads the header into |file|, in which only |bytes|, |size| and |name| are
// set.
//
// TARN_E_CORRUPT, TARN_E_NOMEM  |file| holds a part of it and is closed as
// usual.
TARN_MUST_CHECK tarn_status tarn__safetensors_read(tarn_safetensors *file);

#endif  // TARN_MODEL_SAFETENSORS_H_
