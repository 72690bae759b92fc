// Reads the environment of the program.
#include "preload/settings.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Atomic size_t settings_from = SIZE_MAX;

static settings now;

void settings_say(const char *format, ...) {
  char text[1024] = "libtarn-malloc: ";
  size_t begin = strlen(text);
  int error = errno;
  va_list args;
  va_start(args, format);
  vsnprintf(text + begin, sizeof text - begin - 1, format, args);
  va_end(args);
  size_t end = strlen(text);
  text[end++] = '\n';
  (void)!write(STDERR_FILENO, text, end);
  errno = error;
}

static const char *value_of(const char *name) {
  const char *value = secure_getenv(name);
  return value != NULL && *value != '\0' ? value : NULL;
}

// A number of bytes, with K, M or G behind it or without.
static bool parse_bytes(const char *text, size_t *out) {
  char *end;
  if (!isdigit((unsigned char)*text)) return false;
  errno = 0;
  unsigned long long number = strtoull(text, &end, 10);
  static const char units[] = "KMG";
  const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
  unsigned shift = unit != NULL ? 10 * (unsigned)(unit - units + 1) : 0;
  if (unit != NULL) end++;
  if (errno != 0 || *end != '\0' || number > SIZE_MAX >> shift) return false;
  *out = (size_t)number << shift;
  return true;
}

// Below a page nothing would be gained, and a page is the least of a block.
static size_t read_from(void) {
  size_t from = SETTINGS_FROM;
  const char *text = value_of("TARN_PRELOAD_FROM");
  if (text == NULL) return from;
  if (!parse_bytes(text, &from)) {
    settings_say("TARN_PRELOAD_FROM: '%s' is no number of bytes", text);
    return SETTINGS_FROM;
  }
  if (from == 0) return SIZE_MAX;
  return from < 4096 ? 4096 : from;
}

static int signal_named(const char *name, size_t length) {
  if (length > 3 && strncmp(name, "SIG", 3) == 0) {
    name += 3;
    length -= 3;
  }
  for (int i = 1; i < NSIG; i++) {
    const char *known = sigabbrev_np(i);
    if (known != NULL && strlen(known) == length &&
        strncmp(known, name, length) == 0) {
      return i;
    }
  }
  return 0;
}

static void read_why(settings *out) {
  const char *text = value_of("TARN_PRELOAD_WHY");
  if (text == NULL) return;
  size_t length = strcspn(text, ":");
  const char *file = text[length] == ':' ? text + length + 1 : "";
  out->why_signal = signal_named(text, length);
  if (out->why_signal == 0) {
    settings_say("TARN_PRELOAD_WHY: '%.*s' is no signal", (int)length, text);
  }
  snprintf(out->why_file, sizeof out->why_file, "%s",
           *file != '\0' ? file : "tarn-%p-%n.tarn");
}

void settings_read(void) {
  now.from = read_from();
  const char *report = value_of("TARN_PRELOAD_REPORT");
  if (report != NULL) {
    snprintf(now.report, sizeof now.report, "%s", report);
  }
  read_why(&now);
}

const settings *settings_now(void) {
  return &now;
}
