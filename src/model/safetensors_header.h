// safetensors_header.h - the JSON of a header, on its way to tensors.
#ifndef TARN_MODEL_SAFETENSORS_HEADER_H_
#define TARN_MODEL_SAFETENSORS_HEADER_H_

#include "base/json.h"
#include "model/safetensors.h"

// What a header says of one tensor.
typedef struct tarn__model_safetensors_draft {
  size_t begin;  // data_offsets
  size_t end;
  size_t first_dim;  // of |rank| among the file's
  uint32_t rank;
  uint32_t index;         // of the tensor, wherever the draft is sorted to
  uint32_t at;            // byte of the header at which its name stands
  uint32_t dtype_number;  // among the file's own
  const tarn__model_safetensors_dtype *dtype;  // NULL: one of the file's own
} tarn__model_safetensors_draft;

typedef struct tarn__model_safetensors_reader {
  tarn_safetensors *file;  // gets texts, lengths, metadata
  size_t header_size;
  size_t room;  // bytes behind the header
  tarn__json json;
  tarn__array drafts;   // tarn__model_safetensors_draft
  tarn__array scratch;  // char: a text with its zero byte
  bool has_metadata;
} tarn__model_safetensors_reader;

// "name: header byte N: ..." by TARN_E_CORRUPT.
__attribute__((format(printf, 3, 4), cold)) tarn_status
tarn__safetensors_fail_at(const tarn__model_safetensors_reader *reader,
                          size_t at, const char *format, ...);

// Reads all of |reader->json| into drafts, each of which lies within the room
// and has the bytes that its dtype and shape need.
//
// TARN_E_CORRUPT, TARN_E_NOMEM: some of it is there; free it as it is.
TARN_MUST_CHECK tarn_status
tarn__safetensors_header(tarn__model_safetensors_reader *reader);

#endif  // TARN_MODEL_SAFETENSORS_HEADER_H_
