// The results of the conformance checks as lines of text, JSON, or JUnit XML.
#include "conform_report.h"

#include <stdio.h>
#include <string.h>

#include "kit/format.h"
#include "kit/json.h"
#include "kit/sheet.h"
#include "kit/table.h"
#include "kit/text.h"

static const char *result_name(const conform_outcome *outcome) {
  static const char *const names[] = {"skip", "pass", "fail"};
  return names[outcome->result];
}

static const char *level_name(const conform_outcome *outcome) {
  static const char *const names[] = {"none", "note", "quirk", "fault"};
  return names[outcome->level];
}

// A quirk or a fault comes with the lines of C that show it.
static bool is_shown(const conform_outcome *outcome) {
  return outcome->level >= CONFORM_QUIRK;
}

// ---------------------------------------------------------------------------
// For people
// ---------------------------------------------------------------------------

static int longest_name(const conform_findings *found) {
  size_t longest = 0;
  for (size_t i = 0; conform_name(i) != NULL; i++) {
    size_t length = strlen(conform_name(i));
    if (found->ran[i] && length > longest) longest = length;
  }
  return (int)longest;
}

// The lines of |code|, each behind a margin.
static void write_code(const char *code) {
  bool begins = true;
  fputc('\n', tool_out());
  for (; *code != '\0'; code++) {
    if (begins) fputs("        ", tool_out());
    fputc(*code, tool_out());
    begins = *code == '\n';
  }
  fputc('\n', tool_out());
}

// Says so where it is the first of its subject: "memory." begins a new one.
static bool is_new_subject(const conform_findings *found, size_t index) {
  for (size_t i = index; i-- > 0;) {
    if (!found->ran[i]) continue;
    size_t length = strcspn(conform_name(i), ".");
    return strncmp(conform_name(i), conform_name(index), length + 1) != 0;
  }
  return false;
}

// What showed the finding of the check before ended with a blank line.
static bool shown_before(const conform_findings *found, size_t index) {
  for (size_t i = index; i-- > 0;) {
    if (found->ran[i]) return is_shown(&found->outcomes[i]);
  }
  return false;
}

// "FAIL" stands out. A strict run counts a quirk as a failure.
static const char *mark_of(const conform_outcome *outcome) {
  if (outcome->result == CONFORM_FAIL) return "FAIL";
  return outcome->level == CONFORM_NONE ? result_name(outcome)
                                        : level_name(outcome);
}

static void write_line(const conform_findings *found, size_t index, int width) {
  enum { MARK = 5 };
  const conform_outcome *outcome = &found->outcomes[index];
  const char *mark = mark_of(outcome);
  if (is_new_subject(found, index) && !shown_before(found, index)) {
    fputc('\n', tool_out());
  }
  if (outcome->detail[0] == '\0') {
    fprintf(tool_out(), "%-*s %s\n", MARK, mark, conform_name(index));
  } else {
    fprintf(tool_out(), "%-*s %-*s  ", MARK, mark, width, conform_name(index));
    text_write(outcome->detail, tool_out());
    fputc('\n', tool_out());
  }
  if (is_shown(outcome)) write_code(conform_code(index));
}

static void write_heading(const conform_report *r) {
  text_write(r->device, tool_out());
  if (r->plugin[0] != '\0') {  // it could not even be found out
    fputs(" (", tool_out());
    text_write(r->plugin, tool_out());
    fputc(')', tool_out());
  }
  fputs("\n\n", tool_out());
}

static void write_checks(const conform_report *r) {
  int width = longest_name(r->found);
  for (size_t i = 0; conform_name(i) != NULL; i++) {
    if (r->found->ran[i]) write_line(r->found, i, width);
  }
}

static void write_summary(const conform_report *r) {
  size_t quirks = conform_tally_level(r->found, CONFORM_QUIRK);
  size_t notes = conform_tally_level(r->found, CONFORM_NOTE);
  fprintf(tool_out(),
          "\n%zu passed, %zu failed, %zu skipped in %.1f s; %zu quirk%s, %zu "
          "note%s\n",
          conform_tally(r->found, CONFORM_PASS),
          conform_tally(r->found, CONFORM_FAIL),
          conform_tally(r->found, CONFORM_SKIP), r->seconds, quirks,
          quirks == 1 ? "" : "s", notes, notes == 1 ? "" : "s");
}

