// From the states of one level come those of the next: each is tried with each
// of its choices, the tries are sorted by their guides, and the best of them,
// no two alike, are made once more and kept. So no more than twice the width
// of states is in memory.
#include "plan/beam.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES_PER_LOOK = 64 };

typedef struct try {
  uint64_t guide;
  tarn__plan_key key;
  uint32_t parent;
  uint32_t chosen;
}
try;

// The states of a level are numbered from |level| on; the next level's begin
// at 0 or |width|, whichever is not it. The last of all is for tries.
struct tarn__plan_beam {
  const tarn__plan_instance *in;
  const tarn__plan_states_type *type;
  void *common;
  char *states;
  size_t size;    // of a state
  size_t stride;  // from state to state
  uint32_t width;
  size_t level;
  size_t level_count;
  try *tries;
  size_t try_count;
  uint32_t *choices;
  uint64_t nodes;
  uint64_t look;  // at so many nodes whether to stop
};

// --- states -----------------------------------------------------------------

static size_t state_count(const tarn__plan_beam *b) {
  return 2 * (size_t)b->width + 1;
}

static tarn__plan_head *state_at(const tarn__plan_beam *b, size_t at) {
  return (tarn__plan_head *)(void *)(b->states + at * b->stride);
}

static bool advance(tarn__plan_beam *b, size_t from, size_t chosen, size_t to) {
  size_t arrays = b->type->size;
  const tarn__plan_head *old = state_at(b, from);
  tarn__plan_head *new = state_at(b, to);
  uint64_t *at = new->at;
  *new = *old;
  new->at = at;
  memcpy((char *)new + arrays, (const char *)old + arrays, b->size - arrays);
  return b->type->advance(b->common, old, b->choices, chosen, new);
}

// How wide it can be within |most| bytes.
static uint32_t width_within(size_t state_size, uint32_t width, size_t most) {
  size_t states = most / state_size;
  size_t fit = states == 0 ? 0 : (states - 1) / 2;
  return fit < width ? (uint32_t)fit : width;
}

tarn_status tarn__plan_beam_create(const tarn__plan_neighbours *near,
                                   tarn__plan_beam_kind kind, uint32_t width,
                                   size_t most, tarn__plan_memory *memory,
                                   tarn__plan_beam **out_beam) {
  const tarn__plan_states_type *type =
      kind == TARN__PLAN_OF_SKYLINES ? &tarn__plan_skylines : &tarn__plan_spots;
  const tarn__plan_instance *in = near->in;
  size_t size = type->size + in->item_count * type->item_size +
                in->section_count * type->section_size;
  *out_beam = NULL;
  width = width_within(size, width, most);
  if (width == 0) return TARN_FULL;
  tarn__plan_beam *b = tarn__plan_array(memory, 1, sizeof *b);
  if (b == NULL) return TARN_E_NOMEM;
  size_t choices = type->most_choices;
  *b = (tarn__plan_beam){.in = in, .type = type, .size = size, .width = width};
  b->stride = tarn__plan_align_up(size, sizeof(uint64_t));
  b->tries = tarn__plan_array(memory, width * choices, sizeof *b->tries);
  b->choices = tarn__plan_array(memory, choices, sizeof *b->choices);
  b->states = tarn__plan_array(memory, state_count(b), b->stride);
  b->common = type->make(near, memory);
  if (memory->failed) return TARN_E_NOMEM;
  for (size_t i = 0; i < state_count(b); i++)
    type->set_arrays(in, state_at(b, i));
  *out_beam = b;
  return TARN_OK;
}

uint32_t tarn__plan_beam_width(const tarn__plan_beam *b) {
  return b->width;
}

// --- a level ----------------------------------------------------------------

static void try_all(tarn__plan_beam *b, uint32_t parent) {
  size_t from = b->level + parent;
  size_t to = state_count(b) - 1;
  const tarn__plan_head *made = state_at(b, to);
  size_t count = b->type->choices(b->common, state_at(b, from), b->choices);
  for (uint32_t i = 0; i < count; i++) {
    b->nodes++;
    if (!advance(b, from, i, to)) continue;
    b->tries[b->try_count++] = (try){made->guide, made->key, parent, i};
  }
}

static int by_guide(const void *x, const void *y) {
  const try *a = x;
  const try *b = y;
  if (a->guide != b->guide) return a->guide < b->guide ? -1 : 1;
  if (a->parent != b->parent) return a->parent < b->parent ? -1 : 1;
  return (a->chosen > b->chosen) - (a->chosen < b->chosen);
}

// Equal states have the same guide, and so are near each other.
static bool is_alike(const try *tries, size_t at) {
  for (size_t i = at; i-- > 0 && tries[i].guide == tries[at].guide;) {
    if (tarn__plan_key_same(tries[i].key, tries[at].key)) return true;
  }
  return false;
}

static void keep(tarn__plan_beam *b, const try *t, size_t to) {
  size_t from = b->level + t->parent;
  (void)b->type->choices(b->common, state_at(b, from), b->choices);
  (void)advance(b, from, t->chosen, to);
}

static void keep_best(tarn__plan_beam *b, uint32_t width) {
  size_t next = b->level == 0 ? b->width : 0;
  size_t kept = 0;
  qsort(b->tries, b->try_count, sizeof *b->tries, by_guide);
  for (size_t i = 0; i < b->try_count && kept < width; i++) {
    if (is_alike(b->tries, i)) continue;
    keep(b, &b->tries[i], next + kept++);
  }
  b->level = next;
  b->level_count = kept;
}

// False: the run is to be stopped.
static bool go_on(tarn__plan_beam *b, const tarn__plan_run *run) {
  b->try_count = 0;
  for (uint32_t i = 0; i < b->level_count; i++) {
    try_all(b, i);
    if (run->node_limit != 0 && b->nodes >= run->node_limit) return false;
    if (b->nodes < b->look) continue;
    if (tarn__plan_stop_now(run->stop, b->nodes)) return false;
    b->look = b->nodes + TRIES_PER_LOOK;
  }
  keep_best(b, run->width);
  return true;
}

// --- the whole --------------------------------------------------------------

// All of a level have as many items down.
static const uint64_t *plan_of(const tarn__plan_beam *b) {
  const tarn__plan_head *first = state_at(b, b->level);
  return b->level_count > 0 && first->open_count == 0 ? first->at : NULL;
}

void tarn__plan_beam_run(tarn__plan_beam *b, const tarn__plan_run *run,
                         uint64_t *out_offsets, tarn__plan_outcome *out,
                         uint64_t *out_nodes) {
  b->nodes = 0;
  b->look = TRIES_PER_LOOK;
  b->level = 0;
  b->level_count = b->type->begin(b->common, run, state_at(b, 0));
  while (b->level_count > 0 && plan_of(b) == NULL) {
    if (!go_on(b, run)) break;
  }
  const uint64_t *plan = plan_of(b);
  if (plan != NULL) {
    memcpy(out_offsets, plan, b->in->item_count * sizeof *out_offsets);
  }
  *out = plan != NULL ? TARN__PLAN_FOUND : TARN__PLAN_STOPPED;
  *out_nodes = b->nodes;
}
