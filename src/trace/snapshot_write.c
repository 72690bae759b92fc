// Writes traces as PyTorch memory snapshots.
//
//   {"tarn_words": [...],
//    "segments": [{device, address, total_size, ..., "blocks": [...]}],
//    "device_traces": [[], [{action, addr, size, stream, time_us, frames}]],
//    "allocator_settings": {}, "external_annotations": []}
//
// Repeated values are written once, memoised, and fetched afterwards: keys and
// other words, texts of frames, frames, and stacks. A text is identified by its
// address, since a trace has each text once: comparing bytes would cost its
// length for each frame. A stack is identified by its number and its tag's, for
// the tag is a frame at its outer end. All words are in a list of their own in
// front, under a key that no viewer reads: the first 256 values in the memo are
// fetched with two bytes, the others with five.
//
// A block of the baseline that dies within the trace has no alloc, so its death
// carries its stack if it has none of its own.
//
// Pickles are written opcode by opcode, each argument in its shortest form.
// FRAMEs, which are a hint for readers, are left out.
//
// The blocks of a segment are written without gaps, since viewers add up their
// sizes to find addresses; unused space is an "inactive" block.
//
// Invariant: a value's number is that of the memo + 1, and 0 while the value is
// not written.
#include <string.h>

#include "base/hostmem.h"
#include "base/intern.h"
#include "base/status.h"
#include "trace/snapshot.h"
#include "trace/writers.h"

enum { PROTOCOL = 4, BATCH = 1000, LARGE = 2 << 20, DEVICES = 256 };

typedef enum opcode {
  APPENDS = 'e',
  EMPTY_DICT = '}',
  EMPTY_LIST = ']',
  MARK = '(',
  MEMOIZE = 0x94,
  NEWFALSE = 0x89,
  SETITEMS = 'u',
  STOP = '.',
  TUPLE2 = 0x86,
} opcode;

// The words of a snapshot but its actions, each with its text.
#define WORDS_BY(WORD)                               \
  WORD(TARN_WORDS, "tarn_words")                     \
  WORD(SEGMENTS, "segments")                         \
  WORD(DEVICE_TRACES, "device_traces")               \
  WORD(ALLOCATOR_SETTINGS, "allocator_settings")     \
  WORD(EXTERNAL_ANNOTATIONS, "external_annotations") \
  WORD(DEVICE, "device")                             \
  WORD(ADDRESS, "address")                           \
  WORD(TOTAL_SIZE, "total_size")                     \
  WORD(ALLOCATED_SIZE, "allocated_size")             \
  WORD(ACTIVE_SIZE, "active_size")                   \
  WORD(REQUESTED_SIZE, "requested_size")             \
  WORD(STREAM, "stream")                             \
  WORD(SEGMENT_TYPE, "segment_type")                 \
  WORD(SEGMENT_POOL_ID, "segment_pool_id")           \
  WORD(IS_EXPANDABLE, "is_expandable")               \
  WORD(FRAMES, "frames")                             \
  WORD(BLOCKS, "blocks")                             \
  WORD(SIZE, "size")                                 \
  WORD(STATE, "state")                               \
  WORD(ACTION, "action")                             \
  WORD(ADDR, "addr")                                 \
  WORD(TIME_US, "time_us")                           \
  WORD(DEVICE_FREE, "device_free")                   \
  WORD(FILENAME, "filename")                         \
  WORD(NAME, "name")                                 \
  WORD(LINE, "line")                                 \
  WORD(SMALL_SEGMENT, "small")                       \
  WORD(LARGE_SEGMENT, "large")                       \
  WORD(INACTIVE, "inactive")                         \
  WORD(ACTIVE_ALLOCATED, "active_allocated")         \
  WORD(ACTIVE_PENDING_FREE, "active_pending_free")   \
  WORD(TAG, TARN__FRAMES_TAG)

