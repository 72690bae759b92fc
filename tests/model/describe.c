// Describing a net: tensors by kind and by name, their sizes, steps and what
// they may use.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/faults.h"
#include "support/run.h"
#include "tarn/model.h"
#include "tarn/model_run.h"

static tarn_model *make(int64_t max_batch) {
  const tarn_model_options options = {
      .struct_size = sizeof options, .name = "net", .max_batch = max_batch};
  tarn_model *model = NULL;
  assert_ok(tarn_model_create(&options, &model));
  ck_assert_ptr_nonnull(model);
  return model;
}

static tarn_tensor *add(tarn_model *model, tarn_tensor_kind kind,
                        const char *name, const int64_t *dims, size_t rank) {
  tarn_tensor *tensor = NULL;
  assert_ok(tarn_model_add(model, kind, name, TARN_DTYPE_F32,
                           (tarn_shape){dims, rank}, &tensor));
  ck_assert_ptr_nonnull(tensor);
  return tensor;
}

// --- kinds, names, order ---------------------------------------------------

TEST(test_kinds_in_order_of_attaching) {
  tarn_model *model = make(4);
  const int64_t w[] = {3, 5};
  const int64_t y[] = {TARN_DIM_BATCH, 5};
  tarn_tensor *a = add(model, TARN_PARAM, "a", w, 2);
  tarn_tensor *b = add(model, TARN_OUTPUT, "b", y, 2);
  tarn_tensor *c = add(model, TARN_PARAM, "c", w, 2);
  tarn_list *params = tarn_model_list(model, TARN_PARAM);
  ck_assert_ptr_eq(tarn_list_entry(params->next, tarn_tensor, node), a);
  ck_assert_ptr_eq(tarn_list_entry(params->prev, tarn_tensor, node), c);
  tarn_list *all = tarn_model_list(model, TARN_KIND_ALL);
  ck_assert_ptr_eq(tarn_list_entry(all->next->next, tarn_tensor, among), b);
  ck_assert_uint_eq(tarn_model_count(model, TARN_PARAM), 2);
  ck_assert_uint_eq(tarn_model_count(model, TARN_KIND_ALL), 3);
  ck_assert_ptr_eq(tarn_model_param(model, "c"), c);
  ck_assert_ptr_eq(tarn_model_get(model, TARN_OUTPUT, "b"), b);
  ck_assert_ptr_null(tarn_model_list(model, TARN_STATE));
  assert_error_says("no list");
  assert_ok(tarn_model_destroy(model));
}

TEST(test_unknown_names_say_so) {
  tarn_model *model = make(1);
  const int64_t w[] = {2};
  tarn_tensor *y = add(model, TARN_OUTPUT, "y", w, 1);
  ck_assert_ptr_eq(tarn_model_get(model, TARN_KIND_ALL, "y"), y);
  ck_assert_ptr_null(tarn_model_get(model, TARN_KIND_ALL, "z"));
  ck_assert_ptr_null(tarn_model_param(model, "z"));
  assert_error_says("no tensor 'z'");
  ck_assert_ptr_null(tarn_model_param(model, "y"));
  assert_error_says("'y' is of kind output, not param");
  ck_assert_ptr_null(tarn_model_param(model, NULL));
  assert_error_says("NULL");
  ck_assert_ptr_null(tarn_model_param(NULL, "y"));
  assert_ok(tarn_model_destroy(model));
}

TEST(test_a_name_stands_once) {
  tarn_model *model = make(1);
  const int64_t w[] = {2};
  tarn_tensor *tensor = add(model, TARN_PARAM, "w", w, 1);
  tarn_tensor *other = tensor;
  assert_status(tarn_model_add(model, TARN_OUTPUT, "w", TARN_DTYPE_F32,
                               (tarn_shape){w, 1}, &other),
                TARN_E_STATE);
  assert_error_says("'w' is that of a tensor of kind param");
  ck_assert_ptr_null(other);
  assert_status(tarn_model_tie(model, "w", tensor, &other), TARN_E_STATE);
  ck_assert_uint_eq(tarn_model_count(model, TARN_KIND_ALL), 1);
  assert_ok(tarn_model_destroy(model));
}

