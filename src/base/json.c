// A strict reader of JSON, as a machine that always knows what may come next.
//
//   expect        after                  what may come
//   VALUE         the start, ',' in []   a value
//   FIRST_ITEM    '['                    a value or ']'
//   FIRST_KEY     '{'                    a key or '}'
//   KEY           ',' in {}              a key
//   AFTER_KEY     a key                  ':' and a value
//   AFTER_VALUE   a value                ',' or the end of what is open
//   NOTHING       the value at the top   white space
//
// Invariants: |at| <= |size|; |depth| <= TARN__JSON_DEPTH; the lowest |depth|
// bits of |objects| tell objects from arrays, the innermost the lowest of all;
// once |wrong| is set nothing changes any more.
#include "base/json.h"

#include <string.h>

#include "base/lines.h"

enum expect {
  VALUE,
  FIRST_ITEM,
  FIRST_KEY,
  KEY,
  AFTER_KEY,
  AFTER_VALUE,
  NOTHING,
};

void tarn__json_init(tarn__json *json, const void *bytes, size_t size) {
  *json = (tarn__json){.bytes = bytes, .size = size, .expect = VALUE};
}

static bool fail_at(tarn__json *json, size_t at, const char *wrong) {
  json->wrong = wrong;
  json->at = at;
  return false;
}

static bool fail(tarn__json *json, const char *wrong) {
  return fail_at(json, json->at,
                 json->at == json->size ? "the text ends too early" : wrong);
}

// The byte in hand; 0, which no rule takes, at the end.
static unsigned char peek(const tarn__json *json) {
  return json->at < json->size ? json->bytes[json->at] : 0;
}

