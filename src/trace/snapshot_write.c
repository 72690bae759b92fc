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
// The blocks of a segment are written without gaps, since viewers add up their
// sizes to find addresses; unused space is an "inactive" block.
//
// Invariant: |numbers| of a memo hold the memo's number + 1, and 0 for values
// not written yet.
#include <string.h>

#include "base/hostmem.h"
#include "base/intern.h"
#include "base/status.h"
#include "trace/snapshot.h"
#include "trace/writers.h"

enum { BATCH = 1000, LARGE = 2 << 20, DEVICES = 256 };

typedef enum word {
  TARN_WORDS,
  SEGMENTS,
  DEVICE_TRACES,
  ALLOCATOR_SETTINGS,
  EXTERNAL_ANNOTATIONS,
  DEVICE,
  ADDRESS,
  TOTAL_SIZE,
  ALLOCATED_SIZE,
  ACTIVE_SIZE,
  REQUESTED_SIZE,
  STREAM,
  SEGMENT_TYPE,
  SEGMENT_POOL_ID,
  IS_EXPANDABLE,
  FRAMES,
  BLOCKS,
  SIZE,
  STATE,
  ACTION,
  ADDR,
  TIME_US,
  DEVICE_FREE,
  FILENAME,
  NAME,
  LINE,
  SMALL_SEGMENT,
  LARGE_SEGMENT,
  INACTIVE,
  ACTIVE_ALLOCATED,
  ACTIVE_PENDING_FREE,
  TAG,
  ACTIONS,  // from here on: by the kind of event
  WORDS = ACTIONS + TARN_TRACE_SNAPSHOT + 1,
} word;

static const char *const word_texts[WORDS] = {
    [TARN_WORDS] = "tarn_words",
    [SEGMENTS] = "segments",
    [DEVICE_TRACES] = "device_traces",
    [ALLOCATOR_SETTINGS] = "allocator_settings",
    [EXTERNAL_ANNOTATIONS] = "external_annotations",
    [DEVICE] = "device",
    [ADDRESS] = "address",
    [TOTAL_SIZE] = "total_size",
    [ALLOCATED_SIZE] = "allocated_size",
    [ACTIVE_SIZE] = "active_size",
    [REQUESTED_SIZE] = "requested_size",
    [STREAM] = "stream",
    [SEGMENT_TYPE] = "segment_type",
    [SEGMENT_POOL_ID] = "segment_pool_id",
    [IS_EXPANDABLE] = "is_expandable",
    [FRAMES] = "frames",
    [BLOCKS] = "blocks",
    [SIZE] = "size",
    [STATE] = "state",
    [ACTION] = "action",
    [ADDR] = "addr",
    [TIME_US] = "time_us",
    [DEVICE_FREE] = "device_free",
    [FILENAME] = "filename",
    [NAME] = "name",
    [LINE] = "line",
    [SMALL_SEGMENT] = "small",
    [LARGE_SEGMENT] = "large",
    [INACTIVE] = "inactive",
    [ACTIVE_ALLOCATED] = "active_allocated",
    [ACTIVE_PENDING_FREE] = "active_pending_free",
    [TAG] = TARN__FRAMES_TAG,
    [ACTIONS + TARN_TRACE_ALLOC] = "alloc",
    [ACTIONS + TARN_TRACE_FREE] = "free_completed",
    [ACTIONS + TARN_TRACE_FREE_REQUESTED] = "free_requested",
    [ACTIONS + TARN_TRACE_SEGMENT_ALLOC] = "segment_alloc",
    [ACTIONS + TARN_TRACE_SEGMENT_FREE] = "segment_free",
    [ACTIONS + TARN_TRACE_SEGMENT_MAP] = "segment_map",
    [ACTIONS + TARN_TRACE_SEGMENT_UNMAP] = "segment_unmap",
    [ACTIONS + TARN_TRACE_OOM] = "oom",
    [ACTIONS + TARN_TRACE_SNAPSHOT] = "snapshot",
};

