// Tables of buffers: read, kept and written.
//
// Nothing is ever quoted: a quote is refused, because a comma behind it would
// mean something else. Control characters other than the tab are refused too,
// so that a file that is no text is found out early.
//
// A table is read in two passes over its lines: the first makes a buffer of
// each line; the second, where there is a column in_place_of, makes the pairs,
// whose givers may be further down. Errors of a problem are problem.c's, behind
// the place in the file.
//
// Invariant: buffer i has number i among the ids. While lines are read, the
// array of gaps moves as it grows; the buffers are pointed to their gaps at the
// end.
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/budget.h"
#include "base/hostmem.h"
#include "base/intern.h"
#include "base/lines.h"
#include "base/os.h"
#include "base/status.h"
#include "plan/problem.h"
#include "tarn/plan_csv.h"

typedef enum csv_column {
  CSV_ID,
  CSV_LOWER,
  CSV_UPPER,
  CSV_SIZE,
  CSV_ALIGNMENT,
  CSV_GAPS,
  CSV_OFFSET,
  CSV_IN_PLACE_OF,
  CSV_ARENA,
  CSV_COLUMNS,
} csv_column;

#define CSV_ABSENT SIZE_MAX

// The columns of the first line.
typedef struct csv_header {
  size_t field_count;
  size_t at[CSV_COLUMNS];  // number of the field,
                           // CSV_ABSENT: none
  // The known columns in the order in which they stand.
  csv_column order[CSV_COLUMNS];
  size_t known_count;
  // The last step itself, and no step behind it: the column is named "end".
  bool last_is_in;
} csv_header;

// Without the blanks around it.
typedef struct csv_field {
  const char *text;
  size_t size;
  size_t column;  // byte of the line at which it begins, from 1 on
} csv_field;

// A line as it is read.
typedef struct csv_line {
  const char *path;
  size_t number;
  const char *text;
  size_t size;
} csv_line;

// Arrays by buffer, except for gaps and pairs, which are of all buffers.
typedef enum csv_array {
  BUFFER_ARRAY,
  LINE_ARRAY,    // size_t: byte at which the line begins
  GAP_ARRAY,     // tarn_plan_gap
  OFFSET_ARRAY,  // uint64_t: answers
  ARENA_ARRAY,   // uint32_t: answers
  PAIR_ARRAY,
  ARRAYS,
} csv_array;

struct tarn_plan_table {
  tarn_plan_problem problem;
  unsigned char *bytes;  // of the file
  size_t size;
  csv_header header;
  size_t header_at;  // byte at which that line begins
  tarn__budget budget;
  tarn__array arrays[ARRAYS];
  tarn__intern ids;  // with a zero byte behind each; by buffer
  bool has_offsets;
  bool has_arenas;
};

// --- the table ---------------------------------------------------------------

static tarn_status make_table(tarn_plan_table **out_table) {
  static const size_t sizes[ARRAYS] = {
      [BUFFER_ARRAY] = sizeof(tarn_plan_buffer),
      [LINE_ARRAY] = sizeof(size_t),
      [GAP_ARRAY] = sizeof(tarn_plan_gap),
      [OFFSET_ARRAY] = sizeof(uint64_t),
      [ARENA_ARRAY] = sizeof(uint32_t),
      [PAIR_ARRAY] = sizeof(tarn_plan_pair)};
  tarn_plan_table *table = tarn__host_alloc(sizeof *table);
  *out_table = table;
  if (table == NULL) return TARN_E_NOMEM;
  table->problem.struct_size = sizeof table->problem;
  table->budget = tarn__budget_unlimited("plan table");
  for (int i = 0; i < ARRAYS; i++)
    table->arrays[i].item_size = sizes[i];
  tarn__intern_init(&table->ids);
  return TARN_OK;
}

