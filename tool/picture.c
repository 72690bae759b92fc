// The page: picture.html with its marks {{name}} filled in.
//
// What comes from a trace may be hostile. It reaches the page in three ways
// only: as HTML text, with every special character escaped; as JSON without
// '<', '>' and '&'; and the script shows it by textContent alone.
#include "picture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "embedded.h"
#include "format.h"
#include "picture_data.h"

// ---------------------------------------------------------------------------
// HTML text
// ---------------------------------------------------------------------------

static const char *entity_of(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return NULL;
  }
}

static void write_text(const char *text, FILE *out) {
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    const char *entity = entity_of(*text);
    if (entity != NULL) {
      fputs(entity, out);
    } else {
      fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
    }
  }
}

static void write_cell(const char *text, FILE *out) {
  fputs("<td>", out);
  write_text(text, out);
  fputs("</td>", out);
}

// ---------------------------------------------------------------------------
// Marks
// ---------------------------------------------------------------------------

// Without its folders: a page is passed on, and where the file lay on one
// machine is nobody else's business.
static void write_title(const report *r, FILE *out) {
  const char *slash = strrchr(r->trace->name, '/');
  write_text(slash ? slash + 1 : r->trace->name, out);
}

static void write_description(const report *r, FILE *out) {
  char text[REPORT_TEXT_SIZE];
  report_describe(r->trace, text, sizeof text);
  write_text(text, out);
  fputs(", replayed on ", out);
  write_text(r->device, out);
}

static void write_sentences(const report *r, FILE *out) {
  char text[REPORT_TEXT_SIZE];
  for (size_t i = 0; i < r->result_count; i++) {
    if (!report_compare(r, &r->results[i], text, sizeof text)) continue;
    fputs("<p>", out);
    write_text(text, out);
    fputs("</p>\n", out);
  }
}

static uint64_t most_reserved(const report *r) {
  uint64_t most = r->trace->live_peak_bytes > 0 ? r->trace->live_peak_bytes : 1;
  for (size_t i = 0; i < r->result_count; i++) {
    if (r->results[i].reserved_peak_bytes > most) {
      most = r->results[i].reserved_peak_bytes;
    }
  }
  return most;
}

static double percent_of(uint64_t part, uint64_t whole) {
  return 100.0 * (double)part / (double)whole;
}

// A bar: the live peak, and what the pool held beyond it.
static void write_bar(const report *r, const replay_result *result, FILE *out) {
  uint64_t most = most_reserved(r);
  uint64_t live = r->trace->live_peak_bytes;
  uint64_t held = result->reserved_peak_bytes;
  uint64_t waste = held > live ? held - live : 0;
  char text[FORMAT_SIZE];
  fputs("<tr><th scope=\"row\">", out);
  write_text(result->pool, out);
  fprintf(out,
          "</th><td class=\"bar\"><i class=\"live\" style=\"width:%.3f%%\"></i>"
          "<i class=\"waste\" style=\"width:%.3f%%\"></i></td>",
          percent_of(live, most), percent_of(waste, most));
  write_cell(format_bytes(text, held), out);
  write_cell(format_bytes(text, waste), out);
  write_cell(format_fixed(text, replay_over_live(r->trace, result), 2), out);
}

static void write_hits(const replay_iteration *iteration, FILE *out) {
  char text[FORMAT_SIZE] = "-";
  uint64_t all = iteration->hits + iteration->misses;
  if (all > 0) {
    snprintf(text, sizeof text, "%.1f%%", percent_of(iteration->hits, all));
  }
  write_cell(text, out);
}

static void write_figures(const replay_result *result, FILE *out) {
  const replay_iteration *first = &result->iterations[0];
  const replay_iteration *steady = replay_steady(result);
  char text[FORMAT_SIZE];
  write_cell(format_fixed(text, first->alloc_ms, 3), out);
  write_cell(result->iteration_count > 1
                 ? format_fixed(text, steady->alloc_ms, 3)
                 : "-",
             out);
  write_cell(format_fixed(text, steady->alloc_ns_median, 0), out);
  write_cell(format_fixed(text, steady->alloc_ns_p99, 0), out);
  write_hits(steady, out);
  write_cell(format_count(text, result->failed), out);
  fputs("</tr>\n", out);
}

static void write_rows(const report *r, FILE *out) {
  for (size_t i = 0; i < r->result_count; i++) {
    write_bar(r, &r->results[i], out);
    write_figures(&r->results[i], out);
  }
}

static void write_css(const report *r, FILE *out) {
  (void)r;
  fputs(embedded_picture_css, out);
}

