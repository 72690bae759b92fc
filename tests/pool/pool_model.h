// pool_model.h - a naive pool that says beforehand what a real one will do.
//
// It keeps two plain arrays, of the blocks that are out and of the idle
// memory, and works every statistic out from them. Each function here does the
// same to the real pool and ends the test, naming the seed and the operation,
// as soon as the two differ.
#ifndef TARN_TESTS_POOL_POOL_MODEL_H_
#define TARN_TESTS_POOL_POOL_MODEL_H_

#include "tarn/pool.h"

enum {
  MODEL_BLOCKS = 256,  // out at once
  MODEL_IDLE = 65536,
  MODEL_STREAMS = 4,  // the first of them is the host
  MODEL_TAGS = 6,     // the first of them is "untagged"
  MODEL_STALE = 64,
};

typedef struct model_block {
  tarn_block block;
  size_t asked;
  size_t align;
  size_t held;  // of the device, for this block
  unsigned tag;
  unsigned epoch;     // of the strategy that it came from
  unsigned waits_on;  // the stream in whose order its last use is over
  unsigned char mark;
} model_block;

typedef struct model_idle {
  tarn_addr address;
  size_t size;
  size_t align;
  size_t held;
  unsigned stream;  // of its last use
} model_idle;

typedef struct pool_model {
  unsigned seed;
  unsigned long operation;
  tarn_pool *pool;
  size_t natural_align;
  size_t aligns;  // what the device has kept to so far
  tarn_stream *streams[MODEL_STREAMS];
  tarn_tag tags[MODEL_TAGS];

  size_t page;     // of the present strategy; 0: no_pool
  unsigned epoch;  // counts the switches

  model_block blocks[MODEL_BLOCKS];  // by rising address
  size_t block_count;
  model_idle idle[MODEL_IDLE];
  size_t idle_count;
  tarn_block stale[MODEL_STALE];  // freed before, the newest over the oldest
  size_t stale_count;

  tarn_pool_stats stats;
  tarn_pool_tag_stats of_tag[MODEL_TAGS];
} pool_model;

// A model of the host's pool, on fresh streams, with nothing out.
void model_begin(pool_model *m, unsigned seed);

// Takes a block and writes a mark into it. With a limit, |align| must be one
// that the device has anyway: else chance decides how much memory it takes.
void model_alloc(pool_model *m, size_t size, size_t align, unsigned tag,
                 unsigned stream);

// Checks the mark of the |index|-th block and frees it.
void model_free(pool_model *m, size_t index, unsigned stream, bool by_address);

// Finds the |index|-th block by its address.
void model_find(pool_model *m, size_t index);

// Frees, or tries to, the |index|-th of those that were freed before.
void model_free_stale(pool_model *m, size_t index);

void model_trim(pool_model *m);
void model_limit(pool_model *m, size_t bytes);
void model_reset_peaks(pool_model *m);

// Switches to page_unit_pool with |page|, or to no_pool if that is 0.
void model_use(pool_model *m, size_t page);

// Compares tags and marks, and has the pool walk its invariants.
void model_walk(pool_model *m);

// Frees all, destroys the streams: the pool must hold nothing.
void model_end(pool_model *m);

#endif  // TARN_TESTS_POOL_POOL_MODEL_H_
