// A table of buffers, read.
//
// Two passes over the lines: one makes a buffer of each, the other, where there
// is such a column, pairs of those that may take another's place, which may
// stand further down. What is wrong with a problem is said in problem.c's
// words, behind the place in the file.
//
// Invariant: buffer i has number i among the ids. While lines are read, gaps
// move as they grow; the buffers learn at the end where theirs are.
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/lines.h"
#include "base/os.h"
#include "base/status.h"
#include "plan/csv_table.h"
#include "plan/problem.h"

typedef struct reader {
  tarn_plan_table *table;
  tarn_plan_csv_options options;
  tarn__lines lines;
  tarn__plan_csv_line line;
  uint64_t sum;         // of sizes and what else counts, so far
  tarn__array scratch;  // char: an id with its zero byte
} reader;

static bool next_line(reader *r) {
  if (!tarn__lines_next(&r->lines, &r->line.text, &r->line.size)) return false;
  r->line.number = r->lines.number;
  return true;
}

static void begin_lines(reader *r) {
  tarn__lines_init(&r->lines, r->table->bytes, r->table->size);
  r->lines.takes_last = true;
}

// Puts the place before what the last error says.
static tarn_status at_place(const reader *r, size_t column,
                            tarn_status status) {
  if (status == TARN_OK) return TARN_OK;
  return tarn__plan_csv_fail(&r->line, column, "%s", tarn_last_error());
}

// --- fields ------------------------------------------------------------------

static tarn_status read_id(reader *r, const tarn__plan_csv_field *from,
                           uint32_t *out_number) {
  void *copy = NULL;
  *out_number = 0;
  r->scratch.count = 0;
  tarn_status status =
      tarn__array_grow(&r->table->budget, &r->scratch, from->size + 1, &copy);
  if (status != TARN_OK) return status;
  assert(copy != NULL);
  if (from->size > 0) memcpy(copy, from->text, from->size);
  ((char *)copy)[from->size] = '\0';
  return tarn__intern_put(&r->table->ids, &r->table->budget, copy,
                          from->size + 1, out_number);
}

// The number, from 1 on, of the line at byte |at|.
static size_t line_number_at(const tarn_plan_table *table, size_t at) {
  size_t number = 1;
  for (size_t i = 0; i < at; i++)
    number += table->bytes[i] == '\n';
  return number;
}

static tarn_status take_id(reader *r, const tarn__plan_csv_field *from) {
  uint32_t number = 0;
  size_t next = r->table->lines.count;
  if (from->size == 0) {
    return tarn__plan_csv_fail(&r->line, from->column, "id is empty");
  }
  tarn_status status = read_id(r, from, &number);
  if (status != TARN_OK || number == next) return status;
  const size_t *lines = r->table->lines.items;
  assert(lines != NULL);
  return tarn__plan_csv_fail(&r->line, from->column,
                             "id '%.*s' is that of line %zu",
                             tarn__plan_csv_shown(from->size), from->text,
                             line_number_at(r->table, lines[number]));
}

static tarn_status read_gaps(reader *r, tarn__plan_csv_field rest,
                             tarn_plan_buffer *buffer) {
  tarn__array *gaps = &r->table->gaps;
  size_t before = gaps->count;
  tarn__plan_csv_field word;
  tarn_status status = TARN_OK;
  while (status == TARN_OK && tarn__plan_csv_word(&rest, &word)) {
    void *gap = NULL;
    status = tarn__array_grow(&r->table->budget, gaps, 1, &gap);
    if (status == TARN_OK)
      status =
          tarn__plan_csv_gap(&r->line, &word, r->table->header.last_is_in, gap);
  }
  buffer->gap_count = gaps->count - before;
  if (buffer->gap_count > 0) {
    buffer->gaps = (const tarn_plan_gap *)gaps->items + before;
  }
  return status;
}

// --- a line ------------------------------------------------------------------

