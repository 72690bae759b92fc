// AWNN's own program, with its names: lists of parameters, attached, found by
// name, walked and freed.
#include <stdio.h>

#include "awnn_kit.h"
#include "tarn/model_run.h"

// --- AWNN --------------------------------------------------------------------

static void mlp_init(model_t *model) {
  init_list_head(model->list_all_params);
  init_list_head(model->list_layer_out);
  init_list_head(model->list_layer_in);
  init_list_head(model->list_layer_cache);
  assert_ok(net_attach_param(model->list_all_params, "fc1.weight", buffer(),
                             buffer()));
  assert_ok(
      net_attach_param(model->list_all_params, "fc1.bias", buffer(), buffer()));
  assert_ok(
      net_attach_param(model->list_layer_out, "fc1.out", buffer(), buffer()));
  assert_ok(
      net_attach_param(model->list_layer_cache, "fc1.cache", buffer(), NULL));
}

// "A shadow copy of lower output": here a view, so that it is freed once.
static void attach_input(model_t *model) {
  param_t *out = net_get_param(model->list_layer_out, "fc1.out");
  tensor_t data = NULL;
  tensor_t diff = NULL;
  ck_assert_ptr_nonnull(out);
  assert_ok(tarn_synced_view(out->data, 0, TARN_ALL, &data));
  assert_ok(tarn_synced_view(out->diff, 0, TARN_ALL, &diff));
  assert_ok(net_attach_param(model->list_layer_in, "fc2.in", data, diff));
}

TEST(the_program_of_awnn) {
  model_t model[1];
  mlp_init(model);
  attach_input(model);
  tensor_t w = net_get_param(model->list_all_params, "fc1.weight")->data;
  tensor_t dw = net_get_param(model->list_all_params, "fc1.weight")->diff;
  write_to(w)[0] = 1.5F;
  write_to(dw)[0] = 2.5F;
  ck_assert_float_eq(
      read_from(net_get_param(model->list_all_params, "fc1.weight")->data)[0],
      1.5F);
  ck_assert_float_eq(
      read_from(net_get_param(model->list_all_params, "fc1.weight")->diff)[0],
      2.5F);
  write_to(net_get_param(model->list_layer_out, "fc1.out")->data)[3] = 4.0F;
  ck_assert_float_eq(
      read_from(net_get_param(model->list_layer_in, "fc2.in")->data)[3], 4.0F);
  ck_assert_ptr_null(net_get_param(model->list_layer_cache, "fc1.cache")->diff);
  for (int i = 0; i < 4; i++)
    assert_ok(net_free_params(list_of(model, i)));
  ck_assert_uint_eq(live_blocks(), 0);
}

static void use_and_destroy(const int order[4]) {
  model_t model[1];
  mlp_init(model);
  attach_input(model);
  write_to(net_get_param(model->list_layer_in, "fc2.in")->data)[0] = 1;
  write_to(net_get_param(model->list_layer_in, "fc2.in")->diff)[0] = 1;
  for (int i = 0; i < 4; i++) {
    struct list_head *list = list_of(model, order[i]);
    assert_ok(net_free_params(list));
    ck_assert(tarn_list_empty(list));
    assert_ok(net_free_params(list));  // once more
  }
}

// "The only problem is destroy": in each of the 24 orders nothing is left.
TEST(any_order_of_destroying) {
  const int first[] = {0, 1, 2, 3};
  int tried = 0;
  use_and_destroy(first);  // the statistics of the pool stay
  size_t held = tarn_host_memory();
  for (int i = 0; i < 256; i++) {
    const int order[] = {i & 3, i >> 2 & 3, i >> 4 & 3, i >> 6 & 3};
    int all = 1 << order[0] | 1 << order[1] | 1 << order[2] | 1 << order[3];
    if (all != 15) continue;
    use_and_destroy(order);
    ck_assert_uint_eq(live_blocks(), 0);
    ck_assert_uint_eq(tarn_host_memory(), held);
    tried++;
  }
  ck_assert_int_eq(tried, 24);
}

