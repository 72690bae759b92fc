// Why a call failed.
#include "common/text.h"

#include <stdarg.h>
#include <stdio.h>

_Thread_local unsigned tarn__text_wordless;

C_Status tarn__wordless(C_Status status) {
  tarn__text_wordless++;
  return status;
}

tarn_status tarn__text_fail(tarn__common_text *text, tarn_status status,
                            const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(text->line, sizeof text->line, format, args);
  va_end(args);
  text->wordless = tarn__text_wordless;
  return status;
}

void tarn__text_set(tarn__common_text *text, const char *line) {
  tarn__text_copy(line, text->line, sizeof text->line);
  text->wordless = tarn__text_wordless;
}

const char *tarn__text_line(const tarn__common_text *text) {
  return text->wordless == tarn__text_wordless ? text->line : "";
}

void tarn__text_copy(const char *line, char *out, size_t out_size) {
  if (out == NULL || out_size == 0) return;
  snprintf(out, out_size, "%s", line);
}
