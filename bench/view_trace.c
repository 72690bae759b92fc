// A synthetic history: every class of sizes has slots of its own, the lowest
// free one is taken, and slots are cut from segments of the device. So no two
// blocks overlap, and there are holes.
#include "view_trace.h"

#include <stdio.h>
#include <stdlib.h>

enum {
  CLASSES = 12,
  CLASS_SLOTS = 4096,
  SEGMENT_SLOTS = 16,
  STACKS = 240,
  FRAMES_OF_STACK = 14,
  STEP_EVENTS = 4000,  // of one training step
  WEIGHTS = 300,       // alive before the first event
  TEXT_SIZE = 96,
};

typedef struct live {
  uint32_t class;
  uint32_t slot;
} live;

typedef struct maker {
  tarn_trace_builder *builder;
  uint64_t random;
  uint32_t stacks[STACKS];
  bool taken[CLASSES][CLASS_SLOTS];
  uint32_t segments[CLASSES];  // that were taken
  live *kept;                  // activations, the last born at the end
  size_t kept_count;
  size_t events;
  uint64_t time_us;
} maker;

// ---------------------------------------------------------------------------
// Parts
// ---------------------------------------------------------------------------

// xorshift64*, the upper half.
static uint32_t draw(maker *m, uint32_t bound) {
  m->random ^= m->random >> 12;
  m->random ^= m->random << 25;
  m->random ^= m->random >> 27;
  return (uint32_t)((m->random * 0x2545f4914f6cdd1dU) >> 32) % bound;
}

static uint64_t size_of_class(uint32_t class) {
  return (uint64_t)4096 << class;
}

static uint64_t address_of(live l) {
  uint64_t base = ((uint64_t)l.class + 1) << 40;
  return base + l.slot * size_of_class(l.class);
}

// Stack |index|: a line of a model's own below some of a library and above
// those that all have in common.
static tarn_status make_stack(maker *m, uint32_t index) {
  static char texts[FRAMES_OF_STACK][TEXT_SIZE];
  tarn_trace_frame frames[FRAMES_OF_STACK];
  for (uint32_t i = 0; i < FRAMES_OF_STACK; i++) {
    bool is_own = i >= 6 && i < 8;
    uint32_t which = is_own ? index / (i == 6 ? 1 : 12) : i * 7;
    snprintf(texts[i], TEXT_SIZE, "/home/me/%s/part_%u.py",
             is_own ? "net" : "site-packages/lib", which % 40);
    frames[i] = (tarn_trace_frame){
        .file = texts[i], .function = "forward", .line = 10 + which};
  }
  return tarn_trace_builder_stack(m->builder, frames, FRAMES_OF_STACK,
                                  &m->stacks[index]);
}

static tarn_status add(maker *m, tarn_trace_kind kind, uint64_t address,
                       uint64_t size, uint32_t stack) {
  m->events++;
  m->time_us += 1 + draw(m, 40);
  return tarn_trace_builder_event(m->builder,
                                  &(tarn_trace_event){.kind = kind,
                                                      .address = address,
                                                      .size = size,
                                                      .time_us = m->time_us,
                                                      .stack = stack});
}

// ---------------------------------------------------------------------------
// Blocks
// ---------------------------------------------------------------------------

// Most blocks are small, most bytes are in large ones.
static uint32_t draw_class(maker *m) {
  uint32_t a = draw(m, CLASSES), b = draw(m, CLASSES);
  return a < b ? a : b;
}

// The lowest free slot; CLASS_SLOTS if there is none.
static uint32_t find_slot(const maker *m, uint32_t class) {
  uint32_t slot = 0;
  while (slot < CLASS_SLOTS && m->taken[class][slot])
    slot++;
  return slot;
}

static tarn_status reach(maker *m, live l) {
  uint64_t bytes = size_of_class(l.class) * SEGMENT_SLOTS;
  if (l.slot / SEGMENT_SLOTS < m->segments[l.class]) return TARN_OK;
  live first = {.class = l.class, .slot = m->segments[l.class] * SEGMENT_SLOTS};
  m->segments[l.class]++;
  return add(m, TARN_TRACE_SEGMENT_ALLOC, address_of(first), bytes,
             TARN_TRACE_NO_STACK);
}

