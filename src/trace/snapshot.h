// snapshot.h - the parts of the reader of PyTorch snapshots.
#ifndef TARN_TRACE_SNAPSHOT_H_
#define TARN_TRACE_SNAPSHOT_H_

#include "trace/history.h"
#include "trace/pickle.h"

// --- Dicts with known keys ------------------------------------------------

// The value that a key may have. TARN__LIST accepts a list or a tuple,
// TARN__INT an integer from 0 to 2^64 - 1.
typedef struct tarn__trace_key {
  const char *name;  // the first field: see tarn__pickle_find
  tarn__trace_pickle_type type;
  bool required;
  bool lenient;  // any integer; beyond 64 bits or below 0 it reads as 0
} tarn__trace_key;

typedef struct tarn__trace_field {
  tarn__trace_pickle_value value;  // TARN__ABSENT without the key
  uint64_t number;                 // of an integer, else 0
} tarn__trace_field;

// Fills |out_fields|[i] with the value of |keys|[i] in |dict|. Other keys are
// skipped.
//
// TARN_E_CORRUPT  not a dict, a key twice, a value of another type or range,
//                 or a required key is missing.
TARN_MUST_CHECK tarn_status tarn__record_read(const tarn__trace_pickle *pickle,
                                              tarn__trace_pickle_value dict,
                                              const tarn__trace_key *keys,
                                              size_t key_count,
                                              tarn__trace_field *out_fields);

static inline bool tarn__field_is_there(const tarn__trace_field *field) {
  return field->value.type != TARN__ABSENT;
}

// Begins the walk over a container, which may occur once in the file's records.
// A container that was entered before occurs twice or contains itself.
//
// TARN_E_CORRUPT  entered before, or not of |type|.
TARN_MUST_CHECK tarn_status tarn__record_enter(
    const tarn__trace_pickle *pickle, tarn__trace_pickle_value container,
    tarn__trace_pickle_type type, tarn__trace_pickle_walk *out_walk);

// --- Events ---------------------------------------------------------------

// The actions of events, by kind - 1. Those before OOM have address and size.
enum { TARN__ACTIONS = TARN_TRACE_SNAPSHOT };
extern const char *const tarn__snapshot_actions[TARN__ACTIONS];

// --- Stacks ---------------------------------------------------------------
// A snapshot refers to the same lists, dicts and texts many times through the
// pickle's memo. Each is read once: the result of a list or dict is noted on
// its container, that of a text in a map from its byte in the file, and the tag
// of a text in a table by the text's number. So the cost is linear in the file.
//
// A frame of the file "tag" with line 0 at a stack's outer end is not a frame:
// Tarn's writer puts a block's tag there.

// The file of the frame of a tag.
#define TARN__FRAMES_TAG "tag"

// The stack and the tag that a list of frames was read as.
typedef struct tarn__trace_frames_text {
  uint32_t stack;  // number, or TARN_TRACE_NO_STACK
  uint32_t tag;    // number, or TARN_TRACE_NO_TAG
} tarn__trace_frames_text;

typedef struct tarn__trace_frames {
  const tarn__trace_pickle *pickle;
  tarn__trace_history *history;
  tarn__intern places;  // strings of one uint32_t: the byte of a text
  tarn__array texts;    // uint32_t: number of the text at that place
  tarn__array tags;     // uint32_t: by text, its tag, or NO_TAG
  tarn__array numbers;  // uint32_t: frames of the present list
  tarn__array lists;    // tarn__trace_frames_text: results of lists
} tarn__trace_frames;

void tarn__frames_init(tarn__trace_frames *frames,
                       const tarn__trace_pickle *pickle,
                       tarn__trace_history *history);
void tarn__frames_deinit(tarn__trace_frames *frames);

// The stack and tag of |list|, which is absent or a list of dicts {filename,
// line, name}.
//
// TARN_E_CORRUPT  |list| is of another form.
TARN_MUST_CHECK tarn_status
tarn__frames_stack(tarn__trace_frames *frames, tarn__trace_pickle_value list,
                   tarn__trace_frames_text *out_dressed);

#endif  // TARN_TRACE_SNAPSHOT_H_