void tarn_plan_table_destroy(tarn_plan_table *table) {
  if (table == NULL) return;
  tarn__intern_deinit(&table->ids, &table->budget);
  for (int i = 0; i < ARRAYS; i++)
    tarn__array_free(&table->budget, &table->arrays[i]);
  tarn__host_free(table->bytes, table->size);
  tarn__host_free(table, sizeof *table);
}

const tarn_plan_problem *tarn_plan_table_problem(const tarn_plan_table *table) {
  return &table->problem;
}

const char *tarn_plan_table_id(const tarn_plan_table *table, size_t index) {
  if (index >= table->problem.count) return "";
  return tarn__intern_text(&table->ids, (uint32_t)index);
}

const uint64_t *tarn_plan_table_offsets(const tarn_plan_table *table) {
  return table->has_offsets ? table->arrays[OFFSET_ARRAY].items : NULL;
}

const uint32_t *tarn_plan_table_arenas(const tarn_plan_table *table) {
  return table->has_arenas ? table->arrays[ARENA_ARRAY].items : NULL;
}

static tarn_status append(tarn_plan_table *table, csv_array which,
                          const void *item) {
  tarn__array *array = &table->arrays[which];
  void *copy = NULL;
  TARN__TRY(tarn__array_grow(&table->budget, array, 1, &copy));
  assert(copy != NULL);
  memcpy(copy, item, array->item_size);
  return TARN_OK;
}

// --- lines -------------------------------------------------------------------

__attribute__((format(printf, 3, 4), cold)) static tarn_status fail_at(
    const csv_line *line, size_t column, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return tarn__fail(TARN_E_CORRUPT, "%s:%zu:%zu: %s", line->path, line->number,
                    column, text);
}

static int shown(size_t size) {
  enum { SHOWN = 48 };
  return size < SHOWN ? (int)size : SHOWN;
}

// --- fields ------------------------------------------------------------------

static bool is_blank(char byte) {
  return byte == ' ' || byte == '\t';
}

static csv_field trimmed(const csv_line *line, size_t from, size_t upto) {
  while (from < upto && is_blank(line->text[from]))
    from++;
  while (from < upto && is_blank(line->text[upto - 1]))
    upto--;
  return (csv_field){line->text + from, upto - from, from + 1};
}

// The field that begins at |*from|, which goes on to the next.
static tarn_status take_field(const csv_line *line, size_t *from,
                              csv_field *out) {
  size_t end = *from;
  for (; end < line->size && line->text[end] != ','; end++) {
    unsigned char byte = (unsigned char)line->text[end];
    if (byte == '"') {
      return fail_at(line, end + 1, "a quote: fields stand without quotes");
    }
    if (byte < ' ' && byte != '\t') {
      return fail_at(line, end + 1, "byte 0x%02x is no text", byte);
    }
  }
  *out = trimmed(line, *from, end);
  *from = end + 1;
  return TARN_OK;
}

static bool next_word(csv_field *rest, csv_field *out_word) {
  size_t from = 0;
  while (from < rest->size && is_blank(rest->text[from]))
    from++;
  size_t upto = from;
  while (upto < rest->size && !is_blank(rest->text[upto]))
    upto++;
  *out_word = (csv_field){rest->text + from, upto - from, rest->column + from};
  *rest =
      (csv_field){rest->text + upto, rest->size - upto, rest->column + upto};
  return out_word->size > 0;
}

static tarn_status split(const csv_line *line, const csv_header *header,
                         csv_field out_fields[CSV_COLUMNS]) {
  size_t field = 0;
  size_t known = 0;
  for (int i = 0; i < CSV_COLUMNS; i++)
    out_fields[i] = (csv_field){line->text, 0, 1};
  for (size_t from = 0; from <= line->size; field++) {
    csv_field text;
    TARN__TRY(take_field(line, &from, &text));
    if (known < header->known_count &&
        header->at[header->order[known]] == field) {
      out_fields[header->order[known++]] = text;
    }
  }
  if (field == header->field_count) return TARN_OK;
  return fail_at(line, 1, "%zu fields, where %zu columns are named", field,
                 header->field_count);
}

