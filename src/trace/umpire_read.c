// Umpire's replay log: from lines to a history.
//
// An allocator is identified by its address in its process, and counts as a
// device, numbered from 0 in order of appearance. One of them is read; a first
// pass over the log finds the one with most requests. A pool takes its memory
// from the inner side of another allocator, which logs nothing, so that no
// block occurs twice.
//
// A reallocate is two lines. If the allocator calls itself, it logs that
// between them, and the second line does the rest:
//
//   reallocate A, 96      reallocate A, 96      reallocate A, 0
//                         allocate B, 96        deallocate A
//                         deallocate A          allocate B, 0
//   reallocate -> A or B  reallocate -> B       reallocate -> B
//
// Deaths have no size. Allocations of 0 bytes get a pointer too, which may be
// that of a block: they are only counted, and as many deaths of unknown blocks
// are taken for theirs.
//
// A line has one of two forms. Until 2022 a request and its outcome are two
// lines; the second repeats the first:
//
//   { "kind":"replay", "uid":77, "timestamp":1600000000000000000,
//     "event": "allocate",
//     "payload": { "allocator_ref": "0x10", "size": 64 },
//     "result": { "memory_ptr": "0x2000" } }
//
// Since then they are one line, written afterwards:
//
//   {"category":"operation","name":"allocate","numeric_args":{"size":64},
//    "string_args":{"allocator_ref":"0x10","pointer":"0x2000"},
//    "tags":{"replay":"true"},"timestamp":1600000000000000000}
//
// One table for both forms tells which key of which object holds which field.
// No key has two meanings. The rest of a line that is of no interest is not
// read: newer versions log more, and from 2019 to 2022 "move" was not valid
// JSON.
//
// Invariants: |zeros| is the number of living allocations of 0 bytes; a
// |resize| that is not open is all zero; |in| is the object at which the JSON
// reader is, and objects that the table does not name are skipped.
#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "base/lines.h"
#include "base/status.h"
#include "trace/history.h"
#include "trace/readers.h"

typedef enum line_kind {
  OTHER,  // ignored; only its kind is known
  MAKE,   // an allocator
  ALLOCATE,
  DEALLOCATE,
  REALLOCATE,
} line_kind;

typedef enum field {
  F_EVENT,      // its name
  F_UID,        // of the process
  F_TIME,       // nanoseconds since 1970
  F_ALLOCATOR,  // its address, by which it is known
  F_SIZE,
  F_POINTER,  // freed; or, in the newer form, allocated
  F_CURRENT,  // to reallocate; 0: none
  F_RESULT,   // of the request
  F_ALLOCATOR_NAME,
  F_NAME,  // of an allocation, or of a memory resource
  FIELDS,
} field;

typedef struct allocator {
  tarn__trace_tally tally;  // its requests are events
  tarn__json_token name;    // all zero if unknown
} allocator;

// Between the two lines of a reallocate.
typedef struct resize {
  bool open;
  bool freed;  // |current| is dead already
  uint64_t current;
  uint64_t size;
  uint64_t born;  // address allocated since with that size; 0: none
} resize;

typedef enum object { TOP, PAYLOAD, RESULT, NUMBERS, TEXTS, TAGS } object;

typedef enum value_type {
  TEXT,
  COUNT,    // an integer from 0 on
  ADDRESS,  // a text of an address
  OBJECT,
} value_type;

typedef struct entry {
  object in;
  const char *key;
  value_type type;
  int what;  // a field; of OBJECT: which
} entry;

