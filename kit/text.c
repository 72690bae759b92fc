// Separates characters that a terminal shows from those that it obeys.
#include "text.h"

#include <string.h>

static bool is_between(uint32_t c, uint32_t low, uint32_t high) {
  return c >= low && c <= high;
}

// ---------------------------------------------------------------------------
// One character
// ---------------------------------------------------------------------------

static size_t length_by_first(unsigned char c) {
  return c < 0x80                    ? 1
         : is_between(c, 0xc2, 0xdf) ? 2
         : is_between(c, 0xe0, 0xef) ? 3
         : is_between(c, 0xf0, 0xf4) ? 4
                                     : 0;
}

// By table 3-7 of the Unicode standard. A NUL ends a sequence like any other
// byte that does not belong to it.
size_t text_character(const char *text, uint32_t *out_code) {
  const unsigned char *s = (const unsigned char *)text;
  unsigned char low = 0x80, high = 0xbf;
  size_t length = length_by_first(s[0]);
  if (s[0] == 0xe0) low = 0xa0;   // overlong
  if (s[0] == 0xed) high = 0x9f;  // surrogates
  if (s[0] == 0xf0) low = 0x90;   // overlong
  if (s[0] == 0xf4) high = 0x8f;  // beyond U+10FFFF
  if (length > 1 && !is_between(s[1], low, high)) return 0;
  uint32_t code = length > 1 ? s[0] & (0x7fu >> length) : s[0];
  for (size_t i = 1; i < length; i++) {
    if (!is_between(s[i], 0x80, 0xbf)) return 0;
    code = code << 6 | (s[i] & 0x3fu);
  }
  *out_code = code;
  return length;
}

bool text_is_control(uint32_t code) {
  return code < 0x20 || is_between(code, 0x7f, 0x9f) ||
         is_between(code, 0x202a, 0x202e) || is_between(code, 0x2066, 0x2069);
}

// ---------------------------------------------------------------------------
// Whole texts
// ---------------------------------------------------------------------------

static bool is_shown(uint32_t code, const char *keep) {
  if (!text_is_control(code)) return true;
  return code < 0x20 && strchr(keep, (int)code) != NULL;
}

void text_neutralise(char *text, const char *keep) {
  char *out = text;
  uint32_t code = 0;
  for (const char *in = text; *in;) {
    size_t length = text_character(in, &code);
    if (length > 0 && is_shown(code, keep)) {
      memmove(out, in, length);
      out += length;
    } else {
      *out++ = '?';
    }
    in += length > 0 ? length : 1;
  }
  *out = '\0';
}

void text_write(const char *text, FILE *out) {
  uint32_t code = 0;
  while (*text != '\0') {
    size_t length = text_character(text, &code);
    if (length > 0 && is_shown(code, "")) {
      fwrite(text, 1, length, out);
    } else {
      fputc('?', out);
    }
    text += length > 0 ? length : 1;
  }
}
