// The JSON reader: what it takes, what it refuses and where, and what its
// tokens say.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "support/run.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))

// The tokens of a text in short: { } [ ] for containers, k:KEY t:TEXT n:NUMBER
// T F N for words, each with a blank behind it.
static char shown[4096];

static const char *const marks[] = {
    [TARN__JSON_OBJECT] = "{",  [TARN__JSON_OBJECT_END] = "}",
    [TARN__JSON_ARRAY] = "[",   [TARN__JSON_ARRAY_END] = "]",
    [TARN__JSON_KEY] = "k:",    [TARN__JSON_TEXT] = "t:",
    [TARN__JSON_NUMBER] = "n:", [TARN__JSON_TRUE] = "T",
    [TARN__JSON_FALSE] = "F",   [TARN__JSON_NULL] = "N"};

static void show(const tarn__json_token *token) {
  size_t used = strlen(shown);
  bool has_text = token->kind == TARN__JSON_KEY ||
                  token->kind == TARN__JSON_TEXT ||
                  token->kind == TARN__JSON_NUMBER;
  require(used + token->size + 8 < sizeof shown);
  snprintf(shown + used, sizeof shown - used, "%s%.*s ", marks[token->kind],
           has_text ? (int)token->size : 0, has_text ? token->text : "");
}

// Reads all of |size| bytes, which stand in memory of just that size, so that
// a sanitizer sees a read beyond them.
static void read_bytes(tarn__json *json, const void *bytes, size_t size) {
  static char *own;
  tarn__json_token token;
  free(own);
  own = malloc(size + (size == 0));
  require(own != NULL);
  if (size != 0) memcpy(own, bytes, size);
  shown[0] = 0;
  tarn__json_init(json, own, size);
  while (tarn__json_next(json, &token)) {
    require(token.kind != TARN__JSON_NONE && token.at < size);
    show(&token);
  }
  require(token.kind == TARN__JSON_NONE);
}

static tarn__json read_text(const char *text) {
  tarn__json json;
  read_bytes(&json, text, strlen(text));
  return json;
}

static const struct good {
  const char *text;
  const char *tokens;
} goods[] = {
    {"{}", "{ } "},
    {"[]", "[ ] "},
    {" \t\r\n[ \n] \t", "[ ] "},
    {"null", "N "},
    {"true", "T "},
    {"false", "F "},
    {"\"\"", "t: "},
    {"0", "n:0 "},
    {"-0", "n:-0 "},
    {"-12.50e+10", "n:-12.50e+10 "},
    {"1E1", "n:1E1 "},
    {"[1,2 , 3]", "[ n:1 n:2 n:3 ] "},
    {"[[],[[]],{}]", "[ [ ] [ [ ] ] { } ] "},
    {"{\"a\":1}", "{ k:a n:1 } "},
    {"{ \"a\" : { } , \"b\" : [ true , null ] }", "{ k:a { } k:b [ T N ] } "},
    {"{\"a\":1,\"a\":2}", "{ k:a n:1 k:a n:2 } "},
    {"{\"\":\"\"}", "{ k: t: } "},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "t:\\\"\\\\\\/\\b\\f\\n\\r\\t "},
    {"\"\\u0000\\uD834\\uDd1e\"", "t:\\u0000\\uD834\\uDd1e "},
    {"\"\x7f\"", "t:\x7f "},
    {"\"\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\"",
     "t:\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80 "},
    {"\"\xf0\x90\x80\x80\xf3\xbf\xbf\xbf\xf4\x8f\xbf\xbf\"",
     "t:\xf0\x90\x80\x80\xf3\xbf\xbf\xbf\xf4\x8f\xbf\xbf "},
};

TEST_LOOP(what_is_json_is_taken, COUNT(goods)) {
  const struct good *good = &goods[_i];
  tarn__json json = read_text(good->text);
  ck_assert_msg(json.wrong == NULL, "%s: %s", good->text, json.wrong);
  ck_assert_str_eq(shown, good->tokens);
}

