// Stacks of a snapshot.
//
// Invariant: the mark of a list of frames is its stack's number + SEEN, that
// of a frame's dict its frame's number + SEEN; so neither can be taken for a
// container that was entered as part of a record, whose mark is 1.
#include "trace/frames.h"

#include <string.h>

enum { SEEN = 2, UNMARKED = 0 };

enum { FILENAME, LINE, NAME, FRAME_KEYS };
static const tarn__key frame_keys[FRAME_KEYS] = {
    [FILENAME] = {.name = "filename", .type = TARN__TEXT},
    [LINE] = {.name = "line", .type = TARN__INT, .lenient = true},
    [NAME] = {.name = "name", .type = TARN__TEXT},
};

void tarn__frames_init(tarn__frames *frames, const tarn__pickle *pickle,
                       tarn__stacks *stacks) {
  *frames = (tarn__frames){.pickle = pickle,
                           .stacks = stacks,
                           .texts = TARN__ARRAY_OF(uint32_t),
                           .numbers = TARN__ARRAY_OF(uint32_t)};
  tarn__intern_init(&frames->places);
}

void tarn__frames_deinit(tarn__frames *frames) {
  tarn__budget *budget = frames->pickle->budget;
  tarn__array_free(budget, &frames->numbers);
  tarn__array_free(budget, &frames->texts);
  tarn__intern_deinit(&frames->places, budget);
}

// --- texts -----------------------------------------------------------------

static tarn_status read_text(tarn__frames *frames, tarn__value field,
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
  return tarn__stacks_text(frames->stacks, bytes, size, out_text);
}

// The number of the text |field|, read when its place is met first.
static tarn_status text_number(tarn__frames *frames, tarn__value field,
                               uint32_t *out_text) {
  void *fresh = NULL;
  uint32_t place = 0;
  tarn__budget *budget = frames->pickle->budget;
  tarn_status status = tarn__intern_put(&frames->places, budget, &field.at,
                                        sizeof field.at, &place);
  if (status != TARN_OK) return status;
  if (place == frames->texts.count) {
    status = read_text(frames, field, out_text);
    if (status == TARN_OK) {
      status = tarn__array_grow(budget, &frames->texts, 1, &fresh);
    }
    if (status != TARN_OK) return status;
    *(uint32_t *)fresh = *out_text;
  }
  *out_text = ((const uint32_t *)frames->texts.items)[place];
  return TARN_OK;
}

// --- frames and stacks -----------------------------------------------------

static tarn_status read_frame(tarn__frames *frames, tarn__value dict,
                              uint32_t *out_frame) {
  tarn__field fields[FRAME_KEYS];
  tarn__frame frame = {0};
  tarn_status status =
      tarn__record_read(frames->pickle, dict, frame_keys, FRAME_KEYS, fields);
  if (status == TARN_OK) {
    status = text_number(frames, fields[FILENAME].value, &frame.file);
  }
  if (status == TARN_OK) {
    status = text_number(frames, fields[NAME].value, &frame.function);
  }
  if (status != TARN_OK) return status;
  uint64_t line = fields[LINE].number;  // -1, say, is an unknown one
  frame.line = line > UINT32_MAX ? 0 : (uint32_t)line;
  return tarn__stacks_frame(frames->stacks, frame, out_frame);
}

static tarn_status frame_number(tarn__frames *frames, tarn__value dict,
                                uint32_t *out_frame) {
  if (dict.type == TARN__DICT) {
    uint32_t mark = tarn__pickle_box(frames->pickle, dict)->mark;
    *out_frame = mark - SEEN;
    if (mark >= SEEN) return TARN_OK;
  }
  tarn_status status = read_frame(frames, dict, out_frame);
  if (status != TARN_OK) return status;
  tarn__pickle_box(frames->pickle, dict)->mark = *out_frame + SEEN;
  return TARN_OK;
}

static tarn_status read_stack(tarn__frames *frames, tarn__value list,
                              uint32_t *out_stack) {
  tarn__value dict;
  void *number = NULL;
  tarn_status status = tarn__record_enter(frames->pickle, list, TARN__LIST);
  frames->numbers.count = 0;
  tarn__walk walk = tarn__pickle_walk(frames->pickle, list);
  while (status == TARN_OK && tarn__walk_next(&walk, &dict)) {
    status =
        tarn__array_grow(frames->pickle->budget, &frames->numbers, 1, &number);
    if (status == TARN_OK) status = frame_number(frames, dict, number);
  }
  if (status != TARN_OK) return status;
  return tarn__stacks_stack(frames->stacks, frames->numbers.items,
                            frames->numbers.count, out_stack);
}

tarn_status tarn__frames_stack(tarn__frames *frames, tarn__value list,
                               uint32_t *out_stack) {
  *out_stack = TARN_TRACE_NO_STACK;
  if (list.type == TARN__ABSENT) return TARN_OK;
  tarn__box *box = tarn__pickle_box(frames->pickle, list);
  if (box->count == 0) return TARN_OK;
  if (box->mark >= SEEN) {
    *out_stack = box->mark - SEEN;
    return TARN_OK;
  }
  tarn_status status = read_stack(frames, list, out_stack);
  if (status == TARN_OK) box->mark = *out_stack + SEEN;
  return status;
}
