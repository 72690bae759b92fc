// Holders of blocks: each frame that owns one becomes a holder, in the order in
// which the blocks were born.
#include "view_holders.h"

#include <stdlib.h>

#include "owners.h"
#include "tool.h"

static uint32_t holder_of(view_holders *h, uint32_t *of_frame, uint32_t frame) {
  if (of_frame[frame] == 0) {
    of_frame[frame] = (uint32_t)h->count;
    h->frames[h->count++] = frame;
  }
  return of_frame[frame];
}

view_holders view_holders_make(const tarn_trace *trace,
                               const options_list *libraries) {
  owners *owner = owners_create(trace, libraries);
  view_holders h = {
      .of_block = tool_array(trace->block_count, sizeof(uint32_t)),
      .frames = tool_array(trace->frame_count + VIEW_HOLDERS, sizeof(uint32_t)),
      .count = VIEW_HOLDERS};
  uint32_t *of_frame = tool_array(trace->frame_count, sizeof *of_frame);
  for (size_t i = 0; i < trace->block_count; i++) {
    uint32_t stack = trace->blocks[i].stack;
    bool has_stack =
        stack != TARN_TRACE_NO_STACK && trace->stacks[stack].count > 0;
    h.of_block[i] = VIEW_HOLDER_NO_STACK;
    if (i < trace->baseline_count) {
      h.of_block[i] = VIEW_HOLDER_BASELINE;
    } else if (has_stack) {
      h.of_block[i] = holder_of(&h, of_frame, owners_of(owner, stack));
    }
  }
  free(of_frame);
  owners_destroy(owner);
  return h;
}

void view_holders_deinit(view_holders *h) {
  free(h->of_block);
  free(h->frames);
  *h = (view_holders){0};
}
