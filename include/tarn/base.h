// base.h - statuses, sizes, element types and lists: what all other headers
// use.
//
//   statuses and the thread's last error     tarn_status, tarn_last_error
//   the allocator of the library's own memory  tarn_host_allocator_set
//   checked arithmetic of sizes              tarn_size_add, _mul, _align_up
//   element types and shapes                 tarn_dtype, tarn_shape
//   memory in chunks, rows of a table in it  tarn_reference, tarn_rows
//   an intrusive doubly linked list          tarn_list
//   log messages                             tarn_log_set
//
// Conventions that hold in every Tarn header:
//
//   * A function that can fail returns tarn_status. Its outputs come last and
//     are named out_.... Unless it returns TARN_OK, they are zero and its
//     inputs are unchanged.
//   * |size| is bytes, |count| elements, |offset| bytes.
//   * create / destroy make and free heap objects, init / deinit work in the
//     caller's storage. Every destroy accepts NULL.
//   * Structs that may grow start with struct_size: set it to sizeof the
//     struct. 0 means the first version of the struct. An options struct whose
//     other fields are all zero is valid.
//   * The library never prints, aborts or exits.
//
// docs/contracts.md holds the rules on threads, locks, fork and stability.
#ifndef TARN_BASE_H_
#define TARN_BASE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TARN_VERSION_MAJOR 0
#define TARN_VERSION_MINOR 1
#define TARN_VERSION_PATCH 0

#define TARN_API __attribute__((visibility("default")))
#define TARN_MUST_CHECK __attribute__((warn_unused_result))

// The version of the linked library, "0.1.0"; it may be newer than this header.
TARN_API const char *tarn_version(void);

// ---------------------------------------------------------------------------
// Statuses
// ---------------------------------------------------------------------------

// The outcome of a call. Zero is success, a positive status an ordinary
// outcome, a negative one an error, named by what the caller can do about it.
// Test with `!= TARN_OK`.
typedef enum tarn_status {
  TARN_OK = 0,
  TARN_FULL = 1,            // no room: free, trim, wait, or ask for less
  TARN_PENDING = 2,         // not finished yet: ask again, or synchronize
  TARN_E_INVALID = -1,      // an argument is wrong: correct the call
  TARN_E_STATE = -2,        // not possible now: wrong order, forked, in use
  TARN_E_UNSUPPORTED = -3,  // this device or build cannot do it
  TARN_E_DEVICE = -4,       // the driver failed: see the text, try elsewhere
  TARN_E_PEER_LOST = -5,    // another rank died: destroy what is local
  TARN_E_TIMEOUT = -6,      // a deadline passed: retry, or give up the peer
  TARN_E_CORRUPT = -7,      // a file or message is damaged: get a good one
  TARN_E_NOMEM = -8,        // the host allocator refused
  TARN_E_IO = -9,           // the system refused a file: see the text
} tarn_status;

// The constant's name, "TARN_E_INVALID"; "TARN_?" for an unknown number.
TARN_API const char *tarn_status_name(tarn_status status);

// One line about the call on this thread that has just returned an error or
// TARN_FULL. Read it before the next call, which may change it even if it
// succeeds. "" before the first error.
//
// Lifetime: until the next call on the same thread; at most 511 bytes.
// Threads:  each thread has its own.
TARN_API const char *tarn_last_error(void);

// Makes |text|, cut where it is longer, the last error of this thread, and
// returns |status|. For code outside the library whose functions fail as the
// library's do, such as engines of communicators.
TARN_API tarn_status tarn_fail(tarn_status status, const char *text);

// ---------------------------------------------------------------------------
// Host memory of the library itself
// ---------------------------------------------------------------------------

// The allocator of the library's own bookkeeping. (Memory for the caller comes
// from devices; the host is one of them.)
typedef struct tarn_host_allocator {
  size_t struct_size;
  void *context;  // passed to both functions; may be NULL
  // Returns |size| bytes at a multiple of |align| (a power of two, at least
  // sizeof(void *)), or NULL. Called from any thread, with locks of the
  // library held: it must not call the library.
  void *(*allocate)(void *context, size_t size, size_t align);
  // Takes back what allocate gave, with the same size and alignment.
  void (*deallocate)(void *context, void *ptr, size_t size, size_t align);
} tarn_host_allocator;

// Sets the allocator of the library's own memory. NULL is the C library, the
// default. The struct is copied.
//
// Threads: call it while no other thread is inside the library.
// TARN_E_STATE    the library holds memory of the present allocator: call this
//                 before any other function, or when tarn_host_memory() is 0.
// TARN_E_INVALID  a function is missing, or struct_size is unknown.
TARN_API TARN_MUST_CHECK tarn_status
tarn_host_allocator_set(const tarn_host_allocator *allocator);

// Bytes of bookkeeping that the library holds now. Exact at rest.
TARN_API size_t tarn_host_memory(void);

