// The hashed map of names.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "support/faults.h"
#include "support/run.h"

TEST(finds_what_was_added_in_its_order) {
  tarn__names names = {0};
  static int values[3000];
  for (int i = 0; i < 3000; i++) {
    char name[32];
    snprintf(name, sizeof name, "layer%d.weight", i);
    assert_ok(tarn__names_add(&names, name, &values[i]));
  }
  for (int i = 0; i < 3000; i++) {
    char name[32];
    snprintf(name, sizeof name, "layer%d.weight", i);
    tarn__name *entry = tarn__names_find(&names, name);
    ck_assert_ptr_nonnull(entry);
    ck_assert_ptr_eq(entry->value, &values[i]);
    ck_assert_ptr_eq(entry, &names.entries[i]);
  }
  ck_assert_ptr_null(tarn__names_find(&names, "layer3000.weight"));
  ck_assert_ptr_null(tarn__names_find(&names, NULL));
  tarn__names_deinit(&names);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

TEST(refuses_what_is_there_and_what_is_empty) {
  tarn__names names = {0};
  ck_assert_ptr_null(tarn__names_find(&names, "w"));
  assert_ok(tarn__names_add(&names, "w", NULL));
  assert_status(tarn__names_add(&names, "w", NULL), TARN_E_INVALID);
  assert_error_says("'w' is there already");
  assert_status(tarn__names_add(&names, "", NULL), TARN_E_INVALID);
  assert_status(tarn__names_add(&names, NULL, NULL), TARN_E_INVALID);
  ck_assert_uint_eq(names.count, 1);
  tarn__names_deinit(&names);
}

TEST(lists_names_as_far_as_they_fit) {
  tarn__names names = {0};
  char text[32];
  tarn__names_text(&names, text, sizeof text);
  ck_assert_str_eq(text, "");
  assert_ok(tarn__names_add(&names, "cpu", NULL));
  assert_ok(tarn__names_add(&names, "cuda", NULL));
  tarn__names_text(&names, text, sizeof text);
  ck_assert_str_eq(text, "cpu, cuda");
  tarn__names_text(&names, text, 7);
  ck_assert_str_eq(text, "cpu, c");
  tarn__names_deinit(&names);
}

static void add_many(void *context) {
  (void)context;
  tarn__names names = {0};
  for (int i = 0; i < 40; i++) {
    char name[16];
    snprintf(name, sizeof name, "n%d", i);
    size_t count = names.count;
    size_t held = tarn_host_memory();
    tarn_status status = tarn__names_add(&names, name, NULL);
    ck_assert(status == TARN_OK || status == TARN_E_NOMEM);
    ck_assert_uint_eq(names.count, count + (status == TARN_OK));
    if (status != TARN_OK) ck_assert_uint_eq(tarn_host_memory(), held);
    ck_assert((tarn__names_find(&names, name) != NULL) == (status == TARN_OK));
  }
  tarn__names_deinit(&names);
}

TEST(survives_every_fault) {
  ck_assert_uint_gt(faults_sweep(add_many, NULL), 80);
}

int main(void) {
  faults_install();
  return run_tests();
}
