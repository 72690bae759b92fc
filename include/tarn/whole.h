// whole.h - one piece of memory over many ranks.
//
// A whole is memory that the ranks of a communicator (comm.h) have together:
// every rank owns a part, and gets at those of the others as its type says.
//
//              CONTINUOUS            CHUNKED               DISTRIBUTED
//   reached    all of it, as one     all of it, part by    its own part; rows
//              range of addresses    part                  by exchange
//   DEVICE     a range is reserved   each rank makes its   each rank makes its
//              at each rank, memory  own, which the        own, which nobody
//              of each mapped in it  others map, or open   maps
//                                    by a handle
//   HOST       the first rank makes it, all map it, and    the same
//              each puts memory behind its own part first
//
// CONTINUOUS and CHUNKED are the mapped types: loads and stores reach every
// byte, on the device as on the host. Parts are cut at blocks, which
// granularity gives the bytes of: no block has two owners.
//
//   tarn_whole_table_options options = {.struct_size = sizeof options,
//                                       .type = TARN_WHOLE_CHUNKED,
//                                       .place = tarn_place_on(gpu),
//                                       .dtype = TARN_DTYPE_F32,
//                                       .rows = rows, .width = 64};
//   tarn_whole_tensor table;
//   tarn_whole_table_create(comm, &options, &table);     // all ranks
//   tarn_whole_gather(&table, &request, NULL);
//   tarn_whole_destroy(table.whole);                     // all ranks
//
// What was obtained: memory is zero and there before anyone gets its address.
// A shortage is TARN_FULL, and not a signal, for mapped memory of cpu and of
// the host; elsewhere it is what the device's driver makes of it. Nothing has a
// name: it is gone with the last process that holds it, however that ends.
//
// Collectives are the calls that say so: all ranks make them, in the same
// order; they answer TARN_E_PEER_LOST, TARN_E_TIMEOUT, TARN_E_CORRUPT, and
// TARN_E_INVALID for arguments that differ, as comm.h tells. What fails at one
// rank fails at all.
// Nothing synchronises the others: who reads what another rank wrote puts a
// tarn_comm_barrier between the two.
//
// Threads:  one thread at a time for collectives of a communicator; everything
//           else from any thread.
// Fork:     a whole of the parent answers TARN_E_STATE in the child; destroying
//           it there frees host memory and closes what the child inherited of
//           it. A child that keeps it holds memory of other ranks that was
//           opened by handles, also when its parent has ended.
// Errors:   besides what each function lists: TARN_E_INVALID for NULL where
//           something is needed, TARN_E_STATE as above, TARN_E_NOMEM.
#ifndef TARN_WHOLE_H_
#define TARN_WHOLE_H_

#include "tarn/base.h"
#include "tarn/comm.h"
#include "tarn/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_whole tarn_whole;

typedef enum tarn_whole_type {
  TARN_WHOLE_CONTINUOUS = 1,
  TARN_WHOLE_CHUNKED = 2,
  TARN_WHOLE_DISTRIBUTED = 3,
} tarn_whole_type;

// "continuous", "chunked", "distributed"; NULL if it is none.
TARN_API const char *tarn_whole_type_name(tarn_whole_type type);

// ---------------------------------------------------------------------------
// Partitions
// ---------------------------------------------------------------------------

// The blocks of each of |ranks| ranks where |blocks| are cut as evenly as the
// reference of the field does: c = blocks / ranks rounded up, rank i has those
// from i * c on, so that the last ones are short or empty. 15 on 4: 4, 4, 4, 3;
// 9 on 8: 2, 2, 2, 2, 1, 0, 0, 0. No communicator is needed.
//
// TARN_E_INVALID  |ranks| is 0.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_partition(size_t blocks,
                                                          size_t ranks,
                                                          size_t *out_counts);

// ---------------------------------------------------------------------------
// Beginning and end
// ---------------------------------------------------------------------------

