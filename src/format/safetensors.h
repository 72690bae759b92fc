// safetensors.h - an open safetensors file, and the dtypes of the format.
#ifndef TARN_FORMAT_SAFETENSORS_H_
#define TARN_FORMAT_SAFETENSORS_H_

#include "base/budget.h"
#include "base/intern.h"
#include "tarn/safetensors.h"

// The key of the header's metadata.
#define TARN__SAFETENSORS_METADATA "__metadata__"

enum { TARN__SAFETENSORS_LENGTH = 8 };  // bytes of the header's length

// A dtype of the format.
typedef struct tarn__format_safetensors_dtype {
  const char *text;
  tarn_dtype dtype;  // TARN_DTYPE_NONE: Tarn lacks it
  uint8_t bits;      // of an element
} tarn__format_safetensors_dtype;

// The dtype called |text|; NULL if unknown.
const tarn__format_safetensors_dtype *tarn__safetensors_dtype_find(
    const char *text);

// The format's dtype for one of Tarn's; NULL if there is none. Tensors are
// written in descending order of these pointers.
const tarn__format_safetensors_dtype *tarn__safetensors_dtype_of(
    tarn_dtype dtype);

struct tarn_safetensors {
  const unsigned char *bytes;
  size_t held;       // how many there are: of the file or of its head
  size_t size;       // of the file
  bool head_only;    // no tensor's bytes are to be had
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

// Reads the header into |file|, in which only |bytes|, |held|, |size|,
// |head_only| and |name| are set.
//
// TARN_E_CORRUPT, TARN_E_NOMEM  |file| holds a part of it and is closed as
// usual.
TARN_MUST_CHECK tarn_status tarn__safetensors_read(tarn_safetensors *file);

// A file of which only what stands before the tensors is read into memory, as
// its tensors are to be read otherwise: first some bytes, which tell how many
// that are, then those. A mapping of the file would end the program if somebody
// cuts the file meanwhile.

// How many bytes stand before the tensors of a file of |file_size| bytes, which
// begins with the |size| at |bytes|: at least TARN__SAFETENSORS_LENGTH, or all.
//
// TARN_E_CORRUPT  the file cannot have such a header; the text begins with
//                 |name|.
TARN_MUST_CHECK tarn_status tarn__safetensors_head(const char *name,
                                                   const void *bytes,
                                                   size_t size,
                                                   size_t file_size,
                                                   size_t *out_head_size);

// As tarn_safetensors_open_bytes, but of the |size| bytes of the head alone, or
// more. They may go when this returns. The tensors' |data| is NULL; they are
// |aligned| where their offsets are multiples of the element size.
TARN_MUST_CHECK tarn_status
tarn__safetensors_open_head(const char *name, const void *bytes, size_t size,
                            size_t file_size, tarn_safetensors **out_file);

#endif  // TARN_FORMAT_SAFETENSORS_H_
