// A program that trains, as a trace of its steps, for the tests of roles: what
// each of its blocks is for follows from the block's address.
#ifndef TARN_TESTS_TOOL_ROLES_KIT_H_
#define TARN_TESTS_TOOL_ROLES_KIT_H_

#include <string.h>

#include "moment.h"
#include "roles.h"
#include "why_kit.h"

#define TORCH "/venv/lib/python3.12/site-packages/torch/"

static uint32_t in_forward, in_loss, in_backward, in_accumulation, in_optimizer,
    in_zero_grad, in_loop;

static uint32_t stack_of_three(tarn_trace_frame a, tarn_trace_frame b,
                               tarn_trace_frame c) {
  tarn_trace_frame frames[] = {a, b, c};
  return stack_of(frames, 3);
}

static const tarn_trace_frame malloc_frame = {"??", "at::empty_cuda", 0};
static const tarn_trace_frame main_frame = {"/home/me/train.py", "main", 9};
static const tarn_trace_frame forward_frame = {"/home/me/net.py", "forward", 3};
static const tarn_trace_frame wrapper_frame = {TORCH "optim/optimizer.py",
                                               "wrapper", 500};
static const tarn_trace_frame engine_frame = {
    "??", "torch::autograd::Engine::thread_main(...)", 0};

static void begin_program(void) {
  begin();
  in_forward = stack_of_three(malloc_frame, forward_frame, main_frame);
  in_loss = stack_of_three(malloc_frame,
                           (tarn_trace_frame){"/home/me/loss.py", "mean", 4},
                           main_frame);
  in_backward = stack_of_three(
      malloc_frame, (tarn_trace_frame){"??", "MmBackward0::apply(...)", 0},
      engine_frame);
  in_accumulation = stack_of_three(
      malloc_frame,
      (tarn_trace_frame){"??", "torch::autograd::AccumulateGrad::apply(...)",
                         0},
      engine_frame);
  in_optimizer = stack_of_three(
      malloc_frame, (tarn_trace_frame){"/home/me/adam.py", "step", 7},
      wrapper_frame);
  in_zero_grad = stack_of_three(
      malloc_frame,
      (tarn_trace_frame){TORCH "optim/optimizer.py", "zero_grad", 900},
      main_frame);
  in_loop = stack_of_three(malloc_frame,
                           (tarn_trace_frame){"/home/me/data.py", "to", 1},
                           main_frame);
}

// What the program allocates: one hundred per layer, by kind.
enum {
  LAYERS = 5,
  WEIGHT = 1000,
  FIRST_STATE = 1100,
  SECOND_STATE = 1200,
  GRADIENT = 1300,
  ACTIVATION = 1400,
  FLOW = 1500,  // gradients of activations
  SCRATCH = 1600,
  BUFFER = 1700,
  BATCH = 1800,
  LOSS = 1900,
  WORK = 2000,
};

static uint64_t size_of_layer(uint64_t i) {
  return 65536 * (1 + i / 2);
}

static void old(uint64_t address, uint64_t size) {
  tarn_trace_block block = {
      .size = size, .address = address, .stack = TARN_TRACE_NO_STACK};
  assert_ok(tarn_trace_builder_old(builder, &block));
}

static void drop(uint64_t address, uint32_t stack) {
  event(TARN_TRACE_FREE, address, 0, stack);
}

static void add_model(bool with_states) {
  for (uint64_t i = 0; i < LAYERS; i++) {
    old(WEIGHT + i, size_of_layer(i));
    if (with_states) old(FIRST_STATE + i, size_of_layer(i));
    if (with_states) old(SECOND_STATE + i, size_of_layer(i));
  }
  old(BUFFER, 777);
  old(WORK, 8519680);
}