// ---------------------------------------------------------------------------
// Checked sizes
// ---------------------------------------------------------------------------
// Each returns true and sets |*out|, or false with |*out| zero when the result
// does not fit. Tarn adds and multiplies sizes only through these.

static inline bool tarn_size_add(size_t a, size_t b, size_t *out) {
  if (!__builtin_add_overflow(a, b, out)) return true;
  *out = 0;
  return false;
}

static inline bool tarn_size_mul(size_t a, size_t b, size_t *out) {
  if (!__builtin_mul_overflow(a, b, out)) return true;
  *out = 0;
  return false;
}

static inline bool tarn_is_power_of_two(size_t value) {
  return value != 0 && (value & (value - 1)) == 0;
}

// Rounds |size| up to a multiple of |align|, a power of two (else false).
static inline bool tarn_size_align_up(size_t size, size_t align, size_t *out) {
  size_t sum = 0;
  *out = 0;
  if (!tarn_is_power_of_two(align)) return false;
  if (!tarn_size_add(size, align - 1, &sum)) return false;
  *out = sum & ~(align - 1);
  return true;
}

// ---------------------------------------------------------------------------
// Addresses
// ---------------------------------------------------------------------------

// An address on a device, meaningful only with its place and in this process.
// 0 is never valid. Where the host can access the memory,
// tarn_device_host_view and tarn_block.pointer (pool.h) give a pointer.
typedef uint64_t tarn_addr;

// The address of host memory, for calls that take memory of any place; 0 for
// NULL. The memory stays the caller's.
//
//   float batch[64];
//   tarn_rows rows = {.dense = tarn_addr_of(batch), ...};
//
// Threads: any.
// Cost:    none.
// Errors:  none.
static inline tarn_addr tarn_addr_of(const void *pointer) {
#ifdef __cplusplus
  return reinterpret_cast<tarn_addr>(pointer);
#else
  return (tarn_addr)(uintptr_t)pointer;
#endif
}

// ---------------------------------------------------------------------------
// Element types and shapes
// ---------------------------------------------------------------------------

typedef enum tarn_dtype {
  TARN_DTYPE_NONE = 0,  // not a type; every function refuses it
  TARN_DTYPE_F64 = 1,
  TARN_DTYPE_F32 = 2,
  TARN_DTYPE_F16 = 3,
  TARN_DTYPE_BF16 = 4,
  TARN_DTYPE_I64 = 5,
  TARN_DTYPE_I32 = 6,
  TARN_DTYPE_I16 = 7,
  TARN_DTYPE_I8 = 8,
  TARN_DTYPE_U64 = 9,
  TARN_DTYPE_U32 = 10,
  TARN_DTYPE_U16 = 11,
  TARN_DTYPE_U8 = 12,
  TARN_DTYPE_BOOL = 13,  // one byte, 0 or 1
} tarn_dtype;

// Bytes of one element; 0 for TARN_DTYPE_NONE and unknown numbers.
TARN_API size_t tarn_dtype_size(tarn_dtype dtype);

// "f32", "bool"; "none" for TARN_DTYPE_NONE and unknown numbers.
TARN_API const char *tarn_dtype_name(tarn_dtype dtype);

// The dtype that tarn_dtype_name calls |name|; TARN_DTYPE_NONE if there is
// none.
TARN_API tarn_dtype tarn_dtype_parse(const char *name);

// In a shape: the dimension whose length is the batch, known later.
#define TARN_DIM_BATCH (-1)

// The lengths of a tensor's dimensions, outermost first. The array is the
// caller's and must live as long as the shape is used.
typedef struct tarn_shape {
  const int64_t *dims;  // |rank| lengths, each >= 0 or TARN_DIM_BATCH
  size_t rank;          // 0: a scalar, one element
} tarn_shape;

// Elements of |shape| with |batch| in place of TARN_DIM_BATCH.
//
// TARN_E_INVALID  dims is NULL and rank is not 0, a length other than
//                 TARN_DIM_BATCH or the batch is negative, or the product
//                 exceeds SIZE_MAX.
TARN_API TARN_MUST_CHECK tarn_status tarn_shape_count(tarn_shape shape,
                                                      int64_t batch,
                                                      size_t *out_count);

// Bytes of |shape| with elements of |dtype|, densely packed.
//
// TARN_E_INVALID  as tarn_shape_count, or |dtype| is not a dtype.
TARN_API TARN_MUST_CHECK tarn_status tarn_shape_size(tarn_shape shape,
                                                     tarn_dtype dtype,
                                                     int64_t batch,
                                                     size_t *out_size);

// ---------------------------------------------------------------------------
// Memory in chunks, and rows of a table in it
// ---------------------------------------------------------------------------

