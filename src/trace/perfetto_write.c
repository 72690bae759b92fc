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

// No thread is 0, which viewers from before August 2025 merge with thread 1.
// Tracks of the process, as counters are, have the thread of the stacks.
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

static void put_inner(tarn__trace_sink *sink, const char *text) {
  tarn__utf8_put(sink, text, text + strlen(text), true);
}

// Begins an event; all but the names of threads have a time.
static void open_event(writer *w, const char *kind, unsigned thread) {
  tarn__sink_text(w->sink, w->is_first ? "\n" : ",\n");
  w->is_first = false;
  tarn__sink_format(w->sink, "{\"ph\":\"%s\",\"pid\":1,\"tid\":%u", kind,
                    thread);
  if (*kind == 'M') return;
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
    tarn__utf8_put(w->sink, text, text + found->length, true);
  } else {
    tarn__utf8_put(w->sink, text, text + TEXT_SHOWN, true);
    tarn__sink_format(w->sink, "... (text %u)", found->number);
  }
}

static void put_file(writer *w, const char *text) {
  const text_record *found = find_text(w, text);
  if (found == NULL) return;
  const char *end = text + found->length;
  if (found->number == 0) {
    tarn__utf8_put(w->sink, text, end, true);
    return;
  }
  const char *begin = end - TEXT_SHOWN;
  while (begin < end && ((unsigned char)*begin & 0xc0) == 0x80)
    begin++;
  tarn__sink_format(w->sink, "(text %u) ...", found->number);
  tarn__utf8_put(w->sink, begin, end, true);
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

// The thread that shows |stream|.
static unsigned thread_of(writer *w, uint64_t stream) {
  uint32_t number = 0;
  if (w->status == TARN_OK) {
    w->status = tarn__intern_put(&w->streams, &w->budget, &stream,
                                 sizeof stream, &number);
  }
  return FIRST_STREAM_THREAD + number;
}

// Begins the name of |what|; the rest of it follows.
static void open_name(writer *w, const char *what, unsigned thread) {
  open_event(w, "M", thread);
  tarn__sink_format(w->sink, ",\"name\":\"%s_name\",\"args\":{\"name\":\"",
                    what);
}

static void put_threads(writer *w) {
  const uint64_t *streams = w->streams.bytes.items;
  for (size_t i = 0; i < w->streams.spans.count; i++) {
    open_name(w, "thread", FIRST_STREAM_THREAD + (unsigned)i);
    tarn__sink_format(w->sink, "stream %llu\"}}",
                      (unsigned long long)streams[i]);
  }
  if (!w->has_definitions) return;
  open_name(w, "thread", STACKS_THREAD);
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
static void put_block(writer *w, uint32_t index, const char *end) {
  const tarn_trace_block *block = &w->trace->blocks[index];
  unsigned thread = thread_of(w, block->stream);
  if (*end == 'b') define_block(w, block);
  open_event(w, end, thread);
  tarn__sink_format(w->sink, ",\"cat\":\"block\",\"id\":\"0x%x\"", index);
  if (*end == 'b') {
    tarn__sink_text(w->sink, ",\"name\":\"");
    put_block_name(w, block);
    tarn__sink_byte(w->sink, '"');
    put_arguments(w, block);
  }
  tarn__sink_byte(w->sink, '}');
}

// --- counters --------------------------------------------------------------

static void put_counter(writer *w, const char *name, uint64_t bytes) {
  open_event(w, "C", STACKS_THREAD);
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
  if (kind == TARN_TRACE_SEGMENT_ALLOC || kind == TARN_TRACE_SEGMENT_MAP) {
    return 1;
  }
  return kind == TARN_TRACE_SEGMENT_FREE || kind == TARN_TRACE_SEGMENT_UNMAP
             ? -1
             : 0;
}

// Saturates, since segments and events may disagree.
static void reserve(writer *w, int way, uint64_t size) {
  uint64_t sum = w->reserved_bytes;
  if (way > 0) sum += tarn__lesser(size, UINT64_MAX - sum);
  if (way < 0) sum -= tarn__lesser(size, sum);
  w->reserved_bytes = sum;
}

// The bytes reserved at first, backwards from those at the end.
static void look_at_trace(writer *w) {
  const tarn_trace *trace = w->trace;
  for (size_t i = 0; i < trace->segment_count; i++)
    reserve(w, 1, trace->segments[i].size);
  w->has_reserved = trace->segment_count != 0;
  for (size_t i = trace->event_count; i-- > 0;) {
    const tarn_trace_event *event = &trace->events[i];
    int way = reserving(event->kind);
    w->has_times |= event->time_us != 0;
    w->has_reserved |= way != 0;
    reserve(w, -way, event->size);
  }
}

// --- events ----------------------------------------------------------------

static void put_oom(writer *w, const tarn_trace_event *event) {
  open_event(w, "i", thread_of(w, event->stream));
  tarn__sink_format(w->sink,
                    ",\"s\":\"g\",\"name\":\"out of memory\",\"args\":"
                    "{\"bytes\":%llu}}",
                    (unsigned long long)event->size);
}

static void put_birth(writer *w, uint32_t block) {
  w->live_bytes += w->trace->blocks[block].size;
  put_block(w, block, "b");
}

static void put_death(writer *w, uint32_t block) {
  w->live_bytes -= w->trace->blocks[block].size;
  put_block(w, block, "e");
}

static void put_event(writer *w, const tarn_trace_event *event) {
  int way = reserving(event->kind);
  if (event->kind == TARN_TRACE_ALLOC) put_birth(w, event->block);
  if (event->kind == TARN_TRACE_FREE) put_death(w, event->block);
  if (event->kind == TARN_TRACE_ALLOC || event->kind == TARN_TRACE_FREE) {
    put_live(w);
  }
  if (event->kind == TARN_TRACE_OOM) put_oom(w, event);
  if (way == 0) return;
  reserve(w, way, event->size);
  put_reserved(w);
}

static void set_time(writer *w, size_t index) {
  uint64_t time = w->has_times ? w->trace->events[index].time_us : index;
  if (time > w->now) w->now = time;
}

// The baseline, the events, and at the end of the trace the ends of blocks that
// never die.
static void put_all(writer *w) {
  const tarn_trace *trace = w->trace;
  open_name(w, "process", STACKS_THREAD);
  put_inner(w->sink, trace->name);
  tarn__sink_text(w->sink, "\"}}");
  if (trace->event_count != 0) set_time(w, 0);
  for (uint32_t i = 0; i < trace->baseline_count; i++)
    put_birth(w, i);
  put_live(w);
  put_reserved(w);
  for (size_t i = 0; w->status == TARN_OK && i < trace->event_count; i++) {
    set_time(w, i);
    put_event(w, &trace->events[i]);
  }
  for (uint32_t i = 0; i < trace->block_count; i++) {
    if (trace->blocks[i].died == TARN_TRACE_NEVER) put_block(w, i, "e");
  }
  put_threads(w);
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
  w.status = tarn__array_make(&w.budget, &w.named, trace->stack_count);
  if (w.status == TARN_OK) {
    look_at_trace(&w);
    tarn__sink_text(sink, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    put_all(&w);
    tarn__sink_text(sink, "\n]}\n");
  }
  tarn__array_free(&w.budget, &w.named);
  tarn__array_free(&w.budget, &w.texts);
  tarn__intern_deinit(&w.places, &w.budget);
  tarn__intern_deinit(&w.streams, &w.budget);
  return w.status;
}