static tarn_status read_answer(reader *r, const tarn__plan_csv_field *fields) {
  tarn_plan_table *table = r->table;
  void *offset = NULL;
  void *arena = NULL;
  tarn_status status =
      tarn__array_grow(&table->budget, &table->offsets, 1, &offset);
  if (status == TARN_OK) {
    status = tarn__array_grow(&table->budget, &table->arenas, 1, &arena);
  }
  if (status == TARN_OK && fields[TARN__PLAN_CSV_OFFSET].size > 0) {
    status = tarn__plan_csv_number(&r->line, &fields[TARN__PLAN_CSV_OFFSET],
                                   "offset", offset);
  } else {
    table->has_offsets = false;
  }
  if (status == TARN_OK && fields[TARN__PLAN_CSV_ARENA].size > 0) {
    status =
        tarn__plan_csv_arena(&r->line, &fields[TARN__PLAN_CSV_ARENA], arena);
  } else {
    table->has_arenas = false;
  }
  return status;
}

static tarn_status read_demand(const reader *r,
                               const tarn__plan_csv_field *fields,
                               tarn_plan_buffer *buffer) {
  tarn_status status = TARN_OK;
  if (fields[TARN__PLAN_CSV_OFFSET].size > 0) {
    buffer->flags |= TARN_PLAN_FIXED;
    status = tarn__plan_csv_number(&r->line, &fields[TARN__PLAN_CSV_OFFSET],
                                   "offset", &buffer->offset);
  }
  if (status == TARN_OK && fields[TARN__PLAN_CSV_ARENA].size > 0) {
    buffer->flags |= TARN_PLAN_IN_ARENA;
    status = tarn__plan_csv_arena(&r->line, &fields[TARN__PLAN_CSV_ARENA],
                                  &buffer->arena);
  }
  return status;
}

static tarn_status read_buffer(reader *r, const tarn__plan_csv_field *fields,
                               tarn_plan_buffer *buffer) {
  tarn_status status = tarn__plan_csv_number(
      &r->line, &fields[TARN__PLAN_CSV_LOWER], "lower", &buffer->first);
  if (status == TARN_OK) {
    status = tarn__plan_csv_last(&r->line, &fields[TARN__PLAN_CSV_UPPER],
                                 r->table->header.last_is_in, "upper",
                                 &buffer->last);
  }
  if (status == TARN_OK) {
    status = tarn__plan_csv_number(&r->line, &fields[TARN__PLAN_CSV_SIZE],
                                   "size", &buffer->size);
  }
  if (status == TARN_OK) {
    status =
        tarn__plan_csv_alignment(&r->line, &fields[TARN__PLAN_CSV_ALIGNMENT],
                                 r->options.alignment, &buffer->alignment);
  }
  if (status == TARN_OK)
    status = read_gaps(r, fields[TARN__PLAN_CSV_GAPS], buffer);
  if (status != TARN_OK) return status;
  return r->options.offsets_are_answers ? read_answer(r, fields)
                                        : read_demand(r, fields, buffer);
}

static tarn_status check_buffer(reader *r, const tarn__plan_csv_field *fields,
                                const tarn_plan_buffer *buffer) {
  size_t index = r->table->buffers.count - 1;
  tarn_status status = at_place(r, fields[TARN__PLAN_CSV_SIZE].column,
                                tarn__plan_check_size(buffer, index));
  if (status == TARN_OK) {
    status = at_place(r, fields[TARN__PLAN_CSV_LOWER].column,
                      tarn__plan_check_steps(buffer, index));
  }
  if (status == TARN_OK) {
    status = at_place(r, fields[TARN__PLAN_CSV_GAPS].column,
                      tarn__plan_check_gaps(buffer, index));
  }
  if (status == TARN_OK) {
    status = at_place(r, fields[TARN__PLAN_CSV_OFFSET].column,
                      tarn__plan_check_offset(buffer, index));
  }
  if (status != TARN_OK) return status;
  return at_place(r, fields[TARN__PLAN_CSV_SIZE].column,
                  tarn__plan_check_sum(buffer, index, &r->sum));
}

