// sheet.h - rows of named cells, described once and written as a table, CSV,
// Markdown or JSON.
//
//   sheet *s = sheet_begin(output, machine);
//   sheet_list(s, "results");
//   for (size_t i = 0; i < count; i++) {
//     sheet_text(s, "pool", "name", names[i]);
//     sheet_number(s, "alloc ns", "alloc_ns_median", ns[i], 1);
//     sheet_row_end(s);
//   }
//   sheet_end(s);
//
// JSON is one object: an array of objects for each list, then "machine". For
// people each list is a table, below a line with the machine. CSV has the first
// list only, with the machine in the last column. All goes to tool_out(), or to
// the stream of sheet_begin_on.
//
// The first row of a table defines its columns: every row has the same cells in
// the same order.
#ifndef TARN_KIT_SHEET_H_
#define TARN_KIT_SHEET_H_

#include <stdio.h>

#include "options.h"

typedef struct sheet sheet;

// |machine| is borrowed; NULL: not told.
sheet *sheet_begin(options_output output, const char *machine);
sheet *sheet_begin_on(FILE *out, options_output output, const char *machine);

// Writes what is left and frees |s|.
void sheet_end(sheet *s);

void sheet_list(sheet *s, const char *key);

// A new table of the same list, with its title, for people. |title| is copied.
void sheet_group(sheet *s, const char *title);

// A line for people only.
void sheet_note(sheet *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Ends the list and returns the JSON object around it (json.h), for more keys;
// NULL if another format is written.
struct json *sheet_json(sheet *s);

// A list within a row: its cells so far are those of the outer object. Other
// formats than JSON have no outer row: give it only cells for SHEET_JSON.
void sheet_nest(sheet *s, const char *key);
void sheet_unnest(sheet *s);

// ---------------------------------------------------------------------------
// Cells
// ---------------------------------------------------------------------------

// |title| is the column for people, |key| that of CSV and JSON. NULL: the cell
// is not written there.

// The formats that the cells of the row from here on are written in.
enum {
  SHEET_PEOPLE = 1,
  SHEET_CSV = 2,
  SHEET_JSON = 4,
  SHEET_ALL = 7,
};
void sheet_only(sheet *s, unsigned formats);

void sheet_text(sheet *s, const char *title, const char *key, const char *text);

// A text in a column of numbers.
void sheet_figure(sheet *s, const char *title, const char *key,
                  const char *text);

// Words with a blank between them; an array in JSON.
void sheet_words(sheet *s, const char *title, const char *key,
                 const char *words);
void sheet_number(sheet *s, const char *title, const char *key, double value,
                  int decimals);  // NaN: "-", null

// The same of a time: with as many more decimals as show two digits of it.
void sheet_time(sheet *s, const char *title, const char *key, double value,
                int decimals);

// 0 of 0: "-", null.
void sheet_percent(sheet *s, const char *title, const char *key, double part,
                   double whole);

void sheet_bool(sheet *s, const char *title, const char *key, bool value);

// An array in JSON, nothing in other formats.
void sheet_numbers(sheet *s, const char *key, const double *values,
                   size_t count);

typedef enum sheet_unit {
  SHEET_COUNT = 0,
  SHEET_BYTES,
  SHEET_UNKNOWN,  // empty in a table, the number in JSON
} sheet_unit;
void sheet_uint(sheet *s, const char *title, const char *key, uint64_t value,
                sheet_unit unit);

// A value that should be at most, at least or exactly its goal.
typedef enum sheet_bound {
  SHEET_AT_MOST = 0,
  SHEET_AT_LEAST,
  SHEET_EXACTLY
} sheet_bound;

// Whether |value| meets |goal|. NaN does not.
bool sheet_is_met(double value, sheet_bound bound, double goal);

// Two cells: the goal, "<= 1.2" under |title| and a number in JSON, and "met",
// empty or null without a value or a goal (NaN).
void sheet_goal(sheet *s, const char *title, double value, sheet_bound bound,
                double goal);
void sheet_met(sheet *s, bool is_met);

// Why a row has no values; "" is null in JSON, and a table without a reason in
// any row has no such column.
void sheet_failed(sheet *s, const char *key, const char *why);

void sheet_row_end(sheet *s);

#endif  // TARN_KIT_SHEET_H_
