// rows_args.h - what rows.c tells the kernels of rows.cl, and what they tell
// queue.c. Kernels have no other header: the build puts this text before
// theirs. No struct has gaps.
#ifndef TARN_PLUGINS_OPENCL_ROWS_ARGS_H_
#define TARN_PLUGINS_OPENCL_ROWS_ARGS_H_

#ifdef __OPENCL_VERSION__
typedef uint cl_uint;
typedef long cl_long;
typedef ulong cl_ulong;
#else
#include <CL/cl_platform.h>
#endif

// The first row that kernels of a queue found to be wrong. |position| and
// |groups| are of the launch that runs: between launches they are UINT32_MAX
// and 0. A launch writes the rest if it has found a fault, and there is none,
// or one of its call that stands further behind.
typedef struct tarn__opencl_fault {
  cl_uint position;  // of the index, in the launch; UINT32_MAX: none
  cl_uint groups;    // work groups that have finished
  cl_ulong serial;   // of the call; 0: no call has failed
  cl_ulong at;       // the position, of all indices of the call
  cl_long index;
  cl_ulong count;  // rows of the table
} tarn__opencl_fault;

// ACTION of a program.
#define TARN__OPENCL_GATHER 0
#define TARN__OPENCL_SCATTER 1
#define TARN__OPENCL_SCATTER_ADD 2

// tarn__opencl_rows_args.flags
#define TARN__OPENCL_ROWS_SKIP 1    // a bad index is no fault
#define TARN__OPENCL_ROWS_CLEAR 2   // and its dense row is to be cleared
#define TARN__OPENCL_ROWS_SEARCH 4  // rows are found among |chunks|
#define TARN__OPENCL_ROWS_STREAM \
  8  // rows that are written need no caches:
     // they are lines of 64 bytes

// How the elements of one side are read and written.
#define TARN__OPENCL_ROWS_BYTES 16  // added to a size: not aligned to it

// A launch: some indices of a call, and one chunk of the table or all.
typedef struct tarn__opencl_rows_args {
  // Bytes from the pointer of each argument on.
  cl_ulong table_at;
  cl_ulong dense_at;
  cl_ulong indices_at;

  cl_ulong table_offset;  // as in tarn_rows, like the following
  cl_ulong table_stride;
  cl_ulong table_count;
  cl_ulong dense_stride;

  // Without ROWS_SEARCH: the part of the table that the argument holds. Rows
  // that begin elsewhere are passed over.
  cl_ulong begin;
  cl_ulong end;
  // With it: so many addresses, then one more offsets, are in |chunks|.
  cl_ulong chunks;

  cl_ulong table_bytes;  // of a row; 0: indices are checked, and that is all
  cl_ulong units;        // of a row: units of UNIT bytes, or elements

  // UNIT 0: dtypes by their numbers in tarn_dtype, and how they are read.
  cl_ulong table_dtype;
  cl_ulong dense_dtype;
  cl_ulong table_access;
  cl_ulong dense_access;

  cl_ulong index_access;  // 4 or 8, or with ROWS_BYTES
  cl_ulong first;         // the position of the launch's first index
  cl_ulong count;         // its indices, fewer than UINT32_MAX
  cl_ulong serial;        // of the call
  cl_ulong flags;

  // How work items share the work: so many, a power of two, take part in a row,
  // and are a worker. Gathers: worker w has the positions w * run, and each
  // |step| on, as long as they are less than |span| on from there. Else it has
  // the rows that part_of() deals to it, among so many workers.
  cl_ulong lanes;
  cl_ulong workers;
  cl_ulong run;
  cl_ulong step;
  cl_ulong span;
} tarn__opencl_rows_args;

#endif  // TARN_PLUGINS_OPENCL_ROWS_ARGS_H_
