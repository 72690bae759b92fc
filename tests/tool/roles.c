// Roles and passes, of synthetic training steps and inferences: what the trace
// shows is told wherever it is cut and wherever its peak is, and what it does
// not show is unknown.
#include "roles.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "roles_kit.h"
#include "savings.h"
#include "slice.h"

#ifndef TARN_SHARED_DATA
#define TARN_SHARED_DATA "../shared/data"
#endif

// ---------------------------------------------------------------------------
// Whole steps
// ---------------------------------------------------------------------------

// The peak is in the forward pass with large activations, else in the
// optimizer; weights are told from states either way.
TEST_LOOP(peaks_anywhere, 2) {
  static const phase phases_of_peak[] = {PHASE_BACKWARD, PHASE_OPTIMIZER};
  begin_program();
  add_model(true);
  run_step(_i == 0 ? 1000000 : 10);
  tarn_trace *trace = finish();
  roles r = roles_find(trace);
  assert_roles(trace, &r);
  ck_assert_int_eq(phases_at(&r.phases, trace->live_peak_event),
                   phases_of_peak[_i]);
  role_sums sums = sums_at(trace, &r, trace->live_peak_event);
  ck_assert_uint_eq(bytes_of(&sums, ROLE_PARAMETER), model_bytes());
  ck_assert_uint_eq(bytes_of(&sums, ROLE_OPTIMIZER_STATE), 2 * model_bytes());
  ck_assert_uint_eq(bytes_of(&sums, ROLE_UNKNOWN), 0);
  roles_deinit(&r);
  tarn_trace_destroy(trace);
}

TEST(several_steps) {
  begin_program();
  add_model(true);
  for (int i = 0; i < 3; i++)
    run_step(1000);
  tarn_trace *trace = finish();
  roles r = roles_find(trace);
  assert_roles(trace, &r);
  size_t backward = 0;
  for (size_t i = 0; i < r.phases.run_count; i++)
    backward += r.phases.runs[i].what == PHASE_BACKWARD;
  ck_assert_uint_eq(backward, 3);
  for (uint32_t i = 0; i < trace->event_count; i += 7) {
    role_sums sums = sums_at(trace, &r, i);
    ck_assert_uint_eq(bytes_of(&sums, ROLE_PARAMETER), model_bytes());
  }
  roles_deinit(&r);
  tarn_trace_destroy(trace);
}

// An optimizer that makes its states anew, and one that has none before its
// first step.
TEST(states_are_born_in_the_optimizer) {
  begin_program();
  add_model(false);
  for (uint64_t i = 0; i < LAYERS; i++)
    old(FIRST_STATE + i, size_of_layer(i));
  run_forward(100, true);
  run_backward();
  for (uint64_t i = 0; i < LAYERS; i++) {
    alloc(SECOND_STATE + i, size_of_layer(i), in_optimizer);
    drop(FIRST_STATE + i, in_optimizer);
  }
  zero_gradients();
  tarn_trace *trace = finish();
  roles r = roles_find(trace);
  assert_roles(trace, &r);
  roles_deinit(&r);
  tarn_trace_destroy(trace);
}

// The program from its beginning on: its weights are born in the trace.
TEST(weights_are_born_in_the_trace) {
  begin_program();
  for (uint64_t i = 0; i < LAYERS; i++)
    alloc(WEIGHT + i, size_of_layer(i), in_loop);
  for (int i = 0; i < 2; i++)
    run_step(1000);
  tarn_trace *trace = finish();
  roles r = roles_find(trace);
  assert_roles(trace, &r);
  roles_deinit(&r);
  tarn_trace_destroy(trace);
}

// Two backward passes add to the gradients of the first; then the optimizer.
TEST(gradients_are_accumulated) {
  begin_program();
  add_model(true);
  run_forward(100, true);
  run_backward();
  run_forward(100, true);
  for (uint64_t i = LAYERS; i-- > 0;) {
    alloc(FLOW, size_of_layer(i), in_accumulation);
    drop(FLOW, in_accumulation);
    drop(ACTIVATION + i, in_backward);
  }
  drop(LOSS, in_loop);
  run_optimizer();
  zero_gradients();
  tarn_trace *trace = finish();
  roles r = roles_find(trace);
  assert_roles(trace, &r);
  roles_deinit(&r);
  tarn_trace_destroy(trace);
}

// An optimizer that allocates in the last step only.
TEST(an_optimizer_in_place) {
  begin_program();
  add_model(true);
  for (int i = 0; i < 2; i++) {
    run_forward(100, true);
    run_backward();
    if (i == 1) run_optimizer();
    zero_gradients();
  }
  tarn_trace *trace = finish();
  roles r = roles_find(trace);
  assert_roles(trace, &r);
  roles_deinit(&r);
  tarn_trace_destroy(trace);
}

