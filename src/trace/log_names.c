// Definitions: noted in one pass, added to the history in file order, and then
// found by number.
//
// By that order a trace that was written and read again has its frames, stacks
// and tags at the same indices.
//
// Raw stacks are resolved from return addresses to offsets in mapped files. A
// return address is that of the instruction after the call. The address before
// it is looked up and shown: it lies within the call, and so in the right
// function and line, also if the call ends its function.
//
//   module 3    [first ....... first + bytes)     subtracts |bias|
//   frame       {file = its path, function = "+0x<address - 1 - bias>", line 0}
//   elsewhere   {file = "", function = "0x<address - 1>", line 0}
//
// Modules come and go, and several may use one range of addresses in turn.
// Stacks are resolved in order of their moments, while modules are added to
// |now| as they appear, each over earlier ones. An address outside of |now| may
// be of a module that was noticed late: |ever| has all modules, the first on
// top.
//
// Invariant: once settled, tables but that of modules are sorted by number, and
// each number occurs once, with its first definition in the file.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "trace/log_read.h"

// A definition. |value|, |extra| and |moment| depend on the table:
//   texts    the history's tag, or 0; the history's text + 1, or 0: a long text
//            is read once for all the frames that name it
//   frames   the history's frame
//   stacks   the history's stack; RAW_STACK or MIXED_STACK, of others 0; of
//            those with addresses, the event at which it was written
//   modules  the history's text of the path; the number of the event at which
//            it appeared
typedef struct definition {
  uint64_t number;
  const unsigned char *at;  // behind the number
  uint64_t moment;
  uint32_t value;
  uint32_t extra;
} definition;

typedef struct module {
  uint64_t path;  // TEXT
  uint64_t first;
  uint64_t size;
  uint64_t bias;
  uint64_t since;
} module;

void tarn__log_names_init(tarn__trace_log_names *names,
                          const tarn__trace_input *input,
                          tarn__trace_history *history) {
  *names = (tarn__trace_log_names){.input = input, .history = history};
  for (size_t i = 0; i < TARN__LOG_TABLES; i++)
    names->tables[i] = TARN__ARRAY_OF(definition);
  tarn__ranges_init(&names->now, input->budget);
  tarn__ranges_init(&names->ever, input->budget);
}

void tarn__log_names_deinit(tarn__trace_log_names *names) {
  tarn__ranges_deinit(&names->ever);
  tarn__ranges_deinit(&names->now);
  for (size_t i = 0; i < TARN__LOG_TABLES; i++)
    tarn__array_free(names->input->budget, &names->tables[i]);
}

// --- tables ----------------------------------------------------------------

static int compare(uint64_t a, uint64_t b) {
  return (a > b) - (a < b);
}

// Of equal numbers, the definition that stands first in the file.
static int by_number(const void *one, const void *other) {
  const definition *a = one;
  const definition *b = other;
  int order = compare(a->number, b->number);
  return order != 0 ? order : compare((uintptr_t)a->at, (uintptr_t)b->at);
}

static int by_moment(const void *one, const void *other) {
  const definition *a = one;
  const definition *b = other;
  int order = compare(a->moment, b->moment);
  return order != 0 ? order : compare((uintptr_t)a->at, (uintptr_t)b->at);
}

static void sort(tarn__array *table,
                 int (*order)(const void *one, const void *other)) {
  if (table->count == 0) return;
  qsort(table->items, table->count, table->item_size, order);
}

// Sorts by number, and drops all but the first definition of each.
static void settle_table(tarn__array *table) {
  definition *entries = table->items;
  size_t kept = 0;
  sort(table, by_number);
  for (size_t i = 0; i < table->count; i++) {
    if (kept != 0 && entries[kept - 1].number == entries[i].number) continue;
    entries[kept++] = entries[i];
  }
  tarn__array_drop(table, table->count - kept);
}

// The entry of |number| in a settled table; NULL if there is none.
static definition *find(const tarn__trace_log_names *names,
                        tarn__trace_log_definition table, uint64_t number) {
  definition *entries = names->tables[table].items;
  size_t low = 0;
  size_t high = names->tables[table].count;
  if (high == 0 || number < entries[0].number) return NULL;
  // Numbers mostly have no gaps; then the entry is here.
  uint64_t guess = number - entries[0].number;
  if (guess < high && entries[guess].number == number) return &entries[guess];
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (entries[middle].number == number) return &entries[middle];
    if (entries[middle].number < number) low = middle + 1;
    if (entries[middle].number > number) high = middle;
  }
  return NULL;
}

// Reads numbers from |entry|. The first pass has checked them.
static tarn__trace_log_bytes bytes_of(const tarn__trace_log_names *names,
                                      const definition *entry) {
  return (tarn__trace_log_bytes){
      .at = entry->at, .end = names->input->bytes + names->input->size};
}

// --- noting ----------------------------------------------------------------

