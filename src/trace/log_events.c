// Adds events to the history, and cuts mapped ranges when they are unmapped.
//
//   mapped     [------------- A -------------)
//   UNMAP            [-------)
//   events     FREE A, ALLOC A1, ALLOC A2
//   mapped     [-A1--)       [------ A2 -----)
//
// The remaining parts have the stack, the tag and the stream of the original
// block, and the other fields of the UNMAP. A MAP over a mapped range unmaps
// that first, as the kernel does.
//
// Invariant: each range in |mapped| is a living block of the history, and
// begins at its address.
#include "trace/log_read.h"

#include "base/status.h"

void tarn__log_events_init(tarn__trace_log_events *events,
                           tarn__trace_log_names *names) {
  *events = (tarn__trace_log_events){
      .input = names->input, .names = names, .history = names->history};
  tarn__ranges_init(&events->mapped, names->input->budget);
}

void tarn__log_events_deinit(tarn__trace_log_events *events) {
  tarn__ranges_deinit(&events->mapped);
}

// --- births and deaths -----------------------------------------------------

static tarn_status put_death(tarn__trace_log_events *events,
                             const tarn_trace_event *event) {
  if (!tarn__ranges_is_empty(&events->mapped)) {
    tarn__ranges_remove(&events->mapped, event->address);
  }
  return tarn__history_event(events->history, event);
}

// Where the death of what lived at the address is missing, this is it. That of
// nothing is no more than a question.
static tarn_status end_former(tarn__trace_log_events *events,
                              const tarn_trace_event *birth) {
  size_t unknown_count = events->history->unknown_count;
  tarn_trace_event death = *birth;
  death.kind = TARN_TRACE_FREE;
  death.size = 0;
  death.stack = TARN_TRACE_NO_STACK;
  death.tag = TARN_TRACE_NO_TAG;
  tarn_status status = put_death(events, &death);
  events->history->unknown_count = unknown_count;
  return status;
}

static tarn_status put_birth(tarn__trace_log_events *events,
                             const tarn_trace_event *event) {
  if (events->lenient) {
    tarn_status status = end_former(events, event);
    if (status != TARN_OK) return status;
  }
  return tarn__history_event(events->history, event);
}

// --- mappings --------------------------------------------------------------

// A birth of a range.
static tarn_status put_range(tarn__trace_log_events *events,
                             const tarn_trace_event *event) {
  tarn_status status = put_birth(events, event);
  if (status != TARN_OK) return status;
  tarn__trace_range_entry range = {
      .first = event->address,
      .last = event->address + (event->size - 1),
      .value = (uint32_t)events->history->blocks.count - 1};
  return tarn__ranges_put(&events->mapped, range);
}

// A remaining part of |block|, from |first| up to |end|.
static tarn_status put_rest(tarn__trace_log_events *events,
                            const tarn_trace_event *unmap,
                            const tarn_trace_block *block, uint64_t first,
                            uint64_t size) {
  tarn_trace_event rest = *unmap;
  rest.kind = TARN_TRACE_ALLOC;
  rest.address = first;
  rest.size = size;
  rest.stream = block->stream;
  rest.stack = block->stack;
  rest.tag = block->tag;
  return put_range(events, &rest);
}

// Unmaps the part of |range| from |unmap|'s address up to |last|.
static tarn_status cut_range(tarn__trace_log_events *events,
                             const tarn_trace_event *unmap, uint64_t last,
                             const tarn__trace_range_entry *range) {
  const tarn_trace_block *blocks = events->history->blocks.items;
  tarn_trace_block block = blocks[range->value];
  tarn_trace_event death = *unmap;
  death.kind = TARN_TRACE_FREE;
  death.address = range->first;
  death.size = block.size;
  tarn_status status = put_death(events, &death);
  if (status == TARN_OK && range->first < unmap->address) {
    status = put_rest(events, unmap, &block, range->first,
                      unmap->address - range->first);
  }
  if (status == TARN_OK && range->last > last) {
    status = put_rest(events, unmap, &block, last + 1, range->last - last);
  }
  return status;
}

