// Placing at the host, at a device, at both: memory taken, memory left by a
// failed place, and after the end of model, views and tensors.
#include <sys/wait.h>
#include <unistd.h>

#include "run_kit.h"
#include "support/effort.h"
#include "support/faults.h"

// Pools and copy streams are made at first use, and stay.
static void warm_up(void) {
  for (int where = 0; where < NET_PLACES; where++) {
    net n = net_placed((net_where)where, gpu);
    net_round(&n, where == AT_HOST ? TARN_HOST : tarn_place_on(gpu), NULL, 1);
    assert_ok(tarn_model_destroy(n.model));
  }
}

// --- what is taken ---------------------------------------------------------

// At home and at compute one block each, of the plan's size, and no more until
// a part that is not planned is used.
TEST_PLACES_OF_NET(test_one_block_for_each_place) {
  net n = net_placed((net_where)_i, gpu);
  bool at_host = _i != AT_DEVICE;
  bool at_device = _i != AT_HOST;
  tarn_place host_pool =
      _i == DEVICE_AND_HOST ? (tarn_place){gpu, TARN_PLACE_HOST} : TARN_HOST;
  size_t planned = net_planned(&n);
  ck_assert_uint_gt(planned, 0);
  tarn_pool_stats host = stats_of(host_pool);
  tarn_pool_stats at_gpu = stats_of(tarn_place_on(gpu));
  ck_assert_uint_eq(host.allocs, at_host);
  ck_assert_uint_eq(at_gpu.allocs, at_device);
  ck_assert_uint_ge(host.live_bytes, at_host ? planned : 0);
  ck_assert_uint_ge(at_gpu.live_bytes, at_device ? planned : 0);
  assert_ok(tarn_model_destroy(n.model));
  ck_assert_uint_eq(stats_of(host_pool).live_bytes, 0);
  all_is_back();
}

// Planned parts have no memory but the plan's, wherever the plan is.
TEST_PLACES_OF_NET(test_a_round_at_every_place) {
  net n = net_placed((net_where)_i, gpu);
  tarn_place places[] = {TARN_HOST, tarn_place_on(gpu)};
  for (unsigned char round = 0; round < 6; round++)
    net_round(&n, places[round % 2], NULL, (unsigned char)(10 * round));
  net_expect(n.w[2]->diff, n.w[2]->max_size, TARN_HOST, 52);
  assert_ok(tarn_model_destroy(n.model));
  all_is_back();
}

// The host is one place, pinned or not, and cpu:0 is the host: no second
// block is taken.
TEST_SET_ON(test_two_names_of_one_place, TEST_NEEDS_DISCRETE, use_gpu) {
  tarn_device *cpu = open_device("cpu:0");
  const tarn_place names[] = {
      {gpu, TARN_PLACE_HOST}, tarn_place_on(cpu), {cpu, TARN_PLACE_HOST}};
  for (size_t i = 0; i < 3; i++) {
    net n = net_make();
    tarn_model_plan_options options = {.struct_size = sizeof options,
                                       .compute = names[i]};
    uint64_t before = stats_of(TARN_HOST).allocs;
    uint64_t pinned = stats_of(names[0]).allocs;
    assert_ok(tarn_model_plan(n.model, &options));
    assert_ok(tarn_model_place(n.model));
    ck_assert_uint_eq(stats_of(TARN_HOST).allocs, before + 1);
    ck_assert_uint_eq(stats_of(names[0]).allocs, pinned);
    net_round(&n, TARN_HOST, NULL, 1);
    assert_ok(tarn_model_destroy(n.model));
  }
  all_is_back();
}

