// whole.h - whole memory within its room: what create has made, for the files
// that move rows in it.
//
//   whole.c      create and destroy: the steps that ranks take together
//   options.c    what may be asked for, and whether all ranks ask the same
//   segments.c   backing of mapped types on devices
//   handles.c    backing of chunked ones on devices without ranges
//   hostfile.c   backing of mapped types on the host
//   block.c      backing of distributed ones
//   pager.c      backing of distributed ones whose blocks are elsewhere
//   hierarchy.c  hierarchical types: what is within a machine
//   tensor.c     rows of elements
//   query.c      addresses, owners, what was obtained
//   partition.c  which bytes a rank owns
//   given_up.c   memory that ranks end together when each has given it up
//   state.c      checks, names of calls in texts, charges, the device
//   rows.h       rows by index, on mapped types and between ranks
//
// Between create and destroy only the fields that say so change, so that any
// thread may read the others without a lock.
#ifndef TARN_WHOLE_WHOLE_H_
#define TARN_WHOLE_WHOLE_H_

#include <stdatomic.h>

#include "base/os.h"
#include "base/rows.h"
#include "comm/comm.h"
#include "tarn/pool.h"
#include "tarn/range.h"
#include "tarn/whole.h"

enum {
  TARN__WHOLE_PIECE = 2 << 20,  // bytes at which large pieces are cut
  TARN__WHOLE_LARGE = 4,        // a large piece has at least so many of these
};

// Memory that is mapped, or will be, on the device of this rank.
typedef struct tarn__whole_segment {
  tarn_addr address;   // in a range of this rank; 0: none
  size_t size;         // a multiple of the granularity of ranges, or 0
  tarn_memory memory;  // 0: none yet
  bool mapped;
} tarn__whole_segment;

// How memory of one type and location is created. Each step is local, and ranks
// agree after it. If a step failed at one rank, all ranks call |leave| and
// |end|, which undo what was done, and may be called again.
//
//   make ─► (descriptors are passed) ─► meet ─► settle ... leave ─► end
typedef struct tarn__whole_backing {
  // Allocates this rank's part, zeroed. |whole->fd| is the descriptor that the
  // others need, if they need one.
  tarn_status (*make)(tarn_whole *whole);
  // Maps or opens the parts of the others, by |whole->fds|. NULL: no
  // descriptors are passed.
  tarn_status (*meet)(tarn_whole *whole);
  // Called when every byte has memory at all ranks. NULL: nothing to do.
  tarn_status (*settle)(tarn_whole *whole);
  // Unmaps or closes the parts of the others. NULL: nothing to do.
  tarn_status (*leave)(tarn_whole *whole);
  // Frees this rank's part, which is discharged after that. NULL: nothing to
  // do.
  tarn_status (*end)(tarn_whole *whole);
  // In a child of fork: frees host memory, and closes descriptors that keep the
  // parts of others allocated. NULL: nothing to do.
  void (*forget)(tarn_whole *whole);
} tarn__whole_backing;

extern const tarn__whole_backing tarn__backing_segments;
extern const tarn__whole_backing tarn__backing_handles;
extern const tarn__whole_backing tarn__backing_hostfile;
extern const tarn__whole_backing tarn__backing_block;
extern const tarn__whole_backing tarn__backing_pager;

struct tarn_whole {
  uint32_t generation;  // of forks
  tarn_whole_type type;
  tarn_whole_spread spread;
  bool mapped;      // all of it: this rank moves rows alone
  uint64_t serial;  // the same at all ranks, unique at rank 0
  tarn_comm *comm;  // held
  tarn_list node;   // among what holds it
  size_t rank;
  size_t ranks;
  tarn_place place;
  tarn_device *host;  // cpu:0
  tarn_pool *pool;    // of the place
  tarn_tag tag;
  char name[48];       // for texts, cut; "": it has none
  size_t size;         // bytes
  size_t granularity;  // of a block, in bytes
  size_t piece;        // bytes at which memory is cut
  const tarn__whole_backing *backing;

  // Rank r owns bytes offsets[r] to offsets[r + 1] - 1.
  size_t *offsets;  // ranks + 1
  // The address of each rank's part at |place|. 0: the part is empty, or not
  // reached (DISTRIBUTED, and another rank's; HIERARCHICAL, and another
  // machine's).
  tarn_addr *parts;  // ranks
  // The address of the first byte at |place|. 0: the memory is empty, or not
  // contiguous (CHUNKED on a device), or not mapped.
  tarn_addr base;
  // All of it for kernels and tarn_rows; |count| 0: it is not mapped.
  tarn_reference reference;
  size_t ends[2];  // 0, size: the offsets of a reference of one chunk