// What a thread that loads data does meanwhile ends no pass.
TEST(other_threads_end_no_pass) {
  begin_program();
  add_model(true);
  run_forward(100, true);
  alloc(FLOW, 500, in_backward);
  alloc(SCRATCH, 10, in_loop);
  alloc(GRADIENT, 777, in_backward);
  drop(FLOW, in_backward);
  drop(SCRATCH, in_loop);
  run_optimizer();
  tarn_trace *trace = finish();
  roles r = roles_find(trace);
  ck_assert_uint_eq(r.phases.run_count, 4);
  ck_assert_int_eq(r.phases.runs[1].what, PHASE_BACKWARD);
  ck_assert_int_eq(r.phases.runs[3].what, PHASE_OPTIMIZER);
  roles_deinit(&r);
  tarn_trace_destroy(trace);
}

// Stacks of Python alone: the thread that runs backward has none, and only the
// gradient of the loss, which the caller makes, names the pass.
TEST(stacks_of_python_alone) {
  begin_program();
  add_model(true);
  run_forward(100, true);
  uint32_t root = stack_of_three(
      (tarn_trace_frame){TORCH "autograd/__init__.py", "_make_grads", 5},
      (tarn_trace_frame){TORCH "autograd/__init__.py", "backward", 6},
      main_frame);
  alloc(FLOW + 50, 4, root);
  in_backward = in_accumulation = TARN_TRACE_NO_STACK;
  run_backward();
  drop(FLOW + 50, root);
  run_optimizer();
  zero_gradients();
  tarn_trace *trace = finish();
  roles r = roles_find(trace);
  assert_roles(trace, &r);
  roles_deinit(&r);
  tarn_trace_destroy(trace);
}

// A net that is written as a function: what precedes backward is its forward
// pass.
TEST(a_net_without_a_forward) {
  begin_program();
  add_model(true);
  for (uint64_t i = 0; i < LAYERS; i++)
    alloc(ACTIVATION + i, 100, in_loss);
  alloc(LOSS, 4, in_loss);
  run_backward();
  run_optimizer();
  tarn_trace *trace = finish();
  roles r = roles_find(trace);
  assert_roles(trace, &r);
  roles_deinit(&r);
  tarn_trace_destroy(trace);
}

// ---------------------------------------------------------------------------
// Steps that are not whole
// ---------------------------------------------------------------------------

// Wherever a trace begins and ends, the sums are what is alive; where it has
// one whole backward pass, weights are told.
TEST(cut_anywhere) {
  begin_program();
  add_model(true);
  for (int i = 0; i < 2; i++)
    run_step(1000);
  tarn_trace *trace = finish();
  uint32_t count = (uint32_t)trace->event_count, half = count / 2;
  for (uint32_t from = 0; from < count; from += 3) {
    slice s = slice_make(trace, from, from < half ? count : count - 1);
    roles r = roles_find(&s.trace);
    for (uint32_t i = 0; i < s.trace.event_count; i += 5)
      sums_at(&s.trace, &r, i);
    role_sums sums = sums_at(&s.trace, &r, s.trace.live_peak_event);
    if (from < half)
      ck_assert_uint_eq(bytes_of(&sums, ROLE_PARAMETER), model_bytes());
    roles_deinit(&r);
    slice_deinit(&s);
  }
  tarn_trace_destroy(trace);
}

// A slice that is looked at with the roles of the whole.
TEST(a_slice_has_the_roles_of_the_whole) {
  begin_program();
  add_model(true);
  for (int i = 0; i < 2; i++)
    run_step(1000);
  tarn_trace *trace = finish();
  roles whole = roles_find(trace);
  uint32_t from = (uint32_t)trace->event_count / 3, to = 2 * from;
  slice s = slice_make(trace, from, to);
  roles r = slice_roles(&s, &whole);
  assert_roles(&s.trace, &r);
  ck_assert_uint_eq(s.trace.event_count, to - from);
  for (uint32_t i = 0; i < to - from; i++) {
    block_set mine = moment_live(&s.trace, i);
    block_set theirs = moment_live(trace, from + i);
    ck_assert_uint_eq(mine.bytes, theirs.bytes);
    ck_assert_int_eq(phases_at(&r.phases, i),
                     phases_at(&whole.phases, from + i));
    block_set_deinit(&mine);
    block_set_deinit(&theirs);
  }
  ck_assert_uint_eq(r.phases.runs[r.phases.run_count - 1].end, to - from);
  roles_deinit(&r);
  roles_deinit(&whole);
  slice_deinit(&s);
  tarn_trace_destroy(trace);
}

