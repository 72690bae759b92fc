// Putting an item down copies a state and updates it: the offsets of the items
// above, the least offsets of the items that were passed over, and the ends of
// the sections.
//
// The end of a section: its items that are not down are stacked in the order of
// their least offsets, each at its own or on those before. No plan ends lower,
// as this is the optimal schedule on one machine with release dates. Ends are
// counted in coarse numbers, rounded down, so that they never claim too much;
// offsets are exact.
#include <string.h>

#include "plan/beam.h"

// Choices of a state; the first ones are nearly always the good ones.
enum { SLACKS = 1024, CHOICES = 6 };

typedef struct spot {
  uint64_t *at;     // by item, where it lies or would
  uint64_t *least;  // by item; TARN__PLAN_DOWN where it is down
  bool *passed;     // by item: something must lift it
  uint32_t *open;   // items that are not down, by |least|
  size_t open_count;
  uint32_t *top;   // by section, coarse: where what is there ends at least
  uint64_t guide;  // the less, the more room there is
  tarn__plan_key key;
} spot;

// What all spots of a beam have in common.
typedef struct terrain {
  const tarn__plan_instance *in;
  const tarn__plan_neighbours *near;
  uint64_t units;         // the capacity
  unsigned shift;         // a coarse number is one of units without its
                          // lowest |shift| bits, and less than 2^31
  uint32_t *size;         // by piece, coarse
  uint32_t *live;         // by section, coarse
  uint32_t capacity;      // coarse
  uint64_t per_capacity;  // slack * it >> 32: in parts of 1024
  uint64_t weight[1025];  // of a section, by its slack in those
  uint32_t *ranks;        // by item
  tarn__plan_rank_key *rank_keys;
  spot *spots;
  // Scratch of a step.
  uint32_t *changed;  // items
  size_t changed_count;
  uint32_t *passed;  // items
  bool *is_changed;  // by item
  uint32_t first;    // the sections of what changed
  uint32_t last;
} terrain;

// --- memory -----------------------------------------------------------------

static size_t size_of_state(const tarn__plan_instance *in) {
  return in->item_count * (2 * sizeof(uint64_t) + sizeof(uint32_t) + 1) +
         in->section_count * sizeof(uint32_t) + sizeof(spot);
}

static void make_spots(terrain *t, size_t count, tarn__plan_memory *memory) {
  size_t items = t->in->item_count + 1;
  size_t sections = t->in->section_count + 1;
  t->spots = tarn__plan_array(memory, count, sizeof *t->spots);
  uint64_t *at = tarn__plan_array(memory, count * 2 * items, sizeof *at);
  bool *passed = tarn__plan_array(memory, count * items, sizeof *passed);
  uint32_t *open = tarn__plan_array(memory, count * items, sizeof *open);
  uint32_t *top = tarn__plan_array(memory, count * sections, sizeof *top);
  for (size_t i = 0; i < count && !memory->failed; i++) {
    t->spots[i] = (spot){.at = at + i * 2 * items,
                         .least = at + (i * 2 + 1) * items,
                         .passed = passed + i * items,
                         .open = open + i * items,
                         .top = top + i * sections};
  }
}

static void *make_all(const tarn__plan_neighbours *near, size_t count,
                      tarn__plan_memory *memory) {
  terrain *t = tarn__plan_array(memory, 1, sizeof *t);
  if (t == NULL) return NULL;
  const tarn__plan_instance *in = near->in;
  size_t items = in->item_count + 1;
  t->in = in;
  t->near = near;
  t->size = tarn__plan_array(memory, in->piece_count + 1, sizeof *t->size);
  t->live = tarn__plan_array(memory, in->section_count + 1, sizeof *t->live);
  t->ranks = tarn__plan_array(memory, items, sizeof *t->ranks);
  t->rank_keys = tarn__plan_array(memory, items, sizeof *t->rank_keys);
  t->changed = tarn__plan_array(memory, items, sizeof *t->changed);
  t->passed = tarn__plan_array(memory, items, sizeof *t->passed);
  t->is_changed = tarn__plan_array(memory, items, sizeof *t->is_changed);
  make_spots(t, count, memory);
  return memory->failed ? NULL : t;
}

// --- the beginning ----------------------------------------------------------

