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

// The tests behind it run only where the program has the argument |part|, and
// those before it where it has none. At most once in a program.
#define PART(part)                                          \
  __attribute__((constructor)) static void part_add(void) { \
    test_part(part);                                        \
  }                                                         \
  struct part_ends

// Each test of the program may take |seconds|, not the usual 300, which are fit
// for sanitizers and machines with other work.
#define SECONDS(seconds)                                       \
  __attribute__((constructor)) static void seconds_add(void) { \
    test_seconds = seconds;                                    \
  }                                                            \
  struct seconds_ends

// At the end of the test, after its last line and before |tear_down|, calls
// |undo| with |context|; the newest first. What opens something calls this to
// have it closed, so that a test need not.
void after_test(void (*undo)(void *context), void *context);

// Cancels the newest call for |context|, which the caller makes now, or never.
void forget(const void *context);

// Runs the tests of the program; returns main's exit status. With
// TARN_TEST_DEVICE set these are the ones over the list of devices (places.h),
// on that device; where it is "count", their number is printed and none runs. A
// program that must do something before its tests has a main function that
// calls this. Environment variables of the user that change the library's
// defaults are removed first.
int run_tests(void);

// The same with the tests of |part| only, which must have one; NULL: with those
// of none.
int run_part(const char *part);

// The test that is added next is one over the list of places.h. Its count calls
// this.
void test_is_on_devices(void);

// The macros above expand to these.
typedef struct test_entry {
  const TTest *test;
  int first;
  int end;
  const char *part;  // NULL: none
  bool on_devices;
  struct test_entry *next;
} test_entry;
void test_add(test_entry *entry, const TTest *test, int first, int end);
void test_fixture(SFun set_up, SFun tear_down);
void test_part(const char *part);
extern int test_seconds;

// Exit status of a program that CTest is to report as skipped, after a line
// that names what was skipped and why.
int skip_program(const char *what, const char *why);

// The same from within a test case, which then passes: Check has no skip.
void note_skipped(const char *what, const char *why);

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

// |expression| fails as |expected|, and the last error contains |part|.
#define assert_fails(expression, expected, part) \
  do {                                           \
    assert_status(expression, expected);         \
    assert_error_says(part);                     \
  } while (0)

#endif  // TARN_TESTS_SUPPORT_RUN_H_
