// Copies, at once and queued, and filling.
//
// A queued copy is checked twice: when it is queued, which is when its caller
// can be told, and when it runs. A block that has gone in between is a misuse,
// and fails the stream.
#include <string.h>

#include "sim.h"

// Up to here a copy on an idle stream is made at once by whoever asks for it,
// as on cpu, unless copies take time on purpose.
enum { BRIEF_SIZE = 64 << 10 };

typedef struct transfer {
  tarn__sim_end dst;
  tarn__sim_end src;
  size_t size;
  C_Stream stream;  // NULL: at once
  tarn__sim_call call;
} transfer;

_Static_assert(sizeof(transfer) <= sizeof((tarn__queue_op){0}.words),
               "a transfer is an operation's context");

// --- one transfer ----------------------------------------------------------

// Where a transfer's bytes are.
typedef struct route {
  unsigned char *to;
  unsigned char *from;
} route;

static bool overlap(const route *r, size_t size) {
  uintptr_t x = (uintptr_t)r->to;
  uintptr_t y = (uintptr_t)r->from;
  return (x < y ? y - x : x - y) < size;
}

static C_Status check(transfer *t, const tarn__sim_device *device, route *out) {
  C_Status status =
      tarn__sim_resolve(device, t->call, t->size, &t->dst, &out->to);
  if (status != C_SUCCESS) return status;
  status = tarn__sim_resolve(device, t->call, t->size, &t->src, &out->from);
  if (status != C_SUCCESS || !overlap(out, t->size)) return status;
  return tarn__sim_misuse("sim:%d: %s of %zu bytes at %p: its ends overlap",
                          device->home.id, tarn__sim_call_name(t->call),
                          t->size, t->dst.address);
}

static void move(const transfer *t, const route *r) {
  if (!tarn__sim_is_slow()) {
    memcpy(r->to, r->from, t->size);
    return;
  }
  uint64_t begin = tarn__os_now_ns();
  bool across = t->dst.device != t->src.device;
  memcpy(r->to, r->from, t->size);
  tarn__sim_linger(begin, across ? t->size : 0);
}

static void run_transfer(const tarn__queue_op *op) {
  transfer t;
  route r = {NULL, NULL};
  memcpy(&t, op->words, sizeof t);
  const tarn__sim_device *device =
      t.src.device != NULL ? t.src.device : t.dst.device;
  C_Status status = check(&t, device, &r);
  if (status == C_SUCCESS) {
    move(&t, &r);
  } else {
    tarn__queue_fail(t.stream, status, "");
  }
}

static C_Status queue_transfer(const transfer *t) {
  tarn__queue_op op = {
      .run = run_transfer,
      .brief = t->size <= BRIEF_SIZE && !tarn__sim_is_slow(),
  };
  memcpy(op.words, t, sizeof *t);
  return tarn__queue_submit(t->stream, &op);
}

// |device| is whose call it is.
static C_Status make_transfer(transfer *t, const tarn__sim_device *device) {
  route r = {NULL, NULL};
  C_Status status = check(t, device, &r);
  if (status != C_SUCCESS) return status;
  if (t->stream != NULL) return queue_transfer(t);
  move(t, &r);
  return C_SUCCESS;
}

// --- the table: on one device ----------------------------------------------

typedef struct direction {
  bool to_host;
  bool from_host;
} direction;

static const direction H2D = {.from_host = true};
static const direction D2H = {.to_host = true};
static const direction D2D = {.to_host = false};

static C_Status copy(tarn__sim_call call, direction way, const C_Device device,
                     C_Stream stream, void *dst, const void *src, size_t size) {
  tarn__sim_device *sim = NULL;
  C_Status status = tarn__sim_enter(call, device, &sim);
  if (status != C_SUCCESS) return status;
  transfer t = {
      .dst = {.device = way.to_host ? NULL : sim, .address = dst},
      .src = {.device = way.from_host ? NULL : sim, .address = src},
      .size = size,
      .stream = stream,
      .call = call,
  };
  return make_transfer(&t, sim);
}

C_Status tarn__sim_copy_h2d(const C_Device device, void *dst, const void *src,
                            size_t size) {
  return copy(TARN__SIM_memory_copy_h2d, H2D, device, NULL, dst, src, size);
}

