// phases.h - the passes of a training step or of an inference, in a trace.
//
//   events   0 ............................................. event_count
//            |  forward  |  backward      | optimizer |  forward  |
//
// A trace does not say what a program was doing; the frames of its stacks do.
// What they tell, from the innermost frame outwards:
//
//   optimizer   torch/optim/optimizer.py wrapper, torch::optim::...::step
//   backward    torch::autograd::Engine, or backward or grad of
//               torch/autograd/__init__.py
//   forward     a function named forward, or _call_impl of
//               torch/nn/modules/module.py; if backward is further out, a pass
//               that is run again for it, which is of the backward pass
//   closure     what is further out is not looked at: an optimizer runs whole
//               passes in it
//
// The passes on the axis of events are made of that: an event without a stack
// belongs to the pass that it falls into; events whose stacks name no pass
// belong to the pass that goes on behind them, or to forward if backward
// follows, as the loss does. In a trace in which no stack names a forward pass,
// what precedes backward is one.
#ifndef TARN_TOOL_PHASES_H_
#define TARN_TOOL_PHASES_H_

#include <stdbool.h>
#include <stdint.h>
#include <tarn/tarn.h>

typedef enum phase {
  PHASE_OTHER = 0,  // between passes, or unknown
  PHASE_FORWARD,
  PHASE_BACKWARD,
  PHASE_OPTIMIZER,
  PHASES,
} phase;

// Events of one pass, [first, end).
typedef struct phase_run {
  phase what;
  uint32_t first;
  uint32_t end;
} phase_run;

typedef struct phases {
  uint8_t *of_stack;  // the pass that each stack of the trace names
  uint8_t *of_event;  // the pass that each event falls into
  phase_run *runs;    // all events, in order
  size_t run_count;
  bool has[PHASES];  // whether any event's stack names it
} phases;

// Borrows nothing. Free it with phases_deinit.
//
// Cost: each frame is judged once, each stack walked once; O(events).
phases phases_find(const tarn_trace *trace);
void phases_deinit(phases *p);

// Whether any pass is named at all.
bool phases_are_known(const phases *p);

// The pass at the moment after |event|; OTHER before the first.
phase phases_at(const phases *p, uint32_t event);

// "forward", "backward", "optimizer"; NULL for OTHER.
const char *phase_name(phase what);

// Whether |file| is |end| or ends with it behind a '/'.
bool phase_file_is(const char *file, const char *end);

#endif  // TARN_TOOL_PHASES_H_
