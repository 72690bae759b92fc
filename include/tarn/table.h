// table.h - tables in files.
//
//   tarn_whole_store(&table, "users.npy", NULL, NULL);  // all ranks
//   ...
//   tarn_whole_load(&table, "users.npy", NULL, NULL);   // all ranks, any
//   number
//
// A file holds a whole-memory tensor, or a part of one (tarn_whole_tensor_sub),
// as one array, however many ranks there are. Each rank writes and reads its
// own rows at their place in the file, so that no rank needs memory for a
// second copy of its part, and any number of ranks loads what any number has
// stored:
//
//   users.npy  | header | rows of rank 0 | rows of rank 1 | ... | checksums |
//              0        4096
//
// Formats:
//
//   NPY          numpy.load reads it, also with mmap_mode="r": numpy ignores
//                what follows the array. Arrays that NumPy has written, with
//                one or two dimensions in C order, little-endian, are loaded
//                whatever their header's length
//   SAFETENSORS  several named tensors, such as a table and the states of its
//                optimizer; the checksums are in the header's metadata
//   RAW          rows and nothing else, as libwholegraph has them: in one file,
//                in several that follow one another, or dealt out in turn
//
// Elements are little-endian. bf16 has no name in NumPy: in NPY it is stored as
// "<V2", as the package ml_dtypes does, so that
// numpy.load(path).view(ml_dtypes.bfloat16) has the values.
//
// A store writes a temporary file in the same folder, which all ranks bring to
// the disk (fsync); then rank 0 renames it, and brings the folder to the disk.
// After a crash or a loss of power at any moment there is the old or the new
// file, whole, and perhaps a temporary one, "NAME.PID-N.new", which can be
// removed. A link stays, and its target is replaced.
//
// The file is one that all ranks see. They prove it before they read or write
// rows: a store by a random number that rank 0 writes and the others read, a
// load by the size and by sums of the first and the last 64 KiB. Where a rank
// sees another file, or none, the error names it.
//
// Checksums are CRC-32Cs of each MiB of the arrays. A load compares those of
// each MiB of which it needs a byte. Files that others have written have none.
//
// Rows are read past the page cache (O_DIRECT) where the file system can and
// the cache does not have most of them, and written through it. Many requests
// are under way at a time, by io_uring, or by threads where the system forbids
// it and where a file is read from FUSE. Rows that are in memory as they are in
// the file go there without another copy.
//
// Ranks that read or write at their own pace meet once a second, or four times
// within the timeout of their communicator if that is shorter. So a rank with
// many rows is not taken for a lost one; one that waits for its disk for longer
// than the timeout is.
//
// Threads: collective: one thread at a time for a communicator, as in whole.h.
// Errors:  what fails at one rank fails at all, with the same status; besides
//          those of each function, those of collectives (whole.h).
#ifndef TARN_TABLE_H_
#define TARN_TABLE_H_

#include "tarn/base.h"
#include "tarn/whole.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tarn_file_format {
  TARN_FILE_BY_NAME = 0,  // by the end of the path: ".npy", ".safetensors";
                          // another end is TARN_E_INVALID
  TARN_FILE_NPY = 1,
  TARN_FILE_SAFETENSORS = 2,
  TARN_FILE_RAW = 3,
} tarn_file_format;

// Neither writes nor compares checksums.
#define TARN_FILE_UNCHECKED (1u << 0)

// The file of a load may have more rows than the tensor.
#define TARN_FILE_PART (1u << 1)

// RAW: the files of a load may have fewer rows than the tensor, whose other
// rows stay as they are.
#define TARN_FILE_FEWER (1u << 2)

// Reads and writes through the page cache only.
#define TARN_FILE_CACHED (1u << 3)

// Reads and writes by threads, also where the system has io_uring.
#define TARN_FILE_THREADS (1u << 4)

// How far this rank is.
typedef struct tarn_file_progress {
  size_t struct_size;
  uint64_t done;  // bytes of the file that this rank has moved
  uint64_t all;   // that it will move
  double seconds;
} tarn_file_progress;

typedef struct tarn_file_options {
  size_t struct_size;
  tarn_file_format format;  // 0: by the end of the path
  // The dtype in the file; elements are converted as by tarn_rows, a buffer at
  // a time. Store: 0: that of the tensor. Load: 0: RAW: that of the tensor;
  // else what the file says, and another one of the same size reads its bits as
  // that, such as bf16 out of "<u2".
  tarn_dtype dtype;
  size_t first_row;  // load: of the file, the one that becomes row 0 of the
                     // tensor
  uint64_t flags;    // TARN_FILE_... bits; 0: none
  size_t buffer;     // bytes of each rank for what is under way, besides rows
                     // longer than 1 MiB; 0: 16 MiB; at least 1 MiB
  // RAW load: rows are dealt out in turn, |deal| at a time: the first |deal|
  // rows of the files are rank 0's first, the next ones rank 1's, ...; 0: rows
  // follow one another in the tensor's order.
  size_t deal;
  // Called on the thread of the call, some ten times a second; false cancels
  // at all ranks: TARN_E_STATE. It must not call the library. NULL: not called.
  bool (*progress)(const tarn_file_progress *progress, void *user);
  void *user;
} tarn_file_options;

