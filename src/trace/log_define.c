// Definitions: noted in one pass, added to the history in file order, and then
// found by number.
//
// By that order a trace that was written and read again has its frames, stacks
// and tags at the same indices.
//
// Invariant: once settled, tables are sorted by number, and each number occurs
// once, with its first definition in the file.
#include "trace/log_read.h"

#include <assert.h>

#include "base/status.h"

void tarn__log_names_init(tarn__trace_log_names *names,
                          const tarn__trace_input *input,
                          tarn__trace_history *history) {
  *names = (tarn__trace_log_names){.input = input, .history = history};
  for (size_t i = 0; i < TARN__LOG_TABLES; i++)
    names->tables[i] = TARN__ARRAY_OF(tarn__trace_log_entry);
}

void tarn__log_names_deinit(tarn__trace_log_names *names) {
  for (size_t i = 0; i < TARN__LOG_TABLES; i++)
    tarn__array_free(names->input->budget, &names->tables[i]);
}

// --- tables ----------------------------------------------------------------

static bool is_before(const tarn__trace_log_entry *a,
                      const tarn__trace_log_entry *b) {
  return a->number != b->number ? a->number < b->number : a->at < b->at;
}

static bool is_sorted(const tarn__trace_log_entry *entries, size_t count) {
  for (size_t i = 1; i < count; i++) {
    if (!is_before(&entries[i - 1], &entries[i])) return false;
  }
  return true;
}

// Lets the entry at |at| of a heap with the last on top sink to its place.
static void sink(tarn__trace_log_entry *entries, size_t count, size_t at) {
  tarn__trace_log_entry moved = entries[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count && is_before(&entries[child], &entries[child + 1])) {
      child++;
    }
    if (!is_before(&moved, &entries[child])) break;
    entries[at] = entries[child];
    at = child;
  }
  entries[at] = moved;
}

void tarn__log_entries_sort(tarn__trace_log_entry *entries, size_t count) {
  if (is_sorted(entries, count)) return;
  for (size_t i = count / 2; i > 0; i--)
    sink(entries, count, i - 1);
  for (size_t end = count - 1; end > 0; end--) {
    tarn__trace_log_entry last = entries[0];
    entries[0] = entries[end];
    entries[end] = last;
    sink(entries, end, 0);
  }
}

static void sort_table(tarn__array *table) {
  tarn__trace_log_entry *entries = table->items;
  size_t kept = 0;
  if (table->count == 0) return;
  tarn__log_entries_sort(entries, table->count);
  for (size_t i = 0; i < table->count; i++) {
    if (kept != 0 && entries[kept - 1].number == entries[i].number) continue;
    entries[kept++] = entries[i];
  }
  tarn__array_drop(table, table->count - kept);
}

tarn__trace_log_entry *tarn__log_entry_find(const tarn__array *table,
                                            uint64_t number) {
  tarn__trace_log_entry *entries = table->items;
  size_t low = 0;
  size_t high = table->count;
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

// --- noting ----------------------------------------------------------------

static tarn_status add(tarn__trace_log_names *names, int table,
                       tarn__trace_log_entry entry) {
  void *fresh = NULL;
  tarn_status status =
      tarn__array_grow(names->input->budget, &names->tables[table], 1, &fresh);
  if (status == TARN_OK) *(tarn__trace_log_entry *)fresh = entry;
  return status;
}

static tarn_status note_text(tarn__trace_log_names *names,
                             const tarn__trace_log_record *record) {
  tarn__trace_log_bytes bytes = {.at = record->body, .end = record->end};
  size_t size = (size_t)tarn__log_take(&bytes);
  return add(
      names, TARN__LOG_TEXTS,
      (tarn__trace_log_entry){
          .number = record->number, .at = bytes.at, .extra = (uint32_t)size});
}

tarn_status tarn__log_names_note(tarn__trace_log_names *names,
                                 const tarn__trace_log_record *record) {
  tarn__trace_log_entry entry = {.number = record->number, .at = record->body};
  switch (record->definition) {
    case TARN__LOG_TEXT:
      return note_text(names, record);
    case TARN__LOG_TAG:
      return add(names, TARN__LOG_TAGS, entry);
    case TARN__LOG_FRAME:
      return add(names, TARN__LOG_FRAMES, entry);
    case TARN__LOG_MODULE:
      return add(names, TARN__LOG_MODULES, entry);
    case TARN__LOG_STACK:
    case TARN__LOG_RAW_STACK:
      entry.value = TARN_TRACE_NO_STACK;
      entry.extra = record->definition == TARN__LOG_RAW_STACK;
      return add(names, TARN__LOG_STACKS, entry);
    default:
      return TARN_OK;
  }
}

void tarn__log_names_moment(tarn__trace_log_names *names, uint64_t number) {
  const tarn__array *table = &names->tables[TARN__LOG_STACKS];
  tarn__trace_log_entry *stacks = table->items;
  for (; names->pending < table->count; names->pending++)
    stacks[names->pending].moment = number;
}

// --- making known ----------------------------------------------------------

tarn_status tarn__log_names_text(tarn__trace_log_names *names, uint64_t number,
                                 uint32_t *out_text) {
  tarn__trace_stacks *stacks = &names->history->stacks;
  tarn__trace_log_entry *text =
      tarn__log_entry_find(&names->tables[TARN__LOG_TEXTS], number);
  if (text == NULL) return tarn__stacks_text(stacks, "", 0, out_text);
  if (text->moment != 0) {
    *out_text = (uint32_t)(text->moment - 1);
    return TARN_OK;
  }
  tarn_status status =
      tarn__stacks_text(stacks, (const char *)text->at, text->extra, out_text);
  if (status == TARN_OK) text->moment = (uint64_t)*out_text + 1;
  return status;
}

tarn_status tarn__log_names_tag(tarn__trace_log_names *names, uint64_t number,
                                uint32_t *out_tag) {
  tarn__trace_log_entry *text =
      tarn__log_entry_find(&names->tables[TARN__LOG_TEXTS], number);
  *out_tag = TARN_TRACE_NO_TAG;
  if (text == NULL) return TARN_OK;
  *out_tag = text->value;
  if (text->value != TARN_TRACE_NO_TAG || text->extra == 0) return TARN_OK;
  tarn_status status = tarn__history_tag(names->history, (const char *)text->at,
                                         text->extra, out_tag);
  text->value = *out_tag;
  return status;
}

static tarn_status settle_tags(tarn__trace_log_names *names) {
  const tarn__array *table = &names->tables[TARN__LOG_TAGS];
  const tarn__trace_log_entry *tags = table->items;
  uint32_t unused = 0;
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < table->count; i++)
    status = tarn__log_names_tag(names, tags[i].number, &unused);
  return status;
}

