// tool_assert.h - what tests of the tool say of its output.
#ifndef TARN_TESTS_SUPPORT_TOOL_ASSERT_H_
#define TARN_TESTS_SUPPORT_TOOL_ASSERT_H_

#include <check.h>
#include <string.h>

#include "support/tool_run.h"

static inline void assert_contains(const char *text, const char *part) {
  ck_assert_msg(strstr(text, part) != NULL, "'%s' is not in '%s'", part, text);
}

// It did what it was told, and had nothing to complain about.
static inline void assert_done(const tool_output *o) {
  ck_assert_msg(o->status == 0, "exit %d: %s", o->status, o->err);
  ck_assert_str_eq(o->err, "");
}

// It ended with |status| and said nothing but why.
static inline void assert_fails(tool_output o, int status, const char *part) {
  ck_assert_msg(o.status == status, "exit %d: %s", o.status, o.err);
  ck_assert_str_eq(o.out, "");
  assert_contains(o.err, part);
}

// It was used wrongly, and says so.
static inline void assert_misuse(tool_output o, const char *part) {
  assert_fails(o, 2, part);
}

#endif  // TARN_TESTS_SUPPORT_TOOL_ASSERT_H_
