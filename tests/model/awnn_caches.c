// AWNN's caches, with its names: stacks of tensors, attached, found by name,
// filled, emptied and freed.
#include <stdio.h>
#include <unistd.h>

#include "awnn_kit.h"
#include "tarn/model_run.h"

enum { MANY = 25 };  // AWNN has ten slots, and does not count

TEST(a_cache_is_a_stack) {
  struct list_head list[1];
  tensor_t tensors[MANY];
  init_list_head(list);
  assert_ok(net_attach_cache(list, "fc0.cache"));
  assert_ok(net_attach_cache(list, "fc1.cache"));
  lcache_t *cache = net_get_cache(list, "fc1.cache");
  ck_assert_ptr_nonnull(cache);
  ck_assert_ptr_ne(cache, net_get_cache(list, "fc0.cache"));
  ck_assert_str_eq(cache->name, "fc1.cache");
  for (int round = 0; round < 2; round++) {
    for (size_t i = 0; i < MANY; i++) {
      if (round == 0) tensors[i] = buffer();
      ck_assert_uint_eq(cache->count, i);
      assert_ok(lcache_push(cache, tensors[i]));
      ck_assert_ptr_eq(cache->all_tensors[i], tensors[i]);
    }
    for (size_t i = MANY; i-- > 0;)
      ck_assert_ptr_eq(lcache_pop(cache), tensors[i]);
    ck_assert_uint_eq(cache->count, 0);
    ck_assert_ptr_null(lcache_pop(cache));
    assert_error_says("cache 'fc1.cache' is empty");
  }
  for (size_t i = 0; i < MANY; i++)
    assert_ok(tarn_synced_destroy(tensors[i]));
  assert_ok(net_free_cache(list));
  ck_assert(tarn_list_empty(list));
  assert_ok(net_free_cache(list));
}

static void use_caches(void) {
  struct list_head list[1];
  lcache_t own = {.count = 0};  // in no list
  tarn_access a;
  tensor_t kept = buffer();
  init_list_head(list);
  assert_ok(net_attach_cache(list, "c"));
  assert_ok(lcache_push(net_get_cache(list, "c"), kept));
  assert_ok(lcache_push(&own, buffer()));
  assert_ok(lcache_push(&own, buffer()));
  assert_ok(tarn_synced_begin(own.all_tensors[1], 0, 1, TARN_HOST, TARN_READ,
                              NULL, &a));
  assert_status(lcache_free_all(&own), TARN_E_STATE);
  ck_assert_uint_eq(own.count, 2);
  assert_ok(tarn_synced_end(&a));
  assert_ok(lcache_free_all(&own));
  ck_assert_uint_eq(own.count, 0);
  assert_ok(lcache_push(&own, kept));
  ck_assert_ptr_eq(lcache_pop(&own), kept);  // and nothing is left of it
  assert_ok(net_free_cache(list));           // |kept| is not the cache's
  write_to(kept)[0] = 1;
  assert_ok(tarn_synced_destroy(kept));
}

TEST(nothing_is_left_of_caches) {
  use_caches();
  size_t held = tarn_host_memory();
  use_caches();
  ck_assert_uint_eq(tarn_host_memory(), held);
  ck_assert_uint_eq(live_blocks(), 0);
}

// A list of the one kind is not taken for one of the other.
TEST(caches_and_parameters_are_told_apart) {
  struct list_head caches[1];
  struct list_head params[1];
  tensor_t data = buffer();
  tensor_t other = buffer();
  init_list_head(caches);
  init_list_head(params);
  assert_ok(net_attach_cache(caches, "c"));
  assert_ok(net_attach_param(params, "p", data, NULL));
  assert_status(net_attach_cache(caches, "c"), TARN_E_STATE);
  assert_error_says("there is a cache 'c' already");
  assert_status(net_attach_param(caches, "c", other, NULL), TARN_E_STATE);
  ck_assert_ptr_null(net_get_param(caches, "c"));
  ck_assert_ptr_null(net_get_cache(params, "p"));
  assert_error_says("no cache 'p'");
  assert_status(net_free_params(caches), TARN_E_STATE);
  assert_error_says("'c' is a cache: use net_free_cache");
  assert_status(net_free_cache(params), TARN_E_STATE);
  assert_error_says("'p' is a parameter: use net_free_params");
  assert_status(net_attach_cache(NULL, "c"), TARN_E_INVALID);
  assert_status(net_attach_cache(caches, ""), TARN_E_INVALID);
  ck_assert_ptr_null(net_get_cache(caches, NULL));
  assert_status(lcache_push(NULL, other), TARN_E_INVALID);
  assert_status(lcache_push(net_get_cache(caches, "c"), NULL), TARN_E_INVALID);
  ck_assert_ptr_null(lcache_pop(NULL));
  assert_ok(lcache_free_all(NULL));
  assert_status(net_free_cache(NULL), TARN_E_INVALID);
  assert_ok(net_free_cache(caches));
  assert_ok(net_free_params(params));
  assert_ok(tarn_synced_destroy(other));
}

