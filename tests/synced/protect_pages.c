// Which pages are protected, and when.
#include <stdlib.h>

#include "protect_kit.h"

// --- whose pages -----------------------------------------------------------

TEST_LOOP(the_pool_gets_pages_that_it_can_use, PINNING_DEVICES) {
  set_up_pinned(_i);
  tarn_pool *pool = NULL;
  tarn_block block;
  tarn_place place =
      pinning != NULL ? (tarn_place){pinning, TARN_PLACE_HOST} : TARN_HOST;
  assert_ok(tarn_pool_of(place, &pool));
  char *at = fill();
  write_at(away, 0, TARN_ALL);
  assert_none(at);
  assert_ok(tarn_synced_destroy(buffer));
  assert_ok(tarn_pool_alloc(pool, 4 * page, page, NULL, &block));
  void *pointer = NULL;
  assert_ok(tarn_device_host_view(place, block.address, 4 * page, &pointer));
  memset(pointer, 1, 4 * page);
  assert_write(at);
  assert_ok(tarn_pool_free(&block, NULL));
  buffer = create(1, TARN_SYNCED_PROTECT);
  tear_down();
}

TEST_LOOP(neighbours_in_the_pool_are_left_alone, PINNING_DEVICES) {
  set_up_pinned(_i);
  tarn_synced *whole = buffer;
  buffer = create(size, TARN_SYNCED_NO_PROTECT);
  char *plain = fill();
  tarn_synced *unprotected = buffer;
  buffer = whole;
  char *at = fill();
  write_at(away, 0, TARN_ALL);
  assert_none(at);
  assert_write(plain);
  assert_write(plain + size - 1);
  assert_ok(tarn_synced_destroy(unprotected));
  tear_down();
}

// --- when ------------------------------------------------------------------

TEST(flags_go_before_the_environment) {
  ck_assert_int_eq(setenv("TARN_SYNCED_PROTECT", "1", 1), 0);
  ck_assert(tarn__protect_default(0));
  ck_assert(!tarn__protect_default(TARN_SYNCED_NO_PROTECT));
  ck_assert_int_eq(setenv("TARN_SYNCED_PROTECT", "0", 1), 0);
  ck_assert(!tarn__protect_default(0));
  ck_assert(tarn__protect_default(TARN_SYNCED_PROTECT));
  ck_assert_int_eq(setenv("TARN_SYNCED_PROTECT", "", 1), 0);
  bool as_built = tarn__protect_default(0);
  ck_assert_int_eq(unsetenv("TARN_SYNCED_PROTECT"), 0);
  ck_assert(tarn__protect_default(0) == as_built);
}

TEST(the_environment_decides_where_flags_do_not) {
  ck_assert_int_eq(setenv("TARN_SYNCED_PROTECT", "1", 1), 0);
  set_up(NULL);
  assert_ok(tarn_synced_destroy(buffer));
  buffer = create(size, 0);
  char *at = fill();
  assert_read(at);
  ck_assert_int_eq(setenv("TARN_SYNCED_PROTECT", "0", 1), 0);
  assert_ok(tarn_synced_destroy(buffer));
  buffer = create(size, 0);
  at = fill();
  assert_write(at);
  tear_down();
}

int main(void) {
  faults_install();
  return run_tests();
}
