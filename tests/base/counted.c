// Counts of users: the last one ends the object, on whatever thread it is.
#include "tarn/counted.h"

#include <string.h>

#include "support/run.h"
#include "support/threads.h"

static int ended;
static char seen[TARN_COUNTED_MOST];

static void note_end(void *object) {
  ended++;
  memcpy(seen, object, 6);
}

static tarn_counted *make(void *object, size_t size) {
  tarn_counted *made = NULL;
  ended = 0;
  assert_ok(tarn_counted_create(object, size, note_end, &made));
  return made;
}

TEST(the_last_user_ends_the_object) {
  char object[] = "table";
  tarn_counted *counted = make(object, 0);
  tarn_counted_hold(counted);
  ck_assert_uint_eq(tarn_counted_users(counted), 2);
  strcpy(object, "later");
  tarn_counted_release(counted);
  ck_assert_int_eq(ended, 0);
  tarn_counted_release(counted);
  ck_assert_int_eq(ended, 1);
  ck_assert_str_eq(seen, "later");
}

TEST(a_copy_is_of_the_time_of_creation) {
  char object[] = "block";
  tarn_counted *counted = make(object, sizeof object);
  strcpy(object, "later");
  tarn_counted_release(counted);
  ck_assert_str_eq(seen, "block");
}

TEST(the_only_user_closes_without_an_end) {
  char object[] = "table";
  tarn_counted *counted = make(object, 0);
  tarn_counted_hold(counted);
  assert_status(tarn_counted_close(counted), TARN_E_STATE);
  assert_error_says("1 views");
  tarn_counted_release(counted);
  assert_ok(tarn_counted_close(counted));
  ck_assert_int_eq(ended, 0);
  tarn_counted_release(NULL);
}

TEST(wrong_arguments_are_refused) {
  char object[] = "table";
  tarn_counted *made = NULL;
  assert_status(tarn_counted_create(NULL, 0, NULL, &made), TARN_E_INVALID);
  assert_status(tarn_counted_create(object, 0, NULL, NULL), TARN_E_INVALID);
  assert_status(tarn_counted_create(object, TARN_COUNTED_MOST + 1, NULL, &made),
                TARN_E_INVALID);
  assert_error_says("65 bytes");
  ck_assert_ptr_null(made);
  assert_status(tarn_counted_close(NULL), TARN_E_INVALID);
}

enum { THREADS = 4, TURNS = 20000 };

static void *hold_and_release(void *counted) {
  for (int i = 0; i < TURNS; i++) {
    tarn_counted_hold(counted);
    tarn_counted_release(counted);
  }
  tarn_counted_release(counted);
  return NULL;
}

TEST(threads_end_it_once) {
  char object[] = "table";
  pthread_t threads[THREADS];
  tarn_counted *counted = make(object, 0);
  for (int i = 0; i < THREADS; i++) {
    tarn_counted_hold(counted);
    ck_assert_int_eq(
        pthread_create(&threads[i], NULL, hold_and_release, counted), 0);
  }
  tarn_counted_release(counted);
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  ck_assert_int_eq(ended, 1);
}
