// A file as lines, and the numbers that stand in them.
//
// Invariant: |at| stands at the begin of a line, or at the end of the file.
#include "base/lines.h"

#include <string.h>

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

static void pass_marks(tarn__lines *lines) {
  while (lines->size - lines->at >= 3 &&
         memcmp(lines->bytes + lines->at, BYTE_ORDER_MARK, 3) == 0)
    lines->at += 3;
}

void tarn__lines_init(tarn__lines *lines, const void *bytes, size_t size) {
  *lines = (tarn__lines){.bytes = bytes, .size = size};
  pass_marks(lines);
}

static bool is_blank(const char *text, size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r') return false;
  }
  return true;
}

bool tarn__lines_next(tarn__lines *lines, const char **out_text,
                      size_t *out_size) {
  while (lines->at < lines->size) {
    if (!lines->has_begun) pass_marks(lines);
    const char *text = lines->bytes + lines->at;
    size_t left = lines->size - lines->at;
    const char *end = memchr(text, '\n', left);
    lines->number++;
    if (end == NULL && lines->takes_last) end = text + left;
    if (end == NULL) {
      lines->at = lines->size;
      lines->unfinished = !is_blank(text, left);
      return false;
    }
    size_t size = (size_t)(end - text);
    lines->at += size < left ? size + 1 : size;
    if (is_blank(text, size)) continue;
    lines->has_begun = true;
    *out_text = text;
    *out_size = size - (text[size - 1] == '\r');
    return true;
  }
  return false;
}

static int digit_of(char byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
  return 16;
}

bool tarn__text_digits(const char *text, size_t size, uint64_t base,
                       uint64_t *out_number) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; i++) {
    uint64_t digit = (uint64_t)digit_of(text[i]);
    if (digit >= base || __builtin_mul_overflow(number, base, &number) ||
        __builtin_add_overflow(number, digit, &number)) {
      return false;
    }
  }
  *out_number = number;
  return size != 0;
}

bool tarn__text_decimal(const char *text, size_t size, uint64_t *out_number) {
  return tarn__text_digits(text, size, 10, out_number);
}

bool tarn__text_address(const char *text, size_t size, uint64_t *out_address) {
  *out_address = 0;
  if (tarn__text_is(text, size, "(nil)")) return true;
  size_t prefix = size > 2 && text[0] == '0' && text[1] == 'x' ? 2 : 0;
  return tarn__text_digits(text + prefix, size - prefix, 16, out_address);
}

bool tarn__text_is(const char *text, size_t size, const char *literal) {
  return size == strlen(literal) && memcmp(text, literal, size) == 0;
}