tarn_status tarn__log_names_note(tarn__trace_log_names *names,
                                 const tarn__trace_log_record *record) {
  void *fresh = NULL;
  tarn__trace_log_definition table = record->definition;
  bool raw = table == TARN__LOG_RAW_STACK || table == TARN__LOG_MIXED_STACK;
  if (raw) table = TARN__LOG_STACK;
  if (table == TARN__LOG_DEVICE || table == TARN__LOG_THREAD) return TARN_OK;
  TARN__TRY(
      tarn__array_grow(names->input->budget, &names->tables[table], 1, &fresh));
  *(definition *)fresh = (definition){.number = record->number,
                                      .at = record->body,
                                      .extra = raw ? record->definition : 0};
  names->has_raw |= raw;
  return TARN_OK;
}

void tarn__log_names_moment(tarn__trace_log_names *names, uint64_t number) {
  const tarn__array *table = &names->tables[TARN__LOG_STACK];
  definition *stacks = table->items;
  for (; names->pending < table->count; names->pending++)
    stacks[names->pending].moment = number;
}

// --- texts -----------------------------------------------------------------

// The bytes of a text.
static const char *text_of(const tarn__trace_log_names *names,
                           const definition *entry, size_t *out_size) {
  tarn__trace_log_bytes bytes = bytes_of(names, entry);
  *out_size = (size_t)tarn__log_take(&bytes);
  return (const char *)bytes.at;
}

// The history's number of TEXT |number|; if undefined, that of "".
static tarn_status find_text(const tarn__trace_log_names *names,
                             uint64_t number, uint32_t *out_text) {
  size_t size = 0;
  tarn__trace_stacks *stacks = &names->history->stacks;
  definition *text = find(names, TARN__LOG_TEXT, number);
  if (text == NULL) return tarn__stacks_text(stacks, "", 0, out_text);
  if (text->extra == 0) {
    const char *bytes = text_of(names, text, &size);
    TARN__TRY(tarn__stacks_text(stacks, bytes, size, out_text));
    text->extra = *out_text + 1;
  }
  *out_text = text->extra - 1;
  return TARN_OK;
}

tarn_status tarn__log_names_tag(const tarn__trace_log_names *names,
                                uint64_t number, uint32_t *out_tag) {
  size_t size = 0;
  definition *text = find(names, TARN__LOG_TEXT, number);
  *out_tag = TARN_TRACE_NO_TAG;
  if (text == NULL) return TARN_OK;
  if (text->value == TARN_TRACE_NO_TAG) {
    const char *bytes = text_of(names, text, &size);
    if (size == 0) return TARN_OK;
    TARN__TRY(tarn__history_tag(names->history, bytes, size, &text->value));
  }
  *out_tag = text->value;
  return TARN_OK;
}

// --- modules ---------------------------------------------------------------

static definition *module_at(const tarn__trace_log_names *names, size_t index) {
  return (definition *)names->tables[TARN__LOG_MODULE].items + index;
}

static module read_module(const tarn__trace_log_names *names,
                          const definition *entry) {
  module read;
  tarn__trace_log_bytes bytes = bytes_of(names, entry);
  read.path = tarn__log_take(&bytes);
  read.first = tarn__log_take(&bytes);
  read.size = tarn__log_take(&bytes);
  read.bias = tarn__log_take(&bytes);
  read.since = tarn__log_take(&bytes);
  return read;
}

static tarn_status lay(const tarn__trace_log_names *names,
                       tarn__trace_ranges *ranges, size_t index) {
  module read = read_module(names, module_at(names, index));
  if (read.size == 0) return TARN_OK;
  tarn__trace_range_entry range = {.first = read.first,
                                   .last = read.first + (read.size - 1),
                                   .value = (uint32_t)index};
  return tarn__ranges_lay(ranges, range);
}

// Adds the modules that appeared up to |moment|.
static tarn_status advance(tarn__trace_log_names *names, uint64_t moment) {
  while (names->next < names->tables[TARN__LOG_MODULE].count &&
         module_at(names, names->next)->moment <= moment) {
    TARN__TRY(lay(names, &names->now, names->next++));
  }
  return TARN_OK;
}

// --- frames of stacks ------------------------------------------------------

// The frame of |number|; of an undefined one: without texts.
static tarn_status find_frame(const tarn__trace_log_names *names,
                              uint64_t number, uint32_t *out_frame) {
  const definition *frame = find(names, TARN__LOG_FRAME, number);
  if (frame == NULL) {
    return tarn__stacks_frame_of(&names->history->stacks, "", "", 0, out_frame);
  }
  *out_frame = frame->value;
  return TARN_OK;
}

