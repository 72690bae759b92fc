// Opcodes with an argument, each in its shortest form.
#include "trace/writers.h"

enum { PROTOCOL = 4 };

static void put_little(tarn__trace_sink *sink, unsigned char opcode,
                       uint64_t number, size_t size) {
  unsigned char bytes[1 + sizeof number] = {opcode};
  for (size_t i = 0; i < size; i++)
    bytes[1 + i] = (unsigned char)(number >> 8 * i);
  tarn__sink_put(sink, bytes, 1 + size);
}

void tarn__pickler_begin(tarn__trace_pickler *pickler, tarn__trace_sink *sink) {
  *pickler = (tarn__trace_pickler){.sink = sink};
  put_little(sink, 0x80, PROTOCOL, 1);
}

void tarn__pickler_end(tarn__trace_pickler *pickler) {
  tarn__sink_byte(pickler->sink, '.');
}

// LONG1 has a sign, for which the highest bit is kept.
static void put_long(tarn__trace_sink *sink, uint64_t number) {
  unsigned char bytes[11] = {0x8a};
  unsigned char size = 0;
  for (; number != 0; number >>= 8)
    bytes[2 + size++] = (unsigned char)number;
  if ((bytes[1 + size] & 0x80) != 0) size++;
  bytes[1] = size;
  tarn__sink_put(sink, bytes, 2 + (size_t)size);
}

void tarn__pickler_int(tarn__trace_pickler *pickler, uint64_t number) {
  tarn__trace_sink *sink = pickler->sink;
  if (number <= UINT8_MAX) {
    put_little(sink, 'K', number, 1);
  } else if (number <= UINT16_MAX) {
    put_little(sink, 'M', number, 2);
  } else if (number <= INT32_MAX) {
    put_little(sink, 'J', number, 4);
  } else {
    put_long(sink, number);
  }
}

void tarn__pickler_text(tarn__trace_pickler *pickler, const char *text) {
  tarn__trace_sink *sink = pickler->sink;
  size_t size = tarn__utf8_size(text);
  if (size <= UINT8_MAX) {
    put_little(sink, 0x8c, size, 1);
  } else if (size <= UINT32_MAX) {
    put_little(sink, 'X', size, 4);
  } else {
    put_little(sink, 0x8d, size, 8);
  }
  while (*text != '\0') {
    size_t length = tarn__utf8_character(text);
    if (length == 0) tarn__sink_text(sink, TARN__UTF8_UNKNOWN);
    tarn__sink_put(sink, text, length);
    text += length != 0 ? length : 1;
  }
}

uint32_t tarn__pickler_memoise(tarn__trace_pickler *pickler) {
  tarn__sink_byte(pickler->sink, 0x94);
  return pickler->memoised++;
}

void tarn__pickler_get(tarn__trace_pickler *pickler, uint32_t number) {
  bool is_short = number <= UINT8_MAX;
  put_little(pickler->sink, is_short ? 'h' : 'j', number, is_short ? 1 : 4);
}