// --- the first line ----------------------------------------------------------

typedef struct naming {
  const char *name;
  csv_column column;
  bool last_is_in;
} naming;

// The first name of each column is the one that errors use.
static const naming columns_named[] = {{"id", CSV_ID, false},
                                       {"buffer", CSV_ID, false},
                                       {"buffer_id", CSV_ID, false},
                                       {"lower", CSV_LOWER, false},
                                       {"begin", CSV_LOWER, false},
                                       {"start", CSV_LOWER, false},
                                       {"upper", CSV_UPPER, false},
                                       {"end", CSV_UPPER, true},
                                       {"size", CSV_SIZE, false},
                                       {"alignment", CSV_ALIGNMENT, false},
                                       {"gaps", CSV_GAPS, false},
                                       {"offset", CSV_OFFSET, false},
                                       {"in_place_of", CSV_IN_PLACE_OF, false},
                                       {"arena", CSV_ARENA, false}};

static const naming *find_name(const csv_field *field) {
  for (size_t i = 0; i < sizeof columns_named / sizeof *columns_named; i++) {
    if (field->size == strlen(columns_named[i].name) &&
        strncasecmp(field->text, columns_named[i].name, field->size) == 0) {
      return &columns_named[i];
    }
  }
  return NULL;
}

// Columns of other names are passed over.
static tarn_status take_name(const csv_line *line, const csv_field *field,
                             csv_header *header) {
  const naming *found = find_name(field);
  if (found == NULL) return TARN_OK;
  size_t *at = &header->at[found->column];
  if (*at != CSV_ABSENT) {
    return fail_at(line, field->column, "column '%s' repeats column %zu",
                   found->name, *at + 1);
  }
  *at = header->field_count;
  header->order[header->known_count++] = found->column;
  if (found->last_is_in) header->last_is_in = true;
  return TARN_OK;
}

static tarn_status check_needed(const csv_line *line,
                                const csv_header *header) {
  static const char *const needed[] = {"id", "lower", "upper", "size"};
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
    if (header->at[i] != CSV_ABSENT) continue;
    return fail_at(line, 1,
                   "no column '%s'; the first line names the columns, "
                   "of which id,lower,upper,size are needed",
                   needed[i]);
  }
  return TARN_OK;
}

static tarn_status read_header(const csv_line *line, csv_header *out) {
  *out = (csv_header){0};
  for (int i = 0; i < CSV_COLUMNS; i++)
    out->at[i] = CSV_ABSENT;
  for (size_t from = 0; from <= line->size; out->field_count++) {
    csv_field field;
    TARN__TRY(take_field(line, &from, &field));
    TARN__TRY(take_name(line, &field, out));
  }
  return check_needed(line, out);
}

// --- numbers -----------------------------------------------------------------

static tarn_status read_number(const csv_line *line, const csv_field *from,
                               const char *what, uint64_t *out_number) {
  if (tarn__text_decimal(from->text, from->size, out_number)) return TARN_OK;
  if (from->size == 0) {
    return fail_at(line, from->column, "%s is empty", what);
  }
  return fail_at(line, from->column,
                 "%s '%.*s' is not a whole number from 0 to 2^64 - 1", what,
                 shown(from->size), from->text);
}

static tarn_status read_last(const csv_line *line, const csv_field *from,
                             bool is_in, const char *what, uint64_t *out_last) {
  TARN__TRY(read_number(line, from, what, out_last));
  if (!is_in || ++*out_last != 0) return TARN_OK;
  return fail_at(line, from->column, "%s '%.*s' has no time step after it",
                 what, shown(from->size), from->text);
}

