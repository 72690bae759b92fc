// run_kit.h - a small net to run, its places, and its bytes.
//
//   x (fed) ──► s0 ──► y0 ──► s1 ──► y1 ──► ... ──► y3
//               w0, mask      w1, mask
//
// Step i reads in<i>, a view of what is below, and w<i>, writes y<i>, and keeps
// a mask; backward it reads y<i>'s diff and the mask, and writes the diff of
// what is below, and w<i>'s. The last one begins with its own diff.
#ifndef TARN_TESTS_MODEL_RUN_KIT_H_
#define TARN_TESTS_MODEL_RUN_KIT_H_

#include <stdio.h>

#include "sim/kit.h"
#include "support/on_devices.h"
#include "tarn/model_run.h"

enum { NET_STEPS = 4, NET_WIDTH = 16, NET_BATCH = 8 };

typedef struct net {
  tarn_model *model;
  tarn_tensor *x;
  tarn_tensor *in[NET_STEPS], *w[NET_STEPS], *y[NET_STEPS], *mask[NET_STEPS];
  tarn_tensor *m;     // a state of w[0]
  tarn_tensor *tied;  // another name of w[1]
  tarn_step *step[NET_STEPS];
} net;

static inline tarn_tensor *net_add(const net *n, tarn_tensor_kind kind,
                                   const char *name, size_t i, int64_t first) {
  char text[24];
  tarn_tensor *tensor = NULL;
  const int64_t dims[] = {first, NET_WIDTH};
  snprintf(text, sizeof text, "%s%zu", name, i);
  assert_ok(tarn_model_add(n->model, kind, text, TARN_DTYPE_F32,
                           (tarn_shape){dims, 2}, &tensor));
  return tensor;
}

static inline void net_add_step(net *n, size_t i) {
  char name[24];
  const int64_t dims[] = {TARN_DIM_BATCH, NET_WIDTH};
  tarn_tensor *below = i == 0 ? n->x : n->y[i - 1];
  snprintf(name, sizeof name, "in%zu", i);
  assert_ok(tarn_model_add_input(n->model, name, below, &n->in[i]));
  n->w[i] = net_add(n, TARN_PARAM, "w", i, NET_WIDTH);
  n->y[i] = net_add(n, TARN_OUTPUT, "y", i, TARN_DIM_BATCH);
  snprintf(name, sizeof name, "s%zu", i);
  assert_ok(tarn_model_step(n->model, name, &n->step[i]));
  tarn_step *s = n->step[i];
  assert_ok(tarn_step_reads(s, TARN_FORWARD, n->in[i], TARN_DATA));
  assert_ok(tarn_step_reads(s, TARN_FORWARD, n->w[i], TARN_DATA));
  assert_ok(tarn_step_writes(s, TARN_FORWARD, n->y[i], TARN_DATA));
  snprintf(name, sizeof name, "mask%zu", i);
  assert_ok(tarn_step_caches(s, name, TARN_DTYPE_BOOL, (tarn_shape){dims, 2},
                             true, &n->mask[i]));
  if (i == NET_STEPS - 1) {
    assert_ok(tarn_step_writes(s, TARN_BACKWARD, n->y[i], TARN_DIFF));
  }
  assert_ok(tarn_step_reads(s, TARN_BACKWARD, n->in[i], TARN_DATA));
  assert_ok(tarn_step_reads(s, TARN_BACKWARD, n->y[i], TARN_DIFF));
  assert_ok(tarn_step_writes(s, TARN_BACKWARD, n->w[i], TARN_DIFF));
  if (i > 0) {
    assert_ok(tarn_step_writes(s, TARN_BACKWARD, n->in[i], TARN_DIFF));
  }
}

