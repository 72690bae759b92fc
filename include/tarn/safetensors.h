// safetensors.h - reads and writes files of the safetensors format.
//
//   tarn_safetensors *file;
//   tarn_safetensors_open("net.safetensors", &file);
//   const tarn_safetensor *w = tarn_safetensors_find(file, "fc0.weight");
//   ... w->shape, w->dtype, w->size bytes at w->data ...
//   tarn_safetensors_close(file);
//
// A file is the length N of its header in 8 bytes, little-endian; N bytes of
// JSON; and the tensors' bytes, row-major and little-endian:
//
//   {"__metadata__":{"key":"value"},
//    "name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}, ...}
//
// Opening maps the file and copies nothing: its tensors lie in the file's
// pages.
//
// A file may come from an untrusted source. The header is checked in full when
// the file is opened: it is JSON of exactly this form, in UTF-8; no name or key
// occurs twice; each tensor has as many bytes as its dtype and shape need; the
// tensors cover all bytes behind the header, each byte once. An error names the
// file, the byte of the header and the value. Elements are not checked (NaN).
// Other keys of a tensor are ignored.
//
// Threads: an opened file never changes: any number of threads may read it, and
//          one closes it when they are done. A writer belongs to one thread at
//          a time.
// Fork:    both are plain data and stay usable in the child.
#ifndef TARN_SAFETENSORS_H_
#define TARN_SAFETENSORS_H_

#include "tarn/base.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---------------------------------------------------------------------------
// Reading
// ---------------------------------------------------------------------------

typedef struct tarn_safetensors tarn_safetensors;

// Longer headers are refused, as by the format's own package.
#define TARN_SAFETENSORS_MAX_HEADER 100000000u

typedef struct tarn_safetensor {
  const char *name;        // UTF-8 without the byte 0; may be ""
  tarn_dtype dtype;        // TARN_DTYPE_NONE: a dtype that Tarn lacks
  const char *dtype_text;  // as in the file: "F32", "F8_E4M3"
  tarn_shape shape;        // of lengths >= 0
  size_t offset;           // of the first byte, from the file's beginning
  size_t size;             // bytes; may be 0
  const void *data;        // read-only; NULL if |size| is 0
  // |data| is a multiple of the element size, so that it can be used in place.
  // False for a dtype of unknown size.
  bool aligned;
} tarn_safetensor;

// Maps the file at |path| and reads its header. A tensor of an unknown dtype is
// accepted with the size that its offsets give.
//
// Lifetime: tensors, names and texts live until tarn_safetensors_close. The
//           file must not be cut before: touching a missing page ends the
//           program (SIGBUS). Replace the file instead, as
//           tarn_safetensors_write does.
// Cost:     O(header); host memory of at most 64 times the header's size +
//           1 MiB, none of it for the tensors' bytes.
// TARN_E_CORRUPT  the text is "path: header byte N: error"; without a byte if
//                 the file is too short to have a header.
// TARN_E_IO       the system refused, or |path| is not a regular file.
// TARN_E_NOMEM    no host memory.
// TARN_E_INVALID  an argument is NULL.
TARN_API TARN_MUST_CHECK tarn_status
tarn_safetensors_open(const char *path, tarn_safetensors **out_file);

// Opens |size| bytes in memory, in which the tensors stay; |name| stands for
// the path in error texts.
//
// Lifetime: the bytes must live, unchanged, until the file is closed.
TARN_API TARN_MUST_CHECK tarn_status
tarn_safetensors_open_bytes(const void *bytes, size_t size, const char *name,
                            tarn_safetensors **out_file);

// NULL is allowed.
TARN_API void tarn_safetensors_close(tarn_safetensors *file);

// The number of tensors; 0 for NULL.
TARN_API size_t tarn_safetensors_count(const tarn_safetensors *file);

// The tensor at |index|, in the header's order; NULL beyond the last.
TARN_API const tarn_safetensor *tarn_safetensors_at(
    const tarn_safetensors *file, size_t index);

// The tensor called |name|; NULL, with the last error, if there is none.
//
// Cost: O(1).
TARN_API const tarn_safetensor *tarn_safetensors_find(
    const tarn_safetensors *file, const char *name);

