// layout.c - tarn_layout_json(): what the headers declare, as one text.
//
// The text is a constant of the compiler's: nothing is put together at run
// time. It is an object of arrays of char that stand one behind the other, some
// with words, some with the digits of a size or an offset that only the
// compiler knows:
//
//   text0                  size1    text2              size3    ...
//   "tarn_block":{"size":  '   32'  ,"align":          '    8'
//
// document.inc, and the lists that it includes, are read twice: first each word
// of theirs is a member of the struct, then the member's contents. Words are
// JSON, made strings by the preprocessor; those between parentheses have to be
// tokens of C, as texts and numbers are. Blanks before a number are JSON too.
//
// Invariants: no padding, one zero byte, at the end. A number that is said in
// words is the compiler's own, or this file does not compile.
#include "tarn/layout.h"

#include "tarn/compat_awnn.h"
#include "tarn/device_ext.h"
#include "tarn/sim.h"
#include "tarn/tarn.h"

#define SHOWN(token) #token
#define VERSION_TEXT(major, minor, patch) \
  SHOWN(major) "." SHOWN(minor) "." SHOWN(patch)
#define VERSION \
  VERSION_TEXT(TARN_VERSION_MAJOR, TARN_VERSION_MINOR, TARN_VERSION_PATCH)

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BYTE_ORDER "little"
#else
#define BYTE_ORDER "big"
#endif

// Words of the lists, in terms of LITERAL, SIZE and SAME.
#define TEXT(...) LITERAL(#__VA_ARGS__)
#define STRING(text) LITERAL("\"" text "\"")
#define COMMA LITERAL(",")
#define END LITERAL("}}")
#define NUMBER(name, number) \
  SAME(name, number, #name) LITERAL("\"" #name "\":" #number)
#define ENUM(type)                    \
  LITERAL("\"" #type "\":{\"size\":") \
  SIZE(sizeof(type)) LITERAL(",\"values\":{")
#define STRUCT(type)                  \
  LITERAL("\"" #type "\":{\"size\":") \
  SIZE(sizeof(type))                  \
  LITERAL(",\"align\":") SIZE(_Alignof(type)) LITERAL(",\"fields\":{")
#define FIELD(type, field, ...)          \
  LITERAL("\"" #field "\":{\"offset\":") \
  SIZE(offsetof(type, field))            \
  LITERAL(",\"size\":")                  \
  SIZE(sizeof(((type *)NULL)->field)) LITERAL("," #__VA_ARGS__ "}")

#define JOIN(a, b) a##b
#define MEMBER(number) JOIN(text, number)

enum { SIZE_DIGITS = 5, SIZE_LIMIT = 100000 };

typedef struct layout {
#define LITERAL(text) char MEMBER(__COUNTER__)[sizeof(text) - 1];
#define SIZE(value) \
  char MEMBER(__COUNTER__)[(value) < SIZE_LIMIT ? SIZE_DIGITS : -1];
#define SAME(value, said, name) \
  _Static_assert((uint64_t)(value) == said##ull, name ": run scripts/layout");
#include "layout/document.inc"
#undef LITERAL
#undef SIZE
#undef SAME
  char end;
} layout;

#define DIGIT(value, power) \
  ((value) < (power) ? ' ' : (char)('0' + (value) / (power) % 10))

static const layout whole = {
#define LITERAL(text) text,
#define SIZE(value)                                            \
  {DIGIT(value, 10000), DIGIT(value, 1000), DIGIT(value, 100), \
   DIGIT(value, 10), (char)('0' + (value) % 10)},
#define SAME(value, said, name)
#include "layout/document.inc"
    0};

const char *tarn_layout_json(void) {
  return (const char *)&whole;
}