static const struct bad {
  const char *text;
  size_t at;
  const char *wrong;
} bads[] = {
    {"", 0, "ends too early"},
    {"  ", 2, "ends too early"},
    {"\xef\xbb\xbf{}", 0, "a value"},
    {"{", 1, "ends too early"},
    {"[", 1, "ends too early"},
    {"}", 0, "a value"},
    {"]", 0, "a value"},
    {"[}", 1, "a value"},
    {"{]", 1, "a key"},
    {"[1}", 2, "comma or ']'"},
    {"{\"a\":1]", 6, "comma or '}'"},
    {"[1 2]", 3, "comma or ']'"},
    {"[1,]", 3, "a value"},
    {"[,1]", 1, "a value"},
    {"[1,,2]", 3, "a value"},
    {"{\"a\":1,}", 7, "a key"},
    {"{,}", 1, "a key"},
    {"{\"a\"}", 4, "':'"},
    {"{\"a\" 1}", 5, "':'"},
    {"{\"a\"::1}", 5, "a value"},
    {"{\"a\":}", 5, "a value"},
    {"{a:1}", 1, "a key"},
    {"{1:1}", 1, "a key"},
    {"{'a':1}", 1, "a key"},
    {"{\"a\":1 \"b\":2}", 7, "comma or '}'"},
    {"{} {}", 3, "more behind"},
    {"1 1", 2, "more behind"},
    {"nul", 0, "a word"},
    {"nulll", 4, "more behind"},
    {"True", 0, "a value"},
    {"NaN", 0, "a value"},
    {"Infinity", 0, "a value"},
    {"// x\n1", 0, "a value"},
    {"+1", 0, "a value"},
    {".5", 0, "a value"},
    {"01", 1, "a zero before"},
    {"-01", 2, "a zero before"},
    {"-", 1, "ends too early"},
    {"-x", 1, "a digit"},
    {"1.", 2, "ends too early"},
    {"1.x", 2, "a digit"},
    {"1e", 2, "ends too early"},
    {"1e+", 3, "ends too early"},
    {"1e+x", 3, "a digit"},
    {"0x10", 1, "more behind"},
    {"1_000", 1, "more behind"},
    {"\"", 1, "ends too early"},
    {"\"abc", 4, "ends too early"},
    {"\"a\nb\"", 2, "control character"},
    {"\"a\tb\"", 2, "control character"},
    {"\"\x1f\"", 1, "control character"},
    {"\"\\x41\"", 1, "an escape"},
    {"\"\\", 1, "an escape"},
    {"\"\\\"", 3, "ends too early"},
    {"\"\\U0041\"", 1, "an escape"},
    {"\"\\u004\"", 1, "an escape"},
    {"\"\\u004g\"", 1, "an escape"},
    {"\"\\u", 1, "an escape"},
    {"\"\\ud800\"", 1, "an escape"},
    {"\"\\udc00\"", 1, "an escape"},
    {"\"\\ud800\\u0041\"", 1, "an escape"},
    {"\"\\ud800\\ud800\"", 1, "an escape"},
    {"\"\\ud800\\udc0", 1, "an escape"},
    {"\"\x80\"", 1, "UTF-8"},
    {"\"\xc0\x80\"", 1, "UTF-8"},
    {"\"\xc1\xbf\"", 1, "UTF-8"},
    {"\"a\xc2\"", 2, "UTF-8"},
    {"\"\xe0\x9f\xbf\"", 1, "UTF-8"},
    {"\"\xed\xa0\x80\"", 1, "UTF-8"},
    {"\"\xe1\x80\"", 1, "UTF-8"},
    {"\"\xe1\x80\xc0\"", 1, "UTF-8"},
    {"\"\xf0\x8f\xbf\xbf\"", 1, "UTF-8"},
    {"\"\xf4\x90\x80\x80\"", 1, "UTF-8"},
    {"\"\xf5\x80\x80\x80\"", 1, "UTF-8"},
    {"\"\xff\"", 1, "UTF-8"},
    {"\"\xf1\x80\x80", 1, "UTF-8"},
    {"\xc2\xa0 1", 0, "a value"},
};

