// A strict reader of JSON. Every skip_ function takes where something begins
// and returns where it ends, or NULL if it is not well formed.
#include "support/json_check.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64 };

static const char *skip_value(const char *p, int depth);

// The library's strspn and its like, but that these look at no more than they
// have to: checked by a sanitizer, those of the C library read all that
// follows, and a document would cost the square of its size.
static size_t span_of(const char *p, const char *set) {
  size_t count = 0;
  while (p[count] != '\0' && strchr(set, p[count]) != NULL)
    count++;
  return count;
}

static bool begins_with(const char *p, const char *word) {
  while (*word != '\0' && *p == *word)
    p++, word++;
  return *word == '\0';
}

static const char *skip_space(const char *p) {
  return p + span_of(p, " \t\r\n");
}

// ---------------------------------------------------------------------------
// Scalars
// ---------------------------------------------------------------------------

static const char *skip_word(const char *p, const char *word) {
  return begins_with(p, word) ? p + strlen(word) : NULL;
}

static const char *skip_digits(const char *p) {
  size_t count = span_of(p, "0123456789");
  return count > 0 ? p + count : NULL;
}

static const char *skip_number(const char *p) {
  if (*p == '-') p++;
  p = *p == '0' ? p + 1 : skip_digits(p);
  if (p != NULL && *p == '.') p = skip_digits(p + 1);
  if (p == NULL || (*p != 'e' && *p != 'E')) return p;
  p++;
  return skip_digits(p + (*p == '+' || *p == '-'));
}

static const char *skip_escape(const char *p) {
  if (*p == 'u') {
    return span_of(p + 1, "0123456789abcdefABCDEF") >= 4 ? p + 5 : NULL;
  }
  return *p != '\0' && strchr("\"\\/bfnrt", *p) != NULL ? p + 1 : NULL;
}

// A sequence of UTF-8 of more than one byte; overlong and surrogate forms are
// left to the unit tests of the writer.
static const char *skip_sequence(const char *p) {
  unsigned char c = (unsigned char)*p++;
  int more = c >= 0xf0 && c <= 0xf4 ? 3 : c >= 0xe0 ? 2 : 1;
  if (c < 0xc2 || c > 0xf4) return NULL;
  for (; more > 0; more--, p++) {
    if (((unsigned char)*p & 0xc0) != 0x80) return NULL;
  }
  return p;
}

static const char *skip_text(const char *p) {
  if (*p++ != '"') return NULL;
  while (p != NULL && *p != '"') {
    unsigned char c = (unsigned char)*p;
    if (c < 0x20) return NULL;
    if (c == '\\') {
      p = skip_escape(p + 1);
    } else {
      p = c < 0x80 ? p + 1 : skip_sequence(p);
    }
  }
  return p ? p + 1 : NULL;
}

// ---------------------------------------------------------------------------
// Structure
// ---------------------------------------------------------------------------

static const char *skip_key(const char *p) {
  p = skip_text(p);
  if (p == NULL) return NULL;
  p = skip_space(p);
  return *p == ':' ? skip_space(p + 1) : NULL;
}

// An object or an array: its opening bracket is at |p|.
static const char *skip_members(const char *p, char close, int depth) {
  p = skip_space(p + 1);
  if (*p == close) return p + 1;
  for (;;) {
    if (close == '}') p = skip_key(p);
    if (p != NULL) p = skip_value(p, depth + 1);
    if (p == NULL) return NULL;
    p = skip_space(p);
    if (*p == close) return p + 1;
    if (*p++ != ',') return NULL;
    p = skip_space(p);
  }
}

static const char *skip_value(const char *p, int depth) {
  if (depth > DEPTH_MAX) return NULL;
  switch (*p) {
    case '{':
      return skip_members(p, '}', depth);
    case '[':
      return skip_members(p, ']', depth);
    case '"':
      return skip_text(p);
    case 't':
      return skip_word(p, "true");
    case 'f':
      return skip_word(p, "false");
    case 'n':
      return skip_word(p, "null");
    default:
      return skip_number(p);
  }
}

bool json_valid(const char *text) {
  const char *end = skip_value(skip_space(text), 0);
  return end != NULL && *skip_space(end) == '\0';
}

// ---------------------------------------------------------------------------
// Finding
// ---------------------------------------------------------------------------

