// Reads and writes the header of an .npy file.
//
// The dict is read by one pass of a scanner, whose position never goes beyond
// the header's end. Its values are kept as they come; only when all are there
// are they checked against each other and against the file's size.
#include "format/npy.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

enum {
  MAGIC = 6,         // bytes
  VERSION_AT = 6,    // major, minor
  LENGTH_AT = 8,     // of 2 bytes, or of 4 since version 2.0
  FIRST_SHORT = 10,  // of the dict in version 1.0
  RANK = 2,          // most dimensions
};

static const char magic[MAGIC + 1] = "\x93NUMPY";

// --- dtypes ------------------------------------------------------------------

typedef struct named_dtype {
  char text[3];
  tarn_dtype dtype;
} named_dtype;

static const named_dtype dtypes[] = {
    {"f8", TARN_DTYPE_F64},  {"f4", TARN_DTYPE_F32}, {"f2", TARN_DTYPE_F16},
    {"V2", TARN_DTYPE_BF16}, {"i8", TARN_DTYPE_I64}, {"i4", TARN_DTYPE_I32},
    {"i2", TARN_DTYPE_I16},  {"i1", TARN_DTYPE_I8},  {"u8", TARN_DTYPE_U64},
    {"u4", TARN_DTYPE_U32},  {"u2", TARN_DTYPE_U16}, {"u1", TARN_DTYPE_U8},
    {"b1", TARN_DTYPE_BOOL},
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static const char expected_dtypes[] =
    "f8, f4, f2, i8, i4, i2, i1, u8, u4, u2, u1, b1 or V2 expected";

static tarn_dtype find_dtype(const char *text, size_t size) {
  for (int i = 0; size == 2 && i < DTYPES; i++) {
    if (memcmp(text, dtypes[i].text, 2) == 0) return dtypes[i].dtype;
  }
  return TARN_DTYPE_NONE;
}

static const char *name_of(tarn_dtype dtype) {
  int i = 0;
  while (i < DTYPES && dtypes[i].dtype != dtype)
    i++;
  assert(i < DTYPES);
  return dtypes[i].text;
}

// --- a scanner ---------------------------------------------------------------

enum {
  HAS_DTYPE = 1,
  HAS_ORDER = 2,
  HAS_SHAPE = 4,
  HAS_ALL = 7,
};

typedef struct scanner {
  const char *name;
  const char *bytes;  // of the file
  size_t at;
  size_t end;         // of the header
  bool long_numbers;  // Python 2 has written 3L
  unsigned seen;      // HAS_... bits
  bool fortran;
  size_t order_at;
  tarn__format_npy npy;
} scanner;

// Text of the header.
typedef struct word {
  const char *text;
  size_t size;
  size_t at;
} word;

// Fails with the text "name: header byte N: ...".
__attribute__((format(printf, 4, 5), cold)) static tarn_status fail_at(
    const char *name, tarn_status status, size_t at, const char *format, ...) {
  char text[400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return tarn__fail(status, "%s: header byte %zu: %s", name, at, text);
}

static tarn_status expected(const scanner *s, const char *what) {
  return fail_at(s->name, TARN_E_CORRUPT, s->at, "%s expected", what);
}

// The length of a text in an error, for "%.*s".
static int shown(size_t size) {
  enum { MOST = 40 };
  return size < MOST ? (int)size : MOST;
}

// The byte at the position; 0, which no header has, at its end.
static char peek(const scanner *s) {
  if (s->at == s->end) return '\0';
  return s->bytes[s->at];
}

static void skip_blanks(scanner *s) {
  while (peek(s) != '\0' && strchr(" \t\n\r\f", peek(s)) != NULL)
    s->at++;
}

// Whether |byte| is next, behind blanks; then it is behind the position.
static bool take(scanner *s, char byte) {
  skip_blanks(s);
  if (peek(s) != byte) return false;
  s->at++;
  return true;
}

static tarn_status expect(scanner *s, char byte, const char *what) {
  return take(s, byte) ? TARN_OK : expected(s, what);
}

// A text in single or double quotes, without control characters and
// backslashes, as all that are looked for.
static tarn_status read_quoted(scanner *s, const char *what, word *out) {
  skip_blanks(s);
  char quote = peek(s);
  if (quote != '\'' && quote != '"') return expected(s, what);
  size_t first = s->at + 1;
  *out = (word){.text = s->bytes + first, .at = s->at};
  for (s->at = first; peek(s) != quote; s->at++) {
    if ((unsigned char)peek(s) < ' ' || peek(s) == '\\') {
      return expected(s, "the end of a text in quotes");
    }
  }
  out->size = s->at++ - first;
  return TARN_OK;
}

static bool is(word found, const char *text) {
  return found.size == strlen(text) &&
         memcmp(found.text, text, found.size) == 0;
}

// --- values ------------------------------------------------------------------

static tarn_status refuse_dtype(const scanner *s, word text, const char *why) {
  return fail_at(s->name, TARN_E_INVALID, text.at, "dtype '%.*s'%s; %s",
                 shown(text.size), text.text, why, expected_dtypes);
}

// Whether it begins with an order of bytes.
static bool has_order(word dtype) {
  return dtype.size > 0 && strchr("<>|=", dtype.text[0]) != NULL;
}

// A dtype in quotes; others are lists of fields.
static tarn_status read_dtype(scanner *s) {
  word text = {0};
  skip_blanks(s);
  if (peek(s) == '[' || peek(s) == '(') {
    return fail_at(s->name, TARN_E_INVALID, s->at, "a dtype with fields; %s",
                   expected_dtypes);
  }
  TARN__TRY(read_quoted(s, "a dtype in quotes", &text));
  word kind = text;
  if (has_order(text)) {
    kind.text++;
    kind.size--;
  }
  s->npy.dtype = find_dtype(kind.text, kind.size);
  s->npy.dtype_at = text.at;
  if (s->npy.dtype == TARN_DTYPE_NONE) {
    return refuse_dtype(s, text, is(kind, "O") ? ", objects of Python" : "");
  }
  // One byte has no order.
  if (text.text[0] == '>' && tarn_dtype_size(s->npy.dtype) > 1) {
    return refuse_dtype(s, text, ", big-endian");
  }
  return TARN_OK;
}

static tarn_status read_order(scanner *s) {
  static const char *const words[] = {"False", "True"};
  skip_blanks(s);
  s->order_at = s->at;
  for (int i = 0; i < 2; i++) {
    size_t size = strlen(words[i]);
    if (s->end - s->at < size || memcmp(s->bytes + s->at, words[i], size) != 0)
      continue;
    s->fortran = i == 1;
    s->at += size;
    return TARN_OK;
  }
  return expected(s, "True or False");
}

static bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

// Digits, the first of several not 0.
static tarn_status read_length(scanner *s, size_t *out_length) {
  size_t length = 0;
  size_t first = s->at;
  if (!is_digit(peek(s))) return expected(s, "a length, digits,");
  for (; is_digit(peek(s)); s->at++) {
    if (!tarn_size_mul(length, 10, &length) ||
        !tarn_size_add(length, (size_t)(peek(s) - '0'), &length)) {
      return fail_at(s->name, TARN_E_CORRUPT, first,
                     "a length below 2^%zu expected", 8 * sizeof length);
    }
  }
  if (s->bytes[first] == '0' && s->at > first + 1) {
    return fail_at(s->name, TARN_E_CORRUPT, first,
                   "a length without zeros in front expected");
  }
  if (s->long_numbers && peek(s) == 'L') s->at++;
  *out_length = length;
  return TARN_OK;
}

// A tuple: one length has a comma behind it.
static tarn_status read_shape(scanner *s) {
  tarn__format_npy *npy = &s->npy;
  bool comma = false;
  skip_blanks(s);
  npy->shape_at = s->at;
  TARN__TRY(expect(s, '(', "'(' of a shape"));
  while (!take(s, ')')) {
    size_t length = 0;
    if (npy->rank > 0 && !comma) return expected(s, "',' or ')'");
    TARN__TRY(read_length(s, &length));
    if (npy->rank < RANK) npy->dims[npy->rank] = length;
    npy->rank++;
    comma = take(s, ',');
    if (npy->rank == 1 && !comma) {
      return expected(s, "',' behind the first length");
    }
  }
  if (npy->rank == 1) npy->dims[1] = 1;
  if (npy->rank == 1 || npy->rank == RANK) return TARN_OK;
  return fail_at(s->name, TARN_E_INVALID, npy->shape_at,
                 "%zu dimensions; one or two expected", npy->rank);
}

// --- the dict ----------------------------------------------------------------

static tarn_status read_entry(scanner *s) {
  static const struct {
    const char *key;
    unsigned bit;
    tarn_status (*read)(scanner *s);
  } entries[] = {{"descr", HAS_DTYPE, read_dtype},
                 {"fortran_order", HAS_ORDER, read_order},
                 {"shape", HAS_SHAPE, read_shape}};
  word key = {0};
  TARN__TRY(read_quoted(s, "a key in quotes or '}'", &key));
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
    if (!is(key, entries[i].key)) continue;
    if ((s->seen & entries[i].bit) != 0) {
      return fail_at(s->name, TARN_E_CORRUPT, key.at, "'%s' occurs twice",
                     entries[i].key);
    }
    s->seen |= entries[i].bit;
    TARN__TRY(expect(s, ':', "':' behind a key"));
    return entries[i].read(s);
  }
  return fail_at(s->name, TARN_E_CORRUPT, key.at,
                 "'%.*s'; 'descr', 'fortran_order' or 'shape' expected",
                 shown(key.size), key.text);
}

static tarn_status read_dict(scanner *s) {
  bool comma = true;
  TARN__TRY(expect(s, '{', "'{'"));
  while (!take(s, '}')) {
    if (!comma) return expected(s, "',' or '}'");
    TARN__TRY(read_entry(s));
    comma = take(s, ',');
  }
  if (s->seen != HAS_ALL) {
    return fail_at(s->name, TARN_E_CORRUPT, s->at - 1, "'%s' expected",
                   (s->seen & HAS_DTYPE) == 0   ? "descr"
                   : (s->seen & HAS_ORDER) == 0 ? "fortran_order"
                                                : "shape");
  }
  skip_blanks(s);
  return s->at == s->end ? TARN_OK : expected(s, "nothing but blanks");
}

// --- what stands before it ---------------------------------------------------

static tarn_status check_magic(const char *name, const char *bytes,
                               size_t size) {
  for (size_t i = 0; i < MAGIC && i < size; i++) {
    if (bytes[i] == magic[i]) continue;
    return fail_at(name, TARN_E_CORRUPT, i,
                   "0x%02x, where an .npy file has 0x%02x",
                   (unsigned char)bytes[i], (unsigned char)magic[i]);
  }
  return TARN_OK;
}

static tarn_status check_version(const char *name, const char *bytes,
                                 size_t size) {
  if (size <= VERSION_AT + 1) return TARN_OK;
  unsigned char major = (unsigned char)bytes[VERSION_AT];
  unsigned char minor = (unsigned char)bytes[VERSION_AT + 1];
  if (major >= 1 && major <= 3 && minor == 0) return TARN_OK;
  return fail_at(name, TARN_E_CORRUPT, VERSION_AT,
                 "version %u.%u of the format; 1.0, 2.0 or 3.0 expected", major,
                 minor);
}

static tarn_status refuse_end(const char *name, size_t end, size_t wanted) {
  return fail_at(name, TARN_E_CORRUPT, end,
                 "the file ends; a header of %zu bytes expected", wanted);
}

tarn_status tarn__npy_head(const char *name, const void *bytes, size_t size,
                           size_t file_size, size_t *out_head_size) {
  const char *text = bytes;
  *out_head_size = 0;
  size = tarn__lesser(size, file_size);
  TARN__TRY(check_magic(name, text, size));
  TARN__TRY(check_version(name, text, size));
  bool old = size <= VERSION_AT || text[VERSION_AT] == 1;
  size_t first = old ? FIRST_SHORT : TARN__NPY_LENGTH;
  if (size < first) return refuse_end(name, size, first);
  size_t head = 0;
  for (size_t i = first; i-- > LENGTH_AT;)
    head = head << 8 | (unsigned char)text[i];
  head += first;
  if (head > TARN__NPY_MOST) {
    return fail_at(name, TARN_E_CORRUPT, LENGTH_AT,
                   "a header of %zu bytes; at most %d expected", head,
                   TARN__NPY_MOST);
  }
  if (head > file_size) return refuse_end(name, file_size, head);
  *out_head_size = head;
  return TARN_OK;
}

// --- all of it ---------------------------------------------------------------

static tarn_status check_order(const scanner *s) {
  const tarn__format_npy *npy = &s->npy;
  if (!s->fortran || npy->dims[0] <= 1 || npy->dims[1] <= 1) return TARN_OK;
  return fail_at(s->name, TARN_E_INVALID, s->order_at,
                 "Fortran order of %zu rows of %zu; C order expected",
                 npy->dims[0], npy->dims[1]);
}

static tarn_status check_size(scanner *s, size_t file_size) {
  tarn__format_npy *npy = &s->npy;
  size_t count = 0;
  size_t end = 0;
  if (!tarn_size_mul(npy->dims[0], npy->dims[1], &count) ||
      !tarn_size_mul(count, tarn_dtype_size(npy->dtype), &npy->size) ||
      !tarn_size_add(npy->offset, npy->size, &end)) {
    return fail_at(s->name, TARN_E_CORRUPT, npy->shape_at,
                   "the lengths %zu and %zu overflow", npy->dims[0],
                   npy->dims[1]);
  }
  if (end <= file_size) return TARN_OK;
  return fail_at(s->name, TARN_E_CORRUPT, npy->shape_at,
                 "the array is bytes %zu to %zu, but the file ends at %zu",
                 npy->offset, end, file_size);
}

tarn_status tarn__npy_read(const char *name, const void *bytes, size_t size,
                           size_t file_size, tarn__format_npy *out_npy) {
  scanner s = {.name = name, .bytes = bytes};
  *out_npy = (tarn__format_npy){0};
  TARN__TRY(tarn__npy_head(name, bytes, size, file_size, &s.end));
  if (size < s.end) return refuse_end(name, size, s.end);
  bool old = s.bytes[VERSION_AT] == 1;
  s.at = old ? FIRST_SHORT : TARN__NPY_LENGTH;
  s.long_numbers = s.bytes[VERSION_AT] < 3;
  s.npy.offset = s.end;
  TARN__TRY(read_dict(&s));
  TARN__TRY(check_order(&s));
  TARN__TRY(check_size(&s, file_size));
  *out_npy = s.npy;
  return TARN_OK;
}

void tarn__npy_write(tarn_dtype dtype, size_t rank, const size_t *dims,
                     void *out) {
  const size_t length = TARN__NPY_WRITTEN - FIRST_SHORT;
  char shape[2 * 24];
  char dict[160];
  char *bytes = out;
  assert(rank == 1 || rank == RANK);
  if (rank == 1) {
    snprintf(shape, sizeof shape, "%zu,", dims[0]);
  } else {
    snprintf(shape, sizeof shape, "%zu, %zu", dims[0], dims[1]);
  }
  // One byte has no order.
  int size =
      snprintf(dict, sizeof dict,
               "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s), }",
               tarn_dtype_size(dtype) == 1 ? '|' : '<', name_of(dtype), shape);
  memcpy(bytes, magic, MAGIC);
  bytes[VERSION_AT] = 1;
  bytes[VERSION_AT + 1] = 0;
  bytes[LENGTH_AT] = (char)(length & 0xff);
  bytes[LENGTH_AT + 1] = (char)(length >> 8);
  memcpy(bytes + FIRST_SHORT, dict, (size_t)size);
  memset(bytes + FIRST_SHORT + size, ' ', length - (size_t)size);
  bytes[TARN__NPY_WRITTEN - 1] = '\n';
}