TEST(without_an_optimizer) {
  begin_program();
  add_model(true);
  run_forward(100, true);
  run_backward();
  tarn_trace *trace = finish();
  roles r = roles_find(trace);
  assert_roles(trace, &r);
  ck_assert(!r.phases.has[PHASE_OPTIMIZER]);
  roles_deinit(&r);
  tarn_trace_destroy(trace);
}

// Out of memory in the forward pass of the second step.
TEST(cut_in_forward) {
  begin_program();
  add_model(true);
  run_step(1000);
  for (uint64_t i = 0; i < LAYERS; i++)
    alloc(ACTIVATION + i, 200000, in_forward);
  event(TARN_TRACE_OOM, 0, 1 << 30, in_forward);
  tarn_trace *trace = finish();
  roles r = roles_find(trace);
  assert_roles(trace, &r);
  roles_deinit(&r);
  tarn_trace_destroy(trace);
}

// In the backward pass: half of the gradients are there, so that it is unknown
// which old blocks are states.
TEST(cut_in_backward) {
  begin_program();
  add_model(true);
  run_forward(100, true);
  alloc(FLOW, 5000, in_backward);
  alloc(GRADIENT + 4, size_of_layer(4), in_accumulation);
  tarn_trace *trace = finish();
  roles r = roles_find(trace);
  role_sums sums = sums_at(trace, &r, trace->live_peak_event);
  ck_assert_uint_eq(bytes_of(&sums, ROLE_GRADIENT), size_of_layer(4));
  ck_assert_uint_eq(bytes_of(&sums, ROLE_PARAMETER), size_of_layer(4));
  ck_assert_uint_eq(bytes_of(&sums, ROLE_OPTIMIZER_STATE), 0);
  ck_assert_uint_eq(bytes_of(&sums, ROLE_UNKNOWN),
                    3 * model_bytes() - size_of_layer(4) + 777 + 5000);
  roles_deinit(&r);
  tarn_trace_destroy(trace);
}

// zero_grad(set_to_none=False): no gradient is ever born.
TEST(gradients_that_stay) {
  begin_program();
  add_model(true);
  for (uint64_t i = 0; i < LAYERS; i++)
    old(GRADIENT + i, size_of_layer(i));
  run_forward(100, true);
  for (uint64_t i = LAYERS; i-- > 0;) {
    alloc(FLOW, size_of_layer(i), in_backward);
    drop(FLOW, in_backward);
    drop(ACTIVATION + i, in_backward);
  }
  run_optimizer();
  tarn_trace *trace = finish();
  roles r = roles_find(trace);
  role_sums sums = sums_at(trace, &r, trace->live_peak_event);
  ck_assert_uint_eq(bytes_of(&sums, ROLE_UNKNOWN), 4 * model_bytes() + 777);
  ck_assert_uint_eq(bytes_of(&sums, ROLE_GRADIENT), 0);
  roles_deinit(&r);
  tarn_trace_destroy(trace);
}

// A real training step that is cut before its optimizer, so that its peak is in
// backward: what the optimizer freed there is never freed here.
TEST(a_real_step_cut_before_its_optimizer) {
  const char *data = getenv("TARN_TEST_DATA");
  tarn_trace *trace = NULL;
  char path[512];
  snprintf(path, sizeof path, "%s/traces/torch-gpt-medium-128-training.pickle",
           data != NULL ? data : TARN_SHARED_DATA);
  if (access(path, R_OK) != 0) {
    note_skipped(path, "not there");
    return;
  }
  assert_ok(tarn_trace_read(path, NULL, &trace));
  phases p = phases_find(trace);
  uint32_t optimizer = 0;
  for (size_t i = 0; i < p.run_count; i++)
    if (p.runs[i].what == PHASE_OPTIMIZER) optimizer = p.runs[i].first;
  slice s = slice_make(trace, 1000, optimizer);
  roles r = roles_find(&s.trace);
  role_sums sums = sums_at(&s.trace, &r, s.trace.live_peak_event);
  ck_assert_int_eq(phases_at(&r.phases, s.trace.live_peak_event),
                   PHASE_BACKWARD);
  ck_assert_uint_eq(bytes_of(&sums, ROLE_PARAMETER), 1692733440);
  ck_assert_uint_eq(bytes_of(&sums, ROLE_OPTIMIZER_STATE), 3385475072);
  roles_deinit(&r);
  slice_deinit(&s);
  phases_deinit(&p);
  tarn_trace_destroy(trace);
}

// ---------------------------------------------------------------------------
// Other programs
// ---------------------------------------------------------------------------