// --- lists -----------------------------------------------------------------

typedef struct number {
  int value;
  struct list_head node;
} number;

TEST(lists_as_in_awnn) {
  struct list_head head[1];
  struct list_head *node = NULL;
  struct list_head *spare = NULL;
  number numbers[4] = {{.value = 1}, {.value = 2}, {.value = 3}, {.value = 4}};
  int seen = 0;
  init_list_head(head);
  for (int i = 0; i < 4; i++)
    init_list_head(&numbers[i].node);
  list_add_tail(&numbers[1].node, head);
  list_add_tail(&numbers[2].node, head);
  list_add(&numbers[0].node, head);
  list_add_tail(&numbers[3].node, head);
  list_for_each(node, head) {
    seen = seen * 10 + list_entry(node, number, node)->value;
  }
  ck_assert_int_eq(seen, 1234);
  list_del(&numbers[1].node);
  seen = 0;
  list_for_each_safe(node, spare, head) {
    seen = seen * 10 + list_entry(node, number, node)->value;
    list_del(node);
  }
  ck_assert_int_eq(seen, 134);
  ck_assert(tarn_list_empty(head));
}

TEST(parameters_in_order_of_attaching) {
  struct list_head head[1];
  struct list_head *node = NULL;
  char name[16];
  int i = 0;
  init_list_head(head);
  for (i = 0; i < 20; i++) {
    snprintf(name, sizeof name, "p%d", i);
    assert_ok(net_attach_param(head, name, buffer(), NULL));
  }
  i = 0;
  list_for_each(node, head) {
    param_t *param = list_entry(node, param_t, node);
    snprintf(name, sizeof name, "p%d", i++);
    ck_assert_str_eq(param->name, name);
    ck_assert_ptr_eq(net_get_param(head, name), param);
    ck_assert_uint_eq(tarn_tensor_size(param), SIZE);
    ck_assert_uint_eq(tarn_tensor_count(param), 0);  // of no model
    ck_assert_int_eq(param->kind, TARN_PARAM);
  }
  ck_assert_int_eq(i, 20);
  assert_ok(net_free_params(head));
}

// --- a model's list --------------------------------------------------------

TEST(the_list_of_a_model) {
  const int64_t dims[] = {16};
  const tarn_shape shape = {dims, 1};
  tarn_model *model = NULL;
  tarn_tensor *w = NULL;
  tarn_tensor *y = NULL;
  tarn_synced *spare = buffer();
  assert_ok(tarn_model_create(NULL, &model));
  tarn_list *params = tarn_model_list(model, TARN_PARAM);
  assert_ok(tarn_model_add(model, TARN_PARAM, "fc1.weight", TARN_DTYPE_F32,
                           shape, &w));
  assert_ok(tarn_model_add(model, TARN_OUTPUT, "y", TARN_DTYPE_F32, shape, &y));
  assert_ok(tarn_model_plan(model, NULL));
  assert_ok(tarn_model_place(model));
  ck_assert_ptr_eq(net_get_param(params, "fc1.weight"), w);
  ck_assert_ptr_nonnull(net_get_param(params, "fc1.weight")->diff);
  write_to(net_get_param(params, "fc1.weight")->data)[0] = 1;
  ck_assert_ptr_null(net_get_param(params, "y"));
  assert_error_says("'y' is of kind output, not param");
  ck_assert_ptr_eq(net_get_param(tarn_model_list(model, TARN_OUTPUT), "y"), y);
  ck_assert_ptr_null(net_get_param(params, "fc2.weight"));
  assert_error_says("no tensor 'fc2.weight'");
  assert_status(net_attach_param(params, "more", spare, NULL), TARN_E_STATE);
  assert_error_says("it is planned");
  assert_status(net_free_params(params), TARN_E_STATE);
  assert_error_says("the list belongs to model");
  ck_assert_ptr_eq(tarn_model_param(model, "fc1.weight"), w);
  assert_ok(tarn_model_destroy(model));
  assert_ok(tarn_synced_destroy(spare));
  ck_assert_uint_eq(live_blocks(), 0);
}

