// Writes traces in Tarn's own format, page by page.
//
//   header
//   TEXT TAG TEXT TAG ...       tags, in their order
//   TEXT TEXT FRAME FRAME ...   frames, each text once before its first use
//   STACK STACK ...
//   OLD OLD ...                 the baseline
//   events 0, 1, 2 ...          of all threads in one page, with LOG_THREAD
//   SEGMENT SEGMENT ...         where the thread changes
//
// Blocks of workloads have no addresses: many are at 0. So that a free finds
// its block, block i is written with address i + 1, and the header has
// LOG_ANONYMOUS.
//
// Numbers of stacks, frames and texts are those of the trace plus 1.
#include "base/intern.h"
#include "base/status.h"
#include "trace/log.h"
#include "trace/writers.h"

typedef struct writer {
  const tarn_trace *trace;
  tarn__trace_sink *sink;
  tarn__budget budget;
  tarn__intern texts;  // const char *: a trace has each text once
  tarn__trace_log_writer log;
  tarn__trace_log_page page;
  uint32_t thread;
  bool anonymous;
} writer;

// --- pages -----------------------------------------------------------------

static void begin_page(writer *w) {
  tarn__trace_log_event before = {.number = w->log.number,
                                  .time_us = w->log.time_us,
                                  .address = w->log.address};
  memset(&w->page, 0, sizeof w->page);
  tarn__log_begin(&w->log, &w->page, w->thread, &before);
}

static void flush(writer *w) {
  if (w->log.used != 0) tarn__sink_put(w->sink, &w->page, sizeof w->page);
}

// Room for |size| bytes, in a new page if needed.
static void make_room(writer *w, size_t size) {
  if (tarn__log_room(&w->log) >= size) return;
  flush(w);
  begin_page(w);
}

static void put_header(writer *w) {
  static const unsigned char zeros[TARN__LOG_PAGE];
  tarn__trace_log_header header = {.magic = TARN__LOG_MAGIC,
                                   .version = TARN__LOG_VERSION,
                                   .page_bytes = TARN__LOG_PAGE,
                                   .lost = w->trace->lost_count,
                                   .unknown_count = w->trace->unknown_count,
                                   .ignored_count = w->trace->ignored_count,
                                   .ignored_bytes = w->trace->ignored_bytes};
  if (w->anonymous) header.flags |= TARN__LOG_ANONYMOUS;
  if (w->trace->unfinished) header.flags |= TARN__LOG_CUT;
  size_t size = strnlen(w->trace->name, sizeof header.program - 1);
  memcpy(header.program, w->trace->name, size);
  tarn__sink_put(w->sink, &header, sizeof header);
  tarn__sink_put(w->sink, zeros, sizeof zeros - sizeof header);
}

// --- definitions -----------------------------------------------------------

// |size|: most bytes of what follows the number.
static unsigned char *begin_definition(writer *w, size_t size,
                                       tarn__trace_log_definition which,
                                       uint64_t number) {
  make_room(w, 2 + TARN__LOG_MOST_NUMBER + size);
  return tarn__log_put_definition(&w->log, which, number);
}

// A definition of numbers.
static void define(writer *w, tarn__trace_log_definition which, uint64_t number,
                   const uint64_t *values, size_t count) {
  unsigned char *at =
      begin_definition(w, count * TARN__LOG_MOST_NUMBER, which, number);
  for (size_t i = 0; i < count; i++)
    at = tarn__log_put_number(at, values[i]);
  tarn__log_publish(&w->log, at);
}

// Defines |text|, unless it is defined or empty (number 0), and cuts it at
// TARN__LOG_MOST_TEXT bytes.
static tarn_status put_text(writer *w, const char *text, uint64_t *out_number) {
  uint32_t number = 0;
  size_t known = w->texts.spans.count;
  *out_number = 0;
  if (*text == '\0') return TARN_OK;
  TARN__TRY(
      tarn__intern_put(&w->texts, &w->budget, &text, sizeof text, &number));
  *out_number = (uint64_t)number + 1;
  if (w->texts.spans.count == known) return TARN_OK;
  size_t size = strnlen(text, TARN__LOG_MOST_TEXT);
  unsigned char *at = begin_definition(w, TARN__LOG_MOST_NUMBER + size,
                                       TARN__LOG_TEXT, *out_number);
  at = tarn__log_put_number(at, size);
  memcpy(at, text, size);
  tarn__log_publish(&w->log, at + size);
  return TARN_OK;
}

static tarn_status put_frame(writer *w, size_t index) {
  const tarn_trace_frame *frame = &w->trace->frames[index];
  uint64_t values[] = {0, 0, frame->line};
  TARN__TRY(put_text(w, frame->file, &values[0]));
  TARN__TRY(put_text(w, frame->function, &values[1]));
  define(w, TARN__LOG_FRAME, (uint64_t)index + 1, values, 3);
  return TARN_OK;
}