static tarn_status settle_frame(tarn__trace_log_names *names,
                                tarn__trace_log_entry *entry) {
  tarn__trace_frame frame = {0};
  tarn__trace_log_bytes bytes = tarn__log_entry_bytes(names, entry);
  uint64_t file = tarn__log_take(&bytes);
  uint64_t function = tarn__log_take(&bytes);
  frame.line = (uint32_t)tarn__log_take(&bytes);
  tarn_status status = tarn__log_names_text(names, file, &frame.file);
  if (status == TARN_OK) {
    status = tarn__log_names_text(names, function, &frame.function);
  }
  if (status != TARN_OK) return status;
  return tarn__stacks_frame(&names->history->stacks, frame, &entry->value);
}

static tarn_status settle_frames(tarn__trace_log_names *names) {
  tarn__array *table = &names->tables[TARN__LOG_FRAMES];
  tarn__trace_log_entry *frames = table->items;
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < table->count; i++)
    status = settle_frame(names, &frames[i]);
  sort_table(table);
  return status;
}

// The frame of an undefined number: without texts.
static tarn_status unknown_frame(tarn__trace_log_names *names,
                                 uint32_t *out_frame) {
  tarn__trace_frame frame = {0};
  tarn__trace_stacks *stacks = &names->history->stacks;
  *out_frame = 0;
  tarn_status status = tarn__stacks_text(stacks, "", 0, &frame.file);
  frame.function = frame.file;
  if (status != TARN_OK) return status;
  return tarn__stacks_frame(stacks, frame, out_frame);
}

static tarn_status settle_stack(tarn__trace_log_names *names,
                                tarn__trace_log_entry *entry) {
  uint32_t numbers[TARN__LOG_MOST_FRAMES] = {0};
  tarn_status status = TARN_OK;
  tarn__trace_log_bytes bytes = tarn__log_entry_bytes(names, entry);
  size_t count = (size_t)tarn__log_take(&bytes);
  for (size_t i = 0; status == TARN_OK && i < count; i++) {
    const tarn__trace_log_entry *frame = tarn__log_entry_find(
        &names->tables[TARN__LOG_FRAMES], tarn__log_take(&bytes));
    if (frame == NULL) status = unknown_frame(names, &numbers[i]);
    if (frame != NULL) numbers[i] = frame->value;
  }
  if (status != TARN_OK) return status;
  return tarn__stacks_stack(&names->history->stacks, numbers, count,
                            &entry->value);
}

static tarn_status settle_stacks(tarn__trace_log_names *names) {
  const tarn__array *table = &names->tables[TARN__LOG_STACKS];
  tarn__trace_log_entry *stacks = table->items;
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < table->count; i++) {
    if (stacks[i].extra == 0) status = settle_stack(names, &stacks[i]);
  }
  return status;
}

tarn_status tarn__log_names_settle(tarn__trace_log_names *names) {
  sort_table(&names->tables[TARN__LOG_TEXTS]);
  sort_table(&names->tables[TARN__LOG_MODULES]);
  tarn_status status = settle_tags(names);
  if (status == TARN_OK) status = settle_frames(names);
  if (status == TARN_OK) status = settle_stacks(names);
  if (status == TARN_OK) status = tarn__log_resolve_raw(names);
  sort_table(&names->tables[TARN__LOG_STACKS]);
  return status;
}

uint32_t tarn__log_names_stack(const tarn__trace_log_names *names,
                               uint64_t number) {
  const tarn__trace_log_entry *stack =
      tarn__log_entry_find(&names->tables[TARN__LOG_STACKS], number);
  return stack == NULL ? TARN_TRACE_NO_STACK : stack->value;
}