// The number of texts of metadata; 0 for NULL.
TARN_API size_t tarn_safetensors_metadata_count(const tarn_safetensors *file);

// Key and value at |index|, in the header's order. False, and both NULL, beyond
// the last.
TARN_API bool tarn_safetensors_metadata_at(const tarn_safetensors *file,
                                           size_t index, const char **out_key,
                                           const char **out_value);

// The value of |key|; NULL, with the last error, if there is none.
//
// Cost: O(1).
TARN_API const char *tarn_safetensors_metadata(const tarn_safetensors *file,
                                               const char *key);

// ---------------------------------------------------------------------------
// Writing
// ---------------------------------------------------------------------------
// Tensors are written in order of element size, largest first, and then of
// name. The header ends at a multiple of 8, so each tensor is aligned. The same
// tensors make the same file, in any order of adding.

typedef struct tarn_safetensors_writer tarn_safetensors_writer;

// Puts |size| bytes of a tensor, from its byte |offset| on, into |out|. A
// status other than TARN_OK ends the writing and is returned by it. The
// function must not use the writer.
typedef tarn_status tarn_safetensors_fill_fn(void *context, size_t offset,
                                             void *out, size_t size);

// Receives the next |size| bytes of a file. A status as above.
typedef tarn_status tarn_safetensors_sink_fn(void *context, const void *bytes,
                                             size_t size);

// Makes an empty writer. No file is touched before tarn_safetensors_write.
//
// Lifetime:     free it with tarn_safetensors_writer_destroy.
// TARN_E_NOMEM  no host memory.
TARN_API TARN_MUST_CHECK tarn_status
tarn_safetensors_writer_create(tarn_safetensors_writer **out_writer);

// NULL is allowed.
TARN_API void tarn_safetensors_writer_destroy(tarn_safetensors_writer *writer);

// Adds a tensor whose bytes are at |data|, densely packed.
//
// Lifetime: name and shape are copied. The bytes are read when a file is
//           written and must live until then.
// TARN_E_INVALID  the name is taken, is "__metadata__" or not UTF-8; |dtype| is
//                 not a dtype; a length is negative (also TARN_DIM_BATCH);
//                 sizes overflow; |data| is NULL for more than 0 bytes; another
//                 argument is NULL.
// TARN_E_NOMEM    no host memory. On failure nothing was added.
TARN_API TARN_MUST_CHECK tarn_status
tarn_safetensors_add(tarn_safetensors_writer *writer, const char *name,
                     tarn_dtype dtype, tarn_shape shape, const void *data);

// Adds a tensor whose bytes come from |fill|, for bytes that no pointer
// reaches. Each writing calls it in order, once for each byte, with at most 256
// KiB at a time.
//
// Errors: as tarn_safetensors_add.
TARN_API TARN_MUST_CHECK tarn_status tarn_safetensors_add_filled(
    tarn_safetensors_writer *writer, const char *name, tarn_dtype dtype,
    tarn_shape shape, tarn_safetensors_fill_fn *fill, void *context);

// Adds a text of metadata. Both are copied.
//
// TARN_E_INVALID  the key is taken, or a text is not UTF-8 or NULL.
// TARN_E_NOMEM    no host memory. On failure nothing was added.
TARN_API TARN_MUST_CHECK tarn_status tarn_safetensors_add_metadata(
    tarn_safetensors_writer *writer, const char *key, const char *value);

// Writes the file at |path|. An existing file is replaced as a whole or not at
// all. A writer can write again.
//
// Cost:     O(bytes); host memory for the header, and at most 256 KiB.
// TARN_E_IO       the file cannot be written; the text says which and why.
// TARN_E_INVALID  the header would be longer than TARN_SAFETENSORS_MAX_HEADER;
//                 an argument is NULL.
// TARN_E_NOMEM    no host memory.
// A status of tarn_safetensors_fill_fn is returned as it is.
TARN_API TARN_MUST_CHECK tarn_status
tarn_safetensors_write(const tarn_safetensors_writer *writer, const char *path);

// Writes to |sink|.
TARN_API TARN_MUST_CHECK tarn_status
tarn_safetensors_write_to(const tarn_safetensors_writer *writer,
                          tarn_safetensors_sink_fn *sink, void *context);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_SAFETENSORS_H_