// Tokens one by one: the keys and values stay, and nothing tells what for.
TEST(inference_with_a_cache) {
  begin_program();
  add_model(false);
  for (uint64_t i = 0; i < 3; i++) {
    run_forward(100, false);
    alloc(3000 + i, 50, in_forward);
  }
  tarn_trace *trace = finish();
  roles r = roles_find(trace);
  role_sums sums = sums_at(trace, &r, (uint32_t)trace->event_count - 1);
  ck_assert_uint_eq(bytes_of(&sums, ROLE_PARAMETER), model_bytes() + 777);
  ck_assert_uint_eq(bytes_of(&sums, ROLE_UNKNOWN), 150);
  ck_assert_uint_eq(bytes_of(&sums, ROLE_WORKSPACE), 8519680);
  sums = sums_at(trace, &r, 2);
  ck_assert_uint_eq(bytes_of(&sums, ROLE_TEMPORARY), 100);
  roles_deinit(&r);
  tarn_trace_destroy(trace);
}

// A function named forward is no pass where there is no PyTorch.
TEST(another_framework) {
  begin();
  old(WORK, 8519680);
  alloc(SCRATCH, 100, stack_at("/home/me/net.py", 1, "forward"));
  tarn_trace *trace = finish();
  roles r = roles_find(trace);
  ck_assert(!phases_are_known(&r.phases));
  role_sums sums = sums_at(trace, &r, 0);
  ck_assert(!role_sums_tell(&sums));
  ck_assert_uint_eq(bytes_of(&sums, ROLE_UNKNOWN), 8519680 + 100);
  ck_assert_ptr_null(phase_name(phases_at(&r.phases, 0)));
  roles_deinit(&r);
  tarn_trace_destroy(trace);
}

TEST(sums_of_random_traces_are_exact) {
  for (uint32_t seed = 0; seed < 20; seed++) {
    tarn_trace *trace = random_trace(seed);
    roles r = roles_find(trace);
    for (uint32_t i = 0; i < trace->event_count; i += 50)
      sums_at(trace, &r, i);
    roles_deinit(&r);
    tarn_trace_destroy(trace);
  }
}

// ---------------------------------------------------------------------------
// Passes
// ---------------------------------------------------------------------------

static phase phase_of_stack(const tarn_trace_frame *frames, size_t count) {
  begin_program();
  alloc(1, 1, stack_of(frames, count));
  alloc(2, 1, in_forward);
  tarn_trace *trace = finish();
  phases p = phases_find(trace);
  phase found = (phase)p.of_event[0];
  phases_deinit(&p);
  tarn_trace_destroy(trace);
  return found;
}

TEST(passes_within_passes) {
  const tarn_trace_frame closure = {"/home/me/loop.py", "closure", 1};
  const tarn_trace_frame again[] = {malloc_frame, forward_frame, engine_frame};
  const tarn_trace_frame lit[] = {malloc_frame, forward_frame, closure,
                                  wrapper_frame};
  const tarn_trace_frame loss[] = {malloc_frame, closure, wrapper_frame};
  const tarn_trace_frame hook[] = {malloc_frame, wrapper_frame, engine_frame};
  ck_assert_int_eq(phase_of_stack(again, 3), PHASE_BACKWARD);
  ck_assert_int_eq(phase_of_stack(lit, 4), PHASE_FORWARD);
  ck_assert_int_eq(phase_of_stack(loss, 3), PHASE_OTHER);
  ck_assert_int_eq(phase_of_stack(hook, 3), PHASE_OPTIMIZER);
}

// ---------------------------------------------------------------------------
// What would help
// ---------------------------------------------------------------------------

// Activations of 5 x 1,000,000 bytes at the peak: without them the optimizer's
// moment is the highest.
TEST(checkpointing_helps_as_far_as_the_next_peak) {
  begin_program();
  add_model(true);
  run_step(1000000);
  tarn_trace *trace = finish();
  roles r = roles_find(trace);
  savings found = savings_find(trace, &r);
  ck_assert_uint_ge(found.count, 1);
  ck_assert_uint_eq(found.items[0].held, 5000004);
  ck_assert_uint_lt(found.items[0].saved, 5000004);
  ck_assert_uint_gt(found.items[0].saved, 4000000);
  roles_deinit(&r);
  tarn_trace_destroy(trace);
}

// Gradients of the step before are alive at a peak in forward.
TEST(gradients_that_are_left) {
  begin_program();
  add_model(true);
  run_forward(10, true);
  run_backward();
  run_optimizer();
  run_forward(1000000, true);
  zero_gradients();
  run_backward();
  run_optimizer();
  tarn_trace *trace = finish();
  roles r = roles_find(trace);
  savings found = savings_find(trace, &r);
  bool told = false;
  for (size_t i = 0; i < found.count; i++) {
    if (strncmp(found.items[i].way, "zero_grad", 9) != 0) continue;
    told = true;
    ck_assert_uint_eq(found.items[i].held, model_bytes());
  }
  ck_assert(told);
  roles_deinit(&r);
  tarn_trace_destroy(trace);
}
