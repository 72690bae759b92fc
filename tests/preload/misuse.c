// Wrong frees under libtarn-malloc.so end a program as the C library does, and
// say what is wrong.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "preload_run.h"
#include "support/run.h"

enum { ABORTED = 128 + 6 };

static void assert_aborts(const char *mode, const char *says) {
  ran = tool_run("preload", "--", TARN_PRELOAD_VICTIM, mode);
  ck_assert_msg(ran.status == ABORTED, "%s: status %d: %s", mode, ran.status,
                ran.err);
  ck_assert_msg(strstr(ran.err, says) != NULL, "'%s' is not in '%s'", says,
                ran.err);
}

TEST(a_block_that_is_freed_twice) {
  assert_aborts("freed_twice", "libtarn-malloc: free(): invalid pointer 0x");
  ck_assert_ptr_nonnull(strstr(ran.err, "was freed before"));
}

TEST(an_address_inside_a_block) {
  assert_aborts("freed_inside", "that is 8192 bytes into a block");
}

TEST(a_block_that_is_resized_after_its_end) {
  assert_aborts("moved_after_free", "libtarn-malloc: realloc(): invalid");
}

// What is neither the pool's nor the C library's is the C library's to refuse.
TEST(memory_of_nobody) {
  assert_aborts("free_of_mapping", "invalid pointer");
  ck_assert_ptr_null(strstr(ran.err, "libtarn-malloc"));
}

FIXTURE(tool_files_begin, preload_end);

int main(void) {
  return preload_cannot() ? preload_skip() : run_tests();
}
