// One line of Umpire's replay log: from JSON to fields.
//
// One table for both forms tells which key of which object holds which field.
// No key has two meanings.
//
// Invariant: |in| is the object at which the JSON reader is; objects that the
// table does not name are skipped.
#include "trace/umpire_line.h"

#include "base/lines.h"
#include "base/status.h"

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
    {TOP, "event", TEXT, TARN__UMPIRE_EVENT},
    {TOP, "name", TEXT, TARN__UMPIRE_EVENT},
    {TOP, "uid", COUNT, TARN__UMPIRE_UID},
    {TOP, "timestamp", COUNT, TARN__UMPIRE_TIME},
    {TOP, "payload", OBJECT, PAYLOAD},
    {TOP, "result", OBJECT, RESULT},
    {TOP, "numeric_args", OBJECT, NUMBERS},
    {TOP, "string_args", OBJECT, TEXTS},
    {TOP, "tags", OBJECT, TAGS},
    {PAYLOAD, "allocator_ref", ADDRESS, TARN__UMPIRE_ALLOCATOR},
    {PAYLOAD, "size", COUNT, TARN__UMPIRE_SIZE},
    {PAYLOAD, "memory_ptr", ADDRESS, TARN__UMPIRE_POINTER},
    {PAYLOAD, "ptr", ADDRESS, TARN__UMPIRE_CURRENT},
    {PAYLOAD, "allocator_name", TEXT, TARN__UMPIRE_ALLOCATOR_NAME},
    {PAYLOAD, "name", TEXT, TARN__UMPIRE_NAME},
    {RESULT, "memory_ptr", ADDRESS, TARN__UMPIRE_RESULT},
    {RESULT, "allocator_ref", ADDRESS, TARN__UMPIRE_ALLOCATOR},
    {NUMBERS, "size", COUNT, TARN__UMPIRE_SIZE},
    {TEXTS, "allocator_ref", ADDRESS, TARN__UMPIRE_ALLOCATOR},
    {TEXTS, "pointer", ADDRESS, TARN__UMPIRE_POINTER},
    {TEXTS, "current_ptr", ADDRESS, TARN__UMPIRE_CURRENT},
    {TEXTS, "new_ptr", ADDRESS, TARN__UMPIRE_RESULT},
    {TEXTS, "allocation_name", TEXT, TARN__UMPIRE_NAME},
    {TAGS, "allocator_name", TEXT, TARN__UMPIRE_ALLOCATOR_NAME},
};
enum { ENTRIES = sizeof entries / sizeof *entries };

// The result of making a memory resource is its address, not an object.
static const entry resource_entry = {TOP, "result", ADDRESS,
                                     TARN__UMPIRE_ALLOCATOR};

static const struct event {
  const char *name;
  tarn__trace_umpire_kind kind;
} events[] = {
    {"allocate", TARN__UMPIRE_ALLOCATE},
    {"named_allocate", TARN__UMPIRE_ALLOCATE},
    {"deallocate", TARN__UMPIRE_DEALLOCATE},
    {"reallocate", TARN__UMPIRE_REALLOCATE},
    {"reallocate_ex", TARN__UMPIRE_REALLOCATE},
    {"makeMemoryResource", TARN__UMPIRE_MAKE},
    {"make_memory_resource", TARN__UMPIRE_MAKE},
    {"makeAllocator", TARN__UMPIRE_MAKE},
    {"make_allocator", TARN__UMPIRE_MAKE},
};
enum { EVENTS = sizeof events / sizeof *events };

typedef struct reader {
  const char *name;
  size_t number;
  tarn__json json;
  tarn__trace_umpire_line *line;
  object in;
  bool done;
} reader;

static tarn_status corrupt(const reader *r, size_t at, const char *what) {
  return tarn__fail(TARN_E_CORRUPT, "%s: line %zu: column %zu: %s", r->name,
                    r->number, at + 1, what);
}

// An error within a value or key.
static tarn_status wrong_value(const reader *r, const entry *of, size_t at,
                               const char *what) {
  return tarn__fail(TARN_E_CORRUPT, "%s: line %zu: column %zu: '%s' %s",
                    r->name, r->number, at + 1, of->key, what);
}

static tarn_status next(reader *r, tarn__json_token *out_token) {
  if (tarn__json_next(&r->json, out_token) || r->json.wrong == NULL) {
    return TARN_OK;
  }
  return corrupt(r, r->json.at, r->json.wrong);
}

