// Writes traces as Chrome trace events, for Perfetto.
//
//   {"displayTimeUnit": "ms", "traceEvents": [
//     {"ph": "M", ...}    the process is the trace, its threads are streams
//     {"ph": "i", ...}    on the thread "stacks": a stack or a long text; later
//                         events refer to it by its number
//     {"ph": "b", ...}    a block is born; "id" is its number
//     {"ph": "e", ...}    ... and dies
//     {"ph": "C", ...}    counters: live bytes, and reserved bytes if known
//     {"ph": "i", ...}]}  out of memory
//
// The name of a block is its tag, its innermost Python frame, its innermost
// frame, or its size class: the first of these that it has. Its arguments have
// the number of its stack. A stack shows at most STACK_SHOWN frames, from the
// naming one outwards: frames further in are mostly the allocator's own.
//
// The format cannot refer to names. If each event repeated its own, a file
// could be thousands of times as large as its trace. So a stack is written
// once, and a text of more than TEXT_SHOWN bytes is written in full once and
// cut elsewhere: a file's name keeps its end, other texts keep their begin.
//
//   "name": "forward (text 3) ...torch/nn/modules/module.py:1501"
//
// The clock never goes back: an event older than the one before it is shown at
// that one's time. Without times an event's number is its time.
#include <stdio.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/intern.h"
#include "base/status.h"
#include "trace/writers.h"

enum { STACK_SHOWN = 16, TEXT_SHOWN = 64 };

// No thread is 0, which viewers of before August 2025 merge with thread 1. What
// is the process's, as counters are, has the thread of the stacks.
enum { STACKS_THREAD = 1, FIRST_STREAM_THREAD = 2 };

// A text of the trace, known by its address: a trace has each text once.
typedef struct text_record {
  const char *bytes;
  size_t length;
  uint32_t number;  // from 1 on, of texts written once; 0: not yet
} text_record;

typedef struct writer {
  const tarn_trace *trace;
  tarn__trace_sink *sink;
  tarn__budget budget;
  tarn_status status;    // of tables; the sink keeps its own
  tarn__intern streams;  // strings of one uint64_t: numbered as they come
  tarn__intern places;   // strings of one const char *: of |texts|
  tarn__array texts;     // text_record
  uint32_t long_texts;   // that are written
  tarn__array named;     // uint32_t: of each stack the frame that names it + 1;
                         // 0: it is not written yet
  uint64_t now;
  uint64_t live_bytes;
  uint64_t reserved_bytes;
  bool has_times;
  bool has_reserved;
  bool has_definitions;
  bool is_first;  // nothing is in the list yet
} writer;

// --- JSON ------------------------------------------------------------------

static void put_escaped(tarn__trace_sink *sink, char c) {
  if (c == '"' || c == '\\') tarn__sink_byte(sink, '\\');
  if ((unsigned char)c >= 0x20) {
    tarn__sink_byte(sink, (unsigned char)c);
  } else {
    tarn__sink_format(sink, "\\u%04x", (unsigned)(unsigned char)c);
  }
}

// Writes |text| up to |end|, escaped for JSON. Bytes that are not UTF-8 become
// U+FFFD.
static void put_part(tarn__trace_sink *sink, const char *text,
                     const char *end) {
  while (text < end) {
    size_t length = tarn__utf8_character(text);
    if (length == 0) tarn__sink_text(sink, TARN__UTF8_UNKNOWN);
    if (length == 1) put_escaped(sink, *text);
    if (length > 1) tarn__sink_put(sink, text, length);
    text += length != 0 ? length : 1;
  }
}

