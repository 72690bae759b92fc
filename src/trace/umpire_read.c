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
// Invariants: |zeros| is the number of living allocations of 0 bytes; a
// |resize| that is not open is all zero.
#include <assert.h>
#include <string.h>

#include "base/lines.h"
#include "base/status.h"
#include "trace/history.h"
#include "trace/readers.h"
#include "trace/umpire_line.h"

typedef struct key {
  uint64_t uid;
  uint64_t address;
} key;

typedef struct allocator {
  key key;
  tarn__json_token name;  // all zero if unknown
  size_t requests;
} allocator;

// Between the two lines of a reallocate.
typedef struct resize {
  bool open;
  bool freed;  // |current| is dead already
  uint64_t current;
  uint64_t size;
  uint64_t born;  // address allocated meanwhile with that size; 0: none
} resize;

typedef struct reader {
  const tarn__trace_input *input;
  tarn__lines lines;
  tarn__trace_history history;
  tarn__intern keys;       // strings of one key, numbered as |allocators|
  tarn__array allocators;  // allocator
  tarn__array scratch;     // char: a name without its escapes
  key chosen;
  uint32_t tag;  // the chosen one's name
  resize resize;
  size_t zeros;
} reader;

typedef tarn_status take_fn(reader *r, const tarn__trace_umpire_line *line);

static tarn_status read_lines(reader *r, take_fn *take) {
  const char *text = NULL;
  size_t size = 0;
  tarn__trace_umpire_line line;
  tarn_status status = TARN_OK;
  tarn__lines_init(&r->lines, r->input->bytes, r->input->size);
  while (status == TARN_OK && tarn__lines_next(&r->lines, &text, &size)) {
    status = tarn__umpire_line_read(r->input->name, r->lines.number, text, size,
                                    &line);
    if (status == TARN_OK && line.kind != TARN__UMPIRE_OTHER &&
        tarn__umpire_has(&line, TARN__UMPIRE_ALLOCATOR)) {
      status = take(r, &line);
    }
  }
  return status;
}

static key key_of(const tarn__trace_umpire_line *line) {
  return (key){.uid = tarn__umpire_number(line, TARN__UMPIRE_UID),
               .address = tarn__umpire_number(line, TARN__UMPIRE_ALLOCATOR)};
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
  tarn_status status =
      tarn__array_grow(r->input->budget, &r->scratch, token->size, &fresh);
  if (status != TARN_OK) return status;
  assert(fresh != NULL);  // an escape has two bytes at least
  *out_text = fresh;
  *out_size = tarn__json_unescape(token, fresh);
  if (memchr(fresh, 0, *out_size) == NULL) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT, "%s: line %zu: a name with a zero byte",
                    r->input->name, r->lines.number);
}

static tarn_status find_tag(reader *r, const tarn__json_token *name,
                            uint32_t *out_tag) {
  const char *text = NULL;
  size_t size = 0;
  tarn_status status = unescape(r, name, &text, &size);
  if (status != TARN_OK) return status;
  return tarn__history_tag(&r->history, text, size, out_tag);
}

// --- allocators ------------------------------------------------------------

static tarn_status find_allocator(reader *r, key of, allocator **out) {
  uint32_t number = 0;
  void *fresh = NULL;
  tarn_status status =
      tarn__intern_put(&r->keys, r->input->budget, &of, sizeof of, &number);
  if (status == TARN_OK && number == r->allocators.count) {
    status = tarn__array_grow(r->input->budget, &r->allocators, 1, &fresh);
  }
  if (status != TARN_OK) return status;
  *out = (allocator *)r->allocators.items + number;
  (*out)->key = of;
  return TARN_OK;
}

// The first line of two is not a request: it has no outcome.
static bool is_request(const tarn__trace_umpire_line *line) {
  return line->kind != TARN__UMPIRE_MAKE &&
         (tarn__umpire_has(line, TARN__UMPIRE_POINTER) ||
          tarn__umpire_has(line, TARN__UMPIRE_RESULT));
}