C_Status tarn__sim_copy_d2h(const C_Device device, void *dst, const void *src,
                            size_t size) {
  return copy(TARN__SIM_memory_copy_d2h, D2H, device, NULL, dst, src, size);
}

C_Status tarn__sim_copy_d2d(const C_Device device, void *dst, const void *src,
                            size_t size) {
  return copy(TARN__SIM_memory_copy_d2d, D2D, device, NULL, dst, src, size);
}

static C_Status check_stream(tarn__sim_call call, const C_Device device,
                             C_Stream stream) {
  if (tarn__queue_is_stream(device, stream)) return C_SUCCESS;
  return tarn__sim_misuse("sim: %s: no stream of this device",
                          tarn__sim_call_name(call));
}

static C_Status queue_copy(tarn__sim_call call, direction way,
                           const C_Device device, C_Stream stream, void *dst,
                           const void *src, size_t size) {
  C_Status status = check_stream(call, device, stream);
  if (status != C_SUCCESS) return status;
  return copy(call, way, device, stream, dst, src, size);
}

C_Status tarn__sim_async_h2d(const C_Device device, C_Stream stream, void *dst,
                             const void *src, size_t size) {
  return queue_copy(TARN__SIM_async_memory_copy_h2d, H2D, device, stream, dst,
                    src, size);
}

C_Status tarn__sim_async_d2h(const C_Device device, C_Stream stream, void *dst,
                             const void *src, size_t size) {
  return queue_copy(TARN__SIM_async_memory_copy_d2h, D2H, device, stream, dst,
                    src, size);
}

C_Status tarn__sim_async_d2d(const C_Device device, C_Stream stream, void *dst,
                             const void *src, size_t size) {
  return queue_copy(TARN__SIM_async_memory_copy_d2d, D2D, device, stream, dst,
                    src, size);
}

// --- the table: between two ------------------------------------------------

// One call, whichever two devices it is for: it is counted once.
static C_Status copy_p2p(tarn__sim_call call, const C_Device dst_device,
                         const C_Device src_device, C_Stream stream, void *dst,
                         const void *src, size_t size) {
  tarn__sim_device *to = NULL;
  tarn__sim_device *from = NULL;
  C_Status status = tarn__sim_look_up(call, dst_device, &to);
  if (status == C_SUCCESS) status = tarn__sim_enter(call, src_device, &from);
  if (status != C_SUCCESS) return status;
  transfer t = {
      .dst = {.device = to, .address = dst},
      .src = {.device = from, .address = src},
      .size = size,
      .stream = stream,
      .call = call,
  };
  return make_transfer(&t, from);
}

C_Status tarn__sim_copy_p2p(const C_Device dst_device,
                            const C_Device src_device, void *dst,
                            const void *src, size_t size) {
  return copy_p2p(TARN__SIM_memory_copy_p2p, dst_device, src_device, NULL, dst,
                  src, size);
}

C_Status tarn__sim_async_p2p(const C_Device dst_device,
                             const C_Device src_device, C_Stream stream,
                             void *dst, const void *src, size_t size) {
  tarn__sim_call call = TARN__SIM_async_memory_copy_p2p;
  C_Status status = check_stream(call, src_device, stream);
  if (status != C_SUCCESS) return status;
  return copy_p2p(call, dst_device, src_device, stream, dst, src, size);
}

// --- filling ---------------------------------------------------------------

C_Status tarn__sim_memory_set(const C_Device device, void *ptr,
                              unsigned char value, size_t size) {
  tarn__sim_device *sim = NULL;
  tarn__sim_call call = TARN__SIM_device_memory_set;
  C_Status status = tarn__sim_enter(call, device, &sim);
  if (status != C_SUCCESS) return status;
  tarn__sim_end end = {.device = sim, .address = ptr};
  unsigned char *bytes = NULL;
  status = tarn__sim_resolve(sim, call, size, &end, &bytes);
  if (status != C_SUCCESS) return status;
  uint64_t begin = tarn__sim_is_slow() ? tarn__os_now_ns() : 0;
  memset(bytes, value, size);
  if (tarn__sim_is_slow()) tarn__sim_linger(begin, 0);
  return C_SUCCESS;
}