static const entry entries[] = {
    {TOP, "event", TEXT, F_EVENT},
    {TOP, "name", TEXT, F_EVENT},
    {TOP, "uid", COUNT, F_UID},
    {TOP, "timestamp", COUNT, F_TIME},
    {TOP, "payload", OBJECT, PAYLOAD},
    {TOP, "result", OBJECT, RESULT},
    {TOP, "numeric_args", OBJECT, NUMBERS},
    {TOP, "string_args", OBJECT, TEXTS},
    {TOP, "tags", OBJECT, TAGS},
    {PAYLOAD, "allocator_ref", ADDRESS, F_ALLOCATOR},
    {PAYLOAD, "size", COUNT, F_SIZE},
    {PAYLOAD, "memory_ptr", ADDRESS, F_POINTER},
    {PAYLOAD, "ptr", ADDRESS, F_CURRENT},
    {PAYLOAD, "allocator_name", TEXT, F_ALLOCATOR_NAME},
    {PAYLOAD, "name", TEXT, F_NAME},
    {RESULT, "memory_ptr", ADDRESS, F_RESULT},
    {RESULT, "allocator_ref", ADDRESS, F_ALLOCATOR},
    {NUMBERS, "size", COUNT, F_SIZE},
    {TEXTS, "allocator_ref", ADDRESS, F_ALLOCATOR},
    {TEXTS, "pointer", ADDRESS, F_POINTER},
    {TEXTS, "current_ptr", ADDRESS, F_CURRENT},
    {TEXTS, "new_ptr", ADDRESS, F_RESULT},
    {TEXTS, "allocation_name", TEXT, F_NAME},
    {TAGS, "allocator_name", TEXT, F_ALLOCATOR_NAME},
};
enum { ENTRIES = sizeof entries / sizeof *entries };

// The result of making a memory resource is its address, not an object.
static const entry resource_entry = {TOP, "result", ADDRESS, F_ALLOCATOR};

static const struct event {
  const char *name;
  line_kind kind;
} events[] = {
    {"allocate", ALLOCATE},         {"named_allocate", ALLOCATE},
    {"deallocate", DEALLOCATE},     {"reallocate", REALLOCATE},
    {"reallocate_ex", REALLOCATE},  {"makeMemoryResource", MAKE},
    {"make_memory_resource", MAKE}, {"makeAllocator", MAKE},
    {"make_allocator", MAKE},
};
enum { EVENTS = sizeof events / sizeof *events };

typedef struct reader {
  const tarn__trace_input *input;
  tarn__lines lines;
  tarn__trace_history history;
  tarn__intern keys;       // {process, address}: numbered as |allocators|
  tarn__array allocators;  // allocator
  tarn__array scratch;     // char: a name without its escapes
  uint32_t tag;            // the name of the chosen allocator
  resize resize;
  size_t zeros;

  // The present line.
  tarn__json json;
  object in;
  line_kind kind;
  bool done;
  // By field: all zero where it is not there. Texts are spans of the line.
  struct {
    tarn__json_token token;
    uint64_t number;
  } fields[FIELDS];
} reader;

static tarn_status corrupt_line(const reader *r, const char *what) {
  return tarn__fail(TARN_E_CORRUPT, "%s: line %zu: %s", r->input->name,
                    r->lines.number, what);
}

static tarn_status corrupt(const reader *r, size_t at, const char *what) {
  return tarn__fail(TARN_E_CORRUPT, "%s: line %zu: column %zu: %s",
                    r->input->name, r->lines.number, at + 1, what);
}

// An error within a value or key.
static tarn_status wrong_value(const reader *r, const entry *of, size_t at,
                               const char *what) {
  return tarn__fail(TARN_E_CORRUPT, "%s: line %zu: column %zu: '%s' %s",
                    r->input->name, r->lines.number, at + 1, of->key, what);
}

static bool has(const reader *r, field which) {
  return r->fields[which].token.kind != TARN__JSON_NONE;
}

static uint64_t number(const reader *r, field which) {
  return r->fields[which].number;
}

// --- values ----------------------------------------------------------------

static tarn_status next(reader *r, tarn__json_token *out_token) {
  if (tarn__json_next(&r->json, out_token) || r->json.wrong == NULL) {
    return TARN_OK;
  }
  return corrupt(r, r->json.at, r->json.wrong);
}

static line_kind find_kind(const tarn__json_token *name) {
  for (size_t i = 0; i < EVENTS; i++) {
    if (tarn__json_is(name, events[i].name)) return events[i].kind;
  }
  return OTHER;
}