// A logical range of bytes that may lie in several chunks: chunk i holds bytes
// offsets[i] to offsets[i + 1] of the range, at address chunks[i]. The address
// of an empty chunk is ignored.
//
// Lifetime: the arrays are host memory and borrowed for a call.
typedef struct tarn_reference {
  const tarn_addr *chunks;  // |count| addresses
  const size_t *offsets;    // |count| + 1 offsets, ascending; the first is 0
  size_t count;
} tarn_reference;

// A transfer between rows of a table and a dense block of rows:
//
//   gather       dense[i]            = table[indices[i]]
//   scatter      table[indices[i]]   = dense[i]
//   scatter-add  table[indices[i]]  += dense[i]
//
// Elements are converted where the two dtypes differ: floating point to any
// floating point (to nearest, ties to even), integer to any integer (modulo
// its range); TARN_DTYPE_BOOL only to itself, and not in a scatter-add. For an
// index that occurs several times, a scatter-add adds each row, and a scatter
// leaves an unspecified one of them. No row of the table may lie in two chunks.
// Dense rows and table rows must not overlap.
typedef struct tarn_rows {
  size_t struct_size;
  tarn_reference table;
  tarn_dtype table_dtype;
  size_t table_offset;  // bytes before row 0
  size_t table_stride;  // bytes from one row to the next; 0: no gap
  size_t table_count;   // rows; valid indices are 0 to table_count - 1
  size_t width;         // elements of a row
  tarn_addr dense;      // |index_count| rows
  tarn_dtype dense_dtype;
  size_t dense_stride;     // bytes from one row to the next; 0: no gap
  tarn_addr indices;       // |index_count| numbers, packed
  tarn_dtype index_dtype;  // TARN_DTYPE_I32 or TARN_DTYPE_I64
  size_t index_count;      // 0: nothing to do
  uint64_t flags;          // TARN_ROWS_... bits; 0: none
  uint32_t threads;        // most host threads at a time, where the host does
                           // the work; 0: 1
} tarn_rows;

// An index out of range gathers zeros and scatters nothing. Without this flag
// it is an error that names its position.
#define TARN_ROWS_SKIP_BAD (1u << 0)

// A hint that the rows written are not read soon, so that they need not stay in
// caches: the call is a small part of a large transfer.
#define TARN_ROWS_PAST_CACHES (1u << 1)

// ---------------------------------------------------------------------------
// Intrusive list
// ---------------------------------------------------------------------------

// A node, embedded in the struct that it links, or the head of a list. A list
// is a ring; the head stands between the last and the first node. Not locked:
// the owner of the head guards all of its nodes.
typedef struct tarn_list {
  struct tarn_list *prev;
  struct tarn_list *next;
} tarn_list;

// Makes |node| an empty list, or a node outside of any list.
static inline void tarn_list_init(tarn_list *node) {
  node->prev = node;
  node->next = node;
}

static inline bool tarn_list_empty(const tarn_list *head) {
  return head->next == head;
}

// Puts |node| behind |where|: first of a list if |where| is its head.
static inline void tarn_list_add(tarn_list *where, tarn_list *node) {
  node->prev = where;
  node->next = where->next;
  where->next->prev = node;
  where->next = node;
}

// Puts |node| before |where|: last of a list if |where| is its head.
static inline void tarn_list_add_tail(tarn_list *where, tarn_list *node) {
  tarn_list_add(where->prev, node);
}

// Removes |node| from its list and initialises it. May be repeated.
static inline void tarn_list_del(tarn_list *node) {
  node->prev->next = node->next;
  node->next->prev = node->prev;
  tarn_list_init(node);
}

// The struct of |type| whose |member| is at |node|.
#define tarn_list_entry(node, type, member) \
  ((type *)(void *)((char *)(node)-offsetof(type, member)))

// for (node in list): the body must not delete |node| ...
#define tarn_list_for_each(node, head) \
  for ((node) = (head)->next; (node) != (head); (node) = (node)->next)

// ... unless |spare|, another tarn_list *, remembers what follows.
#define tarn_list_for_each_safe(node, spare, head)                      \
  for ((node) = (head)->next, (spare) = (node)->next; (node) != (head); \
       (node) = (spare), (spare) = (node)->next)

// ---------------------------------------------------------------------------
// Messages
// ---------------------------------------------------------------------------

typedef enum tarn_log_level {
  TARN_LOG_ERROR = 1,  // a loss that no status can report any more
  TARN_LOG_WARN = 2,   // works, but not as well as it could
  TARN_LOG_INFO = 3,   // a choice that the library made, once
} tarn_log_level;

// Receives one line, without a newline. Must not call the library.
typedef void tarn_log_fn(void *context, tarn_log_level level,
                         const char *message);

// Sends messages of |level| and more severe ones to |log|. NULL, the default,
// drops all messages. Errors that a call returns are not logged.
//
// Threads: callable at any time; |log| may be called from any thread, one
// call at a time.
TARN_API void tarn_log_set(tarn_log_fn *log, void *context,
                           tarn_log_level level);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_BASE_H_