// ---------------------------------------------------------------------------
// Figures for people
// ---------------------------------------------------------------------------

static const struct {
  const char *kind;
  const char *title;
} kinds[CONFORM_KINDS] = {{"h2d", "host to device"},
                          {"d2h", "device to host"},
                          {"d2d", "within the device"},
                          {"p2p", "to another device"}};

static const conform_copy *find_copy(const conform_findings *found,
                                     const char *kind, size_t bytes) {
  for (size_t i = 0; i < found->copy_count; i++) {
    const conform_copy *row = &found->copies[i];
    if (strcmp(row->kind, kind) == 0 && row->bytes == bytes) return row;
  }
  return NULL;
}

// A column for each size that the first kind was measured with.
static void write_copies(const conform_findings *found) {
  char titles[CONFORM_SIZES_MAX][FORMAT_SIZE];
  size_t bytes[CONFORM_SIZES_MAX] = {0};
  table_column columns[CONFORM_SIZES_MAX + 1] = {{"copies, GB/s", "", false}};
  size_t sizes = 0;
  for (size_t i = 0; i < found->copy_count && sizes < CONFORM_SIZES_MAX; i++) {
    if (strcmp(found->copies[i].kind, found->copies[0].kind) != 0) continue;
    bytes[sizes] = found->copies[i].bytes;
    format_bytes(titles[sizes], bytes[sizes]);
    columns[sizes + 1] = (table_column){titles[sizes], "", true};
    sizes++;
  }
  table *t = table_create(columns, sizes + 1);
  for (size_t k = 0; k < CONFORM_KINDS; k++) {
    if (find_copy(found, kinds[k].kind, bytes[0]) == NULL) continue;
    table_text(t, kinds[k].title);
    for (size_t i = 0; i < sizes; i++) {
      const conform_copy *row = find_copy(found, kinds[k].kind, bytes[i]);
      if (row != NULL) {
        table_fixed(t, row->gbs, 2);
      } else {
        table_blank(t);
      }
    }
  }
  fputc('\n', tool_out());
  table_write(t, TABLE_PLAIN, tool_out());
  table_destroy(t);
}

// ---------------------------------------------------------------------------
// Table and JSON
// ---------------------------------------------------------------------------

static void add_checks(sheet *s, const conform_findings *found) {
  sheet_list(s, "checks");
  for (size_t i = 0; conform_name(i) != NULL; i++) {
    const conform_outcome *outcome = &found->outcomes[i];
    if (!found->ran[i]) continue;
    sheet_text(s, NULL, "name", conform_name(i));
    sheet_text(s, NULL, "result", result_name(outcome));
    sheet_text(s, NULL, "detail", outcome->detail);
    sheet_text(s, NULL, "level", level_name(outcome));
    if (is_shown(outcome)) sheet_text(s, NULL, "code", conform_code(i));
    sheet_row_end(s);
  }
}

static void add_figures(sheet *s, const conform_findings *found) {
  sheet_list(s, "copies");
  for (size_t i = 0; i < found->copy_count; i++) {
    sheet_text(s, NULL, "kind", found->copies[i].kind);
    sheet_uint(s, NULL, "bytes", found->copies[i].bytes, SHEET_BYTES);
    sheet_number(s, NULL, "gbs", found->copies[i].gbs, 2);
    sheet_row_end(s);
  }
  sheet_list(s, "allocations");
  for (size_t i = 0; i < found->allocation_count; i++) {
    const conform_allocation *row = &found->allocations[i];
    sheet_uint(s, "blocks of", "bytes", row->bytes, SHEET_BYTES);
    sheet_number(s, "allocate, us", "allocate_us", row->allocate_us, 2);
    sheet_number(s, "free, us", "free_us", row->free_us, 2);
    sheet_row_end(s);
  }
}

static void write_table(const conform_report *r) {
  write_heading(r);
  write_checks(r);
  if (r->found->copy_count > 0) write_copies(r->found);
  if (r->found->allocation_count > 0) fputc('\n', tool_out());
  sheet *s = sheet_begin(OUTPUT_TABLE, NULL);
  add_figures(s, r->found);
  sheet_end(s);
  write_summary(r);
}

