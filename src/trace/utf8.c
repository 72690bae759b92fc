// Characters by table 3-7 of the Unicode standard: the range of the second byte
// depends on the first, which excludes overlong forms and surrogates.
//
// Invariant: a byte is read only after all bytes in front of it were found to
// be part of a character, so no read passes a zero byte.
#include "trace/writers.h"

#include <stdbool.h>
#include <string.h>

static bool is_between(unsigned char c, unsigned char low, unsigned char high) {
  return c >= low && c <= high;
}

static size_t length_by_first(unsigned char c) {
  if (is_between(c, 1, 0x7f)) return 1;
  if (is_between(c, 0xc2, 0xdf)) return 2;
  if (is_between(c, 0xe0, 0xef)) return 3;
  return is_between(c, 0xf0, 0xf4) ? 4 : 0;
}

static bool allows_second(unsigned char first, unsigned char second) {
  unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  return is_between(second, low, high);
}

size_t tarn__utf8_character(const char *text) {
  const unsigned char *s = (const unsigned char *)text;
  size_t length = length_by_first(s[0]);
  if (length < 2) return length;
  if (!allows_second(s[0], s[1])) return 0;
  for (size_t i = 2; i < length; i++) {
    if (!is_between(s[i], 0x80, 0xbf)) return 0;
  }
  return length;
}

size_t tarn__utf8_size(const char *text) {
  size_t size = 0;
  while (*text != '\0') {
    size_t length = tarn__utf8_character(text);
    size += length != 0 ? length : strlen(TARN__UTF8_UNKNOWN);
    text += length != 0 ? length : 1;
  }
  return size;
}