TEST_LOOP(what_is_no_json_is_refused_where_it_shows, COUNT(bads)) {
  const struct bad *bad = &bads[_i];
  tarn__json_token token;
  tarn__json json = read_text(bad->text);
  ck_assert_msg(json.wrong != NULL, "'%s' was taken", bad->text);
  ck_assert_msg(strstr(json.wrong, bad->wrong) != NULL, "'%s': %s", bad->text,
                json.wrong);
  ck_assert_msg(json.at == bad->at, "'%s': %zu", bad->text, json.at);
  ck_assert(!tarn__json_next(&json, &token));
  ck_assert_uint_eq(json.at, bad->at);
}

TEST(a_zero_byte_is_no_end) {
  tarn__json json;
  read_bytes(&json, "1\0", 2);
  ck_assert_ptr_nonnull(json.wrong);
  ck_assert_uint_eq(json.at, 1);
  read_bytes(&json, "\"\0\"", 3);
  ck_assert_ptr_nonnull(strstr(json.wrong, "control character"));
  read_bytes(&json, "[\0]", 3);
  ck_assert_uint_eq(json.at, 1);
}

static const struct number {
  const char *text;
  bool whole;
  bool negative;
  uint64_t magnitude;
} numbers[] = {
    {"0", true, false, 0},
    {"-0", true, true, 0},
    {"9007199254740993", true, false, UINT64_C(9007199254740993)},
    {"18446744073709551615", true, false, UINT64_MAX},
    {"18446744073709551616", false, false, 0},
    {"99999999999999999999", false, false, 0},
    {"-9223372036854775808", true, true, UINT64_C(1) << 63},
    {"-9223372036854775809", false, true, 0},
    {"1.0", false, false, 0},
    {"1e2", false, false, 0},
    {"-1.5E-3", false, true, 0},
};

TEST_LOOP(whole_numbers_are_exact, COUNT(numbers)) {
  const struct number *number = &numbers[_i];
  tarn__json json;
  tarn__json_token token;
  tarn__json_init(&json, number->text, strlen(number->text));
  ck_assert(tarn__json_next(&json, &token));
  ck_assert_int_eq(token.kind, TARN__JSON_NUMBER);
  ck_assert_int_eq(token.whole, number->whole);
  ck_assert_int_eq(token.negative, number->negative);
  ck_assert_uint_eq(token.magnitude, number->magnitude);
  ck_assert(tarn__json_is(&token, number->text));
  ck_assert(!tarn__json_next(&json, &token));
  ck_assert_ptr_null(json.wrong);
}

TEST(depth_has_an_end) {
  char text[2 * TARN__JSON_DEPTH + 2];
  tarn__json json;
  for (size_t depth = 1; depth <= TARN__JSON_DEPTH; depth++) {
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    read_bytes(&json, text, 2 * depth);
    require(json.wrong == NULL);
  }
  memset(text, '[', sizeof text);
  read_bytes(&json, text, sizeof text);
  ck_assert_ptr_nonnull(strstr(json.wrong, "more than 64 deep"));
  ck_assert_uint_eq(json.at, TARN__JSON_DEPTH);
}

// Objects and arrays in turn, down to the deepest: each is closed by its own.
TEST(each_container_is_closed_by_its_own) {
  char text[8 * TARN__JSON_DEPTH];
  size_t size = 0;
  tarn__json json;
  for (int i = 0; i < TARN__JSON_DEPTH; i++) {
    size += (size_t)sprintf(text + size, "%s", i % 2 ? "[" : "{\"k\":");
  }
  text[size++] = '0';
  for (int i = TARN__JSON_DEPTH; i-- > 0;)
    text[size++] = i % 2 ? ']' : '}';
  read_bytes(&json, text, size);
  ck_assert_ptr_null(json.wrong);
  for (size_t i = size - TARN__JSON_DEPTH; i < size; i++) {
    char right = text[i];
    text[i] = right == ']' ? '}' : ']';
    read_bytes(&json, text, size);
    require(json.wrong != NULL && json.at == i);
    text[i] = right;
  }
}

