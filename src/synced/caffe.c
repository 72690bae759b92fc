// Caffe's SyncedMemory: four states between the host and one device, on top of
// accesses.
//
// This file keeps no state. The head follows from the map of validity. Each
// call is an access that begins and ends within the call, and the table in
// tarn/synced.h follows from that:
//
//   cpu_data     = READ at the host         UNINIT ──► CPU ──► SYNCED
//   mutable_cpu  = READ_WRITE at the host              ▲         ▲
//   gpu_data     = READ at the device                  ▼         │
//   mutable_gpu  = READ_WRITE there         UNINIT ──► GPU ──────┘
//
// One addition: unwritten bytes read as zeros at any place and do not count for
// the head. Caffe's const calls lead to CPU or GPU, and later reads elsewhere
// copy. So a const call on a range without written bytes makes its zeros
// contents.
#include "base/status.h"
#include "synced/protect.h"
#include "synced/sides.h"
#include "synced/work.h"

// --- the head ----------------------------------------------------------------

typedef struct pair {
  uint64_t cpu;  // bits of the two sides; 0: it has none
  uint64_t gpu;
} pair;

static pair sides_of(const tarn__synced_core *core) {
  pair sides = {.cpu = tarn__side_bit(TARN__HOST_SIDE)};
  if (core->device == NULL) return sides;
  uint32_t gpu = tarn__side_find(core, tarn_place_on(core->device));
  if (gpu != TARN__NO_SIDE) sides.gpu = tarn__side_bit(gpu);
  return sides;
}

// Where the bytes of a written span are now. While they are still being written
// at the one place and copied to the other, they are said to be at one only.
static uint64_t whereabouts(const tarn__synced_span *span, pair sides) {
  uint64_t newest = span->valid;
  uint64_t landed = newest & ~tarn__span_pending(span);
  if (landed != 0 || sides.cpu == sides.gpu) return landed | newest * !landed;
  return (newest & sides.gpu) != 0 ? sides.gpu : newest;
}

static tarn_synced_state name_state(uint64_t where, pair sides) {
  bool cpu = (where & sides.cpu) != 0;
  bool gpu = (where & sides.gpu) != 0;
  if (cpu && gpu) return TARN_SYNCED;
  if (cpu) return TARN_HEAD_AT_CPU;
  return gpu ? TARN_HEAD_AT_GPU : TARN_HEAD_ELSEWHERE;
}

// With the lock. A place counts if it has all that was written.
static tarn_synced_state head_of(const tarn__synced_core *core, size_t start,
                                 size_t end) {
  pair sides = sides_of(core);
  uint64_t where = UINT64_MAX;
  bool written = false;
  tarn__spans_each (span, &core->spans, start, end) {
    if (!span->written) continue;
    written = true;
    where &= whereabouts(span, sides);
  }
  return written ? name_state(where, sides) : TARN_UNINITIALIZED;
}

tarn_synced_state tarn_synced_head(tarn_synced *buffer) {
  if (tarn__synced_check(buffer) != TARN_OK) return TARN_UNINITIALIZED;
  tarn__synced_core *core = buffer->core;
  tarn__core_enter(core);
  tarn__core_settle(core);
  tarn_synced_state head =
      head_of(core, buffer->offset, buffer->offset + buffer->size);
  tarn__core_leave(core);
  return head;
}

const char *tarn_synced_state_name(tarn_synced_state state) {
  static const char *const names[] = {
      [TARN_UNINITIALIZED] = "UNINITIALIZED",
      [TARN_HEAD_AT_CPU] = "HEAD_AT_CPU",
      [TARN_HEAD_AT_GPU] = "HEAD_AT_GPU",
      [TARN_SYNCED] = "SYNCED",
      [TARN_HEAD_ELSEWHERE] = "HEAD_ELSEWHERE",
  };
  size_t number = (size_t)state;
  return number < sizeof names / sizeof names[0] ? names[number] : NULL;
}

// --- data --------------------------------------------------------------------

// Makes the zeros that |access| reads contents, if there is nothing else in its
// range. They are valid at its place, and no other access writes while it is
// open.
static void adopt_zeros(const tarn_access *access) {
  tarn__synced_core *core = access->buffer->core;
  size_t end = access->offset + access->size;
  bool unwritten = true;
  tarn__core_enter(core);
  tarn__spans_each (span, &core->spans, access->offset, end) {
    if (span->written) unwritten = false;
  }
  tarn__spans_each (span, &core->spans, access->offset, end) {
    if (unwritten) tarn__span_set(core, span, span->valid, true);
  }
  tarn__core_leave(core);
}

