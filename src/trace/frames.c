// Stacks of a snapshot.
//
// Invariant: the mark of a list of frames is its number in |lists| + SEEN, that
// of a frame's dict its frame's number + SEEN. So neither equals 1, the mark of
// a container entered as part of a record.
#include "trace/snapshot.h"

#include <assert.h>
#include <string.h>

#include "base/status.h"

enum { SEEN = 2, UNMARKED = 0 };

enum { FILENAME, LINE, NAME, FRAME_KEYS };
static const tarn__trace_key frame_keys[FRAME_KEYS] = {
    [FILENAME] = {.name = "filename", .type = TARN__TEXT},
    [LINE] = {.name = "line", .type = TARN__INT, .lenient = true},
    [NAME] = {.name = "name", .type = TARN__TEXT},
};

void tarn__frames_init(tarn__trace_frames *frames,
                       const tarn__trace_pickle *pickle,
                       tarn__trace_history *history) {
  *frames =
      (tarn__trace_frames){.pickle = pickle,
                           .history = history,
                           .texts = TARN__ARRAY_OF(uint32_t),
                           .tags = TARN__ARRAY_OF(uint32_t),
                           .numbers = TARN__ARRAY_OF(uint32_t),
                           .lists = TARN__ARRAY_OF(tarn__trace_frames_text)};
  tarn__intern_init(&frames->places);
}

void tarn__frames_deinit(tarn__trace_frames *frames) {
  tarn__budget *budget = frames->pickle->budget;
  tarn__array_free(budget, &frames->lists);
  tarn__array_free(budget, &frames->numbers);
  tarn__array_free(budget, &frames->tags);
  tarn__array_free(budget, &frames->texts);
  tarn__intern_deinit(&frames->places, budget);
}

// --- texts -----------------------------------------------------------------

static tarn_status read_text(tarn__trace_frames *frames,
                             tarn__trace_pickle_value field,
                             uint32_t *out_text) {
  const char *bytes = "";
  size_t size = 0;
  if (field.type != TARN__ABSENT) {
    tarn__pickle_text(frames->pickle, field, &bytes, &size);
  }
  if (memchr(bytes, '\0', size) != NULL) {
    return tarn__pickle_corrupt(frames->pickle, field.at,
                                "a text with a zero byte in it");
  }
  return tarn__stacks_text(&frames->history->stacks, bytes, size, out_text);
}

// The number of the text |field|, read once for each place in the file.
static tarn_status text_number(tarn__trace_frames *frames,
                               tarn__trace_pickle_value field,
                               uint32_t *out_text) {
  void *fresh = NULL;
  uint32_t place = 0;
  tarn__budget *budget = frames->pickle->budget;
  TARN__TRY(tarn__intern_put(&frames->places, budget, &field.at,
                             sizeof field.at, &place));
  if (place == frames->texts.count) {
    TARN__TRY(read_text(frames, field, out_text));
    TARN__TRY(tarn__array_grow(budget, &frames->texts, 1, &fresh));
    *(uint32_t *)fresh = *out_text;
  }
  *out_text = ((const uint32_t *)frames->texts.items)[place];
  return TARN_OK;
}

// --- frames and stacks -----------------------------------------------------

static tarn_status read_frame(tarn__trace_frames *frames,
                              tarn__trace_pickle_value dict,
                              uint32_t *out_frame) {
  tarn__trace_field fields[FRAME_KEYS];
  tarn__trace_frame frame = {0};
  TARN__TRY(
      tarn__record_read(frames->pickle, dict, frame_keys, FRAME_KEYS, fields));
  TARN__TRY(text_number(frames, fields[FILENAME].value, &frame.file));
  TARN__TRY(text_number(frames, fields[NAME].value, &frame.function));
  uint64_t line = fields[LINE].number;  // -1, say, is an unknown one
  frame.line = line > UINT32_MAX ? 0 : (uint32_t)line;
  return tarn__stacks_frame(&frames->history->stacks, frame, out_frame);
}

static tarn_status frame_number(tarn__trace_frames *frames,
                                tarn__trace_pickle_value dict,
                                uint32_t *out_frame) {
  if (dict.type == TARN__DICT) {
    uint32_t mark = tarn__pickle_container(frames->pickle, dict)->mark;
    *out_frame = mark - SEEN;
    if (mark >= SEEN) return TARN_OK;
  }
  TARN__TRY(read_frame(frames, dict, out_frame));
  tarn__pickle_container(frames->pickle, dict)->mark = *out_frame + SEEN;
  return TARN_OK;
}

