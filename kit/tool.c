// Messages, results, the nearest name, memory, the progress bar.
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

enum { MESSAGE_SIZE = 1024, WORD_MAX = 63, BAR_WIDTH = 24 };

// ---------------------------------------------------------------------------
// Messages
// ---------------------------------------------------------------------------

__attribute__((format(printf, 2, 0))) static void say(const tool_verb *verb,
                                                      const char *format,
                                                      va_list args) {
  char text[MESSAGE_SIZE];
  vsnprintf(text, sizeof text, format, args);
  text_neutralise(text, "");
  if (verb == NULL) {
    fprintf(stderr, "tarn: %s\n", text);
  } else {
    fprintf(stderr, "tarn %s: %s\n", verb->name, text);
  }
}

void tool_say(const tool_verb *verb, const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(verb, format, args);
  va_end(args);
}

tool_exit tool_fail(const tool_verb *verb, const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(verb, format, args);
  va_end(args);
  return TOOL_NO;
}

tool_exit tool_misuse(const tool_verb *verb, const char *format, ...) {
  va_list args;
  va_start(args, format);
  say(verb, format, args);
  va_end(args);
  fprintf(stderr, "Try 'tarn%s%s --help'.\n", verb ? " " : "",
          verb ? verb->name : "");
  return TOOL_MISUSE;
}

// ---------------------------------------------------------------------------
// Results
// ---------------------------------------------------------------------------

// Set once, by tool_out_guard: foreign code uses stdio's own stdout.
static FILE *guarded;

FILE *tool_out(void) {
  return guarded != NULL ? guarded : stdout;
}

bool tool_has_colours(void) {
  const char *refused = getenv("NO_COLOR"), *terminal = getenv("TERM");
  if (refused != NULL && *refused != '\0') return false;
  if (terminal == NULL || strcmp(terminal, "dumb") == 0) return false;
  return isatty(fileno(tool_out())) == 1;
}

void tool_out_guard(void) {
  enum { ABOVE_STANDARD = 3 };
  if (guarded != NULL) return;
  fflush(stdout);
  int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, ABOVE_STANDARD);
  guarded = fd < 0 ? NULL : fdopen(fd, "w");
  if (fd >= 0 && guarded == NULL) {  // it cannot be written to, nor can this
    close(fd);
    guarded = fopen("/dev/null", "re");
  }
  if (guarded == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    fprintf(stderr, "tarn: stdout: %s\n", strerror(errno));
    exit(TOOL_NO);
  }
  // Foreign code may crash: each line is to come out when it is whole.
  setvbuf(stdout, NULL, _IOLBF, 0);
}

const char *tool_out_path(const char *path) {
  static const char *const names[] = {"/dev/stdout", "/dev/fd/1",
                                      "/proc/self/fd/1"};
  static char place[32];
  for (size_t i = 0; guarded != NULL && i < sizeof names / sizeof *names; i++) {
    if (strcmp(path, names[i]) != 0) continue;
    snprintf(place, sizeof place, "/dev/fd/%d", fileno(guarded));
    return place;
  }
  return path;
}

// ---------------------------------------------------------------------------
// Names
// ---------------------------------------------------------------------------

static size_t least(size_t a, size_t b, size_t c) {
  size_t ab = a < b ? a : b;
  return ab < c ? ab : c;
}

// Levenshtein's distance, one row of the matrix at a time.
static size_t distance(const char *a, const char *b) {
  size_t row[WORD_MAX + 1];
  size_t columns = strlen(b);
  for (size_t j = 0; j <= columns; j++)
    row[j] = j;
  for (size_t i = 0; a[i]; i++) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < columns; j++) {
      size_t above = row[j + 1];
      size_t change = diagonal + (a[i] != b[j]);
      row[j + 1] = least(above + 1, row[j] + 1, change);
      diagonal = above;
    }
  }
  return row[columns];
}

// A slip is at most a third of the word, or a beginning of the name.
static size_t slip(const char *word, const char *name) {
  size_t length = strlen(word);
  if (length > WORD_MAX || strlen(name) > WORD_MAX) return SIZE_MAX;
  if (length >= 2 && strncmp(word, name, length) == 0) return 0;
  size_t found = distance(word, name);
  return found <= (length + 2) / 3 ? found : SIZE_MAX;
}

const char *tool_nearest(const char *word, tool_name_fn *name_of) {
  const char *best = NULL;
  size_t best_slip = SIZE_MAX;
  for (size_t i = 0; name_of(i) != NULL; i++) {
    size_t found = slip(word, name_of(i));
    if (found >= best_slip) continue;
    best = name_of(i);
    best_slip = found;
  }
  return best;
}

void tool_append(char *out, size_t out_size, const char *gap,
                 const char *text) {
  size_t used = strlen(out);
  snprintf(out + used, out_size - used, "%s%s", used > 0 ? gap : "", text);
}

char *tool_join(tool_name_fn *name_of, char *out, size_t out_size) {
  out[0] = '\0';
  for (size_t i = 0; name_of(i) != NULL; i++)
    tool_append(out, out_size, ", ", name_of(i));
  return out;
}

// ---------------------------------------------------------------------------
// Memory
// ---------------------------------------------------------------------------

void tool_no_memory(size_t count, size_t size) {
  fprintf(stderr, "tarn: no memory for %zu x %zu bytes\n", count, size);
  exit(TOOL_NO);
}

void *tool_array(size_t count, size_t size) {
  void *array = calloc(count ? count : 1, size);
  if (array == NULL) tool_no_memory(count, size);
  return array;
}

void *tool_array_ready(size_t count, size_t size) {
  enum { STEP = 64 };
  void *array = tool_array(count, size);
  volatile char *bytes = array;
  for (size_t i = 0; i < count * size; i += STEP)
    bytes[i] = 0;
  return array;
}

char *tool_text(const char *text) {
  size_t size = strlen(text) + 1;
  return memcpy(tool_array(size, 1), text, size);
}

const char *tool_base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

// ---------------------------------------------------------------------------
// Numbers
// ---------------------------------------------------------------------------

int tool_compare_uint64(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

// ---------------------------------------------------------------------------
// Progress
// ---------------------------------------------------------------------------

static void draw(const tool_progress *progress, const char *what) {
  size_t full = progress->done * BAR_WIDTH / progress->total;
  fputs("\r\033[K[", stderr);
  for (size_t i = 0; i < BAR_WIDTH; i++)
    fputc(i < full ? '#' : '.', stderr);
  fprintf(stderr, "] %s", what);
  fflush(stderr);
}

void tool_progress_begin(tool_progress *progress, size_t total) {
  progress->total = total ? total : 1;
  progress->done = 0;
  progress->shown = isatty(STDERR_FILENO) == 1;
}

void tool_progress_step(tool_progress *progress, const char *what) {
  char line[MESSAGE_SIZE];
  if (!progress->shown) return;
  snprintf(line, sizeof line, "%.64s", what);
  text_neutralise(line, "");
  draw(progress, line);
  if (progress->done < progress->total) progress->done++;
}

void tool_progress_end(tool_progress *progress) {
  if (progress->shown) fputs("\r\033[K", stderr);
  progress->shown = false;
}