// A parameter that is attached to a model is the model's: it is found, counted,
// kept by the first place, and ended with the model.
static void use_attached(tarn_model *model, tarn_synced *data,
                         tarn_synced *diff) {
  tarn_list *params = tarn_model_list(model, TARN_PARAM);
  param_t *w = tarn_model_param(model, "fc1.weight");
  ck_assert_ptr_nonnull(w);
  ck_assert_ptr_eq(net_get_param(params, "fc1.weight"), w);
  ck_assert_ptr_eq(w->data, data);
  ck_assert_ptr_eq(w->diff, diff);
  ck_assert_ptr_eq(w->model, model);
  ck_assert_uint_eq(tarn_tensor_size(w), SIZE);
  write_to(data)[0] = 1.5F;
  assert_ok(tarn_model_plan(model, NULL));
  assert_ok(tarn_model_place(model));
  ck_assert_ptr_eq(w->data, data);
  ck_assert_ptr_eq(w->diff, diff);
  ck_assert_float_eq(read_from(w->data)[0], 1.5F);
}

static void attach_and_destroy(void) {
  const int64_t dims[] = {16};
  tarn_model *model = NULL;
  tarn_tensor *b = NULL;
  tarn_synced *data = buffer();
  tarn_synced *diff = buffer();
  assert_ok(tarn_model_create(NULL, &model));
  tarn_list *params = tarn_model_list(model, TARN_PARAM);
  assert_ok(net_attach_param(params, "fc1.weight", data, diff));
  assert_ok(tarn_model_add(model, TARN_PARAM, "fc1.bias", TARN_DTYPE_F32,
                           (tarn_shape){dims, 1}, &b));
  ck_assert_uint_eq(tarn_model_count(model, TARN_PARAM), 2);
  use_attached(model, data, diff);
  assert_status(net_free_params(params), TARN_E_STATE);
  ck_assert_uint_eq(tarn_model_count(model, TARN_PARAM), 2);
  assert_ok(tarn_model_destroy(model));
}

TEST(attaching_to_a_models_empty_list) {
  attach_and_destroy();  // the statistics of the pool stay
  size_t held = tarn_host_memory();
  attach_and_destroy();
  ck_assert_uint_eq(live_blocks(), 0);
  ck_assert_uint_eq(tarn_host_memory(), held);
}

// Freeing is refused also while a model's list has but attached parameters.
TEST(freeing_what_a_model_has) {
  tarn_model *model = NULL;
  assert_ok(tarn_model_create(NULL, &model));
  tarn_list *params = tarn_model_list(model, TARN_PARAM);
  assert_status(net_free_params(params), TARN_E_STATE);
  assert_ok(net_attach_param(params, "w", buffer(), NULL));
  assert_status(net_free_params(params), TARN_E_STATE);
  assert_error_says("the list belongs to model");
  assert_ok(tarn_model_destroy(model));
  ck_assert_uint_eq(live_blocks(), 0);
}

// Each list of a model but that of its parameters, with what to call instead.
typedef struct other_list {
  tarn_tensor_kind kind;
  const char *instead;
} other_list;

static const other_list other_lists[] = {
    {TARN_OUTPUT, "tarn_model_add"},
    {TARN_INPUT, "tarn_model_add_input"},
    {TARN_CACHE, "tarn_step_caches"},
    {TARN_KIND_ALL, "all kinds"},
};
enum { OTHER_LISTS = sizeof other_lists / sizeof other_lists[0] };

