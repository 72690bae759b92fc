// safetensors.h - tensors in files of the safetensors format.
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
// A file is mapped and not copied: its tensors are where the file's pages are.
//
// What is opened may come from anywhere. All that the header says is checked
// before it is believed: that it is JSON of just this form, in UTF-8; that no
// name or key stands twice; that each tensor has the bytes that its dtype and
// shape need; and that the tensors cover all bytes behind the header, each byte
// once. A refusal names the file, the byte of the header and the value. What
// the elements are, NaN or not, is not looked at. Keys of a tensor that are
// none of the three mean nothing.
//
// Threads: an opened file never changes: any number of readers; close it when
//          they are done. A writer belongs to one thread at a time.
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

// Longer headers are refused, as they are elsewhere.
#define TARN_SAFETENSORS_MAX_HEADER 100000000u

typedef struct tarn_safetensor {
  const char *name;        // UTF-8 but for the byte 0; may be ""
  tarn_dtype dtype;        // TARN_DTYPE_NONE: one that Tarn does not have
  const char *dtype_text;  // as the file has it: "F32", "F8_E4M3"
  tarn_shape shape;        // of lengths >= 0
  size_t offset;           // of the first byte, from the file's beginning
  size_t size;             // bytes; may be 0
  const void *data;        // to be read only; NULL where |size| is 0
  // |data| is a multiple of an element's size, so that it can be used in
  // place. False for a dtype whose size is not known.
  bool aligned;
} tarn_safetensor;

// Maps the file at |path| and reads its header. A tensor's dtype that is in no
// version of the format that Tarn knows is taken as it stands, with the bytes
// that it is said to have.
//
// Lifetime: all that is asked of the file lives until tarn_safetensors_close.
//           The file must not be cut meanwhile: touching what is gone ends the
//           program (SIGBUS). Replace it by another one instead, as
//           tarn_safetensors_write does.
// Cost:     O(header); at most 64 times the header's size + 1 MiB of host
//           memory, none of it for the tensors' bytes.
// TARN_E_CORRUPT  the text is "path: header byte N: what is wrong", or without
//                 a byte where the file is too short to have a header.
// TARN_E_IO       the system refused, or it is no regular file.
// TARN_E_NOMEM    no host memory.
// TARN_E_INVALID  an argument is NULL.
TARN_API TARN_MUST_CHECK tarn_status
tarn_safetensors_open(const char *path, tarn_safetensors **out_file);

// The same for |size| bytes in memory, where the tensors stay; |name| stands in
// the texts of errors.
//
// Lifetime: the bytes must live, unchanged, until the file is closed.
TARN_API TARN_MUST_CHECK tarn_status
tarn_safetensors_open_bytes(const void *bytes, size_t size, const char *name,
                            tarn_safetensors **out_file);

// NULL is allowed.
TARN_API void tarn_safetensors_close(tarn_safetensors *file);

// How many tensors there are; 0 for NULL.
TARN_API size_t tarn_safetensors_count(const tarn_safetensors *file);

// The tensor of that number, in the header's order; NULL where |index| is none.
TARN_API const tarn_safetensor *tarn_safetensors_at(
    const tarn_safetensors *file, size_t index);

// The tensor of that name; NULL, and the last error, if there is none.
//
// Cost: O(1).
TARN_API const tarn_safetensor *tarn_safetensors_find(
    const tarn_safetensors *file, const char *name);

// How many texts of metadata there are; 0 for NULL.
TARN_API size_t tarn_safetensors_metadata_count(const tarn_safetensors *file);

// Key and value of that number, in the header's order. False, and both NULL,
// where |index| is none.
TARN_API bool tarn_safetensors_metadata_at(const tarn_safetensors *file,
                                           size_t index, const char **out_key,
                                           const char **out_value);

// The value of that key; NULL, and the last error, if there is none.
//
// Cost: O(1).
TARN_API const char *tarn_safetensors_metadata(const tarn_safetensors *file,
                                               const char *key);

// ---------------------------------------------------------------------------
// Writing
// ---------------------------------------------------------------------------
// Tensors stand in a file in the order of their elements' sizes, the largest
// first, and then of their names: so each is aligned, since the header ends at
// a multiple of 8, and the same tensors make the same file, whatever the order
// in which they were added.

typedef struct tarn_safetensors_writer tarn_safetensors_writer;

// Puts |size| bytes of a tensor, from byte |offset| of it on, into |out|. Any
// status but TARN_OK ends the writing, and becomes its status. It must not use
// the writer.
typedef tarn_status tarn_safetensors_fill_fn(void *context, size_t offset,
                                             void *out, size_t size);

// Takes |size| bytes of a file, in order. A status as above.
typedef tarn_status tarn_safetensors_sink_fn(void *context, const void *bytes,
                                             size_t size);

// A writer without tensors. No file is touched before tarn_safetensors_write.
//
// Lifetime:     free it with tarn_safetensors_writer_destroy.
// TARN_E_NOMEM  no host memory.
TARN_API TARN_MUST_CHECK tarn_status
tarn_safetensors_writer_create(tarn_safetensors_writer **out_writer);

// NULL is allowed.
TARN_API void tarn_safetensors_writer_destroy(tarn_safetensors_writer *writer);

// Adds a tensor whose bytes are at |data|, densely packed.
//
// Lifetime: name and shape are copied, the bytes are read when a file is
//           written and must live until then.
// TARN_E_INVALID  the name is there already, is "__metadata__" or not UTF-8;
//                 |dtype| is none; a length is negative, TARN_DIM_BATCH
//                 included; sizes overflow; |data| is NULL where there are
//                 bytes; another argument is NULL.
// TARN_E_NOMEM    no host memory. In both cases nothing was added.
TARN_API TARN_MUST_CHECK tarn_status
tarn_safetensors_add(tarn_safetensors_writer *writer, const char *name,
                     tarn_dtype dtype, tarn_shape shape, const void *data);

// Adds a tensor whose bytes |fill| gives, for those that no pointer reaches: it
// is called in order, for each byte once in each writing, with at most 256 KiB
// at a time.
//
// Errors: as tarn_safetensors_add.
TARN_API TARN_MUST_CHECK tarn_status tarn_safetensors_add_filled(
    tarn_safetensors_writer *writer, const char *name, tarn_dtype dtype,
    tarn_shape shape, tarn_safetensors_fill_fn *fill, void *context);

// Adds a text of metadata. Both are copied.
//
// TARN_E_INVALID  the key is there already, one is not UTF-8, or NULL.
// TARN_E_NOMEM    no host memory. In both cases nothing was added.
TARN_API TARN_MUST_CHECK tarn_status tarn_safetensors_add_metadata(
    tarn_safetensors_writer *writer, const char *key, const char *value);

// Writes all that was added to the file at |path|. What stood there is replaced
// by a whole file or not at all. A writer can write again.
//
// Cost:     O(bytes); host memory for the header, and at most 256 KiB.
// TARN_E_IO       the file cannot be written; the text says which and why.
// TARN_E_INVALID  the header would be longer than TARN_SAFETENSORS_MAX_HEADER;
//                 an argument is NULL.
// TARN_E_NOMEM    no host memory.
// or what a tarn_safetensors_fill_fn returned.
TARN_API TARN_MUST_CHECK tarn_status
tarn_safetensors_write(const tarn_safetensors_writer *writer, const char *path);

// The same into |sink|.
TARN_API TARN_MUST_CHECK tarn_status
tarn_safetensors_write_to(const tarn_safetensors_writer *writer,
                          tarn_safetensors_sink_fn *sink, void *context);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_SAFETENSORS_H_
