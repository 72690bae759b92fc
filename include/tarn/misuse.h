// misuse.h - pools that debug: they find what is written where nothing may be.
//
// Wrong frees are refused by every pool. A pool that debugs gives out blocks
//
//   [ fresh: what was asked for | guard ]  nothing is written into the guard,
//   [ freed .......................... ]  nothing anywhere once it is freed
//
// of which each part is filled with a byte of its own, in the order of the
// block's stream, and verified later. Memory that the host can touch is also
// marked for AddressSanitizer and valgrind: guards and blocks in quarantine may
// not be touched, so that the faulty instruction itself is caught.
#ifndef TARN_MISUSE_H_
#define TARN_MISUSE_H_

#include "tarn/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// The block is exactly as large as was asked for, and all behind it, at least
// 64 bytes, is verified when it is freed or resized.
#define TARN_POOL_DEBUG_GUARDS (1u << 0)

// A block is filled when it is taken, and again when it is freed, so that
// reading it shows.
#define TARN_POOL_DEBUG_POISON (1u << 1)

// Freed blocks are filled and stay aside, first in, first out, and are verified
// when they leave: when there are too many of them, before a request fails for
// want of room, and when the pool is trimmed, or its strategy or its debugging
// switched.
#define TARN_POOL_DEBUG_QUARANTINE (1u << 2)

enum {
  TARN_POOL_FRESH_BYTE = 0xff,  // floats of it are NaN
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
  size_t size;         // as it was asked for
  tarn_tag tag;        // of the block
  size_t offset;       // from the address to the first byte that is wrong
  unsigned char byte;  // what is there
} tarn_pool_finding;

// Told of each finding as it is made. Called with locks of the library held,
// from any thread that uses the pool: it must not call the library, but for
// tarn_pool_tag_name.
typedef void tarn_pool_debug_fn(void *context, tarn_pool *pool,
                                const tarn_pool_finding *finding);

typedef struct tarn_pool_debug_options {
  size_t struct_size;
  uint32_t flags;             // TARN_POOL_DEBUG_... bits; 0: all
  size_t quarantine_bytes;    // held in quarantine at most; 0: 64 MiB
  tarn_pool_debug_fn *found;  // NULL: nobody is told
  void *context;              // of |found|
} tarn_pool_debug_options;

// Lets |pool| debug from now on, as |options| say; NULL: no more. Blocks that
// are out keep what they were taken with. A pool that is made while the
// environment variable TARN_POOL_DEBUG is set begins so: "all", or some of
// "guards,poison,quarantine=BYTES"; "" or "off": it does not.
//
// Each finding goes to |found| and, as an error, to the log (tarn_log_set), and
// is counted; no other block is touched, and the damage is made good. The free
// of a block with a damaged guard answers TARN_E_CORRUPT; what other calls come
// across tarn_pool_debug_check answers.
//
// Lifetime:           |context| is the caller's, until this is called again or
//                     the pool ends.
// Cost:               requests and frees wait for the block's stream and write
//                     or read all of its bytes, and no steps are learned; none
//                     for a pool that does not debug.
// TARN_E_INVALID      an unknown flag: nothing has changed.
// TARN_E_UNSUPPORTED  a pool with a flag of tarn_pool_create.
// TARN_E_DEVICE       done, but the device refused memory that left the
//                     quarantine.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_debug(tarn_pool *pool, const tarn_pool_debug_options *options);

// Verifies the guards of all blocks that are out and all blocks in quarantine.
//
// Cost:           reads all of that.
// TARN_E_CORRUPT  it found something, or another call has since the last check
//                 that could not say so: the text names the first.
// TARN_E_DEVICE   the device would not show all of it.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_debug_check(tarn_pool *pool);

typedef struct tarn_pool_debug_stats {
  size_t struct_size;
  uint32_t flags;  // 0: the pool does not debug
  size_t quarantine_bytes;
  size_t quarantine_blocks;
  uint64_t verified;    // guards and blocks that were read
  uint64_t unverified;  // those that the device would not fill or show, for
                        // one since the block's stream has failed
  uint64_t overruns;    // findings, by kind
  uint64_t stale_writes;
} tarn_pool_debug_stats;

// What debugging has come to so far; zeros if the pool never did.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_debug_report(tarn_pool *pool, tarn_pool_debug_stats *out_stats);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_MISUSE_H_
