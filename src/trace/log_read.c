// Reads Tarn's own format: from pages to a history.
//
// Three passes over the pages, since definitions, and the device with most
// events, may be known only at the end:
//
//   survey  checks every record, notes definitions, counts events by device
//   old     the baseline and segments of the chosen device
//   events  of all pages, merged by number; those of the device are added
//
// A page is in order. Pages are merged by a heap of their next events.
//
// A mapped range is a living block and begins at its address. When a part of
// it is unmapped, the remaining parts become blocks:
//
//   mapped     [------------- A -------------)
//   UNMAP            [-------)
//   events     FREE A, ALLOC A1, ALLOC A2
//   mapped     [-A1--)       [------ A2 -----)
//
// They have the stack, the tag and the stream of the original block, and the
// other fields of the UNMAP. A MAP over a mapped range unmaps that first, as
// the kernel does.
//
// A file may be cut anywhere, or grow during the read: each page tells how many
// of its bytes are complete, and only these are read.
//
// Invariants: heap[i] is not above its children 2i + 1 and 2i + 2; each page in
// the heap has an event left, which it holds decoded.
#include <assert.h>
#include <string.h>

#include "base/status.h"
#include "trace/log_read.h"
#include "trace/readers.h"

typedef struct page {
  tarn__trace_log_cursor cursor;
  tarn__trace_log_record next;
} page;

typedef struct head {
  uint64_t number;
  uint32_t page;
} head;

typedef struct reader {
  const tarn__trace_input *input;
  tarn__trace_log_header header;
  tarn__trace_history history;
  tarn__trace_log_names names;
  tarn__trace_ranges mapped;  // from MAP; the value is the block
  // Events are missing: a birth where a block lives implies its death.
  bool lenient;
  tarn__trace_tally tallies[TARN__LOG_MOST_DEVICES];
  bool cut;
  tarn__array pages;  // page
  tarn__array heap;   // head
  bool any;           // there was an event before
  uint64_t number;    // of that event
} reader;

bool tarn__log_sniff(const tarn__trace_input *input) {
  const size_t size = sizeof(((tarn__trace_log_header *)NULL)->magic);
  return input->size >= size &&
         memcmp(input->bytes, TARN__LOG_MAGIC, size) == 0;
}

static tarn_status read_header(reader *r) {
  const tarn__trace_input *input = r->input;
  if (input->size < sizeof r->header) {
    return tarn__log_corrupt(input, input->bytes + input->size,
                             "the file ends within its header");
  }
  memcpy(&r->header, input->bytes, sizeof r->header);
  if (r->header.version != TARN__LOG_VERSION) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "%s: byte %zu: version %u; this reads version %d",
                      input->name, offsetof(tarn__trace_log_header, version),
                      r->header.version, TARN__LOG_VERSION);
  }
  r->cut = input->size % TARN__LOG_PAGE != 0;
  if (r->header.page_bytes == TARN__LOG_PAGE) return TARN_OK;
  return tarn__log_corrupt(
      input, input->bytes + offsetof(tarn__trace_log_header, page_bytes),
      "pages of %u bytes", r->header.page_bytes);
}

// --- births and deaths -----------------------------------------------------

static tarn_status put_death(reader *r, const tarn_trace_event *event) {
  tarn__ranges_remove(&r->mapped, event->address);
  return tarn__history_event(&r->history, event);
}

// Where the death of what lived at the address is missing, this is it. That of
// nothing is no more than a question.
static tarn_status end_former(reader *r, const tarn_trace_event *birth) {
  size_t unknown_count = r->history.trace.unknown_count;
  tarn_trace_event death = *birth;
  death.kind = TARN_TRACE_FREE;
  death.size = 0;
  death.stack = TARN_TRACE_NO_STACK;
  death.tag = TARN_TRACE_NO_TAG;
  tarn_status status = put_death(r, &death);
  r->history.trace.unknown_count = unknown_count;
  return status;
}

static tarn_status put_birth(reader *r, const tarn_trace_event *event) {
  if (r->lenient) {
    TARN__TRY(end_former(r, event));
  }
  return tarn__history_event(&r->history, event);
}

// --- mappings --------------------------------------------------------------

// A birth of a range.
static tarn_status put_range(reader *r, const tarn_trace_event *event) {
  TARN__TRY(put_birth(r, event));
  tarn__trace_range_entry range = {
      .first = event->address,
      .last = event->address + (event->size - 1),
      .value = (uint32_t)r->history.blocks.count - 1};
  return tarn__ranges_put(&r->mapped, range);
}

