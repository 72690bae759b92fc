// A copy from somewhere to somewhere, and whether it was right.
#include "route.h"

#include <stdio.h>
#include <string.h>

const char *route_name(const route *r) {
  static const char *const names[] = {
      "async_memory_copy_h2d",
      "async_memory_copy_d2h",
      "async_memory_copy_d2d",
      "async_memory_copy_p2p",
  };
  static const size_t prefix = sizeof "async_" - 1;
  const char *name = names[r->kind];
  return r->stream != NULL ? name : name + prefix;
}

static struct C_Device_st *to_of(conform_target *t, const route *r) {
  return r->to != NULL ? r->to : &t->device;
}

static struct C_Device_st *from_of(conform_target *t, const route *r) {
  return r->from != NULL ? r->from : &t->device;
}

static C_Status call_now(conform_target *t, const route *r, void *dst,
                         const void *src, size_t size) {
  const C_DeviceInterface *abi = t->abi;
  switch (r->kind) {
    case ROUTE_H2D:
      return abi->memory_copy_h2d(to_of(t, r), dst, src, size);
    case ROUTE_D2H:
      return abi->memory_copy_d2h(from_of(t, r), dst, src, size);
    case ROUTE_D2D:
      return abi->memory_copy_d2d(to_of(t, r), dst, src, size);
    case ROUTE_P2P:
      break;
  }
  return abi->memory_copy_p2p(to_of(t, r), from_of(t, r), dst, src, size);
}

C_Status route_call(conform_target *t, const route *r, void *dst,
                    const void *src, size_t size) {
  const C_DeviceInterface *abi = t->abi;
  if (r->stream == NULL) return call_now(t, r, dst, src, size);
  switch (r->kind) {
    case ROUTE_H2D:
      return abi->async_memory_copy_h2d(to_of(t, r), r->stream, dst, src, size);
    case ROUTE_D2H:
      return abi->async_memory_copy_d2h(from_of(t, r), r->stream, dst, src,
                                        size);
    case ROUTE_D2D:
      return abi->async_memory_copy_d2d(to_of(t, r), r->stream, dst, src, size);
    case ROUTE_P2P:
      break;
  }
  return abi->async_memory_copy_p2p(to_of(t, r), from_of(t, r), r->stream, dst,
                                    src, size);
}

bool route_copy(conform_target *t, const route *r, void *dst, const void *src,
                size_t size) {
  return conform_went_well(t, route_name(r), route_call(t, r, dst, src, size));
}

// ---------------------------------------------------------------------------
// Both ends
// ---------------------------------------------------------------------------

static bool is_host_end(const route *r, bool destination) {
  return r->kind == (destination ? ROUTE_D2H : ROUTE_H2D);
}

// |room| bytes where the route begins or ends, filled from |seed|. Host memory
// is at an odd address, as it may be.
static bool make_end(conform_target *t, const route *r, bool destination,
                     size_t room, unsigned seed, void **out) {
  unsigned char *bytes = NULL;
  if (!check_buffer(t, room + 1, &bytes)) return false;
  check_fill(bytes + 1, room, seed);
  *out = bytes + 1;
  if (is_host_end(r, destination)) return true;
  struct C_Device_st *device = destination ? to_of(t, r) : from_of(t, r);
  if (!check_enter(t, device) || !check_take_of(t, device, room, out)) {
    return false;
  }
  CALL(t, memory_copy_h2d, device, *out, bytes + 1, room);
  return true;
}

// The present bytes of the destination, wherever it is.
static bool read_end(conform_target *t, const route *r, void *dst, size_t room,
                     unsigned char *out) {
  if (is_host_end(r, true)) {
    memcpy(out, dst, room);
    return true;
  }
  CALL(t, memory_copy_d2h, to_of(t, r), out, dst, room);
  return true;
}

// A copy of |size| bytes from |src_at| to |dst_at|, within |room| bytes at
// either end.
typedef struct route_span {
  size_t dst_at;
  size_t src_at;
  size_t size;
  size_t room;
} route_span;

typedef struct ends {
  void *dst;
  void *src;
  unsigned char *expected;
  unsigned char *got;
} ends;