static void count_coarsely(terrain *t, uint64_t capacity) {
  const tarn__plan_instance *in = t->in;
  t->shift = 0;
  while (capacity >> t->shift >= UINT32_C(1) << 30)
    t->shift++;
  t->capacity = (uint32_t)(capacity >> t->shift);
  t->per_capacity =
      ((uint64_t)SLACKS << 32) / (t->capacity == 0 ? 1 : t->capacity);
  memset(t->live, 0, in->section_count * sizeof *t->live);
  for (size_t p = 0; p < in->piece_count; p++) {
    const tarn__plan_piece *piece = &in->pieces[p];
    t->size[p] = (uint32_t)(piece->size >> t->shift);
    for (uint32_t s = piece->first; s < piece->last; s++) {
      t->live[s] += t->size[p];
    }
  }
}

// A section weighs more with less slack, by the third power.
static void weigh(terrain *t, uint32_t ease) {
  for (uint64_t slack = 0; slack <= SLACKS; slack++) {
    uint64_t room = slack + ease;
    t->weight[slack] = (UINT64_C(1) << 55) / (room * room * room);
  }
}

static uint64_t weight_of(const terrain *t, uint32_t section, uint32_t top) {
  if (top == 0) top = t->live[section];  // all items are placed
  uint64_t slack = top < t->capacity ? t->capacity - top : 0;
  return t->weight[slack * t->per_capacity >> 32];
}

static void insert_by_least(const uint64_t *least, uint32_t *items,
                            size_t count) {
  for (size_t i = 1; i < count; i++) {
    uint32_t moved = items[i];
    size_t to = i;
    for (; to > 0 && least[items[to - 1]] > least[moved]; to--) {
      items[to] = items[to - 1];
    }
    items[to] = moved;
  }
}

static bool ends_within(const terrain *t, uint32_t item, uint64_t offset) {
  return tarn__plan_ends_within(t->in, item, offset, t->units);
}

// False: something is too high as it is.
static bool lay_out(const terrain *t, spot *s) {
  bool fits = tarn__plan_lay_out(t->near, t->units, s->at, s->least);
  s->open_count = 0;
  s->key = (tarn__plan_key){0, 0};
  for (uint32_t i = 0; i < t->in->item_count; i++) {
    s->passed[i] = false;
    if (!t->in->items[i].fixed) s->open[s->open_count++] = i;
  }
  insert_by_least(s->least, s->open, s->open_count);
  return fits && !t->near->fixed_collide;
}

// --- sections ---------------------------------------------------------------

static void touch(terrain *t, uint32_t item) {
  const tarn__plan_item *it = &t->in->items[item];
  if (it->first < t->first) t->first = it->first;
  if (it->last > t->last) t->last = it->last;
}

static void stack(const terrain *t, uint32_t item, uint32_t least,
                  uint32_t *restrict top) {
  const tarn__plan_instance *in = t->in;
  const tarn__plan_item *it = &in->items[item];
  for (uint32_t p = it->piece; p < it->piece + it->piece_count; p++) {
    uint32_t first = in->pieces[p].first;
    uint32_t last = in->pieces[p].last;
    uint32_t size = t->size[p];
    if (first < t->first) first = t->first;
    if (last > t->last) last = t->last;
    for (uint32_t s = first; s < last; s++) {
      int32_t end = (int32_t)top[s];
      end = end < (int32_t)least ? (int32_t)least : end;
      top[s] = (uint32_t)end + size;
    }
  }
}

// Finds the ends of the sections of what changed. False: one is too high.
static bool stack_all(terrain *t, spot *s) {
  uint64_t guide = s->guide;
  for (uint32_t i = t->first; i < t->last; i++) {
    guide -= weight_of(t, i, s->top[i]);
    s->top[i] = 0;
  }
  for (size_t k = 0; k < s->open_count; k++) {
    uint32_t item = s->open[k];
    const tarn__plan_item *it = &t->in->items[item];
    if (it->last <= t->first || it->first >= t->last) continue;
    stack(t, item, (uint32_t)(s->least[item] >> t->shift), s->top);
  }
  for (uint32_t i = t->first; i < t->last; i++) {
    if (s->top[i] > t->capacity) return false;
    guide += weight_of(t, i, s->top[i]);
  }
  s->guide = guide;
  return true;
}

