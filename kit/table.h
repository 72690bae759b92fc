// table.h - rows of cells, written as a table for people, as CSV, or as
// Markdown.
//
//   table *t = table_create(columns, 2);
//   table_text(t, "cpu:0");
//   table_bytes(t, 1536);              the next cell, row by row
//   table_write(t, TABLE_PLAIN, stdout);
//   table_destroy(t);
//
// A cell has its value in two forms: TABLE_PLAIN and TABLE_MARKDOWN show that
// for people ("1.50 KiB"), TABLE_CSV that for programs ("1536").
#ifndef TARN_KIT_TABLE_H_
#define TARN_KIT_TABLE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "options.h"

typedef struct table table;

typedef struct table_column {
  const char *title;  // over the column, with its unit
  const char *key;    // in the first line of CSV
  bool is_number;     // aligned at the right
} table_column;

enum { TABLE_COLUMNS_MOST = 32 };

typedef enum table_style {
  TABLE_PLAIN = 0,
  TABLE_CSV,
  TABLE_MARKDOWN,
} table_style;

// How a table looks in |output|, which is any but OUTPUT_JSON.
table_style table_style_of(options_output output);

// The titles and keys of |columns| are borrowed until table_destroy.
table *table_create(const table_column *columns, size_t count);
void table_destroy(table *t);

// Adds a column at the right, before the cell of the first row that is in it. A
// sparse column is left out for people if all its cells are empty.
void table_column_add(table *t, table_column column, bool is_sparse);

void table_text(table *t, const char *text);
void table_count(table *t, uint64_t count);
void table_bytes(table *t, uint64_t bytes);
void table_fixed(table *t, double value, int decimals);   // NaN: "-"
void table_percent(table *t, double part, double whole);  // 0 of 0: "-"
void table_blank(table *t);

// |t| must stand at the end of a row.
void table_write(const table *t, table_style style, FILE *out);

#endif  // TARN_KIT_TABLE_H_
