// base.h - the ground floor of Tarn: what every other room is written in.
//
//   statuses and the thread's last error     tarn_status, tarn_last_error
//   where the library's own memory comes from   tarn_host_allocator_set
//   sizes that cannot overflow unnoticed     tarn_size_add, _mul, _align_up
//   element types and shapes                 tarn_dtype, tarn_shape
//   memory in chunks, rows of a table in it  tarn_reference, tarn_rows
//   an intrusive doubly linked list          tarn_list
//   messages to whoever wants them           tarn_log_set
//
// Conventions that hold in every Tarn header:
//
//   * A function that can fail returns tarn_status. Its outputs come last and
//     are named out_...; unless it returns TARN_OK they are zero, and whatever
//     it was given is unchanged.
//   * |size| is bytes, |count| elements, |offset| bytes.
//   * create / destroy make and free heap objects, init / deinit work in the
//     caller's storage. Every destroy accepts NULL.
//   * Structs that may grow start with struct_size: set it to sizeof the
//     struct. 0 means the struct as it was in its first version; all other
//     fields of an options struct zero is always a valid choice.
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

// "0.1.0" of the library that is linked, which may be newer than this header.
TARN_API const char *tarn_version(void);

// ---------------------------------------------------------------------------
// Statuses
// ---------------------------------------------------------------------------

// What became of a call. Zero is success, positive an ordinary outcome that
// callers plan for, negative an error named by what the caller can do.
// Test with `!= TARN_OK`.
typedef enum tarn_status {
  TARN_OK = 0,
  TARN_FULL = 1,            // no room: free, trim, wait, or ask for less
  TARN_PENDING = 2,         // not finished yet: ask again, or synchronize
  TARN_E_INVALID = -1,      // an argument is wrong: mend the call
  TARN_E_STATE = -2,        // right call, wrong moment: order, fork, in use
  TARN_E_UNSUPPORTED = -3,  // this device or build cannot: take another way
  TARN_E_DEVICE = -4,       // the driver failed: see the text, try elsewhere
  TARN_E_PEER_LOST = -5,    // another rank died: destroy what is local
  TARN_E_TIMEOUT = -6,      // a deadline passed: retry, or give up the peer
  TARN_E_CORRUPT = -7,      // a file or message is damaged: get a good one
  TARN_E_NOMEM = -8,        // the host allocator refused
  TARN_E_IO = -9,           // the system refused a file: see the text
} tarn_status;

// The constant's name, "TARN_E_INVALID"; "TARN_?" for a number that is none.
TARN_API const char *tarn_status_name(tarn_status status);

// One line about the call on this thread that has just returned an error or
// TARN_FULL, from the function that decided on it. Ask for it before the next
// call, which may change it even if it succeeds. "" if there was none yet.
//
// Lifetime: until the next call on the same thread; at most 511 bytes.
// Threads:  each thread has its own.
TARN_API const char *tarn_last_error(void);

// ---------------------------------------------------------------------------
// Host memory of the library itself
// ---------------------------------------------------------------------------

// Where every byte that the library needs for its own bookkeeping comes from.
// (Memory that it hands out comes from devices, the host being one.)
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

// Makes the whole library take its own memory from |allocator| (NULL: the C
// library, as at the start). The struct is copied.
//
// Threads: call it while no other thread is inside the library.
// TARN_E_STATE    the library holds memory of the present allocator, so the
//                 two would be mixed up: set it before the first other call,
//                 or after tarn_host_memory() has come down to 0.
// TARN_E_INVALID  a function is missing, or struct_size is unknown.
TARN_API TARN_MUST_CHECK tarn_status
tarn_host_allocator_set(const tarn_host_allocator *allocator);

// Bytes of bookkeeping that the library holds now. Exact at rest.
TARN_API size_t tarn_host_memory(void);

// ---------------------------------------------------------------------------
// Checked sizes
// ---------------------------------------------------------------------------
// Each returns true and sets |*out|, or false with |*out| zero when the result
// does not fit. Nothing in Tarn adds or multiplies sizes by other means.

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

// An address on a device. It means something only together with its place and
// in this process; 0 is never valid. tarn_device_host_view makes a pointer of
// it where the host can touch what is there; tarn_block.pointer (pool.h) is
// one.
typedef uint64_t tarn_addr;

// The address of the host's memory at |pointer|, as calls that take memory of
// any place want it; 0 for NULL. The memory stays its owner's.
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

// Bytes of one element; 0 for TARN_DTYPE_NONE and for what is no dtype.
TARN_API size_t tarn_dtype_size(tarn_dtype dtype);

// "f32", "bool"; "none" for what is no dtype.
TARN_API const char *tarn_dtype_name(tarn_dtype dtype);

// The dtype of a name as tarn_dtype_name gives it; TARN_DTYPE_NONE if none.
TARN_API tarn_dtype tarn_dtype_parse(const char *name);

