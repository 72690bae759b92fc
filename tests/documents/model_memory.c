// AWNN's description of model memory, from its first line to its last, with its
// words beside each assertion: the four lists, their tensors, access by name,
// caches, and destroying all of it.
//
// It runs twice on every device of support/document.h: with the program's own
// lists, as in AWNN, and with the lists of a tarn_model, which plans outputs
// and caches into one block.
#include <stdio.h>
#include <string.h>

#include "model/awnn_net.h"
#include "support/document.h"
#include "support/run.h"
#include "tarn/model_run.h"

enum {
  MAX_BATCH = 8,
  LAYERS = 3,
  WIDTH = 4,
  SAMPLES = MAX_BATCH * WIDTH,  // elements of a batch
  WEIGHTS = WIDTH * WIDTH,
};

static tarn_device *device;

static tensor_t tensor_make(size_t count) {
  const tarn_synced_options options = {.struct_size = sizeof options,
                                       .device = device};
  tensor_t made = NULL;
  assert_ok(tarn_synced_create(count * sizeof(float), &options, &made));
  return made;
}

static void fill(tensor_t tensor, float value) {
  float *data = write_to(tensor);
  for (size_t i = 0; i < tarn_synced_size(tensor) / sizeof(float); i++)
    data[i] = value;
}

// Through the device, as a kernel would see it.
static void expect_on_device(tensor_t tensor, float value) {
  float first = 0;
  tarn_addr data = 0;
  assert_ok(tarn_synced_gpu_data(tensor, &data));
  assert_ok(tarn_copy_d2h(device, &first, data, sizeof first, NULL));
  ck_assert_float_eq(first, value);
}

static void write_on_device(tensor_t tensor, float value) {
  float values[SAMPLES];
  tarn_addr data = 0;
  size_t size = tarn_synced_size(tensor);
  require(size <= sizeof values);
  for (size_t i = 0; i < size / sizeof(float); i++)
    values[i] = value;
  assert_ok(tarn_synced_mutable_gpu_data(tensor, &data));
  assert_ok(tarn_copy_h2d(device, data, values, size, NULL));
}

static size_t live_blocks(void) {
  const tarn_place places[] = {
      TARN_HOST, {device, TARN_PLACE_HOST}, tarn_place_on(device)};
  size_t live = 0;
  for (size_t i = 0; i < 3; i++) {
    tarn_pool *pool = NULL;
    tarn_pool_stats stats = {.struct_size = sizeof stats};
    assert_ok(tarn_pool_of(places[i], &pool));
    assert_ok(tarn_pool_query(pool, &stats));
    live += stats.live_blocks;
  }
  return live;
}

// --- the four lists --------------------------------------------------------
// "They are all attached in the model_t:" see support/awnn_net.h.

// "To use it we need to first call init_list_head(head)"
static void init_lists(model_t *model) {
  for (int i = 0; i < 4; i++) {
    init_list_head(list_of(model, i));
    ck_assert(tarn_list_empty(list_of(model, i)));
  }
}

typedef struct number {
  int value;
  struct list_head node;
} number;

// "then for each nodes, init_list_head is also used to init, then the node can
// be added to the list by list_add or list_add_tail"
TEST(nodes_of_lists) {
  struct list_head head[1];
  struct list_head *node = NULL;
  number numbers[] = {{.value = 1}, {.value = 2}, {.value = 3}};
  int seen = 0;
  init_list_head(head);
  for (int i = 0; i < 3; i++)
    init_list_head(&numbers[i].node);
  list_add(&numbers[1].node, head);       // 2
  list_add(&numbers[0].node, head);       // 1 2: in front
  list_add_tail(&numbers[2].node, head);  // 1 2 3: behind
  list_for_each(node, head) {
    seen = seen * 10 + list_entry(node, number, node)->value;
  }
  ck_assert_int_eq(seen, 123);
}

// --- "Allocation" ----------------------------------------------------------

static const char *name_of(char *out, size_t layer, const char *what) {
  snprintf(out, 32, "fc%zu.%s", layer, what);
  return out;
}