typedef struct writer {
  const tarn_trace *trace;
  tarn__trace_pickler pickler;
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

// --- what is written once --------------------------------------------------

// Fetches value |*number|, if it is written.
static bool fetch(writer *w, const uint32_t *number) {
  if (*number == 0) return false;
  tarn__pickler_get(&w->pickler, *number - 1);
  return true;
}

static void put_word(writer *w, word which) {
  if (fetch(w, &w->words[which])) return;
  tarn__pickler_text(&w->pickler, word_texts[which]);
  w->words[which] = tarn__pickler_memoise(&w->pickler) + 1;
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
  tarn__pickler_text(&w->pickler, text);
  *number = tarn__pickler_memoise(&w->pickler) + 1;
}

// --- dicts and lists -------------------------------------------------------

static void open(writer *w, tarn__trace_pickler_opcode container) {
  tarn__pickler_op(&w->pickler, container);
  tarn__pickler_op(&w->pickler, TARN__OP_MARK);
}

static void close(writer *w, tarn__trace_pickler_opcode opcode) {
  tarn__pickler_op(&w->pickler, opcode);
}

// A list is filled in batches, so that a reader's stack stays low.
static void next_of_list(writer *w, size_t index) {
  if (index == 0 || index % BATCH != 0) return;
  tarn__pickler_op(&w->pickler, TARN__OP_APPENDS);
  tarn__pickler_op(&w->pickler, TARN__OP_MARK);
}

static void put_number(writer *w, word key, uint64_t number) {
  put_word(w, key);
  tarn__pickler_int(&w->pickler, number);
}

static void put_words(writer *w, word key, word value) {
  put_word(w, key);
  put_word(w, value);
}

static void put_empty(writer *w, word key,
                      tarn__trace_pickler_opcode container) {
  put_word(w, key);
  tarn__pickler_op(&w->pickler, container);
}

static void put_all_words(writer *w) {
  put_word(w, TARN_WORDS);
  open(w, TARN__OP_EMPTY_LIST);
  for (size_t i = 0; i < WORDS; i++) {
    if (word_texts[i] != NULL) put_word(w, (word)i);
  }
  close(w, TARN__OP_APPENDS);
}

// --- stacks ----------------------------------------------------------------

static void put_frame_dict(writer *w, const char *file, const char *function,
                           uint32_t line) {
  open(w, TARN__OP_EMPTY_DICT);
  put_word(w, FILENAME);
  put_text(w, file);
  put_number(w, LINE, line);
  put_word(w, NAME);
  put_text(w, function);
  close(w, TARN__OP_SETITEMS);
}

static void put_frame(writer *w, uint32_t index) {
  const tarn_trace_frame *frame = &w->trace->frames[index];
  uint32_t *number = (uint32_t *)w->frame_numbers.items + index;
  if (fetch(w, number)) return;
  put_frame_dict(w, frame->file, frame->function, frame->line);
  *number = tarn__pickler_memoise(&w->pickler) + 1;
}

static void put_frames(writer *w, tarn__trace_frames_text what) {
  open(w, TARN__OP_EMPTY_LIST);
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
  close(w, TARN__OP_APPENDS);
}

static void put_stack(writer *w, tarn__trace_frames_text what) {
  put_word(w, FRAMES);
  if (what.stack == TARN_TRACE_NO_STACK && what.tag == TARN_TRACE_NO_TAG) {
    tarn__pickler_op(&w->pickler, TARN__OP_EMPTY_LIST);
    return;
  }
  uint32_t *number =
      number_of(w, &w->stacks, &w->stack_numbers, &what, sizeof what);
  if (number == NULL || fetch(w, number)) return;
  put_frames(w, what);
  *number = tarn__pickler_memoise(&w->pickler) + 1;
}

// --- segments --------------------------------------------------------------

static void put_free_block(writer *w, uint64_t address, uint64_t size) {
  open(w, TARN__OP_EMPTY_DICT);
  put_number(w, ADDRESS, address);
  put_number(w, SIZE, size);
  put_number(w, REQUESTED_SIZE, 0);
  put_words(w, STATE, INACTIVE);
  put_empty(w, FRAMES, TARN__OP_EMPTY_LIST);
  close(w, TARN__OP_SETITEMS);
}

static void put_block(writer *w, uint32_t index, uint64_t bytes) {
  const tarn_trace_block *block = &w->trace->blocks[index];
  open(w, TARN__OP_EMPTY_DICT);
  put_number(w, ADDRESS, w->addresses[index]);
  put_number(w, SIZE, bytes);
  put_number(w, REQUESTED_SIZE, block->size);
  put_words(w, STATE,
            w->let_go[index] ? ACTIVE_PENDING_FREE : ACTIVE_ALLOCATED);
  put_stack(
      w, (tarn__trace_frames_text){.stack = block->stack, .tag = block->tag});
  close(w, TARN__OP_SETITEMS);
}

static uint64_t bytes_of(const writer *w,
                         const tarn__trace_held_segment *segment,
                         size_t index) {
  return tarn__held_bytes(&w->held, w->trace, w->addresses, segment, index);
}

static void put_blocks(writer *w, const tarn__trace_held_segment *segment) {
  uint64_t at = segment->shown.address;
  uint64_t end = at + segment->shown.size;
  size_t written = 0;
  put_word(w, BLOCKS);
  open(w, TARN__OP_EMPTY_LIST);
  for (size_t i = 0; i < segment->count; i++) {
    uint32_t block = w->held.blocks[segment->first + i];
    uint64_t bytes = bytes_of(w, segment, i);
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
  close(w, TARN__OP_APPENDS);
}

// The sums over blocks in a segment's dict.
static void put_sums(writer *w, const tarn__trace_held_segment *segment) {
  uint64_t allocated = 0;
  uint64_t active = 0;
  uint64_t requested = 0;
  for (size_t i = 0; i < segment->count; i++) {
    uint32_t block = w->held.blocks[segment->first + i];
    uint64_t bytes = bytes_of(w, segment, i);
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
  tarn__pickler_int(&w->pickler, 0);
  tarn__pickler_int(&w->pickler, 0);
  tarn__pickler_op(&w->pickler, TARN__OP_TUPLE2);
}

static void put_segment(writer *w, const tarn__trace_held_segment *segment) {
  bool is_large = segment->shown.size > LARGE;
  open(w, TARN__OP_EMPTY_DICT);
  put_number(w, DEVICE, device_of(w->trace));
  put_number(w, ADDRESS, segment->shown.address);
  put_number(w, TOTAL_SIZE, segment->shown.size);
  put_sums(w, segment);
  put_number(w, STREAM, segment->shown.stream);
  put_words(w, SEGMENT_TYPE, is_large ? LARGE_SEGMENT : SMALL_SEGMENT);
  put_pool_id(w);
  put_empty(w, IS_EXPANDABLE, TARN__OP_FALSE);
  put_empty(w, FRAMES, TARN__OP_EMPTY_LIST);
  put_blocks(w, segment);
  close(w, TARN__OP_SETITEMS);
}

static void put_segments(writer *w) {
  put_word(w, SEGMENTS);
  open(w, TARN__OP_EMPTY_LIST);
  for (size_t i = 0; i < w->held.segment_count; i++) {
    next_of_list(w, i);
    put_segment(w, &w->held.segments[i]);
  }
  close(w, TARN__OP_APPENDS);
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
  open(w, TARN__OP_EMPTY_DICT);
  put_words(w, ACTION, (word)(ACTIONS + (int)event->kind));
  put_number(w, event->kind == TARN_TRACE_OOM ? DEVICE_FREE : ADDR,
             tarn__places_of(w->addresses, event));
  put_number(w, SIZE, event->size);
  put_number(w, STREAM, event->stream);
  if (w->has_times) put_number(w, TIME_US, event->time_us);
  put_stack(w, stack_of(w, event));
  close(w, TARN__OP_SETITEMS);
}

// One list for each device up to the trace's own, which has the events.
static void put_events(writer *w) {
  uint32_t device = device_of(w->trace);
  put_word(w, DEVICE_TRACES);
  open(w, TARN__OP_EMPTY_LIST);
  for (uint32_t i = 0; i < device; i++)
    tarn__pickler_op(&w->pickler, TARN__OP_EMPTY_LIST);
  open(w, TARN__OP_EMPTY_LIST);
  for (size_t i = 0; i < w->trace->event_count; i++) {
    next_of_list(w, i);
    put_event(w, &w->trace->events[i]);
  }
  close(w, TARN__OP_APPENDS);
  close(w, TARN__OP_APPENDS);
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
  tarn_status status = tarn__places_make(trace, &w->addresses);
  if (status == TARN_OK) {
    status = tarn__held_make(trace, w->addresses, &w->held);
  }
  if (status == TARN_OK) {
    status =
        tarn__array_make(&w->budget, &w->frame_numbers, trace->frame_count);
  }
  return status;
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

static void put_all(writer *w, tarn__trace_sink *sink) {
  tarn__pickler_begin(&w->pickler, sink);
  open(w, TARN__OP_EMPTY_DICT);
  put_all_words(w);
  put_segments(w);
  put_events(w);
  put_empty(w, ALLOCATOR_SETTINGS, TARN__OP_EMPTY_DICT);
  put_empty(w, EXTERNAL_ANNOTATIONS, TARN__OP_EMPTY_LIST);
  close(w, TARN__OP_SETITEMS);
  tarn__pickler_end(&w->pickler);
}

tarn_status tarn__snapshot_write(const tarn_trace *trace,
                                 tarn__trace_sink *sink) {
  writer w = {.trace = trace,
              .budget = tarn__budget_unlimited(trace->name),
              .text_numbers = TARN__ARRAY_OF(uint32_t),
              .frame_numbers = TARN__ARRAY_OF(uint32_t),
              .stack_numbers = TARN__ARRAY_OF(uint32_t)};
  tarn_status status = begin(&w);
  if (status == TARN_OK) {
    look_at_events(&w);
    put_all(&w, sink);
    status = w.status;
  }
  end(&w);
  return status;
}