// Walks the members of a valid object or array.
typedef struct member {
  const char *key;  // NULL in an array
  size_t key_length;
  const char *value;
  const char *next;  // of the member behind it; NULL at the end
} member;

static member read_member(const char *p, bool keyed) {
  member m = {0};
  if (keyed) {
    m.key = p + 1;
    m.key_length = (size_t)(skip_text(p) - p) - 2;
    p = skip_key(p);
  }
  m.value = p;
  p = skip_space(skip_value(p, 0));
  if (*p == ',') m.next = skip_space(p + 1);
  return m;
}

static const char *first_member(const char *value) {
  if (value == NULL || (*value != '{' && *value != '[')) return NULL;
  const char *p = skip_space(value + 1);
  return *p == '}' || *p == ']' ? NULL : p;
}

static const char *find_member(const char *value, const char *name,
                               size_t length) {
  bool keyed = value != NULL && *value == '{';
  size_t index = 0;
  for (const char *p = first_member(value); p != NULL; index++) {
    member m = read_member(p, keyed);
    bool found =
        keyed ? m.key_length == length && strncmp(m.key, name, length) == 0
              : strtoul(name, NULL, 10) == index;
    if (found) return m.value;
    p = m.next;
  }
  return NULL;
}

const char *json_at(const char *text, const char *path) {
  const char *value = skip_space(text);
  while (*path != '\0' && value != NULL) {
    size_t length = strcspn(path, ".");
    value = find_member(value, path, length);
    path += length + (path[length] == '.');
  }
  return value;
}

double json_number(const char *text, const char *path) {
  const char *value = json_at(text, path);
  if (value == NULL || skip_number(value) == NULL) return NAN;
  return strtod(value, NULL);
}

size_t json_size(const char *text, const char *path) {
  const char *value = json_at(text, path);
  size_t count = 0;
  for (const char *p = first_member(value); p != NULL; count++) {
    p = read_member(p, *value == '{').next;
  }
  return count;
}

char *json_keys(const char *text, const char *path, char *out,
                size_t out_size) {
  const char *value = json_at(text, path);
  size_t used = 0;
  out[0] = '\0';
  if (value == NULL || *value != '{') return out;
  for (const char *p = first_member(value); p != NULL && used < out_size;) {
    member m = read_member(p, true);
    int n = snprintf(out + used, out_size - used, "%s%.*s", used ? "," : "",
                     (int)m.key_length, m.key);
    used += (size_t)n;
    p = m.next;
  }
  return out;
}

bool json_is(const char *text, const char *path, const char *value) {
  const char *found = json_at(text, path);
  if (found == NULL) return false;
  size_t length = (size_t)(skip_value(found, 0) - found);
  return length == strlen(value) && strncmp(found, value, length) == 0;
}

bool json_is_text(const char *text, const char *path, const char *value) {
  char quoted[256];
  snprintf(quoted, sizeof quoted, "\"%s\"", value);
  return json_is(text, path, quoted);
}

const char *json_path(const char *list, size_t row, const char *key) {
  static char paths[4][64];
  static size_t next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s.%zu%s%s", list, row, *key ? "." : "",
           key);
  return path;
}

const char *json_row(size_t row, const char *key) {
  return json_path("results", row, key);
}

// ---------------------------------------------------------------------------
// Bytes
// ---------------------------------------------------------------------------

// The six bits that |c| stands for; 64 and more: it is no digit.
static unsigned bits_of(char c) {
  static const char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const char *found = c ? strchr(digits, c) : NULL;
  return found ? (unsigned)(found - digits) : 64;
}

size_t json_decode(const char *text, const char *path, void *out, size_t size) {
  const char *p = json_at(text, path);
  unsigned char *bytes = out;
  unsigned pending = 0;
  size_t count = 0, digits = 0;
  if (p == NULL || *p++ != '"') return SIZE_MAX;
  for (; bits_of(*p) < 64; p++) {
    pending = pending << 6 | bits_of(*p);
    if (++digits % 4 == 1) continue;  // six bits are no byte yet
    unsigned rest = 6 - 2 * (unsigned)((digits - 1) % 4);
    if (count < size) bytes[count] = (unsigned char)(pending >> rest);
    count++;
  }
  size_t padding = strspn(p, "=");
  return p[padding] == '"' && (digits + padding) % 4 == 0 ? count : SIZE_MAX;
}