static tarn_status read_gap(const csv_line *line, const csv_field *word,
                            bool last_is_in, tarn_plan_gap *out_gap) {
  const char *minus = memchr(word->text, '-', word->size);
  if (memchr(word->text, '@', word->size) != NULL) {
    (void)fail_at(line, word->column,
                  "gap '%.*s' has a window, which Tarn does not support",
                  shown(word->size), word->text);
    return TARN_E_UNSUPPORTED;
  }
  if (minus == NULL) {
    return fail_at(line, word->column, "gap '%.*s' is not of the form 3-5",
                   shown(word->size), word->text);
  }
  size_t at = (size_t)(minus - word->text);
  csv_field first = {word->text, at, word->column};
  csv_field last = {minus + 1, word->size - at - 1, word->column + at + 1};
  TARN__TRY(read_number(line, &first, "gap's step", &out_gap->first));
  return read_last(line, &last, last_is_in, "gap's step", &out_gap->last);
}

static tarn_status read_alignment(const csv_line *line, const csv_field *from,
                                  uint64_t least, uint64_t *out_alignment) {
  uint64_t own = 0;
  if (from->size > 0) TARN__TRY(read_number(line, from, "alignment", &own));
  if (own == 0) own = 1;
  if (least == 0) least = 1;
  if (__builtin_mul_overflow(own / tarn__plan_gcd(own, least), least,
                             out_alignment)) {
    return fail_at(line, from->column,
                   "alignment %" PRIu64
                   ": its least common multiple with %" PRIu64
                   " is 2^64 or more",
                   own, least);
  }
  return TARN_OK;
}

static tarn_status read_arena(const csv_line *line, const csv_field *from,
                              uint32_t *out_arena) {
  uint64_t arena = 0;
  TARN__TRY(read_number(line, from, "arena", &arena));
  if (arena >= UINT32_MAX) {
    return fail_at(line, from->column, "arena %" PRIu64 " is beyond 2^32 - 2",
                   arena);
  }
  *out_arena = (uint32_t)arena;
  return TARN_OK;
}

// --- reading -----------------------------------------------------------------

typedef struct reader {
  tarn_plan_table *table;
  tarn_plan_csv_options options;
  tarn__lines lines;
  csv_line line;
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
  return fail_at(&r->line, column, "%s", tarn_last_error());
}

// --- fields ------------------------------------------------------------------

