// Rows of cells and three ways to write them.
#include "table.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "text.h"
#include "tool.h"

enum { COLUMN_GAP = 2, FIRST_CAPACITY = 64 };

typedef struct cell {
  char *shown;  // for people
  char *value;  // for programs
} cell;

struct table {
  table_column columns[TABLE_COLUMNS_MOST];
  bool is_sparse[TABLE_COLUMNS_MOST];
  size_t widths[TABLE_COLUMNS_MOST];  // of the widest cell or the title
  size_t column_count;
  cell *cells;  // row by row
  size_t cell_count;
  size_t capacity;
};

// Columns on a terminal: every byte but those that continue a character.
static size_t width_of(const char *text) {
  size_t width = 0;
  for (; *text; text++)
    width += ((unsigned char)*text & 0xc0) != 0x80;
  return width;
}

table *table_create(const table_column *columns, size_t count) {
  table *t = tool_array(1, sizeof *t);
  for (size_t i = 0; i < count; i++)
    table_column_add(t, columns[i], false);
  return t;
}

void table_column_add(table *t, table_column column, bool is_sparse) {
  assert(t->column_count < TABLE_COLUMNS_MOST);
  t->columns[t->column_count] = column;
  t->is_sparse[t->column_count] = is_sparse;
  t->widths[t->column_count++] =
      column.title != NULL ? width_of(column.title) : 0;
}

void table_destroy(table *t) {
  if (t == NULL) return;
  for (size_t i = 0; i < t->cell_count; i++) {
    free(t->cells[i].shown);
    free(t->cells[i].value);
  }
  free(t->cells);
  free(t);
}

// ---------------------------------------------------------------------------
// Cells
// ---------------------------------------------------------------------------

static void grow(table *t) {
  size_t capacity = t->capacity ? t->capacity * 2 : FIRST_CAPACITY;
  cell *cells = tool_array(capacity, sizeof *cells);
  if (t->cell_count > 0) {
    memcpy(cells, t->cells, t->cell_count * sizeof *cells);
  }
  free(t->cells);
  t->cells = cells;
  t->capacity = capacity;
}

// Texts may come from files: they are made harmless here, once for all styles.
static void add(table *t, const char *shown, const char *value) {
  assert(t->column_count > 0);
  if (t->cell_count == t->capacity) grow(t);
  cell new = {.shown = tool_text(shown), .value = tool_text(value)};
  text_neutralise(new.shown, "");
  text_neutralise(new.value, "\n");  // CSV can say what it is
  size_t *widest = &t->widths[t->cell_count % t->column_count];
  size_t width = width_of(new.shown);
  if (width > *widest) *widest = width;
  t->cells[t->cell_count++] = new;
}

void table_text(table *t, const char *text) {
  add(t, text, text);
}

static void add_uint(table *t, const char *shown, uint64_t value) {
  char digits[FORMAT_SIZE];
  snprintf(digits, sizeof digits, "%" PRIu64, value);
  add(t, shown, digits);
}

void table_count(table *t, uint64_t count) {
  char shown[FORMAT_SIZE];
  add_uint(t, format_count(shown, count), count);
}

void table_bytes(table *t, uint64_t bytes) {
  char shown[FORMAT_SIZE];
  add_uint(t, format_bytes(shown, bytes), bytes);
}

void table_fixed(table *t, double value, int decimals) {
  char shown[FORMAT_SIZE];
  char digits[FORMAT_SIZE] = "";
  if (isfinite(value)) snprintf(digits, sizeof digits, "%.9g", value);
  add(t, format_fixed(shown, value, decimals), digits);
}

void table_percent(table *t, double part, double whole) {
  char shown[FORMAT_SIZE];
  char digits[FORMAT_SIZE];
  if (!(whole > 0)) {
    add(t, "-", "");
    return;
  }
  snprintf(shown, sizeof shown, "%.1f%%", 100 * part / whole);
  snprintf(digits, sizeof digits, "%.9g", 100 * part / whole);
  add(t, shown, digits);
}

void table_blank(table *t) {
  add(t, "", "");
}

// ---------------------------------------------------------------------------
// Plain and Markdown
// ---------------------------------------------------------------------------

// In Markdown a bar would end the cell, and others begin something.
static void write_shown(const char *text, table_style style, FILE *out) {
  for (; *text; text++) {
    if (style == TABLE_MARKDOWN && strchr("|`<\\", *text) != NULL) {
      fputc('\\', out);
    }
    fputc(*text, out);
  }
}

static void pad(FILE *out, size_t count) {
  for (size_t i = 0; i < count; i++)
    fputc(' ', out);
}

