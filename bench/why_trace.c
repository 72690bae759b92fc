// A made history: a seed, a set of stacks, places that are taken and left.
#include "why_trace.h"

#include <stdbool.h>
#include <stdio.h>
#include <tarn/trace_build.h>
#include <tarn/trace_write.h>

enum {
  SEED = 20261122,
  SLOTS = 3000,
  SLOT_BYTES = 256 << 10,
  OLD_SLOTS = 500,  // the baseline: never freed
  FRAMES = 700,
  OUTER_FRAMES = 60,  // those at the outer end of stacks
  OUTER_DEPTH = 40,
  SEGMENT_BYTES = 20 << 20,
  OPCODES_OF_STACK = WHY_TRACE_DEPTH + 5,
  OPCODES_OF_THREE_EVENTS = 45,
};

// Of a PyTorch process that has one graphics card, where memory begins.
static const uint64_t base = UINT64_C(1) << 30;

typedef struct maker {
  tarn_trace_builder *builder;
  uint64_t random;
  uint64_t time_us;
  uint32_t stacks[WHY_TRACE_STACKS];
  size_t stack_count;
  uint64_t sizes[SLOTS];  // of the block in each; 0: free
  char names[FRAMES][2][64];
} maker;

// The splitmix generator: the same on all machines.
static uint64_t next_random(maker *m) {
  uint64_t z = m->random += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static size_t below(maker *m, size_t limit) {
  return (size_t)(next_random(m) % limit);
}

// --- stacks ----------------------------------------------------------------

// Some files are the model's own, most are libraries or no Python at all.
static void name_frames(maker *m) {
  for (size_t i = 0; i < FRAMES; i++) {
    char *file = m->names[i][0];
    size_t room = sizeof m->names[i][0];
    if (i % 9 == 0) {
      snprintf(file, room, "/home/user/model/layer%zu.py", i / 4);
    } else if (i % 3 == 0) {
      snprintf(file, room, "/usr/lib/site-packages/torch/m%zu.py", i / 4);
    } else {
      snprintf(file, room, "torch/csrc/autograd/f%zu.cpp", i / 4);
    }
    snprintf(m->names[i][1], sizeof m->names[i][1], "function_%zu", i);
  }
}

static tarn_trace_frame frame_at(const maker *m, size_t index) {
  return (tarn_trace_frame){.file = m->names[index][0],
                            .function = m->names[index][1],
                            .line = (uint32_t)(index * 7 % 1000 + 1)};
}

static tarn_status make_stack(maker *m, size_t index) {
  tarn_trace_frame frames[WHY_TRACE_DEPTH];
  size_t inner = WHY_TRACE_DEPTH - OUTER_DEPTH;
  for (size_t i = 0; i < WHY_TRACE_DEPTH; i++) {
    size_t frame =
        i < inner ? below(m, FRAMES) : (i * 3 + below(m, 2)) % OUTER_FRAMES;
    frames[i] = frame_at(m, frame);
  }
  return tarn_trace_builder_stack(m->builder, frames, WHY_TRACE_DEPTH,
                                  &m->stacks[index]);
}

static tarn_status make_stacks(maker *m, uint64_t opcodes) {
  uint64_t share = opcodes / (WHY_TRACE_OPCODES / WHY_TRACE_STACKS);
  m->stack_count = share < 1                  ? 1
                   : share > WHY_TRACE_STACKS ? WHY_TRACE_STACKS
                                              : (size_t)share;
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < m->stack_count; i++)
    status = make_stack(m, i);
  return status;
}

// --- events ----------------------------------------------------------------

static tarn_status put(maker *m, tarn_trace_kind kind, size_t slot,
                       uint32_t stack) {
  tarn_trace_event event = {.kind = kind,
                            .address = base + slot * SLOT_BYTES,
                            .size = m->sizes[slot],
                            .time_us = 1000000 + 40 * m->time_us++,
                            .stack = stack};
  return tarn_trace_builder_event(m->builder, &event);
}

