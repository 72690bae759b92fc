// whole.h - whole memory: memory that the ranks of a communicator share.
//
// Each rank owns a part of it. How a rank reaches the parts of the others
// depends on the type:
//
//              CONTINUOUS            CHUNKED               DISTRIBUTED
//   reached    all of it, as one     all of it, part by    its own part; rows
//              range of addresses    part                  by exchange
//   DEVICE     each rank reserves a  each rank allocates   each rank allocates
//              range and maps the    its part; the others  its part, which no
//              memory of every rank  map it, or open it    other rank maps
//              in it                 by a handle
//   HOST       rank 0 creates a file in memory, all ranks  the same
//              map it, and each commits the memory of its
//              own part
//
// CONTINUOUS and CHUNKED are the mapped types: loads and stores reach every
// byte, on a device as on the host. All ranks must be on one machine. Parts are
// divided in blocks of |granularity| bytes. A block has one owner.
//
// HIERARCHICAL is for several machines (tarn_comm_machines). Within each of
// them it is mapped as CHUNKED is. What is mapped there depends on the spread:
//
//   COPIES   all of it: each machine has a copy, divided among its ranks as by
//            tarn_whole_partition. Ranks read the copy of their machine;
//            scatter and scatter_add reach every copy. A store by address
//            reaches one
//   PARTS    the parts of the ranks of that machine. Rows of other machines are
//            reached by exchange
//
// With COPIES, functions that tell of parts and owners tell of the copy of this
// rank's machine, in which ranks of other machines own nothing.
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
// Memory is committed and zero before a rank gets its address. For mapped
// memory of cpu and of the host, a shortage is TARN_FULL and never a signal;
// elsewhere it depends on the driver. Whole memory has no name in a file
// system: it is freed with the last process that holds it, however that ends.
//
// Collectives are the functions whose comments say so. All ranks call them, in
// the same order. They return TARN_E_PEER_LOST, TARN_E_TIMEOUT, TARN_E_CORRUPT,
// and TARN_E_INVALID for arguments that differ between ranks (comm.h). What
// fails at one rank fails at all. The other functions do not synchronise ranks:
// call tarn_comm_barrier after a write and before another rank reads it.
//
// Threads:  one thread at a time for collectives of a communicator; all other
//           functions from any thread.
// Fork:     in the child, whole memory of the parent returns TARN_E_STATE.
//           Destroying it there frees host memory and closes inherited
//           descriptors. Memory of other ranks that was opened by handles stays
//           allocated until the child destroys it or ends.
// Errors:   besides those of each function: TARN_E_INVALID for a required
//           argument that is NULL, TARN_E_STATE as above, TARN_E_NOMEM.
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
  TARN_WHOLE_HIERARCHICAL = 4,
} tarn_whole_type;

// "continuous", "chunked", "distributed", "hierarchical"; NULL for an unknown
// type.
TARN_API const char *tarn_whole_type_name(tarn_whole_type type);

// What each machine has of HIERARCHICAL whole memory.
typedef enum tarn_whole_spread {
  TARN_WHOLE_PARTS = 0,   // the parts of its ranks
  TARN_WHOLE_COPIES = 1,  // all of it
} tarn_whole_spread;

// ---------------------------------------------------------------------------
// Partitions
// ---------------------------------------------------------------------------

// Divides |blocks| among |ranks| ranks as WholeMemory does: with c = blocks /
// ranks rounded up, rank i has blocks i * c to (i + 1) * c - 1, so that the
// last ranks have fewer or none. 15 blocks on 4 ranks: 4, 4, 4, 3; 9 on 8: 2,
// 2, 2, 2, 1, 0, 0, 0. Needs no communicator.
//
// TARN_E_INVALID  |ranks| is 0.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_partition(size_t blocks,
                                                          size_t ranks,
                                                          size_t *out_counts);

// ---------------------------------------------------------------------------
// Create and destroy
// ---------------------------------------------------------------------------