static void put_inner(tarn__trace_sink *sink, const char *text) {
  put_part(sink, text, text + strlen(text));
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

// --- texts -----------------------------------------------------------------

// A text is read in full once.
static text_record *find_text(writer *w, const char *text) {
  void *fresh = NULL;
  uint32_t place = 0;
  if (w->status != TARN_OK) return NULL;
  w->status =
      tarn__intern_put(&w->places, &w->budget, &text, sizeof text, &place);
  if (w->status == TARN_OK && place == w->texts.count) {
    w->status = tarn__array_grow(&w->budget, &w->texts, 1, &fresh);
    if (w->status == TARN_OK) {
      *(text_record *)fresh =
          (text_record){.bytes = text, .length = strlen(text)};
    }
  }
  return w->status == TARN_OK ? (text_record *)w->texts.items + place : NULL;
}

// Begins an instant that later events refer to by |what| and |number|. Its
// arguments follow.
static void open_definition(writer *w, const char *what, uint32_t number) {
  w->has_definitions = true;
  open_event(w, "i", STACKS_THREAD);
  put_time(w);
  tarn__sink_format(w->sink, ",\"s\":\"t\",\"name\":\"%s %u\",\"args\":{", what,
                    number);
}

// Writes a text in full once, if it is cut elsewhere.
static void define_text(writer *w, const char *text) {
  text_record *found = find_text(w, text);
  if (found == NULL || found->length <= TEXT_SHOWN || found->number != 0) {
    return;
  }
  found->number = ++w->long_texts;
  open_definition(w, "text", found->number);
  tarn__sink_text(w->sink, "\"text\":\"");
  put_inner(w->sink, text);
  tarn__sink_text(w->sink, "\"}}");
}

// A defined text, cut.
static void put_text(writer *w, const char *text) {
  const text_record *found = find_text(w, text);
  if (found == NULL) return;
  if (found->number == 0) {
    put_part(w->sink, text, text + found->length);
  } else {
    put_part(w->sink, text, text + TEXT_SHOWN);
    tarn__sink_format(w->sink, "... (text %u)", found->number);
  }
}

static void put_file(writer *w, const char *text) {
  const text_record *found = find_text(w, text);
  if (found == NULL) return;
  const char *end = text + found->length;
  if (found->number == 0) {
    put_part(w->sink, text, end);
    return;
  }
  const char *begin = end - TEXT_SHOWN;
  while (begin < end && ((unsigned char)*begin & 0xc0) == 0x80)
    begin++;
  tarn__sink_format(w->sink, "(text %u) ...", found->number);
  put_part(w->sink, begin, end);
}

// --- names -----------------------------------------------------------------

static bool is_python(writer *w, const tarn_trace_frame *frame) {
  const text_record *file = find_text(w, frame->file);
  return file != NULL && file->length > 3 &&
         memcmp(file->bytes + file->length - 3, ".py", 3) == 0;
}

static const tarn_trace_frame *frame_at(const tarn_trace *trace,
                                        const tarn_trace_stack *stack,
                                        size_t index) {
  return &trace->frames[trace->frame_indices[stack->first + index]];
}

// The frame of |stack| that names it.
static uint32_t naming_frame(writer *w, const tarn_trace_stack *stack) {
  for (uint32_t i = 0; i < stack->count; i++) {
    if (is_python(w, frame_at(w->trace, stack, i))) return i;
  }
  return 0;
}

// "function file:line", of the known parts.
static void put_frame(writer *w, const tarn_trace_frame *frame) {
  put_text(w, frame->function);
  if (frame->file[0] == '\0') return;
  if (frame->function[0] != '\0') tarn__sink_byte(w->sink, ' ');
  put_file(w, frame->file);
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

// --- stacks ----------------------------------------------------------------

static size_t shown_end(const tarn_trace_stack *stack, size_t first) {
  return stack->count - first < STACK_SHOWN ? stack->count
                                            : first + STACK_SHOWN;
}

static void put_stack(writer *w, uint32_t number, size_t first) {
  const tarn_trace_stack *stack = &w->trace->stacks[number];
  open_definition(w, "stack", number);
  tarn__sink_text(w->sink, "\"stack\":[");
  for (size_t i = first; i < shown_end(stack, first); i++) {
    tarn__sink_text(w->sink, i == first ? "\"" : ",\"");
    put_frame(w, frame_at(w->trace, stack, i));
    tarn__sink_byte(w->sink, '"');
  }
  tarn__sink_text(w->sink, "]}}");
}

// Writes a stack once; the texts that it shows go first.
static void define_stack(writer *w, uint32_t number) {
  const tarn_trace_stack *stack = &w->trace->stacks[number];
  uint32_t *named = (uint32_t *)w->named.items + number;
  if (*named != 0) return;
  uint32_t first = naming_frame(w, stack);
  *named = first + 1;
  for (size_t i = first; i < shown_end(stack, first); i++) {
    define_text(w, frame_at(w->trace, stack, i)->function);
    define_text(w, frame_at(w->trace, stack, i)->file);
  }
  put_stack(w, number, first);
}

// --- the process -----------------------------------------------------------

// The thread that shows |stream|; undefined after a failure.
static tarn_status thread_of(writer *w, uint64_t stream, unsigned *out_thread) {
  uint32_t number = 0;
  tarn_status status = tarn__intern_put(&w->streams, &w->budget, &stream,
                                        sizeof stream, &number);
  *out_thread = FIRST_STREAM_THREAD + number;
  return status;
}

static void put_process(writer *w) {
  open_event(w, "M", STACKS_THREAD);
  tarn__sink_text(w->sink, ",\"name\":\"process_name\",\"args\":{\"name\":\"");
  put_inner(w->sink, w->trace->name);
  tarn__sink_text(w->sink, "\"}}");
}

static void put_thread_name(writer *w, unsigned thread) {
  open_event(w, "M", thread);
  tarn__sink_text(w->sink, ",\"name\":\"thread_name\",\"args\":{\"name\":\"");
}

static void put_threads(writer *w) {
  const uint64_t *streams = w->streams.bytes.items;
  for (size_t i = 0; i < w->streams.spans.count; i++) {
    put_thread_name(w, FIRST_STREAM_THREAD + (unsigned)i);
    tarn__sink_format(w->sink, "stream %llu\"}}",
                      (unsigned long long)streams[i]);
  }
  if (!w->has_definitions) return;
  put_thread_name(w, STACKS_THREAD);
  tarn__sink_text(w->sink, "stacks\"}}");
}

// --- blocks ----------------------------------------------------------------

// Writes the stack and texts that a block's birth refers to.
static void define_block(writer *w, const tarn_trace_block *block) {
  if (block->tag != TARN_TRACE_NO_TAG) {
    define_text(w, w->trace->tags[block->tag]);
  }
  if (block->stack != TARN_TRACE_NO_STACK) define_stack(w, block->stack);
}

static void put_block_name(writer *w, const tarn_trace_block *block) {
  if (block->tag != TARN_TRACE_NO_TAG) {
    put_text(w, w->trace->tags[block->tag]);
  } else if (block->stack != TARN_TRACE_NO_STACK) {
    uint32_t named = ((const uint32_t *)w->named.items)[block->stack];
    const tarn_trace_stack *stack = &w->trace->stacks[block->stack];
    put_frame(w, frame_at(w->trace, stack, named - 1));
  } else {
    put_size_class(w, block->size);
  }
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
    put_text(w, w->trace->tags[block->tag]);
    tarn__sink_byte(w->sink, '"');
  }
  if (block->stack != TARN_TRACE_NO_STACK) {
    tarn__sink_format(w->sink, ",\"stack\":%u", block->stack);
  }
  tarn__sink_byte(w->sink, '}');
}

// The birth or death of a block. A death has the block's number and no name.
static tarn_status put_block(writer *w, uint32_t index, const char *end) {
  const tarn_trace_block *block = &w->trace->blocks[index];
  unsigned thread = 0;
  tarn_status status = thread_of(w, block->stream, &thread);
  if (status != TARN_OK) return status;
  if (*end == 'b') define_block(w, block);
  open_event(w, end, thread);
  put_time(w);
  tarn__sink_format(w->sink, ",\"cat\":\"block\",\"id\":\"0x%x\"", index);
  if (*end == 'b') {
    tarn__sink_text(w->sink, ",\"name\":\"");
    put_block_name(w, block);
    tarn__sink_byte(w->sink, '"');
    put_arguments(w, block);
  }
  tarn__sink_byte(w->sink, '}');
  return w->status;
}

// --- counters --------------------------------------------------------------

static void put_counter(writer *w, const char *name, uint64_t bytes) {
  open_event(w, "C", STACKS_THREAD);
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

// The change of reserved bytes by an event: 1, -1 or 0 times its size.
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

// Saturates, since segments and events may disagree.
static uint64_t more(uint64_t sum, uint64_t size) {
  return size > UINT64_MAX - sum ? UINT64_MAX : sum + size;
}

static uint64_t less(uint64_t sum, uint64_t size) {
  return size > sum ? 0 : sum - size;
}

// The bytes reserved at first, backwards from those at the end.
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

// Ends blocks that never die at the end of the trace.
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
  put_threads(w);
  return status;
}

tarn_status tarn__perfetto_write(const tarn_trace *trace,
                                 tarn__trace_sink *sink) {
  writer w = {.trace = trace,
              .sink = sink,
              .budget = tarn__budget_unlimited(trace->name),
              .texts = TARN__ARRAY_OF(text_record),
              .named = TARN__ARRAY_OF(uint32_t),
              .is_first = true};
  tarn__intern_init(&w.streams);
  tarn__intern_init(&w.places);
  tarn_status status =
      tarn__array_make(&w.budget, &w.named, trace->stack_count);
  if (status == TARN_OK) {
    look_at_trace(&w);
    tarn__sink_text(sink, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    status = put_all(&w);
    tarn__sink_text(sink, "\n]}\n");
  }
  tarn__array_free(&w.budget, &w.named);
  tarn__array_free(&w.budget, &w.texts);
  tarn__intern_deinit(&w.places, &w.budget);
  tarn__intern_deinit(&w.streams, &w.budget);
  return status;
}
