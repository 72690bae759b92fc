// Passes by the frames of stacks.
//
// A frame is a mark or nothing, each judged once. A stack is walked outwards
// from its innermost frame: the first mark is its pass, but a forward pass
// within a backward pass is part of that.
#include "phases.h"

#include <stdlib.h>
#include <string.h>

#include "kit/tool.h"

typedef enum mark {
  MARK_NONE = PHASE_OTHER,
  MARK_FORWARD = PHASE_FORWARD,
  MARK_BACKWARD = PHASE_BACKWARD,
  MARK_OPTIMIZER = PHASE_OPTIMIZER,
  MARK_CLOSURE,
} mark;

// ---------------------------------------------------------------------------
// Frames
// ---------------------------------------------------------------------------

bool phase_file_is(const char *file, const char *end) {
  size_t length = strlen(file), end_length = strlen(end);
  if (length < end_length) return false;
  const char *tail = file + length - end_length;
  return strcmp(tail, end) == 0 && (tail == file || tail[-1] == '/');
}

static bool is(const char *function, const char *name) {
  return strcmp(function, name) == 0;
}

static mark mark_of_python(const tarn_trace_frame *frame) {
  static const struct {
    const char *function, *file;  // NULL: any file
    mark what;
  } marks[] = {
      {"wrapper", "torch/optim/optimizer.py", MARK_OPTIMIZER},
      {"backward", "torch/autograd/__init__.py", MARK_BACKWARD},
      {"grad", "torch/autograd/__init__.py", MARK_BACKWARD},
      {"_call_impl", "torch/nn/modules/module.py", MARK_FORWARD},
      {"forward", NULL, MARK_FORWARD},
      {"closure", NULL, MARK_CLOSURE},
  };
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
    if (!is(frame->function, marks[i].function)) continue;
    if (marks[i].file == NULL || phase_file_is(frame->file, marks[i].file))
      return marks[i].what;
  }
  return MARK_NONE;
}

static mark mark_of_native(const char *function) {
  if (strstr(function, "::") == NULL) return MARK_NONE;
  if (strstr(function, "torch::autograd::Engine::") != NULL)
    return MARK_BACKWARD;
  if (strstr(function, "torch::optim::") != NULL &&
      strstr(function, "::step(") != NULL)
    return MARK_OPTIMIZER;
  bool forward = strncmp(function, "torch::nn::", 11) == 0 &&
                 strstr(function, "::forward(") != NULL;
  return forward ? MARK_FORWARD : MARK_NONE;
}

static bool is_of_torch(const tarn_trace_frame *frame) {
  return strncmp(frame->function, "torch::", 7) == 0 ||
         strstr(frame->file, "/torch/") != NULL;
}

static bool any_of_torch(const tarn_trace *trace) {
  for (size_t i = 0; i < trace->frame_count; i++) {
    if (is_of_torch(&trace->frames[i])) return true;
  }
  return false;
}

// None in a trace without PyTorch: there `forward` may be anything.
static uint8_t *mark_frames(const tarn_trace *trace) {
  uint8_t *marks = tool_array(trace->frame_count + 1, sizeof *marks);
  if (!any_of_torch(trace)) return marks;
  for (size_t i = 0; i < trace->frame_count; i++) {
    const tarn_trace_frame *frame = &trace->frames[i];
    mark found = mark_of_python(frame);
    if (found == MARK_NONE) found = mark_of_native(frame->function);
    marks[i] = (uint8_t)found;
  }
  return marks;
}

// ---------------------------------------------------------------------------
// Stacks
// ---------------------------------------------------------------------------

static phase phase_of(const uint32_t *frames, uint32_t count,
                      const uint8_t *marks) {
  phase found = PHASE_OTHER;
  for (uint32_t i = 0; i < count; i++) {
    mark m = (mark)marks[frames[i]];
    if (m == MARK_NONE) continue;
    if (m == MARK_BACKWARD) return PHASE_BACKWARD;
    if (m == MARK_CLOSURE) return found;
    if (m == MARK_OPTIMIZER)
      return found == PHASE_OTHER ? PHASE_OPTIMIZER : found;
    found = PHASE_FORWARD;
  }
  return found;
}