typedef struct tarn_whole_options {
  size_t struct_size;
  tarn_whole_type type;
  tarn_place place;    // DEVICE: memory of that device; HOST: host memory
                       // registered with that device; TARN_HOST: host memory
                       // only. Kind and type of device are the same at all
                       // ranks; the number of the device may differ.
  size_t size;         // bytes; may be 0
  size_t granularity;  // bytes of a block; |size| is a multiple of it. 0: 1
                       // byte, so that a boundary may fall within a row: for
                       // tensors use tarn_whole_table_create, or set it to
                       // the bytes of a row
  const size_t *partition;  // blocks of each rank, which add up to all blocks;
                            // NULL: as tarn_whole_partition. A rank may have 0
  const char *name;  // for texts, up to 47 bytes, and the tag under which the
                     // pool of the place accounts for this rank's memory. NULL
                     // or "": no name, and the tag "whole"
  tarn_whole_spread spread;  // HIERARCHICAL; with TARN_WHOLE_COPIES
                             // |partition| is NULL. 0: TARN_WHOLE_PARTS; the
                             // only value for other types
} tarn_whole_options;

// Creates whole memory, filled with zeros. Collective.
//
// The memory comes from the device. Each rank's pool of the place is charged
// for what that rank allocates, within its limit. Device memory is cut in
// pieces at the granularity of the device's ranges, or at 2 MiB if parts are
// large. A rank may therefore own rows in a piece that a neighbour has
// allocated.
//
// Lifetime: until tarn_whole_destroy. Until then neither the communicator can
//           be destroyed nor the device be closed (TARN_E_STATE).
// Cost:     committing this rank's part, on huge pages where the kernel has
//           them for shared memory (6.1 or newer).
// TARN_E_INVALID      the type, place or spread is unknown, or another type has
//                     one; |size| is not a multiple of |granularity|, the
//                     partition has another sum, or there should be none; or a
//                     size overflows. The text has the value.
// TARN_E_UNSUPPORTED  the device lacks an extension that the type needs; the
//                     text names it. Mapped types on DEVICE need
//                     TARN_EXTENSION_RANGES and _SHARING (CHUNKED also works
//                     with _HANDLES), on HOST _REGISTER; HIERARCHICAL needs
//                     what CHUNKED needs. Or a mapped type is asked for over
//                     several machines, or ranks cannot pass descriptors
//                     (tarn_comm_share).
// TARN_FULL           a rank has no memory for its part; the text names it.
// TARN_E_IO           a rank has no file descriptors left.
// TARN_E_DEVICE       a driver failed.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_create(
    tarn_comm *comm, const tarn_whole_options *options, tarn_whole **out_whole);

// Destroys whole memory. Collective: memory that a rank has allocated is freed
// when no rank uses it any more. Work queued on streams must be done with it.
//
// On a broken communicator the call waits for no rank and frees what this rank
// has. One exception: if ranks have opened allocations by handles, it waits
// until the others have closed this rank's or have ended, at most for the
// timeout. If they have not, the allocation stays, and the device cannot be
// closed.
//
// TARN_E_PEER_LOST, TARN_E_TIMEOUT, TARN_E_CORRUPT
//                 the memory is destroyed at this rank all the same.
// TARN_E_DEVICE   likewise; a driver refused to free a part of it.
// TARN_E_STATE    it has an embedding (embedding.h) that not all ranks have
//                 given up. Nothing else has changed.
// TARN_E_INVALID  ranks pass different whole memories or are in another call.
//                 Nothing has changed. The same holds for every error that does
//                 not break the communicator.
TARN_API tarn_status tarn_whole_destroy(tarn_whole *whole);

// Gives |whole|, a tarn_whole or NULL, up at this rank, which must not use it
// any more. Not a collective, and never waits: for finalizers, and as the end
// of a tarn_counted (counted.h). When each rank has given it up, it is
// destroyed by the next tarn_whole_create, tarn_whole_destroy or
// tarn_whole_collect of its communicator. It stays while an embedding of it
// exists or a gather of it is under way; one of a table on disks ends with that
// (tarn_embedding_give_up, tarn_disk_give_up).
//
// Threads: any, also while another is in a collective.
// Cost:    none.
TARN_API void tarn_whole_give_up(void *whole);