// "the input of upper layer is the output of the bottom layer, we still use the
// list structure above to track all the data/diff of input, but they are just
// shadow copy of lower output": a view, with the same bytes.
static void attach_input(model_t *model, size_t layer) {
  char name[32];
  tensor_t in = NULL;
  tensor_t din = NULL;
  if (layer == 0) {
    in = tensor_make(SAMPLES);
    din = tensor_make(SAMPLES);
  } else {
    param_t *out =
        net_get_param(model->list_layer_out, name_of(name, layer - 1, "out"));
    assert_ok(tarn_synced_view(out->data, 0, TARN_ALL, &in));
    assert_ok(tarn_synced_view(out->diff, 0, TARN_ALL, &din));
  }
  assert_ok(net_attach_param(model->list_layer_in, name_of(name, layer, "in"),
                             in, din));
}

// "Currently the net knows about the maximum batch size, so all the sizes of
// memory types above can be inferred." "In the mlp_init function, all the
// output, learnable params are directly allocated and added to the net using
// net_attach_param"
static void mlp_init(model_t *model) {
  char name[32];
  init_lists(model);
  for (size_t i = 0; i < LAYERS; i++) {
    attach_input(model, i);
    assert_ok(net_attach_param(model->list_all_params,
                               name_of(name, i, "weight"), tensor_make(WEIGHTS),
                               tensor_make(WEIGHTS)));
    assert_ok(net_attach_param(model->list_all_params, name_of(name, i, "bias"),
                               tensor_make(WIDTH), tensor_make(WIDTH)));
    assert_ok(net_attach_param(model->list_layer_out, name_of(name, i, "out"),
                               tensor_make(SAMPLES), tensor_make(SAMPLES)));
    // "lcache_t is just a place holder to track caches used by each layer."
    assert_ok(
        net_attach_cache(model->list_layer_cache, name_of(name, i, "cache")));
  }
}

static size_t length(struct list_head *list) {
  struct list_head *node = NULL;
  size_t count = 0;
  list_for_each(node, list) count++;
  return count;
}

TEST_LOOP(all_is_attached, DOCUMENT_DEVICES) {
  char name[32];
  model_t model[1];
  device = document_open(_i);
  mlp_init(model);
  ck_assert_uint_eq(length(model->list_all_params), (size_t)2 * LAYERS);
  ck_assert_uint_eq(length(model->list_layer_out), LAYERS);
  ck_assert_uint_eq(length(model->list_layer_in), LAYERS);
  ck_assert_uint_eq(length(model->list_layer_cache), LAYERS);
  for (size_t i = 0; i < LAYERS; i++) {
    const param_t *out =
        net_get_param(model->list_layer_out, name_of(name, i, "out"));
    ck_assert_str_eq(out->name, name);
    ck_assert_uint_eq(tarn_synced_size(out->data), SAMPLES * sizeof(float));
    ck_assert_uint_eq(tarn_synced_size(out->diff), SAMPLES * sizeof(float));
  }
  // In order of attaching.
  const param_t *first =
      list_entry(model->list_all_params->next, param_t, node);
  ck_assert_str_eq(first->name, "fc0.weight");
  ck_assert_uint_eq(live_blocks(), 0);  // and lazily: it is unused so far
  for (int i = 0; i < 3; i++)
    assert_ok(net_free_params(list_of(model, i)));
  assert_ok(net_free_cache(model->list_layer_cache));
  assert_ok(tarn_device_close(device));
}

// --- "Access" --------------------------------------------------------------

// "After net_attach_param, each param can be accessed by"
TEST_LOOP(access_by_name, DOCUMENT_DEVICES) {
  model_t model[1];
  device = document_open(_i);
  mlp_init(model);
  // "tensor_t w = net_get_param(model->list_all_params, "fc1.weight")->data"
  tensor_t w = net_get_param(model->list_all_params, "fc1.weight")->data;
  // "tensor_t dw = net_get_param(model->list_all_params, "fc1.weight")->diff"
  tensor_t dw = net_get_param(model->list_all_params, "fc1.weight")->diff;
  fill(w, 1.5F);
  expect_on_device(w, 1.5F);
  write_on_device(dw, 0.5F);
  ck_assert_float_eq(
      read_from(net_get_param(model->list_all_params, "fc1.weight")->data)[0],
      1.5F);
  ck_assert_float_eq(
      read_from(net_get_param(model->list_all_params, "fc1.weight")->diff)[15],
      0.5F);
  ck_assert_ptr_null(net_get_param(model->list_all_params, "fc3.weight"));
  for (int i = 0; i < 3; i++)
    assert_ok(net_free_params(list_of(model, i)));
  assert_ok(net_free_cache(model->list_layer_cache));
  assert_ok(tarn_device_close(device));
}

