// writers.h - the writers of traces, one for each format, and their parts.
#ifndef TARN_TRACE_WRITERS_H_
#define TARN_TRACE_WRITERS_H_

#include <stddef.h>
#include <string.h>

#include "tarn/trace.h"
#include "tarn/trace_write.h"

// --- Sink -----------------------------------------------------------------
// Collects bytes for a file and passes them on in large pieces. The first
// failure is kept until tarn__sink_finish; later calls do nothing.

enum { TARN__SINK_BYTES = 1 << 16 };

typedef struct tarn__trace_sink {
  tarn_trace_sink_fn *sink;
  void *context;
  tarn_status status;  // of the first failure
  uint64_t written;    // bytes put so far
  size_t used;
  unsigned char *bytes;  // TARN__SINK_BYTES of them
} tarn__trace_sink;

// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__sink_init(tarn__trace_sink *sink,
                                            tarn_trace_sink_fn *function,
                                            void *context);

// Passes on the last bytes, frees the sink, and returns the first failure.
TARN_MUST_CHECK tarn_status tarn__sink_finish(tarn__trace_sink *sink);

// The slow path of tarn__sink_put.
void tarn__sink_put_many(tarn__trace_sink *sink, const void *bytes,
                         size_t size);

static inline void tarn__sink_put(tarn__trace_sink *sink, const void *bytes,
                                  size_t size) {
  if (size > TARN__SINK_BYTES - sink->used) {
    tarn__sink_put_many(sink, bytes, size);
    return;
  }
  if (size != 0) memcpy(sink->bytes + sink->used, bytes, size);
  sink->used += size;
  sink->written += size;
}

static inline void tarn__sink_byte(tarn__trace_sink *sink, unsigned char byte) {
  tarn__sink_put(sink, &byte, 1);
}

static inline void tarn__sink_text(tarn__trace_sink *sink, const char *text) {
  tarn__sink_put(sink, text, strlen(text));
}

// At most 255 bytes at a time.
__attribute__((format(printf, 2, 3))) void tarn__sink_format(
    tarn__trace_sink *sink, const char *format, ...);

// --- Writers --------------------------------------------------------------

// Puts all of |trace| into |sink|, which keeps its own failures.
//
// TARN_E_NOMEM  no host memory for tables.
typedef tarn_status tarn__trace_writer(const tarn_trace *trace,
                                       tarn__trace_sink *sink);

TARN_MUST_CHECK tarn_status tarn__log_write(const tarn_trace *trace,
                                            tarn__trace_sink *sink);
TARN_MUST_CHECK tarn_status tarn__snapshot_write(const tarn_trace *trace,
                                                 tarn__trace_sink *sink);
TARN_MUST_CHECK tarn_status tarn__perfetto_write(const tarn_trace *trace,
                                                 tarn__trace_sink *sink);

// --- UTF-8 ----------------------------------------------------------------

// A byte that is not part of a character becomes U+FFFD: stray ones, those of
// overlong forms, and halves of surrogate pairs.

// The size of |text| as tarn__utf8_put writes it without |escaped|.
size_t tarn__utf8_size(const char *text);

// Writes |text|, which ends with a zero byte, up to |end|; |escaped| as JSON
// wants it.
void tarn__utf8_put(tarn__trace_sink *sink, const char *text, const char *end,
                    bool escaped);

// --- Addresses ------------------------------------------------------------
// Some formats identify blocks by address. Blocks without an address get one
// here: blocks that live at the same time do not overlap, and lie above all
// blocks that have an address. The same trace always gives the same addresses.

enum { TARN__PLACES_UNIT = 512 };  // new addresses are multiples of this

// |*out_addresses|[i] is the address of block i: its own, or else a new one.
// Free it with tarn__places_free.
//
// Cost: linear in blocks and events; 8 bytes a block, and 4 more during the
// call.
//
// TARN_E_NOMEM        no host memory.
// TARN_E_UNSUPPORTED  the blocks do not fit into an address space of 64 bits.
TARN_MUST_CHECK tarn_status tarn__places_make(const tarn_trace *trace,
                                              uint64_t **out_addresses);
void tarn__places_free(const tarn_trace *trace, uint64_t *addresses);

// The address of |event|, by those of the blocks.
static inline uint64_t tarn__places_of(const uint64_t *addresses,
                                       const tarn_trace_event *event) {
  return event->block == TARN_TRACE_NO_BLOCK ? event->address
                                             : addresses[event->block];
}

// --- Segments and blocks at the end ---------------------------------------

// A segment of the trace, or a new one, and the blocks that are alive in it at
// the end: blocks[first .. first + count) of the tarn__trace_held, by address,
// without overlap.
typedef struct tarn__trace_held_segment {
  tarn_trace_segment shown;
  size_t first;
  size_t count;
} tarn__trace_held_segment;

typedef struct tarn__trace_held {
  const tarn_trace *trace;  // as |addresses|, the caller's
  const uint64_t *addresses;
  tarn__trace_held_segment *segments;  // the trace's in order, then new ones
  size_t segment_count;
  size_t segment_room;
  uint32_t *blocks;  // indices into the trace's blocks
  size_t block_count;
} tarn__trace_held;

// Puts each block of |trace| that never died into the segment that contains it
// by |addresses|, unless it overlaps another block there. The other blocks get
// new segments: neighbours of one stream share one if they are less than 2 MiB
// apart, or less than 512 bytes if the trace has segments, since a larger gap
// may belong to another owner.
//
// Cost: n log n in blocks and segments.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__held_make(const tarn_trace *trace,
                                            const uint64_t *addresses,
                                            tarn__trace_held *out_held);
void tarn__held_free(tarn__trace_held *held);

// The bytes of block |index| in |segment|: its size, rounded up to 512 as by
// PyTorch if there is room.
uint64_t tarn__held_bytes(const tarn__trace_held *held,
                          const tarn__trace_held_segment *segment,
                          size_t index);

#endif  // TARN_TRACE_WRITERS_H_
