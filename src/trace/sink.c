// A sink: collects bytes and passes them on.
#include "trace/writers.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/hostmem.h"

tarn_status tarn__sink_init(tarn__trace_sink *sink,
                            tarn_trace_sink_fn *function, void *context) {
  *sink = (tarn__trace_sink){.sink = function,
                             .context = context,
                             .bytes = tarn__host_alloc(TARN__SINK_BYTES)};
  return sink->bytes == NULL ? TARN_E_NOMEM : TARN_OK;
}

static void hand_over(tarn__trace_sink *sink) {
  if (sink->status == TARN_OK && sink->used != 0) {
    sink->status = sink->sink(sink->context, sink->bytes, sink->used);
  }
  sink->used = 0;
}

void tarn__sink_put_many(tarn__trace_sink *sink, const void *bytes,
                         size_t size) {
  const unsigned char *from = bytes;
  sink->written += size;
  while (size != 0) {
    if (sink->used == TARN__SINK_BYTES) hand_over(sink);
    size_t room = TARN__SINK_BYTES - sink->used;
    size_t part = size < room ? size : room;
    memcpy(sink->bytes + sink->used, from, part);
    sink->used += part;
    from += part;
    size -= part;
  }
}

void tarn__sink_format(tarn__trace_sink *sink, const char *format, ...) {
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  tarn__sink_text(sink, text);
}

tarn_status tarn__sink_finish(tarn__trace_sink *sink) {
  hand_over(sink);
  tarn__host_free(sink->bytes, TARN__SINK_BYTES);
  sink->bytes = NULL;
  return sink->status;
}
