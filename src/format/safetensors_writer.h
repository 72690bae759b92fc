// safetensors_writer.h - what a writer of safetensors files has collected.
#ifndef TARN_FORMAT_SAFETENSORS_WRITER_H_
#define TARN_FORMAT_SAFETENSORS_WRITER_H_

#include "format/safetensors.h"

// A tensor to write. Its bytes are at |data|, or come from |fill|; without both
// only its place is planned.
typedef struct tarn__format_safetensors_entry {
  const tarn__format_safetensors_dtype *dtype;
  size_t first_dim;  // of |rank| among the writer's
  size_t rank;
  size_t size;
  const void *data;
  tarn_safetensors_fill_fn *fill;
  void *context;
} tarn__format_safetensors_entry;

// Every entry and every text can be written: they are checked when they are
// added.
struct tarn_safetensors_writer {
  tarn__budget budget;
  tarn__intern names;   // by tensor, each with a zero byte
  tarn__array entries;  // tarn__format_safetensors_entry
  tarn__array dims;     // int64_t, of all tensors
  tarn__intern keys;    // of metadata, each with a zero byte
  tarn__array values;   // uint32_t, by key: its value's number in |texts|
  tarn__intern texts;   // values of metadata, each with a zero byte
  size_t size;          // bytes of all tensors
};

// Appends the zero-ended |text| to |out|, chars, as a JSON string with quotes.
//
// TARN_E_NOMEM  the allocator refused; a part of it may be there.
TARN_MUST_CHECK tarn_status tarn__safetensors_quote(tarn__budget *budget,
                                                    tarn__array *out,
                                                    const char *text);

#endif  // TARN_FORMAT_SAFETENSORS_WRITER_H_