// The error of |value| for |type|, or NULL. |*out_number| is a number's value.
static const char *check_value(value_type type, const tarn__json_token *value,
                               uint64_t *out_number) {
  *out_number = value->magnitude;
  if (type == COUNT) {
    bool fits = value->kind == TARN__JSON_NUMBER && value->whole &&
                (!value->negative || value->magnitude == 0);
    return fits ? NULL : "is not an integer from 0 to 2^64 - 1";
  }
  if (value->kind != TARN__JSON_TEXT) return "is not a text";
  if (type == TEXT ||
      tarn__text_address(value->text, value->size, out_number)) {
    return NULL;
  }
  return "is not an address";
}

static tarn_status store(reader *r, const entry *of,
                         const tarn__json_token *value) {
  uint64_t found = 0;
  const char *wrong = check_value(of->type, value, &found);
  if (wrong != NULL) return wrong_value(r, of, value->at, wrong);
  if (has(r, (field)of->what)) {
    return wrong_value(r, of, value->at, "says again what was said before");
  }
  r->fields[of->what].token = *value;
  r->fields[of->what].number = found;
  if (of->what == F_EVENT) {
    r->kind = find_kind(value);
    r->done = r->kind == OTHER;
  }
  return TARN_OK;
}

static tarn_status read_value(reader *r, const entry *of) {
  tarn__json_token value;
  TARN__TRY(next(r, &value));
  if (of->type != OBJECT) return store(r, of, &value);
  if (value.kind == TARN__JSON_OBJECT) {
    r->in = (object)of->what;
    return TARN_OK;
  }
  if (of->what == RESULT && value.kind == TARN__JSON_TEXT) {
    return store(r, &resource_entry, &value);
  }
  return wrong_value(r, of, value.at, "is not an object");
}

static const entry *find_entry(object in, const tarn__json_token *key) {
  for (size_t i = 0; i < ENTRIES; i++) {
    if (entries[i].in == in && tarn__json_is(key, entries[i].key)) {
      return &entries[i];
    }
  }
  return NULL;
}

// --- lines -----------------------------------------------------------------

// Reads to the end of the top object, or until the line is known to be of
// another kind.
static tarn_status read_members(reader *r) {
  tarn__json_token token;
  while (!r->done) {
    TARN__TRY(next(r, &token));
    if (token.kind == TARN__JSON_OBJECT_END) {
      if (r->in == TOP) return next(r, &token);
      r->in = TOP;
      continue;
    }
    const entry *of = find_entry(r->in, &token);
    if (of != NULL) {
      TARN__TRY(read_value(r, of));
    } else if (!tarn__json_skip(&r->json, &token)) {
      return corrupt(r, r->json.at, r->json.wrong);
    }
  }
  return TARN_OK;
}

// Requests must have an allocator and a size, and deaths a pointer.
static tarn_status check_fields(const reader *r) {
  if (!has(r, F_EVENT)) {
    return corrupt_line(r,
                        "neither 'event' nor 'name': not Umpire's replay log");
  }
  if (r->kind == OTHER || r->kind == MAKE) return TARN_OK;
  if (!has(r, F_ALLOCATOR)) {
    return corrupt_line(r, "a request without 'allocator_ref'");
  }
  if (r->kind == ALLOCATE && !has(r, F_SIZE)) {
    return corrupt_line(r, "an allocate without 'size'");
  }
  if (r->kind == DEALLOCATE && !has(r, F_POINTER)) {
    return corrupt_line(r, "a deallocate without a pointer");
  }
  if (r->kind == REALLOCATE && !has(r, F_RESULT) &&
      !(has(r, F_CURRENT) && has(r, F_SIZE))) {
    return corrupt_line(r, "a reallocate without pointer and 'size'");
  }
  return TARN_OK;
}