static tarn_status read_id(reader *r, const csv_field *from,
                           uint32_t *out_number) {
  void *copy = NULL;
  *out_number = 0;
  r->scratch.count = 0;
  TARN__TRY(
      tarn__array_grow(&r->table->budget, &r->scratch, from->size + 1, &copy));
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

static tarn_status take_id(reader *r, const csv_field *from) {
  uint32_t number = 0;
  const tarn__array *lines = &r->table->arrays[LINE_ARRAY];
  if (from->size == 0) {
    return fail_at(&r->line, from->column, "id is empty");
  }
  tarn_status status = read_id(r, from, &number);
  if (status != TARN_OK || number == lines->count) return status;
  return fail_at(
      &r->line, from->column, "id '%.*s' is that of line %zu",
      shown(from->size), from->text,
      line_number_at(r->table, ((const size_t *)lines->items)[number]));
}

static tarn_status read_gaps(reader *r, csv_field rest,
                             tarn_plan_buffer *buffer) {
  csv_field word;
  while (next_word(&rest, &word)) {
    tarn_plan_gap gap;
    TARN__TRY(read_gap(&r->line, &word, r->table->header.last_is_in, &gap));
    TARN__TRY(append(r->table, GAP_ARRAY, &gap));
    buffer->gap_count++;
  }
  const tarn_plan_gap *gaps = r->table->arrays[GAP_ARRAY].items;
  if (buffer->gap_count == 0) return TARN_OK;
  buffer->gaps = gaps + (r->table->arrays[GAP_ARRAY].count - buffer->gap_count);
  return TARN_OK;
}

// --- a line ------------------------------------------------------------------

// Offset and arena: the plan's, or asked for.
static tarn_status read_place(reader *r, const csv_field *fields,
                              tarn_plan_buffer *buffer) {
  tarn_plan_table *table = r->table;
  uint64_t offset = 0;
  uint32_t arena = 0;
  bool has_offset = fields[CSV_OFFSET].size > 0;
  bool has_arena = fields[CSV_ARENA].size > 0;
  if (has_offset) {
    TARN__TRY(read_number(&r->line, &fields[CSV_OFFSET], "offset", &offset));
  }
  if (has_arena) TARN__TRY(read_arena(&r->line, &fields[CSV_ARENA], &arena));
  if (!r->options.offsets_are_answers) {
    buffer->offset = offset;
    buffer->arena = arena;
    if (has_offset) buffer->flags |= TARN_PLAN_FIXED;
    if (has_arena) buffer->flags |= TARN_PLAN_IN_ARENA;
    return TARN_OK;
  }
  table->has_offsets &= has_offset;
  table->has_arenas &= has_arena;
  TARN__TRY(append(table, OFFSET_ARRAY, &offset));
  return append(table, ARENA_ARRAY, &arena);
}

static tarn_status read_buffer(reader *r, const csv_field *fields,
                               tarn_plan_buffer *buffer) {
  TARN__TRY(read_number(&r->line, &fields[CSV_LOWER], "lower", &buffer->first));
  TARN__TRY(read_last(&r->line, &fields[CSV_UPPER], r->table->header.last_is_in,
                      "upper", &buffer->last));
  TARN__TRY(read_number(&r->line, &fields[CSV_SIZE], "size", &buffer->size));
  TARN__TRY(read_alignment(&r->line, &fields[CSV_ALIGNMENT],
                           r->options.alignment, &buffer->alignment));
  TARN__TRY(read_gaps(r, fields[CSV_GAPS], buffer));
  return read_place(r, fields, buffer);
}

static tarn_status check_buffer(reader *r, const csv_field *fields,
                                const tarn_plan_buffer *buffer) {
  static const csv_column columns[] = {[TARN__PLAN_PART_SIZE] = CSV_SIZE,
                                       [TARN__PLAN_PART_STEPS] = CSV_LOWER,
                                       [TARN__PLAN_PART_GAPS] = CSV_GAPS,
                                       [TARN__PLAN_PART_OFFSET] = CSV_OFFSET};
  tarn__plan_part_of wrong;
  size_t index = r->table->arrays[BUFFER_ARRAY].count;
  tarn_status status = tarn__plan_check_buffer(buffer, index, &r->sum, &wrong);
  return at_place(r, fields[columns[wrong]].column, status);
}

static tarn_status read_line(reader *r) {
  tarn_plan_table *table = r->table;
  csv_field fields[CSV_COLUMNS];
  size_t at = (size_t)(r->line.text - (const char *)table->bytes);
  tarn_plan_buffer buffer = {0};
  TARN__TRY(split(&r->line, &table->header, fields));
  TARN__TRY(take_id(r, &fields[CSV_ID]));
  TARN__TRY(read_buffer(r, fields, &buffer));
  TARN__TRY(check_buffer(r, fields, &buffer));
  TARN__TRY(append(table, LINE_ARRAY, &at));
  return append(table, BUFFER_ARRAY, &buffer);
}

// --- pairs -------------------------------------------------------------------

static tarn_status read_pair(reader *r, const csv_field *word, size_t taker) {
  tarn_plan_table *table = r->table;
  uint32_t giver = 0;
  TARN__TRY(read_id(r, word, &giver));
  if (giver >= table->problem.count) {
    return fail_at(&r->line, word->column,
                   "in_place_of '%.*s', which is not the id of any line",
                   shown(word->size), word->text);
  }
  const tarn_plan_pair pair = {.giver = giver, .taker = taker};
  TARN__TRY(append(table, PAIR_ARRAY, &pair));
  table->problem.pairs = table->arrays[PAIR_ARRAY].items;
  size_t index = table->problem.pair_count++;
  return at_place(r, word->column,
                  tarn__plan_check_pair(&table->problem, index));
}

static tarn_status read_pairs(reader *r) {
  const csv_header *header = &r->table->header;
  if (header->at[CSV_IN_PLACE_OF] == CSV_ABSENT) return TARN_OK;
  begin_lines(r);
  bool more = next_line(r);  // the header
  for (size_t i = 0; more && next_line(r); i++) {
    csv_field fields[CSV_COLUMNS];
    csv_field word;
    TARN__TRY(split(&r->line, header, fields));
    while (next_word(&fields[CSV_IN_PLACE_OF], &word))
      TARN__TRY(read_pair(r, &word, i));
  }
  return TARN_OK;
}

// --- the whole ---------------------------------------------------------------

static tarn_status read_first_line(reader *r) {
  begin_lines(r);
  if (!next_line(r)) {
    r->line.number = 1;
    return fail_at(&r->line, 1,
                   "no line that names the columns, as "
                   "id,lower,upper,size");
  }
  r->table->header_at = (size_t)(r->line.text - (const char *)r->table->bytes);
  return read_header(&r->line, &r->table->header);
}

// Makes room for one buffer per line at once: no line is shorter than
// "a,0,1,1".
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
  TARN__TRY(
      tarn__array_reserve(&table->budget, &table->arrays[BUFFER_ARRAY], count));
  return tarn__array_reserve(&table->budget, &table->arrays[LINE_ARRAY], count);
}

