#include "synced_scene.h"

#include <string.h>

#include "support/run.h"

sp_counts sp_seen;
sm_root sp_roots[SP_ROOTS];

sm_root *sp_some_root(void) {
  sm_root *r = &sp_roots[sg_below(SP_ROOTS)];
  return r->alive ? r : NULL;
}

sm_handle *sp_some_handle(sm_root *r) {
  size_t first = sg_below(SM_HANDLES);
  for (size_t i = 0; i < SM_HANDLES; i++) {
    sm_handle *h = &r->handles[(first + i) % SM_HANDLES];
    if (h->real != NULL) return h;
  }
  sm_fail("a buffer without a handle");
}

bool sp_is_whole(const sm_root *r, const sm_handle *h) {
  return h->offset == 0 && h->size == r->size;
}

sm_handle *sp_whole_handle(sm_root *r) {
  for (size_t i = 0; i < SM_HANDLES; i++) {
    sm_handle *h = &r->handles[i];
    if (h->real != NULL && sp_is_whole(r, h)) return h;
  }
  return sp_some_handle(r);
}

static size_t some_start(size_t size) {
  size_t start = sg_below(size + 1);
  if (sg_below(2) == 0) start -= start % 64;
  return start;
}

sp_range sp_some_range(const sm_handle *h) {
  sp_range g = {.offset = 0, .size = h->size};
  switch (sg_below(8)) {
    case 0:
      break;
    case 1:
      g.offset = sg_below(h->size + 1);
      g.size = 0;
      break;
    case 2:
      if (h->size > 0) g.offset = sg_below(h->size);
      g.size = h->size > 0 ? 1 : 0;
      break;
    case 3:
      g.offset = some_start(h->size);
      g.size = h->size - g.offset;
      break;
    default:
      g.offset = some_start(h->size);
      g.size = sg_below(h->size - g.offset + 1);
      if (g.size > 64 && sg_below(2) == 0) g.size = 64;
  }
  g.asked =
      g.offset + g.size == h->size && sg_below(2) == 0 ? TARN_ALL : g.size;
  g.at = h->offset + g.offset;
  return g;
}

unsigned sp_some_place(void) {
  if (sg_below(3) == 0) return 0;
  size_t device = 1 + sg_below(sm_place_count - 1);
  return (unsigned)device;
}

// A stream, mostly of the place's device; -1: none.
int sp_some_stream(unsigned place) {
  if (sg_below(5) < 2) return -1;
  if (place == 0 || sg_below(10) == 0) return (int)sg_below(sg_streams);
  unsigned device = (place - 1) % sg_devices;
  return (int)(device + sg_devices * (unsigned)sg_below(2));
}

tarn_stream *sp_stream_at(int stream) {
  return stream < 0 ? NULL : sg_stream[stream];
}

void sp_some_bytes(unsigned char *bytes, size_t size) {
  uint64_t word = sg_random() << 32 | sg_random();
  for (size_t i = 0; i < size; i++) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    bytes[i] = (unsigned char)(word >> 56);
  }
}

void sp_note(sp_kind kind, tarn_status expected) {
  sp_seen.done[kind]++;
  if (expected != TARN_OK) sp_seen.refused[kind]++;
}

static bool is_spared(const sm_root *r, unsigned place, size_t i) {
  return r->written[i] && r->valid[i] != 0 && (r->valid[i] >> place & 1) == 0;
}

void sp_count_kept(sm_root *r, unsigned place, sp_range g, uint32_t mode) {
  bool reads = (mode & TARN_READ) != 0;
  for (size_t i = g.at; i < g.at + g.size; i++) {
    if (!reads) r->discarded[place] += is_spared(r, place, i);
    if (reads && (r->valid[i] >> place & 1) != 0) r->kept[place]++;
  }
}

size_t sp_count_handles(const sm_root *r) {
  size_t count = 0;
  for (size_t i = 0; i < SM_HANDLES; i++)
    count += r->handles[i].real != NULL;
  return count;
}