// What a load or store of this rank did.
typedef struct tarn_file_report {
  size_t struct_size;
  size_t rows;            // of all ranks
  uint64_t bytes;         // that this rank read or wrote
  uint64_t direct_bytes;  // of them past the page cache
  uint64_t checked;       // bytes whose checksums were compared or made
  const char *method;     // "io_uring" or "threads"
} tarn_file_report;

// Stores |tensor| in the file at |path|, which is made or replaced. Collective.
// |options| and |out_report| may be NULL. In SAFETENSORS the tensor is called
// "table". Of HIERARCHICAL memory in COPIES, that of rank 0's machine is
// stored, and a load fills each copy.
//
// Cost:           one pass over this rank's rows, and fsync.
// TARN_E_INVALID  an option, or a dtype that does not convert; the format is
//                 not told by the path; tensors or options differ between
//                 ranks.
// TARN_E_IO       the system refused; the text names the path, the byte and
//                 the rank. The old file is as it was. If only the new one's
//                 name could not be brought to the disk, which the text says,
//                 it is there, whole, and a loss of power may bring the old one
//                 back.
// TARN_E_STATE    cancelled. The old file is as it was.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_store(
    const tarn_whole_tensor *tensor, const char *path,
    const tarn_file_options *options, tarn_file_report *out_report);

// Loads |tensor| from the file at |path|. Collective.
//
// TARN_E_INVALID  as above; or rows, width, dimensions, dtype or the order of
//                 elements are others than the tensor's. The text has the path,
//                 the byte of the header, what is there and what was expected.
//                 No row has changed.
// TARN_E_CORRUPT  the file is cut or damaged, or no file of its format. The
//                 text has the path, the byte and what was expected. With a
//                 header that is whole, some rows may have changed.
// TARN_E_UNSUPPORTED  the checksums are of a later version of the library: load
//                 with TARN_FILE_UNCHECKED.
// TARN_E_IO       the system refused, or ranks see different files; the text
//                 names the path and the rank.
// TARN_E_STATE    cancelled. Some rows may have changed.
TARN_API TARN_MUST_CHECK tarn_status
tarn_whole_load(const tarn_whole_tensor *tensor, const char *path,
                const tarn_file_options *options, tarn_file_report *out_report);

// ---------------------------------------------------------------------------
// Several tensors in a file
// ---------------------------------------------------------------------------

// A tensor by its name in a file of the safetensors format. All are of one
// communicator.
typedef struct tarn_whole_named {
  const char *name;  // UTF-8; not "__metadata__"
  tarn_whole_tensor tensor;
} tarn_whole_named;

// As tarn_whole_store and tarn_whole_load, for |count| tensors, at least one.
// The format is SAFETENSORS. A load needs all of them in the file, which may
// have others besides. Collective.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_store_named(
    const tarn_whole_named *tensors, size_t count, const char *path,
    const tarn_file_options *options, tarn_file_report *out_report);
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_load_named(
    const tarn_whole_named *tensors, size_t count, const char *path,
    const tarn_file_options *options, tarn_file_report *out_report);

// ---------------------------------------------------------------------------
// Raw files
// ---------------------------------------------------------------------------

// Loads |tensor| from |count| raw files, whose bytes follow one another. Each
// has a whole number of rows. Collective.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_load_raw(
    const tarn_whole_tensor *tensor, const char *const *paths, size_t count,
    const tarn_file_options *options, tarn_file_report *out_report);

// Stores each rank's rows in a file of its own, PREFIX_part_I_of_N, with rank I
// of N. There are no checksums in it. Collective.
//
// The files get their names when all of them are on the disk, but not all at
// once: after a crash or a loss of power meanwhile each is the old or the new
// one, whole, and some may be old and some new, which nothing in them tells.
// After an error the old files are as they were, unless a rank was lost, or the
// text says that a file could not be put there or that its name could not be
// brought to the disk: then some may be new. Programs that must know choose a
// new prefix for each store.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_store_raw(
    const tarn_whole_tensor *tensor, const char *prefix,
    const tarn_file_options *options, tarn_file_report *out_report);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_TABLE_H_