static tarn_status read_line(reader *r) {
  tarn_plan_table *table = r->table;
  tarn__plan_csv_field fields[TARN__PLAN_CSV_COLUMNS];
  void *buffer = NULL;
  void *at = NULL;
  tarn_status status = tarn__plan_csv_split(&r->line, &table->header, fields);
  if (status == TARN_OK) status = take_id(r, &fields[TARN__PLAN_CSV_ID]);
  if (status == TARN_OK) {
    status = tarn__array_grow(&table->budget, &table->buffers, 1, &buffer);
  }
  if (status == TARN_OK) {
    status = tarn__array_grow(&table->budget, &table->lines, 1, &at);
  }
  if (status != TARN_OK) return status;
  assert(buffer != NULL && at != NULL);
  *(size_t *)at = (size_t)(r->line.text - (const char *)table->bytes);
  status = read_buffer(r, fields, buffer);
  return status == TARN_OK ? check_buffer(r, fields, buffer) : status;
}

// --- pairs -------------------------------------------------------------------

static tarn_status read_pair(reader *r, const tarn__plan_csv_field *word,
                             size_t taker) {
  tarn_plan_table *table = r->table;
  uint32_t giver = 0;
  void *pair = NULL;
  tarn_status status = read_id(r, word, &giver);
  if (status != TARN_OK) return status;
  if (giver >= table->buffers.count) {
    return tarn__plan_csv_fail(&r->line, word->column,
                               "in_place_of '%.*s', which is no line's id",
                               tarn__plan_csv_shown(word->size), word->text);
  }
  status = tarn__array_grow(&table->budget, &table->pairs, 1, &pair);
  if (status != TARN_OK) return status;
  assert(pair != NULL);
  *(tarn_plan_pair *)pair = (tarn_plan_pair){.giver = giver, .taker = taker};
  table->problem.pairs = table->pairs.items;
  table->problem.pair_count = table->pairs.count;
  return at_place(
      r, word->column,
      tarn__plan_check_pair(&table->problem, table->pairs.count - 1));
}

static tarn_status read_pairs(reader *r) {
  tarn_plan_table *table = r->table;
  tarn_status status = TARN_OK;
  if (table->header.at[TARN__PLAN_CSV_IN_PLACE_OF] == TARN__PLAN_CSV_ABSENT) {
    return TARN_OK;
  }
  begin_lines(r);
  bool more = next_line(r);  // the header
  for (size_t i = 0; status == TARN_OK && more && next_line(r); i++) {
    tarn__plan_csv_field fields[TARN__PLAN_CSV_COLUMNS];
    tarn__plan_csv_field word;
    status = tarn__plan_csv_split(&r->line, &table->header, fields);
    while (status == TARN_OK &&
           tarn__plan_csv_word(&fields[TARN__PLAN_CSV_IN_PLACE_OF], &word)) {
      status = read_pair(r, &word, i);
    }
  }
  return status;
}

// --- the whole ---------------------------------------------------------------

static tarn_status read_first_line(reader *r) {
  begin_lines(r);
  if (!next_line(r)) {
    r->line.number = 1;
    return tarn__plan_csv_fail(&r->line, 1,
                               "no line that names the columns, as "
                               "id,lower,upper,size");
  }
  r->table->header_at = (size_t)(r->line.text - (const char *)r->table->bytes);
  return tarn__plan_csv_read_header(&r->line, &r->table->header);
}

// Room for one buffer per line, at once: none is shorter than "a,0,1,1".
static tarn_status make_room(reader *r) {
  enum { LEAST_LINE = 8 };
  tarn_plan_table *table = r->table;
  size_t most = table->size / LEAST_LINE + 1;
  size_t count = 1;
  const char *at = (const char *)table->bytes;
  const char *end = at + table->size;
  while (count < most && at < end) {
    at = memchr(at, '\n', (size_t)(end - at));
    if (at == NULL) break;
    at++;
    count++;
  }
  tarn_status status =
      tarn__array_reserve(&table->budget, &table->buffers, count);
  if (status != TARN_OK) return status;
  return tarn__array_reserve(&table->budget, &table->lines, count);
}

static tarn_status fit(tarn_plan_table *table) {
  tarn__array *const arrays[] = {&table->buffers, &table->lines,
                                 &table->gaps,    &table->pairs,
                                 &table->offsets, &table->arenas};
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < sizeof arrays / sizeof *arrays;
       i++) {
    status = tarn__array_fit(&table->budget, arrays[i]);
  }
  return status;
}