// Checks the name now, while its position is known.
static tarn_status take_name(reader *r, const tarn__trace_umpire_line *line,
                             allocator *of) {
  const char *text = NULL;
  size_t size = 0;
  tarn__trace_umpire_field name =
      tarn__umpire_has(line, TARN__UMPIRE_ALLOCATOR_NAME)
          ? TARN__UMPIRE_ALLOCATOR_NAME
          : TARN__UMPIRE_NAME;
  of->name = line->fields[name].token;
  return unescape(r, &of->name, &text, &size);
}

static tarn_status count_line(reader *r, const tarn__trace_umpire_line *line) {
  allocator *found = NULL;
  tarn_status status = find_allocator(r, key_of(line), &found);
  if (status != TARN_OK) return status;
  found->requests += is_request(line);
  return line->kind == TARN__UMPIRE_MAKE ? take_name(r, line, found) : TARN_OK;
}

static uint32_t busiest(const reader *r) {
  const allocator *allocators = r->allocators.items;
  uint32_t best = 0;
  for (uint32_t i = 1; i < r->allocators.count; i++) {
    if (allocators[i].requests > allocators[best].requests) best = i;
  }
  return best;
}

static tarn_status choose(const reader *r, uint32_t *out_number) {
  const tarn_trace_options *options = r->input->options;
  const allocator *allocators = r->allocators.items;
  *out_number = options->choose_device ? options->device : busiest(r);
  if (!options->choose_device || (options->device < r->allocators.count &&
                                  allocators[options->device].requests != 0)) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID, "%s: device %u has no history",
                    r->input->name, options->device);
}

static uint32_t count_devices(const reader *r) {
  const allocator *allocators = r->allocators.items;
  uint32_t count = 0;
  for (size_t i = 0; i < r->allocators.count; i++)
    count += allocators[i].requests != 0;
  return count;
}

// --- events ----------------------------------------------------------------

static tarn_status add(reader *r, const tarn__trace_umpire_line *line,
                       tarn_trace_kind kind, uint64_t address, uint64_t size) {
  tarn_trace_event event = {
      .kind = kind,
      .address = address,
      .size = size,
      .time_us = tarn__umpire_number(line, TARN__UMPIRE_TIME) / 1000,
      .stack = TARN_TRACE_NO_STACK,
      .tag = r->tag};
  tarn_status status = TARN_OK;
  if (tarn__umpire_has(line, TARN__UMPIRE_NAME)) {
    status = find_tag(r, &line->fields[TARN__UMPIRE_NAME].token, &event.tag);
  }
  if (status != TARN_OK) return status;
  r->history.byte = r->lines.number;
  return tarn__history_event(&r->history, &event);
}

static tarn_status add_death(reader *r, const tarn__trace_umpire_line *line,
                             uint64_t address) {
  size_t unknown = r->history.unknown_count;
  if (address == 0) return TARN_OK;  // allowed, and nothing
  if (r->resize.open && address == r->resize.current) r->resize.freed = true;
  tarn_status status = add(r, line, TARN_TRACE_FREE, address, 0);
  if (r->history.unknown_count > unknown && r->zeros != 0) {
    r->history.unknown_count = unknown;
    r->zeros--;
  }
  return status;
}

static tarn_status add_birth(reader *r, const tarn__trace_umpire_line *line,
                             uint64_t address, uint64_t size) {
  resize *open = &r->resize;
  tarn_status status = TARN_OK;
  // Another thread got the memory that a reallocate has freed.
  if (open->open && !open->freed && address == open->current) {
    status = add_death(r, line, address);
  }
  if (open->open && size == open->size && open->born == 0) {
    open->born = address;
  }
  if (status != TARN_OK) return status;
  if (size != 0 && address != 0) {
    return add(r, line, TARN_TRACE_ALLOC, address, size);
  }
  r->zeros += address != 0;
  return TARN_OK;
}

static tarn_status take_allocate(reader *r,
                                 const tarn__trace_umpire_line *line) {
  tarn__trace_umpire_field from = tarn__umpire_has(line, TARN__UMPIRE_RESULT)
                                      ? TARN__UMPIRE_RESULT
                                      : TARN__UMPIRE_POINTER;
  return add_birth(r, line, tarn__umpire_number(line, from),
                   tarn__umpire_number(line, TARN__UMPIRE_SIZE));
}

