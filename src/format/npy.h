// npy.h - the header of an .npy file, NumPy's format for one array.
//
//   | 0x93 "NUMPY" | version | length | dict of Python, blanks | array ... |
//   0              6         8        10 or 12                  offset
//
//   {'descr': '<f4', 'fortran_order': False, 'shape': (1000, 64), }
//
// Read is what a table can be made of: one or two dimensions in C order, of a
// dtype that Tarn has, little-endian. Versions 1.0, 2.0 and 3.0 differ in the
// length's 2 or 4 bytes, and in characters that no such header has. The dict's
// keys may be in any order, and blanks where Python takes them. What follows
// the array is not looked at, as by NumPy.
//
// bf16 has no name in NumPy. Package ml_dtypes saves it as two bytes without a
// meaning, V2, and so does Tarn; any V2 is read as bf16.
//
// A file may come from an untrusted source. Nothing is allocated, and all is
// linear in the header.
//
// Errors: the text is "path: header byte N: error", where byte 0 is the file's
//         first.
#ifndef TARN_FORMAT_NPY_H_
#define TARN_FORMAT_NPY_H_

#include "tarn/base.h"

enum {
  TARN__NPY_LENGTH = 12,     // bytes that tell how long a header is
  TARN__NPY_MOST = 1 << 20,  // bytes of a header that is read; NumPy itself
                             // reads 10,000 unless it is told otherwise
  TARN__NPY_WRITTEN = 4096,  // bytes of a header that is written
};

typedef struct tarn__format_npy {
  tarn_dtype dtype;
  size_t rank;      // 1 or 2
  size_t dims[2];   // outermost first; the second is 1 if |rank| is 1
  size_t offset;    // of the array's first byte in the file
  size_t size;      // of the array in bytes; all of them are in the file
  size_t dtype_at;  // bytes of the header at which these begin, for errors
  size_t shape_at;
} tarn__format_npy;

// How many bytes the header of a file of |file_size| bytes has, which begins
// with the |size| at |bytes|: at least TARN__NPY_LENGTH, or all.
//
// TARN_E_CORRUPT  it is no .npy file, of another version, cut, or its header is
//                 longer than TARN__NPY_MOST.
TARN_MUST_CHECK tarn_status tarn__npy_head(const char *name, const void *bytes,
                                           size_t size, size_t file_size,
                                           size_t *out_head_size);

// Reads the header out of |bytes|, which are those of the head, or more.
//
// TARN_E_CORRUPT  as tarn__npy_head; or the header is not of the form that
//                 NumPy writes, or the file has less than the array.
// TARN_E_INVALID  it is of that form, but of another array than is described
//                 above.
TARN_MUST_CHECK tarn_status tarn__npy_read(const char *name, const void *bytes,
                                           size_t size, size_t file_size,
                                           tarn__format_npy *out_npy);

// Puts a header of version 1.0 into the TARN__NPY_WRITTEN bytes at |out|,
// behind which the array begins: of one or two dimensions, in C order.
void tarn__npy_write(tarn_dtype dtype, size_t rank, const size_t *dims,
                     void *out);

#endif  // TARN_FORMAT_NPY_H_