static void put_stack(writer *w, size_t index) {
  const tarn_trace_stack *stack = &w->trace->stacks[index];
  const uint32_t *frames = w->trace->frame_indices + stack->first;
  uint64_t values[1 + TARN__LOG_MOST_FRAMES];
  size_t count = tarn__lesser(stack->count, TARN__LOG_MOST_FRAMES);
  values[0] = count;
  for (size_t i = 0; i < count; i++)
    values[1 + i] = (uint64_t)frames[i] + 1;
  define(w, TARN__LOG_STACK, (uint64_t)index + 1, values, 1 + count);
}

static tarn_status put_definitions(writer *w) {
  uint64_t number = 0;
  for (size_t i = 1; i < w->trace->tag_count; i++) {
    TARN__TRY(put_text(w, w->trace->tags[i], &number));
    define(w, TARN__LOG_TAG, number, NULL, 0);
  }
  for (size_t i = 0; i < w->trace->frame_count; i++)
    TARN__TRY(put_frame(w, i));
  for (size_t i = 0; i < w->trace->stack_count; i++)
    put_stack(w, i);
  return TARN_OK;
}

// --- events ----------------------------------------------------------------

static tarn_status put(writer *w, tarn__trace_log_event *event, uint32_t stack,
                       uint32_t tag) {
  event->device = w->trace->device;
  if (stack != TARN_TRACE_NO_STACK) event->stack = (uint64_t)stack + 1;
  if (tag != TARN_TRACE_NO_TAG) {  // its text is defined
    TARN__TRY(put_text(w, w->trace->tags[tag], &event->tag));
  }
  make_room(w, TARN__LOG_MOST_EVENT);
  tarn__log_put_event(&w->log, event);
  return TARN_OK;
}

static uint64_t address_of(const writer *w, uint32_t block, uint64_t address) {
  return w->anonymous ? (uint64_t)block + 1 : address;
}

static tarn_status put_old(writer *w, uint32_t index) {
  const tarn_trace_block *block = &w->trace->blocks[index];
  tarn__trace_log_event event = {
      .kind = TARN__LOG_OLD,
      .address = address_of(w, index, block->address),
      .size = block->size,
      .stream = block->stream};
  return put(w, &event, block->stack, block->tag);
}

static tarn_status put_event(writer *w, size_t index) {
  const tarn_trace_event *from = &w->trace->events[index];
  tarn__trace_log_event event = {.kind = (tarn__trace_log_kind)from->kind,
                                 .number = index,
                                 .time_us = from->time_us,
                                 .address = from->address,
                                 .size = from->size,
                                 .stream = from->stream};
  if (from->block != TARN_TRACE_NO_BLOCK) {
    event.address = address_of(w, from->block, from->address);
  }
  if (from->thread != w->thread) {
    w->thread = from->thread;
    define(w, TARN__LOG_THREAD, w->thread, NULL, 0);
  }
  return put(w, &event, from->stack, from->tag);
}

static tarn_status put_segment(writer *w, const tarn_trace_segment *segment) {
  tarn__trace_log_event event = {.kind = TARN__LOG_SEGMENT,
                                 .number = w->log.number,
                                 .time_us = w->log.time_us,
                                 .address = segment->address,
                                 .size = segment->size,
                                 .stream = segment->stream};
  return put(w, &event, TARN_TRACE_NO_STACK, TARN_TRACE_NO_TAG);
}

// --- the whole -------------------------------------------------------------

// Whether two blocks live at address 0 at once, so that 0 is not an address.
static bool is_anonymous(const tarn_trace *trace) {
  size_t living = 0;
  for (size_t i = 0; i < trace->baseline_count; i++)
    living += trace->blocks[i].address == 0;
  for (size_t i = 0; i < trace->event_count && living < 2; i++) {
    const tarn_trace_event *event = &trace->events[i];
    if (event->block == TARN_TRACE_NO_BLOCK || event->address != 0) continue;
    living += event->kind == TARN_TRACE_ALLOC;
    living -= event->kind == TARN_TRACE_FREE;
  }
  return living >= 2;
}

static tarn_status write_all(writer *w) {
  const tarn_trace *trace = w->trace;
  put_header(w);
  begin_page(w);
  TARN__TRY(put_definitions(w));
  for (size_t i = 0; i < trace->baseline_count; i++)
    TARN__TRY(put_old(w, (uint32_t)i));
  for (size_t i = 0; i < trace->event_count; i++)
    TARN__TRY(put_event(w, i));
  for (size_t i = 0; i < trace->segment_count; i++)
    TARN__TRY(put_segment(w, &trace->segments[i]));
  flush(w);
  return TARN_OK;
}

tarn_status tarn__log_write(const tarn_trace *trace, tarn__trace_sink *sink) {
  writer w = {.trace = trace,
              .sink = sink,
              .budget = tarn__budget_unlimited(trace->name),
              .anonymous = is_anonymous(trace)};
  tarn__intern_init(&w.texts);
  tarn_status status = write_all(&w);
  tarn__intern_deinit(&w.texts, &w.budget);
  return status;
}