// Any bytes but NUL, 1 of them or 10,000.
TEST(test_names_of_any_length) {
  enum { LONG = 10000 };
  tarn_model *model = make(1);
  const int64_t w[] = {2};
  char *text = malloc(LONG + 1);
  ck_assert_ptr_nonnull(text);
  for (int i = 0; i < LONG; i++)
    text[i] = (char)(i % 255 + 1);
  text[LONG] = '\0';
  tarn_tensor *a = add(model, TARN_PARAM, text, w, 1);
  tarn_tensor *b = add(model, TARN_PARAM, "\x01", w, 1);
  ck_assert_ptr_eq(tarn_model_param(model, text), a);
  ck_assert_ptr_eq(tarn_model_param(model, "\x01"), b);
  ck_assert_str_eq(a->name, text);
  tarn_tensor *none = a;
  assert_status(tarn_model_add(model, TARN_PARAM, "", TARN_DTYPE_F32,
                               (tarn_shape){w, 1}, &none),
                TARN_E_INVALID);
  ck_assert_ptr_null(none);
  assert_ok(tarn_model_destroy(model));
  free(text);
}

TEST(test_1600_names_are_all_found) {
  tarn_model *model = make(1);
  const int64_t w[] = {1};
  char name[32];
  for (int i = 0; i < 1600; i++) {
    snprintf(name, sizeof name, "layer%d.weight", i);
    add(model, TARN_PARAM, name, w, 1);
  }
  for (int i = 0; i < 1600; i++) {
    snprintf(name, sizeof name, "layer%d.weight", i);
    tarn_tensor *tensor = tarn_model_param(model, name);
    require(tensor != NULL && strcmp(tensor->name, name) == 0);
  }
  assert_ok(tarn_model_destroy(model));
}

typedef struct seen {
  char text[64];
  size_t stop_at;
  size_t count;
} seen;

static tarn_status note(void *context, tarn_tensor *tensor) {
  seen *s = context;
  strcat(s->text, tensor->name);
  return ++s->count == s->stop_at ? TARN_FULL : TARN_OK;
}

TEST(test_each_by_kind_and_prefix) {
  tarn_model *model = make(1);
  const int64_t w[] = {1};
  add(model, TARN_PARAM, "fc1.w", w, 1);
  add(model, TARN_OUTPUT, "fc1.y", w, 1);
  add(model, TARN_PARAM, "fc2.w", w, 1);
  seen s = {0};
  assert_ok(tarn_model_each(model, TARN_PARAM, NULL, note, &s));
  ck_assert_str_eq(s.text, "fc1.wfc2.w");
  s = (seen){0};
  assert_ok(tarn_model_each(model, TARN_KIND_ALL, "fc1", note, &s));
  ck_assert_str_eq(s.text, "fc1.wfc1.y");
  s = (seen){.stop_at = 1};
  assert_status(tarn_model_each(model, TARN_KIND_ALL, NULL, note, &s),
                TARN_FULL);
  ck_assert_uint_eq(s.count, 1);
  assert_status(tarn_model_each(model, TARN_PARAM, NULL, NULL, NULL),
                TARN_E_INVALID);
  assert_ok(tarn_model_destroy(model));
}

// Numbers between the last kind and TARN_KIND_ALL, which kinds to come may get.
TEST(test_no_kinds_yet) {
  tarn_model *model = make(1);
  tarn_tensor *tensor = NULL;
  seen s = {0};
  for (int i = TARN_STATE + 1; i < TARN_KIND_ALL; i++) {
    tarn_tensor_kind kind = (tarn_tensor_kind)i;
    ck_assert_ptr_null(tarn_tensor_kind_name(kind));
    ck_assert_ptr_null(tarn_model_list(model, kind));
    ck_assert_uint_eq(tarn_model_count(model, kind), 0);
    assert_status(tarn_model_each(model, kind, NULL, note, &s), TARN_E_INVALID);
    assert_status(tarn_model_add(model, kind, "x", TARN_DTYPE_F32,
                                 (tarn_shape){NULL, 0}, &tensor),
                  TARN_E_INVALID);
  }
  assert_ok(tarn_model_destroy(model));
}

