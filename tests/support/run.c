#include "support/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/driver.h"

int test_seconds = 300;

static int run_suite(Suite *suite) {
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static struct {
  test_entry *first;
  test_entry *last;
  const char *part;
  bool next_on_devices;
  SFun set_up;
  SFun tear_down;
} program;

void test_is_on_devices(void) {
  program.next_on_devices = true;
}

void test_add(test_entry *entry, const TTest *test, int first, int end) {
  *entry = (test_entry){.test = test,
                        .first = first,
                        .end = end,
                        .part = program.part,
                        .on_devices = program.next_on_devices};
  program.next_on_devices = false;
  if (program.last != NULL) {
    program.last->next = entry;
  } else {
    program.first = entry;
  }
  program.last = entry;
}

void test_fixture(SFun set_up, SFun tear_down) {
  program.set_up = set_up;
  program.tear_down = tear_down;
}

void test_part(const char *part) {
  program.part = part;
}

static struct {
  void (*undo)(void *context);
  void *context;
} undone[64];
static size_t to_undo;

void after_test(void (*undo)(void *context), void *context) {
  ck_assert_uint_lt(to_undo, sizeof undone / sizeof *undone);
  undone[to_undo].undo = undo;
  undone[to_undo++].context = context;
}

void forget(const void *context) {
  size_t i = to_undo;
  while (i > 0 && undone[i - 1].context != context)
    i--;
  ck_assert_uint_gt(i, 0);
  for (to_undo--; i <= to_undo; i++)
    undone[i - 1] = undone[i];
}

static void undo_all(void) {
  while (to_undo-- > 0)
    undone[to_undo].undo(undone[to_undo].context);
}

// A run on a real device is for the tests over the list of devices.
static bool is_wanted(const test_entry *entry, const char *part) {
  if (driver_wanted() != NULL && !entry->on_devices) return false;
  if (part == NULL || entry->part == NULL) return part == entry->part;
  return strcmp(part, entry->part) == 0;
}

int run_tests(void) {
  return run_part(NULL);
}

// Environment variables of the user that change the library's defaults.
static void forget_defaults(void) {
  static const char *const defaults[] = {
      "TARN_PLUGIN_DIR", "TARN_POOL", "TARN_POOL_DEBUG",
      "TARN_SNAPSHOT_ON_FULL", "TARN_SYNCED_PROTECT"};
  for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
    unsetenv(defaults[i]);
}

static int run_wanted(const char *part) {
  Suite *suite = suite_create(program_invocation_short_name);
  TCase *tcase = tcase_create("all");
  tcase_set_timeout(tcase, test_seconds);
  tcase_add_checked_fixture(tcase, program.set_up, program.tear_down);
  tcase_add_checked_fixture(tcase, NULL, undo_all);
  bool any = part == NULL && driver_wanted() == NULL;
  for (const test_entry *e = program.first; e != NULL; e = e->next) {
    if (!is_wanted(e, part)) continue;
    any = true;
    tcase_add_loop_test(tcase, e->test, e->first, e->end);
  }
  suite_add_tcase(suite, tcase);
  int status = run_suite(suite);
  return any ? status : EXIT_FAILURE;
}

// For the test of the house that looks for programs without a run on drivers.
static int count_on_devices(void) {
  int count = 0;
  for (const test_entry *e = program.first; e != NULL; e = e->next)
    count += e->on_devices;
  printf("%d\n", count);
  return EXIT_SUCCESS;
}

int run_part(const char *part) {
  char reason[512];
  const char *device = driver_wanted();
  forget_defaults();
  if (device != NULL && strcmp(device, "count") == 0) return count_on_devices();
  if (device != NULL && !driver_is_there(device, reason, sizeof reason)) {
    char what[256];
    snprintf(what, sizeof what, "%s on %s", program_invocation_short_name,
             device);
    return skip_program(what, reason);
  }
  return run_wanted(part);
}

int skip_program(const char *what, const char *why) {
  printf("SKIPPED: %s: %s\n", what, why);
  return 77;
}

void note_skipped(const char *what, const char *why) {
  printf("SKIPPED: %s: %s\n", what, why);
  fflush(stdout);
}