static tarn_status resolve_frame(const tarn__trace_log_names *names,
                                 uint64_t address, uint32_t *out_frame) {
  char text[24];
  tarn__trace_frame frame = {0};
  tarn__trace_range_entry range;
  tarn__trace_stacks *stacks = &names->history->stacks;
  if (!tarn__ranges_find(&names->now, address, address, &range) &&
      !tarn__ranges_find(&names->ever, address, address, &range)) {
    snprintf(text, sizeof text, "0x%" PRIx64, address);
    return tarn__stacks_frame_of(stacks, "", text, 0, out_frame);
  }
  const definition *in = module_at(names, range.value);
  frame.file = in->value;
  snprintf(text, sizeof text, "+0x%" PRIx64,
           address - read_module(names, in).bias);
  TARN__TRY(tarn__stacks_text(stacks, text, strlen(text), &frame.function));
  return tarn__stacks_frame(stacks, frame, out_frame);
}

// --- adding to the history -------------------------------------------------

typedef tarn_status settle_entry(tarn__trace_log_names *names,
                                 definition *entry);

static tarn_status each(tarn__trace_log_names *names,
                        tarn__trace_log_definition table,
                        settle_entry *settle) {
  definition *entries = names->tables[table].items;
  for (size_t i = 0; i < names->tables[table].count; i++)
    TARN__TRY(settle(names, &entries[i]));
  return TARN_OK;
}

static tarn_status settle_tag(tarn__trace_log_names *names, definition *entry) {
  uint32_t unused = 0;
  return tarn__log_names_tag(names, entry->number, &unused);
}

static tarn_status settle_frame(tarn__trace_log_names *names,
                                definition *entry) {
  tarn__trace_frame frame = {0};
  tarn__trace_log_bytes bytes = bytes_of(names, entry);
  uint64_t file = tarn__log_take(&bytes);
  uint64_t function = tarn__log_take(&bytes);
  frame.line = (uint32_t)tarn__log_take(&bytes);
  TARN__TRY(find_text(names, file, &frame.file));
  TARN__TRY(find_text(names, function, &frame.function));
  return tarn__stacks_frame(&names->history->stacks, frame, &entry->value);
}

static tarn_status settle_module(tarn__trace_log_names *names,
                                 definition *entry) {
  module read = read_module(names, entry);
  entry->moment = read.since;
  return find_text(names, read.path, &entry->value);
}

static tarn_status settle_stack(tarn__trace_log_names *names,
                                definition *entry) {
  uint32_t frames[TARN__LOG_MOST_FRAMES] = {0};
  uint64_t address = 0;
  bool is_mixed = entry->extra == TARN__LOG_MIXED_STACK;
  tarn__trace_log_bytes bytes = bytes_of(names, entry);
  size_t count = (size_t)tarn__log_take(&bytes);
  for (size_t i = 0; i < count; i++) {
    uint64_t number = tarn__log_take(&bytes);
    bool is_frame = is_mixed ? (number & 1) != 0 : entry->extra == 0;
    if (is_mixed) number >>= 1;
    if (is_frame) {
      TARN__TRY(find_frame(names, number, &frames[i]));
    } else {
      address += tarn__log_unzigzag(number);
      TARN__TRY(resolve_frame(names, address - 1, &frames[i]));
    }
  }
  return tarn__stacks_stack(&names->history->stacks, frames, count,
                            &entry->value);
}

static tarn_status settle_plain(tarn__trace_log_names *names,
                                definition *entry) {
  return entry->extra == 0 ? settle_stack(names, entry) : TARN_OK;
}

static tarn_status settle_raw(tarn__trace_log_names *names, definition *entry) {
  if (entry->extra == 0) return TARN_OK;
  TARN__TRY(advance(names, entry->moment));
  return settle_stack(names, entry);
}

static tarn_status settle_all_raw(tarn__trace_log_names *names) {
  if (!names->has_raw) return TARN_OK;
  settle_table(&names->tables[TARN__LOG_MODULE]);
  TARN__TRY(each(names, TARN__LOG_MODULE, settle_module));
  sort(&names->tables[TARN__LOG_MODULE], by_moment);
  for (size_t i = names->tables[TARN__LOG_MODULE].count; i > 0; i--)
    TARN__TRY(lay(names, &names->ever, i - 1));
  sort(&names->tables[TARN__LOG_STACK], by_moment);
  return each(names, TARN__LOG_STACK, settle_raw);
}

tarn_status tarn__log_names_settle(tarn__trace_log_names *names) {
  settle_table(&names->tables[TARN__LOG_TEXT]);
  TARN__TRY(each(names, TARN__LOG_TAG, settle_tag));
  TARN__TRY(each(names, TARN__LOG_FRAME, settle_frame));
  settle_table(&names->tables[TARN__LOG_FRAME]);
  TARN__TRY(each(names, TARN__LOG_STACK, settle_plain));
  TARN__TRY(settle_all_raw(names));
  settle_table(&names->tables[TARN__LOG_STACK]);
  return TARN_OK;
}

uint32_t tarn__log_names_stack(const tarn__trace_log_names *names,
                               uint64_t number) {
  const definition *stack = find(names, TARN__LOG_STACK, number);
  return stack == NULL ? TARN_TRACE_NO_STACK : stack->value;
}
