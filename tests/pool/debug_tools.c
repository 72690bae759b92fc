// AddressSanitizer and valgrind stop a program at the instruction that touches
// a guard or a freed block of a pool that debugs, and let a clean one alone.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/run.h"
#include "support/tool_run.h"

static const char *const strategies[] = {"page_unit_pool", "no_pool",
                                         "async_pool", "buddy_pool:init=1M",
                                         "arena_pool"};
enum { STRATEGIES = sizeof strategies / sizeof strategies[0] };

// The tool of tool_run.h is env(1) here, which starts what it is told.
static void assert_clean(tool_output o) {
  ck_assert_msg(o.status == 0, "%d: %s%s", o.status, o.out, o.err);
  tool_output_free(&o);
}

// It got as far as to do it, and was stopped with |says|.
static void assert_stopped(tool_output o, const char *says) {
  ck_assert_int_ne(o.status, 0);
  ck_assert_msg(strstr(o.out, "about to") != NULL, "%s%s", o.out, o.err);
  ck_assert_msg(strstr(o.err, says) != NULL, "%s", o.err);
  tool_output_free(&o);
}

// --- AddressSanitizer ------------------------------------------------------

#ifdef TARN_VICTIM_ASAN
#define WITH_ASAN "ASAN_OPTIONS=abort_on_error=0", TARN_VICTIM_ASAN

TEST_LOOP(asan_stops_an_overrun, STRATEGIES) {
  assert_stopped(tool_run(WITH_ASAN, strategies[_i], "overrun"),
                 "use-after-poison");
}

TEST_LOOP(asan_stops_a_use_after_free, STRATEGIES) {
  assert_stopped(tool_run(WITH_ASAN, strategies[_i], "stale"),
                 "use-after-poison");
}

TEST(asan_lets_a_clean_program_alone) {
  for (size_t s = 0; s < STRATEGIES; s++)
    assert_clean(tool_run(WITH_ASAN, strategies[s], "clean"));
}
#else
TEST(asan_cannot_be_had) {
  note_skipped("AddressSanitizer over pools that debug",
               "this build or compiler has none");
}
#endif

// --- valgrind --------------------------------------------------------------

#ifdef TARN_VICTIM_PLAIN
static bool has_valgrind(void) {
  tool_output o = tool_line("valgrind --version");
  bool there = o.status == 0;
  tool_output_free(&o);
  if (!there) {
    note_skipped("valgrind over pools that debug", "it is not installed");
  }
  return there;
}

// Valgrind takes seconds to start.
static const char *const few[] = {"page_unit_pool", "arena_pool"};
enum { FEW = sizeof few / sizeof few[0] };

#define WITH_VALGRIND "valgrind", "-q", "--error-exitcode=9", TARN_VICTIM_PLAIN

TEST(valgrind_stops_each_misuse) {
  if (!has_valgrind()) return;
  for (size_t s = 0; s < FEW; s++) {
    assert_stopped(tool_run(WITH_VALGRIND, few[s], "overrun"),
                   "Invalid write of size 1");
    assert_stopped(tool_run(WITH_VALGRIND, few[s], "stale"),
                   "Invalid write of size 1");
    assert_stopped(tool_run(WITH_VALGRIND, few[s], "unset"),
                   "depends on uninitialised value");
  }
}

TEST(valgrind_lets_a_clean_program_alone) {
  if (!has_valgrind()) return;
  for (size_t s = 0; s < FEW; s++)
    assert_clean(tool_run(WITH_VALGRIND, few[s], "clean"));
}
#else
TEST(valgrind_cannot_be_had) {
  note_skipped("valgrind over pools that debug",
               "built with a sanitizer, or without its header");
}
#endif
