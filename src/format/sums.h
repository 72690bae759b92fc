// sums.h - checksums of a file's data: CRC-32Cs of each MiB, counted from the
// data's first byte.
//
// Behind the array of an .npy file, where NumPy does not look, they are a
// block:
//
//   | header | array ............ | zeros | block |
//            array_offset                 ^ next multiple of 4096
//
//    0  "TARNSUMS"
//    8  4 bytes: the version, 1
//   12  4 bytes: bytes of a chunk, 2^20
//   16  8 bytes: the array's offset in the file
//   24  8 bytes: the array's size
//   32  16 bytes: a random number of the store that wrote the file
//   48  8 bytes: how many sums there are
//   56  4 bytes: CRC-32C of the sums
//   60  4 bytes: CRC-32C of the 60 bytes before
//   64  4 bytes for each chunk of the array: its CRC-32C
//
// Numbers are little-endian; the file ends behind the sums. Every byte of the
// block is checked. What has no block is a file of others, or of a store
// without checksums, and is none the worse.
//
// In a safetensors file they are two texts of metadata:
//
//   "tarn.crc32c.chunk"  "1048576"
//   "tarn.crc32c"        8 hexadecimal digits for each chunk of all that stands
//                        behind the header
//
// Errors: the text begins with the path.
#ifndef TARN_FORMAT_SUMS_H_
#define TARN_FORMAT_SUMS_H_

#include "tarn/base.h"

enum {
  TARN__SUMS_CHUNK = 1 << 20,  // bytes of the data for each sum
  TARN__SUMS_MULTIPLE = 4096,  // of which a block's offset is one
  TARN__SUMS_HEAD = 64,        // bytes of a block before its sums
  TARN__SUMS_ID = 16,          // bytes of a store's random number
  TARN__SUMS_DIGITS = 8,       // of a sum in a text
};

#define TARN__SUMS_CHUNK_KEY "tarn.crc32c.chunk"
#define TARN__SUMS_CHUNK_TEXT "1048576"
#define TARN__SUMS_KEY "tarn.crc32c"

// How many sums |size| bytes of data have.
static inline size_t tarn__sums_count(size_t size) {
  return size / TARN__SUMS_CHUNK + (size % TARN__SUMS_CHUNK != 0);
}

// ---------------------------------------------------------------------------
// A block
// ---------------------------------------------------------------------------

// Where the block of an array is.
typedef struct tarn__format_sums_place {
  size_t array_offset;
  size_t array_size;
  size_t count;   // of sums
  size_t offset;  // of the block in the file
  size_t size;    // of the block
} tarn__format_sums_place;

// False: the file would be longer than a size_t can say.
TARN_MUST_CHECK bool tarn__sums_place(size_t array_offset, size_t array_size,
                                      tarn__format_sums_place *out_place);

// Writes the |place->size| bytes of a block to |out|.
void tarn__sums_write(const tarn__format_sums_place *place,
                      const unsigned char id[TARN__SUMS_ID],
                      const uint32_t *sums, void *out);

// A block that was read. It lies in the bytes that it was read from.
typedef struct tarn__format_sums {
  bool found;  // false: there is none, all else is zero
  size_t count;
  const unsigned char *id;    // TARN__SUMS_ID bytes
  const unsigned char *sums;  // of which tarn__sums_at gives one
} tarn__format_sums;

// Reads the block at |place| of a file of |file_size| bytes out of |bytes|, the
// |size| bytes of the file from |place->offset| on: |place->size|, or as many
// as there are.
//
// TARN_E_CORRUPT      it is damaged, or of another array, or the file does not
//                     end with it; the text has the byte.
// TARN_E_UNSUPPORTED  it is of a later version.
TARN_MUST_CHECK tarn_status tarn__sums_read(
    const char *name, const tarn__format_sums_place *place, const void *bytes,
    size_t size, size_t file_size, tarn__format_sums *out_sums);

uint32_t tarn__sums_at(const tarn__format_sums *sums, size_t index);

// ---------------------------------------------------------------------------
// A text
// ---------------------------------------------------------------------------

// Writes TARN__SUMS_DIGITS digits of each sum to |out|, without a zero byte.
void tarn__sums_to_text(const uint32_t *sums, size_t count, char *out);

// Reads |count| sums out of the texts of TARN__SUMS_CHUNK_KEY and
// TARN__SUMS_KEY; without both of them |*out_found| is false.
//
// TARN_E_CORRUPT  there is one of them only, or they are of another form or of
//                 another number of sums.
TARN_MUST_CHECK tarn_status tarn__sums_of_text(const char *name,
                                               const char *chunk,
                                               const char *text, size_t count,
                                               uint32_t *out_sums,
                                               bool *out_found);

#endif  // TARN_FORMAT_SUMS_H_