static tarn_status skip(reader *r, const tarn__json_token *token) {
  if (tarn__json_skip(&r->json, token)) return TARN_OK;
  return corrupt(r, r->json.at, r->json.wrong);
}

// --- values ----------------------------------------------------------------

static tarn__trace_umpire_kind find_kind(const tarn__json_token *name) {
  for (size_t i = 0; i < EVENTS; i++) {
    if (tarn__json_is(name, events[i].name)) return events[i].kind;
  }
  return TARN__UMPIRE_OTHER;
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
  uint64_t number = 0;
  const char *wrong = check_value(of->type, value, &number);
  if (wrong != NULL) return wrong_value(r, of, value->at, wrong);
  if (r->line->fields[of->what].token.kind != TARN__JSON_NONE) {
    return wrong_value(r, of, value->at, "says again what was said before");
  }
  r->line->fields[of->what].token = *value;
  r->line->fields[of->what].number = number;
  if (of->what == TARN__UMPIRE_EVENT) {
    r->line->kind = find_kind(value);
    r->done = r->line->kind == TARN__UMPIRE_OTHER;
  }
  return TARN_OK;
}

static tarn_status read_value(reader *r, const entry *of) {
  tarn__json_token value;
  tarn_status status = next(r, &value);
  if (status != TARN_OK) return status;
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

// --- the line --------------------------------------------------------------

// Reads to the end of the top object, or until the line is known to be of
// another kind.
static tarn_status read_members(reader *r) {
  tarn__json_token token;
  while (!r->done) {
    tarn_status status = next(r, &token);
    if (status != TARN_OK) return status;
    if (token.kind == TARN__JSON_OBJECT_END) {
      if (r->in == TOP) return next(r, &token);
      r->in = TOP;
      continue;
    }
    const entry *of = find_entry(r->in, &token);
    status = of == NULL ? skip(r, &token) : read_value(r, of);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

static tarn_status lacks(const reader *r, const char *what) {
  return tarn__fail(TARN_E_CORRUPT, "%s: line %zu: %s", r->name, r->number,
                    what);
}

// Requests must have an allocator and a size.
static tarn_status check_fields(const reader *r) {
  const tarn__trace_umpire_line *line = r->line;
  if (!tarn__umpire_has(line, TARN__UMPIRE_EVENT)) {
    return lacks(r, "neither 'event' nor 'name': not Umpire's replay log");
  }
  if (line->kind == TARN__UMPIRE_OTHER || line->kind == TARN__UMPIRE_MAKE) {
    return TARN_OK;
  }
  if (!tarn__umpire_has(line, TARN__UMPIRE_ALLOCATOR)) {
    return lacks(r, "a request without 'allocator_ref'");
  }
  if (line->kind == TARN__UMPIRE_ALLOCATE &&
      !tarn__umpire_has(line, TARN__UMPIRE_SIZE)) {
    return lacks(r, "an allocate without 'size'");
  }
  if (line->kind == TARN__UMPIRE_DEALLOCATE &&
      !tarn__umpire_has(line, TARN__UMPIRE_POINTER)) {
    return lacks(r, "a deallocate without a pointer");
  }
  if (line->kind == TARN__UMPIRE_REALLOCATE &&
      !tarn__umpire_has(line, TARN__UMPIRE_RESULT) &&
      !(tarn__umpire_has(line, TARN__UMPIRE_CURRENT) &&
        tarn__umpire_has(line, TARN__UMPIRE_SIZE))) {
    return lacks(r, "a reallocate without pointer and 'size'");
  }
  return TARN_OK;
}

tarn_status tarn__umpire_line_read(const char *name, size_t number,
                                   const char *text, size_t size,
                                   tarn__trace_umpire_line *out_line) {
  tarn__json_token token;
  reader r = {.name = name, .number = number, .line = out_line, .in = TOP};
  *out_line = (tarn__trace_umpire_line){.kind = TARN__UMPIRE_OTHER};
  tarn__json_init(&r.json, text, size);
  tarn_status status = next(&r, &token);
  if (status == TARN_OK && token.kind != TARN__JSON_OBJECT) {
    status = corrupt(&r, token.at, "an object expected");
  }
  if (status == TARN_OK) status = read_members(&r);
  return status == TARN_OK ? check_fields(&r) : status;
}