static bool begin(void *states, const tarn__plan_run *run) {
  terrain *t = states;
  spot *s = &t->spots[0];
  t->units = run->capacity;
  if (!lay_out(t, s)) return false;
  count_coarsely(t, run->capacity);
  weigh(t, run->ease);
  s->guide = 0;
  memset(s->top, 0, t->in->section_count * sizeof *s->top);
  for (uint32_t i = 0; i < t->in->section_count; i++) {
    s->guide += weight_of(t, i, 0);
  }
  t->first = 0;
  t->last = (uint32_t)t->in->section_count;
  tarn__plan_rank(t->in, run, t->in->live, s->open, s->open_count, t->rank_keys,
                  t->ranks);
  return stack_all(t, s);
}

// --- putting one down -------------------------------------------------------

static void copy(const terrain *t, const spot *from, spot *to) {
  const tarn__plan_instance *in = t->in;
  memcpy(to->at, from->at, in->item_count * sizeof *to->at);
  memcpy(to->least, from->least, in->item_count * sizeof *to->least);
  memcpy(to->passed, from->passed, in->item_count * sizeof *to->passed);
  memcpy(to->top, from->top, in->section_count * sizeof *to->top);
  to->guide = from->guide;
  to->key = from->key;
}

static void change(terrain *t, uint32_t item) {
  touch(t, item);
  if (t->is_changed[item]) return;
  t->is_changed[item] = true;
  t->changed[t->changed_count++] = item;
}

static void turn_key(spot *s, uint32_t item) {
  tarn__plan_key_turn(&s->key, item,
                      s->passed[item] ? UINT64_MAX : s->at[item]);
}

static void pass(terrain *t, spot *s, uint32_t item) {
  turn_key(s, item);
  s->passed[item] = true;
  turn_key(s, item);
  change(t, item);
}

static bool put_down(terrain *t, spot *s, uint32_t item) {
  const tarn__plan_neighbours *near = t->near;
  turn_key(s, item);
  s->least[item] = TARN__PLAN_DOWN;
  change(t, item);
  for (uint32_t e = near->first[item]; e < near->first[item + 1]; e++) {
    uint32_t other = near->item[e];
    uint64_t end = s->at[item] + tarn__plan_above(near, item, e);
    if (s->at[other] >= end || s->least[other] == TARN__PLAN_DOWN) {
      continue;
    }
    turn_key(s, other);
    s->passed[other] = false;
    s->at[other] = s->least[other] = tarn__plan_settle(t->near, other, end);
    turn_key(s, other);
    if (!ends_within(t, other, s->at[other])) return false;
    change(t, other);
  }
  return true;
}

// --- what was passed over ---------------------------------------------------

// The least end of what may lift |item| and was not passed over itself.
static uint64_t lift_of(const terrain *t, const spot *s, uint32_t item) {
  const tarn__plan_neighbours *near = t->near;
  uint64_t best = TARN__PLAN_DOWN - 1;
  for (uint32_t e = near->first[item]; e < near->first[item + 1]; e++) {
    uint32_t other = near->item[e];
    if (s->least[other] == TARN__PLAN_DOWN || s->passed[other]) continue;
    uint64_t end = s->at[other] + tarn__plan_below(near, e);
    if (end < best) best = end;
  }
  return best;
}

// An item that was passed over may be lifted by another such item, when that is
// lifted.
static void lift_others(const terrain *t, spot *s, uint32_t item) {
  const tarn__plan_neighbours *near = t->near;
  for (uint32_t e = near->first[item]; e < near->first[item + 1]; e++) {
    uint32_t other = near->item[e];
    if (!s->passed[other] || s->least[other] == TARN__PLAN_DOWN) continue;
    uint64_t end = s->least[item] + tarn__plan_above(near, item, e);
    if (end < s->least[other]) s->least[other] = end;
  }
}

static void bring_least(const spot *s, uint32_t *items, size_t count) {
  size_t best = 0;
  for (size_t i = 1; i < count; i++) {
    if (s->least[items[i]] < s->least[items[best]]) best = i;
  }
  uint32_t item = items[best];
  items[best] = items[0];
  items[0] = item;
}

