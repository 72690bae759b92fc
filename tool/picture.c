// Pages of replays: the table of pools above the drawings of view.h, and where
// the pages go.
#include "picture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kit/format.h"
#include "page.h"
#include "view.h"

static void write_cell(const char *text, FILE *out) {
  fputs("<td>", out);
  page_text(text, out);
  fputs("</td>", out);
}

// ---------------------------------------------------------------------------
// Above the drawings
// ---------------------------------------------------------------------------

static void write_sentences(const report *r, FILE *out) {
  char text[REPORT_TEXT_SIZE];
  for (size_t i = 0; i < r->result_count; i++) {
    if (!report_compare(r, &r->results[i], text, sizeof text)) continue;
    fputs("<p>", out);
    page_text(text, out);
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
  page_text(result->pool, out);
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

static const char table_head[] =
    "<table class=\"figures replayed\">\n<caption>What each pool held of the "
    "device at its peak, and what its requests cost</caption>\n<thead><tr>"
    "<th scope=\"col\">pool</th><th scope=\"col\" class=\"bar\">"
    "<span class=\"key live\">alive at the peak</span>"
    "<span class=\"key waste\">held beyond it</span></th>";

static void write_table(const report *r, FILE *out) {
  static const char *const titles[] = {"held",   "beyond",   "over live",
                                       "1st ms", "later ms", "median ns",
                                       "p99 ns", "hits",     "failed"};
  fputs(table_head, out);
  for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
    fprintf(out, "<th scope=\"col\">%s</th>", titles[i]);
  fputs("</tr></thead>\n<tbody>\n", out);
  for (size_t i = 0; i < r->result_count; i++) {
    write_bar(r, &r->results[i], out);
    write_figures(&r->results[i], out);
  }
  fputs("</tbody>\n</table>\n", out);
}

static void write_above(const void *context, FILE *out) {
  const report *r = context;
  char text[REPORT_TEXT_SIZE];
  report_describe(r->trace, text, sizeof text);
  fputs("<p class=\"description\">", out);
  page_text(text, out);
  fputs(", replayed on ", out);
  page_text(r->device, out);
  fputs(".</p>\n<div class=\"wide\">\n", out);
  write_table(r, out);
  fputs("</div>\n", out);
  write_sentences(r, out);
}

static bool write_page(const tool_verb *verb, const report *r,
                       const char *path) {
  view_pool *pools = tool_array(r->result_count, sizeof *pools);
  for (size_t i = 0; i < r->result_count; i++) {
    const replay_result *result = &r->results[i];
    pools[i] = (view_pool){.name = result->pool,
                           .addresses = result->history.addresses,
                           .reserved = result->history.reserved};
  }
  roles found = roles_find(r->trace);
  view_page shown = {.data = {.trace = r->trace,
                              .roles = &found,
                              .whole_events = r->trace->event_count,
                              .libraries = &(options_list){0},
                              .pools = pools,
                              .pool_count = r->result_count},
                     .verb = "replay",
                     // A page is passed on: it names no folders.
                     .title = tool_base_name(r->trace->name),
                     .about = "where each pool put it",
                     .figures = write_above,
                     .context = r};
  tool_exit status = view_page_write(verb, &shown, path);
  roles_deinit(&found);
  free(pools);
  return status == TOOL_DONE;
}

// ---------------------------------------------------------------------------
// Their names
// ---------------------------------------------------------------------------

static bool is_harmless(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

char *picture_file_name(const char *trace, char *out) {
  const char *name = tool_base_name(trace);
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

static bool is_taken(const options_list *paths, const char *path) {
  for (size_t i = 0; i < paths->count; i++) {
    if (strcmp(paths->items[i], path) == 0) return true;
  }
  return false;
}

// FOLDER/bert-layer.html; the second of that name is 2-bert-layer.html, unless
// another trace is called that already.
static void add_path(const char *trace, const char *folder,
                     options_list *paths) {
  char name[PICTURE_NAME_SIZE];
  size_t size = strlen(folder) + PICTURE_NAME_SIZE + 24;
  char *path = tool_array(size, 1);
  picture_file_name(trace, name);
  snprintf(path, size, "%s/%s", folder, name);
  for (size_t number = 2; is_taken(paths, path); number++) {
    snprintf(path, size, "%s/%zu-%s", folder, number, name);
  }
  options_list_add(paths, path, strlen(path));
  free(path);
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

bool picture_paths_make(const outfile_rules *rules, const char *path,
                        options_list *out_paths) {
  const options_list *traces = rules->inputs;
  if (traces->count == 1) {
    options_list_add(out_paths, path, strlen(path));
    return outfile_try(rules, OUTFILE_PAGE, path);
  }
  if (!make_folder(rules->verb, path)) return false;
  for (size_t i = 0; i < traces->count; i++) {
    add_path(traces->items[i], path, out_paths);
    if (!outfile_try(rules, OUTFILE_PAGE, out_paths->items[i])) return false;
  }
  return true;
}

bool picture_write_all(const tool_verb *verb, const report *reports,
                       const options_list *paths) {
  bool written = true;
  for (size_t i = 0; i < paths->count; i++) {
    if (!write_page(verb, &reports[i], paths->items[i])) written = false;
  }
  return written;
}