// The old and new block of a reallocate. The second line may lack its first.
static void open_resize(reader *r, const tarn__trace_umpire_line *line) {
  r->resize = (resize){
      .open = true,
      .current = tarn__umpire_number(line, TARN__UMPIRE_CURRENT),
      .size = tarn__umpire_number(line, TARN__UMPIRE_SIZE),
  };
}

static tarn_status take_reallocate(reader *r,
                                   const tarn__trace_umpire_line *line) {
  uint64_t result = tarn__umpire_number(line, TARN__UMPIRE_RESULT);
  tarn_status status = TARN_OK;
  if (!tarn__umpire_has(line, TARN__UMPIRE_RESULT)) {
    open_resize(r, line);
    return TARN_OK;
  }
  if (!r->resize.open) {
    if (!tarn__umpire_has(line, TARN__UMPIRE_SIZE)) return TARN_OK;
    open_resize(r, line);
  }
  resize done = r->resize;
  r->resize = (resize){0};
  if (!done.freed) status = add_death(r, line, done.current);
  if (status != TARN_OK || done.born == result) return status;
  return add_birth(r, line, result, done.size);
}

static tarn_status take_line(reader *r, const tarn__trace_umpire_line *line) {
  key of = key_of(line);
  if (of.uid != r->chosen.uid || of.address != r->chosen.address) {
    return TARN_OK;
  }
  switch (line->kind) {
    case TARN__UMPIRE_ALLOCATE:
      return is_request(line) ? take_allocate(r, line) : TARN_OK;
    case TARN__UMPIRE_DEALLOCATE:
      return add_death(r, line,
                       tarn__umpire_number(line, TARN__UMPIRE_POINTER));
    case TARN__UMPIRE_REALLOCATE:
      return take_reallocate(r, line);
    default:
      return TARN_OK;
  }
}

// --- the whole -------------------------------------------------------------

static tarn_status read_chosen(reader *r, uint32_t number) {
  tarn_status status = TARN_OK;
  if (r->allocators.count == 0) return TARN_OK;
  const allocator *chosen = (const allocator *)r->allocators.items + number;
  r->chosen = chosen->key;
  if (chosen->name.kind != TARN__JSON_NONE) {
    status = find_tag(r, &chosen->name, &r->tag);
  }
  return status == TARN_OK ? read_lines(r, take_line) : status;
}

static void init(reader *r, const tarn__trace_input *input) {
  *r = (reader){.input = input,
                .allocators = TARN__ARRAY_OF(allocator),
                .scratch = TARN__ARRAY_OF(char)};
  tarn__intern_init(&r->keys);
  tarn__history_init(&r->history, input->budget, input->name);
  r->history.unit = "line";
  r->history.frees_without_size = true;
}

static void deinit(reader *r) {
  tarn__history_deinit(&r->history);
  tarn__array_free(r->input->budget, &r->scratch);
  tarn__array_free(r->input->budget, &r->allocators);
  tarn__intern_deinit(&r->keys, r->input->budget);
}

bool tarn__umpire_sniff(const tarn__trace_input *input) {
  tarn__lines lines;
  tarn__lines_init(&lines, input->bytes, input->size);
  size_t blank = 0;
  while (lines.at + blank < lines.size &&
         strchr(" \t\r\n", lines.bytes[lines.at + blank]) != NULL &&
         lines.bytes[lines.at + blank] != 0) {
    blank++;
  }
  return lines.at + blank < lines.size && lines.bytes[lines.at + blank] == '{';
}

tarn_status tarn__umpire_read(const tarn__trace_input *input,
                              tarn_trace **out_trace) {
  uint32_t number = 0;
  reader r;
  *out_trace = NULL;
  init(&r, input);
  tarn_status status = read_lines(&r, count_line);
  if (status == TARN_OK) status = choose(&r, &number);
  if (status == TARN_OK) status = read_chosen(&r, number);
  if (status == TARN_OK) {
    status = tarn__history_finish(&r.history, "umpire-json", out_trace);
  }
  if (status == TARN_OK) {
    (*out_trace)->device = number;
    (*out_trace)->device_count = count_devices(&r);
    (*out_trace)->unfinished = r.lines.unfinished;
  }
  deinit(&r);
  return status;
}