// --- a step ----------------------------------------------------------------

// "inside each lcache_t, tensors can be pushed in and popped out": out = in +
// w, and what backward needs goes into the cache.
static void forward(model_t *model, size_t layer) {
  char name[32];
  tensor_t x =
      net_get_param(model->list_layer_in, name_of(name, layer, "in"))->data;
  tensor_t w =
      net_get_param(model->list_all_params, name_of(name, layer, "weight"))
          ->data;
  tensor_t y =
      net_get_param(model->list_layer_out, name_of(name, layer, "out"))->data;
  lcache_t *cache =
      net_get_cache(model->list_layer_cache, name_of(name, layer, "cache"));
  tensor_t mask = tensor_make(SAMPLES);  // the layer's own
  fill(mask, (float)layer);
  write_on_device(y, read_from(x)[0] + read_from(w)[0]);
  assert_ok(lcache_push(cache, x));
  assert_ok(lcache_push(cache, w));
  assert_ok(lcache_push(cache, mask));
  ck_assert_uint_eq(cache->count, 3);
}

static void backward(model_t *model, size_t layer) {
  char name[32];
  param_t *in = net_get_param(model->list_layer_in, name_of(name, layer, "in"));
  param_t *w =
      net_get_param(model->list_all_params, name_of(name, layer, "weight"));
  param_t *out =
      net_get_param(model->list_layer_out, name_of(name, layer, "out"));
  lcache_t *cache =
      net_get_cache(model->list_layer_cache, name_of(name, layer, "cache"));
  tensor_t mask = lcache_pop(cache);
  ck_assert_float_eq(read_from(mask)[1], (float)layer);
  assert_ok(tarn_synced_destroy(mask));
  ck_assert_ptr_eq(lcache_pop(cache), w->data);
  ck_assert_ptr_eq(lcache_pop(cache), in->data);
  ck_assert_uint_eq(cache->count, 0);
  fill(w->diff, read_from(out->diff)[0]);
  write_on_device(in->diff, read_from(out->diff)[0] + 1);
}

static void play(model_t *model) {
  char name[32];
  for (size_t i = 0; i < LAYERS; i++) {
    param_t *w =
        net_get_param(model->list_all_params, name_of(name, i, "weight"));
    fill(w->data, 10);
  }
  fill(net_get_param(model->list_layer_in, "fc0.in")->data, 1);
  for (size_t i = 0; i < LAYERS; i++)
    forward(model, i);
  ck_assert_float_eq(
      read_from(net_get_param(model->list_layer_out, "fc2.out")->data)[0], 31);
  fill(net_get_param(model->list_layer_out, "fc2.out")->diff, 1);
  for (size_t i = LAYERS; i-- > 0;)
    backward(model, i);
  ck_assert_float_eq(
      read_from(net_get_param(model->list_layer_in, "fc0.in")->diff)[0], 4);
  expect_on_device(net_get_param(model->list_all_params, "fc0.weight")->diff,
                   3);
}

// --- "Destroy" -------------------------------------------------------------

// "Only problem currently is destroy input. [...] free from one side needs to
// explicitly synced to the other side. For now, I just free output tensors": in
// each of the 24 orders everything is freed, once.
TEST_LOOP(any_order_of_destroying, DOCUMENT_DEVICES) {
  size_t held = 0;
  int tried = 0;
  device = document_open(_i);
  for (int i = 0; i < 256; i++) {
    const int order[] = {i & 3, i >> 2 & 3, i >> 4 & 3, i >> 6 & 3};
    int all = 1 << order[0] | 1 << order[1] | 1 << order[2] | 1 << order[3];
    if (all != 15) continue;
    model_t model[1];
    mlp_init(model);
    play(model);
    for (int k = 0; k < 4; k++) {
      struct list_head *list = list_of(model, order[k]);
      assert_ok(order[k] == 3 ? net_free_cache(list) : net_free_params(list));
      ck_assert(tarn_list_empty(list));
    }
    ck_assert_uint_eq(live_blocks(), 0);
    if (tried++ == 1) held = tarn_host_memory();
    if (tried > 2) ck_assert_uint_eq(tarn_host_memory(), held);
  }
  ck_assert_int_eq(tried, 24);
  assert_ok(tarn_device_close(device));
}

