// A trace builder: a history that a program fills.
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "tarn/trace_build.h"
#include "trace/history.h"

struct tarn_trace_builder {
  tarn__budget budget;
  tarn__trace_history history;
  char *name;
};

tarn_status tarn_trace_builder_create(const char *name,
                                      tarn_trace_builder **out_builder) {
  *out_builder = NULL;
  if (name == NULL) {
    return tarn__fail(TARN_E_INVALID, "trace builder: name is NULL");
  }
  tarn_trace_builder *builder = tarn__host_alloc(sizeof *builder);
  if (builder == NULL) return TARN_E_NOMEM;
  builder->name = tarn__host_text(name);
  if (builder->name == NULL) {
    tarn__host_free(builder, sizeof *builder);
    return TARN_E_NOMEM;
  }
  builder->budget = tarn__budget_unlimited(builder->name);
  tarn__history_init(&builder->history, &builder->budget, builder->name);
  builder->history.unit = "event";
  builder->history.frees_without_size = true;
  *out_builder = builder;
  return TARN_OK;
}

void tarn_trace_builder_destroy(tarn_trace_builder *builder) {
  if (builder == NULL) return;
  tarn__history_deinit(&builder->history);
  tarn__host_free_text(builder->name);
  tarn__host_free(builder, sizeof *builder);
}

// --- names -----------------------------------------------------------------

static const char *known(const char *text) {
  return text != NULL ? text : "";
}

tarn_status tarn_trace_builder_stack(tarn_trace_builder *builder,
                                     const tarn_trace_frame *frames,
                                     size_t count, uint32_t *out_stack) {
  tarn__trace_stacks *stacks = &builder->history.stacks;
  tarn__array numbers = TARN__ARRAY_OF(uint32_t);
  *out_stack = TARN_TRACE_NO_STACK;
  if (frames == NULL && count != 0) {
    return tarn__fail(TARN_E_INVALID, "%s: frames is NULL", builder->name);
  }
  tarn_status status = tarn__array_make(&builder->budget, &numbers, count);
  for (size_t i = 0; status == TARN_OK && i < count; i++) {
    status = tarn__stacks_frame_of(stacks, known(frames[i].file),
                                   known(frames[i].function), frames[i].line,
                                   (uint32_t *)numbers.items + i);
  }
  if (status == TARN_OK) {
    status = tarn__stacks_stack(stacks, numbers.items, count, out_stack);
  }
  tarn__array_free(&builder->budget, &numbers);
  return status;
}

tarn_status tarn_trace_builder_tag(tarn_trace_builder *builder,
                                   const char *name, uint32_t *out_tag) {
  *out_tag = TARN_TRACE_NO_TAG;
  if (name == NULL || *name == '\0') return TARN_OK;
  return tarn__history_tag(&builder->history, name, strlen(name), out_tag);
}

// --- events ----------------------------------------------------------------

static tarn_status check_names(const tarn_trace_builder *builder,
                               uint32_t stack, uint32_t tag) {
  const tarn__trace_history *history = &builder->history;
  if (stack != TARN_TRACE_NO_STACK &&
      stack >= history->stacks.stacks.spans.count) {
    return tarn__fail(TARN_E_INVALID, "%s: no stack has the number %u",
                      builder->name, stack);
  }
  if (tag == TARN_TRACE_NO_TAG || tag < history->tags.spans.count) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID, "%s: no tag has the number %u",
                    builder->name, tag);
}

tarn_status tarn_trace_builder_event(tarn_trace_builder *builder,
                                     const tarn_trace_event *event) {
  TARN__TRY(check_names(builder, event->stack, event->tag));
  if (event->kind < TARN_TRACE_ALLOC || event->kind > TARN_TRACE_SNAPSHOT) {
    return tarn__fail(TARN_E_INVALID, "%s: %d is not a kind of event",
                      builder->name, (int)event->kind);
  }
  builder->history.byte = builder->history.events.count;
  return tarn__history_event(&builder->history, event);
}

tarn_status tarn_trace_builder_old(tarn_trace_builder *builder,
                                   const tarn_trace_block *block) {
  TARN__TRY(check_names(builder, block->stack, block->tag));
  return tarn__history_old(&builder->history, block);
}

tarn_status tarn_trace_builder_held(tarn_trace_builder *builder,
                                    const tarn_trace_block *block) {
  TARN__TRY(check_names(builder, block->stack, block->tag));
  return tarn__history_held(&builder->history, block);
}

tarn_status tarn_trace_builder_segment(tarn_trace_builder *builder,
                                       const tarn_trace_segment *segment) {
  size_t end = 0;
  if (segment->size == 0 ||
      !tarn_size_add(segment->address, segment->size, &end)) {
    return tarn__fail(TARN_E_INVALID,
                      "%s: a segment of %llu bytes at address 0x%llx",
                      builder->name, (unsigned long long)segment->size,
                      (unsigned long long)segment->address);
  }
  return tarn__history_segment(&builder->history, segment);
}

void tarn_trace_builder_lost(tarn_trace_builder *builder, uint64_t events) {
  builder->history.trace.lost_count += events;
}

tarn_status tarn_trace_builder_finish(tarn_trace_builder *builder,
                                      tarn_trace **out_trace) {
  tarn_status status =
      tarn__history_finish(&builder->history, TARN_OK, "built", out_trace);
  tarn_trace_builder_destroy(builder);
  return status;
}
