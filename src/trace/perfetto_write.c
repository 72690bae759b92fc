// Chrome trace events out of traces, for Perfetto.
//
//   {"displayTimeUnit": "ms", "traceEvents": [
//     {"ph": "M", ...}    the process is the trace, its threads are streams
//     {"ph": "b", ...}    a block is born; "id" is its number
//     {"ph": "e", ...}    ... and dies
//     {"ph": "C", ...}    counters: live bytes, and reserved bytes if known
//     {"ph": "i", ...}]}  out of memory
//
// A block is named by its tag, or by the innermost of its frames that is
// Python's, or by the innermost, or by its class of size. Its arguments hold
// the frames from that one outwards, at most STACK_SHOWN of them: in most
// stacks what is further in is the allocator's own, and a file that says all of
// them for each block would be too large to be opened.
//
// The clock never goes back: an event that says it is older than the one before
// it is shown at that one's time. Without times an event's number is its time.
#include <stdio.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/intern.h"
#include "base/status.h"
#include "trace/utf8.h"
#include "trace/write.h"

enum { STACK_SHOWN = 16 };

typedef struct writer {
  const tarn_trace *trace;
  tarn__sink *sink;
  tarn__budget budget;
  tarn__intern streams;  // strings of one uint64_t: numbered as they come
  uint64_t now;
  uint64_t live_bytes;
  uint64_t reserved_bytes;
  bool has_times;
  bool has_reserved;
  bool is_first;  // nothing is in the list yet
} writer;

// --- JSON ------------------------------------------------------------------

static void put_escaped(tarn__sink *sink, char c) {
  if (c == '"' || c == '\\') tarn__sink_byte(sink, '\\');
  if ((unsigned char)c >= 0x20) {
    tarn__sink_byte(sink, (unsigned char)c);
  } else {
    tarn__sink_format(sink, "\\u%04x", (unsigned)(unsigned char)c);
  }
}

// |text| as it stands between quotes; bytes that are no UTF-8 become U+FFFD.
static void put_inner(tarn__sink *sink, const char *text) {
  while (*text != '\0') {
    size_t length = tarn__utf8_character(text);
    if (length == 0) tarn__sink_text(sink, TARN__UTF8_UNKNOWN);
    if (length == 1) put_escaped(sink, *text);
    if (length > 1) tarn__sink_put(sink, text, length);
    text += length != 0 ? length : 1;
  }
}

static void open_event(writer *w, const char *kind, unsigned thread) {
  tarn__sink_text(w->sink, w->is_first ? "\n" : ",\n");
  w->is_first = false;
  tarn__sink_format(w->sink, "{\"ph\":\"%s\",\"pid\":1,\"tid\":%u", kind,
                    thread);
}

static void put_time(writer *w) {
  tarn__sink_format(w->sink, ",\"ts\":%llu", (unsigned long long)w->now);
}

// --- names -----------------------------------------------------------------

static bool is_python(const tarn_trace_frame *frame) {
  size_t length = strlen(frame->file);
  return length > 3 && strcmp(frame->file + length - 3, ".py") == 0;
}

static const tarn_trace_frame *frame_at(const tarn_trace *trace,
                                        const tarn_trace_stack *stack,
                                        size_t index) {
  return &trace->frames[trace->frame_indices[stack->first + index]];
}

// The frame of |stack| that names it.
static size_t naming_frame(const tarn_trace *trace,
                           const tarn_trace_stack *stack) {
  for (size_t i = 0; i < stack->count; i++) {
    if (is_python(frame_at(trace, stack, i))) return i;
  }
  return 0;
}

// "function file:line", of what is known of it.
static void put_frame(writer *w, const tarn_trace_frame *frame) {
  put_inner(w->sink, frame->function);
  if (frame->file[0] == '\0') return;
  if (frame->function[0] != '\0') tarn__sink_byte(w->sink, ' ');
  put_inner(w->sink, frame->file);
  if (frame->line != 0) tarn__sink_format(w->sink, ":%u", frame->line);
}

// "up to 4 KiB": the power of two that holds |size|.
static void put_size_class(writer *w, uint64_t size) {
  static const char *const units[] = {"B",   "KiB", "MiB", "GiB",
                                      "TiB", "PiB", "EiB"};
  unsigned power = 0;
  while (power < 63 && UINT64_C(1) << power < size)
    power++;
  tarn__sink_format(w->sink, "up to %u %s", 1u << power % 10,
                    units[power / 10]);
}

static const tarn_trace_stack *stack_of(const tarn_trace *trace,
                                        uint32_t number) {
  return number == TARN_TRACE_NO_STACK ? NULL : &trace->stacks[number];
}