static tarn__json_token only_text(const char *text) {
  tarn__json json;
  tarn__json_token token;
  tarn__json_init(&json, text, strlen(text));
  require(tarn__json_next(&json, &token) && token.kind == TARN__JSON_TEXT);
  return token;
}

static const struct meaning {
  const char *text;
  const char *means;
  size_t size;
} meanings[] = {
    {"\"plain\"", "plain", 5},
    {"\"\"", "", 0},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8},
    {"\"a\\u0041\\u00e9\\u20AC\\ud834\\udd1e!\"",
     "aA\xc3\xa9\xe2\x82\xac\xf0\x9d\x84\x9e!", 12},
    {"\"\\u007f\\u0080\\u07ff\\u0800\\uffff\"",
     "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf", 11},
    {"\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf", 4},
    {"\"\\u0000x\"", "\0x", 2},
    {"\"\xe2\x82\xac\\n\"", "\xe2\x82\xac\n", 4},
};

TEST_LOOP(escapes_mean_what_they_say, COUNT(meanings)) {
  char out[64] = "";
  const struct meaning *meaning = &meanings[_i];
  tarn__json_token token = only_text(meaning->text);
  size_t size = tarn__json_unescape(&token, out);
  ck_assert_uint_le(size, token.size);
  ck_assert_uint_eq(size, meaning->size);
  ck_assert_mem_eq(out, meaning->means, size);
  if (memchr(out, 0, size) != NULL) return;
  out[size] = 0;
  ck_assert(tarn__json_is(&token, out));
  out[size] = 'x';
  out[size + 1] = 0;
  ck_assert(!tarn__json_is(&token, out));
  if (size == 0) return;
  out[size - 1] = 0;
  ck_assert(!tarn__json_is(&token, out));
}

TEST(skipping_ends_where_the_value_does) {
  static const char text[] =
      "{\"a\":{\"b\":[1,{\"c\":[]}],\"d\":2},\"e\":3,\"f\":[[],[4]]}";
  tarn__json json;
  tarn__json_token token;
  tarn__json_init(&json, text, sizeof text - 1);
  ck_assert(tarn__json_next(&json, &token));
  ck_assert(tarn__json_next(&json, &token) && tarn__json_is(&token, "a"));
  ck_assert(tarn__json_skip(&json, &token));
  ck_assert(tarn__json_next(&json, &token) && tarn__json_is(&token, "e"));
  ck_assert(tarn__json_skip(&json, &token));
  ck_assert(tarn__json_next(&json, &token) && tarn__json_is(&token, "f"));
  ck_assert(tarn__json_next(&json, &token) && token.kind == TARN__JSON_ARRAY);
  ck_assert(tarn__json_skip(&json, &token));
  ck_assert(tarn__json_next(&json, &token));
  ck_assert_int_eq(token.kind, TARN__JSON_OBJECT_END);
  ck_assert(tarn__json_skip(&json, &token));
  ck_assert(!tarn__json_next(&json, &token));
  ck_assert_ptr_null(json.wrong);
}

TEST(skipping_meets_mistakes) {
  static const char *const texts[] = {"{\"a\":[1,}", "{\"a\":", "{\"a\":[",
                                      "{\"a\":x}"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    tarn__json json;
    tarn__json_token token;
    tarn__json_init(&json, texts[i], strlen(texts[i]));
    ck_assert(tarn__json_next(&json, &token));
    ck_assert(tarn__json_next(&json, &token));
    ck_assert(!tarn__json_skip(&json, &token));
    ck_assert_ptr_nonnull(json.wrong);
    ck_assert(!tarn__json_skip(&json, &token));
  }
}

// However a text is cut, something is missing.
TEST(a_cut_text_is_not_whole) {
  static const char text[] =
      "{\"a\\u0041\":[-1.5e3,true,null,\"\xe2\x82\xac\\ud834\\udd1e\"]}";
  tarn__json json;
  for (size_t size = 0; size < sizeof text - 1; size++) {
    read_bytes(&json, text, size);
    require(json.wrong != NULL && json.at <= size);
  }
  read_bytes(&json, text, sizeof text - 1);
  ck_assert_ptr_null(json.wrong);
}

#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))
