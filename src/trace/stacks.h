// stacks.h - equal stacks of frames once.
//
// A trace repeats itself: of thousands of events most come from a few hundred
// stacks, and these out of a few hundred frames. Each is kept once and known
// by a number from then on.
#ifndef TARN_TRACE_STACKS_H_
#define TARN_TRACE_STACKS_H_

#include "base/intern.h"
#include "tarn/trace.h"

// A frame by the numbers of its texts.
typedef struct tarn__trace_frame {
  uint32_t file;
  uint32_t function;
  uint32_t line;
} tarn__trace_frame;

// Texts, frames out of them, stacks out of those. Each text is stored with a
// zero byte behind it.
typedef struct tarn__trace_stacks {
  tarn__budget *budget;
  tarn__intern texts;
  tarn__intern frames;  // strings of one tarn__trace_frame
  tarn__intern stacks;  // strings of uint32_t: numbers of frames
  tarn__array scratch;  // char: a text with its zero byte
} tarn__trace_stacks;

void tarn__stacks_init(tarn__trace_stacks *stacks, tarn__budget *budget);
void tarn__stacks_deinit(tarn__trace_stacks *stacks);

// Puts |size| bytes and a zero byte into |scratch|, up to the next such call.
TARN_MUST_CHECK tarn_status tarn__stacks_zero_ended(tarn__trace_stacks *stacks,
                                                    const char *text,
                                                    size_t size);

// The number of a text of |size| bytes, none of them zero.
TARN_MUST_CHECK tarn_status tarn__stacks_text(tarn__trace_stacks *stacks,
                                              const char *text, size_t size,
                                              uint32_t *out_text);
TARN_MUST_CHECK tarn_status tarn__stacks_frame(tarn__trace_stacks *stacks,
                                               tarn__trace_frame frame,
                                               uint32_t *out_frame);

// The number of a stack, innermost frame first; TARN_TRACE_NO_STACK for one
// without frames.
TARN_MUST_CHECK tarn_status tarn__stacks_stack(tarn__trace_stacks *stacks,
                                               const uint32_t *frames,
                                               size_t count,
                                               uint32_t *out_stack);

// The stack of one frame, for histories that only know a name.
TARN_MUST_CHECK tarn_status tarn__stacks_named(tarn__trace_stacks *stacks,
                                               const char *file,
                                               const char *function,
                                               uint32_t *out_stack);

#endif  // TARN_TRACE_STACKS_H_