static bool is_text(const tarn__trace_stacks *stacks, uint32_t text,
                    const char *want) {
  const tarn__string *span =
      (const tarn__string *)stacks->texts.spans.items + text;
  const char *bytes = stacks->texts.bytes.items;
  return span->size == strlen(want) + 1 &&
         memcmp(bytes + span->first, want, span->size) == 0;
}

// The tag of the text |text|, whose bytes are read once: a list that ends with
// a long tag costs only a few bytes of the file.
static tarn_status tag_number(tarn__trace_frames *frames, uint32_t text,
                              uint32_t *out_tag) {
  void *unused = NULL;
  tarn__trace_history *history = frames->history;
  *out_tag = TARN_TRACE_NO_TAG;
  if (text >= frames->tags.count) {
    TARN__TRY(tarn__array_grow(frames->pickle->budget, &frames->tags,
                               (size_t)text + 1 - frames->tags.count, &unused));
  }
  uint32_t *known = (uint32_t *)frames->tags.items + text;
  tarn_status status = TARN_OK;
  if (*known == TARN_TRACE_NO_TAG) {
    const tarn__intern *texts = &history->stacks.texts;
    const tarn__string *name = (const tarn__string *)texts->spans.items + text;
    status = tarn__history_tag(history, tarn__intern_text(texts, text),
                               name->size - 1, known);
  }
  *out_tag = *known;
  return status;
}

// Removes the outermost frame in |numbers| if it is a tag, and returns the tag.
static tarn_status take_tag(tarn__trace_frames *frames, uint32_t *out_tag) {
  const tarn__trace_stacks *stacks = &frames->history->stacks;
  const uint32_t *numbers = frames->numbers.items;
  *out_tag = TARN_TRACE_NO_TAG;
  assert(numbers != NULL);
  const tarn__trace_frame *outer =
      (const tarn__trace_frame *)stacks->frames.bytes.items +
      numbers[frames->numbers.count - 1];
  if (outer->line != 0 || !is_text(stacks, outer->file, TARN__FRAMES_TAG)) {
    return TARN_OK;
  }
  if (is_text(stacks, outer->function, "")) return TARN_OK;
  tarn__array_drop(&frames->numbers, 1);
  return tag_number(frames, outer->function, out_tag);
}

// Reads the frames of |list|, which is not empty, into |numbers|.
static tarn_status read_list(tarn__trace_frames *frames,
                             tarn__trace_pickle_value list) {
  tarn__trace_pickle_value dict;
  tarn__trace_pickle_walk walk;
  void *number = NULL;
  tarn__budget *budget = frames->pickle->budget;
  TARN__TRY(tarn__record_enter(frames->pickle, list, TARN__LIST, &walk));
  frames->numbers.count = 0;
  while (tarn__walk_next(&walk, &dict)) {
    TARN__TRY(tarn__array_grow(budget, &frames->numbers, 1, &number));
    TARN__TRY(frame_number(frames, dict, number));
  }
  return TARN_OK;
}

static tarn_status read_stack(tarn__trace_frames *frames,
                              tarn__trace_pickle_value list,
                              tarn__trace_frames_text *out_dressed) {
  void *fresh = NULL;
  TARN__TRY(read_list(frames, list));
  TARN__TRY(take_tag(frames, &out_dressed->tag));
  TARN__TRY(tarn__stacks_stack(&frames->history->stacks, frames->numbers.items,
                               frames->numbers.count, &out_dressed->stack));
  TARN__TRY(
      tarn__array_grow(frames->pickle->budget, &frames->lists, 1, &fresh));
  *(tarn__trace_frames_text *)fresh = *out_dressed;
  return TARN_OK;
}

tarn_status tarn__frames_stack(tarn__trace_frames *frames,
                               tarn__trace_pickle_value list,
                               tarn__trace_frames_text *out_dressed) {
  *out_dressed = (tarn__trace_frames_text){.stack = TARN_TRACE_NO_STACK};
  if (list.type == TARN__ABSENT) return TARN_OK;
  tarn__trace_pickle_container *container =
      tarn__pickle_container(frames->pickle, list);
  if (container->count == 0) return TARN_OK;
  if (container->mark >= SEEN) {
    const tarn__trace_frames_text *lists = frames->lists.items;
    *out_dressed = lists[container->mark - SEEN];
    return TARN_OK;
  }
  TARN__TRY(read_stack(frames, list, out_dressed));
  container->mark = (uint32_t)frames->lists.count - 1 + SEEN;
  return TARN_OK;
}