static inline net net_make(void) {
  net n = {0};
  tarn_model_options options = {
      .struct_size = sizeof options, .name = "chain", .max_batch = NET_BATCH};
  assert_ok(tarn_model_create(&options, &n.model));
  n.x = net_add(&n, TARN_OUTPUT, "x", 0, TARN_DIM_BATCH);
  for (size_t i = 0; i < NET_STEPS; i++)
    net_add_step(&n, i);
  assert_ok(tarn_model_add_state(n.model, n.w[0], "m", TARN_DTYPE_F32, &n.m));
  assert_ok(tarn_model_tie(n.model, "tied", n.w[1], &n.tied));
  return n;
}

// --- where -----------------------------------------------------------------

typedef enum net_where {
  AT_HOST,
  AT_DEVICE,
  HOST_AND_DEVICE,  // home and compute
  DEVICE_AND_HOST,
  NET_PLACES
} net_where;

static inline tarn_model_plan_options net_options(net_where where,
                                                  tarn_device *gpu) {
  tarn_model_plan_options o = {.struct_size = sizeof o};
  if (where == AT_DEVICE || where == DEVICE_AND_HOST)
    o.home = tarn_place_on(gpu);
  if (where == HOST_AND_DEVICE) o.compute = tarn_place_on(gpu);
  if (where == DEVICE_AND_HOST) o.compute = (tarn_place){gpu, TARN_PLACE_HOST};
  return o;
}

static inline void net_place(const net *n, net_where where, tarn_device *gpu) {
  tarn_model_plan_options options = net_options(where, gpu);
  assert_ok(tarn_model_plan(n->model, &options));
  assert_ok(tarn_model_place(n->model));
}

static inline net net_placed(net_where where, tarn_device *gpu) {
  net n = net_make();
  net_place(&n, where, gpu);
  return n;
}

static inline tarn_pool_stats stats_of(tarn_place place) {
  tarn_pool *pool = NULL;
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_pool_of(place, &pool));
  assert_ok(tarn_pool_query(pool, &stats));
  return stats;
}

static inline size_t net_planned(const net *n) {
  tarn_model_needs report = {.struct_size = sizeof report};
  assert_ok(tarn_model_report(n->model, &report));
  return report.planned;
}

// --- bytes -----------------------------------------------------------------

static inline void net_write(tarn_synced *buffer, size_t size, tarn_place place,
                             tarn_stream *stream, unsigned char value) {
  tarn_access a;
  static unsigned char bytes[1 << 16];  // outlives what is queued
  require(size <= sizeof bytes);
  assert_ok(tarn_synced_begin(buffer, 0, size, place, TARN_WRITE_DISCARD,
                              stream, &a));
  if (a.pointer != NULL) {
    memset(a.pointer, value, size);
  } else if (size > 0) {
    memset(bytes, value, size);
    assert_ok(tarn_copy_h2d(place.device, a.address, bytes, size, NULL));
  }
  assert_ok(tarn_synced_end(&a));
}

static inline void net_expect(tarn_synced *buffer, size_t size,
                              tarn_place place, unsigned char value) {
  tarn_access a;
  static unsigned char copy[1 << 16];
  require(size <= sizeof copy);
  assert_ok(tarn_synced_begin(buffer, 0, size, place, TARN_READ, NULL, &a));
  const unsigned char *bytes = a.pointer;
  if (bytes == NULL && size > 0) {
    assert_ok(tarn_copy_d2h(place.device, copy, a.address, size, NULL));
    bytes = copy;
  }
  for (size_t i = 0; i < size; i++)
    require(bytes[i] == value);
  assert_ok(tarn_synced_end(&a));
}

// Every access to it is refused.
static inline void net_refused(tarn_synced *buffer, tarn_place place) {
  static const uint32_t modes[] = {TARN_READ, TARN_WRITE_DISCARD,
                                   TARN_READ_WRITE};
  for (size_t i = 0; i < 3; i++) {
    tarn_access a;
    assert_status(tarn_synced_begin(buffer, 0, 1, place, modes[i], NULL, &a),
                  TARN_E_STATE);
    assert_error_says("is suspended");
  }
}

