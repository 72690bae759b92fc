// safetensors.h - an open safetensors file, its header while it is read, and a
// writer.
#ifndef TARN_MODEL_SAFETENSORS_H_
#define TARN_MODEL_SAFETENSORS_H_

#include "base/budget.h"
#include "base/intern.h"
#include "base/json.h"
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
  tarn__array values;   // size_t, by key: offset of its value in |texts|
  tarn__array texts;    // char, each text with a zero byte
};

// Reads the header into |file|, in which only |bytes|, |size| and |name| are
// set.
//
// TARN_E_CORRUPT, TARN_E_NOMEM  |file| holds a part of it and is closed as
// usual.
TARN_MUST_CHECK tarn_status tarn__safetensors_read(tarn_safetensors *file);

// A tensor to write.
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
  tarn__intern names;   // by tensor, each with a zero byte
  tarn__array entries;  // tarn__model_safetensors_entry
  tarn__array dims;     // int64_t, of all tensors
  tarn__intern keys;    // of metadata, each with a zero byte
  tarn__array values;   // size_t, by key: offset of its value in |texts|
  tarn__array texts;    // char, each text with a zero byte
  size_t size;          // bytes of all tensors
};

// Appends the zero-ended |text| as a JSON string, with quotes.
//
// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__safetensors_quote(tarn__budget *budget,
                                                    tarn__array *out,
                                                    const char *text);

// --- safetensors_header.c: the JSON of a header ---------------------------

// A tensor as the header describes it.
typedef struct tarn__model_safetensors_draft {
  size_t begin;  // data_offsets
  size_t end;
  size_t first_dim;  // of |rank| among the file's
  uint32_t rank;
  uint32_t index;         // of the tensor in the header
  uint32_t at;            // byte of the header at which its name begins
  uint32_t dtype_number;  // among the file's own
  const tarn__model_safetensors_dtype *dtype;  // NULL: unknown to Tarn
} tarn__model_safetensors_draft;

typedef struct tarn__model_safetensors_reader {
  tarn_safetensors *file;  // receives texts, lengths, metadata
  size_t header_size;
  size_t room;  // bytes behind the header
  tarn__json json;
  tarn__array drafts;   // tarn__model_safetensors_draft
  tarn__array scratch;  // char: a text with its zero byte
  bool has_metadata;
} tarn__model_safetensors_reader;

// Fails with TARN_E_CORRUPT and the text "name: header byte N: ...".
__attribute__((format(printf, 3, 4), cold)) tarn_status
tarn__safetensors_fail_at(const tarn__model_safetensors_reader *reader,
                          size_t at, const char *format, ...);

// Reads all of |reader->json| into drafts. Each draft lies within |room| and
// has as many bytes as its dtype and shape need.
//
// TARN_E_CORRUPT, TARN_E_NOMEM  the reader holds a part and is freed as usual.
TARN_MUST_CHECK tarn_status
tarn__safetensors_header(tarn__model_safetensors_reader *reader);

#endif  // TARN_MODEL_SAFETENSORS_H_
