// Synced buffers used on a runtime's own stream, the default one, which is
// given back while it is at work: others wait for that work all the same.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kit.h"
#include "support/hold.h"
#include "support/on_devices.h"

enum { SIZE = 64 << 10 };

static void *let_go_soon(void *context) {
  struct timespec time = {.tv_nsec = 20000000};
  (void)nanosleep(&time, NULL);
  hold_end(context);
  return NULL;
}

TEST_ON(the_host_reads_what_a_departed_stream_writes, 0) {
  static unsigned char bytes[SIZE];
  hold held;
  pthread_t thread;
  tarn_stream *stream = NULL;
  tarn_access access;
  if ((tarn_device_extensions(device) & TARN_EXTENSION_DEFAULT_STREAM) == 0)
    return;
  memset(bytes, 5, sizeof bytes);
  assert_ok(tarn_stream_adopt(device, NULL, &stream));
  tarn_synced *buffer = new_buffer(SIZE);
  assert_ok(tarn_synced_begin(buffer, 0, SIZE, tarn_place_on(device),
                              TARN_WRITE_DISCARD, stream, &access));
  hold_begin(&held, stream);
  put_bytes(&access, tarn_place_on(device), bytes);
  assert_ok(tarn_synced_end(&access));
  assert_ok(tarn_stream_destroy(stream));
  ck_assert_int_eq(pthread_create(&thread, NULL, let_go_soon, &held), 0);

  assert_ok(
      tarn_synced_begin(buffer, 0, SIZE, TARN_HOST, TARN_READ, NULL, &access));
  ck_assert_mem_eq(access.pointer, bytes, SIZE);
  assert_ok(tarn_synced_end(&access));
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  verify(buffer);
  assert_ok(tarn_synced_destroy(buffer));
  assert_ok(tarn_device_synchronize(device));
}
