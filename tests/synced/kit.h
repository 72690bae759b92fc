// kit.h - buffers under test: filled, read back and verified.
#ifndef TARN_TESTS_SYNCED_KIT_H_
#define TARN_TESTS_SYNCED_KIT_H_

#include "sim/kit.h"
#include "synced/sides.h"
#include "tarn/synced.h"
#include "tarn/traffic.h"

// Not protected, so that the short ways are taken in any build.
static inline tarn_synced *new_buffer(size_t size) {
  tarn_synced *buffer = NULL;
  tarn_synced_options options = {.struct_size = sizeof options,
                                 .flags = TARN_SYNCED_NO_PROTECT};
  assert_ok(tarn_synced_create(size, &options, &buffer));
  return buffer;
}

// Checks the sums of the core.
static inline void verify(const tarn_synced *buffer) {
  const char *wrong = tarn__core_verify(buffer->core);
  ck_assert_msg(wrong == NULL, "%s", wrong);
}

// What the caller of an access does at a device without kernels: copies.
static inline void put_bytes(const tarn_access *access, tarn_place place,
                             const unsigned char *bytes) {
  if (access->pointer != NULL) {
    memcpy(access->pointer, bytes, access->size);
  } else {
    assert_ok(tarn_copy_h2d(place.device, access->address, bytes, access->size,
                            access->stream));
  }
}

static inline void get_bytes(const tarn_access *access, tarn_place place,
                             unsigned char *bytes) {
  if (access->pointer != NULL) {
    memcpy(bytes, access->pointer, access->size);
  } else {
    assert_ok(tarn_copy_d2h(place.device, bytes, access->address, access->size,
                            access->stream));
  }
}

// A whole access that writes |size| times |value|.
static inline void write_at(tarn_synced *buffer, size_t offset, size_t size,
                            tarn_place place, tarn_stream *stream,
                            unsigned char value) {
  tarn_access access;
  unsigned char *bytes = malloc(size + 1);
  memset(bytes, value, size);
  assert_ok(tarn_synced_begin(buffer, offset, size, place, TARN_WRITE_DISCARD,
                              stream, &access));
  put_bytes(&access, place, bytes);
  if (stream != NULL) assert_ok(tarn_stream_synchronize(stream));
  assert_ok(tarn_synced_end(&access));
  free(bytes);
}

// A whole access that finds |size| times |value|.
static inline void expect_at(tarn_synced *buffer, size_t offset, size_t size,
                             tarn_place place, unsigned char value) {
  tarn_access access;
  unsigned char *bytes = malloc(size + 1);
  assert_ok(
      tarn_synced_begin(buffer, offset, size, place, TARN_READ, NULL, &access));
  get_bytes(&access, place, bytes);
  for (size_t i = 0; i < size; i++)
    require(bytes[i] == value);
  assert_ok(tarn_synced_end(&access));
  free(bytes);
  verify(buffer);
}

// --- counts ------------------------------------------------------------------

// From the statistics of the core; both places have been used before.
static inline tarn__synced_counts counts_of(const tarn_synced *buffer,
                                            tarn_place from, tarn_place to) {
  tarn__synced_core *core = buffer->core;
  uint32_t a = tarn__side_find(core, from);
  uint32_t b = tarn__side_find(core, to);
  ck_assert_uint_ne(a, TARN__NO_SIDE);
  ck_assert_uint_ne(b, TARN__NO_SIDE);
  return *tarn__core_counts(core, a, b);
}

static inline void assert_moved(const tarn_synced *buffer, tarn_place from,
                                tarn_place to, uint64_t copies,
                                uint64_t bytes) {
  tarn__synced_counts counts = counts_of(buffer, from, to);
  ck_assert_uint_eq(counts.copies, copies);
  ck_assert_uint_eq(counts.moved, bytes);
}

#endif  // TARN_TESTS_SYNCED_KIT_H_