// Unmaps all ranges at |event|; false in |*out_any|: there is none.
static tarn_status unmap(tarn__trace_log_events *events,
                         const tarn_trace_event *event, bool *out_any) {
  tarn__trace_range_entry range;
  uint64_t last = event->address + (event->size - 1);
  tarn_status status = TARN_OK;
  *out_any = false;
  while (status == TARN_OK &&
         tarn__ranges_find(&events->mapped, event->address, last, &range)) {
    *out_any = true;
    status = cut_range(events, event, last, &range);
  }
  return status;
}

static tarn_status check_range(const tarn__trace_log_events *events,
                               const tarn__trace_log_record *record) {
  size_t end = 0;
  if (record->event.size != 0 &&
      tarn_size_add(record->event.address, record->event.size, &end)) {
    return TARN_OK;
  }
  return tarn__log_corrupt(events->input, record->begin,
                           "a range of %llu bytes at address 0x%llx",
                           (unsigned long long)record->event.size,
                           (unsigned long long)record->event.address);
}

static tarn_status add_mapping(tarn__trace_log_events *events,
                               const tarn__trace_log_record *record,
                               tarn_trace_event *event) {
  bool any = false;
  bool is_birth = record->event.kind == TARN__LOG_MAP;
  tarn_status status = check_range(events, record);
  if (status == TARN_OK) status = unmap(events, event, &any);
  if (status != TARN_OK) return status;
  event->kind = TARN_TRACE_ALLOC;
  if (is_birth) return put_range(events, event);
  if (!any) events->history->unknown_count++;
  return TARN_OK;
}

// --- the rest --------------------------------------------------------------

static tarn_status add_old(tarn__trace_log_events *events,
                           const tarn_trace_event *event) {
  tarn_trace_block block = {.size = event->size,
                            .address = event->address,
                            .stream = event->stream,
                            .stack = event->stack,
                            .tag = event->tag};
  return tarn__history_old(events->history, &block);
}

static tarn_status add_segment(tarn__trace_log_events *events,
                               const tarn__trace_log_record *record) {
  const tarn__trace_log_event *event = &record->event;
  size_t end = 0;
  if (!tarn_size_add(event->address, event->size, &end)) {
    return tarn__log_corrupt(
        events->input, record->begin,
        "a segment of %llu bytes beyond the address space at address 0x%llx",
        (unsigned long long)event->size, (unsigned long long)event->address);
  }
  tarn_trace_segment segment = {
      .address = event->address, .size = event->size, .stream = event->stream};
  return tarn__history_segment(events->history, &segment);
}

static tarn_status add_event(tarn__trace_log_events *events,
                             const tarn__trace_log_record *record,
                             tarn_trace_event *event) {
  switch (record->event.kind) {
    case TARN__LOG_MAP:
    case TARN__LOG_UNMAP:
      return add_mapping(events, record, event);
    case TARN__LOG_OLD:
      return add_old(events, event);
    case TARN__LOG_SEGMENT:
      return add_segment(events, record);
    default:
      break;
  }
  event->kind = (tarn_trace_kind)record->event.kind;
  if (event->kind == TARN_TRACE_ALLOC) return put_birth(events, event);
  if (event->kind == TARN_TRACE_FREE) return put_death(events, event);
  return tarn__history_event(events->history, event);
}

tarn_status tarn__log_events_add(tarn__trace_log_events *events,
                                 const tarn__trace_log_record *record) {
  const tarn__trace_log_event *from = &record->event;
  tarn_trace_event event = {.block = TARN_TRACE_NO_BLOCK,
                            .address = from->address,
                            .size = from->size,
                            .time_us = from->time_us,
                            .stream = from->stream,
                            .stack = TARN_TRACE_NO_STACK,
                            .thread = record->thread};
  events->history->byte = (size_t)(record->begin - events->input->bytes);
  if (from->stack != 0) {
    event.stack = tarn__log_names_stack(events->names, from->stack);
  }
  if (from->tag != 0) {
    tarn_status status =
        tarn__log_names_tag(events->names, from->tag, &event.tag);
    if (status != TARN_OK) return status;
  }
  return add_event(events, record, &event);
}