// A remaining part of |block|: |size| bytes from |first|.
static tarn_status put_rest(reader *r, const tarn_trace_event *unmap,
                            const tarn_trace_block *block, uint64_t first,
                            uint64_t size) {
  tarn_trace_event rest = *unmap;
  rest.kind = TARN_TRACE_ALLOC;
  rest.address = first;
  rest.size = size;
  rest.stream = block->stream;
  rest.stack = block->stack;
  rest.tag = block->tag;
  return put_range(r, &rest);
}

// Unmaps the part of |range| from |unmap|'s address up to |last|.
static tarn_status cut_range(reader *r, const tarn_trace_event *unmap,
                             uint64_t last,
                             const tarn__trace_range_entry *range) {
  const tarn_trace_block *blocks = r->history.blocks.items;
  tarn_trace_block block = blocks[range->value];
  tarn_trace_event death = *unmap;
  death.kind = TARN_TRACE_FREE;
  death.address = range->first;
  death.size = block.size;
  TARN__TRY(put_death(r, &death));
  if (range->first < unmap->address) {
    TARN__TRY(put_rest(r, unmap, &block, range->first,
                       unmap->address - range->first));
  }
  if (range->last > last) {
    TARN__TRY(put_rest(r, unmap, &block, last + 1, range->last - last));
  }
  return TARN_OK;
}

static tarn_status check_range(const reader *r,
                               const tarn__trace_log_record *record) {
  size_t end = 0;
  if (record->event.size != 0 &&
      tarn_size_add(record->event.address, record->event.size, &end)) {
    return TARN_OK;
  }
  return tarn__log_corrupt(r->input, record->begin,
                           "a range of %llu bytes at address 0x%llx",
                           (unsigned long long)record->event.size,
                           (unsigned long long)record->event.address);
}

static tarn_status add_mapping(reader *r, const tarn__trace_log_record *record,
                               tarn_trace_event *event) {
  tarn__trace_range_entry range;
  bool any = false;
  TARN__TRY(check_range(r, record));
  uint64_t last = event->address + (event->size - 1);
  while (tarn__ranges_find(&r->mapped, event->address, last, &range)) {
    TARN__TRY(cut_range(r, event, last, &range));
    any = true;
  }
  if (record->event.kind == TARN__LOG_MAP) {
    event->kind = TARN_TRACE_ALLOC;
    return put_range(r, event);
  }
  if (!any) r->history.trace.unknown_count++;
  return TARN_OK;
}

// --- events ----------------------------------------------------------------

static tarn_status add_old(reader *r, const tarn_trace_event *event) {
  tarn_trace_block block = {.size = event->size,
                            .address = event->address,
                            .stream = event->stream,
                            .stack = event->stack,
                            .tag = event->tag};
  return tarn__history_old(&r->history, &block);
}

static tarn_status add_segment(reader *r,
                               const tarn__trace_log_record *record) {
  const tarn__trace_log_event *event = &record->event;
  size_t end = 0;
  if (!tarn_size_add(event->address, event->size, &end)) {
    return tarn__log_corrupt(
        r->input, record->begin,
        "a segment of %llu bytes beyond the address space at address 0x%llx",
        (unsigned long long)event->size, (unsigned long long)event->address);
  }
  tarn_trace_segment segment = {
      .address = event->address, .size = event->size, .stream = event->stream};
  return tarn__history_segment(&r->history, &segment);
}

static tarn_status add_event(reader *r, const tarn__trace_log_record *record,
                             tarn_trace_event *event) {
  switch (record->event.kind) {
    case TARN__LOG_MAP:
    case TARN__LOG_UNMAP:
      return add_mapping(r, record, event);
    case TARN__LOG_OLD:
      return add_old(r, event);
    case TARN__LOG_SEGMENT:
      return add_segment(r, record);
    default:
      break;
  }
  event->kind = (tarn_trace_kind)record->event.kind;
  if (event->kind == TARN_TRACE_ALLOC) return put_birth(r, event);
  if (event->kind == TARN_TRACE_FREE) return put_death(r, event);
  return tarn__history_event(&r->history, event);
}

