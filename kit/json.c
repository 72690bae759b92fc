// Writes JSON as a stream.
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

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

static bool write_short_escape(FILE *out, uint32_t code) {
  static const char from[] = "\"\\\b\f\n\r\t";
  static const char to[] = "\"\\bfnrt";
  const char *at = code < 0x80 ? strchr(from, (int)code) : NULL;
  if (at == NULL) return false;
  fputc('\\', out);
  fputc(to[at - from], out);
  return true;
}

// Characters that a terminal would obey are escaped, as those that JSON
// requires: the value stays the same, and a terminal can show it.
static bool needs_escape(const json *writer, uint32_t code) {
  if (text_is_control(code)) return true;
  return writer->for_html && (code == '<' || code == '>' || code == '&');
}

// Writes one character and returns how many bytes of |text| it was.
static size_t write_character(const json *writer, const char *text) {
  uint32_t code = 0;
  size_t length = text_character(text, &code);
  if (length == 0) {
    fputs("\\ufffd", writer->out);
    return 1;
  }
  if (write_short_escape(writer->out, code)) return length;
  if (needs_escape(writer, code)) {
    fprintf(writer->out, "\\u%04" PRIx32, code);
  } else {
    fwrite(text, 1, length, writer->out);
  }
  return length;
}

void json_text(json *writer, const char *text) {
  if (text == NULL) {
    json_double(writer, NAN);
    return;
  }
  before_value(writer);
  fputc('"', writer->out);
  while (*text)
    text += write_character(writer, text);
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

// ---------------------------------------------------------------------------
// Keys with their values
// ---------------------------------------------------------------------------

void json_key_text(json *writer, const char *name, const char *text) {
  json_key(writer, name);
  json_text(writer, text);
}

void json_key_uint(json *writer, const char *name, uint64_t value) {
  json_key(writer, name);
  json_uint(writer, value);
}

void json_key_int(json *writer, const char *name, int64_t value) {
  json_key(writer, name);
  json_int(writer, value);
}

void json_key_bool(json *writer, const char *name, bool value) {
  json_key(writer, name);
  json_bool(writer, value);
}

void json_key_double(json *writer, const char *name, double value) {
  json_key(writer, name);
  json_double(writer, value);
}

void json_key_null(json *writer, const char *name) {
  json_key_double(writer, name, NAN);
}

void json_key_uint_if(json *writer, const char *name, bool is_known,
                      uint64_t value) {
  json_key(writer, name);
  is_known ? json_uint(writer, value) : json_double(writer, NAN);
}

void json_key_bool_if(json *writer, const char *name, bool is_known,
                      bool value) {
  json_key(writer, name);
  is_known ? json_bool(writer, value) : json_double(writer, NAN);
}

void json_key_array(json *writer, const char *name) {
  json_key(writer, name);
  json_begin_array(writer);
}
