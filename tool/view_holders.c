// Holders of blocks: each frame that owns one becomes a holder, in the order in
// which the blocks were born.
#include "view_holders.h"

#include <stdlib.h>
#include <string.h>

#include "tool.h"

// Python's own files tell where the user was; those of libraries do not.
static bool is_users_own(const tarn_trace_frame *frame) {
  size_t length = strlen(frame->file);
  return length > 3 && strcmp(frame->file + length - 3, ".py") == 0 &&
         strstr(frame->file, "site-packages/") == NULL;
}

static uint32_t owner_of(const tarn_trace *trace, uint32_t index) {
  const tarn_trace_stack *stack = &trace->stacks[index];
  const uint32_t *frames = &trace->frame_indices[stack->first];
  for (uint32_t i = 0; i < stack->count; i++) {
    if (is_users_own(&trace->frames[frames[i]])) return frames[i];
  }
  return frames[0];
}

static uint32_t holder_of(view_holders *h, uint32_t *of_frame, uint32_t frame) {
  if (of_frame[frame] == 0) {
    of_frame[frame] = (uint32_t)h->count;
    h->frames[h->count++] = frame;
  }
  return of_frame[frame];
}

view_holders view_holders_make(const tarn_trace *trace) {
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
      h.of_block[i] = holder_of(&h, of_frame, owner_of(trace, stack));
    }
  }
  free(of_frame);
  return h;
}

void view_holders_deinit(view_holders *h) {
  free(h->of_block);
  free(h->frames);
  *h = (view_holders){0};
}
