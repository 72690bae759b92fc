// A table of buffers, written as it was read but for offsets and arenas.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "plan/csv_table.h"

enum { GATHERED = 1 << 16, NUMBER_SIZE = 24 };

// Of a failure |status| keeps the first; what comes after is dropped.
typedef struct writer {
  const tarn_plan_table *table;
  tarn__os_new_file file;
  tarn_status status;
  size_t used;
  char *bytes;  // GATHERED of them
} writer;

// What to write into the two columns; NULL: what stands there, if anything.
typedef struct answers {
  const char *offset;
  const char *arena;
} answers;

static void hand_over(writer *w) {
  if (w->status == TARN_OK) {
    w->status = tarn__os_file_write(&w->file, w->bytes, w->used);
  }
  w->used = 0;
}

static void put(writer *w, const char *text, size_t size) {
  while (size > 0) {
    if (w->used == GATHERED) hand_over(w);
    size_t room = GATHERED - w->used;
    size_t part = size < room ? size : room;
    memcpy(w->bytes + w->used, text, part);
    w->used += part;
    text += part;
    size -= part;
  }
}

static void put_text(writer *w, const char *text) {
  put(w, text, strlen(text));
}

static size_t line_size(const tarn_plan_table *table, size_t at) {
  const char *text = (const char *)table->bytes + at;
  size_t left = table->size - at;
  const char *end = memchr(text, '\n', left);
  size_t size = end == NULL ? left : (size_t)(end - text);
  return size > 0 && text[size - 1] == '\r' ? size - 1 : size;
}

// The text for field |field|, or NULL.
static const char *answer_of(const writer *w, const answers *given,
                             size_t field) {
  const size_t *at = w->table->header.at;
  if (field == at[TARN__PLAN_CSV_OFFSET]) return given->offset;
  if (field == at[TARN__PLAN_CSV_ARENA]) return given->arena;
  return NULL;
}

// Answers for which there is no column stand behind all others.
static void put_line(writer *w, size_t at, const answers *inside,
                     const answers *behind) {
  const char *rest = (const char *)w->table->bytes + at;
  const char *end = rest + line_size(w->table, at);
  const tarn__plan_csv_header *header = &w->table->header;
  for (size_t field = 0; field < header->field_count; field++) {
    const char *comma = memchr(rest, ',', (size_t)(end - rest));
    const char *upto = comma == NULL ? end : comma;
    const char *answer = answer_of(w, inside, field);
    if (field > 0) put_text(w, ",");
    if (answer != NULL) put_text(w, answer);
    if (answer == NULL) put(w, rest, (size_t)(upto - rest));
    rest = comma == NULL ? end : comma + 1;
  }
  const char *const more[] = {behind->offset, behind->arena};
  const tarn__plan_csv_column of[] = {TARN__PLAN_CSV_OFFSET,
                                      TARN__PLAN_CSV_ARENA};
  for (int i = 0; i < 2; i++) {
    if (more[i] == NULL || header->at[of[i]] != TARN__PLAN_CSV_ABSENT) continue;
    put_text(w, ",");
    put_text(w, more[i]);
  }
  put_text(w, "\n");
}

static void put_all(writer *w, const uint64_t *offsets,
                    const uint32_t *arenas) {
  const size_t *lines = w->table->lines.items;
  const answers as_it_was = {0};
  const answers names = {offsets == NULL ? NULL : "offset",
                         arenas == NULL ? NULL : "arena"};
  put_line(w, w->table->header_at, &as_it_was, &names);
  for (size_t i = 0; i < w->table->problem.count && w->status == TARN_OK; i++) {
    char offset[NUMBER_SIZE] = "";
    char arena[NUMBER_SIZE] = "";
    const answers own = {offsets == NULL ? NULL : offset,
                         arenas == NULL ? NULL : arena};
    if (offsets != NULL) {
      snprintf(offset, sizeof offset, "%" PRIu64, offsets[i]);
    }
    if (arenas != NULL) snprintf(arena, sizeof arena, "%u", arenas[i]);
    put_line(w, lines[i], &own, &own);
  }
  hand_over(w);
}

tarn_status tarn_plan_table_write(const tarn_plan_table *table,
                                  const uint64_t *offsets,
                                  const uint32_t *arenas, const char *path) {
  if (table == NULL || path == NULL) {
    return tarn__fail(TARN_E_INVALID, "plan table: NULL");
  }
  writer w = {.table = table, .bytes = tarn__host_alloc(GATHERED)};
  if (w.bytes == NULL) return TARN_E_NOMEM;
  w.status = tarn__os_output_begin(path, &w.file);
  if (w.status == TARN_OK) {
    put_all(&w, offsets, arenas);
    if (w.status == TARN_OK) {
      w.status = tarn__os_file_commit(&w.file);
    } else {
      tarn__os_file_cancel(&w.file);
    }
  }
  tarn__host_free(w.bytes, GATHERED);
  return w.status;
}