// The pointer is good for reads and writes until the buffer is called again.
static void keep_writable(const tarn_synced *buffer) {
  tarn__synced_core *core = buffer->core;
  tarn__core_enter(core);
  tarn__protect_loosen(core, buffer->offset, buffer->offset + buffer->size);
  tarn__core_leave(core);
}

// An access of the whole range, over when it returns.
static tarn_status visit(tarn_synced *buffer, tarn_place place, uint32_t mode,
                         tarn__synced_end *out_data) {
  tarn_access access;
  *out_data = (tarn__synced_end){.address = 0};
  TARN__TRY(tarn_synced_begin(buffer, 0, TARN_ALL, place, mode, NULL, &access));
  tarn__synced_end data = {.address = access.address,
                           .pointer = access.pointer};
  if (mode == TARN_READ) adopt_zeros(&access);
  TARN__TRY(tarn_synced_end(&access));
  *out_data = data;
  bool at_host = tarn_place_equal(tarn__route_place(place), TARN_HOST);
  if (at_host && mode != TARN_READ) keep_writable(buffer);
  return TARN_OK;
}

static tarn_status visit_cpu(tarn_synced *buffer, uint32_t mode,
                             void **out_data) {
  tarn__synced_end data;
  tarn_status status = visit(buffer, TARN_HOST, mode, &data);
  *out_data = data.pointer;
  return status;
}

static tarn_status visit_gpu(tarn_synced *buffer, uint32_t mode,
                             tarn_addr *out_data) {
  if (out_data == NULL) return tarn__fail(TARN_E_INVALID, "synced: NULL");
  *out_data = 0;
  tarn_place place;
  tarn__synced_end data;
  TARN__TRY(tarn__synced_device(buffer, &place));
  tarn_status status = visit(buffer, place, mode, &data);
  *out_data = data.address;
  return status;
}

tarn_status tarn_synced_cpu_data(tarn_synced *buffer, const void **out_data) {
  if (out_data == NULL) return tarn__fail(TARN_E_INVALID, "synced: NULL");
  void *data = NULL;
  tarn_status status = visit_cpu(buffer, TARN_READ, &data);
  *out_data = data;
  return status;
}

tarn_status tarn_synced_mutable_cpu_data(tarn_synced *buffer, void **out_data) {
  if (out_data == NULL) return tarn__fail(TARN_E_INVALID, "synced: NULL");
  return visit_cpu(buffer, TARN_READ_WRITE, out_data);
}

tarn_status tarn_synced_gpu_data(tarn_synced *buffer, tarn_addr *out_data) {
  return visit_gpu(buffer, TARN_READ, out_data);
}

tarn_status tarn_synced_mutable_gpu_data(tarn_synced *buffer,
                                         tarn_addr *out_data) {
  return visit_gpu(buffer, TARN_READ_WRITE, out_data);
}

// Caffe's to_cpu() and to_gpu() copy into the memory that was set.
static const tarn_wrap_options set_options = {.struct_size = sizeof set_options,
                                              .flags = TARN_WRAP_FILL};

tarn_status tarn_synced_set_cpu_data(tarn_synced *buffer, void *data) {
  return tarn_synced_wrap(buffer, TARN_HOST, (uintptr_t)data, &set_options);
}

tarn_status tarn_synced_set_gpu_data(tarn_synced *buffer, tarn_addr data) {
  tarn_place place;
  TARN__TRY(tarn__synced_device(buffer, &place));
  return tarn_synced_wrap(buffer, place, data, &set_options);
}

// --- push --------------------------------------------------------------------

// Where the host and the device are one place, SYNCED is as good.
static tarn_status check_head(tarn_synced *buffer, tarn_place device) {
  tarn_synced_state head = tarn_synced_head(buffer);
  bool one_place = tarn_place_equal(tarn__route_place(device), TARN_HOST);
  if (head == TARN_HEAD_AT_CPU) return TARN_OK;
  if (head == TARN_SYNCED && one_place) return TARN_OK;
  char text[TARN__CORE_TEXT];
  return tarn__fail(TARN_E_STATE, "%s: the head is %s, not HEAD_AT_CPU",
                    tarn__core_text(buffer->core, text),
                    tarn_synced_state_name(head));
}

tarn_status tarn_synced_async_gpu_push(tarn_synced *buffer,
                                       tarn_stream *stream) {
  tarn_place place;
  TARN__TRY(tarn__synced_device(buffer, &place));
  if (stream == NULL || tarn_stream_device(stream) != place.device) {
    return tarn__fail(TARN_E_INVALID, "synced: no stream of the device");
  }
  TARN__TRY(check_head(buffer, place));
  return tarn_synced_prefetch(buffer, 0, TARN_ALL, place, stream, NULL);
}