static void find_stacks(phases *p, const tarn_trace *trace) {
  uint8_t *marks = mark_frames(trace);
  p->of_stack = tool_array(trace->stack_count + 1, sizeof *p->of_stack);
  for (size_t i = 0; i < trace->stack_count; i++) {
    const tarn_trace_stack *stack = &trace->stacks[i];
    p->of_stack[i] = (uint8_t)phase_of(trace->frame_indices + stack->first,
                                       stack->count, marks);
  }
  free(marks);
}

// ---------------------------------------------------------------------------
// Events
// ---------------------------------------------------------------------------

static bool has_stack(const tarn_trace *trace, size_t event) {
  uint32_t stack = trace->events[event].stack;
  return stack != TARN_TRACE_NO_STACK && trace->stacks[stack].count > 0;
}

static void find_events(phases *p, const tarn_trace *trace) {
  phase now = PHASE_OTHER;
  p->of_event = tool_array(trace->event_count + 1, sizeof *p->of_event);
  for (size_t i = 0; i < trace->event_count; i++) {
    bool tells = has_stack(trace, i);
    phase own = tells ? (phase)p->of_stack[trace->events[i].stack] : now;
    if (tells) p->has[own] = true;
    now = own;
    p->of_event[i] = (uint8_t)own;
  }
}

// Whether a gap between two passes is of the one before it: what other threads
// do meanwhile, and the loss.
static bool goes_on(phase before, phase after) {
  return before == after ||
         (before == PHASE_FORWARD && after == PHASE_BACKWARD);
}

// The pass of a gap in front of |end|.
static phase fill(const phases *p, size_t first, size_t end) {
  phase after = (phase)p->of_event[end];
  if (!p->has[PHASE_FORWARD])
    return after == PHASE_BACKWARD ? PHASE_FORWARD : PHASE_OTHER;
  phase before = first > 0 ? (phase)p->of_event[first - 1] : PHASE_OTHER;
  return goes_on(before, after) ? before : PHASE_OTHER;
}

static void fill_gaps(phases *p, const tarn_trace *trace) {
  size_t count = trace->event_count;
  for (size_t i = 0; i < count;) {
    size_t end = i + 1;
    while (end < count && p->of_event[end] == p->of_event[i])
      end++;
    if (p->of_event[i] == PHASE_OTHER && end < count)
      memset(p->of_event + i, (int)fill(p, i, end), end - i);
    i = end;
  }
}

static void find_runs(phases *p, const tarn_trace *trace) {
  size_t count = 0;
  for (size_t i = 0; i < trace->event_count; i++)
    count += i == 0 || p->of_event[i] != p->of_event[i - 1];
  p->runs = tool_array(count + 1, sizeof *p->runs);
  for (size_t i = 0; i < trace->event_count; i++) {
    if (i == 0 || p->of_event[i] != p->of_event[i - 1]) {
      p->runs[p->run_count++] =
          (phase_run){.what = (phase)p->of_event[i], .first = (uint32_t)i};
    }
    p->runs[p->run_count - 1].end = (uint32_t)i + 1;
  }
}

phases phases_find(const tarn_trace *trace) {
  phases p = {0};
  find_stacks(&p, trace);
  find_events(&p, trace);
  fill_gaps(&p, trace);
  find_runs(&p, trace);
  return p;
}

void phases_deinit(phases *p) {
  free(p->of_stack);
  free(p->of_event);
  free(p->runs);
  *p = (phases){0};
}

bool phases_are_known(const phases *p) {
  return p->has[PHASE_FORWARD] || p->has[PHASE_BACKWARD] ||
         p->has[PHASE_OPTIMIZER];
}

phase phases_at(const phases *p, uint32_t event) {
  return event == TARN_TRACE_BASELINE ? PHASE_OTHER : (phase)p->of_event[event];
}

const char *phase_name(phase what) {
  static const char *const names[PHASES] = {NULL, "forward", "backward",
                                            "optimizer"};
  return names[what];
}