// TARN_HOST is the zero place and says nothing. With a home on a device, cpu:0
// selects the host, in memory that the device pins.
TEST_SET_ON(test_compute_at_the_host, TEST_NEEDS_DISCRETE, use_gpu) {
  tarn_device *cpu = open_device("cpu:0");
  const tarn_place pinned = {gpu, TARN_PLACE_HOST};
  const tarn_place names[] = {
      TARN_HOST, tarn_place_on(cpu), {cpu, TARN_PLACE_HOST}, pinned};
  for (size_t i = 0; i < 4; i++) {
    net n = net_make();
    tarn_model_plan_options options = {.struct_size = sizeof options,
                                       .home = tarn_place_on(gpu),
                                       .compute = names[i]};
    uint64_t at_host = stats_of(TARN_HOST).allocs;
    uint64_t at_pinned = stats_of(pinned).allocs;
    assert_ok(tarn_model_plan(n.model, &options));
    assert_ok(tarn_model_place(n.model));
    ck_assert_uint_eq(stats_of(TARN_HOST).allocs, at_host);
    ck_assert_uint_eq(stats_of(pinned).allocs, at_pinned + (i > 0));
    net_round(&n, TARN_HOST, NULL, 1);
    net_round(&n, tarn_place_on(gpu), NULL, 2);
    tarn_addr address = 0;
    tarn_pointer_info info = {.place = tarn_place_on(gpu)};
    assert_ok(tarn_synced_gpu_data(n.w[0]->data, &address));
    if ((tarn_device_extensions(gpu) & TARN_EXTENSION_POINTERS) != 0)
      assert_ok(tarn_device_pointer_query(gpu, address, &info));
    ck_assert_ptr_eq(info.place.device, gpu);
    ck_assert_int_eq(info.place.kind, TARN_PLACE_DEVICE);
    assert_ok(tarn_model_destroy(n.model));
  }
  all_is_back();
}

TEST(test_nothing_to_place) {
  tarn_model *model = NULL;
  assert_ok(tarn_model_create(NULL, &model));
  assert_status(tarn_model_place(model), TARN_E_STATE);
  assert_error_says("model: it is not planned");
  assert_ok(tarn_model_plan(model, NULL));
  assert_ok(tarn_model_place(model));
  assert_status(tarn_model_place(model), TARN_E_STATE);
  assert_error_says("it is placed already");
  assert_status(tarn_model_forget(model), TARN_E_STATE);
  assert_ok(tarn_model_leave(model));
  assert_ok(tarn_model_release(model));
  assert_ok(tarn_model_release(model));
  assert_ok(tarn_model_destroy(model));
}

TEST(test_null) {
  assert_status(tarn_model_place(NULL), TARN_E_INVALID);
  assert_status(tarn_model_release(NULL), TARN_E_INVALID);
  assert_status(tarn_model_leave(NULL), TARN_E_INVALID);
  assert_status(tarn_model_set_batch(NULL, 1), TARN_E_INVALID);
  assert_status(tarn_model_set_max_batch(NULL, 1), TARN_E_INVALID);
  ck_assert_int_eq(tarn_model_batch(NULL), 0);
  assert_ok(tarn_model_destroy(NULL));
}

// --- what fails ------------------------------------------------------------

static void assert_no_buffers(const net *n) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, tarn_model_list(n->model, TARN_KIND_ALL)) {
    const tarn_tensor *tensor = tarn_list_entry(node, tarn_tensor, among);
    ck_assert_ptr_null(tensor->data);
    ck_assert_ptr_null(tensor->diff);
  }
}

// A device too small for the plan: what was taken at home goes back.
TEST_RANGE(test_no_room, AT_DEVICE, DEVICE_AND_HOST) {
  open_sim(4096, 0);
  net n = net_make();
  assert_ok(tarn_model_set_max_batch(n.model, 200));
  tarn_model_plan_options options = net_options((net_where)_i, gpu);
  assert_ok(tarn_model_plan(n.model, &options));
  tarn_model_needs report = {.struct_size = sizeof report};
  assert_ok(tarn_model_report(n.model, &report));
  ck_assert(report.fits == (_i == HOST_AND_DEVICE));
  assert_status(tarn_model_place(n.model), TARN_FULL);
  size_t held = tarn_host_memory();  // there are pools now
  assert_status(tarn_model_place(n.model), TARN_FULL);
  ck_assert_uint_eq(tarn_host_memory(), held);
  assert_no_buffers(&n);
  ck_assert_uint_eq(stats_of(TARN_HOST).live_bytes, 0);
  assert_status(tarn_model_enter(n.step[0], TARN_FORWARD), TARN_E_STATE);
  assert_error_says("chain: it is not placed");
  assert_ok(tarn_model_forget(n.model));
  net_place(&n, AT_HOST, gpu);
  assert_ok(tarn_model_destroy(n.model));
  all_is_back();
}

static void place_and_end(void *context) {
  const net *n = context;
  tarn_status status = tarn_model_place(n->model);
  if (status != TARN_OK) {
    require(status == TARN_E_NOMEM || status == TARN_FULL);
    require(n->y[0]->data == NULL && n->in[0]->data == NULL);
    require(stats_of(tarn_place_on(gpu)).live_bytes == 0);
    require(stats_of(TARN_HOST).live_bytes == 0);
    return;
  }
  require(n->w[0]->data != NULL && n->tied->diff != NULL && n->m->data != NULL);
  status = tarn_model_release(n->model);
  require(status == TARN_OK || status == TARN_E_NOMEM);
}

