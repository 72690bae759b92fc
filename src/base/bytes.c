// Sizes in texts, as people write and read them.
#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
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

// How far the unit shifts the number; false: it is no unit.
static bool parse_unit(const char *text, int *out_shift) {
  static const char letters[] = "KMGT";
  *out_shift = 0;
  if (*text == '\0') return true;
  const char *found = strchr(letters, *text);
  if (found == NULL || text[1] != '\0') return false;
  *out_shift = 10 * (int)(found - letters + 1);
  return true;
}

bool tarn__bytes_parse(const char *text, size_t *out_bytes) {
  size_t digits = strspn(text, "0123456789");
  int shift = 0;
  if (digits == 0 || digits > 19 || !parse_unit(text + digits, &shift)) {
    return false;
  }
  return tarn_size_mul(strtoull(text, NULL, 10), (size_t)1 << shift, out_bytes);
}

bool tarn__percent_parse(const char *text, size_t *out_percent) {
  enum { MOST = 1000 };
  size_t digits = strspn(text, "0123456789");
  if (digits == 0 || digits > 4 || strcmp(text + digits, "%") != 0) {
    return false;
  }
  *out_percent = strtoull(text, NULL, 10);
  return *out_percent <= MOST;
}
