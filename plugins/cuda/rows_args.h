// rows_args.h - what rows.c tells the kernels of rows.cu, and what they tell
// queue.c. No struct has gaps. C, C++ and CUDA C include it.
#ifndef TARN_PLUGINS_CUDA_ROWS_ARGS_H_
#define TARN_PLUGINS_CUDA_ROWS_ARGS_H_

#include <stdint.h>

// The first row that a call found to be wrong, of the first such call of a
// stream since the host has looked. Zero-filled: none.
typedef struct tarn__cuda_fault {
  uint64_t serial;    // of the call, above 0; written last
  uint64_t position;  // of the index, of all of the call
  int64_t index;
  uint64_t count;  // rows of the table
  uint64_t claim;  // among kernels; only they read it: ~position, or 0
} tarn__cuda_fault;

// --- kernels ---------------------------------------------------------------
// Each name is of two kernels: tarn_NAME for a table in one chunk, which takes
// a tarn__cuda_rows, and tarn_NAME_many, which takes a tarn__cuda_rows_many.
// The number behind the action is the bytes that move at a time.
#define TARN__CUDA_KERNELS(X)                                         \
  X(gather_elements) /* converted, or not to be moved in one piece */ \
  X(gather_1)                                                         \
  X(gather_2)                                                         \
  X(gather_4)                                                         \
  X(gather_8)                                                         \
  X(gather_16)                                                        \
  X(scatter_elements)                                                 \
  X(scatter_1)                                                        \
  X(scatter_2)                                                        \
  X(scatter_4)                                                        \
  X(scatter_8)                                                        \
  X(scatter_16)                                                       \
  X(add_elements)

#define TARN__CUDA_KERNEL_NUMBER(name) TARN__CUDA_KERNEL_##name,
enum { TARN__CUDA_KERNELS(TARN__CUDA_KERNEL_NUMBER) TARN__CUDA_KERNEL_NAMES };

// Threads of a block. A thread of a gather has so many places for what moves
// at a time.
enum {
  TARN__CUDA_GATHER_THREADS = 256,
  TARN__CUDA_SCATTER_THREADS = 1024,  // also of an add
  TARN__CUDA_LANES_LOG = 5,           // of a row, at most
  TARN__CUDA_SLOTS_LOG = 2,
};

// tarn__cuda_rows.flags
#define TARN__CUDA_ROWS_SKIP 1u      // a bad index is no fault
#define TARN__CUDA_ROWS_CLEAR 2u     // and its dense row is to be cleared
#define TARN__CUDA_ROWS_STREAM 4u    // what is written need not stay in caches
#define TARN__CUDA_ROWS_NEGATIVE 8u  // so is a NaN of the host's own making

// How the elements or indices of one array are read and written: their size,
// and this where they are not aligned to it.
#define TARN__CUDA_ROWS_BYTES 16u

// All of a call, for a table in one chunk.
typedef struct tarn__cuda_rows {
  uint64_t table;         // the address of row 0
  uint64_t table_stride;  // as in tarn_rows, like the following
  uint64_t table_count;
  uint64_t dense;
  uint64_t dense_stride;
  uint64_t indices;
  uint64_t count;  // of indices
  uint64_t units;  // of a row: of the bytes that move at a time, or elements;
                   // 0: indices are checked, and that is all
  uint64_t fault;
  uint64_t serial;        // of the call
  uint32_t index_access;  // 4 or 8, or with ROWS_BYTES
  uint32_t flags;

  // A row has 1 << |lanes| threads, a power of two that is enough for |units|
  // or the most. In a gather a thread has 1 << |spread| units of a row at a
  // time, and as many rows as its slots have room for.
  uint32_t lanes;
  uint32_t spread;

  // Elements: dtypes by their numbers in tarn_dtype, and how they are read.
  uint32_t table_dtype;
  uint32_t dense_dtype;
  uint32_t table_access;
  uint32_t dense_access;
} tarn__cuda_rows;

// A launch for some of the chunks: arguments of a kernel have 4 KiB.
enum { TARN__CUDA_CHUNKS_MOST = 240 };

// Chunks that are not empty and follow each other. Rows that begin in no chunk
// of these are passed over: another launch has them.
typedef struct tarn__cuda_rows_many {
  tarn__cuda_rows rows;   // |table| is unused
  uint64_t table_offset;  // as in tarn_rows
  uint64_t row_bytes;     // of a row of the table
  uint64_t chunks;        // so many
  uint64_t addresses[TARN__CUDA_CHUNKS_MOST];
  uint64_t offsets[TARN__CUDA_CHUNKS_MOST + 1];
} tarn__cuda_rows_many;

#endif  // TARN_PLUGINS_CUDA_ROWS_ARGS_H_