// A scratch block comes and goes in each layer.
static void run_forward(uint64_t activation, bool for_backward) {
  for (uint64_t i = 0; i < LAYERS; i++) {
    alloc(SCRATCH, 300, in_forward);
    alloc(ACTIVATION + i, activation, in_forward);
    drop(SCRATCH, in_forward);
    if (!for_backward && i > 0) drop(ACTIVATION + i - 1, in_forward);
  }
  if (for_backward)
    alloc(LOSS, 4, in_loss);
  else
    drop(ACTIVATION + LAYERS - 1, in_loop);
}

static void run_backward(void) {
  for (uint64_t i = LAYERS; i-- > 0;) {
    alloc(FLOW + i, 5000, in_backward);
    if (i + 1 < LAYERS) drop(FLOW + i + 1, in_backward);
    alloc(GRADIENT + i, size_of_layer(i),
          i % 2 == 0 ? in_accumulation : in_backward);
    drop(ACTIVATION + i, in_backward);
  }
  drop(FLOW, in_backward);
  drop(LOSS, in_loop);
}

static void run_optimizer(void) {
  for (uint64_t i = 0; i < LAYERS; i++) {
    alloc(SCRATCH, size_of_layer(i), in_optimizer);
    drop(SCRATCH, in_optimizer);
  }
}

static void zero_gradients(void) {
  for (uint64_t i = 0; i < LAYERS; i++)
    drop(GRADIENT + i, in_zero_grad);
}

static void run_step(uint64_t activation) {
  alloc(BATCH, 640, in_loop);
  run_forward(activation, true);
  run_backward();
  run_optimizer();
  zero_gradients();
  drop(BATCH, in_loop);
}

static role role_at(uint64_t address) {
  switch (address / 100 * 100) {
    case WEIGHT:
      return ROLE_PARAMETER;
    case FIRST_STATE:
    case SECOND_STATE:
      return ROLE_OPTIMIZER_STATE;
    case GRADIENT:
      return ROLE_GRADIENT;
    case ACTIVATION:
    case LOSS:
      return ROLE_ACTIVATION;
    case BUFFER:
    case BATCH:
      return ROLE_INPUT;
    case WORK:
      return ROLE_WORKSPACE;
    default:
      return ROLE_TEMPORARY;
  }
}

// Weights and states of one size look the same: which of them is which is not
// told, only how many. All others are told one by one.
static bool is_matched(role what) {
  return what == ROLE_PARAMETER || what == ROLE_OPTIMIZER_STATE;
}

static bool agrees(role found, role meant) {
  return found == meant || (is_matched(found) && is_matched(meant));
}

static void assert_roles(const tarn_trace *trace, const roles *r) {
  for (uint32_t i = 0; i < trace->block_count; i++) {
    uint64_t address = trace->blocks[i].address;
    ck_assert_msg(agrees(roles_of(r, i), role_at(address)),
                  "block %u at %llu is %s", i, (unsigned long long)address,
                  role_name(roles_of(r, i)));
  }
}

static uint64_t bytes_of(const role_sums *sums, role what) {
  for (size_t i = 0; i < sums->count; i++) {
    if (sums->items[i].what == what) return sums->items[i].bytes;
  }
  return 0;
}

static uint64_t sum_of(const role_sums *sums) {
  uint64_t sum = 0;
  for (size_t i = 0; i < sums->count; i++) {
    sum += sums->items[i].bytes;
    ck_assert_uint_gt(sums->items[i].rule_count, 0);
    ck_assert_uint_gt(strlen(sums->items[i].rules[0]), 10);
  }
  return sum;
}

// The sums at |when|, which are all that is alive then.
static role_sums sums_at(const tarn_trace *trace, const roles *r,
                         uint32_t when) {
  block_set live = moment_live(trace, when);
  role_sums sums = roles_sum(r, trace, &live);
  ck_assert_uint_eq(sum_of(&sums), live.bytes);
  block_set_deinit(&live);
  return sums;
}

static uint64_t model_bytes(void) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < LAYERS; i++)
    sum += size_of_layer(i);
  return sum;
}

#endif  // TARN_TESTS_TOOL_ROLES_KIT_H_