static void skip_space(tarn__json *json) {
  while (json->at < json->size) {
    unsigned char byte = json->bytes[json->at];
    if (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t') return;
    json->at++;
  }
}

// --- texts -----------------------------------------------------------------

// How many bytes the character has that begins at |at| with a byte above 127;
// 0 if UTF-8 does not allow it: it is longer than needed, half of a surrogate
// pair, or beyond U+10FFFF.
static size_t utf8_size(const unsigned char *at, size_t left) {
  static const struct form {
    unsigned char first, last;  // first byte
    unsigned char low, high;    // second byte
    unsigned char size;
  } forms[] = {{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
               {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
               {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
               {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    const struct form *form = &forms[i];
    if (at[0] < form->first || at[0] > form->last) continue;
    if (left < form->size || at[1] < form->low || at[1] > form->high) return 0;
    for (size_t k = 2; k < form->size; k++) {
      if ((at[k] & 0xc0) != 0x80) return 0;
    }
    return form->size;
  }
  return 0;
}

// The four digits at |at|; false if they are not all there.
static bool read_hex4(const unsigned char *at, size_t left,
                      uint64_t *out_unit) {
  return left >= 4 && tarn__text_digits((const char *)at, 4, 16, out_unit);
}

// The size of the \u escape, or of the pair of them, that begins at |at|, and
// its character; 0 if it is not valid.
static size_t read_unicode(const unsigned char *at, size_t left,
                           uint32_t *out_point) {
  uint64_t high = 0;
  uint64_t low = 0;
  if (!read_hex4(at + 2, left - 2, &high)) return 0;
  *out_point = (uint32_t)high;
  if (high < 0xd800 || high > 0xdfff) return 6;
  if (high > 0xdbff || left < 12 || at[6] != '\\' || at[7] != 'u' ||
      !read_hex4(at + 8, left - 8, &low) || low < 0xdc00 || low > 0xdfff) {
    return 0;
  }
  *out_point = (uint32_t)(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
  return 12;
}

// The same of any escape.
static size_t read_escape(const unsigned char *at, size_t left,
                          uint32_t *out_point) {
  static const char names[] = "\"\\/bfnrt";
  static const char meanings[] = "\"\\/\b\f\n\r\t";
  if (left < 2) return 0;
  if (at[1] == 'u') return read_unicode(at, left, out_point);
  const char *name = memchr(names, at[1], sizeof names - 1);
  if (name == NULL) return 0;
  *out_point = (unsigned char)meanings[name - names];
  return 2;
}

// Passes one character of a text that is no plain one.
static bool pass_special(tarn__json *json, tarn__json_token *token) {
  uint32_t point = 0;
  const unsigned char *at = json->bytes + json->at;
  size_t left = json->size - json->at;
  if (*at < 0x20) return fail(json, "a control character within a text");
  token->escaped |= *at == '\\';
  size_t size =
      *at == '\\' ? read_escape(at, left, &point) : utf8_size(at, left);
  if (size == 0) {
    return fail(json, *at == '\\' ? "an escape that JSON does not have"
                                  : "bytes that are not UTF-8");
  }
  json->at += size;
  return true;
}

static bool read_text(tarn__json *json, tarn__json_token *token) {
  size_t first = ++json->at;
  token->kind = TARN__JSON_TEXT;
  while (json->at < json->size && json->bytes[json->at] != '"') {
    unsigned char byte = json->bytes[json->at];
    if (byte >= 0x20 && byte < 0x80 && byte != '\\') {
      json->at++;
    } else if (!pass_special(json, token)) {
      return false;
    }
  }
  if (json->at == json->size) return fail(json, "");
  token->text = (const char *)json->bytes + first;
  token->size = json->at++ - first;
  return true;
}

// --- numbers ---------------------------------------------------------------

static bool is_digit(unsigned char byte) {
  return byte >= '0' && byte <= '9';
}

// At least one digit.
static bool pass_digits(tarn__json *json) {
  if (!is_digit(peek(json))) return fail(json, "a digit expected");
  while (is_digit(peek(json)))
    json->at++;
  return true;
}

// The integer in |token->text|, without its sign; false if it is beyond 64
// bits.
static bool find_magnitude(tarn__json_token *token) {
  if (!tarn__text_decimal(token->text + token->negative,
                          token->size - token->negative, &token->magnitude)) {
    return false;
  }
  return !token->negative || token->magnitude <= UINT64_C(1) << 63;
}

static bool pass_integer(tarn__json *json) {
  if (peek(json) != '0') return pass_digits(json);
  json->at++;
  return !is_digit(peek(json)) || fail(json, "a number with a zero before it");
}

static bool pass_fraction(tarn__json *json) {
  if (peek(json) != '.') return true;
  json->at++;
  return pass_digits(json);
}

static bool pass_exponent(tarn__json *json) {
  if (peek(json) != 'e' && peek(json) != 'E') return true;
  json->at++;
  if (peek(json) == '+' || peek(json) == '-') json->at++;
  return pass_digits(json);
}

static bool read_number(tarn__json *json, tarn__json_token *token) {
  size_t first = json->at;
  token->kind = TARN__JSON_NUMBER;
  token->negative = peek(json) == '-';
  if (token->negative) json->at++;
  if (!pass_integer(json)) return false;
  size_t integer_end = json->at;
  if (!pass_fraction(json) || !pass_exponent(json)) return false;
  token->text = (const char *)json->bytes + first;
  token->size = json->at - first;
  token->whole = json->at == integer_end && find_magnitude(token);
  if (!token->whole) token->magnitude = 0;
  return true;
}

// --- values ----------------------------------------------------------------

static bool read_word(tarn__json *json, tarn__json_token *token,
                      const char *word, tarn__json_kind kind) {
  size_t size = strlen(word);
  if (json->size - json->at < size ||
      memcmp(json->bytes + json->at, word, size) != 0) {
    return fail(json, "a word that JSON does not have");
  }
  token->kind = kind;
  token->text = (const char *)json->bytes + json->at;
  token->size = size;
  json->at += size;
  return true;
}

// Sets what may come after a value that has just ended.
static void leave_value(tarn__json *json) {
  json->expect = json->depth == 0 ? NOTHING : AFTER_VALUE;
}

static bool open_container(tarn__json *json, tarn__json_token *token,
                           tarn__json_kind kind) {
  bool object = kind == TARN__JSON_OBJECT;
  if (json->depth == TARN__JSON_DEPTH) {
    return fail(json, "nested more than 64 deep");
  }
  json->depth++;
  json->objects = json->objects << 1 | object;
  json->expect = object ? FIRST_KEY : FIRST_ITEM;
  json->at++;
  token->kind = kind;
  return true;
}

static bool close_container(tarn__json *json, tarn__json_token *token) {
  bool object = json->objects & 1;
  if (peek(json) != (object ? '}' : ']')) {
    return fail(json,
                object ? "a comma or '}' expected" : "a comma or ']' expected");
  }
  json->objects >>= 1;
  json->depth--;
  json->at++;
  leave_value(json);
  token->kind = object ? TARN__JSON_OBJECT_END : TARN__JSON_ARRAY_END;
  return true;
}

static bool read_scalar(tarn__json *json, tarn__json_token *token) {
  switch (peek(json)) {
    case '"':
      return read_text(json, token);
    case 't':
      return read_word(json, token, "true", TARN__JSON_TRUE);
    case 'f':
      return read_word(json, token, "false", TARN__JSON_FALSE);
    case 'n':
      return read_word(json, token, "null", TARN__JSON_NULL);
    default:
      if (peek(json) == '-' || is_digit(peek(json))) {
        return read_number(json, token);
      }
      return fail(json, "a value expected");
  }
}

static bool read_value(tarn__json *json, tarn__json_token *token) {
  unsigned char byte = peek(json);
  if (byte == '{') return open_container(json, token, TARN__JSON_OBJECT);
  if (byte == '[') return open_container(json, token, TARN__JSON_ARRAY);
  if (!read_scalar(json, token)) return false;
  leave_value(json);
  return true;
}

static bool read_key(tarn__json *json, tarn__json_token *token) {
  if (peek(json) != '"') return fail(json, "a key expected");
  if (!read_text(json, token)) return false;
  token->kind = TARN__JSON_KEY;
  json->expect = AFTER_KEY;
  return true;
}

// --- tokens ----------------------------------------------------------------

static bool pass_colon(tarn__json *json) {
  if (peek(json) != ':') return fail(json, "':' expected");
  json->at++;
  skip_space(json);
  return true;
}

// Passes the comma between two values, if one stands here.
static bool pass_comma(tarn__json *json) {
  if (peek(json) != ',') return false;
  json->at++;
  json->expect = json->objects & 1 ? KEY : VALUE;
  skip_space(json);
  return true;
}

static bool read_token(tarn__json *json, tarn__json_token *token) {
  if (json->expect == AFTER_VALUE && !pass_comma(json)) {
    return close_container(json, token);
  }
  if (json->expect == AFTER_KEY && !pass_colon(json)) return false;
  token->at = json->at;
  switch ((enum expect)json->expect) {
    case FIRST_ITEM:
      if (peek(json) == ']') return close_container(json, token);
      return read_value(json, token);
    case FIRST_KEY:
      if (peek(json) == '}') return close_container(json, token);
      return read_key(json, token);
    case KEY:
      return read_key(json, token);
    default:
      return read_value(json, token);
  }
}

bool tarn__json_next(tarn__json *json, tarn__json_token *out_token) {
  *out_token = (tarn__json_token){0};
  if (json->wrong != NULL) return false;
  skip_space(json);
  out_token->at = json->at;
  if (json->expect != NOTHING) {
    if (read_token(json, out_token)) return true;
    *out_token = (tarn__json_token){0};
    return false;
  }
  if (json->at < json->size) return fail(json, "more behind the value");
  return false;
}

bool tarn__json_skip(tarn__json *json, const tarn__json_token *token) {
  tarn__json_token next = *token;
  uint32_t depth = json->depth;
  if (token->kind == TARN__JSON_KEY && !tarn__json_next(json, &next)) {
    return false;
  }
  if (next.kind != TARN__JSON_OBJECT && next.kind != TARN__JSON_ARRAY) {
    return json->wrong == NULL;
  }
  if (token->kind != TARN__JSON_KEY) depth--;
  while (json->depth > depth) {
    if (!tarn__json_next(json, &next)) return false;
  }
  return true;
}

// --- what texts mean -------------------------------------------------------

static size_t write_utf8(uint32_t point, char *out) {
  static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
  size_t size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  for (size_t i = size; i-- > 1; point >>= 6) {
    out[i] = (char)(0x80 | (point & 0x3f));
  }
  out[0] = (char)(leads[size] | point);
  return size;
}

// Passes one character of the token at |*at| and writes what it means: at most
// 4 bytes.
static size_t next_meaning(const tarn__json_token *token, size_t *at,
                           char *out) {
  uint32_t point = 0;
  const unsigned char *text = (const unsigned char *)token->text + *at;
  if (*text != '\\') {
    *out = (char)*text;
    ++*at;
    return 1;
  }
  *at += read_escape(text, token->size - *at, &point);
  return write_utf8(point, out);
}

size_t tarn__json_unescape(const tarn__json_token *token, char *out) {
  size_t written = 0;
  if (!token->escaped) {
    if (token->size != 0) memcpy(out, token->text, token->size);
    return token->size;
  }
  for (size_t at = 0; at < token->size;) {
    written += next_meaning(token, &at, out + written);
  }
  return written;
}

bool tarn__json_is(const tarn__json_token *token, const char *literal) {
  char bytes[4];
  // Most keys are told apart by their first byte.
  if (token->size == 0 || (*token->text != *literal && !token->escaped)) {
    return token->size == 0 && *literal == 0;
  }
  size_t size = strlen(literal);
  if (!token->escaped) {
    return token->size == size && memcmp(token->text, literal, size) == 0;
  }
  for (size_t at = 0; at < token->size;) {
    size_t count = next_meaning(token, &at, bytes);
    if (count > size || memcmp(literal, bytes, count) != 0) return false;
    literal += count;
    size -= count;
  }
  return size == 0;
}
