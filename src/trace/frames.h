// frames.h - the stacks of a PyTorch snapshot, each read once.
//
// A snapshot refers to the same lists, dicts and texts over and over through
// the pickle's memo. What a list or dict came to is written on its container,
// what a text came to in a map from its byte in the file, and the tag of a text
// in a table by the text's number, so that the cost is that of the file and not
// of what it would be if it were written out.
//
// A frame of the file "tag" and line 0 at a stack's outer end is no frame: it
// is how Tarn writes a block's tag into a snapshot, and comes back as one.
#ifndef TARN_TRACE_FRAMES_H_
#define TARN_TRACE_FRAMES_H_

#include "trace/history.h"
#include "trace/record.h"

// The file of a frame that is a tag.
#define TARN__FRAMES_TAG "tag"

// What a list of frames comes to.
typedef struct tarn__trace_frames_text {
  uint32_t stack;  // number, or TARN_TRACE_NO_STACK
  uint32_t tag;    // number, or TARN_TRACE_NO_TAG
} tarn__trace_frames_text;

typedef struct tarn__trace_frames {
  const tarn__trace_pickle *pickle;
  tarn__trace_history *history;
  tarn__intern places;  // strings of one uint32_t: the byte of a text
  tarn__array texts;    // uint32_t: number of the text at that place
  tarn__array tags;     // uint32_t: by text, its tag; NO_TAG: none made yet
  tarn__array numbers;  // uint32_t: frames of the list in hand
  tarn__array lists;    // tarn__trace_frames_text: what each list came to
} tarn__trace_frames;

void tarn__frames_init(tarn__trace_frames *frames,
                       const tarn__trace_pickle *pickle,
                       tarn__trace_history *history);
void tarn__frames_deinit(tarn__trace_frames *frames);

// The stack and tag of |list|: a list of dicts {filename, line, name}, or
// absent.
//
// TARN_E_CORRUPT  it is not that.
TARN_MUST_CHECK tarn_status
tarn__frames_stack(tarn__trace_frames *frames, tarn__trace_pickle_value list,
                   tarn__trace_frames_text *out_dressed);

#endif  // TARN_TRACE_FRAMES_H_
