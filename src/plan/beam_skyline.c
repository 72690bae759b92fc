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
  uint64_t *at;      // by item: where it lies, or the least that it can
  uint64_t *end;     // by section: of what is down
  uint64_t *limit;   // by section: the capacity, when all of it is down
  uint32_t *rivals;  // by section
  uint32_t *across;  // by section: items that are not placed, and are in the
                     // section before too
  bool *down;        // by item
  size_t open;       // items that are not down
  uint32_t steps;
  tarn__plan_key key;
} skyline;

typedef struct skylines {
  const tarn__plan_instance *in;
  const tarn__plan_neighbours *near;
  uint64_t capacity;
  uint64_t seed;
  skyline *all;
} skylines;

// --- memory -----------------------------------------------------------------

static size_t number_count(const tarn__plan_instance *in) {
  return in->item_count + 2 * in->section_count;
}

static size_t size_of_state(const tarn__plan_instance *in) {
  return number_count(in) * sizeof(uint64_t) +
         2 * in->section_count * sizeof(uint32_t) + in->item_count +
         sizeof(skyline);
}

static void *make_all(const tarn__plan_neighbours *near, size_t count,
                      tarn__plan_memory *memory) {
  skylines *all = tarn__plan_array(memory, 1, sizeof *all);
  if (all == NULL) return NULL;
  size_t items = near->in->item_count;
  size_t sections = near->in->section_count;
  size_t each = number_count(near->in);
  all->in = near->in;
  all->near = near;
  all->all = tarn__plan_array(memory, count, sizeof *all->all);
  uint64_t *numbers = tarn__plan_array(memory, count * each, sizeof *numbers);
  uint32_t *counts =
      tarn__plan_array(memory, count * 2 * sections, sizeof *counts);
  bool *down = tarn__plan_array(memory, count * items, sizeof *down);
  for (size_t i = 0; i < count && !memory->failed; i++) {
    skyline *s = &all->all[i];
    s->at = numbers + i * each;
    s->end = s->at + items;
    s->limit = s->end + sections;
    s->rivals = counts + i * 2 * sections;
    s->across = s->rivals + sections;
    s->down = down + i * items;
  }
  return memory->failed ? NULL : all;
}

static void copy(const skylines *all, const skyline *from, skyline *to) {
  size_t sections = all->in->section_count;
  memcpy(to->at, from->at, number_count(all->in) * sizeof *to->at);
  memcpy(to->rivals, from->rivals, 2 * sections * sizeof *to->rivals);
  memcpy(to->down, from->down, all->in->item_count * sizeof *to->down);
  to->open = from->open;
  to->steps = from->steps;
  to->key = from->key;
}

// --- sections ---------------------------------------------------------------

static uint32_t count_rivals(const skylines *all, const skyline *s,
                             uint32_t section) {
  const tarn__plan_neighbours *near = all->near;
  uint32_t rivals = 0;
  for (uint32_t e = near->begin[section]; e < near->begin[section + 1]; e++) {
    uint32_t item = near->present[e];
    rivals += !s->down[item] && s->at[item] <= s->limit[section];
  }
  return rivals;
}

static bool is_full(const skylines *all, const skyline *s, uint32_t section) {
  return s->limit[section] == all->capacity;
}

// Nothing can lie across a step: it would leave more room than there is.
static bool is_step(const skyline *s, uint32_t section) {
  if (section == 0 || s->across[section] == 0) return false;
  return s->end[section - 1] > s->limit[section] ||
         s->end[section] > s->limit[section - 1];
}

static uint32_t count_steps(const skylines *all, const skyline *s,
                            const tarn__plan_item *it) {
  uint32_t last = it->last < all->in->section_count ? it->last : it->last - 1;
  uint32_t steps = 0;
  for (uint32_t t = it->first; t <= last; t++)
    steps += is_step(s, t);
  return steps;
}

static void span(const skylines *all, skyline *s, uint32_t item, uint32_t by) {
  const tarn__plan_item *it = &all->in->items[item];
  const tarn__plan_piece *pieces = tarn__plan_pieces(all->in, it);
  for (uint32_t p = 0; p < it->piece_count; p++) {
    for (uint32_t t = pieces[p].first + 1; t < pieces[p].last; t++)
      s->across[t] += by;
  }
}

// --- the beginning ----------------------------------------------------------

static bool lay_out(skylines *all, skyline *s) {
  const tarn__plan_instance *in = all->in;
  memset(s->end, 0, in->section_count * sizeof *s->end);
  memset(s->across, 0, in->section_count * sizeof *s->across);
  memset(s->down, 0, in->item_count * sizeof *s->down);
  s->open = in->item_count;
  s->steps = 0;
  s->key = (tarn__plan_key){0, 0};
  for (uint32_t i = 0; i < in->item_count; i++) {
    s->at[i] = 0;
    span(all, s, i, 1);
  }
  for (uint32_t t = 0; t < in->section_count; t++) {
    if (in->live[t] > all->capacity) return false;
    s->limit[t] = all->capacity - in->live[t];
    s->rivals[t] = count_rivals(all, s, t);
  }
  return true;
}

static bool begin(void *states, const tarn__plan_run *run) {
  skylines *all = states;
  all->capacity = run->capacity;
  all->seed = tarn__plan_mix(run->seed + 1 + ((uint64_t)run->order << 32) +
                             ((uint64_t)run->ease << 40));
  return lay_out(all, &all->all[0]);
}

// --- putting one down -------------------------------------------------------

// The sections that changed.
typedef struct reach {
  uint32_t first;
  uint32_t last;
} reach;

