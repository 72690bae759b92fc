// pickler.h - writes pickles of protocol 4, opcode by opcode.
//
// The memo is the writer's business: what he will need again he memoises, gets
// its number, and fetches it by that. There are no FRAMEs: they are a hint for
// readers, and may be left out.
#ifndef TARN_TRACE_PICKLER_H_
#define TARN_TRACE_PICKLER_H_

#include "trace/sink.h"

typedef enum tarn__trace_pickler_opcode {
  TARN__OP_APPENDS = 'e',
  TARN__OP_EMPTY_DICT = '}',
  TARN__OP_EMPTY_LIST = ']',
  TARN__OP_EMPTY_TUPLE = ')',
  TARN__OP_FALSE = 0x89,
  TARN__OP_MARK = '(',
  TARN__OP_SETITEMS = 'u',
  TARN__OP_TUPLE2 = 0x86,
} tarn__trace_pickler_opcode;

typedef struct tarn__trace_pickler {
  tarn__trace_sink *sink;
  uint32_t memoised;  // values in the memo, and the number of the next
} tarn__trace_pickler;

static inline void tarn__pickler_op(tarn__trace_pickler *pickler,
                                    tarn__trace_pickler_opcode opcode) {
  tarn__sink_byte(pickler->sink, (unsigned char)opcode);
}

void tarn__pickler_begin(tarn__trace_pickler *pickler, tarn__trace_sink *sink);
void tarn__pickler_end(tarn__trace_pickler *pickler);

void tarn__pickler_int(tarn__trace_pickler *pickler, uint64_t number);

// Bytes that are no UTF-8 become U+FFFD each: Python would refuse the file.
void tarn__pickler_text(tarn__trace_pickler *pickler, const char *text);

// Memoises the value on top of the stack; its number.
uint32_t tarn__pickler_memoise(tarn__trace_pickler *pickler);
void tarn__pickler_get(tarn__trace_pickler *pickler, uint32_t number);

#endif  // TARN_TRACE_PICKLER_H_
