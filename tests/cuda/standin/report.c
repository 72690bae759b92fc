// The report: how often the stand-in was used wrongly, and the first texts. The
// text begins with the function that was called.
//
// A line goes to the file of the setting REPORT at once: a program that dies of
// its mistake leaves it behind.
#include "report.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "settings.h"

enum { LINE_SIZE = 512, TEXTS_SIZE = 16384 };

// Guards |count|, |texts| and |length|.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t count;
static char texts[TEXTS_SIZE];
static size_t length;

static _Thread_local const char *current = "a test";

void standin_set_call(const char *name) {
  current = name;
}

const char *standin_call(void) {
  return current;
}

static void put_line(const char *line) {
  char path[STANDIN_TEXT_SIZE];
  standin_text(STANDIN_REPORT, path);
  FILE *file = path[0] != 0 ? fopen(path, "ae") : NULL;
  if (file != NULL) {
    fprintf(file, "%s\n", line);
    fclose(file);
  }
  if (standin_number(STANDIN_LOUD) != 0) {
    fprintf(stderr, "stand-in for CUDA: %s\n", line);
  }
}

static void keep(const char *line) {
  pthread_mutex_lock(&lock);
  count++;
  size_t size = strlen(line);
  if (length + size + 2 <= TEXTS_SIZE) {
    memcpy(texts + length, line, size);
    texts[length + size] = '\n';
    length += size + 1;
    texts[length] = 0;
  }
  pthread_mutex_unlock(&lock);
}

unsigned standin_wrong(unsigned code, const char *format, ...) {
  char text[LINE_SIZE / 2], line[LINE_SIZE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  snprintf(line, sizeof line, "%s: %s (%u)", current, text, code);
  keep(line);
  put_line(line);
  return code;
}

void standin_note(const char *format, ...) {
  char line[LINE_SIZE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  put_line(line);
}

uint64_t standin_wrong_count(void) {
  pthread_mutex_lock(&lock);
  uint64_t result = count;
  pthread_mutex_unlock(&lock);
  return result;
}

size_t standin_wrong_texts(char *out, size_t size) {
  pthread_mutex_lock(&lock);
  size_t result = length;
  if (size > 0) snprintf(out, size, "%s", texts);
  pthread_mutex_unlock(&lock);
  return result;
}

void standin_report_reset(void) {
  pthread_mutex_lock(&lock);
  count = 0;
  length = 0;
  texts[0] = 0;
  pthread_mutex_unlock(&lock);
}