TEST_LOOP(other_lists_of_a_model, OTHER_LISTS) {
  const int64_t dims[] = {16};
  const other_list *of = &other_lists[_i];
  tarn_model *model = NULL;
  tarn_tensor *y = NULL;
  tarn_synced *data = buffer();
  assert_ok(tarn_model_create(NULL, &model));
  tarn_list *list = tarn_model_list(model, of->kind);
  for (int i = 0; i < 2; i++) {
    assert_status(net_attach_param(list, "w", data, NULL), TARN_E_STATE);
    assert_error_says(of->instead);
    ck_assert_ptr_null(tarn_model_get(model, TARN_KIND_ALL, "w"));
    ck_assert_ptr_null(net_get_param(list, "w"));
    assert_status(net_free_params(list), TARN_E_STATE);
    if (i > 0) continue;
    assert_ok(tarn_model_add(model, TARN_OUTPUT, "y", TARN_DTYPE_F32,
                             (tarn_shape){dims, 1}, &y));
  }
  ck_assert_uint_eq(tarn_model_count(model, TARN_KIND_ALL), 1);
  assert_ok(tarn_model_destroy(model));
  assert_ok(tarn_synced_destroy(data));
}

// The states of a parameter are the model's too, in a list that programs see.
TEST(states_of_a_parameter) {
  const int64_t dims[] = {16};
  tarn_model *model = NULL;
  tarn_tensor *w = NULL;
  tarn_tensor *state = NULL;
  tarn_synced *data = buffer();
  assert_ok(tarn_model_create(NULL, &model));
  assert_ok(tarn_model_add(model, TARN_PARAM, "w", TARN_DTYPE_F32,
                           (tarn_shape){dims, 1}, &w));
  for (int i = 0; i < 2; i++) {
    assert_status(net_attach_param(&w->states, "x", data, NULL), TARN_E_STATE);
    assert_error_says("its list of states: use tarn_model_add_state");
    assert_status(net_attach_cache(&w->states, "x"), TARN_E_STATE);
    assert_status(net_free_params(&w->states), TARN_E_STATE);
    assert_error_says("the list belongs to model");
    assert_status(net_free_cache(&w->states), TARN_E_STATE);
    ck_assert_ptr_eq(net_get_param(&w->states, "w.m"), state);
    if (i > 0) continue;
    assert_ok(tarn_model_add_state(model, w, "m", TARN_DTYPE_F32, &state));
  }
  ck_assert_ptr_eq(tarn_model_get(model, TARN_STATE, "w.m"), state);
  assert_ok(tarn_model_destroy(model));
  assert_ok(tarn_synced_destroy(data));
}

TEST(what_a_model_refuses_to_have_attached) {
  tarn_model *model = NULL;
  tarn_synced *data = buffer();
  tarn_synced *diff = NULL;
  tarn_synced *other = buffer();
  assert_ok(tarn_synced_create(SIZE / 2, NULL, &diff));
  assert_ok(tarn_model_create(NULL, &model));
  tarn_list *params = tarn_model_list(model, TARN_PARAM);
  assert_status(net_attach_param(params, "w", data, diff), TARN_E_INVALID);
  assert_error_says("'w': 64 bytes of data and 32 of diff");
  assert_status(net_attach_param(params, "w", data, data), TARN_E_INVALID);
  assert_error_says("'w': one buffer for data and diff");
  ck_assert_ptr_null(tarn_model_param(model, "w"));
  assert_ok(net_attach_param(params, "w", data, NULL));
  assert_status(net_attach_param(params, "w", other, NULL), TARN_E_STATE);
  assert_error_says("'w'");
  assert_ok(tarn_model_destroy(model));
  assert_ok(tarn_synced_destroy(diff));
  assert_ok(tarn_synced_destroy(other));
}

// --- what is refused -------------------------------------------------------