  size_t charged;   // bytes that this rank has charged to the pool
  bool on_device;   // otherwise on the host
  bool has_ref;     // see tarn__whole_ref_device
  bool registered;  // hostfile.c: with the device of the place
  bool all_left;    // handles.c: all ranks have closed it
  int lease;        // handles.c: ends when no rank has this rank's part open;
                    // -1: none
  int fd;           // for the others, until they have it; -1: none
  int *fds;         // ranks: of the others, during the call; -1: none

  // HIERARCHICAL; its arrays and its memory belong to |inner|
  size_t *machines;          // ranks: the lowest rank of its machine; else NULL
  tarn_comm *near;           // the ranks of this machine
  struct tarn_whole *inner;  // chunked, over |near|; NULL: another type

  // segments.c
  tarn__whole_segment *segments;  // what each rank has made

  // handles.c
  tarn_device_handle *handles;  // of what each rank has made; NULL: none go
                                // round
  int *leases;  // ranks: by which this rank keeps parts of others allocated

  // hostfile.c
  unsigned char *mapping;  // NULL: none
  size_t mapping_size;

  // block.c
  tarn_block block;  // pool NULL: none

  // The state that the files for exchanging rows keep between calls, until
  // tarn__exchange_end. Changed in collectives only.
  struct tarn__whole_exchange *exchange;  // NULL: none yet

  // fetch.c: the same for gathers that go on beside the program, over a
  // communicator of their own.
  tarn_comm *beside;  // NULL: none yet
  struct tarn__whole_exchange *exchange_beside;
  tarn_whole_fetch *fetch;  // the one that is under way; NULL: none

  const struct tarn__whole_pager *pager;  // of this rank's part; NULL: it is
                                          // in memory

  tarn_list users;       // what keeps it from being destroyed
  uint64_t users_made;   // ever
  atomic_bool given_up;  // by this rank: set by any thread
};

// ---------------------------------------------------------------------------
// whole.c
// ---------------------------------------------------------------------------

// Whether this thread may use |whole| now.
//
// TARN_E_INVALID  NULL.
// TARN_E_STATE    the parent's, or called from a callback of a stream.
TARN_MUST_CHECK tarn_status tarn__whole_check(const tarn_whole *whole);

// Fails because the system refused |what|, of |size| bytes; errno tells why.
//
// TARN_FULL  there is no memory.
// TARN_E_IO  any other reason.
tarn_status tarn__whole_refuse(const char *what, size_t size);

// Closes |whole->fd| and |whole->fds|.
void tarn__whole_close_all(tarn_whole *whole);