static tarn_status allocate(maker *m, live *out) {
  out->class = draw_class(m);
  out->slot = find_slot(m, out->class);
  while (out->slot == CLASS_SLOTS) {
    out->class = (out->class + 1) % CLASSES;
    out->slot = find_slot(m, out->class);
  }
  tarn_status status = reach(m, *out);
  if (status != TARN_OK) return status;
  m->taken[out->class][out->slot] = true;
  uint64_t size = size_of_class(out->class);
  return add(m, TARN_TRACE_ALLOC, address_of(*out),
             size - (uint64_t)draw(m, 2) * 512,
             m->stacks[draw(m, 1 + draw(m, STACKS))]);
}

static tarn_status give_back(maker *m, live l) {
  m->taken[l.class][l.slot] = false;
  return add(m, TARN_TRACE_FREE, address_of(l), 0, TARN_TRACE_NO_STACK);
}

// Forward, most blocks stay; backward, the last that stayed is freed.
static tarn_status step(maker *m) {
  size_t at = m->events % STEP_EVENTS;
  live l;
  if (at > STEP_EVENTS * 2 / 5 && m->kept_count > 0 && draw(m, 100) < 70) {
    return give_back(m, m->kept[--m->kept_count]);
  }
  tarn_status status = allocate(m, &l);
  if (status != TARN_OK) return status;
  if (at <= STEP_EVENTS * 2 / 5 && draw(m, 100) < 60) {
    m->kept[m->kept_count++] = l;
    return TARN_OK;
  }
  return give_back(m, l);
}

// ---------------------------------------------------------------------------
// All
// ---------------------------------------------------------------------------

static tarn_status add_weights(maker *m) {
  tarn_status status = TARN_OK;
  for (uint32_t i = 0; i < WEIGHTS && status == TARN_OK; i++) {
    live l = {.class = draw_class(m)};
    l.slot = find_slot(m, l.class);
    m->taken[l.class][l.slot] = true;
    if (m->segments[l.class] <= l.slot / SEGMENT_SLOTS) m->segments[l.class]++;
    status = tarn_trace_builder_old(
        m->builder, &(tarn_trace_block){.address = address_of(l),
                                        .size = size_of_class(l.class),
                                        .stack = TARN_TRACE_NO_STACK});
  }
  return status;
}

static tarn_status add_segments(maker *m) {
  tarn_status status = TARN_OK;
  for (uint32_t c = 0; c < CLASSES && status == TARN_OK; c++) {
    live first = {.class = c};
    tarn_trace_segment s = {
        .address = address_of(first),
        .size = size_of_class(c) * SEGMENT_SLOTS * m->segments[c]};
    if (s.size > 0) status = tarn_trace_builder_segment(m->builder, &s);
  }
  return status;
}

static tarn_status fill(maker *m, size_t events) {
  tarn_status status = TARN_OK;
  for (uint32_t i = 0; i < STACKS && status == TARN_OK; i++)
    status = make_stack(m, i);
  if (status == TARN_OK) status = add_weights(m);
  while (status == TARN_OK && m->events + 4 < events)
    status = step(m);
  while (status == TARN_OK && m->events < events) {
    status = add(m, TARN_TRACE_OOM, 0, (uint64_t)1 << 30, m->stacks[0]);
  }
  return status == TARN_OK ? add_segments(m) : status;
}

tarn_status view_trace_make(size_t events, tarn_trace **out_trace) {
  *out_trace = NULL;
  maker *m = calloc(1, sizeof *m);
  live *kept = calloc(events + 1, sizeof *kept);
  tarn_status status =
      m != NULL && kept != NULL
          ? tarn_trace_builder_create("made for bench view", &m->builder)
          : TARN_E_NOMEM;
  if (status == TARN_OK) {
    m->random = 0x9e3779b97f4a7c15U;
    m->kept = kept;
    m->time_us = 1000;
    status = fill(m, events);
    if (status == TARN_OK) {
      status = tarn_trace_builder_finish(m->builder, out_trace);
    } else {
      tarn_trace_builder_destroy(m->builder);
    }
  }
  free(kept);
  free(m);
  return status;
}
