// The tools of checks: blocks, buffers, streams and events that are given back
// after the check, bytes that differ, and work on streams.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

const size_t check_lengths[] = {1,    2,    3,    5,    7,     15,         16,
                                17,   63,   64,   65,   255,   256,        257,
                                1001, 4095, 4096, 4097, 65537, MIB(1) + 1, 0};

// ---------------------------------------------------------------------------
// Blocks
// ---------------------------------------------------------------------------

bool check_enter(conform_target *t, struct C_Device_st *device) {
  if (t->abi->set_device != NULL) CALL(t, set_device, device);
  return true;
}

bool check_take_of(conform_target *t, struct C_Device_st *device, size_t size,
                   void **out) {
  *out = NULL;
  C_Status got = t->abi->device_memory_allocate(device, out, size);
  if (got != C_SUCCESS && got != C_WARNING) {
    return conform_fail(
        t, "device_memory_allocate of %zu bytes answered %s, not C_SUCCESS",
        size, conform_status(got));
  }
  EXPECT(t, *out != NULL,
         "device_memory_allocate of %zu bytes answered %s and a NULL pointer",
         size, conform_status(got));
  EXPECT(t, t->block_count < CHECK_BLOCKS_MAX, "too many blocks in one check");
  t->blocks[t->block_count++] = (check_block){device, *out, size};
  return true;
}

bool check_take(conform_target *t, size_t size, void **out) {
  return check_take_of(t, &t->device, size, out);
}

void check_forget(conform_target *t, const void *ptr) {
  for (size_t i = 0; i < t->block_count; i++) {
    if (t->blocks[i].ptr != ptr) continue;
    t->blocks[i] = t->blocks[--t->block_count];
    return;
  }
}

static bool give(conform_target *t, const check_block *block) {
  C_Status got =
      t->abi->device_memory_deallocate(block->device, block->ptr, block->size);
  if (got == C_SUCCESS || got == C_WARNING) return true;
  return conform_fail(
      t,
      "device_memory_deallocate of %zu bytes at %p answered %s, not "
      "C_SUCCESS",
      block->size, block->ptr, conform_status(got));
}

bool check_give(conform_target *t, void *ptr) {
  for (size_t i = 0; i < t->block_count; i++) {
    if (t->blocks[i].ptr != ptr) continue;
    check_block block = t->blocks[i];
    check_forget(t, ptr);
    return give(t, &block);
  }
  return conform_fail(t, "the check gives back what it never took");
}

bool check_has_room(conform_target *t, size_t size) {
  size_t total = 0;
  size_t available = 0;
  size_t most = SIZE_MAX;
  CALL(t, device_memory_stats, &t->device, &total, &available);
  if (available < size + size / 4) {
    return conform_skip(t, "wants %zu MiB; %zu MiB are free", size >> 20,
                        available >> 20);
  }
  // Its answer has a check of its own.
  if (t->abi->device_max_alloc_size == NULL ||
      t->abi->device_max_alloc_size(&t->device, &most) > C_WARNING ||
      most == 0) {
    most = SIZE_MAX;
  }
  if (most < size) {
    return conform_skip(t, "wants %zu MiB; device_max_alloc_size is %zu MiB",
                        size >> 20, most >> 20);
  }
  return true;
}

// Three blocks that are not written to: only the account can change.
bool check_keeps_account(conform_target *t, bool *out) {
  size_t all = 0;
  size_t before = 0;
  size_t after = 0;
  void *block = NULL;
  size_t size = t->total / 16 < MIB(64) ? t->total / 16 : MIB(64);
  *out = size > 0;
  for (int i = 0; i < 3 && *out; i++) {
    CALL(t, device_memory_stats, &t->device, &all, &before);
    if (!check_take(t, size, &block)) return false;
    CALL(t, device_memory_stats, &t->device, &all, &after);
    if (!check_give(t, block)) return false;
    *out = before > after && before - after >= size &&
           before - after <= size + size / 8 + MIB(2);
  }
  return true;
}

// ---------------------------------------------------------------------------
// Buffers, streams, events
// ---------------------------------------------------------------------------

bool check_buffer(conform_target *t, size_t size, unsigned char **out) {
  *out = calloc(1, size);
  if (*out == NULL || t->buffer_count == CHECK_BUFFERS_MAX) {
    free(*out);
    *out = NULL;
    return conform_skip(t, "the host has no %zu bytes for the check", size);
  }
  t->buffers[t->buffer_count++] = *out;
  return true;
}

bool check_stream(conform_target *t, C_Stream *out) {
  *out = NULL;
  CALL(t, create_stream, &t->device, out);
  if (*out == NULL) {
    return conform_skip(t, "create_stream sets no handle: all is synchronous");
  }
  EXPECT(t, t->stream_count < CHECK_HANDLES_MAX,
         "too many streams in one check");
  t->streams[t->stream_count++] = *out;
  return true;
}

bool check_event(conform_target *t, C_Event *out) {
  *out = NULL;
  CALL(t, create_event, &t->device, out);
  if (*out == NULL) {
    return conform_skip(t, "create_event sets no handle: all is synchronous");
  }
  EXPECT(t, t->event_count < CHECK_HANDLES_MAX, "too many events in one check");
  t->events[t->event_count++] = *out;
  return true;
}

