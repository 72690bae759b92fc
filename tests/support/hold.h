// hold.h - a stream that is held up: what is queued on it waits for the test.
#ifndef TARN_TESTS_SUPPORT_HOLD_H_
#define TARN_TESTS_SUPPORT_HOLD_H_

#include <semaphore.h>

#include "support/run.h"
#include "tarn/device.h"

typedef struct hold {
  sem_t go;
} hold;

static inline void hold_in_callback(void *context, tarn_status status) {
  (void)status;
  hold *held = context;
  while (sem_wait(&held->go) != 0) {
  }
}

// What is queued on |stream| from now on waits for hold_end.
static inline void hold_begin(hold *held, tarn_stream *stream) {
  ck_assert_int_eq(sem_init(&held->go, 0, 0), 0);
  assert_ok(tarn_stream_add_callback(stream, hold_in_callback, held));
}

static inline void hold_end(hold *held) {
  ck_assert_int_eq(sem_post(&held->go), 0);
}

#endif  // TARN_TESTS_SUPPORT_HOLD_H_
