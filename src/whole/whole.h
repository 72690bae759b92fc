// whole.h - the whole room's own view of a whole: what create has made, for
// the files that move rows in it.
//
//   whole.c      create and destroy: the steps that ranks take together
//   options.c    what may be asked for, and whether all ranks ask the same
//   segments.c   backing of mapped types on devices
//   handles.c    backing of chunked ones on devices without ranges
//   hostfile.c   backing of mapped types on the host
//   block.c      backing of distributed ones
//   tensor.c     rows of elements
//   query.c      addresses, owners, what was obtained
//   partition.c  which bytes a rank owns
//   state.c      checks, names of calls in texts, charges, the device
//   rows.h       rows by index, on mapped types and between ranks
//
// Nothing in a whole changes between create and destroy but what says so, so
// that any thread may read it without a lock.
#ifndef TARN_WHOLE_WHOLE_H_
#define TARN_WHOLE_WHOLE_H_

#include "base/os.h"
#include "base/rows.h"
#include "comm/comm.h"
#include "tarn/pool.h"
#include "tarn/range.h"
#include "tarn/whole.h"

enum {
  TARN__WHOLE_PIECE = 2 << 20,  // what pieces are cut at where they are large
  TARN__WHOLE_LARGE = 4,        // ... which is so many of that, at least
};

// Memory that a device has, or will have, mapped at this rank.
typedef struct tarn__whole_segment {
  tarn_addr address;   // in a range of this rank; 0: there is none
  size_t size;         // a multiple of the granularity of ranges, or 0
  tarn_memory memory;  // 0: none yet
  bool mapped;
} tarn__whole_segment;

// Addresses that were reserved. |size| 0: none.
typedef struct tarn__whole_addresses {
  tarn_addr address;
  size_t size;
} tarn__whole_addresses;

// How memory of one type and location is made. Each step is local; ranks agree
// after it, and if it failed at one, all of them take |leave| and |end|. Those
// undo what was done, however far that got, and may be called again.
//
//   make ─► (descriptors go round) ─► meet ─► settle ... leave ─► end
typedef struct tarn__whole_backing {
  // Makes what is this rank's, zeroed; |whole->fd| is what the others need of
  // it, if they need anything.
  tarn_status (*make)(tarn_whole *whole);
  // Takes in what the others have made, by |whole->fds|. NULL: nothing goes
  // round.
  tarn_status (*meet)(tarn_whole *whole);
  // All ranks have met: every byte has memory now. NULL: nothing to do.
  tarn_status (*settle)(tarn_whole *whole);
  // Lets go of what others have made.
  tarn_status (*leave)(tarn_whole *whole);
  // Gives back what this rank has made.
  tarn_status (*end)(tarn_whole *whole);
  // In a child of fork: frees host memory, and closes descriptors that hold
  // what others have made.
  void (*forget)(tarn_whole *whole);
} tarn__whole_backing;

extern const tarn__whole_backing tarn__backing_segments;
extern const tarn__whole_backing tarn__backing_handles;
extern const tarn__whole_backing tarn__backing_hostfile;
extern const tarn__whole_backing tarn__backing_block;

struct tarn_whole {
  uint32_t generation;  // of forks
  tarn_whole_type type;
  uint64_t serial;  // the same at all ranks; rank 0 has no other of it
  tarn_comm *comm;  // held
  size_t rank;
  size_t ranks;
  tarn_place place;
  tarn_device *host;  // cpu:0
  tarn_pool *pool;    // of the place
  tarn_tag tag;
  char name[48];       // for texts, cut; "": it has none
  size_t size;         // bytes
  size_t granularity;  // of a block, in bytes
  size_t piece;        // what memory is cut at
  const tarn__whole_backing *backing;

  // Bytes: rank r owns those from offsets[r] to offsets[r + 1].
  size_t *offsets;  // ranks + 1
  // Where the part of each begins, as this rank reaches it, at |place|; 0: it
  // is empty, or not reached (DISTRIBUTED, and it is another's).
  tarn_addr *parts;  // ranks
  // Where all of it begins at |place|; 0: it is empty, or stands nowhere as one
  // piece (CHUNKED on a device, DISTRIBUTED).
  tarn_addr base;
  // All of it for kernels and tarn_rows; |count| 0: DISTRIBUTED.
  tarn_reference reference;
  size_t ends[2];  // 0, size: the offsets of a reference of one chunk