static void touch(reach *r, const tarn__plan_item *it) {
  if (it->first < r->first) r->first = it->first;
  if (it->last > r->last) r->last = it->last;
}

// An item at |item|'s place must be above all of its sections' ends.
static bool fill_sections(skylines *all, skyline *s, uint32_t item) {
  TARN__PLAN_EACH_SECTION (all->in, item, piece, t) {
    if (s->at[item] > s->limit[t]) return false;
    s->end[t] = s->at[item] + piece->size;
    s->limit[t] += piece->size;
  }
  return true;
}

static void lift(const skylines *all, skyline *s, uint32_t item, uint64_t to) {
  TARN__PLAN_EACH_SECTION (all->in, item, piece, t) {
    s->rivals[t] -= s->at[item] <= s->limit[t] && to > s->limit[t];
  }
  s->at[item] = to;
}

static bool lift_neighbours(skylines *all, skyline *s, uint32_t item,
                            reach *changed) {
  const tarn__plan_neighbours *near = all->near;
  for (uint32_t e = near->first[item]; e < near->first[item + 1]; e++) {
    uint32_t other = near->item[e];
    uint64_t end = s->at[item] + tarn__plan_above(near, item, e);
    if (s->down[other] || s->at[other] >= end) continue;
    uint64_t to = tarn__plan_settle(all->near, other, end);
    if (!tarn__plan_ends_within(all->in, other, to, all->capacity))
      return false;
    lift(all, s, other, to);
    touch(changed, &all->in->items[other]);
  }
  return true;
}

// After all else: where |item| is, the limits are others than before.
static bool have_rivals(const skylines *all, skyline *s, uint32_t item,
                        reach changed) {
  TARN__PLAN_EACH_SECTION (all->in, item, piece, t) {
    s->rivals[t] = count_rivals(all, s, t);
  }
  for (uint32_t t = changed.first; t < changed.last; t++) {
    if (s->rivals[t] == 0 && !is_full(all, s, t)) return false;
  }
  return true;
}

static bool put_down(skylines *all, skyline *s, uint32_t item) {
  const tarn__plan_item *it = &all->in->items[item];
  reach changed = {it->first, it->last};
  s->down[item] = true;
  s->open--;
  tarn__plan_key_turn(&s->key, item, s->at[item]);
  s->steps -= count_steps(all, s, it);
  if (!fill_sections(all, s, item)) return false;
  span(all, s, item, UINT32_MAX);
  if (!lift_neighbours(all, s, item, &changed)) return false;
  s->steps += count_steps(all, s, it);
  return have_rivals(all, s, item, changed);
}

// Most states have as many steps as many others; which of those go first is
// left to chance.
static uint64_t guide_of(const skylines *all, const skyline *s) {
  uint64_t chance = tarn__plan_mix(s->key.low ^ all->seed) >> 32;
  return (uint64_t)s->steps << 32 | chance;
}

static bool advance(void *states, size_t from, const uint32_t *choices,
                    size_t chosen, size_t to, tarn__plan_standing *out) {
  skylines *all = states;
  skyline *s = &all->all[to];
  copy(all, &all->all[from], s);
  if (!put_down(all, s, choices[chosen])) return false;
  *out = (tarn__plan_standing){guide_of(all, s), s->key};
  return true;
}

// --- choices ----------------------------------------------------------------

static bool is_wall(const skylines *all, const skyline *s, uint32_t section,
                    uint64_t end) {
  return is_full(all, s, section) || s->end[section] > end;
}

// With sections of one end from |first| to before |last|.
static bool is_valley(const skylines *all, const skyline *s, uint32_t first,
                      uint32_t last) {
  uint64_t end = s->end[first];
  return (first == 0 || is_wall(all, s, first - 1, end)) &&
         (last == all->in->section_count || is_wall(all, s, last, end));
}

static bool is_before(const skyline *s, uint32_t a, uint32_t b) {
  if (s->rivals[a] != s->rivals[b]) return s->rivals[a] < s->rivals[b];
  return s->end[a] < s->end[b];
}

// The one with the fewest rivals, in a valley; else the number of sections.
static uint32_t find_scarcest(const skylines *all, const skyline *s) {
  uint32_t sections = (uint32_t)all->in->section_count;
  uint32_t best = sections;
  uint32_t last;
  for (uint32_t first = 0; first < sections; first = last) {
    for (last = first; last < sections && s->end[last] == s->end[first];)
      last++;
    if (!is_valley(all, s, first, last)) continue;
    for (uint32_t t = first; t < last; t++) {
      if (is_full(all, s, t)) continue;
      if (best == sections || is_before(s, t, best)) best = t;
    }
  }
  return best;
}

static size_t list_choices(void *states, size_t from, uint32_t *choices) {
  const skylines *all = states;
  const tarn__plan_neighbours *near = all->near;
  const skyline *s = &all->all[from];
  uint32_t section = find_scarcest(all, s);
  size_t count = 0;
  if (section == all->in->section_count) return 0;
  for (uint32_t e = near->begin[section];
       e < near->begin[section + 1] && count < MOST_RIVALS; e++) {
    uint32_t item = near->present[e];
    if (s->down[item] || s->at[item] > s->limit[section]) continue;
    choices[count++] = item;
  }
  return count;
}

// --- the whole --------------------------------------------------------------

static const uint64_t *plan_of(void *states, size_t at) {
  const skylines *all = states;
  return all->all[at].open == 0 ? all->all[at].at : NULL;
}

const tarn__plan_states_type tarn__plan_skylines = {
    .most_choices = MOST_RIVALS,
    .size = size_of_state,
    .make = make_all,
    .begin = begin,
    .choices = list_choices,
    .advance = advance,
    .plan = plan_of,
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