// Parameters stay in between, so that only the first place makes them.
TEST_LOOP_ON_LIBRARY(test_no_memory_for_the_arrays,
                     THREADS_ARE_WATCHED ? 0 : NET_PLACES, TEST_NEEDS_DISCRETE,
                     use_gpu) {
  warm_up();
  net n = net_make();
  tarn_plan_options solver = {.struct_size = sizeof solver, .node_limit = 100};
  tarn_model_plan_options options = net_options((net_where)_i, gpu);
  options.solver = &solver;
  assert_ok(tarn_model_plan(n.model, &options));
  for (int mode = FAULTS_ONCE; mode <= FAULTS_FROM_NOW; mode++) {
    size_t met = 1;
    for (bool struck = true; struck; met += EFFORT(1, 9)) {
      net each = net_make();
      assert_ok(tarn_model_plan(each.model, &options));
      size_t held = tarn_host_memory();
      faults_arm(met, (faults_mode)mode);
      tarn_status status = tarn_model_place(each.model);
      struck = faults_disarm();
      require(struck || status == TARN_OK);
      if (status != TARN_OK) {
        require(status == TARN_E_NOMEM || status == TARN_FULL);
        require(tarn_host_memory() == held);
        assert_no_buffers(&each);
        assert_ok(tarn_model_place(each.model));
      }
      assert_ok(tarn_model_destroy(each.model));
    }
    ck_assert_uint_gt(met, 60);
  }
  assert_ok(tarn_model_place(n.model));  // its parameters stay
  assert_ok(tarn_model_release(n.model));
  if (EFFORT(true, _i == HOST_AND_DEVICE)) {
    ck_assert_uint_gt(faults_sweep(place_and_end, &n), 60);
  }
  assert_ok(tarn_model_destroy(n.model));
  all_is_back();
}

// The device refuses what a place asks it for.
TEST(test_the_device_fails) {
  open_sim(SIM_MIB, 0);
  net n = net_make();
  tarn_model_plan_options options = net_options(HOST_AND_DEVICE, gpu);
  assert_ok(tarn_model_plan(n.model, &options));
  assert_ok(tarn_sim_faults("*@1+"));
  tarn_status status = tarn_model_place(n.model);
  ck_assert(status == TARN_FULL || status == TARN_E_DEVICE);
  assert_no_buffers(&n);
  ck_assert_uint_eq(stats_of(TARN_HOST).live_bytes, 0);
  assert_ok(tarn_sim_faults(""));
  assert_ok(tarn_model_place(n.model));
  assert_ok(tarn_model_destroy(n.model));
  all_is_back();
}

// --- ending ----------------------------------------------------------------

// Views of what is planned, of what is fed, of an input and of a parameter,
// that outlive the model, or end first.
TEST_SET_ON(test_any_order_of_ends, TEST_NEEDS_DISCRETE, use_gpu) {
  warm_up();
  size_t held = tarn_host_memory();
  for (int order = 0; order < 16; order++) {
    net_where where = (net_where)(order % NET_PLACES);
    tarn_place place = order % 2 == 0 ? TARN_HOST : tarn_place_on(gpu);
    net n = net_placed(where, gpu);
    net_forward(&n, 0, place, NULL, 1);
    net_write(n.w[0]->data, n.w[0]->max_size, place, NULL, 77);
    tarn_synced *of[] = {n.y[0]->data, n.x->data, n.in[1]->data, n.w[0]->data};
    tarn_synced *views[4];
    for (size_t i = 0; i < 4; i++)
      assert_ok(tarn_synced_view(of[i], 0, 8, &views[i]));
    for (size_t i = 0; i < 4; i++)  // before the model
      if ((order >> i & 1) != 0) assert_ok(tarn_synced_destroy(views[i]));
    assert_ok(tarn_model_destroy(n.model));
    for (size_t i = 0; i < 4; i++) {
      if ((order >> i & 1) != 0) continue;
      if (i == 0 || i == 2) {
        net_refused(views[i], TARN_HOST);
        net_refused(views[i], tarn_place_on(gpu));
        assert_error_says("its model has given its memory back");
      } else {
        net_expect(views[i], 8, TARN_HOST, i == 1 ? 9 : 77);
      }
      assert_ok(tarn_synced_destroy(views[i]));
    }
    ck_assert_uint_eq(stats_of(TARN_HOST).live_bytes, 0);
    ck_assert_uint_eq(stats_of(tarn_place_on(gpu)).live_bytes, 0);
    ck_assert_uint_eq(tarn_host_memory(), held);
  }
  all_is_back();
}

