// One line of a table: its fields, and what the first line calls them.
//
// Nothing is ever quoted: a quote is refused, for behind one a comma would mean
// something else. Neither is any control character but the tab, so that what
// is no text at all is found out early.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/lines.h"
#include "base/status.h"
#include "plan/csv_table.h"

tarn_status tarn__plan_csv_fail(const tarn__plan_csv_line *line, size_t column,
                                const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return tarn__fail(TARN_E_CORRUPT, "%s:%zu:%zu: %s", line->path, line->number,
                    column, text);
}

int tarn__plan_csv_shown(size_t size) {
  enum { SHOWN = 48 };
  return size < SHOWN ? (int)size : SHOWN;
}

// --- fields ------------------------------------------------------------------

static bool is_blank(char byte) {
  return byte == ' ' || byte == '\t';
}

static tarn__plan_csv_field trimmed(const tarn__plan_csv_line *line,
                                    size_t from, size_t upto) {
  while (from < upto && is_blank(line->text[from]))
    from++;
  while (from < upto && is_blank(line->text[upto - 1]))
    upto--;
  return (tarn__plan_csv_field){line->text + from, upto - from, from + 1};
}

// The end of the field that begins at |from|.
static tarn_status find_end(const tarn__plan_csv_line *line, size_t from,
                            size_t *out_end) {
  for (*out_end = from; *out_end < line->size; (*out_end)++) {
    unsigned char byte = (unsigned char)line->text[*out_end];
    if (byte == ',') return TARN_OK;
    if (byte == '"') {
      return tarn__plan_csv_fail(line, *out_end + 1,
                                 "a quote: fields stand without quotes");
    }
    if (byte < ' ' && byte != '\t') {
      return tarn__plan_csv_fail(line, *out_end + 1, "byte 0x%02x is no text",
                                 byte);
    }
  }
  return TARN_OK;
}

bool tarn__plan_csv_word(tarn__plan_csv_field *rest,
                         tarn__plan_csv_field *out_word) {
  size_t from = 0;
  while (from < rest->size && is_blank(rest->text[from]))
    from++;
  size_t upto = from;
  while (upto < rest->size && !is_blank(rest->text[upto]))
    upto++;
  *out_word = (tarn__plan_csv_field){rest->text + from, upto - from,
                                     rest->column + from};
  *rest = (tarn__plan_csv_field){rest->text + upto, rest->size - upto,
                                 rest->column + upto};
  return out_word->size > 0;
}

tarn_status tarn__plan_csv_split(
    const tarn__plan_csv_line *line, const tarn__plan_csv_header *header,
    tarn__plan_csv_field out_fields[TARN__PLAN_CSV_COLUMNS]) {
  size_t field = 0;
  size_t known = 0;
  for (int i = 0; i < TARN__PLAN_CSV_COLUMNS; i++)
    out_fields[i] = (tarn__plan_csv_field){line->text, 0, 1};
  for (size_t from = 0; from <= line->size; field++) {
    size_t end = from;
    tarn_status status = find_end(line, from, &end);
    if (status != TARN_OK) return status;
    if (known < header->known_count &&
        header->at[header->order[known]] == field) {
      out_fields[header->order[known++]] = trimmed(line, from, end);
    }
    from = end + 1;
  }
  if (field == header->field_count) return TARN_OK;
  return tarn__plan_csv_fail(line, 1, "%zu fields, where %zu columns are named",
                             field, header->field_count);
}

// --- the first line ----------------------------------------------------------

typedef struct naming {
  const char *name;
  tarn__plan_csv_column column;
  bool last_is_in;
} naming;

// The first name of each column is the one that errors use.
static const naming names[] = {
    {"id", TARN__PLAN_CSV_ID, false},
    {"buffer", TARN__PLAN_CSV_ID, false},
    {"buffer_id", TARN__PLAN_CSV_ID, false},
    {"lower", TARN__PLAN_CSV_LOWER, false},
    {"begin", TARN__PLAN_CSV_LOWER, false},
    {"start", TARN__PLAN_CSV_LOWER, false},
    {"upper", TARN__PLAN_CSV_UPPER, false},
    {"end", TARN__PLAN_CSV_UPPER, true},
    {"size", TARN__PLAN_CSV_SIZE, false},
    {"alignment", TARN__PLAN_CSV_ALIGNMENT, false},
    {"gaps", TARN__PLAN_CSV_GAPS, false},
    {"offset", TARN__PLAN_CSV_OFFSET, false},
    {"in_place_of", TARN__PLAN_CSV_IN_PLACE_OF, false},
    {"arena", TARN__PLAN_CSV_ARENA, false}};

static const naming *find_name(const tarn__plan_csv_field *field) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (field->size == strlen(names[i].name) &&
        strncasecmp(field->text, names[i].name, field->size) == 0) {
      return &names[i];
    }
  }
  return NULL;
}

// Columns of other names are passed over.
static tarn_status take_name(const tarn__plan_csv_line *line,
                             const tarn__plan_csv_field *field,
                             tarn__plan_csv_header *header) {
  const naming *found = find_name(field);
  if (found == NULL) return TARN_OK;
  size_t *at = &header->at[found->column];
  if (*at != TARN__PLAN_CSV_ABSENT) {
    return tarn__plan_csv_fail(line, field->column,
                               "column '%s' says again what column %zu says",
                               found->name, *at + 1);
  }
  *at = header->field_count;
  header->order[header->known_count++] = found->column;
  if (found->last_is_in) header->last_is_in = true;
  return TARN_OK;
}

static tarn_status check_needed(const tarn__plan_csv_line *line,
                                const tarn__plan_csv_header *header) {
  static const char *const needed[] = {"id", "lower", "upper", "size"};
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
    if (header->at[i] != TARN__PLAN_CSV_ABSENT) continue;
    return tarn__plan_csv_fail(
        line, 1,
        "no column '%s'; the first line names the columns, "
        "of which id,lower,upper,size are needed",
        needed[i]);
  }
  return TARN_OK;
}

tarn_status tarn__plan_csv_read_header(const tarn__plan_csv_line *line,
                                       tarn__plan_csv_header *out) {
  *out = (tarn__plan_csv_header){0};
  for (int i = 0; i < TARN__PLAN_CSV_COLUMNS; i++)
    out->at[i] = TARN__PLAN_CSV_ABSENT;
  for (size_t from = 0; from <= line->size; out->field_count++) {
    size_t end = from;
    tarn_status status = find_end(line, from, &end);
    tarn__plan_csv_field field = trimmed(line, from, end);
    if (status == TARN_OK) status = take_name(line, &field, out);
    if (status != TARN_OK) return status;
    from = end + 1;
  }
  return check_needed(line, out);
}