static void write_aligned(const char *text, size_t width, bool right,
                          table_style style, FILE *out) {
  size_t used = width_of(text);
  size_t missing = width > used ? width - used : 0;
  if (right) pad(out, missing);
  write_shown(text, style, out);
  if (!right) pad(out, missing);
}

static const cell *cell_at(const table *t, size_t row, size_t column) {
  return &t->cells[row * t->column_count + column];
}

static size_t row_count(const table *t) {
  assert(t->cell_count % t->column_count == 0);
  return t->cell_count / t->column_count;
}

static bool is_hidden(const table *t, size_t column) {
  bool hidden = t->is_sparse[column];
  for (size_t row = 0; hidden && row < row_count(t); row++)
    hidden = cell_at(t, row, column)->shown[0] == '\0';
  return hidden;
}

// Columns from the left up to the last that is not hidden.
static size_t shown_columns(const table *t) {
  size_t count = t->column_count;
  while (count > 0 && is_hidden(t, count - 1))
    count--;
  return count;
}

// Row 0 is the titles.
static const char *shown_at(const table *t, size_t row, size_t column) {
  return row == 0 ? t->columns[column].title
                  : cell_at(t, row - 1, column)->shown;
}

// The last column, if it is text, is not padded.
static void write_plain_row(const table *t, size_t row, FILE *out) {
  size_t count = shown_columns(t);
  for (size_t i = 0; i < count; i++) {
    bool right = t->columns[i].is_number;
    bool last = i + 1 == count;
    if (is_hidden(t, i)) continue;
    write_aligned(shown_at(t, row, i), last && !right ? 0 : t->widths[i], right,
                  TABLE_PLAIN, out);
    if (!last) pad(out, COLUMN_GAP);
  }
  fputc('\n', out);
}

static void write_markdown_row(const table *t, size_t row, FILE *out) {
  for (size_t i = 0; i < t->column_count; i++) {
    if (is_hidden(t, i)) continue;
    fputs("| ", out);
    write_aligned(shown_at(t, row, i), t->widths[i], t->columns[i].is_number,
                  TABLE_MARKDOWN, out);
    fputc(' ', out);
  }
  fputs("|\n", out);
}

static void write_markdown_rule(const table *t, FILE *out) {
  for (size_t i = 0; i < t->column_count; i++) {
    if (is_hidden(t, i)) continue;
    fputs("|", out);
    for (size_t w = t->widths[i] + 1; w > 0; w--)
      fputc('-', out);
    fputc(t->columns[i].is_number ? ':' : '-', out);
  }
  fputs("|\n", out);
}

static void write_plain(const table *t, FILE *out) {
  for (size_t row = 0; row <= row_count(t); row++)
    write_plain_row(t, row, out);
}

static void write_markdown(const table *t, FILE *out) {
  write_markdown_row(t, 0, out);
  write_markdown_rule(t, out);
  for (size_t row = 1; row <= row_count(t); row++) {
    write_markdown_row(t, row, out);
  }
}

// ---------------------------------------------------------------------------
// CSV (RFC 4180, but lines end as they do on this system)
// ---------------------------------------------------------------------------

static void write_csv_cell(const char *text, FILE *out) {
  if (strpbrk(text, ",\"\n") == NULL) {
    fputs(text, out);
    return;
  }
  fputc('"', out);
  for (; *text; text++) {
    if (*text == '"') fputc('"', out);
    fputc(*text, out);
  }
  fputc('"', out);
}

static void write_csv(const table *t, FILE *out) {
  assert(t->column_count > 0);
  for (size_t i = 0; i < t->column_count; i++) {
    if (i > 0) fputc(',', out);
    write_csv_cell(t->columns[i].key, out);
  }
  fputc('\n', out);
  for (size_t i = 0; i < t->cell_count; i++) {
    if (i % t->column_count != 0) fputc(',', out);
    write_csv_cell(t->cells[i].value, out);
    if ((i + 1) % t->column_count == 0) fputc('\n', out);
  }
}

void table_write(const table *t, table_style style, FILE *out) {
  switch (style) {
    case TABLE_PLAIN:
      write_plain(t, out);
      return;
    case TABLE_CSV:
      write_csv(t, out);
      return;
    case TABLE_MARKDOWN:
      write_markdown(t, out);
      return;
  }
}

table_style table_style_of(options_output output) {
  assert(output != OUTPUT_JSON);
  if (output == OUTPUT_CSV) return TABLE_CSV;
  return output == OUTPUT_MARKDOWN ? TABLE_MARKDOWN : TABLE_PLAIN;
}
