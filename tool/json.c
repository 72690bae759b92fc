// Writes JSON as a stream.
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

json json_to(FILE *out) {
  return (json){.out = out};
}

// ---------------------------------------------------------------------------
// Structure
// ---------------------------------------------------------------------------

static void before_value(json *writer) {
  if (writer->comma) fputc(',', writer->out);
  writer->comma = true;
}

static void begin(json *writer, char bracket) {
  before_value(writer);
  fputc(bracket, writer->out);
  writer->comma = false;
}

static void end(json *writer, char bracket) {
  fputc(bracket, writer->out);
  writer->comma = true;
}

void json_begin_object(json *writer) {
  begin(writer, '{');
}

void json_end_object(json *writer) {
  end(writer, '}');
}

void json_begin_array(json *writer) {
  begin(writer, '[');
}

void json_end_array(json *writer) {
  end(writer, ']');
}

void json_finish(json *writer) {
  fputc('\n', writer->out);
}

void json_key(json *writer, const char *name) {
  json_text(writer, name);
  fputc(':', writer->out);
  writer->comma = false;
}

// ---------------------------------------------------------------------------
// Texts
// ---------------------------------------------------------------------------

static bool is_between(unsigned char c, unsigned char low, unsigned char high) {
  return c >= low && c <= high;
}

// Length of the well-formed UTF-8 sequence of more than one byte at |s|, by
// table 3-7 of the Unicode standard; 0 if there is none.
static size_t sequence_length(const unsigned char *s) {
  unsigned char low = 0x80, high = 0xbf;
  size_t length = is_between(s[0], 0xc2, 0xdf)   ? 2
                  : is_between(s[0], 0xe0, 0xef) ? 3
                  : is_between(s[0], 0xf0, 0xf4) ? 4
                                                 : 0;
  if (s[0] == 0xe0) low = 0xa0;   // overlong
  if (s[0] == 0xed) high = 0x9f;  // surrogates
  if (s[0] == 0xf0) low = 0x90;   // overlong
  if (s[0] == 0xf4) high = 0x8f;  // beyond U+10FFFF
  if (length == 0 || !is_between(s[1], low, high)) return 0;
  for (size_t i = 2; i < length; i++) {
    if (!is_between(s[i], 0x80, 0xbf)) return 0;
  }
  return length;
}

static bool write_short_escape(FILE *out, unsigned char c) {
  static const char from[] = "\"\\\b\f\n\r\t";
  static const char to[] = "\"\\bfnrt";
  const char *at = c ? strchr(from, c) : NULL;
  if (at == NULL) return false;
  fputc('\\', out);
  fputc(to[at - from], out);
  return true;
}

static bool needs_escape(const json *writer, unsigned char c) {
  if (c < 0x20 || c == 0x7f) return true;
  return writer->for_html && (c == '<' || c == '>' || c == '&');
}

// Writes one character and returns how many bytes of |s| it was.
static size_t write_character(const json *writer, const unsigned char *s) {
  if (write_short_escape(writer->out, s[0])) return 1;
  if (needs_escape(writer, s[0])) {
    fprintf(writer->out, "\\u%04x", s[0]);
    return 1;
  }
  if (s[0] < 0x80) {
    fputc(s[0], writer->out);
    return 1;
  }
  size_t length = sequence_length(s);
  if (length == 0) {
    fputs("\\ufffd", writer->out);
    return 1;
  }
  fwrite(s, 1, length, writer->out);
  return length;
}

void json_text(json *writer, const char *text) {
  before_value(writer);
  fputc('"', writer->out);
  const unsigned char *s = (const unsigned char *)text;
  while (*s)
    s += write_character(writer, s);
  fputc('"', writer->out);
}

// ---------------------------------------------------------------------------
// Numbers and bytes
// ---------------------------------------------------------------------------

void json_uint(json *writer, uint64_t value) {
  before_value(writer);
  fprintf(writer->out, "%" PRIu64, value);
}

void json_int(json *writer, int64_t value) {
  before_value(writer);
  fprintf(writer->out, "%" PRId64, value);
}

void json_bool(json *writer, bool value) {
  before_value(writer);
  fputs(value ? "true" : "false", writer->out);
}

void json_double(json *writer, double value) {
  char text[40] = "null";
  before_value(writer);
  for (int digits = 6; isfinite(value) && digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  fputs(text, writer->out);
}

static void write_base64(FILE *out, const unsigned char *three, size_t count) {
  static const char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  unsigned bits = (unsigned)three[0] << 16;
  if (count > 1) bits |= (unsigned)three[1] << 8;
  if (count > 2) bits |= three[2];
  fputc(digits[bits >> 18], out);
  fputc(digits[bits >> 12 & 63], out);
  fputc(count > 1 ? digits[bits >> 6 & 63] : '=', out);
  fputc(count > 2 ? digits[bits & 63] : '=', out);
}

void json_base64(json *writer, const void *bytes, size_t size) {
  const unsigned char *at = bytes;
  before_value(writer);
  fputc('"', writer->out);
  for (size_t i = 0; i < size; i += 3) {
    write_base64(writer->out, at + i, size - i < 3 ? size - i : 3);
  }
  fputc('"', writer->out);
}