// A block into a place that is free, or the one in it away.
static tarn_status turn_slot(maker *m, size_t slot, bool *out_freed) {
  *out_freed = m->sizes[slot] != 0;
  if (!*out_freed) {
    m->sizes[slot] = 512 * (1 + below(m, SLOT_BYTES / 512));
    return put(m, TARN_TRACE_ALLOC, slot, m->stacks[below(m, m->stack_count)]);
  }
  tarn_status status =
      put(m, TARN_TRACE_FREE_REQUESTED, slot, TARN_TRACE_NO_STACK);
  if (status == TARN_OK) {
    status = put(m, TARN_TRACE_FREE, slot, TARN_TRACE_NO_STACK);
  }
  m->sizes[slot] = 0;
  return status;
}

static tarn_status make_events(maker *m, uint64_t opcodes) {
  uint64_t of_stacks = (uint64_t)m->stack_count * OPCODES_OF_STACK;
  uint64_t left = opcodes > of_stacks ? opcodes - of_stacks : 0;
  uint64_t events = left / OPCODES_OF_THREE_EVENTS * 3;
  tarn_status status = TARN_OK;
  for (uint64_t i = 0; status == TARN_OK && i < events; i++) {
    bool freed = false;
    size_t slot = OLD_SLOTS + below(m, SLOTS - OLD_SLOTS);
    status = turn_slot(m, slot, &freed);
    i += freed;
  }
  return status;
}

// Memory at the end that no event has named.
static tarn_status make_rest(maker *m) {
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < OLD_SLOTS; i++) {
    tarn_trace_block block = {.address = base + i * SLOT_BYTES,
                              .size = SLOT_BYTES,
                              .stack = m->stacks[i % m->stack_count]};
    status = tarn_trace_builder_held(m->builder, &block);
  }
  uint64_t end = base + (uint64_t)SLOTS * SLOT_BYTES;
  for (uint64_t at = base; status == TARN_OK && at < end; at += SEGMENT_BYTES) {
    tarn_trace_segment segment = {
        .address = at,
        .size = end - at < SEGMENT_BYTES ? end - at : SEGMENT_BYTES};
    status = tarn_trace_builder_segment(m->builder, &segment);
  }
  return status;
}

tarn_status why_trace_write(uint64_t opcodes, const char *path) {
  static maker m;
  tarn_trace *trace = NULL;
  m = (maker){.random = SEED};
  tarn_status status = tarn_trace_builder_create("why-8m", &m.builder);
  if (status != TARN_OK) return status;
  name_frames(&m);
  status = make_stacks(&m, opcodes);
  if (status == TARN_OK) status = make_events(&m, opcodes);
  if (status == TARN_OK) status = make_rest(&m);
  if (status != TARN_OK) {
    tarn_trace_builder_destroy(m.builder);
    return status;
  }
  status = tarn_trace_builder_finish(m.builder, &trace);
  if (status == TARN_OK) {
    status = tarn_trace_write(trace, TARN_TRACE_FORMAT_PYTORCH, path);
  }
  tarn_trace_destroy(trace);
  return status;
}

// --- opcodes ---------------------------------------------------------------

// The bytes of the argument at |bytes|, its length's own included; SIZE_MAX for
// an opcode that is not known.
static size_t argument_size(const unsigned char *bytes) {
  switch (bytes[0]) {
    case '(':
    case ']':
    case '}':
    case 'e':
    case 'u':
    case '.':
    case 0x86:
    case 0x89:
    case 0x94:
      return 0;
    case 'K':
    case 'h':
    case 0x80:
      return 1;
    case 'M':
      return 2;
    case 'J':
    case 'j':
      return 4;
    case 0x8a:
    case 0x8c:
      return 1 + (size_t)bytes[1];
    default:
      return SIZE_MAX;
  }
}

uint64_t why_trace_opcodes(const unsigned char *bytes, size_t size) {
  uint64_t count = 0;
  for (size_t at = 0; at < size; count++) {
    size_t argument = argument_size(bytes + at);
    if (argument >= size - at) return 0;
    at += 1 + argument;
  }
  return count;
}
