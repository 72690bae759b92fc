// tool_assert.h - what tests of the tool say of its output.
#ifndef TARN_TESTS_SUPPORT_TOOL_ASSERT_H_
#define TARN_TESTS_SUPPORT_TOOL_ASSERT_H_

#include <check.h>
#include <string.h>

#include "support/json_check.h"
#include "support/tool_run.h"

static inline void assert_contains(const char *text, const char *part) {
  ck_assert_msg(strstr(text, part) != NULL, "'%s' is not in '%s'", part, text);
}

// It did what it was told, and had nothing to complain about.
static inline void assert_done(const tool_output *o) {
  ck_assert_msg(o->status == 0, "exit %d: %s", o->status, o->err);
  ck_assert_str_eq(o->err, "");
}

// |o|, which is done.
static inline tool_output tool_as_done(tool_output o) {
  assert_done(&o);
  return o;
}

// What tool_run(...) or tool_line(|line|) writes, which is done.
#define tool_did(...) tool_as_done(tool_run(__VA_ARGS__))
#define tool_done(line) tool_as_done(tool_line(line))

// |o|, which ended with |status|.
static inline tool_output tool_ended(int status, tool_output o) {
  ck_assert_msg(o.status == status, "exit %d: %s", o.status, o.err);
  return o;
}

// What tool_run(...) writes, which ends with |status|.
#define tool_ends(status, ...) tool_ended(status, tool_run(__VA_ARGS__))

// The keys of the object at |path|, joined by commas.
static inline void assert_keys(const char *json, const char *path,
                               const char *keys) {
  char found[512];
  ck_assert_str_eq(json_keys(json, path, found, sizeof found), keys);
}

// One JSON document, on one line.
static inline void assert_json_line(const char *text) {
  ck_assert(json_valid(text));
  ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
}

// The value at |path| is |expected|, as JSON writes it.
static inline void assert_value(const char *json, const char *path,
                                const char *expected) {
  const char *at = json_at(json, path);
  ck_assert_msg(json_is(json, path, expected), "%s is %.90s, not %s", path,
                at != NULL ? at : "nowhere", expected);
}

static inline void assert_number(const char *json, const char *path,
                                 double expected) {
  double value = json_number(json, path);
  ck_assert_msg(value == expected, "%s is %.17g, not %.17g", path, value,
                expected);
}

// It ended with |status| and said nothing but why.
static inline void assert_exits(tool_output o, int status, const char *part) {
  tool_ended(status, o);
  ck_assert_str_eq(o.out, "");
  assert_contains(o.err, part);
}

// It ended with |status|, whatever else it said.
static inline void assert_ended(tool_output o, int status, const char *says) {
  assert_contains(tool_ended(status, o).err, says);
}

// It was used wrongly, and says so.
static inline void assert_misuse(tool_output o, const char *part) {
  assert_exits(o, 2, part);
}

// The same of tool_line(|line|).
static inline void assert_misused(const char *line, const char *part) {
  assert_misuse(tool_line(line), part);
}

#endif  // TARN_TESTS_SUPPORT_TOOL_ASSERT_H_