  size_t charged;   // bytes of the pool that are this rank's
  bool on_device;   // location: else it is on the host
  bool has_ref;     // see tarn__whole_ref_device
  bool registered;  // hostfile.c: with the device of the place
  bool all_left;    // handles.c: all ranks have said that they let go of it
  int lease;        // handles.c: tells that nobody holds this rank's any more;
                    // -1: none
  int fd;           // for the others, until they have it; -1: none
  int *fds;         // ranks: of the others, meanwhile; -1: none

  // segments.c
  tarn__whole_segment *segments;  // what each rank has made
  tarn__whole_addresses *ranges;  // that they are mapped in
  size_t range_count;

  // handles.c
  tarn_device_handle *handles;  // of what each rank has made; NULL: none go
                                // round
  int *leases;  // ranks: by which this rank holds what others have made

  // hostfile.c
  unsigned char *mapping;  // NULL: none
  size_t mapping_size;

  // block.c
  tarn_block block;  // pool NULL: none

  // The files that exchange rows keep here what they need between calls, and
  // give it back by tarn__exchange_end. Changed in collectives only.
  struct tarn__whole_exchange *exchange;  // NULL: none yet
};

// ---------------------------------------------------------------------------
// whole.c
// ---------------------------------------------------------------------------

// Whether this thread may use |whole| now.
//
// TARN_E_INVALID  NULL.
// TARN_E_STATE    a parent's, or called from a stream's callback.
TARN_MUST_CHECK tarn_status tarn__whole_check(const tarn_whole *whole);

// What the program calls, together with all ranks.
typedef enum tarn__whole_call {
  TARN__WHOLE_GATHER = TARN__ROWS_GATHER,
  TARN__WHOLE_SCATTER = TARN__ROWS_SCATTER,
  TARN__WHOLE_SCATTER_ADD = TARN__ROWS_SCATTER_ADD,
  TARN__WHOLE_CREATE,
  TARN__WHOLE_TABLE_CREATE,
  TARN__WHOLE_DESTROY,
  TARN__WHOLE_CALLS
} tarn__whole_call;

// A call in words: "tarn_whole_gather of whole 3 'emb'".
typedef struct tarn__whole_subject {
  tarn__whole_call call;
  uint64_t serial;   // 0: it has none yet
  const char *name;  // "": none
} tarn__whole_subject;

tarn__whole_subject tarn__whole_subject_of(tarn__whole_call call,
                                           const tarn_whole *whole);
void tarn__whole_say(const void *subject, char *out, size_t out_size);

// The same |status|; where arguments or indices are wrong, the last error then
// begins with the call: "tarn_whole_gather of whole 3 'emb': ...".
tarn_status tarn__whole_say_call(const tarn__whole_subject *subject,
                                 tarn_status status);

// By which ranks know that they mean the same call. |subject| lives as long.
tarn__comm_caller tarn__whole_caller(const tarn__whole_subject *subject);

// Charges |bytes| that this rank is about to make to the pool of the place; all
// of it is discharged at once. Not for blocks of the pool.
//
// TARN_FULL  beyond the pool's limit.
TARN_MUST_CHECK tarn_status tarn__whole_charge(tarn_whole *whole, size_t bytes);
tarn_status tarn__whole_discharge(tarn_whole *whole);

// Bytes that rank |rank| owns.
static inline size_t tarn__whole_part_size(const tarn_whole *whole,
                                           size_t rank) {
  return whole->offsets[rank + 1] - whole->offsets[rank];
}

// What a rank asks for. A rank whose arguments are wrong asks all the same:
// otherwise the others would wait for it.
typedef struct tarn__whole_request {
  tarn_status refused;  // with the last error; TARN_OK: |options| can be read
  tarn__whole_call call;
  const tarn_whole_options *options;
  tarn_dtype dtype;  // of the tensor to come; TARN_DTYPE_NONE: none is known
  size_t width;      // elements of its rows, 0 if it is a vector
} tarn__whole_request;

// tarn_whole_create. |*out_whole| is set on success only.
TARN_MUST_CHECK tarn_status tarn__whole_create(tarn_comm *comm,
                                               const tarn__whole_request *wish,
                                               tarn_whole **out_whole);

// ---------------------------------------------------------------------------
// partition.c: numbers only
// ---------------------------------------------------------------------------

// The blocks of rank |rank| where |blocks| are cut as tarn_whole_partition
// tells.
size_t tarn__partition_count(size_t blocks, size_t ranks, size_t rank);

