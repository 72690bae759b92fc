// wait.h - how long a rank waits for others.
#ifndef TARN_COMM_WAIT_H_
#define TARN_COMM_WAIT_H_

#include <stdint.h>

// A wait for other ranks, in slices: between two, it is checked whether they
// still run.
typedef struct tarn__comm_wait {
  uint64_t slice;     // nanoseconds
  uint64_t most_gap;  // that count between two looks, nanoseconds
  uint64_t begun;     // by the clock
  uint64_t end;       // likewise
  uint64_t now;       // when tarn__wait_left was last asked
} tarn__comm_wait;

tarn__comm_wait tarn__wait_begin(uint64_t timeout_ms);

// The nanoseconds left; 0: the wait is over.
uint64_t tarn__wait_left(tarn__comm_wait *wait);

// Lets others run, once more: for the first |yields| of |*io_turn| without
// sleep, for waits that are short.
void tarn__wait_turn(unsigned *io_turn, unsigned yields);

#endif  // TARN_COMM_WAIT_H_
