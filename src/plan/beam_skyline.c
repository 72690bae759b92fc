// The skyline of a state is the end, in each section, of the items that are
// down; no further item comes below it.
//
// In a section t an item can be the lowest of those that are not down if all of
// them have room above its offset: at(i) <= capacity - total(t), the limit of
// t. One of them must be. So a section without such rivals makes a state fail,
// and of the sections in valleys of the skyline the one with the fewest rivals
// is filled next: a wrong choice of two is found out sooner than one of twenty.
//
// If no room is left, the two sides of a step in the skyline must be levelled
// before an item can lie across it. So the fewer steps, the better.
#include <string.h>

#include "plan/beam.h"

// More rivals than that are not tried; and an instance is tight if it leaves no
// more than this part of its room free.
enum { MOST_RIVALS = 64, TIGHT = 128 };

typedef struct skyline {
  tarn__plan_head head;  // the upper half of |guide|: steps
  uint64_t *end;         // by section: of what is down
  uint64_t *limit;       // by section: the capacity, when all of it is down
  uint32_t *rivals;      // by section
  uint32_t *across;  // by section: items that are not placed, and are in the
                     // section before too
  bool *down;        // by item
} skyline;

// What all skylines of a beam have in common.
typedef struct ground {
  const tarn__plan_instance *in;
  const tarn__plan_neighbours *near;
  uint64_t capacity;
  uint64_t seed;
} ground;

// --- memory -----------------------------------------------------------------

static void set_arrays(const tarn__plan_instance *in, void *state) {
  skyline *s = state;
  s->head.at = (uint64_t *)(s + 1);
  s->end = s->head.at + in->item_count;
  s->limit = s->end + in->section_count;
  s->rivals = (uint32_t *)(s->limit + in->section_count);
  s->across = s->rivals + in->section_count;
  s->down = (bool *)(s->across + in->section_count);
}

static void *make_common(const tarn__plan_neighbours *near,
                         tarn__plan_memory *memory) {
  ground *g = tarn__plan_array(memory, 1, sizeof *g);
  if (g != NULL) *g = (ground){.in = near->in, .near = near};
  return g;
}

// --- sections ---------------------------------------------------------------

static uint32_t count_rivals(const ground *g, const skyline *s,
                             uint32_t section) {
  const tarn__plan_neighbours *near = g->near;
  uint32_t rivals = 0;
  for (uint32_t e = near->begin[section]; e < near->begin[section + 1]; e++) {
    uint32_t item = near->present[e];
    rivals += !s->down[item] && s->head.at[item] <= s->limit[section];
  }
  return rivals;
}

static bool is_full(const ground *g, const skyline *s, uint32_t section) {
  return s->limit[section] == g->capacity;
}

// Nothing can lie across a step: it would leave more room than there is.
static bool is_step(const skyline *s, uint32_t section) {
  if (section == 0 || s->across[section] == 0) return false;
  return s->end[section - 1] > s->limit[section] ||
         s->end[section] > s->limit[section - 1];
}

static uint32_t count_steps(const ground *g, const skyline *s,
                            const tarn__plan_item *it) {
  uint32_t last = it->last < g->in->section_count ? it->last : it->last - 1;
  uint32_t steps = 0;
  for (uint32_t t = it->first; t <= last; t++)
    steps += is_step(s, t);
  return steps;
}

static void span(const ground *g, skyline *s, uint32_t item, uint32_t by) {
  const tarn__plan_item *it = &g->in->items[item];
  const tarn__plan_piece *pieces = tarn__plan_pieces(g->in, it);
  for (uint32_t p = 0; p < it->piece_count; p++) {
    for (uint32_t t = pieces[p].first + 1; t < pieces[p].last; t++)
      s->across[t] += by;
  }
}

// --- the beginning ----------------------------------------------------------

static bool lay_out(ground *g, skyline *s) {
  const tarn__plan_instance *in = g->in;
  memset(s->end, 0, in->section_count * sizeof *s->end);
  memset(s->across, 0, in->section_count * sizeof *s->across);
  memset(s->down, 0, in->item_count * sizeof *s->down);
  s->head.open_count = in->item_count;
  s->head.guide = 0;
  s->head.key = (tarn__plan_key){0, 0};
  for (uint32_t i = 0; i < in->item_count; i++) {
    s->head.at[i] = 0;
    span(g, s, i, 1);
  }
  for (uint32_t t = 0; t < in->section_count; t++) {
    if (in->live[t] > g->capacity) return false;
    s->limit[t] = g->capacity - in->live[t];
    s->rivals[t] = count_rivals(g, s, t);
  }
  return true;
}

static bool begin(void *common, const tarn__plan_run *run, void *state) {
  ground *g = common;
  g->capacity = run->capacity;
  g->seed = tarn__plan_mix(run->seed + 1 + ((uint64_t)run->order << 32) +
                           ((uint64_t)run->ease << 40));
  return lay_out(g, state);
}

// --- putting one down -------------------------------------------------------

// An item at |item|'s place must be above all of its sections' ends.
static bool fill_sections(ground *g, skyline *s, uint32_t item) {
  TARN__PLAN_EACH_SECTION (g->in, item, piece, t) {
    if (s->head.at[item] > s->limit[t]) return false;
    s->end[t] = s->head.at[item] + piece->size;
    s->limit[t] += piece->size;
  }
  return true;
}