enum { SRC_SEED = 21, DST_SEED = 22 };

static bool make_ends(conform_target *t, const route *r, size_t room,
                      ends *out) {
  return check_buffer(t, room, &out->expected) &&
         check_buffer(t, room, &out->got) &&
         make_end(t, r, true, room, DST_SEED, &out->dst) &&
         make_end(t, r, false, room, SRC_SEED, &out->src) &&
         check_enter(t, &t->device);
}

// The bytes that the destination should hold, made on the host.
static void expect(const ends *e, route_span span) {
  check_fill(e->got, span.room, SRC_SEED);
  check_fill(e->expected, span.room, DST_SEED);
  memcpy(e->expected + span.dst_at, e->got + span.src_at, span.size);
}

static bool refill(conform_target *t, const route *r, const ends *e,
                   size_t room) {
  check_fill(e->got, room, DST_SEED);
  if (is_host_end(r, true)) {
    memcpy(e->dst, e->got, room);
    return true;
  }
  CALL(t, memory_copy_h2d, to_of(t, r), e->dst, e->got, room);
  return true;
}

// Copies, waits for the stream, and compares all of the destination.
static bool check_on(conform_target *t, const route *r, const ends *e,
                     route_span span) {
  char what[CONFORM_DETAIL_SIZE / 2];
  if (!refill(t, r, e, span.room)) return false;
  expect(e, span);
  if (!route_copy(t, r, check_at(e->dst, span.dst_at),
                  check_at(e->src, span.src_at), span.size) ||
      (r->stream != NULL && !check_wait(t, r->stream)) ||
      !read_end(t, r, e->dst, span.room, e->got)) {
    return false;
  }
  snprintf(what, sizeof what, "%s of %zu bytes from offset %zu to offset %zu",
           route_name(r), span.size, span.src_at, span.dst_at);
  return check_same(t, what, e->got, e->expected, span.room);
}

// ---------------------------------------------------------------------------
// Checks
// ---------------------------------------------------------------------------

// The route that the check is run with.
static bool open_route(conform_target *t, route *r) {
  *r = (route){.kind = t->with & 7};
  if (r->kind == ROUTE_P2P) {
    bool back = (t->with & ROUTE_FROM_OTHER) != 0;
    r->to = back ? &t->device : &t->other;
    r->from = back ? &t->other : &t->device;
  }
  return (t->with & ROUTE_QUEUED) == 0 || check_stream(t, &r->stream);
}

bool route_run_large(conform_target *t) {
  route r;
  ends e;
  route_span span = {3, 5, MIB(16) + 1, MIB(16) + 64};
  size_t blocks = t->with == ROUTE_P2P ? 1 : 2;  // on the tested device
  return open_route(t, &r) && check_has_room(t, blocks * span.room) &&
         make_ends(t, &r, span.room, &e) && check_on(t, &r, &e, span);
}

bool route_run_lengths(conform_target *t) {
  route r;
  ends small;
  ends large;
  enum { SMALL = 8192 };
  if (!open_route(t, &r) || !make_ends(t, &r, SMALL, &small) ||
      !make_ends(t, &r, MIB(1) + 64, &large)) {
    return false;
  }
  for (size_t i = 0; check_lengths[i] != 0; i++) {
    size_t size = check_lengths[i];
    bool fits = size <= SMALL;
    route_span span = {0, 0, size, fits ? SMALL : MIB(1) + 64};
    if (!check_on(t, &r, fits ? &small : &large, span)) return false;
  }
  return true;
}

bool route_run_offsets(conform_target *t) {
  route r;
  static const route_span spans[] = {
      {1, 0, 100, 8192},     {0, 1, 100, 8192},      {7, 3, 1, 8192},
      {1001, 17, 999, 8192}, {4095, 4096, 2, 8192},  {4096, 0, 4096, 8192},
      {8191, 8191, 1, 8192}, {513, 2047, 4097, 8192}};
  ends e;
  if (!open_route(t, &r) || !make_ends(t, &r, 8192, &e)) return false;
  for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
    if (!check_on(t, &r, &e, spans[i])) return false;
  }
  return true;
}
