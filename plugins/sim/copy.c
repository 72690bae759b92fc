// Copies, at once and queued, and filling. Most are within blocks, in one
// piece; the code for other cases is noinline.
//
// A queued copy is checked twice: when it is queued, so that its caller gets
// the error, and when it runs. A block that was freed in between is a misuse,
// and fails the stream.
#include <string.h>

#include "sim.h"

// The calling thread itself makes copies of up to this size on an idle stream,
// as on cpu, unless copies are slow on purpose.
enum { BRIEF_SIZE = 64 << 10 };

typedef struct transfer {
  tarn__sim_end dst;
  tarn__sim_end src;
  size_t size;
  C_Stream stream;  // NULL: at once
  tarn__sim_call call;
} transfer;

_Static_assert(sizeof(transfer) <= sizeof((tarn__common_queue_op){0}.words),
               "a transfer is an operation's context");

// --- one transfer ----------------------------------------------------------

// Where a transfer's bytes are: all of them, or the first that stand together.
typedef struct route {
  tarn__sim_piece to;
  tarn__sim_piece from;
} route;

static size_t lesser(size_t a, size_t b) {
  return a < b ? a : b;
}

static bool overlap(const void *a, const void *b, size_t size) {
  uintptr_t x = (uintptr_t)a;
  uintptr_t y = (uintptr_t)b;
  return (x < y ? y - x : x - y) < size;
}

static bool is_whole(const route *r, size_t size) {
  return r->to.size == size && r->from.size == size;
}

// Mapped bytes may overlap by their addresses and, where memory is mapped
// twice, without that; the first piece tells then, not the others.
__attribute__((noinline)) static bool pieces_overlap(const transfer *t,
                                                     const route *r) {
  size_t here = lesser(r->to.size, r->from.size);
  return overlap(r->to.bytes, r->from.bytes, here) ||
         overlap(t->dst.address, t->src.address, t->size);
}

static bool ends_overlap(const transfer *t, const route *r) {
  return is_whole(r, t->size) ? overlap(r->to.bytes, r->from.bytes, t->size)
                              : pieces_overlap(t, r);
}

static C_Status check(transfer *t, const tarn__sim_device *device, route *out) {
  C_Status status = tarn__sim_resolve(device, t->call, TARN__SIM_TO_WRITE,
                                      t->size, &t->dst, &out->to);
  if (status != C_SUCCESS) return status;
  status = tarn__sim_resolve(device, t->call, 0, t->size, &t->src, &out->from);
  if (status != C_SUCCESS || !ends_overlap(t, out)) return status;
  return tarn__sim_misuse("sim:%d: %s of %zu bytes at %p: its ends overlap",
                          device->home.id, tarn__sim_call_name(t->call),
                          t->size, t->dst.address);
}

// An end that is used up piece by piece.
typedef struct walk {
  tarn__sim_call call;
  unsigned how;
  tarn__sim_end end;
  size_t left;
  tarn__sim_piece piece;
} walk;

static walk walk_along(tarn__sim_call call, unsigned how,
                       const tarn__sim_end *end, size_t size,
                       tarn__sim_piece first) {
  tarn__sim_end whole = {end->device, end->address, 0};
  return (walk){call, how | TARN__SIM_PIECE, whole, size, first};
}

// |size| bytes of the piece are done; where that was all of it, the next one is
// looked for.
static C_Status advance(walk *w, size_t size) {
  w->end.address = (const char *)w->end.address + size;
  w->end.serial = 0;
  w->left -= size;
  w->piece.bytes += size;
  w->piece.size -= size;
  if (w->piece.size != 0 || w->left == 0) return C_SUCCESS;
  return tarn__sim_resolve(w->end.device, w->call, w->how, w->left, &w->end,
                           &w->piece);
}

// One end or both are in several pieces. All were mapped a moment ago; a piece
// that another thread unmaps now is missed here. Two mappings may be of the
// same bytes, hence memmove.
__attribute__((noinline)) static C_Status move_pieces(const transfer *t,
                                                      const route *r) {
  walk to = walk_along(t->call, TARN__SIM_TO_WRITE, &t->dst, t->size, r->to);
  walk from = walk_along(t->call, 0, &t->src, t->size, r->from);
  C_Status status = C_SUCCESS;
  while (status == C_SUCCESS && to.left != 0) {
    size_t now = lesser(to.piece.size, from.piece.size);
    memmove(to.piece.bytes, from.piece.bytes, now);
    status = advance(&to, now);
    if (status == C_SUCCESS) status = advance(&from, now);
  }
  return status;
}

static inline C_Status move_bytes(const transfer *t, const route *r) {
  if (!is_whole(r, t->size)) return move_pieces(t, r);
  memcpy(r->to.bytes, r->from.bytes, t->size);
  return C_SUCCESS;
}

__attribute__((noinline)) static C_Status move_slowly(const transfer *t,
                                                      const route *r) {
  uint64_t begin = tarn__os_now_ns();
  bool across = t->dst.device != t->src.device;
  C_Status status = move_bytes(t, r);
  tarn__sim_linger(begin, across ? t->size : 0);
  return status;
}

static C_Status move(const transfer *t, const route *r) {
  return tarn__sim_is_slow() ? move_slowly(t, r) : move_bytes(t, r);
}

