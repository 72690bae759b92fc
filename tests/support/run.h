// run.h - what every test program has in common.
#ifndef TARN_TESTS_SUPPORT_RUN_H_
#define TARN_TESTS_SUPPORT_RUN_H_

#include <check.h>

#include "tarn/base.h"

// A test program defines tests, and nothing else: the main function of the
// support library runs all of them, in the order of the file.
//
//   TEST(a_freed_block_is_reused) {
//     ...
//   }
//
//   TEST_LOOP(each_strategy_aligns, STRATEGIES) {
//     ... strategy_name(_i) ...
//   }
//
// TEST_LOOP runs a test for each _i from 0 to |end| - 1, and not at all if
// |end| is 0; TEST_RANGE begins with |first|.
#define TEST(name) TEST_RANGE(name, 0, 1)
#define TEST_LOOP(name, end) TEST_RANGE(name, 0, end)
#define TEST_RANGE(name, first, end)                          \
  static const TTest *name;                                   \
  __attribute__((constructor)) static void name##_add(void) { \
    static test_entry entry;                                  \
    test_add(&entry, name, (int)(first), (int)(end));         \
  }                                                           \
  START_TEST(name)

// |set_up| runs before each test of the program, in the process of the test,
// and |tear_down| after it; either may be NULL. At most once in a program.
#define FIXTURE(set_up, tear_down)                             \
  __attribute__((constructor)) static void fixture_add(void) { \
    test_fixture(set_up, tear_down);                           \
  }                                                            \
  struct fixture_ends

// At the end of the test, after its last line and before |tear_down|, calls
// |undo| with |context|; the newest first. What opens something calls this to
// have it closed, so that a test need not.
void after_test(void (*undo)(void *context), void *context);

// Cancels the newest call for |context|, which the caller makes now, or never.
void forget(const void *context);

// Runs the tests of the program; returns main's exit status. A program that
// must do something before its tests has a main function that calls this.
// Environment variables of the user that change the library's defaults are
// removed first.
int run_tests(void);

// What TEST and FIXTURE expand to.
typedef struct test_entry {
  const TTest *test;
  int first;
  int end;
  struct test_entry *next;
} test_entry;
void test_add(test_entry *entry, const TTest *test, int first, int end);
void test_fixture(SFun set_up, SFun tear_down);

// Runs |suite| and frees it; returns main's exit status.
int run_suite(Suite *suite);

// Exit status of a program that CTest is to report as skipped, after a line
// that names what was skipped and why.
int skip_program(const char *what, const char *why);

// The same from within a test case, which then passes: Check has no skip.
void note_skipped(const char *what, const char *why);

// Adds |count| tests to a case named |name| of |suite|, with a timeout fit
// for sanitizers.
void add_case(Suite *suite, const char *name, const TTest *const *tests,
              size_t count);

// Adds a case of one test, which is called with _i from |first| to |end| - 1.
void add_looped_case(Suite *suite, const char *name, const TTest *test,
                     int first, int end);

#define ADD_CASE(suite, name, ...)                      \
  add_case(                                             \
      suite, name, (const TTest *const[]){__VA_ARGS__}, \
      sizeof((const TTest *const[]){__VA_ARGS__}) / sizeof(const TTest *))

// For conditions that hold very often: Check's own asserts write a mark to a
// file each time that they are passed.
#define require(condition)                            \
  do {                                                \
    if (!(condition)) ck_abort_msg("%s", #condition); \
  } while (0)

#define assert_status(expression, expected)                        \
  do {                                                             \
    tarn_status assert_status_got = (expression);                  \
    if (assert_status_got != (expected)) {                         \
      ck_abort_msg("%s: %s, not %s: %s", #expression,              \
                   tarn_status_name(assert_status_got),            \
                   tarn_status_name(expected), tarn_last_error()); \
    }                                                              \
  } while (0)

#define assert_ok(expression) assert_status(expression, TARN_OK)

// The last error contains |part|.
#define assert_error_says(part)                                             \
  ck_assert_msg(strstr(tarn_last_error(), (part)) != NULL,                  \
                "the last error '%s' does not say '%s'", tarn_last_error(), \
                (part))

#endif  // TARN_TESTS_SUPPORT_RUN_H_