static tarn_status read_line(reader *r, const char *text, size_t size) {
  tarn__json_token token;
  tarn__json_init(&r->json, text, size);
  r->in = TOP;
  r->kind = OTHER;
  r->done = false;
  memset(r->fields, 0, sizeof r->fields);
  TARN__TRY(next(r, &token));
  if (token.kind != TARN__JSON_OBJECT) {
    return corrupt(r, token.at, "an object expected");
  }
  TARN__TRY(read_members(r));
  return check_fields(r);
}

// Passes the number of each line's allocator to |take|.
static tarn_status read_lines(reader *r,
                              tarn_status (*take)(reader *r, uint32_t of)) {
  const char *text = NULL;
  size_t size = 0;
  uint32_t of = 0;
  tarn__lines_init(&r->lines, r->input->bytes, r->input->size);
  while (tarn__lines_next(&r->lines, &text, &size)) {
    TARN__TRY(read_line(r, text, size));
    if (r->kind == OTHER || !has(r, F_ALLOCATOR)) continue;
    uint64_t key[] = {number(r, F_UID), number(r, F_ALLOCATOR)};
    TARN__TRY(
        tarn__intern_put(&r->keys, r->input->budget, key, sizeof key, &of));
    TARN__TRY(take(r, of));
  }
  return TARN_OK;
}

// --- names -----------------------------------------------------------------

// The unescaped bytes of |token|, until the next call.
static tarn_status unescape(reader *r, const tarn__json_token *token,
                            const char **out_text, size_t *out_size) {
  void *fresh = NULL;
  *out_text = token->text;
  *out_size = token->size;
  if (!token->escaped) return TARN_OK;
  if (r->scratch.count != 0) {
    tarn__array_drop(&r->scratch, r->scratch.count);
  }
  TARN__TRY(
      tarn__array_grow(r->input->budget, &r->scratch, token->size, &fresh));
  assert(fresh != NULL);  // an escape has two bytes at least
  *out_text = fresh;
  *out_size = tarn__json_unescape(token, fresh);
  if (memchr(fresh, 0, *out_size) == NULL) return TARN_OK;
  return corrupt_line(r, "a name with a zero byte");
}

static tarn_status find_tag(reader *r, const tarn__json_token *name,
                            uint32_t *out_tag) {
  const char *text = NULL;
  size_t size = 0;
  TARN__TRY(unescape(r, name, &text, &size));
  return tarn__history_tag(&r->history, text, size, out_tag);
}

// --- allocators ------------------------------------------------------------

// The first line of two is not a request: it has no outcome.
static bool is_request(const reader *r) {
  return r->kind != MAKE && (has(r, F_POINTER) || has(r, F_RESULT));
}

static tarn_status count_line(reader *r, uint32_t of) {
  void *fresh = NULL;
  const char *text = NULL;
  size_t size = 0;
  if (of == r->allocators.count) {
    TARN__TRY(tarn__array_grow(r->input->budget, &r->allocators, 1, &fresh));
  }
  allocator *found = (allocator *)r->allocators.items + of;
  found->tally.events += is_request(r);
  if (r->kind != MAKE) return TARN_OK;
  field name = has(r, F_ALLOCATOR_NAME) ? F_ALLOCATOR_NAME : F_NAME;
  found->name = r->fields[name].token;
  // Checked now, while its position is known.
  return unescape(r, &found->name, &text, &size);
}

// --- events ----------------------------------------------------------------

static tarn_status add(reader *r, tarn_trace_kind kind, uint64_t address,
                       uint64_t size) {
  tarn_trace_event event = {.kind = kind,
                            .address = address,
                            .size = size,
                            .time_us = number(r, F_TIME) / 1000,
                            .stack = TARN_TRACE_NO_STACK,
                            .tag = r->tag};
  if (has(r, F_NAME)) {
    TARN__TRY(find_tag(r, &r->fields[F_NAME].token, &event.tag));
  }
  r->history.byte = r->lines.number;
  return tarn__history_event(&r->history, &event);
}

