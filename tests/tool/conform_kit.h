// What the tests of `tarn conform` have in common: an environment in which
// faulty plug-ins end nothing, and checks by name in the JSON.
#ifndef TARN_TESTS_TOOL_CONFORM_KIT_H_
#define TARN_TESTS_TOOL_CONFORM_KIT_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

// Under the address sanitizer, the allocator of a plug-in that uses the C
// library's would end the process where it should refuse.
static inline void set_up(void) {
  tool_files_begin();
  const char *before = getenv("ASAN_OPTIONS");
  char options[512];
  snprintf(options, sizeof options, "%s%sallocator_may_return_null=1",
           before != NULL ? before : "", before != NULL ? ":" : "");
  setenv("ASAN_OPTIONS", options, 1);
  unsetenv("TARN_FAULT");
}

static inline void tear_down(void) {
  tool_files_end();
}

static inline bool is_at(const char *json, const char *path,
                         const char *value) {
  char quoted[256];
  snprintf(quoted, sizeof quoted, "\"%s\"", value);
  return json_is(json, path, quoted);
}

static const char begin[] = "{\"name\":\"";  // of each check

// Where the check |name| is among the checks; fails if it is not there. By the
// text alone: walking the document for each of 170 checks takes minutes.
static inline size_t find_check(const char *json, const char *name) {
  size_t index = 0;
  size_t length = strlen(name);
  for (const char *at = strstr(json, begin); at != NULL; index++) {
    at += strlen(begin);
    if (strncmp(at, name, length) == 0 && at[length] == '"') return index;
    at = strstr(at, begin);
  }
  ck_abort_msg("no check %s", name);
  return 0;
}

static inline void assert_level(const char *json, const char *name,
                                const char *level) {
  char path[64];
  snprintf(path, sizeof path, "checks.%zu.level", find_check(json, name));
  ck_assert_msg(is_at(json, path, level), "%s: %.40s, not %s", name,
                json_at(json, path), level);
}

static inline void assert_result(const char *json, const char *name,
                                 const char *result) {
  char path[64];
  char detail[64];
  size_t index = find_check(json, name);
  snprintf(path, sizeof path, "checks.%zu.result", index);
  snprintf(detail, sizeof detail, "checks.%zu.detail", index);
  const char *text = json_at(json, detail);
  ck_assert_msg(is_at(json, path, result), "%s is not '%s': %.200s", name,
                result, text);
}

#endif  // TARN_TESTS_TOOL_CONFORM_KIT_H_