static void hand_out(tarn_plan_table *table) {
  tarn_plan_buffer *buffers = table->buffers.items;
  const tarn_plan_gap *gaps = table->gaps.items;
  for (size_t i = 0; i < table->buffers.count; i++) {
    if (buffers[i].gap_count == 0) continue;
    buffers[i].gaps = gaps;
    gaps += buffers[i].gap_count;
  }
  table->problem.buffers = buffers;
  table->problem.count = table->buffers.count;
}

static tarn_status read_all(reader *r) {
  tarn_plan_table *table = r->table;
  table->has_offsets = table->has_arenas = r->options.offsets_are_answers;
  tarn_status status = read_first_line(r);
  if (status == TARN_OK) status = make_room(r);
  while (status == TARN_OK && next_line(r))
    status = read_line(r);
  if (status != TARN_OK) return status;
  hand_out(table);
  status = read_pairs(r);
  if (status == TARN_OK) status = fit(table);
  if (status != TARN_OK) return status;
  hand_out(table);
  table->problem.pairs = table->pairs.items;
  return TARN_OK;
}

static tarn_status take_options(const tarn_plan_csv_options *given,
                                tarn_plan_csv_options *out) {
  size_t known = 0;
  *out = (tarn_plan_csv_options){0};
  if (given == NULL) return TARN_OK;
  if (!tarn__struct_size(given->struct_size,
                         TARN__SIZE_UP_TO(tarn_plan_csv_options, alignment),
                         sizeof *out, &known)) {
    return tarn__fail(TARN_E_INVALID, "plan table: struct_size");
  }
  memcpy(out, given, known);
  return TARN_OK;
}

static tarn_status read_with(reader *r) {
  r->scratch = TARN__ARRAY_OF(char);
  r->table->budget = tarn__budget_for(r->line.path, r->table->size);
  tarn_status status = tarn__budget_charge(&r->table->budget, r->table->size);
  if (status == TARN_OK) status = read_all(r);
  tarn__array_free(&r->table->budget, &r->scratch);
  r->table->budget.name = "plan table";
  return status;
}

static tarn_status begin(reader *r, const char *name,
                         const tarn_plan_csv_options *options) {
  *r = (reader){.line.path = name};
  if (name == NULL) return tarn__fail(TARN_E_INVALID, "plan table: no name");
  tarn_status status = take_options(options, &r->options);
  return status == TARN_OK ? tarn__plan_csv_table_make(&r->table) : status;
}

static tarn_status end(reader *r, tarn_status status,
                       tarn_plan_table **out_table) {
  *out_table = status == TARN_OK ? r->table : NULL;
  if (status != TARN_OK) tarn_plan_table_destroy(r->table);
  return status;
}

tarn_status tarn_plan_table_read(const char *path,
                                 const tarn_plan_csv_options *options,
                                 tarn_plan_table **out_table) {
  reader r;
  if (out_table == NULL) return tarn__fail(TARN_E_INVALID, "plan table: NULL");
  tarn_status status = begin(&r, path, options);
  if (status == TARN_OK) {
    assert(r.table != NULL);
    status = tarn__os_read_input(path, &r.table->bytes, &r.table->size);
  }
  if (status == TARN_OK) {
    if (strcmp(path, "-") == 0) r.line.path = "standard input";
    status = read_with(&r);
  }
  return end(&r, status, out_table);
}

tarn_status tarn_plan_table_read_bytes(const void *bytes, size_t size,
                                       const char *name,
                                       const tarn_plan_csv_options *options,
                                       tarn_plan_table **out_table) {
  reader r;
  if (out_table == NULL) return tarn__fail(TARN_E_INVALID, "plan table: NULL");
  *out_table = NULL;
  if (bytes == NULL && size > 0) {
    return tarn__fail(TARN_E_INVALID, "plan table: %zu bytes at NULL", size);
  }
  tarn_status status = begin(&r, name, options);
  if (status == TARN_OK) {
    assert(r.table != NULL);
    r.table->bytes = tarn__host_alloc(size);
    if (r.table->bytes == NULL) status = TARN_E_NOMEM;
  }
  if (status == TARN_OK) {
    r.table->size = size;
    if (size > 0) memcpy(r.table->bytes, bytes, size);
    status = read_with(&r);
  }
  return end(&r, status, out_table);
}