static void run_transfer(const tarn__common_queue_op *op) {
  transfer t;
  route r = {.to = {NULL, 0}};
  memcpy(&t, op->words, sizeof t);
  const tarn__sim_device *device =
      t.src.device != NULL ? t.src.device : t.dst.device;
  C_Status status = check(&t, device, &r);
  if (status == C_SUCCESS) status = move(&t, &r);
  if (status != C_SUCCESS) {
    tarn__queue_fail(t.stream, status, tarn__text_line());
  }
}

static C_Status queue_transfer(const transfer *t) {
  tarn__common_queue_op op = {
      .run = run_transfer,
      .brief = t->size <= BRIEF_SIZE && !tarn__sim_is_slow(),
  };
  memcpy(op.words, t, sizeof *t);
  return tarn__queue_submit(t->stream, &op);
}

// |device| is whose call it is.
static C_Status make_transfer(transfer *t, const tarn__sim_device *device) {
  route r = {.to = {NULL, 0}};
  C_Status status = check(t, device, &r);
  if (status != C_SUCCESS) return status;
  return t->stream != NULL ? queue_transfer(t) : move(t, &r);
}

// --- the table: on one device ----------------------------------------------

// One end may be the host's.
typedef enum direction { H2D, D2H, D2D } direction;

static C_Status copy(tarn__sim_call call, direction way, const C_Device device,
                     C_Stream stream, void *dst, const void *src, size_t size) {
  tarn__sim_device *sim = NULL;
  C_Status status = tarn__sim_enter(call, device, &sim);
  if (status != C_SUCCESS) return status;
  transfer t = {
      .dst = {.device = way == D2H ? NULL : sim, .address = dst},
      .src = {.device = way == H2D ? NULL : sim, .address = src},
      .size = size,
      .stream = stream,
      .call = call,
  };
  return make_transfer(&t, sim);
}

static C_Status check_stream(tarn__sim_call call, const C_Device device,
                             C_Stream stream) {
  if (tarn__queue_is_stream(device, stream)) return C_SUCCESS;
  return tarn__sim_misuse("sim: %s: no stream of this device",
                          tarn__sim_call_name(call));
}

#define DEFINE_COPIES(name, way)                                              \
  C_Status tarn__sim_memory_copy_##name(const C_Device device, void *dst,     \
                                        const void *src, size_t size) {       \
    return copy(TARN__SIM_memory_copy_##name, way, device, NULL, dst, src,    \
                size);                                                        \
  }                                                                           \
  C_Status tarn__sim_async_memory_copy_##name(const C_Device device,          \
                                              C_Stream stream, void *dst,     \
                                              const void *src, size_t size) { \
    tarn__sim_call call = TARN__SIM_async_memory_copy_##name;                 \
    C_Status status = check_stream(call, device, stream);                     \
    if (status != C_SUCCESS) return status;                                   \
    return copy(call, way, device, stream, dst, src, size);                   \
  }

DEFINE_COPIES(h2d, H2D)
DEFINE_COPIES(d2h, D2H)
DEFINE_COPIES(d2d, D2D)

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

C_Status tarn__sim_memory_copy_p2p(const C_Device dst_device,
                                   const C_Device src_device, void *dst,
                                   const void *src, size_t size) {
  return copy_p2p(TARN__SIM_memory_copy_p2p, dst_device, src_device, NULL, dst,
                  src, size);
}

C_Status tarn__sim_async_memory_copy_p2p(const C_Device dst_device,
                                         const C_Device src_device,
                                         C_Stream stream, void *dst,
                                         const void *src, size_t size) {
  tarn__sim_call call = TARN__SIM_async_memory_copy_p2p;
  C_Status status = check_stream(call, src_device, stream);
  if (status != C_SUCCESS) return status;
  return copy_p2p(call, dst_device, src_device, stream, dst, src, size);
}

// --- filling ---------------------------------------------------------------

static C_Status fill(const tarn__sim_device *device, tarn__sim_end *end,
                     unsigned char value, size_t size) {
  tarn__sim_call call = TARN__SIM_device_memory_set;
  tarn__sim_piece first = {NULL, 0};
  C_Status status =
      tarn__sim_resolve(device, call, TARN__SIM_TO_WRITE, size, end, &first);
  if (status != C_SUCCESS) return status;
  walk w = walk_along(call, TARN__SIM_TO_WRITE, end, size, first);
  while (status == C_SUCCESS && w.left != 0) {
    memset(w.piece.bytes, value, w.piece.size);
    status = advance(&w, w.piece.size);
  }
  return status;
}

C_Status tarn__sim_device_memory_set(const C_Device device, void *ptr,
                                     unsigned char value, size_t size) {
  tarn__sim_device *sim = NULL;
  C_Status status = tarn__sim_enter(TARN__SIM_device_memory_set, device, &sim);
  if (status != C_SUCCESS) return status;
  tarn__sim_end end = {.device = sim, .address = ptr};
  uint64_t begin = tarn__sim_is_slow() ? tarn__os_now_ns() : 0;
  status = fill(sim, &end, value, size);
  if (status == C_SUCCESS && tarn__sim_is_slow()) tarn__sim_linger(begin, 0);
  return status;
}
