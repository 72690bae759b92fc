// misuse.h - pools that debug: they detect writes outside of live blocks.
//
//   tarn_pool_debug_options options = {.struct_size = sizeof options};
//   tarn_pool_debug(pool, &options);  // guards, poison and quarantine
//   ... the program runs ...
//   if (tarn_pool_debug_check(pool) == TARN_E_CORRUPT) puts(tarn_last_error());
//
// All pools refuse wrong frees. A pool that debugs lays out its blocks as
//
//   [ fresh: the requested bytes | guard ]  nothing may write into the guard,
//   [ freed ........................... ]  nor into a freed block
//
// Each part is filled with a byte of its own, in the order of the block's
// stream, and verified later. In memory that the host can access, guards and
// blocks in quarantine are also poisoned for AddressSanitizer and valgrind,
// which then stop the faulty instruction itself.
#ifndef TARN_MISUSE_H_
#define TARN_MISUSE_H_

#include "tarn/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// The block has exactly the requested size. The bytes behind it, at least 64,
// are verified when it is freed or resized.
#define TARN_POOL_DEBUG_GUARDS (1u << 0)

// A block is filled when it is allocated and when it is freed, so that reads of
// such bytes show.
#define TARN_POOL_DEBUG_POISON (1u << 1)

// Freed blocks are filled and kept in a queue. They are verified when they
// leave it: when the queue is full, before a request fails for lack of room,
// and when the pool is trimmed, or its strategy or its debugging is changed.
#define TARN_POOL_DEBUG_QUARANTINE (1u << 2)

enum {
  TARN_POOL_FRESH_BYTE = 0xff,  // a float of such bytes is NaN
  TARN_POOL_FREED_BYTE = 0xdd,
  TARN_POOL_GUARD_BYTE = 0xbd,
};

typedef enum tarn_pool_finding_kind {
  TARN_POOL_FINDING_NONE = 0,
  TARN_POOL_OVERRUN = 1,      // something was written behind a block
  TARN_POOL_STALE_WRITE = 2,  // something was written into a freed block
} tarn_pool_finding_kind;

typedef struct tarn_pool_finding {
  size_t struct_size;
  tarn_pool_finding_kind kind;
  tarn_addr address;   // of the block
  size_t size;         // as requested
  tarn_tag tag;        // of the block
  size_t offset;       // of the first wrong byte from the address
  unsigned char byte;  // its value
} tarn_pool_finding;

// Receives each finding when it is made. Called with locks of the library held,
// on any thread that uses the pool: the only function of the library that it
// may call is tarn_pool_tag_name.
typedef void tarn_pool_debug_fn(void *context, tarn_pool *pool,
                                const tarn_pool_finding *finding);

typedef struct tarn_pool_debug_options {
  size_t struct_size;
  uint32_t flags;             // TARN_POOL_DEBUG_... bits; 0: all
  size_t quarantine_bytes;    // most bytes in quarantine; 0: 64 MiB
  tarn_pool_debug_fn *found;  // NULL: none
  void *context;              // of |found|
} tarn_pool_debug_options;

// Switches the debugging of |pool| on, as |options| say; NULL: off. Live blocks
// keep what they were allocated with. A pool created while the environment
// variable TARN_POOL_DEBUG is set starts with debugging: "all", or some of
// "guards,poison,quarantine=BYTES"; "" or "off": without.
//
// Each finding goes to |found| and, as an error, to the log (tarn_log_set), and
// is counted. The damage is repaired, and no other block is touched. The free
// of a block with a damaged guard returns TARN_E_CORRUPT; findings of other
// calls are returned by tarn_pool_debug_check.
//
// Lifetime:           |context| is the caller's, until the next call or the end
//                     of the pool.
// Cost:               requests and frees wait for the block's stream and write
//                     or read all of its bytes, and no steps are learned. Pools
//                     that do not debug pay nothing.
// TARN_E_INVALID      an unknown flag: nothing has changed.
// TARN_E_UNSUPPORTED  a pool with a flag of tarn_pool_create.
// TARN_E_DEVICE       done, but the device refused to take back memory that
//                     left the quarantine.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_debug(tarn_pool *pool, const tarn_pool_debug_options *options);

// Verifies the guards of all live blocks and all blocks in quarantine.
//
// Cost:           reads all of these bytes.
// TARN_E_CORRUPT  a finding now, or one since the last check that no other call
//                 has returned: the text names the first.
// TARN_E_DEVICE   the device could not read all of it.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_debug_check(tarn_pool *pool);

typedef struct tarn_pool_debug_stats {
  size_t struct_size;
  uint32_t flags;  // 0: the pool does not debug
  size_t quarantine_bytes;
  size_t quarantine_blocks;
  uint64_t verified;    // guards and blocks that were read
  uint64_t unverified;  // those that the device failed to fill or read, for
                        // example after a failure of the block's stream
  uint64_t overruns;    // findings, by kind
  uint64_t stale_writes;
} tarn_pool_debug_stats;

// The results of debugging so far; zeros if the pool never debugged.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_debug_report(tarn_pool *pool, tarn_pool_debug_stats *out_stats);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_MISUSE_H_