typedef struct tarn_whole_options {
  size_t struct_size;
  tarn_whole_type type;
  tarn_place place;    // DEVICE: of that device; HOST: for that device,
                       // which it is registered with; TARN_HOST: of the
                       // host alone. The kind is the same at all ranks, the
                       // type of device too, its number may differ.
  size_t size;         // bytes; 0: a whole of nothing
  size_t granularity;  // bytes of a block, which |size| is a multiple of.
                       // 0: 1, so that ranks may meet anywhere: for tensors
                       // use tarn_whole_table_create, or set it to the bytes
                       // of a row
  const size_t *partition;  // blocks of each rank, with the sum of all;
                            // NULL: as tarn_whole_partition. A rank may have 0
  const char *name;         // what texts call it, up to 47 bytes, and the tag
                            // under which the pool of the place accounts for
                            // this rank's memory; NULL or "": no name, and
                            // "whole"
} tarn_whole_options;

// Makes one. Collective. It is zeros.
//
// Memory comes from the device, and what this rank has made is charged to the
// pool of its place, with its limit. Pieces of device memory are cut at the
// granularity of the device's ranges, or at 2 MiB where they are large: so a
// rank may own rows in a piece that a neighbour has made.
//
// Lifetime: until tarn_whole_destroy; before, the communicator cannot be
//           destroyed nor the device closed (TARN_E_STATE).
// Cost:     putting memory behind this rank's part: huge pages where the kernel
//           gives them for shared memory (6.1 or newer).
// TARN_E_INVALID      no such type or place; |size| is no multiple of
//                     |granularity|; the partition's sum is another; overflow;
//                     the text names the value.
// TARN_E_UNSUPPORTED  the device lacks what the type needs, which the text
//                     names: TARN_EXTENSION_RANGES and _SHARING for mapped
//                     types on DEVICE, of which CHUNKED may have _HANDLES
//                     instead; _REGISTER for those on HOST; or ranks cannot
//                     pass descriptors (tarn_comm_share).
// TARN_FULL           a rank has no memory left for its part; the text says
//                     which.
// TARN_E_IO           a rank has no descriptors left.
// TARN_E_DEVICE       a driver failed.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_create(
    tarn_comm *comm, const tarn_whole_options *options, tarn_whole **out_whole);

// Ends it. Collective: what a rank has made goes when no rank uses it any more.
// On a communicator that is broken it waits for nobody and frees what is this
// rank's. But where ranks have opened allocations by handles, it waits until
// the others have let go of this rank's or have ended, at most for the timeout;
// if they have not, the allocation stays, and the device cannot be closed. What
// is queued on streams must not use it any more.
//
// TARN_E_PEER_LOST, TARN_E_TIMEOUT, TARN_E_CORRUPT
//                 it has ended here all the same.
// TARN_E_DEVICE   likewise; a driver refused some of it.
// TARN_E_INVALID  ranks mean different wholes, or are in another call: nothing
//                 has changed. So it is whenever ranks did not meet and the
//                 communicator is not broken by it.
TARN_API tarn_status tarn_whole_destroy(tarn_whole *whole);

typedef struct tarn_whole_info {
  size_t struct_size;
  tarn_whole_type type;
  tarn_place place;
  size_t size;
  size_t granularity;
  size_t rank;
  size_t ranks;
  size_t piece_granularity;  // what pieces of memory were cut at; 0: one file,
                             // an allocation of each rank, or not mapped
  size_t page_size;   // of the pages behind this rank's part, the smallest; 0:
                      // it has none, or they cannot be told
  int numa_node;      // of the first of them; -1: likewise
  size_t huge_bytes;  // of this rank's part on pages above the machine's usual
  size_t charged;     // bytes charged to the pool of the place at this rank
} tarn_whole_info;

// Fills |*out_info|.
//
// Cost: asks the kernel about the pages.
TARN_API TARN_MUST_CHECK tarn_status
tarn_whole_query(tarn_whole *whole, tarn_whole_info *out_info);

TARN_API tarn_comm *tarn_whole_comm(const tarn_whole *whole);

// ---------------------------------------------------------------------------
// Addresses: of the place of this rank
// ---------------------------------------------------------------------------