static tarn_status add_death(reader *r, uint64_t address) {
  size_t unknown = r->history.trace.unknown_count;
  if (address == 0) return TARN_OK;  // allowed, and nothing
  if (r->resize.open && address == r->resize.current) r->resize.freed = true;
  TARN__TRY(add(r, TARN_TRACE_FREE, address, 0));
  if (r->history.trace.unknown_count > unknown && r->zeros != 0) {
    r->history.trace.unknown_count = unknown;
    r->zeros--;
  }
  return TARN_OK;
}

static tarn_status add_birth(reader *r, uint64_t address, uint64_t size) {
  resize *open = &r->resize;
  // Another thread got the memory that a reallocate has freed.
  if (open->open && !open->freed && address == open->current) {
    TARN__TRY(add_death(r, address));
  }
  if (open->open && size == open->size && open->born == 0) {
    open->born = address;
  }
  if (size != 0 && address != 0) {
    return add(r, TARN_TRACE_ALLOC, address, size);
  }
  r->zeros += address != 0;
  return TARN_OK;
}

// The old and new block of a reallocate. The second line may lack its first.
static void open_resize(reader *r) {
  r->resize = (resize){
      .open = true, .current = number(r, F_CURRENT), .size = number(r, F_SIZE)};
}

static tarn_status take_reallocate(reader *r) {
  uint64_t result = number(r, F_RESULT);
  if (!has(r, F_RESULT)) {
    open_resize(r);
    return TARN_OK;
  }
  if (!r->resize.open) {
    if (!has(r, F_SIZE)) return TARN_OK;
    open_resize(r);
  }
  resize done = r->resize;
  r->resize = (resize){0};
  if (!done.freed) {
    TARN__TRY(add_death(r, done.current));
  }
  return done.born == result ? TARN_OK : add_birth(r, result, done.size);
}

static tarn_status take_line(reader *r, uint32_t of) {
  if (of != r->history.trace.device) return TARN_OK;
  switch (r->kind) {
    case ALLOCATE:
      if (!is_request(r)) return TARN_OK;
      return add_birth(r, number(r, has(r, F_RESULT) ? F_RESULT : F_POINTER),
                       number(r, F_SIZE));
    case DEALLOCATE:
      return add_death(r, number(r, F_POINTER));
    case REALLOCATE:
      return take_reallocate(r);
    default:
      return TARN_OK;
  }
}

// --- the whole -------------------------------------------------------------

static tarn_status read_all(reader *r) {
  tarn_trace *trace = &r->history.trace;
  TARN__TRY(read_lines(r, count_line));
  trace->unfinished = r->lines.unfinished;
  TARN__TRY(tarn__trace_choose_device(r->input, r->allocators.items,
                                      sizeof(allocator), r->allocators.count,
                                      trace));
  if (r->allocators.count == 0) return TARN_OK;
  const allocator *chosen =
      (const allocator *)r->allocators.items + trace->device;
  if (chosen->name.kind != TARN__JSON_NONE) {
    TARN__TRY(find_tag(r, &chosen->name, &r->tag));
  }
  return read_lines(r, take_line);
}

bool tarn__umpire_sniff(const tarn__trace_input *input) {
  tarn__lines lines;
  tarn__lines_init(&lines, input->bytes, input->size);
  size_t at = lines.at;
  while (at < lines.size && lines.bytes[at] != 0 &&
         strchr(" \t\r\n", lines.bytes[at]) != NULL) {
    at++;
  }
  return at < lines.size && lines.bytes[at] == '{';
}

tarn_status tarn__umpire_read(const tarn__trace_input *input,
                              tarn_trace **out_trace) {
  tarn__budget *budget = input->budget;
  reader r = {.input = input,
              .allocators = TARN__ARRAY_OF(allocator),
              .scratch = TARN__ARRAY_OF(char)};
  tarn__intern_init(&r.keys);
  tarn__history_init(&r.history, budget, input->name);
  r.history.unit = "line";
  r.history.frees_without_size = true;
  tarn_status status = read_all(&r);
  tarn__array_free(budget, &r.scratch);
  tarn__array_free(budget, &r.allocators);
  tarn__intern_deinit(&r.keys, budget);
  return tarn__history_finish(&r.history, status, "umpire-json", out_trace);
}
