// Rectangles that are cut up at random.
//
// Invariant: the parts cover the whole without a hole or an overlap.
#include "plan_packings.h"

#include <stdio.h>
#include <stdlib.h>

#include "kit/tool.h"

enum { UNIT = 1024, UNITS = PLAN_PACKING_HEIGHT / UNIT };

static const uint64_t steps_of[] = {100, 300, 1000, 20, 40, 60};
static const size_t counts_of[] = {60, 100, 150, 200, 300, 400};
enum { COUNTS = sizeof counts_of / sizeof *counts_of };

plan_packing_spec plan_packing_at(size_t index, uint64_t round) {
  return (plan_packing_spec){.count = counts_of[index % COUNTS],
                             .steps = steps_of[index / COUNTS],
                             .seed = round + 1};
}

char *plan_packing_name(plan_packing_spec spec, char *out) {
  snprintf(out, PLAN_PACKING_NAME, "%zux%llu.%llu", spec.count % 1000000,
           (unsigned long long)spec.steps % 1000000,
           (unsigned long long)spec.seed % 1000000);
  return out;
}

// ---------------------------------------------------------------------------
// Cutting
// ---------------------------------------------------------------------------

// Steps and units, from these to those.
typedef struct part {
  uint64_t first;
  uint64_t last;
  uint64_t bottom;
  uint64_t top;
} part;

typedef struct cutter {
  part *parts;
  size_t count;
  uint64_t area;  // of all parts together
  uint64_t random;
} cutter;

// The splitmix generator: the same on all machines.
static uint64_t below(cutter *c, uint64_t limit) {
  uint64_t z = c->random += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return (z ^ z >> 31) % limit;
}

static uint64_t area_of(const part *p) {
  return (p->last - p->first) * (p->top - p->bottom);
}

// Twice as large, twice as likely.
static part *choose(cutter *c) {
  uint64_t at = below(c, c->area);
  part *p = c->parts;
  for (; at >= area_of(p); p++)
    at -= area_of(p);
  return p;
}

// A buffer of one step by one unit stays.
static void cut(cutter *c, part *old) {
  uint64_t length = old->last - old->first;
  uint64_t height = old->top - old->bottom;
  part *new = &c->parts[c->count];
  if (length == 1 && height == 1) return;
  *new = *old;
  c->count++;
  if (height == 1 || (length > 1 && below(c, 2) == 0)) {
    old->last = new->first = old->first + 1 + below(c, length - 1);
  } else {
    old->top = new->bottom = old->bottom + 1 + below(c, height - 1);
  }
}

static void shuffle(cutter *c) {
  for (size_t i = c->count; i > 1; i--) {
    size_t other = (size_t)below(c, i);
    part kept = c->parts[i - 1];
    c->parts[i - 1] = c->parts[other];
    c->parts[other] = kept;
  }
}

static cutter cut_up(plan_packing_spec spec) {
  cutter c = {.parts = tool_array(spec.count, sizeof *c.parts),
              .count = 1,
              .area = spec.steps * UNITS,
              .random = spec.seed * 1000003 + spec.steps * 1009 + spec.count};
  size_t most = c.area < spec.count ? (size_t)c.area : spec.count;
  c.parts[0] = (part){.last = spec.steps, .top = UNITS};
  while (c.count < most)
    cut(&c, choose(&c));
  shuffle(&c);
  return c;
}

plan_packing plan_packing_make(plan_packing_spec spec) {
  cutter c = cut_up(spec);
  plan_packing made = {.buffers = tool_array(c.count, sizeof *made.buffers),
                       .offsets = tool_array(c.count, sizeof *made.offsets),
                       .count = c.count};
  for (size_t i = 0; i < c.count; i++) {
    const part *p = &c.parts[i];
    made.buffers[i] = (tarn_plan_buffer){.first = p->first,
                                         .last = p->last,
                                         .size = (p->top - p->bottom) * UNIT};
    made.offsets[i] = p->bottom * UNIT;
  }
  free(c.parts);
  return made;
}

void plan_packing_free(plan_packing *packing) {
  free(packing->buffers);
  free(packing->offsets);
  *packing = (plan_packing){0};
}
