// Why a call failed.
#include "common/text.h"

#include <stdarg.h>
#include <stdio.h>

tarn_status tarn__text_fail(tarn__text *text, tarn_status status,
                            const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(text->line, sizeof text->line, format, args);
  va_end(args);
  return status;
}

void tarn__text_copy(const char *line, char *out, size_t out_size) {
  if (out == NULL || out_size == 0) return;
  snprintf(out, out_size, "%s", line);
}