static inline void net_enter(const net *n, size_t step, tarn_pass pass) {
  assert_ok(tarn_model_enter(n->step[step], pass));
}

// What a program does in a round, at |place|; |round| makes the bytes others.
static inline void net_forward(const net *n, size_t i, tarn_place place,
                               tarn_stream *stream, unsigned char round) {
  unsigned char value = (unsigned char)(round + i);
  net_enter(n, i, TARN_FORWARD);
  if (i == 0) net_write(n->x->data, tarn_tensor_size(n->x), place, stream, 9);
  net_expect(n->in[i]->data, tarn_tensor_size(n->in[i]), place,
             i == 0 ? 9 : (unsigned char)(value - 1));
  net_write(n->y[i]->data, tarn_tensor_size(n->y[i]), place, stream, value);
  tarn_synced *mask = NULL;
  assert_ok(tarn_step_push(n->step[i], TARN_DTYPE_BOOL,
                           tarn_tensor_count(n->mask[i]), true, &mask));
  ck_assert_ptr_eq(mask, n->mask[i]->data);
  net_write(mask, tarn_tensor_size(n->mask[i]), place, stream,
            (unsigned char)(value ^ 0x80));
}

static inline void net_backward(const net *n, size_t i, tarn_place place,
                                tarn_stream *stream, unsigned char round) {
  unsigned char value = (unsigned char)(round + i);
  size_t size = tarn_tensor_size(n->y[i]);
  net_enter(n, i, TARN_BACKWARD);
  if (i == NET_STEPS - 1) {
    net_write(n->y[i]->diff, size, place, stream, (unsigned char)(value + 1));
  }
  net_expect(n->in[i]->data, tarn_tensor_size(n->in[i]), place,
             i == 0 ? 9 : (unsigned char)(value - 1));
  net_expect(n->y[i]->diff, size, place, (unsigned char)(value + 1));
  tarn_synced *mask = NULL;
  assert_ok(tarn_step_pop(n->step[i], TARN_DTYPE_BOOL,
                          tarn_tensor_count(n->mask[i]), true, &mask));
  net_expect(mask, tarn_tensor_size(n->mask[i]), place,
             (unsigned char)(value ^ 0x80));
  net_write(n->w[i]->diff, n->w[i]->max_size, place, stream, value);
  if (i > 0) {
    net_write(n->in[i]->diff, tarn_tensor_size(n->in[i]), place, stream, value);
  }
}

static inline void net_round(const net *n, tarn_place place,
                             tarn_stream *stream, unsigned char round) {
  for (size_t i = 0; i < NET_STEPS; i++)
    net_forward(n, i, place, stream, round);
  for (size_t i = NET_STEPS; i-- > 0;)
    net_backward(n, i, place, stream, round);
}

// The device of programs with all_is_back at the end of their tests.
static __attribute__((unused)) tarn_device *gpu;

static inline void use_gpu(tarn_device *device) {
  gpu = device;
}

// At each place of a net, on each device whose memory the host cannot touch.
#define TEST_PLACES_OF_NET(name) \
  TEST_LOOP_ON(name, NET_PLACES, TEST_NEEDS_DISCRETE, use_gpu)

static inline void open_sim(size_t capacity, uint64_t latency_ns) {
  tarn_sim_options options = {.struct_size = sizeof options,
                              .devices = 1,
                              .capacity = capacity,
                              .latency_ns = latency_ns};
  assert_ok(tarn_sim_configure(&options));
  gpu = open_device("sim:0");
}

static inline void all_is_back(void) {
  ck_assert_uint_eq(stats_of(tarn_place_on(gpu)).live_bytes, 0);
  ck_assert_uint_eq(stats_of(TARN_HOST).live_bytes, 0);
  ck_assert_uint_eq(sim_misuses(), 0);
}

#endif  // TARN_TESTS_MODEL_RUN_KIT_H_