TEST(what_is_refused) {
  struct list_head head[1];
  tarn_access a;
  tensor_t data = buffer();
  tensor_t diff = buffer();
  init_list_head(head);
  assert_status(net_attach_param(NULL, "w", data, diff), TARN_E_INVALID);
  assert_status(net_attach_param(head, NULL, data, diff), TARN_E_INVALID);
  assert_status(net_attach_param(head, "", data, diff), TARN_E_INVALID);
  assert_error_says("no list, or no name");
  assert_status(net_attach_param(head, "w", NULL, diff), TARN_E_INVALID);
  assert_error_says("parameter 'w': no data");
  ck_assert(tarn_list_empty(head));
  assert_ok(net_attach_param(head, "w", data, diff));
  tensor_t other = buffer();
  assert_status(net_attach_param(head, "w", other, NULL), TARN_E_STATE);
  assert_error_says("there is a parameter 'w' already");
  assert_ok(tarn_synced_destroy(other));
  ck_assert_ptr_null(net_get_param(head, "v"));
  assert_error_says("no parameter 'v'");
  ck_assert_ptr_null(net_get_param(NULL, "w"));
  ck_assert_ptr_null(net_get_param(head, NULL));
  assert_status(net_free_params(NULL), TARN_E_INVALID);
  assert_ok(
      tarn_synced_begin(diff, 0, TARN_ALL, TARN_HOST, TARN_READ, NULL, &a));
  assert_status(net_free_params(head), TARN_E_STATE);
  assert_error_says("'w': an access to it is open");
  ck_assert_ptr_nonnull(net_get_param(head, "w"));
  assert_ok(tarn_synced_end(&a));
  assert_ok(net_free_params(head));
}

// The buffers remain the caller's where attaching failed.
static void scenario(void *context) {
  struct list_head head[1];
  tarn_synced *const *buffers = context;
  size_t attached = 0;
  init_list_head(head);
  for (size_t i = 0; i < 2; i++) {
    tarn_status status =
        net_attach_param(head, i == 0 ? "a" : "b", buffers[i], NULL);
    require(status == TARN_OK || status == TARN_E_NOMEM);
    attached += status == TARN_OK;
  }
  struct list_head *node = NULL;
  struct list_head *spare = NULL;
  list_for_each_safe(node, spare, head) {
    list_entry(node, param_t, node)->data = NULL;  // kept for the next time
    attached--;
  }
  require(attached == 0);
  require(net_free_params(head) == TARN_OK);
}

// The same into a model, which then has both or neither.
static void scenario_of_a_model(void *context) {
  tarn_synced **buffers = context;
  tarn_model *model = NULL;
  if (tarn_model_create(NULL, &model) != TARN_OK) return;
  tarn_list *params = tarn_model_list(model, TARN_PARAM);
  for (size_t i = 0; i < 2; i++) {
    const char *name = i == 0 ? "a" : "b";
    tarn_status status = net_attach_param(params, name, buffers[i], NULL);
    require(status == TARN_OK || status == TARN_E_NOMEM);
    param_t *param = net_get_param(params, name);
    require((param != NULL) == (status == TARN_OK));
    if (param != NULL) param->data = NULL;  // kept for the next time
  }
  require(tarn_model_destroy(model) == TARN_OK);
}

TEST(any_allocation_may_fail_in_a_model) {
  tarn_synced *buffers[] = {buffer(), buffer()};
  ck_assert_uint_ge(faults_sweep(scenario_of_a_model, (void *)buffers), 6);
  for (size_t i = 0; i < 2; i++)
    assert_ok(tarn_synced_destroy(buffers[i]));
}

TEST(any_allocation_may_fail) {
  tarn_synced *buffers[] = {buffer(), buffer()};
  ck_assert_uint_ge(faults_sweep(scenario, (void *)buffers), 4);
  for (size_t i = 0; i < 2; i++)
    assert_ok(tarn_synced_destroy(buffers[i]));
}

int main(void) {
  faults_install();
  return run_tests();
}
