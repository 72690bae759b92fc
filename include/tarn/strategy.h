// strategy.h - be a strategy: how a pool of pool.h keeps and reuses memory.
//
// A strategy is a table of functions. A program hands it to tarn_pool_register;
// a shared object exports TarnPoolStrategy, and tarn_pool_load finds it. From
// then on its name is known wherever a strategy is named:
// tarn_pool_set_strategy, the environment variable TARN_POOL, the tool.
// examples/power_pool.c is one, and docs/strategies.md tells how to write one.
//
//   front ── take, give, trim ─► strategy ── grow, shrink ─► source ─► device
//
// The front has checked every request and every free before, counts them, and
// makes streams wait where a block crosses. A strategy only decides which
// memory a block gets. It calls nothing of the library but what it is given as
// function pointers, so that a shared object need not be linked with it.
//
// Threads:  all but init and deinit are called with the pool's lock held, so a
//           strategy needs none of its own. The source's functions let it go
//           while they call the device: what a strategy has read before such a
//           call it must not trust after it.
// Streams:  a stream is known by its serial, 0 is the host. Memory is used by
//           one stream after the other; who takes it over is made to wait by
//           the front.
#ifndef TARN_STRATEGY_H_
#define TARN_STRATEGY_H_

#include "tarn/base.h"
#include "tarn/device.h"

#ifdef __cplusplus
extern "C" {
#endif

// Memory of the device, from grow until shrink.
typedef struct tarn_chunk {
  tarn_addr address;
  size_t size;

  // The strategy's from here on; 0, an empty list and NULL at first.
  uint64_t stream;  // whose work may still use it: shrink waits for that
  tarn_list node;
  void *own;
} tarn_chunk;

// What a strategy may ask for. Good for the call that it is given to.
typedef struct tarn_source {
  size_t struct_size;
  tarn_place place;  // of the pool

  // At least |size| bytes at a multiple of |align|, a power of two. Where the
  // device's plug-in says how much is to be asked for, chunks are cut out of
  // memory of these sizes. Only within take. TARN_FULL: the pool's limit or the
  // device is used up, or the request forbids growth (tarn/alloc.h).
  tarn_status (*grow)(const struct tarn_source *source, size_t size,
                      size_t align, tarn_chunk **out_chunk);

  // Gives a chunk back to the device when |chunk->stream| is done with it. It
  // is gone whatever is returned. Not within init.
  tarn_status (*shrink)(const struct tarn_source *source, tarn_chunk *chunk);

  // Makes the host wait for all that a stream has queued, as shrink does for
  // one. Not within init. TARN_FULL, within take: the stream is at work, and
  // the request forbids waiting.
  tarn_status (*wait)(const struct tarn_source *source, uint64_t stream);

  // Says why, in one line, and returns |status|: return refuse(...).
  tarn_status (*refuse)(const struct tarn_source *source, tarn_status status,
                        const char *why);

  // Within trim: whether the pool holds no more than was asked for, so that the
  // rest may stay.
  bool (*enough)(const struct tarn_source *source);
} tarn_source;

// What stands behind the name: "name:key=value,...".
typedef struct tarn_strategy_options {
  size_t struct_size;

  // The value of |key|, a number of bytes such as 4096 or 64K; |fallback| if it
  // is not there. A key that nobody asks for is refused when init returns.
  // TARN_E_INVALID: not a number.
  tarn_status (*size)(const struct tarn_strategy_options *options,
                      const char *key, size_t fallback, size_t *out_value);
} tarn_strategy_options;

typedef struct tarn_request {
  size_t size;      // at least 1; with the device's padding, and a multiple of
                    // its smallest chunk
  size_t align;     // a power of two, at least the device's smallest chunk
  uint64_t stream;  // of the block's use; 0: the host
} tarn_request;

// Memory for one block: part of a chunk, or all of it.
typedef struct tarn_suballocation {
  tarn_addr address;
  size_t size;      // the padding included
  uint64_t stream;  // of the last use; 0: none, or it is over
  void *own;        // the strategy's: give gets it back
} tarn_suballocation;

// |self| is |size| bytes that are zero at first, one for each pool that uses
// the strategy, and the only state that it should have.
typedef struct tarn_strategy {
  size_t struct_size;
  const char *name;  // 1 to 63 letters, digits, '_', '-' or '.'
  size_t size;       // of its state; may be 0

  // Reads the options; no lock is held. May be NULL: there are no options.
  tarn_status (*init)(void *self, const tarn_source *source,
                      const tarn_strategy_options *options);

  // Frees what init and later calls have taken of the host, also where init
  // has failed. All chunks are gone, or the process is a child of fork. May be
  // NULL.
  void (*deinit)(void *self);

  // Finds memory for a block. Of memory that another stream used last |stream|
  // says so. Fails with all as it was; after TARN_FULL the front calls trim and
  // then take again.
  tarn_status (*take)(void *self, const tarn_source *source,
                      const tarn_request *request,
                      tarn_suballocation *out_memory);

  // Takes back what take gave; |stream| says who used it last. It is the
  // strategy's again whatever is returned.
  tarn_status (*give)(void *self, const tarn_source *source,
                      const tarn_suballocation *memory);

  // Gives chunks back of which no byte is out, all of them or until
  // |source->enough| says so; the first failure is returned. Also called after
  // each give once another strategy has taken the place of this one.
  tarn_status (*trim)(void *self, const tarn_source *source);

  // Says what is wrong with its state, for tests. May be NULL.
  tarn_status (*check)(void *self, const tarn_source *source);

  // Extends or cuts a suballocation that is out, at its end, to at least
  // |request->size| bytes; its address stays. What is cut off
  // |request->stream| used last; what is added must be that stream's or
  // nobody's. Fails with all as it was, with TARN_FULL where there is no room
  // behind it. May be NULL: blocks keep what they have.
  tarn_status (*resize)(void *self, const tarn_source *source,
                        const tarn_request *request,
                        tarn_suballocation *memory);
} tarn_strategy;

// Makes a strategy known under its name, for as long as the process lives. The
// table is copied; the code must stay.
//
// TARN_E_STATE    a strategy of that name is there already.
// TARN_E_INVALID  a function is missing, the name is none, or struct_size is
//                 unknown: the text says which.
TARN_API TARN_MUST_CHECK tarn_status
tarn_pool_register(const tarn_strategy *strategy);

// Loads a shared object and registers what its TarnPoolStrategy returns. |path|
// is as for tarn_plugin_load, and so is what it says about trust. It is never
// unloaded.
//
// TARN_E_INVALID      as above, or |path| is none.
// TARN_E_IO           the system cannot load it; the text says why.
// TARN_E_UNSUPPORTED  it exports no TarnPoolStrategy.
// TARN_E_STATE        a strategy of that name is there already.
TARN_API TARN_MUST_CHECK tarn_status tarn_pool_load(const char *path);

// What such an object exports.
typedef const tarn_strategy *tarn_pool_strategy_function(void);
__attribute__((visibility("default"))) const tarn_strategy *TarnPoolStrategy(
    void);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_STRATEGY_H_