// --- the same with the lists of a tarn_model -------------------------------

// Steps that say what they read and write; outputs, diffs and caches are
// planned.
static void describe(tarn_model *model, size_t layer, tarn_step **out_step) {
  char name[32];
  const int64_t dims[] = {TARN_DIM_BATCH, WIDTH};
  const tarn_shape shape = {dims, 2};
  tarn_tensor *x = NULL;
  tarn_tensor *in = NULL;
  tarn_tensor *out = NULL;
  tarn_tensor *cache = NULL;
  if (layer == 0) {
    assert_ok(
        tarn_model_add(model, TARN_OUTPUT, "x", TARN_DTYPE_F32, shape, &x));
  } else {
    x = tarn_model_get(model, TARN_OUTPUT, name_of(name, layer - 1, "out"));
  }
  assert_ok(tarn_model_add_input(model, name_of(name, layer, "in"), x, &in));
  // Learnable parameters are attached, as in the document.
  assert_ok(net_attach_param(tarn_model_list(model, TARN_PARAM),
                             name_of(name, layer, "weight"),
                             tensor_make(WEIGHTS), tensor_make(WEIGHTS)));
  tarn_tensor *w = tarn_model_param(model, name);
  assert_ok(tarn_model_add(model, TARN_OUTPUT, name_of(name, layer, "out"),
                           TARN_DTYPE_F32, shape, &out));
  assert_ok(tarn_model_step(model, name_of(name, layer, "step"), out_step));
  assert_ok(tarn_step_reads(*out_step, TARN_FORWARD, in, TARN_DATA));
  assert_ok(tarn_step_reads(*out_step, TARN_FORWARD, w, TARN_DATA));
  assert_ok(tarn_step_writes(*out_step, TARN_FORWARD, out, TARN_DATA));
  assert_ok(tarn_step_caches(*out_step, name_of(name, layer, "cache"),
                             TARN_DTYPE_F32, shape, false, &cache));
  if (layer == LAYERS - 1) {
    assert_ok(tarn_step_writes(*out_step, TARN_BACKWARD, out, TARN_DIFF));
  }
  assert_ok(tarn_step_reads(*out_step, TARN_BACKWARD, out, TARN_DIFF));
  assert_ok(tarn_step_writes(*out_step, TARN_BACKWARD, w, TARN_DIFF));
  if (layer > 0) {
    assert_ok(tarn_step_writes(*out_step, TARN_BACKWARD, in, TARN_DIFF));
  }
}

static void write_all(tensor_t tensor, size_t size, float value) {
  tarn_access a;
  assert_ok(tarn_synced_begin(tensor, 0, size, TARN_HOST, TARN_WRITE_DISCARD,
                              NULL, &a));
  for (size_t i = 0; i < size / sizeof(float); i++)
    ((float *)a.pointer)[i] = value;
  assert_ok(tarn_synced_end(&a));
}

static float first_of(tensor_t tensor) {
  tarn_access a;
  float first = 0;
  assert_ok(tarn_synced_begin(tensor, 0, sizeof first, tarn_place_on(device),
                              TARN_READ, NULL, &a));
  assert_ok(tarn_copy_d2h(device, &first, a.address, sizeof first, NULL));
  assert_ok(tarn_synced_end(&a));
  return first;
}