typedef enum word {
#define AS_NAME(name, text) name,
  WORDS_BY(AS_NAME)
#undef AS_NAME
      ACTIONS,  // from here on: tarn__snapshot_actions
  WORDS = ACTIONS + TARN__ACTIONS,
} word;

static const char *const word_texts[ACTIONS] = {
#define AS_TEXT(name, text) text,
    WORDS_BY(AS_TEXT)
#undef AS_TEXT
};

typedef struct writer {
  const tarn_trace *trace;
  tarn__trace_sink *sink;
  uint32_t memoised;  // values in the memo
  tarn__budget budget;
  tarn_status status;  // of tables; the sink keeps its own
  uint64_t *addresses;
  bool *let_go;  // by block: a free was requested
  tarn__trace_held held;
  bool has_times;

  uint32_t words[WORDS];
  tarn__intern texts;  // const char *: of frames and tags
  tarn__array text_numbers;
  tarn__array frame_numbers;  // by the trace's index
  tarn__intern stacks;        // tarn__trace_frames_text
  tarn__array stack_numbers;
} writer;

// --- values ----------------------------------------------------------------

static void put_op(writer *w, opcode code) {
  tarn__sink_byte(w->sink, (unsigned char)code);
}

static void put_little(writer *w, unsigned char code, uint64_t number,
                       size_t size) {
  unsigned char bytes[1 + sizeof number] = {code};
  for (size_t i = 0; i < size; i++)
    bytes[1 + i] = (unsigned char)(number >> 8 * i);
  tarn__sink_put(w->sink, bytes, 1 + size);
}

// LONG1 has a sign, for which the highest bit is kept.
static void put_long(writer *w, uint64_t number) {
  unsigned char bytes[11] = {0x8a};
  unsigned char size = 0;
  for (; number != 0; number >>= 8)
    bytes[2 + size++] = (unsigned char)number;
  if ((bytes[1 + size] & 0x80) != 0) size++;
  bytes[1] = size;
  tarn__sink_put(w->sink, bytes, 2 + (size_t)size);
}

static void put_int(writer *w, uint64_t number) {
  if (number <= UINT8_MAX) {
    put_little(w, 'K', number, 1);
  } else if (number <= UINT16_MAX) {
    put_little(w, 'M', number, 2);
  } else if (number <= INT32_MAX) {
    put_little(w, 'J', number, 4);
  } else {
    put_long(w, number);
  }
}

// Each byte that is not UTF-8 becomes U+FFFD: Python would refuse the file.
static void put_unicode(writer *w, const char *text) {
  size_t size = tarn__utf8_size(text);
  if (size <= UINT8_MAX) {
    put_little(w, 0x8c, size, 1);
  } else if (size <= UINT32_MAX) {
    put_little(w, 'X', size, 4);
  } else {
    put_little(w, 0x8d, size, 8);
  }
  tarn__utf8_put(w->sink, text, text + strlen(text), false);
}

// --- what is written once --------------------------------------------------

// Fetches value |*number|, if it is written.
static bool fetch(writer *w, const uint32_t *number) {
  if (*number == 0) return false;
  bool is_short = *number - 1 <= UINT8_MAX;
  put_little(w, is_short ? 'h' : 'j', *number - 1, is_short ? 1 : 4);
  return true;
}

// Numbers the value that was written last.
static void memoise(writer *w, uint32_t *number) {
  put_op(w, MEMOIZE);
  *number = ++w->memoised;
}

static void put_word(writer *w, word which) {
  if (fetch(w, &w->words[which])) return;
  put_unicode(w, which < ACTIONS ? word_texts[which]
                                 : tarn__snapshot_actions[which - ACTIONS]);
  memoise(w, &w->words[which]);
}

// The memo's number of the string |bytes| in |set|; NULL after a failure.
static uint32_t *number_of(writer *w, tarn__intern *set, tarn__array *numbers,
                           const void *bytes, size_t size) {
  uint32_t at = 0;
  void *fresh = NULL;
  if (w->status != TARN_OK) return NULL;
  w->status = tarn__intern_put(set, &w->budget, bytes, size, &at);
  if (w->status == TARN_OK && at == numbers->count) {
    w->status = tarn__array_grow(&w->budget, numbers, 1, &fresh);
  }
  return w->status == TARN_OK ? (uint32_t *)numbers->items + at : NULL;
}