// Work that is queued still: the memory goes back when it is over.
TEST(test_the_end_waits_for_streams) {
  open_sim(SIM_MIB, 2000000);
  tarn_stream *stream = NULL;
  assert_ok(tarn_stream_create(gpu, &stream));
  static unsigned char bytes[64];
  for (int i = 0; i < 3; i++) {
    net n = net_placed(AT_DEVICE, gpu);
    net_enter(&n, 0, TARN_FORWARD);
    tarn_access a;
    assert_ok(tarn_synced_begin(n.y[0]->data, 0, sizeof bytes,
                                tarn_place_on(gpu), TARN_WRITE_DISCARD, stream,
                                &a));
    for (int k = 0; k < 3; k++)
      assert_ok(tarn_copy_h2d(gpu, a.address, bytes, sizeof bytes, stream));
    assert_ok(tarn_synced_end(&a));
    assert_ok(tarn_model_destroy(n.model));
    assert_ok(tarn_stream_query(stream));
  }
  assert_ok(tarn_stream_destroy(stream));
  all_is_back();
}

// --- open accesses ---------------------------------------------------------

static void refuse_all(const net *n, const char *text) {
  assert_status(tarn_model_release(n->model), TARN_E_STATE);
  assert_error_says(text);
  assert_status(tarn_model_set_max_batch(n->model, 3), TARN_E_STATE);
  assert_error_says(text);
  assert_status(tarn_model_destroy(n->model), TARN_E_STATE);
  assert_error_says(text);
}

TEST(test_open_accesses_are_in_the_way) {
  net n = net_placed(AT_HOST, NULL);
  net_enter(&n, 0, TARN_FORWARD);
  tarn_access a;
  const struct {
    tarn_synced *buffer;
    size_t size;
    const char *text;
  } each[] = {
      {n.y[0]->data, 4, "'y0': an access to it is open"},
      {n.y[0]->data, 0, "'y0': an access to it is open"},
      {n.in[1]->data, 4, "'y0': an access to it is open"},
      {n.x->data, TARN_ALL, "'x0': an access to it is open"},
      {n.mask[0]->data, 1, "'mask0': an access to it is open"},
  };
  for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
    assert_ok(tarn_synced_begin(each[i].buffer, 0, each[i].size, TARN_HOST,
                                TARN_WRITE_DISCARD, NULL, &a));
    refuse_all(&n, each[i].text);
    assert_ok(tarn_synced_end(&a));
  }
  // Parameters stay when a model is released.
  assert_ok(tarn_synced_begin(n.w[0]->data, 0, TARN_ALL, TARN_HOST, TARN_READ,
                              NULL, &a));
  assert_status(tarn_model_destroy(n.model), TARN_E_STATE);
  assert_error_says("'w0': an access to it is open");
  assert_ok(tarn_model_set_max_batch(n.model, 3));
  assert_ok(tarn_model_release(n.model));
  assert_ok(tarn_synced_end(&a));
  // And through views not even when it ends.
  tarn_synced *view = NULL;
  assert_ok(tarn_synced_view(n.w[0]->data, 0, 16, &view));
  assert_ok(
      tarn_synced_begin(view, 0, 16, TARN_HOST, TARN_READ_WRITE, NULL, &a));
  assert_ok(tarn_model_destroy(n.model));
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_synced_destroy(view));
}

// --- what stays ------------------------------------------------------------