static void write_model(const report *r, FILE *out) {
  (void)r;
  fputs(embedded_picture_model_js, out);
}

static void write_draw(const report *r, FILE *out) {
  (void)r;
  fputs(embedded_picture_draw_js, out);
}

static void write_act(const report *r, FILE *out) {
  (void)r;
  fputs(embedded_picture_act_js, out);
}

typedef struct mark {
  const char *name;
  void (*write)(const report *r, FILE *out);
} mark;

static const mark marks[] = {
    {"{{title}}", write_title},
    {"{{description}}", write_description},
    {"{{sentences}}", write_sentences},
    {"{{rows}}", write_rows},
    {"{{css}}", write_css},
    {"{{data}}", picture_data_write},
    {"{{model}}", write_model},
    {"{{draw}}", write_draw},
    {"{{act}}", write_act},
};

static const mark *mark_at(const char *text) {
  for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
    if (strncmp(text, marks[i].name, strlen(marks[i].name)) == 0) {
      return &marks[i];
    }
  }
  return NULL;
}

static void write_page(const report *r, FILE *out) {
  const char *text = embedded_picture_html;
  while (*text) {
    const mark *found = mark_at(text);
    if (found == NULL) {
      fputc(*text++, out);
      continue;
    }
    found->write(r, out);
    text += strlen(found->name);
  }
}

// ---------------------------------------------------------------------------
// Files
// ---------------------------------------------------------------------------

static bool write_file(const tool_verb *verb, const report *r,
                       const char *path) {
  FILE *out = fopen(path, "w");
  if (out == NULL) {
    tool_say(verb, "%s: %s", path, strerror(errno));
    return false;
  }
  write_page(r, out);
  bool failed = ferror(out) != 0;
  if (fclose(out) != 0) failed = true;
  if (failed) tool_say(verb, "%s: could not be written", path);
  return !failed;
}

static bool is_harmless(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

char *picture_file_name(const char *trace, char *out) {
  const char *slash = strrchr(trace, '/');
  const char *name = slash ? slash + 1 : trace;
  size_t length = 0;
  if (*name == '@') name++;
  while (*name == '.')
    name++;
  for (; *name && length < PICTURE_NAME_SIZE - 8; name++) {
    char c = *name;
    if (!is_harmless(c)) c = '-';
    out[length++] = c;
  }
  out[length] = '\0';
  char *dot = strrchr(out, '.');
  if (dot != NULL) *dot = '\0';
  length = strlen(out);
  snprintf(out + length, PICTURE_NAME_SIZE - length, "%s",
           length > 0 ? ".html" : "trace.html");
  return out;
}

// How many traces before |index| have the same file name.
static size_t count_same(const report *reports, size_t index) {
  char name[PICTURE_NAME_SIZE], other[PICTURE_NAME_SIZE];
  size_t same = 0;
  picture_file_name(reports[index].trace->name, name);
  for (size_t i = 0; i < index; i++) {
    picture_file_name(reports[i].trace->name, other);
    if (strcmp(name, other) == 0) same++;
  }
  return same;
}

// FOLDER/bert-layer.html; the second of that name is 2-bert-layer.html.
static bool write_into(const tool_verb *verb, const report *reports,
                       size_t index, const char *folder) {
  char name[PICTURE_NAME_SIZE], number[24] = "";
  size_t same = count_same(reports, index);
  if (same > 0) snprintf(number, sizeof number, "%zu-", same + 1);
  picture_file_name(reports[index].trace->name, name);
  size_t size = strlen(folder) + strlen(number) + strlen(name) + 2;
  char *path = tool_array(size, 1);
  snprintf(path, size, "%s/%s%s", folder, number, name);
  bool written = write_file(verb, &reports[index], path);
  free(path);
  return written;
}

static bool make_folder(const tool_verb *verb, const char *path) {
  struct stat found;
  if (mkdir(path, 0777) == 0) return true;
  if (errno == EEXIST && stat(path, &found) == 0 && S_ISDIR(found.st_mode)) {
    return true;
  }
  tool_say(verb, "%s: several traces need a folder: %s", path, strerror(errno));
  return false;
}

bool picture_write_all(const tool_verb *verb, const report *reports,
                       size_t count, const char *path) {
  if (count == 1) return write_file(verb, &reports[0], path);
  if (!make_folder(verb, path)) return false;
  for (size_t i = 0; i < count; i++) {
    if (!write_into(verb, reports, i, path)) return false;
  }
  return true;
}
