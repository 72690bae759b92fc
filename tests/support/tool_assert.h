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

// What tool_line(|line|) writes, which is done.
static inline tool_output tool_done(const char *line) {
  tool_output o = tool_line(line);
  assert_done(&o);
  return o;
}

// The keys of the object at |path|, joined by commas.
static inline void assert_keys(const char *json, const char *path,
                               const char *keys) {
  char found[512];
  ck_assert_str_eq(json_keys(json, path, found, sizeof found), keys);
}

// It ended with |status| and said nothing but why.
static inline void assert_exits(tool_output o, int status, const char *part) {
  ck_assert_msg(o.status == status, "exit %d: %s", o.status, o.err);
  ck_assert_str_eq(o.out, "");
  assert_contains(o.err, part);
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