// In a shape: the dimension whose length is the batch, known later.
#define TARN_DIM_BATCH (-1)

// The lengths of a tensor's dimensions, outermost first. Borrowed from the
// caller: the array must live as long as the shape is used.
typedef struct tarn_shape {
  const int64_t *dims;  // |rank| lengths, each >= 0 or TARN_DIM_BATCH
  size_t rank;          // 0: a scalar, one element
} tarn_shape;

// Elements of |shape| with |batch| in place of TARN_DIM_BATCH.
//
// TARN_E_INVALID  NULL where dims are needed, a negative length other than
//                 TARN_DIM_BATCH, a negative batch, or more than SIZE_MAX.
TARN_API TARN_MUST_CHECK tarn_status tarn_shape_count(tarn_shape shape,
                                                      int64_t batch,
                                                      size_t *out_count);

// Bytes of |shape| with elements of |dtype|, densely packed.
//
// TARN_E_INVALID  as tarn_shape_count, or |dtype| is none.
TARN_API TARN_MUST_CHECK tarn_status tarn_shape_size(tarn_shape shape,
                                                     tarn_dtype dtype,
                                                     int64_t batch,
                                                     size_t *out_size);

// ---------------------------------------------------------------------------
// Memory in chunks, and rows of a table in it
// ---------------------------------------------------------------------------

// One range of bytes to whoever uses it, which may lie in several chunks:
// chunk i holds the bytes from offsets[i] to offsets[i + 1] of the range and
// stands at chunks[i]. A chunk may be empty; then its address is not looked at.
//
// Lifetime: the arrays are host memory and borrowed for a call.
typedef struct tarn_reference {
  const tarn_addr *chunks;  // |count| addresses
  const size_t *offsets;    // |count| + 1 offsets that never fall; the first 0
  size_t count;
} tarn_reference;

// What to do with rows of a table and a dense block of rows:
//
//   gather       dense[i]            = table[indices[i]]
//   scatter      table[indices[i]]   = dense[i]
//   scatter-add  table[indices[i]]  += dense[i]
//
// Elements are converted where the two dtypes differ: floating point to any
// floating point (to nearest, ties to even), integer to any integer (modulo
// its range); TARN_DTYPE_BOOL only to itself, and without adding. Where an
// index comes more than once, a scatter-add adds every time and a scatter
// leaves one of the rows, which one is not defined. No row of the table may lie
// in two chunks. Dense rows and table rows must not overlap.
typedef struct tarn_rows {
  size_t struct_size;
  tarn_reference table;
  tarn_dtype table_dtype;
  size_t table_offset;  // bytes before row 0
  size_t table_stride;  // bytes from one row to the next; 0: no gap
  size_t table_count;   // rows; an index is good from 0 to below it
  size_t width;         // elements of a row
  tarn_addr dense;      // |index_count| rows
  tarn_dtype dense_dtype;
  size_t dense_stride;     // bytes from one row to the next; 0: no gap
  tarn_addr indices;       // |index_count| numbers, packed
  tarn_dtype index_dtype;  // TARN_DTYPE_I32 or TARN_DTYPE_I64
  size_t index_count;      // 0: nothing to do
  uint64_t flags;          // TARN_ROWS_... bits; 0: none
  uint32_t threads;        // of the host that may work on it at a time, where
                           // it is the host that does; 0: 1
} tarn_rows;

// An index out of range gathers zeros and scatters nothing, instead of being
// an error that names its position.
#define TARN_ROWS_SKIP_BAD (1u << 0)

// What is written is not read soon, as where a call does a small part of
// something large: it had better not stay in caches. A hint.
#define TARN_ROWS_PAST_CACHES (1u << 1)

// ---------------------------------------------------------------------------
// Intrusive list
// ---------------------------------------------------------------------------

// A node, embedded in what it links, and also the head of a list: a ring in
// which the head stands between last and first. Not locked: the owner of the
// head guards all of its nodes.
typedef struct tarn_list {
  struct tarn_list *prev;
  struct tarn_list *next;
} tarn_list;

// Makes |node| an empty list, or a node that stands in none.
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

// Takes |node| out of its list and leaves it initialised; twice does no harm.
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
  TARN_LOG_ERROR = 1,  // something was lost that no status can tell any more
  TARN_LOG_WARN = 2,   // works, but not as well as it could
  TARN_LOG_INFO = 3,   // what was chosen, once
} tarn_log_level;

// Receives one line, without a newline. Must not call the library.
typedef void tarn_log_fn(void *context, tarn_log_level level,
                         const char *message);

// Sends messages of |level| and graver to |log| (NULL: to nobody, as at the
// start). Statuses are not logged: this is only for what no call returns.
//
// Threads: callable at any time; |log| may be called from any thread, one
// call at a time.
TARN_API void tarn_log_set(tarn_log_fn *log, void *context,
                           tarn_log_level level);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_BASE_H_
