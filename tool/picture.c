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
#include <unistd.h>

#include "embedded.h"
#include "format.h"
#include "picture_data.h"
#include "text.h"

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
  char *harmless = tool_text(text);
  text_neutralise(harmless, "");
  for (const char *at = harmless; *at; at++) {
    const char *entity = entity_of(*at);
    if (entity != NULL) {
      fputs(entity, out);
    } else {
      fputc(*at, out);
    }
  }
  free(harmless);
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

// A page comes into being beside its place and is moved there when it is whole:
// what stood there stays until then. What is no plain file, such as
// /dev/stdout, is written to as it is.
static bool is_special(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 && !S_ISREG(found.st_mode);
}

// Where |path| leads, if it is a link: the link is to stay. Free it.
static char *resolve(const char *path) {
  char *target = realpath(path, NULL);
  return target ? target : tool_text(path);
}

// The rights of the file that is there, or those of a new one.
static mode_t mode_for(const char *path) {
  struct stat found;
  if (stat(path, &found) == 0) return found.st_mode & 0777;
  mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

// A new file beside |path|, whose name replaces |*out_name|; -1 and errno if
// there can be none.
static int open_beside(const char *path, char **out_name) {
  size_t size = strlen(path) + sizeof ".XXXXXX";
  *out_name = tool_array(size, 1);
  if (access(path, F_OK) == 0 && access(path, W_OK) != 0) return -1;
  snprintf(*out_name, size, "%s.XXXXXX", path);
  int fd = mkstemp(*out_name);
  if (fd >= 0) (void)fchmod(fd, mode_for(path));
  return fd;
}

static bool say_why(const tool_verb *verb, const char *path, int number) {
  tool_say(verb, "%s: %s", path, strerror(number));
  return false;
}

static bool finish(FILE *out, const report *r) {
  write_page(r, out);
  bool written = ferror(out) == 0;
  return fclose(out) == 0 && written;
}

static bool write_special(const report *r, const char *path) {
  FILE *out = fopen(path, "w");
  return out != NULL && finish(out, r);
}

static bool write_beside(const report *r, const char *path) {
  char *name;
  int fd = open_beside(path, &name);
  FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
  bool written = out != NULL && finish(out, r) && rename(name, path) == 0;
  int number = errno;
  if (fd >= 0 && !written) unlink(name);
  free(name);
  errno = number;
  return written;
}

static bool write_file(const tool_verb *verb, const report *r,
                       const char *path) {
  char *target = resolve(path);
  errno = 0;
  bool written =
      is_special(target) ? write_special(r, target) : write_beside(r, target);
  int number = errno ? errno : EIO;
  free(target);
  return written || say_why(verb, path, number);
}

// Whether a file can be made beside |path|.
static bool try_beside(const char *path) {
  char *name;
  int fd = open_beside(path, &name);
  int number = errno;
  if (fd >= 0) {
    close(fd);
    unlink(name);
  }
  free(name);
  errno = number;
  return fd >= 0;
}

// Not opened for a try: who waits at the other end of a pipe would take it for
// the end.
static bool try_special(const char *path) {
  struct stat found;
  bool is_folder = stat(path, &found) == 0 && S_ISDIR(found.st_mode);
  if (!is_folder) return access(path, W_OK) == 0;
  errno = EISDIR;
  return false;
}

static bool try_file(const tool_verb *verb, const char *path) {
  char *target = resolve(path);
  bool can = is_special(target) ? try_special(target) : try_beside(target);
  int number = errno;
  free(target);
  return can || say_why(verb, path, number);
}

// ---------------------------------------------------------------------------
// Their names
// ---------------------------------------------------------------------------

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

bool picture_paths_make(const tool_verb *verb, const options_list *traces,
                        const char *path, options_list *out_paths) {
  if (traces->count == 1) {
    options_list_add(out_paths, path, strlen(path));
    return try_file(verb, path);
  }
  if (!make_folder(verb, path)) return false;
  for (size_t i = 0; i < traces->count; i++) {
    add_path(traces->items[i], path, out_paths);
    if (!try_file(verb, out_paths->items[i])) return false;
  }
  return true;
}

bool picture_write_all(const tool_verb *verb, const report *reports,
                       const options_list *paths) {
  bool written = true;
  for (size_t i = 0; i < paths->count; i++) {
    if (!write_file(verb, &reports[i], paths->items[i])) written = false;
  }
  return written;
}