static void put_block_name(writer *w, const tarn_trace_block *block) {
  const tarn_trace_stack *stack = stack_of(w->trace, block->stack);
  if (block->tag != TARN_TRACE_NO_TAG) {
    put_inner(w->sink, w->trace->tags[block->tag]);
  } else if (stack != NULL) {
    put_frame(w, frame_at(w->trace, stack, naming_frame(w->trace, stack)));
  } else {
    put_size_class(w, block->size);
  }
}

// --- the process -----------------------------------------------------------

// The thread that |stream| is shown as; 0 after a failure.
static tarn_status thread_of(writer *w, uint64_t stream, unsigned *out_thread) {
  uint32_t number = 0;
  tarn_status status = tarn__intern_put(&w->streams, &w->budget, &stream,
                                        sizeof stream, &number);
  *out_thread = number + 1;
  return status;
}

static void put_process(writer *w) {
  open_event(w, "M", 0);
  tarn__sink_text(w->sink, ",\"name\":\"process_name\",\"args\":{\"name\":\"");
  put_inner(w->sink, w->trace->name);
  tarn__sink_text(w->sink, "\"}}");
}

static void put_streams(writer *w) {
  const uint64_t *streams = w->streams.bytes.items;
  for (size_t i = 0; i < w->streams.spans.count; i++) {
    open_event(w, "M", (unsigned)i + 1);
    tarn__sink_format(w->sink,
                      ",\"name\":\"thread_name\",\"args\":{\"name\":\"stream "
                      "%llu\"}}",
                      (unsigned long long)streams[i]);
  }
}

// --- blocks ----------------------------------------------------------------

static void put_stack(writer *w, const tarn_trace_stack *stack) {
  size_t first = naming_frame(w->trace, stack);
  tarn__sink_text(w->sink, ",\"stack\":[");
  for (size_t i = first; i < stack->count && i < first + STACK_SHOWN; i++) {
    tarn__sink_text(w->sink, i == first ? "\"" : ",\"");
    put_frame(w, frame_at(w->trace, stack, i));
    tarn__sink_byte(w->sink, '"');
  }
  tarn__sink_byte(w->sink, ']');
}

static void put_arguments(writer *w, const tarn_trace_block *block) {
  tarn__sink_format(w->sink, ",\"args\":{\"bytes\":%llu",
                    (unsigned long long)block->size);
  if (block->address != 0) {
    tarn__sink_format(w->sink, ",\"address\":\"0x%llx\"",
                      (unsigned long long)block->address);
  }
  if (block->tag != TARN_TRACE_NO_TAG) {
    tarn__sink_text(w->sink, ",\"tag\":\"");
    put_inner(w->sink, w->trace->tags[block->tag]);
    tarn__sink_byte(w->sink, '"');
  }
  const tarn_trace_stack *stack = stack_of(w->trace, block->stack);
  if (stack != NULL) put_stack(w, stack);
  tarn__sink_byte(w->sink, '}');
}

// One end of a block's life.
static tarn_status put_block(writer *w, uint32_t index, const char *end) {
  const tarn_trace_block *block = &w->trace->blocks[index];
  unsigned thread = 0;
  tarn_status status = thread_of(w, block->stream, &thread);
  if (status != TARN_OK) return status;
  open_event(w, end, thread);
  put_time(w);
  tarn__sink_format(w->sink, ",\"cat\":\"block\",\"id\":\"0x%x\",\"name\":\"",
                    index);
  put_block_name(w, block);
  tarn__sink_byte(w->sink, '"');
  if (*end == 'b') put_arguments(w, block);
  tarn__sink_byte(w->sink, '}');
  return TARN_OK;
}

// --- counters --------------------------------------------------------------

static void put_counter(writer *w, const char *name, uint64_t bytes) {
  open_event(w, "C", 0);
  put_time(w);
  tarn__sink_format(w->sink, ",\"name\":\"%s\",\"args\":{\"bytes\":%llu}}",
                    name, (unsigned long long)bytes);
}

static void put_live(writer *w) {
  put_counter(w, "live bytes", w->live_bytes);
}

static void put_reserved(writer *w) {
  if (w->has_reserved) put_counter(w, "reserved bytes", w->reserved_bytes);
}

// How an event changes what is reserved: 1, -1 or 0 times its size.
static int reserving(tarn_trace_kind kind) {
  switch (kind) {
    case TARN_TRACE_SEGMENT_ALLOC:
    case TARN_TRACE_SEGMENT_MAP:
      return 1;
    case TARN_TRACE_SEGMENT_FREE:
    case TARN_TRACE_SEGMENT_UNMAP:
      return -1;
    case TARN_TRACE_ALLOC:
    case TARN_TRACE_FREE:
    case TARN_TRACE_FREE_REQUESTED:
    case TARN_TRACE_OOM:
    case TARN_TRACE_SNAPSHOT:
      break;
  }
  return 0;
}