static void put_text(writer *w, const char *text) {
  uint32_t *number =
      number_of(w, &w->texts, &w->text_numbers, &text, sizeof text);
  if (number == NULL || fetch(w, number)) return;
  put_unicode(w, text);
  memoise(w, number);
}

// --- dicts and lists -------------------------------------------------------

// Begins a container; APPENDS or SETITEMS ends it.
static void open(writer *w, opcode container) {
  put_op(w, container);
  put_op(w, MARK);
}

// A list is filled in batches, so that a reader's stack stays low.
static void next_of_list(writer *w, size_t index) {
  if (index == 0 || index % BATCH != 0) return;
  put_op(w, APPENDS);
  put_op(w, MARK);
}

static void put_number(writer *w, word key, uint64_t number) {
  put_word(w, key);
  put_int(w, number);
}

static void put_words(writer *w, word key, word value) {
  put_word(w, key);
  put_word(w, value);
}

static void put_empty(writer *w, word key, opcode container) {
  put_word(w, key);
  put_op(w, container);
}

static void put_all_words(writer *w) {
  put_word(w, TARN_WORDS);
  open(w, EMPTY_LIST);
  for (size_t i = 0; i < WORDS; i++)
    put_word(w, (word)i);
  put_op(w, APPENDS);
}

// --- stacks ----------------------------------------------------------------

static void put_frame_dict(writer *w, const char *file, const char *function,
                           uint32_t line) {
  open(w, EMPTY_DICT);
  put_word(w, FILENAME);
  put_text(w, file);
  put_number(w, LINE, line);
  put_word(w, NAME);
  put_text(w, function);
  put_op(w, SETITEMS);
}

static void put_frame(writer *w, uint32_t index) {
  const tarn_trace_frame *frame = &w->trace->frames[index];
  uint32_t *number = (uint32_t *)w->frame_numbers.items + index;
  if (fetch(w, number)) return;
  put_frame_dict(w, frame->file, frame->function, frame->line);
  memoise(w, number);
}

static void put_frames(writer *w, tarn__trace_frames_text what) {
  open(w, EMPTY_LIST);
  if (what.stack != TARN_TRACE_NO_STACK) {
    const tarn_trace_stack *stack = &w->trace->stacks[what.stack];
    for (size_t i = 0; i < stack->count; i++) {
      next_of_list(w, i);
      put_frame(w, w->trace->frame_indices[stack->first + i]);
    }
  }
  if (what.tag != TARN_TRACE_NO_TAG) {
    put_frame_dict(w, word_texts[TAG], w->trace->tags[what.tag], 0);
  }
  put_op(w, APPENDS);
}

static void put_stack(writer *w, tarn__trace_frames_text what) {
  put_word(w, FRAMES);
  if (what.stack == TARN_TRACE_NO_STACK && what.tag == TARN_TRACE_NO_TAG) {
    put_op(w, EMPTY_LIST);
    return;
  }
  uint32_t *number =
      number_of(w, &w->stacks, &w->stack_numbers, &what, sizeof what);
  if (number == NULL || fetch(w, number)) return;
  put_frames(w, what);
  memoise(w, number);
}

// --- segments --------------------------------------------------------------

static void put_free_block(writer *w, uint64_t address, uint64_t size) {
  open(w, EMPTY_DICT);
  put_number(w, ADDRESS, address);
  put_number(w, SIZE, size);
  put_number(w, REQUESTED_SIZE, 0);
  put_words(w, STATE, INACTIVE);
  put_empty(w, FRAMES, EMPTY_LIST);
  put_op(w, SETITEMS);
}

