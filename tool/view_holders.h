// view_holders.h - under which name the bytes of each block are counted.
//
// Each block has one holder: the frame that owns its stack, as in owners.h; the
// tag of a block without a stack; the baseline; or none ("without a stack").
#ifndef TARN_TOOL_VIEW_HOLDERS_H_
#define TARN_TOOL_VIEW_HOLDERS_H_

#include <tarn/tarn.h>

#include "kit/options.h"

// The first two holders are always there.
enum { VIEW_HOLDER_BASELINE = 0, VIEW_HOLDER_NO_STACK = 1, VIEW_HOLDERS = 2 };

typedef struct view_holders {
  uint32_t *of_block;  // of each block of the trace: an index into names
  uint32_t *of_event;  // of each event that was refused; of others 0
  int64_t *names;  // from VIEW_HOLDERS on: a frame of the trace, or -1 - a tag
  size_t count;
} view_holders;

// The holders of the blocks of |trace|; |libraries| as in owners_create. Free
// it with view_holders_deinit.
view_holders view_holders_make(const tarn_trace *trace,
                               const options_list *libraries);

void view_holders_deinit(view_holders *h);

#endif  // TARN_TOOL_VIEW_HOLDERS_H_