// --- shapes and sizes ------------------------------------------------------

TEST(test_sizes_follow_the_batch) {
  tarn_model *model = make(8);
  const int64_t y[] = {3, TARN_DIM_BATCH, 5};  // the batch anywhere
  tarn_tensor *tensor = add(model, TARN_OUTPUT, "y", y, 3);
  ck_assert_uint_eq(tensor->max_size, 3 * 8 * 5 * 4);
  ck_assert_uint_eq(tarn_tensor_size(tensor), 3 * 8 * 5 * 4);
  assert_ok(tarn_model_set_batch(model, 1));
  ck_assert_uint_eq(tarn_tensor_count(tensor), 15);
  assert_ok(tarn_model_set_batch(model, 0));
  ck_assert_uint_eq(tarn_tensor_size(tensor), 0);
  assert_status(tarn_model_set_batch(model, 9), TARN_E_INVALID);
  assert_error_says("a batch of 9, where 0 to 8");
  assert_status(tarn_model_set_batch(model, -1), TARN_E_INVALID);
  ck_assert_int_eq(tarn_model_batch(model), 0);
  assert_ok(tarn_model_set_max_batch(model, 16));
  ck_assert_uint_eq(tarn_tensor_size(tensor), 3 * 16 * 5 * 4);
  assert_status(tarn_model_set_max_batch(model, 0), TARN_E_INVALID);
  assert_status(tarn_model_set_max_batch(model, INT64_MAX), TARN_E_INVALID);
  ck_assert_int_eq(tarn_model_batch(model), 16);
  assert_ok(tarn_model_destroy(model));
}

TEST(test_any_rank_and_dtype) {
  tarn_model *model = make(2);
  const int64_t many[] = {1, 2, 1, 2, 1, 2, 1, 2, 1, 2};
  const tarn_dtype types[] = {TARN_DTYPE_F64,  TARN_DTYPE_F32, TARN_DTYPE_F16,
                              TARN_DTYPE_BF16, TARN_DTYPE_I64, TARN_DTYPE_I32,
                              TARN_DTYPE_I8,   TARN_DTYPE_U8,  TARN_DTYPE_BOOL};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    tarn_tensor *tensor = NULL;
    assert_ok(tarn_model_add(model, TARN_PARAM, tarn_dtype_name(types[i]),
                             types[i], (tarn_shape){many, 10}, &tensor));
    ck_assert_uint_eq(tensor->max_size, 32 * tarn_dtype_size(types[i]));
  }
  tarn_tensor *scalar = add(model, TARN_PARAM, "scalar", NULL, 0);
  ck_assert_uint_eq(scalar->max_size, 4);
  assert_ok(tarn_model_destroy(model));
}

static void refuses(tarn_model *model, tarn_tensor_kind kind, tarn_dtype dtype,
                    const int64_t *dims, size_t rank) {
  tarn_tensor *tensor = NULL;
  assert_status(tarn_model_add(model, kind, "x", dtype,
                               (tarn_shape){dims, rank}, &tensor),
                TARN_E_INVALID);
  ck_assert_ptr_null(tensor);
  ck_assert_ptr_null(tarn_model_get(model, TARN_KIND_ALL, "x"));
}

