// replay_pass.h - all requests of a trace through a pool, once.
//
// With several threads they are shared as kit/crossing.h says. A request that
// is refused is counted and passed over.
//
// A pass is timed as a whole, or each request by itself: reading the clock
// takes longer than many requests do.
#ifndef TARN_TOOL_REPLAY_PASS_H_
#define TARN_TOOL_REPLAY_PASS_H_

#include <pthread.h>

#include "kit/crossing.h"
#include "kit/stopwatch.h"
#include "kit/tool.h"

enum { REPLAY_TEXT_SIZE = 512 };

// The ticks of a free whose alloc had been refused.
#define REPLAY_NOT_SERVED UINT64_MAX

// A zero-filled one is closed.
typedef struct replay_pass {
  const tarn_trace *trace;
  const stopwatch *watch;
  tarn_pool *pool;  // the caller's
  tarn_place place;
  bool touches;              // writes to each page of each new block
  bool host_touches, plain;  // the host can, at the block's own address
  size_t page;

  request_list own;
  const request_list *requests;
  crossing *crossing;  // NULL: one thread
  tarn_block *blocks;  // by slot; pool NULL: not out
  uint64_t *ticks;     // of each request, clock readings included

  bool counts;           // refusals
  pthread_mutex_t lock;  // guards the two below
  uint64_t failed;
  char first_failure[REPLAY_TEXT_SIZE];
} replay_pass;

// Of |trace|, by |threads| threads, on |device|. False if they cannot be
// started. Set |pool| afterwards.
bool replay_pass_open(replay_pass *p, const tarn_trace *trace,
                      tarn_device *device, size_t threads);
void replay_pass_close(replay_pass *p);

// One block of the trace, outside of passes. False: refused.
bool replay_pass_is_out(const replay_pass *p, uint32_t block);
bool replay_pass_take(replay_pass *p, uint32_t block);
bool replay_pass_give(replay_pass *p, uint32_t block);
tarn_addr replay_pass_address(const replay_pass *p, uint32_t block);

// Counts the library's last error.
void replay_pass_note(replay_pass *p);

// All requests, from a state in which the baseline and nothing else is out.
// The nanoseconds that it took.
double replay_pass_run(replay_pass *p);

// The same, which fills |ticks| instead.
void replay_pass_sample(replay_pass *p);

#endif  // TARN_TOOL_REPLAY_PASS_H_