void check_forget_stream(conform_target *t, C_Stream stream) {
  for (size_t i = 0; i < t->stream_count; i++) {
    if (t->streams[i] != stream) continue;
    t->streams[i] = t->streams[--t->stream_count];
    return;
  }
}

void check_forget_event(conform_target *t, C_Event event) {
  for (size_t i = 0; i < t->event_count; i++) {
    if (t->events[i] != event) continue;
    t->events[i] = t->events[--t->event_count];
    return;
  }
}

static bool tidy_handles(conform_target *t) {
  while (t->stream_count > 0) {
    CALL(t, destroy_stream, &t->device, t->streams[--t->stream_count]);
  }
  while (t->event_count > 0) {
    CALL(t, destroy_event, &t->device, t->events[--t->event_count]);
  }
  return true;
}

// Streams first: queued work may use blocks and buffers.
bool check_tidy(conform_target *t) {
  if (!tidy_handles(t)) return false;
  while (t->block_count > 0) {
    if (!give(t, &t->blocks[--t->block_count])) return false;
  }
  while (t->buffer_count > 0)
    free(t->buffers[--t->buffer_count]);
  return true;
}

bool check_wait(conform_target *t, C_Stream stream) {
  CALL(t, synchronize_stream, &t->device, stream);
  return true;
}

// ---------------------------------------------------------------------------
// Bytes
// ---------------------------------------------------------------------------

// No period of a power of two: a copy that lands a page off is seen.
void check_fill(unsigned char *bytes, size_t size, unsigned seed) {
  uint64_t state = UINT64_C(0x9e3779b97f4a7c15) * (seed + UINT64_C(1));
  for (size_t i = 0; i < size; i++) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    bytes[i] = (unsigned char)(state >> 56);
  }
}

bool check_same(conform_target *t, const char *what, const unsigned char *got,
                const unsigned char *expected, size_t size) {
  if (memcmp(got, expected, size) == 0) return true;
  size_t i = 0;
  while (i + 1 < size && got[i] == expected[i])
    i++;
  return conform_fail(t, "%s: byte %zu of %zu is 0x%02x, not 0x%02x", what, i,
                      size, got[i], expected[i]);
}

bool check_is_filled(conform_target *t, const char *what,
                     const unsigned char *got, size_t size, unsigned seed) {
  unsigned char *expected = malloc(size);
  if (expected == NULL) return conform_skip(t, "the host has no memory left");
  check_fill(expected, size, seed);
  bool same = check_same(t, what, got, expected, size);
  free(expected);
  return same;
}

bool check_put(conform_target *t, void *dst, const void *src, size_t size) {
  CALL(t, memory_copy_h2d, &t->device, dst, src, size);
  return true;
}

bool check_get(conform_target *t, void *dst, const void *src, size_t size) {
  CALL(t, memory_copy_d2h, &t->device, dst, src, size);
  return true;
}

bool check_write(conform_target *t, void *dst, size_t size, unsigned seed) {
  unsigned char *bytes = malloc(size);
  if (bytes == NULL) return conform_skip(t, "the host has no memory left");
  check_fill(bytes, size, seed);
  bool done = check_put(t, dst, bytes, size);
  free(bytes);
  return done;
}

bool check_verify(conform_target *t, const char *what, const void *src,
                  size_t size, unsigned seed) {
  unsigned char *bytes = calloc(1, size);
  if (bytes == NULL) return conform_skip(t, "the host has no memory left");
  bool same = check_get(t, bytes, src, size) &&
              check_is_filled(t, what, bytes, size, seed);
  free(bytes);
  return same;
}

bool check_use(conform_target *t, const char *what, size_t size,
               unsigned seed) {
  void *block = NULL;
  return check_take(t, size, &block) && check_write(t, block, size, seed) &&
         check_verify(t, what, block, size, seed) && check_give(t, block);
}

// ---------------------------------------------------------------------------
// Work
// ---------------------------------------------------------------------------

bool check_make_work(conform_target *t, size_t size, unsigned seed,
                     check_work *w) {
  w->size = size;
  if (!check_take(t, size, &w->block) || !check_buffer(t, size, &w->bytes) ||
      !check_buffer(t, size, &w->back)) {
    return false;
  }
  assert(w->bytes != NULL);
  check_fill(w->bytes, size, seed);
  return true;
}

bool check_queue_put(conform_target *t, const check_work *w, int times) {
  for (int i = 0; i < times; i++) {
    CALL(t, async_memory_copy_h2d, &t->device, w->stream, w->block, w->bytes,
         w->size);
  }
  return true;
}

bool check_queue_get(conform_target *t, const check_work *w) {
  CALL(t, async_memory_copy_d2h, &t->device, w->stream, w->back, w->block,
       w->size);
  return true;
}

bool check_queue(conform_target *t, const check_work *w, int times) {
  return check_queue_put(t, w, times) && check_queue_get(t, w);
}

bool check_came_back(conform_target *t, const check_work *w, const char *what) {
  return check_same(t, what, w->back, w->bytes, w->size);
}