TEST(test_shapes_that_are_none) {
  tarn_model *model = make(2);
  const int64_t batch[] = {TARN_DIM_BATCH, 2};
  const int64_t negative[] = {-3};
  const int64_t huge[] = {INT64_MAX, INT64_MAX};
  const int64_t nearly[] = {INT64_MAX};
  refuses(model, TARN_PARAM, TARN_DTYPE_F32, batch, 2);
  refuses(model, TARN_OUTPUT, TARN_DTYPE_F32, negative, 1);
  refuses(model, TARN_OUTPUT, TARN_DTYPE_F32, huge, 2);
  refuses(model, TARN_OUTPUT, TARN_DTYPE_F64, nearly, 1);
  refuses(model, TARN_OUTPUT, TARN_DTYPE_F32, NULL, 2);
  refuses(model, TARN_OUTPUT, TARN_DTYPE_NONE, batch, 2);
  refuses(model, TARN_INPUT, TARN_DTYPE_F32, batch, 2);
  refuses(model, TARN_CACHE, TARN_DTYPE_F32, batch, 2);
  refuses(model, (tarn_tensor_kind)99, TARN_DTYPE_F32, batch, 2);
  assert_ok(tarn_model_destroy(model));
}

// --- other names, states ---------------------------------------------------

TEST(test_inputs_ties_and_states) {
  tarn_model *model = make(4);
  tarn_model *stranger = make(4);
  const int64_t w[] = {3, 5};
  tarn_tensor *y = add(model, TARN_OUTPUT, "y", w, 2);
  tarn_tensor *p = add(model, TARN_PARAM, "p", w, 2);
  tarn_tensor *in = NULL;
  tarn_tensor *tied = NULL;
  tarn_tensor *again = NULL;
  tarn_tensor *state = NULL;
  assert_ok(tarn_model_add_input(model, "next.in", y, &in));
  ck_assert_ptr_eq(in->of, y);
  assert_ok(tarn_model_tie(model, "q", p, &tied));
  assert_ok(tarn_model_tie(model, "r", tied, &again));
  ck_assert_ptr_eq(again->of, p);
  assert_ok(
      tarn_model_add_state(model, tied, "momentum", TARN_DTYPE_F32, &state));
  ck_assert_str_eq(state->name, "p.momentum");
  ck_assert_ptr_eq(tarn_list_entry(p->states.next, tarn_tensor, node), state);
  ck_assert_ptr_eq(tarn_model_get(model, TARN_STATE, "p.momentum"), state);
  assert_status(
      tarn_model_add_state(model, p, "momentum", TARN_DTYPE_F32, &state),
      TARN_E_STATE);
  assert_status(tarn_model_add_input(model, "i", p, &in), TARN_E_INVALID);
  assert_status(tarn_model_add_input(stranger, "i", y, &in), TARN_E_INVALID);
  assert_status(tarn_model_tie(model, "t", y, &tied), TARN_E_INVALID);
  assert_status(tarn_model_tie(model, "t", NULL, &tied), TARN_E_INVALID);
  assert_status(tarn_model_add_state(model, p, "", TARN_DTYPE_F32, &state),
                TARN_E_INVALID);
  assert_ok(tarn_model_destroy(stranger));
  assert_ok(tarn_model_destroy(model));
}

// --- steps -----------------------------------------------------------------

TEST(test_steps_by_name_and_order) {
  tarn_model *model = make(1);
  tarn_step *a = NULL;
  tarn_step *b = NULL;
  assert_ok(tarn_model_step(model, "a", &a));
  assert_ok(tarn_model_step(model, "b", &b));
  ck_assert_uint_eq(tarn_model_step_count(model), 2);
  ck_assert_ptr_eq(tarn_model_step_at(model, 1), b);
  ck_assert_ptr_null(tarn_model_step_at(model, 2));
  ck_assert_ptr_eq(tarn_model_find_step(model, "a"), a);
  ck_assert_ptr_null(tarn_model_find_step(model, "c"));
  assert_error_says("no step 'c'");
  ck_assert_str_eq(tarn_step_name(b), "b");
  ck_assert_uint_eq(tarn_step_index(b), 1);
  ck_assert_ptr_eq(tarn_step_model(b), model);
  tarn_step *none = a;
  assert_status(tarn_model_step(model, "a", &none), TARN_E_STATE);
  ck_assert_ptr_null(none);
  assert_status(tarn_model_step(model, "", &none), TARN_E_INVALID);
  assert_status(tarn_model_step(model, "x", NULL), TARN_E_INVALID);
  assert_ok(tarn_model_destroy(model));
}

