// sink.h - bytes on their way to a file, gathered into pieces.
//
// A failure sticks: whoever writes goes on, and learns at the end.
#ifndef TARN_TRACE_SINK_H_
#define TARN_TRACE_SINK_H_

#include <string.h>

#include "tarn/trace_write.h"

enum { TARN__SINK_BYTES = 1 << 16 };

typedef struct tarn__trace_sink {
  tarn_trace_sink_fn *sink;
  void *context;
  tarn_status status;  // of the first failure
  uint64_t written;    // bytes, those that are still gathered included
  size_t used;
  unsigned char *bytes;  // TARN__SINK_BYTES of them
} tarn__trace_sink;

// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__sink_init(tarn__trace_sink *sink,
                                            tarn_trace_sink_fn *function,
                                            void *context);

// Hands over what is gathered, frees the rest, and says what became of it all.
TARN_MUST_CHECK tarn_status tarn__sink_finish(tarn__trace_sink *sink);

// Any number of bytes; the slow way of the next.
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

#endif  // TARN_TRACE_SINK_H_
