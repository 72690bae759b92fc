// own_kit.h - threads that use ranges of synced buffers, each with
// bytes of its own that it knows.
#ifndef TARN_TESTS_SYNCED_OWN_KIT_H_
#define TARN_TESTS_SYNCED_OWN_KIT_H_

#include "threads_kit.h"

// ---------------------------------------------------------------------------
// Bytes of an access
// ---------------------------------------------------------------------------

static void get(const tarn_access *a, tarn_place place, unsigned char *out) {
  if (a->size == 0) return;
  if (a->pointer != NULL) {
    memcpy(out, a->pointer, a->size);
    return;
  }
  expect(tarn_copy_d2h(place.device, out, a->address, a->size, a->stream) ==
         TARN_OK);
  if (a->stream != NULL) expect(tarn_stream_synchronize(a->stream) == TARN_OK);
}

static void set(const tarn_access *a, tarn_place place,
                const unsigned char *bytes) {
  if (a->size == 0) return;
  if (a->pointer != NULL) {
    memcpy(a->pointer, bytes, a->size);
    return;
  }
  expect(tarn_copy_h2d(place.device, a->address, bytes, a->size, a->stream) ==
         TARN_OK);
  if (a->stream != NULL) expect(tarn_stream_synchronize(a->stream) == TARN_OK);
}

static bool begin(tarn_synced *buffer, size_t at, size_t size, tarn_place place,
                  uint32_t mode, tarn_stream *stream, tarn_access *a) {
  tarn_status status =
      tarn_synced_begin(buffer, at, size, place, mode, stream, a);
  expect(status == TARN_OK);
  return status == TARN_OK;
}

// A thread's own bytes, and what they must be.
typedef struct own {
  tarn_synced *buffer;
  size_t at;  // in the buffer
  uint64_t random;
  tarn_stream *streams[2];
  unsigned char value[RANGE];
} own;

static void step(own *o) {
  unsigned char bytes[RANGE];
  size_t place = next_random(&o->random) % PLACES;
  size_t start = next_random(&o->random) % RANGE;
  size_t size = next_random(&o->random) % (RANGE - start + 1);
  uint32_t mode = 1 + (uint32_t)(next_random(&o->random) % 3);
  tarn_stream *stream = NULL;
  if (place > 0 && next_random(&o->random) % 2 == 0) {
    stream = o->streams[place - 1];
  }
  tarn_access a;
  if (!begin(o->buffer, o->at + start, size, places[place],
             mode | (uint32_t)(next_random(&o->random) % 2 * TARN_ACCESS_WAIT),
             stream, &a)) {
    return;
  }
  if (mode != TARN_WRITE_DISCARD) {
    get(&a, places[place], bytes);
    expect(memcmp(bytes, o->value + start, size) == 0);
  }
  if (mode != TARN_READ) {
    memset(bytes, (int)(next_random(&o->random) & 255), size);
    set(&a, places[place], bytes);
    memcpy(o->value + start, bytes, size);
  }
  expect(tarn_synced_end(&a) == TARN_OK);
}

static void make_streams(own *o) {
  for (int i = 0; i < 2; i++) {
    expect(tarn_stream_create(devices[i], &o->streams[i]) == TARN_OK);
  }
}

static void end_streams(own *o) {
  for (int i = 0; i < 2; i++) {
    expect(tarn_stream_destroy(o->streams[i]) == TARN_OK);
  }
}

#endif  // TARN_TESTS_SYNCED_OWN_KIT_H_