static void step_forward(tarn_model *model, tarn_step *step, size_t layer) {
  char name[32];
  tensor_t cache = NULL;
  struct list_head *ins = tarn_model_list(model, TARN_INPUT);
  struct list_head *params = tarn_model_list(model, TARN_PARAM);
  struct list_head *outs = tarn_model_list(model, TARN_OUTPUT);
  assert_ok(tarn_model_enter(step, TARN_FORWARD));
  float x = first_of(net_get_param(ins, name_of(name, layer, "in"))->data);
  float w =
      first_of(net_get_param(params, name_of(name, layer, "weight"))->data);
  param_t *out = net_get_param(outs, name_of(name, layer, "out"));
  write_all(out->data, tarn_tensor_size(out), x + w);
  assert_ok(tarn_step_push(step, TARN_DTYPE_F32, SAMPLES, false, &cache));
  write_all(cache, tarn_synced_size(cache), (float)layer);
  tensor_t extra = NULL;  // beyond the description: listed with the others
  assert_ok(tarn_step_push(step, TARN_DTYPE_F32, 2, false, &extra));
  write_all(extra, 2 * sizeof(float), x);
}

static void step_backward(tarn_model *model, tarn_step *step, size_t layer) {
  char name[32];
  tensor_t cache = NULL;
  struct list_head *outs = tarn_model_list(model, TARN_OUTPUT);
  assert_ok(tarn_model_enter(step, TARN_BACKWARD));
  param_t *out = net_get_param(outs, name_of(name, layer, "out"));
  if (layer == LAYERS - 1) write_all(out->diff, tarn_tensor_size(out), 1);
  assert_ok(tarn_step_pop(step, TARN_DTYPE_F32, 2, false, &cache));
  ck_assert_float_eq(first_of(cache), 1 + 10 * (float)layer);
  assert_ok(tarn_step_pop(step, TARN_DTYPE_F32, SAMPLES, false, &cache));
  ck_assert_float_eq(first_of(cache), (float)layer);
  float dy = first_of(out->diff);
  param_t *w = net_get_param(tarn_model_list(model, TARN_PARAM),
                             name_of(name, layer, "weight"));
  fill(w->diff, dy);
  if (layer == 0) return;
  param_t *in = net_get_param(tarn_model_list(model, TARN_INPUT),
                              name_of(name, layer, "in"));
  write_all(in->diff, tarn_tensor_size(in), dy + 1);
}

static void play_model(void) {
  tarn_model *model = NULL;
  tarn_step *steps[LAYERS];
  const tarn_model_options options = {.struct_size = sizeof options,
                                      .max_batch = MAX_BATCH};
  const tarn_model_plan_options plan = {.struct_size = sizeof plan,
                                        .home = tarn_place_on(device)};
  assert_ok(tarn_model_create(&options, &model));
  for (size_t i = 0; i < LAYERS; i++)
    describe(model, i, &steps[i]);
  struct list_head *params = tarn_model_list(model, TARN_PARAM);
  ck_assert_uint_eq(length(params), LAYERS);
  ck_assert_uint_eq(length(tarn_model_list(model, TARN_INPUT)), LAYERS);
  assert_ok(tarn_model_plan(model, &plan));
  assert_ok(tarn_model_place(model));
  param_t *x = tarn_model_get(model, TARN_OUTPUT, "x");
  for (int round = 0; round < 2; round++) {
    write_all(x->data, tarn_tensor_size(x), 1);
    for (size_t i = 0; i < LAYERS; i++) {
      char name[32];
      fill(net_get_param(params, name_of(name, i, "weight"))->data, 10);
      step_forward(model, steps[i], i);
    }
    // "list of layer cache": those that were described, and those that were
    // not.
    ck_assert_uint_eq(length(tarn_model_list(model, TARN_CACHE)),
                      (size_t)2 * LAYERS);
    for (size_t i = LAYERS; i-- > 0;)
      step_backward(model, steps[i], i);
    assert_ok(tarn_model_leave(model));
    expect_on_device(net_get_param(params, "fc0.weight")->diff, 3);
    expect_on_device(net_get_param(params, "fc2.weight")->diff, 1);
  }
  assert_ok(tarn_model_destroy(model));
}

TEST_LOOP(with_the_lists_of_a_model, DOCUMENT_DEVICES) {
  device = document_open(_i);
  play_model();
  ck_assert_uint_eq(live_blocks(), 0);  // makes the pools that it asks
  size_t held = tarn_host_memory();
  play_model();
  ck_assert_uint_eq(live_blocks(), 0);
  ck_assert_uint_eq(tarn_host_memory(), held);
  assert_ok(tarn_device_close(device));
}
