// Deadlines by the clock, less the time in which this process did not run.
#include "comm/wait.h"

#include "base/os.h"
#include "base/status.h"

static const uint64_t MS = 1000000;

// The ends of others are found within this, and of a short deadline not much
// is slept over.
static const uint64_t MOST_SLICE_MS = 10;
enum { SLICES = 50 };

// A process that has not checked for longer did not run itself, for example
// because the job was stopped. That time does not count.
static const uint64_t MOST_GAP_MS = 100;

static uint64_t later(uint64_t time, uint64_t ns) {
  return ns < UINT64_MAX - time ? time + ns : UINT64_MAX;
}

tarn__comm_wait tarn__wait_begin(uint64_t timeout_ms) {
  uint64_t now = tarn__os_now_ns();
  uint64_t ns = timeout_ms < UINT64_MAX / MS ? timeout_ms * MS : UINT64_MAX;
  return (tarn__comm_wait){
      .slice = tarn__lesser(ns / SLICES, MOST_SLICE_MS * MS),
      .most_gap = MOST_GAP_MS * MS,
      .begun = now,
      .end = later(now, ns),
      .now = now};
}

uint64_t tarn__wait_left(tarn__comm_wait *wait) {
  uint64_t now = tarn__os_now_ns();
  uint64_t gap = now - wait->now;
  if (gap > wait->most_gap) {
    wait->end = later(wait->end, gap - wait->most_gap);
  }
  wait->now = now;
  return wait->end > now ? wait->end - now : 0;
}

void tarn__wait_turn(unsigned *io_turn, unsigned yields) {
  static const uint64_t NAP_NS = 100000;
  if ((*io_turn)++ < yields) {
    tarn__os_yield();
  } else {
    tarn__os_wait_until(tarn__os_now_ns() + NAP_NS);
  }
}