TEST(test_what_steps_may_not_use) {
  tarn_model *model = make(1);
  tarn_model *stranger = make(1);
  const int64_t w[] = {9};
  tarn_tensor *y = add(model, TARN_OUTPUT, "y", w, 1);
  tarn_tensor *foreign = add(stranger, TARN_OUTPUT, "y", w, 1);
  tarn_tensor *mask = NULL;
  tarn_step *step = NULL;
  assert_ok(tarn_model_step(model, "s", &step));
  assert_ok(tarn_step_caches(step, "mask", TARN_DTYPE_BOOL, (tarn_shape){w, 1},
                             true, &mask));
  ck_assert_uint_eq(mask->max_size, 2);  // 9 bits
  ck_assert_int_eq(mask->kind, TARN_CACHE);
  assert_status(tarn_step_caches(step, "m", TARN_DTYPE_U8, (tarn_shape){w, 1},
                                 true, &mask),
                TARN_E_INVALID);
  mask = tarn_model_get(model, TARN_CACHE, "mask");
  assert_status(tarn_step_reads(step, TARN_FORWARD, mask, TARN_DIFF),
                TARN_E_INVALID);
  assert_error_says("'mask', a cache, has no part");
  assert_status(tarn_step_reads(step, TARN_FORWARD, foreign, TARN_DATA),
                TARN_E_INVALID);
  assert_status(tarn_step_writes(step, TARN_FORWARD, NULL, TARN_DATA),
                TARN_E_INVALID);
  assert_status(tarn_step_writes(step, (tarn_pass)2, y, TARN_DATA),
                TARN_E_INVALID);
  assert_status(tarn_step_writes(step, TARN_FORWARD, y, (tarn_part)2),
                TARN_E_INVALID);
  assert_status(tarn_step_writes(NULL, TARN_FORWARD, y, TARN_DATA),
                TARN_E_INVALID);
  assert_status(
      tarn_step_replaces(step, TARN_FORWARD, y, TARN_DATA, foreign, TARN_DATA),
      TARN_E_INVALID);
  assert_ok(tarn_model_destroy(stranger));
  assert_ok(tarn_model_destroy(model));
}

// --- without memory --------------------------------------------------------

static void scenario(void *context) {
  (void)context;
  const int64_t dims[] = {TARN_DIM_BATCH, 3};
  tarn_model *model = NULL;
  if (tarn_model_create(NULL, &model) != TARN_OK) return;
  tarn_tensor *y = NULL;
  tarn_tensor *other = NULL;
  tarn_step *step = NULL;
  tarn_status all[] = {
      tarn_model_add(model, TARN_OUTPUT, "y", TARN_DTYPE_F32,
                     (tarn_shape){dims, 2}, &y),
      tarn_model_add(model, TARN_PARAM, "p", TARN_DTYPE_F32,
                     (tarn_shape){dims + 1, 1}, &other),
      other == NULL
          ? TARN_E_NOMEM
          : tarn_model_add_state(model, other, "m", TARN_DTYPE_F32, &other),
      y == NULL ? TARN_E_NOMEM : tarn_model_add_input(model, "i", y, &other),
      tarn_model_step(model, "s", &step),
      step == NULL || y == NULL
          ? TARN_E_NOMEM
          : tarn_step_writes(step, TARN_FORWARD, y, TARN_DATA),
      step == NULL ? TARN_E_NOMEM
                   : tarn_step_caches(step, "c", TARN_DTYPE_BOOL,
                                      (tarn_shape){dims, 2}, true, &other),
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    require(all[i] == TARN_OK || all[i] == TARN_E_NOMEM);
  require(tarn_model_count(model, TARN_CACHE) <= 1);
  require(tarn_model_destroy(model) == TARN_OK);
}

TEST(test_any_allocation_may_fail) {
  ck_assert_uint_gt(faults_sweep(scenario, NULL), 20);
}

int main(void) {
  faults_install();
  return run_tests();
}