TEST_SET_ON(test_parameters_stay, TEST_NEEDS_DISCRETE, use_gpu) {
  net n = net_placed(AT_HOST, gpu);
  tarn_synced *w = n.w[0]->data;
  net_write(w, n.w[0]->max_size, TARN_HOST, NULL, 1);
  net_write(n.w[0]->diff, n.w[0]->max_size, TARN_HOST, NULL, 2);
  net_write(n.m->data, n.m->max_size, TARN_HOST, NULL, 3);
  net_write(n.tied->data, n.tied->max_size, TARN_HOST, NULL, 4);
  for (int i = 0; i < 2 * NET_PLACES; i++) {
    assert_ok(tarn_model_release(n.model));
    ck_assert_ptr_null(n.y[0]->data);
    ck_assert_ptr_null(n.in[0]->data);
    ck_assert_ptr_null(n.mask[0]->data);
    ck_assert_ptr_null(n.x->data);
    ck_assert_ptr_eq(n.w[0]->data, w);
    assert_ok(tarn_model_forget(n.model));
    tarn_model_plan_options options =
        net_options((net_where)(i % NET_PLACES), gpu);
    options.mode = i % 3 == 0 ? TARN_INFER : TARN_TRAIN;
    assert_ok(tarn_model_plan(n.model, &options));
    assert_ok(tarn_model_place(n.model));
    tarn_place place = i % 2 == 0 ? TARN_HOST : tarn_place_on(gpu);
    net_expect(n.w[0]->data, n.w[0]->max_size, place, 1);
    net_expect(n.w[0]->diff, n.w[0]->max_size, place, 2);
    net_expect(n.m->data, n.m->max_size, place, 3);
    net_expect(n.w[1]->data, n.w[1]->max_size, place, 4);
    net_expect(n.x->data, tarn_tensor_size(n.x), place, 0);
    net_enter(&n, 0, TARN_FORWARD);
    net_write(n.x->data, tarn_tensor_size(n.x), place, NULL, 5);
  }
  assert_ok(tarn_model_destroy(n.model));
  all_is_back();
}

// Another name of what is there already, and of a diff that was not made for
// inference and is made together with it.
TEST_SET_ON(test_names_that_come_later, TEST_NEEDS_DISCRETE, use_gpu) {
  net n = net_make();
  tarn_tensor *later = NULL;
  tarn_model_plan_options options = {.struct_size = sizeof options,
                                     .mode = TARN_INFER};
  assert_ok(tarn_model_plan(n.model, &options));
  assert_ok(tarn_model_place(n.model));
  net_write(n.w[0]->data, n.w[0]->max_size, TARN_HOST, NULL, 6);
  net_write(n.w[1]->data, n.w[1]->max_size, TARN_HOST, NULL, 7);
  assert_ok(tarn_model_release(n.model));
  assert_ok(tarn_model_forget(n.model));
  assert_ok(tarn_model_tie(n.model, "later", n.w[0], &later));
  net_place(&n, AT_HOST, gpu);
  net_expect(later->data, later->max_size, TARN_HOST, 6);
  net_expect(n.tied->data, n.tied->max_size, TARN_HOST, 7);
  net_write(n.w[0]->diff, n.w[0]->max_size, TARN_HOST, NULL, 8);
  net_write(n.tied->diff, n.tied->max_size, TARN_HOST, NULL, 9);
  net_expect(later->diff, later->max_size, TARN_HOST, 8);
  net_expect(n.w[1]->diff, n.w[1]->max_size, TARN_HOST, 9);
  assert_ok(tarn_model_destroy(n.model));
  all_is_back();
}

// --- fork ------------------------------------------------------------------

static int in_child(const net *n) {
  assert_status(tarn_model_enter(n->step[1], TARN_FORWARD), TARN_E_STATE);
  assert_error_says("chain: made before a fork");
  assert_status(tarn_model_leave(n->model), TARN_E_STATE);
  assert_status(tarn_model_release(n->model), TARN_E_STATE);
  assert_status(tarn_model_set_max_batch(n->model, 2), TARN_E_STATE);
  assert_status(tarn_model_set_batch(n->model, 2), TARN_E_STATE);
  tarn_synced *buffer = NULL;
  assert_status(tarn_step_push(n->step[0], TARN_DTYPE_I8, 1, false, &buffer),
                TARN_E_STATE);
  size_t before = tarn_host_memory();
  assert_ok(tarn_model_destroy(n->model));
  return tarn_host_memory() < before ? 0 : 1;
}

TEST_PLACES_OF_NET(test_a_child_frees) {
  net n = net_placed((net_where)_i, gpu);
  net_forward(&n, 0, TARN_HOST, NULL, 1);
  tarn_synced *extra = NULL;
  assert_ok(tarn_step_push(n.step[0], TARN_DTYPE_I8, 10, false, &extra));
  tarn_access a;
  assert_ok(
      tarn_synced_begin(extra, 0, 10, TARN_HOST, TARN_WRITE_DISCARD, NULL, &a));
  pid_t child = fork();
  if (child == 0) _exit(in_child(&n));
  int status = 1;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  assert_ok(tarn_synced_end(&a));
  assert_ok(tarn_model_destroy(n.model));
  all_is_back();
}

// Host memory is counted from the first on.
int main(void) {
  faults_install();
  return run_tests();
}
