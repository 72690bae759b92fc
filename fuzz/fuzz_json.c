// Any bytes as JSON: tokens of these bytes, in order and well nested, and what
// is skipped ends where reading ends it.
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "fuzz.h"

// What a text means is no longer than it stands there.
static void unescape(const tarn__json_token *token) {
  char *out = malloc(token->size + 1);
  require(out != NULL, "out of memory");
  size_t size = tarn__json_unescape(token, out);
  require(size <= token->size, "a text grew");
  require(token->escaped || size == token->size, "a plain text shrank");
  out[size] = 0;
  if (memchr(out, 0, size) == NULL) {
    require(tarn__json_is(token, out), "a text is not what it means");
  }
  free(out);
}

static void check_token(const tarn__json_token *token, size_t size,
                        size_t *last) {
  require(token->kind != TARN__JSON_NONE, "a token of no kind");
  require(token->at < size && token->at >= *last, "a token out of order");
  *last = token->at;
  if (token->kind == TARN__JSON_KEY || token->kind == TARN__JSON_TEXT) {
    unescape(token);
  }
}

// Reads everything token by token; returns where it ended.
static tarn__json read_all(const uint8_t *bytes, size_t size) {
  tarn__json json;
  tarn__json_token token;
  size_t last = 0;
  size_t depth = 0;
  tarn__json_init(&json, bytes, size);
  while (tarn__json_next(&json, &token)) {
    check_token(&token, size, &last);
    depth += token.kind == TARN__JSON_OBJECT || token.kind == TARN__JSON_ARRAY;
    depth -= token.kind == TARN__JSON_OBJECT_END ||
             token.kind == TARN__JSON_ARRAY_END;
    require(depth <= TARN__JSON_DEPTH, "too deep, or closed too often");
  }
  require(json.at <= size, "beyond the end");
  require(json.wrong != NULL || (depth == 0 && json.at == size),
          "an end within something");
  return json;
}

// Reads the top and skips the rest of it.
static tarn__json skip_all(const uint8_t *bytes, size_t size) {
  tarn__json json;
  tarn__json_token token;
  tarn__json_init(&json, bytes, size);
  while (tarn__json_next(&json, &token) && tarn__json_skip(&json, &token))
    continue;
  return json;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  tarn__json read = read_all(bytes, size);
  tarn__json skipped = skip_all(bytes, size);
  require(read.wrong == skipped.wrong && read.at == skipped.at,
          "skipping and reading disagree");
  return 0;
}