static void write_json(const conform_report *r) {
  sheet *s = sheet_begin(OUTPUT_JSON, NULL);
  json *out = sheet_json(s);
  json_key_text(out, "device", r->device);
  json_key_text(out, "plugin", r->plugin);
  add_checks(s, r->found);
  out = sheet_json(s);
  json_key_uint(out, "passed", conform_tally(r->found, CONFORM_PASS));
  json_key_uint(out, "failed", conform_tally(r->found, CONFORM_FAIL));
  json_key_uint(out, "skipped", conform_tally(r->found, CONFORM_SKIP));
  json_key_uint(out, "quirks", conform_tally_level(r->found, CONFORM_QUIRK));
  json_key_uint(out, "notes", conform_tally_level(r->found, CONFORM_NOTE));
  add_figures(s, r->found);
  sheet_end(s);
}

// ---------------------------------------------------------------------------
// JUnit
// ---------------------------------------------------------------------------

// As the value of an attribute or between tags. XML has no way to say control
// characters, nor what is no UTF-8: those have become '?'.
static void write_xml(const char *text) {
  static const char marks[] = "<>&\"";
  static const char *const names[] = {"&lt;", "&gt;", "&amp;", "&quot;"};
  char safe[CONFORM_DETAIL_SIZE * 8];
  snprintf(safe, sizeof safe, "%s", text);
  text_neutralise(safe, "\n");
  for (const char *c = safe; *c != '\0'; c++) {
    const char *special = strchr(marks, *c);
    if (special != NULL) {
      fputs(names[special - marks], tool_out());
    } else {
      fputc(*c, tool_out());
    }
  }
}

static void write_attribute(const char *name, const char *value) {
  fprintf(tool_out(), " %s=\"", name);
  write_xml(value);
  fputc('"', tool_out());
}

static void write_failure(const conform_outcome *outcome, const char *code) {
  fputs("    <failure", tool_out());
  write_attribute("message", outcome->detail);
  write_attribute("type", level_name(outcome));
  fputc('>', tool_out());
  write_xml(code);
  fputs("</failure>\n", tool_out());
}

// JUnit knows of failures and what was skipped; what else was found is output.
static void write_output(const conform_outcome *outcome) {
  fprintf(tool_out(), "    <system-out>%s: ", level_name(outcome));
  write_xml(outcome->detail);
  fputs("</system-out>\n", tool_out());
}

// "memory.set_values" is the test set_values of the class memory.
static void write_case(const conform_findings *found, size_t index) {
  const conform_outcome *outcome = &found->outcomes[index];
  const char *name = conform_name(index);
  fprintf(tool_out(), "  <testcase classname=\"%.*s\"", (int)strcspn(name, "."),
          name);
  write_attribute("name", strchr(name, '.') + 1);
  if (outcome->result == CONFORM_PASS && outcome->level == CONFORM_NONE) {
    fputs("/>\n", tool_out());
    return;
  }
  fputs(">\n", tool_out());
  if (outcome->result == CONFORM_FAIL) {
    write_failure(outcome, conform_code(index));
  } else if (outcome->result == CONFORM_PASS) {
    write_output(outcome);
  } else {
    fputs("    <skipped", tool_out());
    write_attribute("message", outcome->detail);
    fputs("/>\n", tool_out());
  }
  fputs("  </testcase>\n", tool_out());
}

static void write_junit(const conform_report *r) {
  size_t failed = conform_tally(r->found, CONFORM_FAIL);
  size_t skipped = conform_tally(r->found, CONFORM_SKIP);
  size_t all = conform_tally(r->found, CONFORM_PASS) + failed + skipped;
  fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", tool_out());
  fputs("<testsuite", tool_out());
  write_attribute("name", r->device);
  fprintf(tool_out(),
          " tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\" "
          "time=\"%.3f\">\n",
          all, failed, skipped, r->seconds);
  for (size_t i = 0; conform_name(i) != NULL; i++) {
    if (r->found->ran[i]) write_case(r->found, i);
  }
  fputs("</testsuite>\n", tool_out());
}

void conform_report_write(const conform_report *report, conform_output output) {
  static void (*const writers[])(const conform_report *r) = {
      [CONFORM_TABLE] = write_table,
      [CONFORM_JSON] = write_json,
      [CONFORM_JUNIT] = write_junit,
  };
  writers[output](report);
}