static void lift(const ground *g, skyline *s, uint32_t item, uint64_t to) {
  TARN__PLAN_EACH_SECTION (g->in, item, piece, t) {
    s->rivals[t] -= s->head.at[item] <= s->limit[t] && to > s->limit[t];
  }
  s->head.at[item] = to;
}

static bool lift_neighbours(ground *g, skyline *s, uint32_t item,
                            tarn__plan_reach *changed) {
  const tarn__plan_neighbours *near = g->near;
  for (uint32_t e = near->first[item]; e < near->first[item + 1]; e++) {
    uint32_t other = near->item[e];
    uint64_t end = s->head.at[item] + tarn__plan_above(near, item, e);
    if (s->down[other] || s->head.at[other] >= end) continue;
    uint64_t to = tarn__plan_settle(g->near, other, end);
    if (!tarn__plan_ends_within(g->in, other, to, g->capacity)) return false;
    lift(g, s, other, to);
    tarn__plan_touch(changed, &g->in->items[other]);
  }
  return true;
}

// After all else: where |item| is, the limits are others than before.
static bool have_rivals(const ground *g, skyline *s, uint32_t item,
                        tarn__plan_reach changed) {
  TARN__PLAN_EACH_SECTION (g->in, item, piece, t) {
    s->rivals[t] = count_rivals(g, s, t);
  }
  for (uint32_t t = changed.first; t < changed.last; t++) {
    if (s->rivals[t] == 0 && !is_full(g, s, t)) return false;
  }
  return true;
}

// Most states have as many steps as many others; which of those go first is
// left to chance.
static void guide(const ground *g, skyline *s, uint64_t steps) {
  uint64_t chance = tarn__plan_mix(s->head.key.low ^ g->seed) >> 32;
  s->head.guide = steps << 32 | chance;
}

static bool advance(void *common, const void *from, const uint32_t *choices,
                    size_t chosen, void *state) {
  ground *g = common;
  skyline *s = state;
  uint32_t item = choices[chosen];
  const tarn__plan_item *it = &g->in->items[item];
  tarn__plan_reach changed = {it->first, it->last};
  uint64_t steps = s->head.guide >> 32;
  (void)from;
  s->down[item] = true;
  s->head.open_count--;
  tarn__plan_key_turn(&s->head.key, item, s->head.at[item]);
  steps -= count_steps(g, s, it);
  if (!fill_sections(g, s, item)) return false;
  span(g, s, item, UINT32_MAX);
  if (!lift_neighbours(g, s, item, &changed)) return false;
  guide(g, s, steps + count_steps(g, s, it));
  return have_rivals(g, s, item, changed);
}

// --- choices ----------------------------------------------------------------

static bool is_wall(const ground *g, const skyline *s, uint32_t section,
                    uint64_t end) {
  return is_full(g, s, section) || s->end[section] > end;
}

// With sections of one end from |first| to before |last|.
static bool is_valley(const ground *g, const skyline *s, uint32_t first,
                      uint32_t last) {
  uint64_t end = s->end[first];
  return (first == 0 || is_wall(g, s, first - 1, end)) &&
         (last == g->in->section_count || is_wall(g, s, last, end));
}

static bool is_before(const skyline *s, uint32_t a, uint32_t b) {
  if (s->rivals[a] != s->rivals[b]) return s->rivals[a] < s->rivals[b];
  return s->end[a] < s->end[b];
}

// The one with the fewest rivals, in a valley; else the number of sections.
static uint32_t find_scarcest(const ground *g, const skyline *s) {
  uint32_t sections = (uint32_t)g->in->section_count;
  uint32_t best = sections;
  uint32_t last;
  for (uint32_t first = 0; first < sections; first = last) {
    for (last = first; last < sections && s->end[last] == s->end[first];)
      last++;
    if (!is_valley(g, s, first, last)) continue;
    for (uint32_t t = first; t < last; t++) {
      if (is_full(g, s, t)) continue;
      if (best == sections || is_before(s, t, best)) best = t;
    }
  }
  return best;
}

static size_t list_choices(const void *common, const void *state,
                           uint32_t *choices) {
  const ground *g = common;
  const tarn__plan_neighbours *near = g->near;
  const skyline *s = state;
  uint32_t section = find_scarcest(g, s);
  size_t count = 0;
  if (section == g->in->section_count) return 0;
  for (uint32_t e = near->begin[section];
       e < near->begin[section + 1] && count < MOST_RIVALS; e++) {
    uint32_t item = near->present[e];
    if (s->down[item] || s->head.at[item] > s->limit[section]) continue;
    choices[count++] = item;
  }
  return count;
}

// --- the whole --------------------------------------------------------------

const tarn__plan_states_type tarn__plan_skylines = {
    .most_choices = MOST_RIVALS,
    .size = sizeof(skyline),
    .item_size = sizeof(uint64_t) + sizeof(bool),
    .section_size = 2 * (sizeof(uint64_t) + sizeof(uint32_t)),
    .make = make_common,
    .set_arrays = set_arrays,
    .begin = begin,
    .choices = list_choices,
    .advance = advance,
};

bool tarn__plan_is_tight(const tarn__plan_instance *in) {
  double room = 0;
  for (size_t i = 0; i < in->item_count; i++) {
    if (in->items[i].fixed) return false;
  }
  for (size_t t = 0; t < in->section_count; t++) {
    room += (double)(in->bound - in->live[t]);
  }
  double all = (double)in->bound * (double)in->section_count;
  return in->item_count > 0 && room * TIGHT <= all;
}