// Adds the event, old block or segment of |record|.
static tarn_status add(reader *r, const tarn__trace_log_record *record) {
  const tarn__trace_log_event *from = &record->event;
  tarn_trace_event event = {.block = TARN_TRACE_NO_BLOCK,
                            .address = from->address,
                            .size = from->size,
                            .time_us = from->time_us,
                            .stream = from->stream,
                            .stack = TARN_TRACE_NO_STACK,
                            .thread = record->thread};
  r->history.byte = (size_t)(record->begin - r->input->bytes);
  if (from->stack != 0) {
    event.stack = tarn__log_names_stack(&r->names, from->stack);
  }
  if (from->tag != 0) {
    TARN__TRY(tarn__log_names_tag(&r->names, from->tag, &event.tag));
  }
  return add_event(r, record, &event);
}

// --- all records -----------------------------------------------------------

typedef tarn_status visit_page(reader *r, tarn__trace_log_cursor cursor);
typedef tarn_status visit_record(reader *r,
                                 const tarn__trace_log_record *record);

static tarn_status each_page(reader *r, visit_page *visit) {
  tarn__trace_log_cursor cursor;
  for (size_t i = 1; i * TARN__LOG_PAGE < r->input->size; i++) {
    TARN__TRY(tarn__log_open_page(r->input, i, &cursor, &r->cut));
    TARN__TRY(visit(r, cursor));
  }
  return TARN_OK;
}

static tarn_status each_record(reader *r, tarn__trace_log_cursor *cursor,
                               visit_record *visit) {
  tarn__trace_log_record record;
  bool cut = false;
  while (cursor->at != cursor->end) {
    TARN__TRY(tarn__log_next(r->input, cursor, &record, &cut));
    if (cut) break;
    TARN__TRY(visit(r, &record));
  }
  r->cut |= cut;
  return TARN_OK;
}

static tarn_status survey(reader *r, const tarn__trace_log_record *record) {
  tarn__trace_log_kind kind = record->event.kind;
  if (kind == TARN__LOG_DEFINE) return tarn__log_names_note(&r->names, record);
  tarn__trace_tally *of = &r->tallies[record->event.device];
  of->olds += kind == TARN__LOG_OLD;
  of->segments += kind == TARN__LOG_SEGMENT;
  of->events += kind < TARN__LOG_OLD;
  of->blocks +=
      kind == TARN__LOG_ALLOC || kind == TARN__LOG_MAP || kind == TARN__LOG_OLD;
  tarn__log_names_moment(&r->names, record->event.number);
  return TARN_OK;
}

static tarn_status survey_page(reader *r, tarn__trace_log_cursor cursor) {
  TARN__TRY(each_record(r, &cursor, survey));
  tarn__log_names_moment(&r->names, cursor.number);
  return TARN_OK;
}

static tarn_status read_old(reader *r, const tarn__trace_log_record *record) {
  const tarn__trace_log_event *event = &record->event;
  if (event->device != r->history.trace.device ||
      (event->kind != TARN__LOG_OLD && event->kind != TARN__LOG_SEGMENT)) {
    return TARN_OK;
  }
  return add(r, record);
}

static tarn_status read_old_page(reader *r, tarn__trace_log_cursor cursor) {
  return each_record(r, &cursor, read_old);
}

// --- merging pages ---------------------------------------------------------

// Moves |of| to its next event. False: it has none left.
static bool advance(const reader *r, page *of) {
  bool cut = false;
  while (of->cursor.at != of->cursor.end) {
    tarn_status status = tarn__log_next(r->input, &of->cursor, &of->next, &cut);
    if (status != TARN_OK || cut) return false;  // seen in the first pass
    if (of->next.event.kind < TARN__LOG_OLD) return true;
  }
  return false;
}

static tarn_status add_page(reader *r, tarn__trace_log_cursor cursor) {
  void *place = NULL;
  tarn__budget *budget = r->input->budget;
  page added = {.cursor = cursor};
  if (!advance(r, &added)) return TARN_OK;
  TARN__TRY(tarn__array_grow(budget, &r->heap, 1, &place));
  *(head *)place = (head){.number = added.next.event.number,
                          .page = (uint32_t)r->pages.count};
  TARN__TRY(tarn__array_grow(budget, &r->pages, 1, &place));
  *(page *)place = added;
  return TARN_OK;
}

static void sink(reader *r, size_t at) {
  head *heap = r->heap.items;
  size_t count = r->heap.count;
  head moved = heap[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count && heap[child + 1].number < heap[child].number) {
      child++;
    }
    if (moved.number <= heap[child].number) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moved;
}

