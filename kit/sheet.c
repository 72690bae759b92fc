// One description of a row behind four formats: a table or a JSON writer takes
// each cell.
#include "sheet.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "table.h"
#include "tool.h"

struct sheet {
  options_output output;
  FILE *out;
  const char *machine;
  json json;
  table *table;       // NULL: no row of it yet
  char *title;        // of the table; NULL: none
  size_t lists;       // that were begun
  size_t row_cells;   // of the row that is open
  bool has_columns;   // a row of |table| has ended
  bool in_list;       // JSON: its array is open
  bool is_separated;  // nothing stands above the next table
  unsigned formats;   // of the next cell
};

static unsigned format_of(const sheet *s) {
  if (s->output == OUTPUT_JSON) return SHEET_JSON;
  return s->output == OUTPUT_CSV ? SHEET_CSV : SHEET_PEOPLE;
}

static bool is_for_people(const sheet *s) {
  return format_of(s) == SHEET_PEOPLE;
}

// ---------------------------------------------------------------------------
// Tables and lists
// ---------------------------------------------------------------------------

static void write_table(sheet *s) {
  table_style style = table_style_of(s->output);
  const char *mark = style == TABLE_MARKDOWN ? "### " : "";
  bool is_anything = s->table != NULL || s->title != NULL;
  if (is_anything && !s->is_separated) fputc('\n', s->out);
  if (s->title != NULL) fprintf(s->out, "%s%s\n\n", mark, s->title);
  if (s->table != NULL) table_write(s->table, style, s->out);
  if (is_anything) s->is_separated = false;
  table_destroy(s->table);
  free(s->title);
  s->table = NULL;
  s->title = NULL;
  s->has_columns = false;
}

static void end_list(sheet *s) {
  if (s->in_list) json_end_array(&s->json);
  s->in_list = false;
  if (is_for_people(s)) write_table(s);
}

sheet *sheet_begin(options_output output, const char *machine) {
  return sheet_begin_on(tool_out(), output, machine);
}

sheet *sheet_begin_on(FILE *out, options_output output, const char *machine) {
  sheet *s = tool_array(1, sizeof *s);
  *s = (sheet){.output = output,
               .out = out,
               .machine = machine,
               .formats = SHEET_ALL,
               .is_separated = output == OUTPUT_CSV || machine == NULL};
  if (output == OUTPUT_JSON) {
    s->json = json_to(s->out);
    json_begin_object(&s->json);
  } else if (is_for_people(s) && machine != NULL) {
    fprintf(s->out, "%s\n", machine);
  }
  return s;
}

void sheet_end(sheet *s) {
  end_list(s);
  if (s->output == OUTPUT_JSON) {
    if (s->machine != NULL) {
      json_key_text(&s->json, "machine", s->machine);
    }
    json_end_object(&s->json);
    json_finish(&s->json);
  } else {
    write_table(s);
  }
  free(s);
}

void sheet_list(sheet *s, const char *key) {
  end_list(s);
  s->lists++;
  if (s->output != OUTPUT_JSON) return;
  json_key_array(&s->json, key);
  s->in_list = true;
}

void sheet_group(sheet *s, const char *title) {
  if (!is_for_people(s)) return;
  write_table(s);
  s->title = tool_text(title);
}

void sheet_note(sheet *s, const char *format, ...) {
  va_list args;
  if (!is_for_people(s)) return;
  write_table(s);
  va_start(args, format);
  vfprintf(s->out, format, args);
  va_end(args);
  fputc('\n', s->out);
}

struct json *sheet_json(sheet *s) {
  end_list(s);
  return s->output == OUTPUT_JSON ? &s->json : NULL;
}

// ---------------------------------------------------------------------------
// Cells
// ---------------------------------------------------------------------------

// Whether the cell is written; if so, it is next in the table or the object.
static bool next(sheet *s, table_column column, bool is_sparse) {
  bool is_named = is_for_people(s) ? column.title != NULL : column.key != NULL;
  bool is_left_out = s->output == OUTPUT_CSV && s->lists > 1;
  if ((s->formats & format_of(s)) == 0 || !is_named || is_left_out)
    return false;
  if (s->output == OUTPUT_JSON) {
    if (s->row_cells++ == 0) json_begin_object(&s->json);
    json_key(&s->json, column.key);
    return true;
  }
  if (s->table == NULL) s->table = table_create(NULL, 0);
  if (!s->has_columns) table_column_add(s->table, column, is_sparse);
  return true;
}

void sheet_only(sheet *s, unsigned formats) {
  s->formats = formats;
}

static void add_text(sheet *s, table_column column, const char *text) {
  if (!next(s, column, false)) return;
  if (s->output == OUTPUT_JSON) {
    json_text(&s->json, text);
  } else {
    table_text(s->table, text);
  }
}

void sheet_text(sheet *s, const char *title, const char *key,
                const char *text) {
  add_text(s, (table_column){title, key, false}, text);
}

void sheet_figure(sheet *s, const char *title, const char *key,
                  const char *text) {
  add_text(s, (table_column){title, key, true}, text);
}