static tarn_status fit(tarn_plan_table *table, csv_array from, csv_array to) {
  for (csv_array i = from; i < to; i++)
    TARN__TRY(tarn__array_fit(&table->budget, &table->arrays[i]));
  return TARN_OK;
}

static void hand_out(tarn_plan_table *table) {
  tarn_plan_buffer *buffers = table->arrays[BUFFER_ARRAY].items;
  const tarn_plan_gap *gaps = table->arrays[GAP_ARRAY].items;
  table->problem.buffers = buffers;
  table->problem.count = table->arrays[BUFFER_ARRAY].count;
  for (size_t i = 0; i < table->problem.count; i++) {
    if (buffers[i].gap_count == 0) continue;
    buffers[i].gaps = gaps;
    gaps += buffers[i].gap_count;
  }
}

static tarn_status read_all(reader *r) {
  tarn_plan_table *table = r->table;
  table->has_offsets = table->has_arenas = r->options.offsets_are_answers;
  TARN__TRY(read_first_line(r));
  TARN__TRY(make_room(r));
  while (next_line(r))
    TARN__TRY(read_line(r));
  TARN__TRY(fit(table, BUFFER_ARRAY, PAIR_ARRAY));
  hand_out(table);
  TARN__TRY(read_pairs(r));
  TARN__TRY(fit(table, PAIR_ARRAY, ARRAYS));
  table->problem.pairs = table->arrays[PAIR_ARRAY].items;
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

static tarn_status copy_bytes(tarn_plan_table *table, const void *bytes,
                              size_t size) {
  table->bytes = tarn__host_alloc(size);
  if (table->bytes == NULL) return TARN_E_NOMEM;
  table->size = size;
  if (size > 0) memcpy(table->bytes, bytes, size);
  return TARN_OK;
}

// |from_file|: |name| is its path; else there are |size| |bytes|.
static tarn_status read_table(const char *name, bool from_file,
                              const void *bytes, size_t size,
                              const tarn_plan_csv_options *options,
                              tarn_plan_table **out_table) {
  reader r = {.line.path = name};
  *out_table = NULL;
  if (name == NULL) return tarn__fail(TARN_E_INVALID, "plan table: no name");
  TARN__TRY(take_options(options, &r.options));
  TARN__TRY(make_table(&r.table));
  tarn_status status =
      from_file ? tarn__os_read_input(name, &r.table->bytes, &r.table->size)
                : copy_bytes(r.table, bytes, size);
  if (from_file && strcmp(name, "-") == 0) r.line.path = "standard input";
  if (status == TARN_OK) status = read_with(&r);
  if (status == TARN_OK) {
    *out_table = r.table;
  } else {
    tarn_plan_table_destroy(r.table);
  }
  return status;
}

tarn_status tarn_plan_table_read(const char *path,
                                 const tarn_plan_csv_options *options,
                                 tarn_plan_table **out_table) {
  if (out_table == NULL) return tarn__fail(TARN_E_INVALID, "plan table: NULL");
  return read_table(path, true, NULL, 0, options, out_table);
}

tarn_status tarn_plan_table_read_bytes(const void *bytes, size_t size,
                                       const char *name,
                                       const tarn_plan_csv_options *options,
                                       tarn_plan_table **out_table) {
  if (out_table == NULL) return tarn__fail(TARN_E_INVALID, "plan table: NULL");
  *out_table = NULL;
  if (bytes == NULL && size > 0) {
    return tarn__fail(TARN_E_INVALID, "plan table: %zu bytes at NULL", size);
  }
  return read_table(name, false, bytes, size, options, out_table);
}

// --- writing -----------------------------------------------------------------

enum { GATHERED = 1 << 16, NUMBER_SIZE = 24 };

// |status| is that of the first failure; later writes do nothing.
typedef struct writer {
  const tarn_plan_table *table;
  tarn__os_new_file file;
  tarn_status status;
  size_t used;
  char *bytes;  // GATHERED of them
} writer;

// The columns of the answers. Values are in this order; NULL: the field stays
// as it is, and no field is added.
static const csv_column answered[] = {CSV_OFFSET, CSV_ARENA};

enum { ANSWERS = sizeof answered / sizeof *answered };

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
static const char *answer_of(const writer *w, const char *const given[ANSWERS],
                             size_t field) {
  for (int i = 0; i < ANSWERS; i++)
    if (w->table->header.at[answered[i]] == field) return given[i];
  return NULL;
}

// Answers for which there is no column stand behind all others.
static void put_line(writer *w, size_t at, const char *const inside[ANSWERS],
                     const char *const behind[ANSWERS]) {
  const char *rest = (const char *)w->table->bytes + at;
  const char *end = rest + line_size(w->table, at);
  const csv_header *header = &w->table->header;
  for (size_t field = 0; field < header->field_count; field++) {
    const char *comma = memchr(rest, ',', (size_t)(end - rest));
    const char *upto = comma == NULL ? end : comma;
    const char *answer = answer_of(w, inside, field);
    if (field > 0) put_text(w, ",");
    if (answer != NULL) put_text(w, answer);
    if (answer == NULL) put(w, rest, (size_t)(upto - rest));
    rest = comma == NULL ? end : comma + 1;
  }
  for (int i = 0; i < ANSWERS; i++) {
    if (behind[i] == NULL || header->at[answered[i]] != CSV_ABSENT) continue;
    put_text(w, ",");
    put_text(w, behind[i]);
  }
  put_text(w, "\n");
}

static void put_all(writer *w, const uint64_t *offsets,
                    const uint32_t *arenas) {
  const size_t *lines = w->table->arrays[LINE_ARRAY].items;
  const char *const as_it_was[ANSWERS] = {NULL};
  char offset[NUMBER_SIZE] = "offset";
  char arena[NUMBER_SIZE] = "arena";
  const char *const own[ANSWERS] = {offsets == NULL ? NULL : offset,
                                    arenas == NULL ? NULL : arena};
  put_line(w, w->table->header_at, as_it_was, own);
  for (size_t i = 0; i < w->table->problem.count && w->status == TARN_OK; i++) {
    if (offsets != NULL) {
      snprintf(offset, sizeof offset, "%" PRIu64, offsets[i]);
    }
    if (arenas != NULL) snprintf(arena, sizeof arena, "%u", arenas[i]);
    put_line(w, lines[i], own, own);
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
