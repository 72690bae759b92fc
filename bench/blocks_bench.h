// blocks_bench.h - what it takes to find a block by an address inside of it.
//
// A pool has so many blocks of 256 to 2047 bytes. Each pass asks for a thousand
// random addresses, one of any byte of a random block, at the place
// (tarn_block_of) and in the pool (tarn_pool_block_of). Where the calls do not
// depend on each other a processor begins the next before it has the memory for
// the one before; so each is asked twice: with addresses that are all known
// beforehand, and with each address known only by the answer before. The median
// of all passes counts.
#ifndef TARN_BENCH_BLOCKS_BENCH_H_
#define TARN_BENCH_BLOCKS_BENCH_H_

#include "kit/child.h"
#include "kit/stopwatch.h"

typedef enum blocks_bench_way {
  BLOCKS_BENCH_PLACE,
  BLOCKS_BENCH_POOL,
  BLOCKS_BENCH_PLACE_WAITS,  // for the answer before
  BLOCKS_BENCH_POOL_WAITS,
  BLOCKS_BENCH_WAYS
} blocks_bench_way;

typedef struct blocks_bench {
  size_t blocks;  // at least 1
  const stopwatch *watch;
  size_t passes;  // that count
} blocks_bench;

typedef struct blocks_bench_result {
  double ns[BLOCKS_BENCH_WAYS];  // of one call; NaN: not known
  char failed[CHILD_TEXT_SIZE];  // why there are no figures; "": there are
} blocks_bench_result;

// Measures in a process of its own. Failing is a result.
blocks_bench_result blocks_bench_run(const blocks_bench *bench);

#endif  // TARN_BENCH_BLOCKS_BENCH_H_