// |out_offsets|, ranks + 1 of them, from |counts| blocks of |granularity| bytes
// each, which make |size| bytes. |counts| may be out_offsets + 1.
//
// TARN_E_INVALID  they do not; the text names the sum.
TARN_MUST_CHECK tarn_status tarn__partition_offsets(const size_t *counts,
                                                    size_t ranks, size_t size,
                                                    size_t granularity,
                                                    size_t *out_offsets);

// The rank that owns byte |offset|, which is below the last offset.
//
// Cost: O(log ranks).
size_t tarn__partition_owner(const size_t *offsets, size_t ranks,
                             size_t offset);

// What pieces of |size| bytes over |ranks| ranks are cut at: |least|, or
// TARN__WHOLE_PIECE where they are large. Both are powers of two.
size_t tarn__partition_piece(size_t size, size_t ranks, size_t least);

// |offset| up to the next place where pieces are cut. The end of all can be
// rounded up, so that it never overflows.
static inline size_t tarn__partition_cut(size_t offset, size_t piece) {
  return (offset + piece - 1) & ~(piece - 1);
}

// ---------------------------------------------------------------------------
// options.c
// ---------------------------------------------------------------------------

// What a rank asks for: options of this version's size with their granularity
// set, and what follows from them.
typedef struct tarn__whole_order {
  tarn_whole_options options;
  bool on_device;
  bool mapped;       // CONTINUOUS or CHUNKED
  bool by_handles;   // CHUNKED on a device without ranges
  size_t piece;      // what memory is cut at; 1: parts are cut alone
  tarn_dtype dtype;  // as in the wish
  size_t width;
  char kind[96];  // "continuous on sim", "distributed on the host": texts
} tarn__whole_order;

// Whether |wish| can be made here, with |ranks| ranks. The partition is not
// looked at.
//
// TARN_E_INVALID, TARN_E_UNSUPPORTED, TARN_E_DEVICE  as tarn_whole_create.
TARN_MUST_CHECK tarn_status tarn__order_read(const tarn__whole_request *wish,
                                             size_t ranks,
                                             tarn__whole_order *out);

// Whether all ranks ask for the same, but for the partition. Collective.
TARN_MUST_CHECK tarn_status tarn__order_compare(tarn_comm *comm,
                                                const tarn__whole_order *order);

// ---------------------------------------------------------------------------
// state.c: the device
// ---------------------------------------------------------------------------

// Between the two |device| cannot be closed. NULL is allowed: none.
TARN_MUST_CHECK tarn_status tarn__whole_ref_device(tarn_device *device);
void tarn__whole_unref_device(tarn_device *device);

// ---------------------------------------------------------------------------
// address.c
// ---------------------------------------------------------------------------

// TARN_E_INVALID  there is no such rank.
TARN_MUST_CHECK tarn_status tarn__whole_check_rank(const tarn_whole *whole,
                                                   size_t rank);

// ---------------------------------------------------------------------------
// tensor.c
// ---------------------------------------------------------------------------

// What is to be known of a tensor before a row of it is touched, in bytes.
typedef struct tarn__whole_tensor {
  tarn_whole *whole;
  tarn_dtype dtype;
  size_t rows;
  size_t width;      // elements of a row
  size_t row_bytes;  // width * element
  size_t stride;     // bytes from one row to the next
  size_t offset;     // bytes before row 0
} tarn__whole_tensor;

// Whether |tensor|, a value that anybody may have filled, is one: its rows are
// within the whole, and none has two owners.
//
// Cost:           O(ranks).
// TARN_E_INVALID  the text says what is wrong. TARN_E_STATE as of the whole.
TARN_MUST_CHECK tarn_status tarn__tensor_check(const tarn_whole_tensor *tensor,
                                               tarn__whole_tensor *out);

// The rows of it that rank |rank|, which there is, owns: |*out_count| from
// |*out_first| on.
void tarn__tensor_rows(const tarn__whole_tensor *tensor, size_t rank,
                       size_t *out_first, size_t *out_count);

// ---------------------------------------------------------------------------
// exchange.c
// ---------------------------------------------------------------------------

// Gives back what was kept in |whole->exchange|, if anything; called once, by
// tarn_whole_destroy, when all ranks have come to it or the communicator is
// broken, and with |after_fork| in a child, where only host memory is freed.
void tarn__exchange_end(tarn_whole *whole, bool after_fork);

#endif  // TARN_WHOLE_WHOLE_H_
