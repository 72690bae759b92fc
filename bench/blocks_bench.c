// Blocks by random addresses inside of them.
#include "blocks_bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kit/tool.h"
#include "probe.h"

enum { CALLS = 1000, LEAST = 256, SPAN = 1792, ASKED = 64 * 1024 };

typedef struct question {
  tarn_addr address;
  tarn_addr start;  // of the block
} question;

typedef struct runner {
  const blocks_bench *bench;
  tarn_pool *pool;
  tarn_block *blocks;
  question *asked;
  double *ns[BLOCKS_BENCH_WAYS];  // of each pass
  size_t at;                      // the next question
  uint64_t random;
} runner;

static uint64_t next_random(runner *r) {
  r->random ^= r->random << 13;
  r->random ^= r->random >> 7;
  r->random ^= r->random << 17;
  return r->random;
}

// ---------------------------------------------------------------------------
// The loops
// ---------------------------------------------------------------------------

typedef tarn_status find(tarn_pool *pool, tarn_addr address, tarn_block *found,
                         size_t *offset);

static tarn_status find_at_place(tarn_pool *pool, tarn_addr address,
                                 tarn_block *found, size_t *offset) {
  (void)pool;
  return tarn_block_of(TARN_HOST, address, found, offset);
}

// |mask| 0: no address depends on the answer before. Otherwise it does, by a
// difference that is 0 in fact.
static inline bool ask_all(const runner *r, find *find_in, tarn_addr mask) {
  tarn_block found = {0};
  size_t offset = 0;
  tarn_addr before = 0;
  for (size_t i = 0; i < CALLS; i++) {
    const question *q = &r->asked[(r->at + i) % ASKED];
    if (find_in(r->pool, q->address + before, &found, &offset) != TARN_OK) {
      return false;
    }
    before = (found.address ^ q->start) & mask;
    if (found.address != q->start) return false;
  }
  return true;
}

static bool ask(const runner *r, blocks_bench_way way) {
  switch (way) {
    case BLOCKS_BENCH_PLACE:
      return ask_all(r, find_at_place, 0);
    case BLOCKS_BENCH_POOL:
      return ask_all(r, tarn_pool_block_of, 0);
    case BLOCKS_BENCH_PLACE_WAITS:
      return ask_all(r, find_at_place, ~(tarn_addr)0);
    default:
      return ask_all(r, tarn_pool_block_of, ~(tarn_addr)0);
  }
}

// ---------------------------------------------------------------------------
// Passes
// ---------------------------------------------------------------------------

// Each way of asking has questions of its own: the answers to one would be in
// the cache for the next.
static bool run_pass(runner *r, size_t pass) {
  const stopwatch *watch = r->bench->watch;
  for (size_t i = 0; i < BLOCKS_BENCH_WAYS; i++) {
    size_t way = pass % 2 == 0 ? i : BLOCKS_BENCH_WAYS - 1 - i;
    uint64_t begin = stopwatch_now(watch);
    if (!ask(r, (blocks_bench_way)way)) return false;
    uint64_t ticks = stopwatch_since(watch, begin);
    r->ns[way][pass] = stopwatch_ns(watch, (double)ticks) / CALLS;
    r->at = (r->at + CALLS) % ASKED;
  }
  return true;
}

static bool run_all(runner *r, blocks_bench_result *out) {
  if (!run_pass(r, 0)) return false;  // which puts the blocks in order
  for (size_t i = 0; i < r->bench->passes; i++) {
    if (!run_pass(r, i)) return false;
  }
  for (size_t way = 0; way < BLOCKS_BENCH_WAYS; way++)
    out->ns[way] = probe_median(r->ns[way], r->bench->passes);
  return true;
}

// ---------------------------------------------------------------------------
// The process
// ---------------------------------------------------------------------------

static bool take_blocks(runner *r) {
  if (tarn_pool_of(TARN_HOST, &r->pool) != TARN_OK) return false;
  for (size_t i = 0; i < r->bench->blocks; i++) {
    size_t size = LEAST + next_random(r) % SPAN;
    if (tarn_pool_alloc(r->pool, size, 0, NULL, &r->blocks[i]) != TARN_OK) {
      return false;
    }
  }
  return true;
}

static void make_questions(runner *r) {
  for (size_t i = 0; i < ASKED; i++) {
    const tarn_block *block = &r->blocks[next_random(r) % r->bench->blocks];
    r->asked[i] = (question){block->address + next_random(r) % block->size,
                             block->address};
  }
}

static void take_room(runner *r) {
  r->blocks = tool_array(r->bench->blocks, sizeof *r->blocks);
  r->asked = tool_array(ASKED, sizeof *r->asked);
  for (size_t way = 0; way < BLOCKS_BENCH_WAYS; way++)
    r->ns[way] = tool_array(r->bench->passes, sizeof(double));
}

static void give_room(runner *r) {
  for (size_t way = 0; way < BLOCKS_BENCH_WAYS; way++)
    free(r->ns[way]);
  free(r->asked);
  free(r->blocks);
}

static void know_nothing(blocks_bench_result *out) {
  for (size_t way = 0; way < BLOCKS_BENCH_WAYS; way++)
    out->ns[way] = NAN;
}

// The blocks end with the process.
static void measure(void *context, void *out_result) {
  blocks_bench_result *out = out_result;
  runner r = {.bench = context, .random = 88172645463325252u};
  know_nothing(out);
  take_room(&r);
  bool taken = take_blocks(&r);
  if (taken) make_questions(&r);
  if (!taken || !run_all(&r, out)) {
    const char *said = tarn_last_error();
    snprintf(out->failed, sizeof out->failed, "%.250s",
             *said != '\0' ? said : "another block was found");
  }
  give_room(&r);
}

blocks_bench_result blocks_bench_run(const blocks_bench *bench) {
  blocks_bench what = *bench;
  blocks_bench_result result;
  char why[CHILD_TEXT_SIZE];
  if (!child_run(measure, &what, (child_limits){0}, &result, sizeof result,
                 why)) {
    know_nothing(&result);
    snprintf(result.failed, sizeof result.failed, "%s", why);
  }
  return result;
}