static bool lift_passed(terrain *t, const spot *from, spot *s) {
  size_t count = 0;
  for (size_t i = 0; i < from->open_count; i++) {
    uint32_t item = from->open[i];
    if (!s->passed[item] || s->least[item] == TARN__PLAN_DOWN) continue;
    t->passed[count++] = item;
    s->least[item] = lift_of(t, s, item);
  }
  for (size_t i = 0; i < count; i++) {
    bring_least(s, t->passed + i, count - i);
    uint32_t item = t->passed[i];
    if (s->least[item] == TARN__PLAN_DOWN - 1) return false;
    s->least[item] = tarn__plan_settle(t->near, item, s->least[item]);
    if (!ends_within(t, item, s->least[item])) return false;
    lift_others(t, s, item);
    if (s->least[item] != from->least[item]) change(t, item);
  }
  return true;
}

// --- all of it --------------------------------------------------------------

// The items that are not placed in |from|, by their least offsets in |to|.
static void merge(terrain *t, const spot *from, spot *to) {
  size_t changed = 0;
  for (size_t i = 0; i < t->changed_count; i++) {
    uint32_t item = t->changed[i];
    if (to->least[item] != TARN__PLAN_DOWN) t->passed[changed++] = item;
  }
  insert_by_least(to->least, t->passed, changed);
  size_t next = 0;
  size_t filled = 0;
  for (size_t i = 0; i < from->open_count; i++) {
    uint32_t item = from->open[i];
    if (t->is_changed[item]) continue;
    uint64_t least = to->least[item];
    while (next < changed && to->least[t->passed[next]] < least) {
      to->open[filled++] = t->passed[next++];
    }
    to->open[filled++] = item;
  }
  while (next < changed)
    to->open[filled++] = t->passed[next++];
  to->open_count = filled;
}

static bool follow(terrain *t, const spot *from, const uint32_t *choices,
                   size_t passed, spot *to) {
  for (size_t i = 0; i < passed; i++)
    pass(t, to, choices[i]);
  if (!put_down(t, to, choices[passed])) return false;
  if (!lift_passed(t, from, to)) return false;
  merge(t, from, to);
  return stack_all(t, to);
}

static bool advance(void *states, size_t from, const uint32_t *choices,
                    size_t chosen, size_t to, tarn__plan_standing *out) {
  terrain *t = states;
  copy(t, &t->spots[from], &t->spots[to]);
  t->changed_count = 0;
  t->first = UINT32_MAX;
  t->last = 0;
  bool holds = follow(t, &t->spots[from], choices, chosen, &t->spots[to]);
  for (size_t i = 0; i < t->changed_count; i++) {
    t->is_changed[t->changed[i]] = false;
  }
  *out = (tarn__plan_standing){t->spots[to].guide, t->spots[to].key};
  return holds;
}

// --- choices ----------------------------------------------------------------

static bool comes_before(const spot *s, const uint32_t *ranks, uint32_t a,
                         uint32_t b) {
  if (s->at[a] != s->at[b]) return s->at[a] < s->at[b];
  return ranks[a] < ranks[b];
}

static size_t list_choices(void *states, size_t from, uint32_t *choices) {
  const terrain *t = states;
  const spot *s = &t->spots[from];
  uint64_t least_end = UINT64_MAX;
  size_t count = 0;
  for (size_t i = 0; i < s->open_count; i++) {
    uint32_t item = s->open[i];
    if (s->least[item] >= least_end) break;
    if (s->passed[item]) continue;
    uint64_t end = s->at[item] + t->in->items[item].size;
    if (end < least_end) least_end = end;
  }
  for (size_t i = 0; i < s->open_count; i++) {
    uint32_t item = s->open[i];
    if (s->least[item] >= least_end) break;
    if (s->passed[item]) continue;
    size_t to = count < CHOICES ? count++ : CHOICES;
    if (to == CHOICES &&
        !comes_before(s, t->ranks, item, choices[CHOICES - 1])) {
      continue;
    }
    if (to == CHOICES) to--;
    for (; to > 0 && comes_before(s, t->ranks, item, choices[to - 1]); to--) {
      choices[to] = choices[to - 1];
    }
    choices[to] = item;
  }
  return count;
}

// --- the whole --------------------------------------------------------------

static const uint64_t *plan_of(void *states, size_t at) {
  const terrain *t = states;
  return t->spots[at].open_count == 0 ? t->spots[at].at : NULL;
}

const tarn__plan_states_type tarn__plan_spots = {
    .most_choices = CHOICES,
    .size = size_of_state,
    .make = make_all,
    .begin = begin,
    .choices = list_choices,
    .advance = advance,
    .plan = plan_of,
};
