// json.h - a strict reader of JSON, one token at a time.
//
//   tarn__json json;
//   tarn__json_token token;
//   tarn__json_init(&json, bytes, size);
//   while (tarn__json_next(&json, &token)) { ... token.kind ... }
//   if (json.wrong != NULL) ... json.wrong at byte json.at ...
//
// It accepts RFC 8259 to the letter, in UTF-8 that is checked, nested at most
// TARN__JSON_DEPTH deep: one value and then nothing but white space. No
// comments, no commas at the end, no byte order mark. Its caller decides
// whether a key may stand twice in an object.
//
// It allocates nothing and copies nothing: texts are spans of the bytes, which
// must live as long as the tokens. It does not set the last error either: only
// its caller knows by which name and line a place is to be called.
//
// Threads: one at a time per tarn__json.
// Cost:    linear in the bytes; no recursion.
#ifndef TARN_BASE_JSON_H_
#define TARN_BASE_JSON_H_

#include "tarn/base.h"

enum { TARN__JSON_DEPTH = 64 };

typedef enum tarn__json_kind {
  TARN__JSON_NONE = 0,  // a zero-filled token
  TARN__JSON_OBJECT,    // begins; its keys and values follow
  TARN__JSON_OBJECT_END,
  TARN__JSON_ARRAY,
  TARN__JSON_ARRAY_END,
  TARN__JSON_KEY,
  TARN__JSON_TEXT,
  TARN__JSON_NUMBER,
  TARN__JSON_TRUE,
  TARN__JSON_FALSE,
  TARN__JSON_NULL,
} tarn__json_kind;

typedef struct tarn__json_token {
  tarn__json_kind kind;
  // TEXT, KEY: something in it stands behind a backslash, so that |text| is
  // not what it means; see tarn__json_unescape.
  bool escaped;
  // NUMBER: an integer that fits: 0 to 2^64 - 1, or -2^63 to 0 if |negative|.
  // Others, fractions and exponents among them, have only their |text|.
  bool whole;
  bool negative;
  uint64_t magnitude;  // of a whole number, without its sign
  size_t at;           // the byte at which it begins
  const char *text;    // as it stands, without the quotes; no zero byte behind
  size_t size;
} tarn__json_token;

// Private but for |wrong| and |at|.
typedef struct tarn__json {
  const char *wrong;  // a literal: why the reading stopped; NULL: nothing
  size_t at;          // with |wrong|: the byte where that shows
  const unsigned char *bytes;
  size_t size;
  uint64_t objects;  // a bit per open container, the innermost the lowest
  uint32_t depth;
  uint32_t expect;
} tarn__json;

void tarn__json_init(tarn__json *json, const void *bytes, size_t size);

// The next token. False at the end of the text, and from the first mistake on;
// |wrong| tells which.
TARN_MUST_CHECK bool tarn__json_next(tarn__json *json,
                                     tarn__json_token *out_token);

// Passes over what belongs to |token|, which is the one read last: the rest of
// an object or array, the value behind a key; nothing for others. False if a
// mistake is met.
TARN_MUST_CHECK bool tarn__json_skip(tarn__json *json,
                                     const tarn__json_token *token);

// Whether a text or key means |literal|, however it is written.
bool tarn__json_is(const tarn__json_token *token, const char *literal);

// Writes what a text or key means into |out|, which has room for |token->size|
// bytes (it never grows), and returns how many it became. These may include
// zero bytes.
size_t tarn__json_unescape(const tarn__json_token *token, char *out);

#endif  // TARN_BASE_JSON_H_