static void put_block(writer *w, uint32_t index, uint64_t bytes) {
  const tarn_trace_block *block = &w->trace->blocks[index];
  open(w, EMPTY_DICT);
  put_number(w, ADDRESS, w->addresses[index]);
  put_number(w, SIZE, bytes);
  put_number(w, REQUESTED_SIZE, block->size);
  put_words(w, STATE,
            w->let_go[index] ? ACTIVE_PENDING_FREE : ACTIVE_ALLOCATED);
  put_stack(
      w, (tarn__trace_frames_text){.stack = block->stack, .tag = block->tag});
  put_op(w, SETITEMS);
}

static void put_blocks(writer *w, const tarn__trace_held_segment *segment) {
  uint64_t at = segment->shown.address;
  uint64_t end = at + segment->shown.size;
  size_t written = 0;
  put_word(w, BLOCKS);
  open(w, EMPTY_LIST);
  for (size_t i = 0; i < segment->count; i++) {
    uint32_t block = w->held.blocks[segment->first + i];
    uint64_t bytes = tarn__held_bytes(&w->held, segment, i);
    if (w->addresses[block] > at) {
      next_of_list(w, written++);
      put_free_block(w, at, w->addresses[block] - at);
    }
    next_of_list(w, written++);
    put_block(w, block, bytes);
    at = w->addresses[block] + bytes;
  }
  next_of_list(w, written);
  if (at < end) put_free_block(w, at, end - at);
  put_op(w, APPENDS);
}

// The sums over blocks in a segment's dict.
static void put_sums(writer *w, const tarn__trace_held_segment *segment) {
  uint64_t allocated = 0;
  uint64_t active = 0;
  uint64_t requested = 0;
  for (size_t i = 0; i < segment->count; i++) {
    uint32_t block = w->held.blocks[segment->first + i];
    uint64_t bytes = tarn__held_bytes(&w->held, segment, i);
    active += bytes;
    requested += w->trace->blocks[block].size;
    if (!w->let_go[block]) allocated += bytes;
  }
  put_number(w, ALLOCATED_SIZE, allocated);
  put_number(w, ACTIVE_SIZE, active);
  put_number(w, REQUESTED_SIZE, requested);
}

static uint32_t device_of(const tarn_trace *trace) {
  return trace->device < DEVICES ? trace->device : 0;
}

static void put_pool_id(writer *w) {
  put_word(w, SEGMENT_POOL_ID);
  put_int(w, 0);
  put_int(w, 0);
  put_op(w, TUPLE2);
}

static void put_segment(writer *w, const tarn__trace_held_segment *segment) {
  bool is_large = segment->shown.size > LARGE;
  open(w, EMPTY_DICT);
  put_number(w, DEVICE, device_of(w->trace));
  put_number(w, ADDRESS, segment->shown.address);
  put_number(w, TOTAL_SIZE, segment->shown.size);
  put_sums(w, segment);
  put_number(w, STREAM, segment->shown.stream);
  put_words(w, SEGMENT_TYPE, is_large ? LARGE_SEGMENT : SMALL_SEGMENT);
  put_pool_id(w);
  put_empty(w, IS_EXPANDABLE, NEWFALSE);
  put_empty(w, FRAMES, EMPTY_LIST);
  put_blocks(w, segment);
  put_op(w, SETITEMS);
}

static void put_segments(writer *w) {
  put_word(w, SEGMENTS);
  open(w, EMPTY_LIST);
  for (size_t i = 0; i < w->held.segment_count; i++) {
    next_of_list(w, i);
    put_segment(w, &w->held.segments[i]);
  }
  put_op(w, APPENDS);
}

// --- events ----------------------------------------------------------------

static tarn__trace_frames_text stack_of(const writer *w,
                                        const tarn_trace_event *event) {
  tarn__trace_frames_text what = {.stack = event->stack, .tag = event->tag};
  if (event->kind != TARN_TRACE_FREE) return what;
  const tarn_trace_block *block = &w->trace->blocks[event->block];
  if (block->born != TARN_TRACE_BASELINE) return what;
  if (what.stack == TARN_TRACE_NO_STACK) what.stack = block->stack;
  if (what.tag == TARN_TRACE_NO_TAG) what.tag = block->tag;
  return what;
}

