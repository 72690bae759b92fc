// strategy.h - strategies of programs: how a pool keeps and reuses memory.
//
// A strategy is a table of functions. A program passes it to
// tarn_pool_register; a shared object exports TarnPoolStrategy, and
// tarn_pool_load finds it. From then on its name can be used like the built-in
// ones: in tarn_pool_set_strategy, TARN_POOL and the tool.
//
//   static const tarn_strategy mine = {
//       .struct_size = sizeof mine,
//       .name = "my_pool",
//       .size = sizeof(my_state),
//       .take = my_take,  // memory for a block, or TARN_FULL
//       .give = my_give,  // the memory of a freed block
//       .trim = my_trim,  // idle chunks back to the device
//   };
//   tarn_pool_register(&mine);
//   tarn_pool_set_strategy(pool, "my_pool");
//
// examples/power_pool.c is a complete strategy; docs/strategies.md is the
// guide.
//
//   front ── take, give, trim ─► strategy ── grow, shrink ─► source ─► device
//
// The front has checked each request and each free before it calls the
// strategy, keeps the statistics, and orders streams where memory changes
// streams. The strategy only chooses the memory. It calls nothing of the
// library except the function pointers that it is given, so a shared object
// need not be linked with the library.
//
// Threads:  all functions except init and deinit are called with the pool's
//           lock held, so a strategy needs no lock. The source's functions
//           release the lock while they call the device: what a strategy has
//           read before such a call may have changed after it.
// Streams:  a stream is identified by its serial; 0 is the host. The front
//           orders the next user of memory behind the last one.
#ifndef TARN_STRATEGY_H_
#define TARN_STRATEGY_H_

#include "tarn/base.h"
#include "tarn/device.h"

#ifdef __cplusplus
extern "C" {
#endif

// Memory of the device, from grow to shrink.
typedef struct tarn_chunk {
  tarn_addr address;
  size_t size;

  // For the strategy; 0, an empty list and NULL at first.
  uint64_t stream;  // that may still use it: shrink waits for it
  tarn_list node;
  void *own;
} tarn_chunk;

// The functions that a strategy may call, during the call that it is passed to.
typedef struct tarn_source {
  size_t struct_size;
  tarn_place place;  // of the pool

  // Allocates at least |size| bytes at a multiple of |align|, a power of two.
  // Where the plug-in states allocation sizes, chunks are cut out of memory of
  // these sizes. Only within take. TARN_FULL: the pool's limit or the device is
  // used up, or the request forbids growth (tarn/alloc.h).
  tarn_status (*grow)(const struct tarn_source *source, size_t size,
                      size_t align, tarn_chunk **out_chunk);

  // Returns a chunk to the device when |chunk->stream| is done with it. The
  // chunk is gone whatever the status. Not within init.
  tarn_status (*shrink)(const struct tarn_source *source, tarn_chunk *chunk);

  // Has the host wait for the work queued on a stream. Not within init.
  // TARN_FULL, within take: the stream has unfinished work, and the request
  // forbids waiting.
  tarn_status (*wait)(const struct tarn_source *source, uint64_t stream);

  // Sets the error text, one line, and returns |status|: return refuse(...).
  tarn_status (*refuse)(const struct tarn_source *source, tarn_status status,
                        const char *why);

  // Within trim: whether the pool is down to the target, so that the rest may
  // stay.
  bool (*enough)(const struct tarn_source *source);
} tarn_source;

// The options behind the name: "name:key=value,...".
typedef struct tarn_strategy_options {
  size_t struct_size;

  // The value of |key|, a number of bytes such as 4096 or 64K; |fallback| if it
  // is absent. Keys that init has not read are refused. TARN_E_INVALID: not a
  // number.
  tarn_status (*size)(const struct tarn_strategy_options *options,
                      const char *key, size_t fallback, size_t *out_value);
} tarn_strategy_options;

typedef struct tarn_request {
  size_t size;      // at least 1, including the device's padding; a multiple of
                    // its smallest chunk
  size_t align;     // a power of two, at least the device's smallest chunk
  uint64_t stream;  // that will use the block; 0: the host
} tarn_request;

// The memory of one block: a chunk or a part of one.
typedef struct tarn_suballocation {
  tarn_addr address;
  size_t size;      // including the padding
  uint64_t stream;  // that used it last; 0: none, or its work is done
  void *own;        // for the strategy: give receives it
} tarn_suballocation;

// |self| is |size| zero bytes for each pool that uses the strategy; it should
// have no other state.
typedef struct tarn_strategy {
  size_t struct_size;
  const char *name;  // 1 to 63 letters, digits, '_', '-' or '.'
  size_t size;       // of its state; may be 0

  // Reads the options; no lock is held. May be NULL: no options.
  tarn_status (*init)(void *self, const tarn_source *source,
                      const tarn_strategy_options *options);

  // Frees the host memory of init and later calls, also after a failed init.
  // All chunks are gone, or the process is a child of fork. May be NULL.
  void (*deinit)(void *self);

  // Finds memory for a block; |out_memory->stream| is its last user. A failure
  // changes nothing; after TARN_FULL the front calls trim and then take again.
  tarn_status (*take)(void *self, const tarn_source *source,
                      const tarn_request *request,
                      tarn_suballocation *out_memory);

  // Receives the memory of a freed block; |stream| used it last. The memory is
  // the strategy's again whatever the status.
  tarn_status (*give)(void *self, const tarn_source *source,
                      const tarn_suballocation *memory);

  // Returns chunks without live blocks to the device, all of them or until
  // |source->enough|; returns the first failure. Also called after each give
  // once the strategy was replaced.
  tarn_status (*trim)(void *self, const tarn_source *source);

  // Checks its invariants, for tests. May be NULL.
  tarn_status (*check)(void *self, const tarn_source *source);

  // Grows or shrinks the memory of a live block in place, to at least
  // |request->size| bytes. |request->stream| used removed bytes last; added
  // bytes must be unused or last used by that stream. TARN_FULL: no room behind
  // it. A failure changes nothing. May be NULL: blocks keep their size.
  tarn_status (*resize)(void *self, const tarn_source *source,
                        const tarn_request *request,
                        tarn_suballocation *memory);
} tarn_strategy;

// Registers a strategy under its name for the life of the process. The table is
// copied; the code must stay loaded.
//
// TARN_E_STATE    a strategy of that name exists.
// TARN_E_INVALID  a missing function, a wrong name, or an unknown struct_size:
//                 the text says which.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_register(const tarn_strategy *strategy);

// Loads a shared object and registers the table that its TarnPoolStrategy
// returns. |path| and trust are as for tarn_plugin_load. The object is never
// unloaded.
//
// TARN_E_INVALID      as above, or |path| is NULL or empty.
// TARN_E_IO           the system cannot load it; the text says why.
// TARN_E_UNSUPPORTED  it exports no TarnPoolStrategy.
// TARN_E_STATE        a strategy of that name exists.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_load(const char *path);

// The function that such an object exports.
typedef const tarn_strategy *tarn_pool_strategy_function(void);
__attribute__((visibility("default"))) const tarn_strategy *TarnPoolStrategy(
    void);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_STRATEGY_H_
