// why_kit.h - traces by hand, event by event, for what `tarn why` is
// made of.
#ifndef TARN_TESTS_TOOL_WHY_KIT_H_
#define TARN_TESTS_TOOL_WHY_KIT_H_

#include <stdio.h>

#include "kit/options.h"
#include "support/run.h"
#include "support/tool_run.h"
#include "tarn/trace_build.h"
#include "tarn/trace_write.h"

static tarn_trace_builder *builder;
static const options_list no_patterns;

static inline void begin(void) {
  assert_ok(tarn_trace_builder_create("by hand", &builder));
}

static inline tarn_trace *finish(void) {
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_builder_finish(builder, &trace));
  return trace;
}

// Writes what |builder| has to a file of the test's folder; its path.
static inline const char *write_built(const char *name) {
  tarn_trace *trace = finish();
  assert_ok(tarn_trace_write(trace, TARN_TRACE_FORMAT_TARN, tool_file(name)));
  tarn_trace_destroy(trace);
  return tool_file(name);
}

static inline void event(tarn_trace_kind kind, uint64_t address, uint64_t size,
                         uint32_t stack) {
  tarn_trace_event e = {
      .kind = kind, .address = address, .size = size, .stack = stack};
  assert_ok(tarn_trace_builder_event(builder, &e));
}

static inline void alloc(uint64_t address, uint64_t size, uint32_t stack) {
  event(TARN_TRACE_ALLOC, address, size, stack);
}

static inline void release(uint64_t address) {
  event(TARN_TRACE_FREE, address, 0, TARN_TRACE_NO_STACK);
}

static inline uint32_t stack_of(const tarn_trace_frame *frames, size_t count) {
  uint32_t stack = 0;
  assert_ok(tarn_trace_builder_stack(builder, frames, count, &stack));
  return stack;
}

// A stack of one frame.
static inline uint32_t stack_at(const char *file, uint32_t line,
                                const char *function) {
  tarn_trace_frame frame = {file, function, line};
  return stack_of(&frame, 1);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

// --- random ones -----------------------------------------------------------

enum { PLACES = 60, STACKS = 12, STEPS = 600 };

static uint32_t chance_state;

static inline uint32_t chance(uint32_t below) {
  chance_state = chance_state * 1664525u + 1013904223u;
  return (chance_state >> 8) % below;
}

// A third of the blocks without a stack; two frames of own code, of which only
// the inner one counts, over one of a library.
static inline uint32_t chance_stack(void) {
  char file[64];
  uint32_t number = chance(STACKS);
  if (number < STACKS / 3) return TARN_TRACE_NO_STACK;
  snprintf(file, sizeof file, "/home/me/f%u.py", number % 4);
  tarn_trace_frame frames[] = {
      {"/v/site-packages/lib.py", "call", number},
      {file, "inner", 1},
      {"/home/me/main.py", "outer", number},
  };
  return stack_of(frames, 3);
}

static inline tarn_trace *random_trace(uint32_t seed) {
  bool lives[PLACES] = {false};
  chance_state = seed;
  begin();
  for (uint64_t i = 0; i < 5; i++) {
    tarn_trace_block old = {
        .size = 1 + chance(1000), .address = 1 + i, .stack = chance_stack()};
    assert_ok(tarn_trace_builder_old(builder, &old));
  }
  for (int i = 0; i < STEPS; i++) {
    uint32_t place = chance(PLACES);
    uint64_t address = 1 + (place + 1) * UINT64_C(100000);
    if (lives[place]) {
      release(address);
    } else {
      alloc(address, 1 + chance(5000), chance_stack());
    }
    lives[place] = !lives[place];
  }
  event(TARN_TRACE_FREE, 2, 0, TARN_TRACE_NO_STACK);
  event(TARN_TRACE_FREE, UINT64_C(1) << 40, 77, chance_stack());
  return finish();
}

#endif  // TARN_TESTS_TOOL_WHY_KIT_H_