void sheet_words(sheet *s, const char *title, const char *key,
                 const char *words) {
  char word[128];
  if (s->output != OUTPUT_JSON) {
    sheet_text(s, title, key, words);
    return;
  }
  if (!next(s, (table_column){title, key, false}, false)) return;
  json_begin_array(&s->json);
  while (*words != '\0') {
    int length = (int)strcspn(words, " ");
    snprintf(word, sizeof word, "%.*s", length, words);
    json_text(&s->json, word);
    words += length + (words[length] == ' ');
  }
  json_end_array(&s->json);
}

void sheet_number(sheet *s, const char *title, const char *key, double value,
                  int decimals) {
  if (!next(s, (table_column){title, key, true}, false)) return;
  if (s->output == OUTPUT_JSON) {
    json_double(&s->json, value);
  } else {
    table_fixed(s->table, value, decimals);
  }
}

void sheet_time(sheet *s, const char *title, const char *key, double value,
                int decimals) {
  enum { DECIMALS_MOST = 9 };
  double shown = value * pow(10, decimals);
  while (shown > 0 && shown < 9.5 && decimals < DECIMALS_MOST) {
    shown *= 10;
    decimals++;
  }
  sheet_number(s, title, key, value, decimals);
}

void sheet_percent(sheet *s, const char *title, const char *key, double part,
                   double whole) {
  if (!next(s, (table_column){title, key, true}, false)) return;
  if (s->output == OUTPUT_JSON) {
    json_double(&s->json, 100 * part / whole);
  } else {
    table_percent(s->table, part, whole);
  }
}

void sheet_uint(sheet *s, const char *title, const char *key, uint64_t value,
                sheet_unit unit) {
  if (!next(s, (table_column){title, key, true}, false)) return;
  if (s->output == OUTPUT_JSON) {
    json_uint(&s->json, value);
  } else if (unit == SHEET_UNKNOWN) {
    table_blank(s->table);
  } else if (unit == SHEET_BYTES) {
    table_bytes(s->table, value);
  } else {
    table_count(s->table, value);
  }
}

void sheet_bool(sheet *s, const char *title, const char *key, bool value) {
  if (s->output != OUTPUT_JSON) {
    sheet_text(s, title, key, value ? "true" : "false");
  } else if (next(s, (table_column){title, key, false}, false)) {
    json_bool(&s->json, value);
  }
}

void sheet_numbers(sheet *s, const char *key, const double *values,
                   size_t count) {
  if (s->output != OUTPUT_JSON) return;
  if (!next(s, (table_column){NULL, key, false}, false)) return;
  json_begin_array(&s->json);
  for (size_t i = 0; i < count; i++)
    json_double(&s->json, values[i]);
  json_end_array(&s->json);
}

bool sheet_is_met(double value, sheet_bound bound, double goal) {
  if (bound == SHEET_AT_MOST) return value <= goal;
  return bound == SHEET_AT_LEAST ? value >= goal
                                 : value >= goal && value <= goal;
}

static void add_verdict(sheet *s, bool is_known, bool is_met) {
  if (!next(s, (table_column){"met", "met", false}, false)) return;
  if (s->output != OUTPUT_JSON) {
    table_text(s->table, !is_known ? "" : is_met ? "yes" : "NO");
  } else if (is_known) {
    json_bool(&s->json, is_met);
  } else {
    json_double(&s->json, NAN);  // null
  }
}

void sheet_met(sheet *s, bool is_met) {
  add_verdict(s, true, is_met);
}

void sheet_goal(sheet *s, const char *title, double value, sheet_bound bound,
                double goal) {
  static const char *const signs[] = {"<=", ">=", "="};
  char text[48] = "";
  if (s->output == OUTPUT_JSON) {
    sheet_number(s, title, "goal", goal, 0);
  } else {
    if (!isnan(goal))
      snprintf(text, sizeof text, "%s %.10g", signs[bound], goal);
    sheet_text(s, title, "goal", text);
  }
  add_verdict(s, !isnan(value) && !isnan(goal),
              sheet_is_met(value, bound, goal));
}

void sheet_failed(sheet *s, const char *key, const char *why) {
  if (!next(s, (table_column){"failed", key, false}, true)) return;
  if (s->output == OUTPUT_JSON) {
    json_text(&s->json, *why == '\0' ? NULL : why);
  } else {
    table_text(s->table, why);
  }
}

void sheet_row_end(sheet *s) {
  s->formats = SHEET_CSV;
  if (s->machine != NULL && s->output == OUTPUT_CSV)
    sheet_text(s, NULL, "machine", s->machine);
  s->formats = SHEET_ALL;
  s->has_columns = true;
  if (s->row_cells > 0) json_end_object(&s->json);
  s->row_cells = 0;
}

void sheet_nest(sheet *s, const char *key) {
  sheet_only(s, SHEET_ALL);
  s->row_cells = 0;
  if (s->output != OUTPUT_JSON) return;
  json_key_array(&s->json, key);
}

void sheet_unnest(sheet *s) {
  if (s->output != OUTPUT_JSON) return;
  json_end_array(&s->json);
  json_end_object(&s->json);
}