// Destroys what all ranks of |comm| have given up. Collective. On a broken
// communicator, what this rank has given up, as tarn_whole_destroy would. A
// device that refuses to free memory is told to the log.
TARN_API tarn_status tarn_whole_collect(tarn_comm *comm);

typedef struct tarn_whole_info {
  size_t struct_size;
  tarn_whole_type type;
  tarn_place place;
  size_t size;
  size_t granularity;
  size_t rank;
  size_t ranks;
  size_t piece_granularity;  // bytes at which pieces were cut; 0: one file,
                             // one allocation for each rank, or not mapped
  size_t page_size;   // the smallest page of this rank's part; 0: the part is
                      // empty, or the page size is unknown
  int numa_node;      // of the part's first page; -1: likewise
  size_t huge_bytes;  // of this rank's part that are on huge pages
  size_t charged;     // bytes charged to the pool of the place at this rank
  tarn_whole_spread spread;
} tarn_whole_info;

// Fills |*out_info|.
//
// Cost: reads the kernel's page tables of the part.
TARN_API TARN_MUST_CHECK tarn_status
tarn_whole_query(tarn_whole *whole, tarn_whole_info *out_info);

TARN_API tarn_comm *tarn_whole_comm(const tarn_whole *whole);

// ---------------------------------------------------------------------------
// Addresses, at the place of this rank
// ---------------------------------------------------------------------------

// A part: |size| bytes at |offset| in the whole memory. |address| is 0 if
// |size| is.
typedef struct tarn_whole_part {
  tarn_addr address;
  size_t size;
  size_t offset;
} tarn_whole_part;

// The part that this rank owns.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_local(tarn_whole *whole,
                                                      tarn_whole_part *out);

// The part that rank |rank| owns, at its address in this process.
//
// TARN_E_INVALID      no such rank.
// TARN_E_UNSUPPORTED  DISTRIBUTED, and |rank| is another rank; or HIERARCHICAL,
//                     and it is on another machine. |out->size| and
//                     |out->offset| are set all the same.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_of_rank(tarn_whole *whole,
                                                        size_t rank,
                                                        tarn_whole_part *out);

// The address of the first byte.
//
// TARN_E_UNSUPPORTED  CHUNKED or HIERARCHICAL on a device; DISTRIBUTED; or
//                     HIERARCHICAL in PARTS over several machines.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_global(tarn_whole *whole,
                                                       tarn_addr *out_address);

// The whole memory as chunks, for kernels and tarn_rows: one chunk for each
// rank, or a single one. HIERARCHICAL in COPIES: the copy of this machine, one
// chunk for each of its ranks.
//
// Lifetime: the arrays belong to |whole|.
// TARN_E_UNSUPPORTED  DISTRIBUTED; HIERARCHICAL in PARTS over several machines.
TARN_API TARN_MUST_CHECK tarn_status
tarn_whole_reference(tarn_whole *whole, tarn_reference *out_reference);

// The rank that owns byte |offset|.
//
// TARN_E_INVALID  |offset| is not below the size.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_owner(tarn_whole *whole,
                                                      size_t offset,
                                                      size_t *out_rank);

// ---------------------------------------------------------------------------
// Tensors
// ---------------------------------------------------------------------------

// A view of whole memory as rows of elements; a value, with nothing to free. In
// a vector, each element is a row of width 1.
typedef struct tarn_whole_tensor {
  tarn_whole *whole;
  tarn_dtype dtype;
  size_t dims;  // 1 or 2
  size_t rows;
  size_t width;   // elements of a row; 1 if |dims| is 1
  size_t stride;  // elements from one row to the next
  size_t offset;  // elements before the first
} tarn_whole_tensor;

// Views |whole|, from its first byte on, as |rows| rows of |width| elements;
// |width| 0: as a vector.
//
// TARN_E_INVALID  the tensor does not fit; or a row (of a vector: an element)
//                 and a block are no multiples of each other; or a row has two
//                 owners, which cannot be where the granularity is the bytes of
//                 a row.
TARN_API TARN_MUST_CHECK tarn_status
tarn_whole_tensor_make(tarn_whole *whole, tarn_dtype dtype, size_t rows,
                       size_t width, tarn_whole_tensor *out_tensor);