// Takes the next event from the heap, which is not empty. O(log of the pages);
// less where few pages are open at a time.
static void take_event(reader *r, tarn__trace_log_record *out_record) {
  head *top = r->heap.items;
  assert(top != NULL);
  page *pages = r->pages.items;
  page *of = &pages[top->page];
  *out_record = of->next;
  if (advance(r, of)) {
    top->number = of->next.event.number;
  } else {
    *top = top[r->heap.count - 1];
    tarn__array_drop(&r->heap, 1);
  }
  if (r->heap.count == 0) return;
  sink(r, 0);
  tarn__history_expect(&r->history, pages[top->page].next.event.address);
}

static tarn_status check_number(reader *r,
                                const tarn__trace_log_record *record) {
  uint64_t number = record->event.number;
  if (r->any && number == r->number) {
    return tarn__log_corrupt(r->input, record->begin,
                             "a second event of number %llu",
                             (unsigned long long)number);
  }
  if (r->any && number != r->number + 1) r->lenient = true;
  r->any = true;
  r->number = number;
  return TARN_OK;
}

static tarn_status read_events(reader *r) {
  tarn__trace_log_record record;
  TARN__TRY(each_page(r, add_page));
  for (size_t i = r->heap.count / 2; i > 0; i--)
    sink(r, i - 1);
  r->lenient = r->header.lost != 0;
  while (r->heap.count != 0) {
    take_event(r, &record);
    TARN__TRY(check_number(r, &record));
    if (record.event.device != r->history.trace.device) continue;
    TARN__TRY(add(r, &record));
  }
  return TARN_OK;
}

// --- the whole -------------------------------------------------------------

// Adds all events, in arrays that need not grow where their least size is
// known.
static tarn_status read_device(reader *r, const tarn__trace_tally *of) {
  tarn__budget *budget = r->input->budget;
  TARN__TRY(tarn__array_reserve(budget, &r->history.events, of->events));
  TARN__TRY(tarn__array_reserve(budget, &r->history.blocks, of->blocks));
  if ((of->olds | of->segments) != 0) {
    TARN__TRY(each_page(r, read_old_page));
  }
  return read_events(r);
}

static void forget_addresses(tarn__trace_history *history) {
  tarn_trace_event *events = history->events.items;
  tarn_trace_block *blocks = history->blocks.items;
  for (size_t i = 0; i < history->events.count; i++) {
    if (events[i].block != TARN_TRACE_NO_BLOCK) events[i].address = 0;
  }
  for (size_t i = 0; i < history->blocks.count; i++)
    blocks[i].address = 0;
}

static tarn_status read_all(reader *r) {
  const tarn__trace_log_header *header = &r->header;
  tarn_trace *trace = &r->history.trace;
  TARN__TRY(read_header(r));
  TARN__TRY(each_page(r, survey_page));
  TARN__TRY(tarn__trace_choose_device(r->input, r->tallies, sizeof *r->tallies,
                                      TARN__LOG_MOST_DEVICES, trace));
  TARN__TRY(tarn__log_names_settle(&r->names));
  TARN__TRY(read_device(r, &r->tallies[trace->device]));
  if ((header->flags & TARN__LOG_ANONYMOUS) != 0) forget_addresses(&r->history);
  if (trace->device_count == 0) trace->device_count = 1;
  trace->lost_count = header->lost;
  trace->unknown_count += header->unknown_count;
  trace->ignored_count = header->ignored_count;
  trace->ignored_bytes = header->ignored_bytes;
  trace->unfinished = r->cut || (header->flags & TARN__LOG_CUT) != 0;
  return TARN_OK;
}

tarn_status tarn__log_read(const tarn__trace_input *input,
                           tarn_trace **out_trace) {
  tarn__budget *budget = input->budget;
  reader r = {.input = input,
              .pages = TARN__ARRAY_OF(page),
              .heap = TARN__ARRAY_OF(head)};
  tarn__history_init(&r.history, budget, input->name);
  r.history.frees_without_size = true;
  tarn__log_names_init(&r.names, input, &r.history);
  tarn__ranges_init(&r.mapped, budget);
  tarn_status status = read_all(&r);
  tarn__ranges_deinit(&r.mapped);
  tarn__array_free(budget, &r.heap);
  tarn__array_free(budget, &r.pages);
  tarn__log_names_deinit(&r.names);
  return tarn__history_finish(&r.history, status, "tarn", out_trace);
}
