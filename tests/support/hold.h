// hold.h - a stream that is held up: what is queued on it waits for the test.
#ifndef TARN_TESTS_SUPPORT_HOLD_H_
#define TARN_TESTS_SUPPORT_HOLD_H_

#include <semaphore.h>

#include "support/driver.h"
#include "support/run.h"
#include "tarn/device.h"

typedef struct hold {
  sem_t begun;
  sem_t go;
  void *gate;  // of a real driver; else NULL
} hold;

static inline void hold_in_callback(void *context, tarn_status status) {
  (void)status;
  hold *held = context;
  (void)sem_post(&held->begun);
  while (sem_wait(&held->go) != 0) {
  }
}

// What is queued on |stream| from now on waits for hold_end.
static inline void hold_begin(hold *held, tarn_stream *stream) {
  held->gate = driver_close_gate(stream);
  if (held->gate != NULL) return;
  ck_assert_int_eq(sem_init(&held->begun, 0, 0), 0);
  ck_assert_int_eq(sem_init(&held->go, 0, 0), 0);
  assert_ok(tarn_stream_add_callback(stream, hold_in_callback, held));
}

// Waits until the device has come to the hold, if it comes there by itself.
static inline void hold_await(hold *held) {
  while (held->gate == NULL && sem_wait(&held->begun) != 0) {
  }
}

static inline void hold_end(hold *held) {
  if (held->gate != NULL) {
    driver_open_gate(held->gate);
  } else {
    ck_assert_int_eq(sem_post(&held->go), 0);
  }
}

#endif  // TARN_TESTS_SUPPORT_HOLD_H_