// A part: |size| bytes from |offset| on in the whole, at |address|. Where
// |size| is 0, so is |address|.
typedef struct tarn_whole_part {
  tarn_addr address;
  size_t size;
  size_t offset;
} tarn_whole_part;

// What this rank owns.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_local(tarn_whole *whole,
                                                      tarn_whole_part *out);

// What rank |rank| owns, as this one reaches it.
//
// TARN_E_INVALID      no such rank.
// TARN_E_UNSUPPORTED  DISTRIBUTED, and it is another: |out->size| and
//                     |out->offset| are set all the same.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_of_rank(tarn_whole *whole,
                                                        size_t rank,
                                                        tarn_whole_part *out);

// Where all of it begins.
//
// TARN_E_UNSUPPORTED  CHUNKED on a device, or DISTRIBUTED.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_global(tarn_whole *whole,
                                                       tarn_addr *out_address);

// All of it as chunks, one for each rank, or a single one: what kernels and
// tarn_rows take.
//
// Lifetime: the arrays are the whole's.
// TARN_E_UNSUPPORTED  DISTRIBUTED.
TARN_API TARN_MUST_CHECK tarn_status
tarn_whole_reference(tarn_whole *whole, tarn_reference *out_reference);

// The rank that owns byte |offset|.
//
// TARN_E_INVALID  beyond the end.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_owner(tarn_whole *whole,
                                                      size_t offset,
                                                      size_t *out_rank);

// ---------------------------------------------------------------------------
// Tensors
// ---------------------------------------------------------------------------

// What part of a whole is, as rows of elements: a value. Of a vector, the rows
// are its elements and |width| is 1.
typedef struct tarn_whole_tensor {
  tarn_whole *whole;
  tarn_dtype dtype;
  size_t dims;  // 1 or 2
  size_t rows;
  size_t width;   // elements of a row; 1 if |dims| is 1
  size_t stride;  // elements from one row to the next
  size_t offset;  // elements before the first
} tarn_whole_tensor;

// All of |whole|, from its beginning on, as |rows| rows of |width| elements;
// |width| 0: a vector.
//
// TARN_E_INVALID  it does not fit; the bytes of a row (of a vector: of an
//                 element) are no multiple of a block, nor a block of them; or
//                 ranks meet within a row. Ranks never meet within a row where
//                 the granularity is the bytes of a row.
TARN_API TARN_MUST_CHECK tarn_status
tarn_whole_tensor_make(tarn_whole *whole, tarn_dtype dtype, size_t rows,
                       size_t width, tarn_whole_tensor *out_tensor);

typedef struct tarn_whole_table_options {
  size_t struct_size;
  tarn_whole_type type;
  tarn_place place;  // as in tarn_whole_options
  tarn_dtype dtype;
  size_t rows;   // 0: a table of nothing
  size_t width;  // elements of a row; 0: a vector, whose rows are its elements
  const size_t *partition;  // rows of each rank, with the sum |rows|;
                            // NULL: as tarn_whole_partition. A rank may have 0
  const char *name;         // as in tarn_whole_options
} tarn_whole_table_options;

// Makes a whole and the tensor that fills it. Collective. The granularity is
// the bytes of a row, of a vector those of an element: so ranks never meet
// within a row, however many there are.
//
// Lifetime: until tarn_whole_destroy(out_tensor->whole).
// TARN_E_INVALID  no such dtype; the table is larger than a size_t can say;
//                 dtype, rows or width differ between ranks. The text names the
//                 values.
// Besides as of tarn_whole_create.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_table_create(
    tarn_comm *comm, const tarn_whole_table_options *options,
    tarn_whole_tensor *out_tensor);

// Rows [row_begin, row_end) and columns [column_begin, column_end) of |tensor|;
// an end of TARN_WHOLE_END is that of the tensor.
//
// TARN_E_INVALID  beyond its ends: the text names which; or no columns.
#define TARN_WHOLE_END SIZE_MAX
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_tensor_sub(
    const tarn_whole_tensor *tensor, size_t row_begin, size_t row_end,
    size_t column_begin, size_t column_end, tarn_whole_tensor *out_tensor);

