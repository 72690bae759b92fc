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
  tarn__plan_head head;  // |at|: where it lies or would
  uint64_t *least;       // by item; TARN__PLAN_DOWN where it is down
  uint32_t *open;        // items that are not down, by |least|
  uint32_t *top;  // by section, coarse: where what is there ends at least
  bool *passed;   // by item: something must lift it
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
  // Scratch of a step.
  uint32_t *changed;  // items
  size_t changed_count;
  uint32_t *passed;  // items
  bool *is_changed;  // by item
  tarn__plan_reach reach;
} terrain;

// --- memory -----------------------------------------------------------------

static void set_arrays(const tarn__plan_instance *in, void *state) {
  spot *s = state;
  s->head.at = (uint64_t *)(s + 1);
  s->least = s->head.at + in->item_count;
  s->open = (uint32_t *)(s->least + in->item_count);
  s->top = s->open + in->item_count;
  s->passed = (bool *)(s->top + in->section_count);
}

static void *make_common(const tarn__plan_neighbours *near,
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
  return t;
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

// False: something is too high as it is.
static bool lay_out(const terrain *t, spot *s) {
  bool fits = tarn__plan_lay_out(t->near, t->units, s->head.at, s->least);
  s->head.open_count = 0;
  s->head.key = (tarn__plan_key){0, 0};
  for (uint32_t i = 0; i < t->in->item_count; i++) {
    s->passed[i] = false;
    if (!t->in->items[i].fixed) s->open[s->head.open_count++] = i;
  }
  insert_by_least(s->least, s->open, s->head.open_count);
  return fits && !t->near->fixed_collide;
}

// --- sections ---------------------------------------------------------------

static void stack(const terrain *t, uint32_t item, uint32_t least,
                  uint32_t *restrict top) {
  const tarn__plan_instance *in = t->in;
  const tarn__plan_item *it = &in->items[item];
  for (uint32_t p = it->piece; p < it->piece + it->piece_count; p++) {
    uint32_t first = in->pieces[p].first;
    uint32_t last = in->pieces[p].last;
    uint32_t size = t->size[p];
    if (first < t->reach.first) first = t->reach.first;
    if (last > t->reach.last) last = t->reach.last;
    for (uint32_t s = first; s < last; s++) {
      int32_t end = (int32_t)top[s];
      end = end < (int32_t)least ? (int32_t)least : end;
      top[s] = (uint32_t)end + size;
    }
  }
}

// Finds the ends of the sections of what changed. False: one is too high.
static bool stack_all(terrain *t, spot *s) {
  uint64_t guide = s->head.guide;
  for (uint32_t i = t->reach.first; i < t->reach.last; i++) {
    guide -= weight_of(t, i, s->top[i]);
    s->top[i] = 0;
  }
  for (size_t k = 0; k < s->head.open_count; k++) {
    uint32_t item = s->open[k];
    const tarn__plan_item *it = &t->in->items[item];
    if (it->last <= t->reach.first || it->first >= t->reach.last) continue;
    stack(t, item, (uint32_t)(s->least[item] >> t->shift), s->top);
  }
  for (uint32_t i = t->reach.first; i < t->reach.last; i++) {
    if (s->top[i] > t->capacity) return false;
    guide += weight_of(t, i, s->top[i]);
  }
  s->head.guide = guide;
  return true;
}

static bool begin(void *common, const tarn__plan_run *run, void *state) {
  terrain *t = common;
  spot *s = state;
  t->units = run->capacity;
  if (!lay_out(t, s)) return false;
  count_coarsely(t, run->capacity);
  weigh(t, run->ease);
  s->head.guide = 0;
  memset(s->top, 0, t->in->section_count * sizeof *s->top);
  for (uint32_t i = 0; i < t->in->section_count; i++) {
    s->head.guide += weight_of(t, i, 0);
  }
  t->reach = (tarn__plan_reach){0, (uint32_t)t->in->section_count};
  tarn__plan_rank(t->in, run, t->in->live, s->open, s->head.open_count,
                  t->rank_keys, t->ranks);
  return stack_all(t, s);
}

// --- putting one down -------------------------------------------------------

static void change(terrain *t, uint32_t item) {
  tarn__plan_touch(&t->reach, &t->in->items[item]);
  if (t->is_changed[item]) return;
  t->is_changed[item] = true;
  t->changed[t->changed_count++] = item;
}

static void turn_key(spot *s, uint32_t item) {
  tarn__plan_key_turn(&s->head.key, item,
                      s->passed[item] ? UINT64_MAX : s->head.at[item]);
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
    uint64_t end = s->head.at[item] + tarn__plan_above(near, item, e);
    if (s->head.at[other] >= end || s->least[other] == TARN__PLAN_DOWN) {
      continue;
    }
    turn_key(s, other);
    s->passed[other] = false;
    s->head.at[other] = s->least[other] =
        tarn__plan_settle(t->near, other, end);
    turn_key(s, other);
    if (!tarn__plan_ends_within(t->in, other, s->head.at[other], t->units))
      return false;
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
    uint64_t end = s->head.at[other] + tarn__plan_below(near, e);
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
  for (size_t i = 0; i < from->head.open_count; i++) {
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
    if (!tarn__plan_ends_within(t->in, item, s->least[item], t->units))
      return false;
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
  for (size_t i = 0; i < from->head.open_count; i++) {
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
  to->head.open_count = filled;
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

static bool advance(void *common, const void *from, const uint32_t *choices,
                    size_t chosen, void *state) {
  terrain *t = common;
  t->changed_count = 0;
  t->reach = (tarn__plan_reach){UINT32_MAX, 0};
  bool holds = follow(t, from, choices, chosen, state);
  for (size_t i = 0; i < t->changed_count; i++) {
    t->is_changed[t->changed[i]] = false;
  }
  return holds;
}

// --- choices ----------------------------------------------------------------

static bool comes_before(const spot *s, const uint32_t *ranks, uint32_t a,
                         uint32_t b) {
  if (s->head.at[a] != s->head.at[b]) return s->head.at[a] < s->head.at[b];
  return ranks[a] < ranks[b];
}

static size_t list_choices(const void *common, const void *state,
                           uint32_t *choices) {
  const terrain *t = common;
  const spot *s = state;
  uint64_t least_end = UINT64_MAX;
  size_t count = 0;
  for (size_t i = 0; i < s->head.open_count; i++) {
    uint32_t item = s->open[i];
    if (s->least[item] >= least_end) break;
    if (s->passed[item]) continue;
    uint64_t end = s->head.at[item] + t->in->items[item].size;
    if (end < least_end) least_end = end;
  }
  for (size_t i = 0; i < s->head.open_count; i++) {
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

const tarn__plan_states_type tarn__plan_spots = {
    .most_choices = CHOICES,
    .size = sizeof(spot),
    .item_size = 2 * sizeof(uint64_t) + sizeof(uint32_t) + sizeof(bool),
    .section_size = sizeof(uint32_t),
    .make = make_common,
    .set_arrays = set_arrays,
    .begin = begin,
    .choices = list_choices,
    .advance = advance,
};