TEST(caches_of_a_model_are_its_steps) {
  tarn_model *model = NULL;
  assert_ok(tarn_model_create(NULL, &model));
  tarn_list *caches = tarn_model_list(model, TARN_CACHE);
  assert_status(net_attach_cache(caches, "c"), TARN_E_STATE);
  assert_error_says("use tarn_step_caches");
  ck_assert_ptr_null(net_get_cache(caches, "c"));
  assert_error_says("use tarn_step_push");
  assert_status(net_free_cache(caches), TARN_E_STATE);
  ck_assert_uint_eq(tarn_model_count(model, TARN_CACHE), 0);
  assert_ok(tarn_model_destroy(model));
}

// What |list| prints on stdout, into |out|.
static void printed(struct list_head *list, char *out, size_t size) {
  FILE *file = tmpfile();
  ck_assert_ptr_nonnull(file);
  fflush(stdout);
  int saved = dup(STDOUT_FILENO);
  ck_assert_int_ge(dup2(fileno(file), STDOUT_FILENO), 0);
  assert_ok(net_print_params(list));
  fflush(stdout);
  ck_assert_int_ge(dup2(saved, STDOUT_FILENO), 0);
  close(saved);
  rewind(file);
  out[fread(out, 1, size - 1, file)] = '\0';
  fclose(file);
}

TEST(names_are_printed) {
  const int64_t dims[] = {4};
  struct list_head list[1];
  char text[64];
  tarn_model *model = NULL;
  tarn_tensor *y = NULL;
  init_list_head(list);
  printed(list, text, sizeof text);
  ck_assert_str_eq(text, "\n");
  assert_ok(net_attach_param(list, "fc1.weight", buffer(), NULL));
  assert_ok(net_attach_param(list, "fc1.bias", buffer(), NULL));
  printed(list, text, sizeof text);
  ck_assert_str_eq(text, "fc1.weight, fc1.bias\n");
  assert_ok(net_free_params(list));
  assert_ok(net_attach_cache(list, "fc1.cache"));
  printed(list, text, sizeof text);
  ck_assert_str_eq(text, "fc1.cache\n");
  assert_ok(net_free_cache(list));
  assert_ok(tarn_model_create(NULL, &model));
  assert_ok(tarn_model_add(model, TARN_OUTPUT, "y", TARN_DTYPE_F32,
                           (tarn_shape){dims, 1}, &y));
  printed(tarn_model_list(model, TARN_OUTPUT), text, sizeof text);
  ck_assert_str_eq(text, "y\n");
  assert_status(net_print_params(tarn_model_list(model, TARN_KIND_ALL)),
                TARN_E_STATE);
  assert_status(net_print_params(NULL), TARN_E_INVALID);
  assert_ok(tarn_model_destroy(model));
}

static void scenario_of_caches(void *context) {
  struct list_head list[1];
  init_list_head(list);
  if (net_attach_cache(list, "c") != TARN_OK) {
    require(tarn_list_empty(list));
    return;
  }
  lcache_t *cache = net_get_cache(list, "c");
  size_t pushed = 0;
  for (size_t i = 0; i < 9; i++) {
    tarn_status status = lcache_push(cache, context);
    require(status == TARN_OK || status == TARN_E_NOMEM);
    pushed += status == TARN_OK;
    require(cache->count == pushed);
  }
  while (pushed-- > 0)
    require(lcache_pop(cache) == context);
  require(net_free_cache(list) == TARN_OK);
}

TEST(any_allocation_of_caches_may_fail) {
  tensor_t tensor = buffer();
  ck_assert_uint_ge(faults_sweep(scenario_of_caches, tensor), 6);
  assert_ok(tarn_synced_destroy(tensor));
}

int main(void) {
  faults_install();
  return run_tests();
}
