#include "support/run.h"

#include <stdio.h>
#include <stdlib.h>

int run_suite(Suite *suite) {
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int skip_program(const char *what, const char *why) {
  printf("SKIPPED: %s: %s\n", what, why);
  return 77;
}

void note_skipped(const char *what, const char *why) {
  printf("SKIPPED: %s: %s\n", what, why);
  fflush(stdout);
}

// Fit for sanitizers, and machines with other work.
enum { CASE_SECONDS = 240 };

void add_case(Suite *suite, const char *name, const TTest *const *tests,
              size_t count) {
  TCase *tcase = tcase_create(name);
  tcase_set_timeout(tcase, CASE_SECONDS);
  for (size_t i = 0; i < count; i++)
    tcase_add_test(tcase, tests[i]);
  suite_add_tcase(suite, tcase);
}

void add_looped_case(Suite *suite, const char *name, const TTest *test,
                     int first, int end) {
  TCase *tcase = tcase_create(name);
  tcase_set_timeout(tcase, CASE_SECONDS);
  tcase_add_loop_test(tcase, test, first, end);
  suite_add_tcase(suite, tcase);
}
