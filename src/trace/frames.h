// frames.h - the stacks of a PyTorch snapshot, each read once.
//
// A snapshot refers to the same lists, dicts and texts over and over through
// the pickle's memo. What a list or dict came to is written on its box, what a
// text came to in a map from its byte in the file, so that the cost is that of
// the file and not of what it would be if it were written out.
#ifndef TARN_TRACE_FRAMES_H_
#define TARN_TRACE_FRAMES_H_

#include "trace/intern.h"
#include "trace/record.h"

typedef struct tarn__frames {
  const tarn__pickle *pickle;
  tarn__stacks *stacks;
  tarn__intern places;  // strings of one uint32_t: the byte of a text
  tarn__array texts;    // uint32_t: number of the text at that place
  tarn__array numbers;  // uint32_t: frames of the list in hand
} tarn__frames;

void tarn__frames_init(tarn__frames *frames, const tarn__pickle *pickle,
                       tarn__stacks *stacks);
void tarn__frames_deinit(tarn__frames *frames);

// The stack of |list|: a list of dicts {filename, line, name}, or absent.
//
// TARN_E_CORRUPT  it is not that.
TARN_MUST_CHECK tarn_status tarn__frames_stack(tarn__frames *frames,
                                               tarn__value list,
                                               uint32_t *out_stack);

#endif  // TARN_TRACE_FRAMES_H_
