// Texts of a safetensors header.
#include <string.h>

#include "base/status.h"
#include "format/safetensors_writer.h"

enum { LONGEST = 6 };  // bytes of an escape

static bool is_plain(char byte) {
  return (unsigned char)byte >= 0x20 && byte != '"' && byte != '\\';
}

// How many bytes stand before the next one that is escaped, or the end.
static size_t count_plain(const char *text) {
  size_t count = 0;
  while (is_plain(text[count]))
    count++;
  return count;
}

// Writes the escape of a byte and returns its length.
static size_t escape(unsigned char byte, char out[LONGEST]) {
  static const char digits[] = "0123456789abcdef";
  static const char named[] = "\"\\\b\f\n\r\t";
  static const char letters[] = "\"\\bfnrt";
  const char *found = memchr(named, byte, sizeof named - 1);
  out[0] = '\\';
  if (found != NULL) {
    out[1] = letters[found - named];
    return 2;
  }
  out[1] = 'u';
  out[2] = out[3] = '0';
  out[4] = digits[byte >> 4];
  out[5] = digits[byte & 15];
  return LONGEST;
}

tarn_status tarn__safetensors_quote(tarn__budget *budget, tarn__array *out,
                                    const char *text) {
  TARN__TRY(tarn__array_append(budget, out, "\"", 1));
  while (*text != '\0') {
    char bytes[LONGEST];
    size_t plain = count_plain(text);
    TARN__TRY(tarn__array_append(budget, out, text, plain));
    text += plain;
    if (*text == '\0') break;
    size_t size = escape((unsigned char)*text++, bytes);
    TARN__TRY(tarn__array_append(budget, out, bytes, size));
  }
  return tarn__array_append(budget, out, "\"", 1);
}
