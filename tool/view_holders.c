// Holders of blocks: each frame that owns a block, and each tag of a block
// without a stack, in the order in which the blocks were born. The holders of
// refused requests follow.
#include "view_holders.h"

#include <stdlib.h>

#include "kit/tool.h"
#include "owners.h"

typedef struct maker {
  const tarn_trace *trace;
  owners *owner;
  uint32_t *of_frame;  // holders by frame and by tag; 0: none yet
  uint32_t *of_tag;
  view_holders h;
} maker;

static uint32_t holder_of(maker *m, uint32_t *place, int64_t name) {
  if (*place == 0) {
    *place = (uint32_t)m->h.count;
    m->h.names[m->h.count++] = name;
  }
  return *place;
}

static uint32_t find(maker *m, uint32_t stack, uint32_t tag, bool is_old) {
  if (stack != TARN_TRACE_NO_STACK && m->trace->stacks[stack].count > 0) {
    if (is_old) return VIEW_HOLDER_BASELINE;
    uint32_t frame = owners_of(m->owner, stack);
    return holder_of(m, &m->of_frame[frame], frame);
  }
  if (tag != TARN_TRACE_NO_TAG) {
    return holder_of(m, &m->of_tag[tag], -1 - (int64_t)tag);
  }
  return is_old ? VIEW_HOLDER_BASELINE : VIEW_HOLDER_NO_STACK;
}

static void find_all(maker *m) {
  const tarn_trace *trace = m->trace;
  for (size_t i = 0; i < trace->block_count; i++) {
    const tarn_trace_block *block = &trace->blocks[i];
    m->h.of_block[i] =
        find(m, block->stack, block->tag, i < trace->baseline_count);
  }
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *event = &trace->events[i];
    if (event->kind != TARN_TRACE_OOM) continue;
    m->h.of_event[i] = find(m, event->stack, event->tag, false);
  }
}

view_holders view_holders_make(const tarn_trace *trace,
                               const options_list *libraries) {
  size_t most = trace->frame_count + trace->tag_count + VIEW_HOLDERS;
  maker m = {.trace = trace, .owner = owners_create(trace, libraries)};
  m.of_frame = tool_array(trace->frame_count, sizeof *m.of_frame);
  m.of_tag = tool_array(trace->tag_count, sizeof *m.of_tag);
  m.h = (view_holders){
      .of_block = tool_array(trace->block_count, sizeof *m.h.of_block),
      .of_event = tool_array(trace->event_count, sizeof *m.h.of_event),
      .names = tool_array(most, sizeof *m.h.names),
      .count = VIEW_HOLDERS};
  find_all(&m);
  free(m.of_tag);
  free(m.of_frame);
  owners_destroy(m.owner);
  return m.h;
}

void view_holders_deinit(view_holders *h) {
  free(h->of_block);
  free(h->of_event);
  free(h->names);
  *h = (view_holders){0};
}