// Never beyond either end: segments and events need not agree.
static uint64_t more(uint64_t sum, uint64_t size) {
  return size > UINT64_MAX - sum ? UINT64_MAX : sum + size;
}

static uint64_t less(uint64_t sum, uint64_t size) {
  return size > sum ? 0 : sum - size;
}

// What was reserved at first follows from what is at the end, backwards.
static void look_at_trace(writer *w) {
  const tarn_trace *trace = w->trace;
  for (size_t i = 0; i < trace->segment_count; i++)
    w->reserved_bytes = more(w->reserved_bytes, trace->segments[i].size);
  w->has_reserved = trace->segment_count != 0;
  for (size_t i = trace->event_count; i-- > 0;) {
    const tarn_trace_event *event = &trace->events[i];
    int way = reserving(event->kind);
    if (event->time_us != 0) w->has_times = true;
    if (way != 0) w->has_reserved = true;
    if (way > 0) w->reserved_bytes = less(w->reserved_bytes, event->size);
    if (way < 0) w->reserved_bytes = more(w->reserved_bytes, event->size);
  }
}

// --- events ----------------------------------------------------------------

static tarn_status put_oom(writer *w, const tarn_trace_event *event) {
  unsigned thread = 0;
  tarn_status status = thread_of(w, event->stream, &thread);
  if (status != TARN_OK) return status;
  open_event(w, "i", thread);
  put_time(w);
  tarn__sink_format(w->sink,
                    ",\"s\":\"g\",\"name\":\"out of memory\",\"args\":"
                    "{\"bytes\":%llu}}",
                    (unsigned long long)event->size);
  return TARN_OK;
}

static tarn_status put_birth(writer *w, uint32_t block) {
  w->live_bytes += w->trace->blocks[block].size;
  return put_block(w, block, "b");
}

static tarn_status put_event(writer *w, const tarn_trace_event *event) {
  tarn_status status = TARN_OK;
  int way = reserving(event->kind);
  if (event->kind == TARN_TRACE_ALLOC) status = put_birth(w, event->block);
  if (event->kind == TARN_TRACE_FREE) {
    w->live_bytes -= w->trace->blocks[event->block].size;
    status = put_block(w, event->block, "e");
  }
  if (event->kind == TARN_TRACE_ALLOC || event->kind == TARN_TRACE_FREE) {
    put_live(w);
  }
  if (event->kind == TARN_TRACE_OOM) status = put_oom(w, event);
  if (way > 0) w->reserved_bytes = more(w->reserved_bytes, event->size);
  if (way < 0) w->reserved_bytes = less(w->reserved_bytes, event->size);
  if (way != 0) put_reserved(w);
  return status;
}

static void set_time(writer *w, size_t index) {
  uint64_t time = w->has_times ? w->trace->events[index].time_us : index;
  if (time > w->now) w->now = time;
}

static tarn_status put_baseline(writer *w) {
  tarn_status status = TARN_OK;
  for (uint32_t i = 0; status == TARN_OK && i < w->trace->baseline_count; i++)
    status = put_birth(w, i);
  put_live(w);
  put_reserved(w);
  return status;
}

// The ends of those that never die, where the trace ends.
static tarn_status put_survivors(writer *w) {
  tarn_status status = TARN_OK;
  for (uint32_t i = 0; status == TARN_OK && i < w->trace->block_count; i++) {
    if (w->trace->blocks[i].died == TARN_TRACE_NEVER) {
      status = put_block(w, i, "e");
    }
  }
  return status;
}

static tarn_status put_all(writer *w) {
  put_process(w);
  if (w->trace->event_count != 0) set_time(w, 0);
  tarn_status status = put_baseline(w);
  for (size_t i = 0; status == TARN_OK && i < w->trace->event_count; i++) {
    set_time(w, i);
    status = put_event(w, &w->trace->events[i]);
  }
  if (status == TARN_OK) status = put_survivors(w);
  put_streams(w);
  return status;
}

tarn_status tarn__perfetto_write(const tarn_trace *trace, tarn__sink *sink) {
  writer w = {.trace = trace,
              .sink = sink,
              .budget = tarn__budget_unlimited(trace->name),
              .is_first = true};
  tarn__intern_init(&w.streams);
  look_at_trace(&w);
  tarn__sink_text(sink, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
  tarn_status status = put_all(&w);
  tarn__sink_text(sink, "\n]}\n");
  tarn__intern_deinit(&w.streams, &w.budget);
  return status;
}