typedef struct tarn_whole_table_options {
  size_t struct_size;
  tarn_whole_type type;
  tarn_place place;  // as in tarn_whole_options
  tarn_dtype dtype;
  size_t rows;               // may be 0
  size_t width;              // elements of a row; 0: a vector
  const size_t *partition;   // rows of each rank, which add up to |rows|;
                             // NULL: as tarn_whole_partition. A rank may have 0
  const char *name;          // as in tarn_whole_options
  tarn_whole_spread spread;  // likewise
} tarn_whole_table_options;

// Creates a whole-memory table: whole memory and the tensor that fills it.
// Collective. The granularity is the bytes of a row, or of an element of a
// vector. So no row has two owners, with any number of ranks.
//
// Lifetime: until tarn_whole_destroy(out_tensor->whole).
// TARN_E_INVALID  the dtype is unknown, the size of the table overflows, or
//                 dtype, rows or width differ between ranks. The text has the
//                 values.
// All other errors as for tarn_whole_create.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_table_create(
    tarn_comm *comm, const tarn_whole_table_options *options,
    tarn_whole_tensor *out_tensor);

// Rows [row_begin, row_end) and columns [column_begin, column_end) of |tensor|.
// TARN_WHOLE_END as an end is the end of the tensor.
//
// TARN_E_INVALID  a range exceeds the tensor, which the text names, or the
//                 range of columns is empty.
#define TARN_WHOLE_END SIZE_MAX
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_tensor_sub(
    const tarn_whole_tensor *tensor, size_t row_begin, size_t row_end,
    size_t column_begin, size_t column_end, tarn_whole_tensor *out_tensor);

// The rows of |tensor| that rank |rank| owns: |*out_count| rows, beginning with
// |*out_first|.
//
// TARN_E_INVALID  no such rank.
TARN_API TARN_MUST_CHECK tarn_status
tarn_whole_tensor_rows(const tarn_whole_tensor *tensor, size_t rank,
                       size_t *out_first, size_t *out_count);

// The address of this rank's first row of |tensor|; 0 if it owns none.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_tensor_local(
    const tarn_whole_tensor *tensor, tarn_addr *out_address);

// ---------------------------------------------------------------------------
// Rows by index
// ---------------------------------------------------------------------------

// Rows of a table, by index, and a block of dense rows. Conversions and checks
// are those of tarn_rows (base.h).
typedef struct tarn_whole_rows {
  size_t struct_size;
  tarn_place place;        // of dense rows and indices
  tarn_addr dense;         // |index_count| rows
  tarn_dtype dense_dtype;  // TARN_DTYPE_NONE: that of the table
  size_t dense_stride;     // bytes from one row to the next; 0: no gap
  tarn_addr indices;       // |index_count| row numbers of the tensor
  tarn_dtype index_dtype;  // TARN_DTYPE_I32 or TARN_DTYPE_I64
  size_t index_count;      // may be 0, and differ from rank to rank
  uint32_t flags;          // TARN_ROWS_... bits; 0: none
  uint32_t threads;        // most host threads to use where the host moves the
                           // rows; 0: 1. An exchange uses one
} tarn_whole_rows;

