// safetensors.h - what an opened file and a writer hold, between the files that
// make them and those that use them.
#ifndef TARN_MODEL_SAFETENSORS_H_
#define TARN_MODEL_SAFETENSORS_H_

#include "base/budget.h"
#include "base/intern.h"
#include "tarn/safetensors.h"

// The key of the header that is no tensor's name.
#define TARN__SAFETENSORS_METADATA "__metadata__"

enum { TARN__SAFETENSORS_LENGTH = 8 };  // bytes of the header's length

// A dtype of the format.
typedef struct tarn__model_safetensors_dtype {
  const char *text;
  tarn_dtype dtype;  // TARN_DTYPE_NONE: Tarn has no such
  uint8_t bits;      // of an element
} tarn__model_safetensors_dtype;

// The dtype of that text; NULL if it is not known.
const tarn__model_safetensors_dtype *tarn__safetensors_dtype_find(
    const char *text);

// The format's dtype for one of Tarn's, NULL for none. Among these, what stands
// later in memory stands earlier in a file.
const tarn__model_safetensors_dtype *tarn__safetensors_dtype_of(
    tarn_dtype dtype);

struct tarn_safetensors {
  const unsigned char *bytes;
  size_t size;
  bool mapped;       // |bytes| are to be taken out again
  const char *name;  // in texts of errors, while the header is read
  tarn__budget budget;
  tarn__intern names;   // with a zero byte behind each; by tensor
  tarn__intern dtypes;  // texts of those that are not known, likewise
  tarn__array dims;     // int64_t, of all tensors
  tarn__array tensors;  // tarn_safetensor
  tarn__intern keys;    // of metadata, with a zero byte behind each
  tarn__array values;   // size_t, by key: where in |texts| its value begins
  tarn__array texts;    // char, with a zero byte behind each
};

// Reads the header into |file|, which has all but |bytes|, |size|, |name|
// empty.
//
// TARN_E_CORRUPT, TARN_E_NOMEM: |file| holds some of it; free it as it is.
TARN_MUST_CHECK tarn_status tarn__safetensors_read(tarn_safetensors *file);

// A tensor that is to be written.
typedef struct tarn__model_safetensors_entry {
  const tarn__model_safetensors_dtype *dtype;
  size_t first_dim;
  size_t rank;
  size_t size;
  const void *data;  // or
  tarn_safetensors_fill_fn *fill;
  void *context;
} tarn__model_safetensors_entry;

struct tarn_safetensors_writer {
  tarn__budget budget;
  tarn__intern names;   // with a zero byte behind each; by tensor
  tarn__array entries;  // tarn__model_safetensors_entry
  tarn__array dims;     // int64_t, of all tensors
  tarn__intern keys;    // of metadata, with a zero byte behind each
  tarn__array values;   // size_t, by key: where in |texts| its value begins
  tarn__array texts;    // char, with a zero byte behind each
  size_t size;          // bytes of all tensors
};

// Appends |text|, up to its zero byte, as a text of JSON with its quotes.
//
// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__safetensors_quote(tarn__budget *budget,
                                                    tarn__array *out,
                                                    const char *text);

#endif  // TARN_MODEL_SAFETENSORS_H_
