// A sink: collects bytes and passes them on; texts as UTF-8.
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

// --- UTF-8 -----------------------------------------------------------------
//
// Characters by table 3-7 of the Unicode standard: the range of the second byte
// depends on the first, which excludes overlong forms and surrogates.
//
// Invariant: a byte is read only after all bytes in front of it were found to
// be part of a character, so no read passes a zero byte.

#define UNKNOWN "\xef\xbf\xbd"

static bool is_between(unsigned char c, unsigned char low, unsigned char high) {
  return c >= low && c <= high;
}

static size_t length_by_first(unsigned char c) {
  if (is_between(c, 1, 0x7f)) return 1;
  if (is_between(c, 0xc2, 0xdf)) return 2;
  if (is_between(c, 0xe0, 0xef)) return 3;
  return is_between(c, 0xf0, 0xf4) ? 4 : 0;
}

static bool allows_second(unsigned char first, unsigned char second) {
  unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  return is_between(second, low, high);
}

// The size of the first character of |text|, 1 to 4 bytes; 0 for a byte that is
// not part of one.
static size_t character_size(const char *text) {
  const unsigned char *s = (const unsigned char *)text;
  size_t length = length_by_first(s[0]);
  if (length < 2) return length;
  if (!allows_second(s[0], s[1])) return 0;
  for (size_t i = 2; i < length; i++) {
    if (!is_between(s[i], 0x80, 0xbf)) return 0;
  }
  return length;
}

size_t tarn__utf8_size(const char *text) {
  size_t size = 0;
  while (*text != '\0') {
    size_t length = character_size(text);
    size += length != 0 ? length : strlen(UNKNOWN);
    text += length != 0 ? length : 1;
  }
  return size;
}

static void put_escaped(tarn__trace_sink *sink, char c) {
  if (c == '"' || c == '\\') tarn__sink_byte(sink, '\\');
  if ((unsigned char)c >= 0x20) {
    tarn__sink_byte(sink, (unsigned char)c);
  } else {
    tarn__sink_format(sink, "\\u%04x", (unsigned)(unsigned char)c);
  }
}

void tarn__utf8_put(tarn__trace_sink *sink, const char *text, const char *end,
                    bool escaped) {
  while (text < end) {
    size_t length = character_size(text);
    if (length == 0) tarn__sink_text(sink, UNKNOWN);
    if (length == 1 && escaped) {
      put_escaped(sink, *text);
    } else {
      tarn__sink_put(sink, text, length);
    }
    text += length != 0 ? length : 1;
  }
}