// Gather: dense[i] = table[indices[i]]. Scatter: table[indices[i]] = dense[i].
// If several indices, of one rank or of several, name the same row, one of
// their values remains.
//
// Mapped types: each rank moves its rows itself, in the order of |stream|,
// which is a stream of the device of |place| or of the table. Without a stream,
// rows have moved when the call returns. **With a stream, dense rows and
// indices must stay until the work is done.** The table is never copied.
//
// HIERARCHICAL in COPIES: a gather moves rows of this machine's copy, as mapped
// types do. A scatter is collective, and an exchange with the owners in every
// copy.
//
// HIERARCHICAL in PARTS: as DISTRIBUTED, but that a gather loads rows of ranks
// of this machine where they are, and those of other machines cross once for
// all ranks of this machine. For that it shares memory of 24 bytes for each
// index of the largest call; if there is none, rows cross as often as ranks
// want them. On one machine: as mapped types.
//
// DISTRIBUTED: collective. Each rank asks the owners for rows, through staging
// memory that ranks of one machine share, and by messages between machines; the
// first exchange of the whole memory creates the staging, at most 6 MiB for
// each rank. Over several machines a rank may return before others have: what
// fails there later is the error of the next collective.
//
// |place| may be any place. If no device reaches both the table and the dense
// rows, the rows are copied through a block of the pool of the table's device,
// a part at a time. In that case, in an exchange, and where another device than
// |stream|'s moves the rows, the call first waits for |stream|, and rows have
// moved when it returns.
//
// TARN_E_INVALID      a dtype, stride, flag or place is invalid, |stream|
//                     belongs to a third device, or an index is out of range.
//                     The text has value and position. Mapped: with a stream,
//                     the stream may fail instead. Exchanged: at all ranks, the
//                     text also names the rank, and no row was moved.
// TARN_FULL           no memory for the block or the staging.
// TARN_E_IO           a rank has no file descriptors left for the staging.
// TARN_E_CORRUPT      another rank asks for a row that does not exist.
// TARN_E_DEVICE       a driver failed.
// TARN_E_PEER_LOST    over several machines also: another rank has failed in
//                     the middle of an exchange. The communicator is then
//                     broken.
// If an exchange fails with another error than TARN_E_INVALID, an unspecified
// part of the rows was moved.
TARN_API TARN_MUST_CHECK tarn_status
tarn_whole_gather(const tarn_whole_tensor *table, const tarn_whole_rows *rows,
                  tarn_stream *stream);
TARN_API TARN_MUST_CHECK tarn_status
tarn_whole_scatter(const tarn_whole_tensor *table, const tarn_whole_rows *rows,
                   tarn_stream *stream);

// A gather that goes on while the program does something else.
typedef struct tarn_whole_fetch tarn_whole_fetch;

// Begins a gather: as tarn_whole_gather without a stream, but the rows move
// until tarn_whole_gather_end. Collective where that is.
//
//   tarn_whole_fetch *fetch;
//   tarn_whole_gather_begin(&table, &next, &fetch);
//   compute(current);
//   tarn_whole_gather_end(fetch);    // the rows of |next| are there
//
// A thread moves the rows, and serves other ranks. It has a communicator of its
// own, so that the program may call other collectives meanwhile, also gathers
// of the same table. Over an engine that only one thread may call, such as an
// MPI below MPI_THREAD_MULTIPLE, rows move within tarn_whole_gather_end; the
// same if the system has no thread.
//
// Lifetime:     dense rows and indices are needed, and not to be touched, until
//               the end; |rows| itself is copied. One at a time for each whole
//               memory, which cannot be destroyed meanwhile (TARN_E_STATE).
// Cost:         the first one of a whole memory splits the communicator, and
//               creates staging memory of its own; see tarn_comm_split.
// TARN_E_STATE  another one is under way: at once, without the other ranks.
// All other errors as of tarn_whole_gather.
TARN_API TARN_MUST_CHECK tarn_status tarn_whole_gather_begin(
    const tarn_whole_tensor *table, const tarn_whole_rows *rows,
    tarn_whole_fetch **out_fetch);

// Waits until the rows are there, and frees |fetch|. NULL is allowed. To be
// called by all ranks that have begun it, in any order with other collectives
// where a thread moves the rows; otherwise in the same one.
//
// TARN_E_STATE  it was begun before a fork, by the parent: |fetch| is left
//               behind, as its thread may have been changing it.
// All other errors as of tarn_whole_gather; |fetch| is freed all the same.
TARN_API TARN_MUST_CHECK tarn_status
tarn_whole_gather_end(tarn_whole_fetch *fetch);

// table[indices[i]] += dense[i], for each i of each rank. Collective for every
// type. The owner of a row adds, in the order of ranks and of their indices. So
// several ranks may add to one row, and sums are the same each time, in each
// copy, and however ranks are placed on machines.
TARN_API TARN_MUST_CHECK tarn_status
tarn_whole_scatter_add(const tarn_whole_tensor *table,
                       const tarn_whole_rows *rows, tarn_stream *stream);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_WHOLE_H_