// The collective that the program calls.
typedef enum tarn__whole_call {
  TARN__WHOLE_GATHER = TARN__ROWS_GATHER,
  TARN__WHOLE_SCATTER = TARN__ROWS_SCATTER,
  TARN__WHOLE_SCATTER_ADD = TARN__ROWS_SCATTER_ADD,
  TARN__WHOLE_GATHER_BEGIN,
  TARN__WHOLE_GATHER_END,
  TARN__WHOLE_CREATE,
  TARN__WHOLE_TABLE_CREATE,
  TARN__WHOLE_DESTROY,
  TARN__WHOLE_COLLECT,
  TARN__WHOLE_APPLY,
  TARN__WHOLE_DISK_OPEN,
  TARN__WHOLE_DISK_FLUSH,
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

// What ranks compare to see whether they are in the same call. |subject| must
// live as long.
tarn__comm_caller tarn__whole_caller(const tarn__whole_subject *subject);

// Charges |bytes| that this rank will allocate to the pool of the place; all of
// them are discharged at once. Blocks of the pool are charged by the pool.
//
// TARN_FULL  beyond the pool's limit.
TARN_MUST_CHECK tarn_status tarn__whole_charge(tarn_whole *whole, size_t bytes);

// Bytes that rank |rank| owns.
static inline size_t tarn__whole_part_size(const tarn_whole *whole,
                                           size_t rank) {
  return whole->offsets[rank + 1] - whole->offsets[rank];
}

// The request of a rank. A rank with wrong arguments takes part nevertheless:
// otherwise the others would wait for it.
typedef struct tarn__whole_request {
  tarn_status refused;  // with the last error; TARN_OK: |options| can be read
  tarn__whole_call call;
  const tarn_whole_options *options;
  tarn_dtype dtype;  // of the tensor to come; TARN_DTYPE_NONE: none is known
  size_t width;      // elements of its rows, 0 if it is a vector
  const struct tarn__whole_pager *pager;  // NULL: it gets memory. At all ranks
                                          // or none; DISTRIBUTED, on the host
} tarn__whole_request;

// tarn_whole_create. |*out_whole| is set on success only.
TARN_MUST_CHECK tarn_status tarn__whole_create(tarn_comm *comm,
                                               const tarn__whole_request *wish,
                                               tarn_whole **out_whole);

// tarn_whole_destroy, whoever uses |whole|. |*out_ended|: it is gone, whatever
// the status.
tarn_status tarn__whole_end(tarn_whole *whole, bool *out_ended);

// ---------------------------------------------------------------------------
// given_up.c
// ---------------------------------------------------------------------------

// An object of all ranks that a whole memory has to stay for: an embedding, a
// table on disks.
typedef struct tarn__whole_user {
  tarn_list node;   // among those of the whole memory
  uint64_t number;  // among those of the whole memory; the same at all ranks
  tarn_whole *own;  // whole memory that ends with the object; NULL: none
  // After all ranks have given it up, and |own| is gone: frees the object.
  void (*ended)(struct tarn__whole_user *user);
  atomic_bool given_up;  // by this rank: set by any thread
} tarn__whole_user;

// To be called by all ranks, in the same order. |own| and |ended| are set.
void tarn__whole_use(tarn_whole *whole, tarn__whole_user *user);

// Before the end of an object that was not given up.
void tarn__whole_leave(tarn__whole_user *user);

// Frees what this rank has, together with the others if |met| is TARN_OK.
typedef tarn_status tarn__whole_take(tarn_whole *whole, tarn_status met);

// tarn_whole_collect, within a collective: |take| ends what may end.
TARN_MUST_CHECK tarn_status tarn__whole_end_given_up(tarn_comm *comm,
                                                     tarn__whole_take *take);

// ---------------------------------------------------------------------------
// partition.c: numbers only
// ---------------------------------------------------------------------------

// The number of blocks of rank |rank| if |blocks| are divided as by
// tarn_whole_partition.
size_t tarn__partition_count(size_t blocks, size_t ranks, size_t rank);

// Sets |out_offsets|, ranks + 1 of them, from |counts| blocks of |granularity|
// bytes each, which must make |size| bytes. |counts| may be out_offsets + 1.
//
// TARN_E_INVALID  they do not; the text has the sum.
TARN_MUST_CHECK tarn_status tarn__partition_offsets(const size_t *counts,
                                                    size_t ranks, size_t size,
                                                    size_t granularity,
                                                    size_t *out_offsets);

// The rank that owns byte |offset|, which is below the last offset.
//
// Cost: O(log ranks).
size_t tarn__partition_owner(const size_t *offsets, size_t ranks,
                             size_t offset);

// The bytes at which pieces are cut where |size| bytes are divided among
// |ranks| ranks: |least|, or TARN__WHOLE_PIECE if pieces are large. Both are
// powers of two.
size_t tarn__partition_piece(size_t size, size_t ranks, size_t least);

// Rounds |offset| up to a multiple of |piece|. The end of the memory can be
// rounded up, so this never overflows.
static inline size_t tarn__partition_cut(size_t offset, size_t piece) {
  return (offset + piece - 1) & ~(piece - 1);
}

// ---------------------------------------------------------------------------
// hierarchy.c
// ---------------------------------------------------------------------------

// Finds the machine of each rank. Machines are called by their lowest rank.
void tarn__hierarchy_find(tarn_whole *whole);

// Whether |rank| is on this machine.
bool tarn__hierarchy_is_here(const tarn_whole *whole, size_t rank);

// The machine after |machine|; the first one after the last.
size_t tarn__hierarchy_next(const tarn_whole *whole, size_t machine);

size_t tarn__hierarchy_count(const tarn_whole *whole);

// The offsets of |whole|, in COPIES, as at ranks of |machine|; ranks + 1.
void tarn__hierarchy_offsets(const tarn_whole *whole, size_t machine,
                             size_t *out_offsets);

// Sets size and offsets of the inner memory from those of |whole|, which become
// those of this machine if it is in COPIES.
void tarn__hierarchy_divide(tarn_whole *whole);

// Sets the addresses of |whole| from those of the inner memory.
void tarn__hierarchy_refer(tarn_whole *whole);

// ---------------------------------------------------------------------------
// options.c
// ---------------------------------------------------------------------------

// A request that was read: options of this version's size with their
// granularity set, and what follows from them.
typedef struct tarn__whole_order {
  tarn_whole_options options;
  bool on_device;
  bool mapped;      // by some ranks at least: all types but DISTRIBUTED
  bool by_handles;  // CHUNKED, or what is chunked within a machine, on a device
                    // without ranges
  size_t piece;     // what memory is cut at; 1: parts are cut alone
  tarn_dtype dtype;  // as in the wish
  size_t width;
  const struct tarn__whole_pager *pager;
  char kind[96];  // "continuous on sim", "distributed on the host": texts
} tarn__whole_order;

// Reads |wish| for |ranks| ranks, all but its partition.
//
// TARN_E_INVALID, TARN_E_UNSUPPORTED, TARN_E_DEVICE  as tarn_whole_create.
TARN_MUST_CHECK tarn_status tarn__order_read(const tarn__whole_request *wish,
                                             size_t ranks,
                                             tarn__whole_order *out);

// Compares the orders of all ranks, without the partition. Collective.
TARN_MUST_CHECK tarn_status tarn__order_compare(tarn_comm *comm,
                                                const tarn__whole_order *order);

// ---------------------------------------------------------------------------
// state.c: the device
// ---------------------------------------------------------------------------

// Between the two calls |device| cannot be closed. NULL is allowed.
TARN_MUST_CHECK tarn_status tarn__whole_ref_device(tarn_device *device);
void tarn__whole_unref_device(tarn_device *device);

// ---------------------------------------------------------------------------
// query.c
// ---------------------------------------------------------------------------

// Fails: memory as |whole| has no |what|.
tarn_status tarn__whole_lacks(const tarn_whole *whole, const char *what);

// TARN_E_INVALID  there is no such rank.
TARN_MUST_CHECK tarn_status tarn__whole_check_rank(const tarn_whole *whole,
                                                   size_t rank);

// ---------------------------------------------------------------------------
// tensor.c
// ---------------------------------------------------------------------------

// A tensor in bytes, checked.
typedef struct tarn__whole_tensor {
  tarn_whole *whole;
  tarn_dtype dtype;
  size_t rows;
  size_t width;      // elements of a row
  size_t row_bytes;  // width * element
  size_t stride;     // bytes from one row to the next
  size_t offset;     // bytes before row 0
} tarn__whole_tensor;

// All |rows| rows of |width| elements, or a vector if |width| is 0; unchecked.
tarn_whole_tensor tarn__tensor_of(tarn_whole *whole, tarn_dtype dtype,
                                  size_t rows, size_t width);

// Checks |tensor|, whose fields the caller may have changed: its rows must be
// within the whole memory, and none may have two owners, or blocks of a pager.
//
// Cost:           O(ranks).
// TARN_E_INVALID  the text says what is wrong.
// TARN_E_STATE    as tarn__whole_check.
TARN_MUST_CHECK tarn_status tarn__tensor_check(const tarn_whole_tensor *tensor,
                                               tarn__whole_tensor *out);

// The first row that begins at byte |at| or after it; the number of rows if
// there is none.
size_t tarn__tensor_row_from(const tarn__whole_tensor *tensor, size_t at);

// The rows that rank |rank|, which must exist, owns: |*out_count| rows,
// beginning with |*out_first|.
void tarn__tensor_rows(const tarn__whole_tensor *tensor, size_t rank,
                       size_t *out_first, size_t *out_count);

// ---------------------------------------------------------------------------
// exchange.c
// ---------------------------------------------------------------------------

// Frees |exchange|, which may be NULL. Called by tarn_whole_destroy, when all
// ranks are in it or the communicator is broken; and with |after_fork| in a
// child, where only host memory is freed.
void tarn__exchange_end(struct tarn__whole_exchange *exchange, bool after_fork);

// ---------------------------------------------------------------------------
// fetch.c
// ---------------------------------------------------------------------------

// TARN_E_STATE  a gather that was begun has not ended.
TARN_MUST_CHECK tarn_status tarn__fetch_check(const tarn_whole *whole);

// Frees what gathers beside the program have used. As tarn__exchange_end.
void tarn__fetch_end(tarn_whole *whole, bool after_fork);

#endif  // TARN_WHOLE_WHOLE_H_