// The rows of |tensor| that rank |rank| owns: |*out_count| from |*out_first|
// on.
//
// TARN_E_INVALID  no such rank.
TARN_API TARN_MUST_CHECK tarn_status
tarn_whole_tensor_rows(const tarn_whole_tensor *tensor, size_t rank,
                       size_t *out_first, size_t *out_count);

// Where this rank's rows of |tensor| begin, at its place; 0 if there are none.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_tensor_local(
    const tarn_whole_tensor *tensor, tarn_addr *out_address);

// ---------------------------------------------------------------------------
// Rows by index
// ---------------------------------------------------------------------------

// Rows of a table for a block of dense rows, as tarn_rows in base.h tells: the
// same conversions and checks.
typedef struct tarn_whole_rows {
  size_t struct_size;
  tarn_place place;        // of dense rows and indices
  tarn_addr dense;         // |index_count| rows
  tarn_dtype dense_dtype;  // TARN_DTYPE_NONE: that of the table
  size_t dense_stride;     // bytes from one row to the next; 0: no gap
  tarn_addr indices;       // |index_count| numbers of rows of the tensor
  tarn_dtype index_dtype;  // TARN_DTYPE_I32 or TARN_DTYPE_I64
  size_t index_count;      // may be 0, and differ from rank to rank
  uint32_t flags;          // TARN_ROWS_... bits; 0: none
  uint32_t threads;        // of the host that may work on it at a time, where
                           // it is the host that does; 0: 1. An exchange works
                           // with one
} tarn_whole_rows;

// Gather: dense[i] = table[indices[i]]. Scatter: table[indices[i]] = dense[i];
// where ranks, or indices of one rank, meet in a row, one of them stays.
//
// On mapped types each rank is alone: it moves its rows itself, in the order of
// |stream|, of a device of |place| or of the table, or before it returns if
// that is NULL. **With a stream, dense rows and indices must stay until the
// work is done.** The table is never copied. A DISTRIBUTED one is exchanged
// for: collective, each rank asks each owner for rows, in rounds through a
// shared staging memory of 2 MiB a rank, which the first exchange of a whole
// makes.
//
// |place| may be any: where no device reaches both ends, rows go by way of a
// block of the pool of the table's device, some at a time. Then, in an
// exchange, and where another device does it than |stream|'s, what is on
// |stream| comes first, and the rows are there when the call returns.
//
// TARN_E_INVALID      dtype, stride, flag or place is not possible, |stream| is
//                     of a third device, or an index is not in the tensor: the
//                     text names value and position. Mapped: with a stream it
//                     may be its failure instead. Exchanged: at all ranks, the
//                     text names the rank too, and nothing was moved.
// TARN_FULL           no room for a block, or for the staging.
// TARN_E_IO           a rank has no descriptors left for the staging.
// TARN_E_UNSUPPORTED  exchanged by ranks that cannot pass descriptors.
// TARN_E_CORRUPT      another rank has written what is no row into the staging.
// TARN_E_DEVICE       a driver failed.
// Of an exchange that fails otherwise than by TARN_E_INVALID, which rows were
// moved is not defined.
TARN_API TARN_MUST_CHECK tarn_status
tarn_whole_gather(const tarn_whole_tensor *table, const tarn_whole_rows *rows,
                  tarn_stream *stream);
TARN_API TARN_MUST_CHECK tarn_status
tarn_whole_scatter(const tarn_whole_tensor *table, const tarn_whole_rows *rows,
                   tarn_stream *stream);

// table[indices[i]] += dense[i], for each i of each rank. Collective for every
// type: the owner of a row adds, in the order of ranks and of their indices, so
// that ranks may meet in a row, and sums come out the same each time.
TARN_API TARN_MUST_CHECK tarn_status
tarn_whole_scatter_add(const tarn_whole_tensor *table,
                       const tarn_whole_rows *rows, tarn_stream *stream);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_WHOLE_H_
