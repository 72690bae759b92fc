// Sizes in texts for people.
#include "base/bytes.h"

#include <stdio.h>
#include <string.h>

const char *tarn__bytes_short(size_t bytes, char out[TARN__BYTES_TEXT]) {
  static const char prefixes[] = "KMGTPE";
  size_t unit = 1024;
  size_t prefix = 0;
  if (bytes < unit) {
    snprintf(out, TARN__BYTES_TEXT, "%zu byte%s", bytes, bytes == 1 ? "" : "s");
    return out;
  }
  while (bytes / unit >= 1024) {
    unit *= 1024;
    prefix++;
  }
  size_t hundredths = bytes % unit / (unit / 1024) * 100 / 1024;
  snprintf(out, TARN__BYTES_TEXT, "%zu.%02zu %ciB", bytes / unit, hundredths,
           prefixes[prefix]);
  return out;
}

const char *tarn__bytes_text(size_t bytes, char out[TARN__BYTES_TEXT]) {
  size_t used = strlen(tarn__bytes_short(bytes, out));
  if (bytes >= 1024) {
    snprintf(out + used, TARN__BYTES_TEXT - used, " (%zu bytes)", bytes);
  }
  return out;
}
