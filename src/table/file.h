// file.h - a file that rows are read from or written to, as one rank has it.
#ifndef TARN_TABLE_FILE_H_
#define TARN_TABLE_FILE_H_

#include "format/sums.h"
#include "tarn/table.h"

enum {
  TARN__TABLE_CHUNK = TARN__SUMS_CHUNK,  // bytes that have a checksum
  TARN__TABLE_BLOCK = 4096,  // what offsets, sizes and addresses of direct
                             // reads are multiples of
};

typedef struct tarn__table_file {
  const char *path;  // the caller's
  int fd;            // -1: not open
  int direct;        // past the page cache; -1: not so
  uint64_t size;
  // The bytes that have checksums. Of a file that is read |sum_count| 0: none
  // have; of one that is written they are made if |checked|.
  bool checked;
  uint64_t begin;
  uint64_t length;
  uint32_t *sums;
  size_t sum_count;
} tarn__table_file;

// An array as the header of a file has it.
typedef struct tarn__table_shape {
  tarn_dtype dtype;
  size_t dims;  // 1 or 2
  size_t rows;
  size_t width;
  uint64_t at;      // of the first byte
  size_t dtype_at;  // bytes of the header that say so; 0: not known
  size_t shape_at;
} tarn__table_shape;

// Opens the regular file at |path| to be read, past the page cache too unless
// |cached|.
//
// TARN_E_IO  the text names it.
TARN_MUST_CHECK tarn_status tarn__file_open(const char *path, bool cached,
                                            tarn__table_file *out);

// The file of rank |rank| of |ranks|, "PREFIX_part_I_of_N", whose name begins
// with |prefix|. False: it is longer than |size|.
TARN_MUST_CHECK bool tarn__file_name_part(char *out, size_t size,
                                          const char *prefix, size_t rank,
                                          size_t ranks);

// NULL fields are allowed.
void tarn__file_close(tarn__table_file *file);

// Reads |size| bytes at |offset|.
//
// TARN_E_IO, and TARN_E_CORRUPT if the file ends before.
TARN_MUST_CHECK tarn_status tarn__file_read(const tarn__table_file *file,
                                            uint64_t offset, void *out,
                                            size_t size);

// Reads header and checksums of an .npy file. |checked|: checksums are wanted.
//
// TARN_E_CORRUPT, TARN_E_INVALID, TARN_E_UNSUPPORTED  as tarn_whole_load.
TARN_MUST_CHECK tarn_status tarn__file_read_npy(tarn__table_file *file,
                                                bool checked,
                                                tarn__table_shape *out_shape);

// The same of a safetensors file, for the tensors of |count| |names|.
//
// TARN_E_INVALID  also: it has no such tensor.
TARN_MUST_CHECK tarn_status tarn__file_read_safetensors(
    tarn__table_file *file, bool checked, const char *const *names,
    size_t count, tarn__table_shape *out_shapes);

// What ranks compare, to see whether they have the same file.
typedef struct tarn__table_identity {
  uint64_t size;
  uint32_t head;  // the sum of its first bytes
  uint32_t tail;  // of its last ones
} tarn__table_identity;

TARN_MUST_CHECK tarn_status tarn__file_identify(const tarn__table_file *file,
                                                tarn__table_identity *out);

#endif  // TARN_TABLE_FILE_H_