static void put_event(writer *w, const tarn_trace_event *event) {
  open(w, EMPTY_DICT);
  put_words(w, ACTION, (word)(ACTIONS + (int)event->kind - 1));
  put_number(w, event->kind == TARN_TRACE_OOM ? DEVICE_FREE : ADDR,
             tarn__places_of(w->addresses, event));
  put_number(w, SIZE, event->size);
  put_number(w, STREAM, event->stream);
  if (w->has_times) put_number(w, TIME_US, event->time_us);
  put_stack(w, stack_of(w, event));
  put_op(w, SETITEMS);
}

// One list for each device up to the trace's own, which has the events.
static void put_events(writer *w) {
  uint32_t device = device_of(w->trace);
  put_word(w, DEVICE_TRACES);
  open(w, EMPTY_LIST);
  for (uint32_t i = 0; i < device; i++)
    put_op(w, EMPTY_LIST);
  open(w, EMPTY_LIST);
  for (size_t i = 0; i < w->trace->event_count; i++) {
    next_of_list(w, i);
    put_event(w, &w->trace->events[i]);
  }
  put_op(w, APPENDS);
  put_op(w, APPENDS);
}

// --- the whole -------------------------------------------------------------

static void look_at_events(writer *w) {
  for (size_t i = 0; i < w->trace->event_count; i++) {
    const tarn_trace_event *event = &w->trace->events[i];
    if (event->time_us != 0) w->has_times = true;
    if (event->kind == TARN_TRACE_FREE_REQUESTED)
      w->let_go[event->block] = true;
  }
}

static tarn_status begin(writer *w) {
  const tarn_trace *trace = w->trace;
  tarn__intern_init(&w->texts);
  tarn__intern_init(&w->stacks);
  w->let_go = tarn__host_array(trace->block_count, sizeof *w->let_go);
  if (w->let_go == NULL) return TARN_E_NOMEM;
  TARN__TRY(tarn__places_make(trace, &w->addresses));
  TARN__TRY(tarn__held_make(trace, w->addresses, &w->held));
  return tarn__array_make(&w->budget, &w->frame_numbers, trace->frame_count);
}

static void end(writer *w) {
  tarn__array_free(&w->budget, &w->stack_numbers);
  tarn__array_free(&w->budget, &w->frame_numbers);
  tarn__array_free(&w->budget, &w->text_numbers);
  tarn__intern_deinit(&w->stacks, &w->budget);
  tarn__intern_deinit(&w->texts, &w->budget);
  tarn__held_free(&w->held);
  tarn__places_free(w->trace, w->addresses);
  tarn__host_free_array(w->let_go, w->trace->block_count, sizeof *w->let_go);
}

static void put_all(writer *w) {
  put_little(w, 0x80, PROTOCOL, 1);
  open(w, EMPTY_DICT);
  put_all_words(w);
  put_segments(w);
  put_events(w);
  put_empty(w, ALLOCATOR_SETTINGS, EMPTY_DICT);
  put_empty(w, EXTERNAL_ANNOTATIONS, EMPTY_LIST);
  put_op(w, SETITEMS);
  put_op(w, STOP);
}

tarn_status tarn__snapshot_write(const tarn_trace *trace,
                                 tarn__trace_sink *sink) {
  writer w = {.trace = trace,
              .sink = sink,
              .budget = tarn__budget_unlimited(trace->name),
              .text_numbers = TARN__ARRAY_OF(uint32_t),
              .frame_numbers = TARN__ARRAY_OF(uint32_t),
              .stack_numbers = TARN__ARRAY_OF(uint32_t)};
  tarn_status status = begin(&w);
  if (status == TARN_OK) {
    look_at_events(&w);
    put_all(&w);
    status = w.status;
  }
  end(&w);
  return status;
}
