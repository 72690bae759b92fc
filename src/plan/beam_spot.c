// A step copies a state, puts one item down in it, and finds again what
// follows: the offsets of those that lie above it, the least offsets of those
// that were passed over, the ends of what is in each section.
//
// The end of a section: what is not down is laid down in the order of least
// offsets, each at its own or on what is there already. No plan can do with
// less, for it is the best that can be done with release dates on one machine.
// It is counted in coarse numbers, which are rounded down and so say no more
// than is true; what lies where is counted exactly.
#include "plan/beam_spot.h"

#include <string.h>

#include "base/hostmem.h"

enum { SLACKS = 1024 };

// --- memory -----------------------------------------------------------------

void tarn__plan_terrain_free(tarn__plan_terrain *t) {
  if (t->in == NULL) return;
  size_t items = t->in->item_count + 1;
  tarn__host_free_array(t->size, t->in->piece_count + 1, sizeof *t->size);
  tarn__host_free_array(t->live, t->in->section_count + 1, sizeof *t->live);
  tarn__host_free_array(t->changed, items, sizeof *t->changed);
  tarn__host_free_array(t->passed, items, sizeof *t->passed);
  tarn__host_free_array(t->is_changed, items, sizeof *t->is_changed);
  tarn__plan_allowed_free(&t->allowed);
  tarn__plan_neighbours_free(&t->near);
  *t = (tarn__plan_terrain){0};
}

static tarn_status make_arrays(const tarn__plan_instance *in,
                               tarn__plan_terrain *t) {
  t->size = tarn__host_array(in->piece_count + 1, sizeof *t->size);
  t->live = tarn__host_array(in->section_count + 1, sizeof *t->live);
  t->changed = tarn__host_array(in->item_count + 1, sizeof *t->changed);
  t->passed = tarn__host_array(in->item_count + 1, sizeof *t->passed);
  t->is_changed = tarn__host_array(in->item_count + 1, sizeof *t->is_changed);
  bool made = t->size != NULL && t->live != NULL && t->changed != NULL &&
              t->passed != NULL && t->is_changed != NULL;
  return made ? TARN_OK : TARN_E_NOMEM;
}

tarn_status tarn__plan_terrain_make(const tarn__plan_instance *instance,
                                    size_t most,
                                    tarn__plan_terrain *out_terrain) {
  *out_terrain = (tarn__plan_terrain){.in = instance};
  tarn_status status =
      tarn__plan_neighbours_make(instance, most, &out_terrain->near);
  if (status == TARN_OK) {
    status = tarn__plan_allowed_make(&out_terrain->near, &out_terrain->allowed);
  }
  if (status == TARN_OK) status = make_arrays(instance, out_terrain);
  if (status != TARN_OK) tarn__plan_terrain_free(out_terrain);
  return status;
}

// --- the beginning ----------------------------------------------------------

static void count_coarsely(tarn__plan_terrain *t, uint64_t capacity) {
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
static void weigh(tarn__plan_terrain *t, uint32_t ease) {
  for (uint64_t slack = 0; slack <= SLACKS; slack++) {
    uint64_t room = slack + ease;
    t->weight[slack] = (UINT64_C(1) << 55) / (room * room * room);
  }
}

static uint64_t weight_of(const tarn__plan_terrain *t, uint32_t section,
                          uint32_t top) {
  if (top == 0) top = t->live[section];  // all is down
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

static bool ends_within(const tarn__plan_terrain *t, uint32_t item,
                        uint64_t offset) {
  uint64_t size = t->in->items[item].size;
  return offset <= t->units && size <= t->units - offset;
}

// False: something is too high as it is.
static bool lay_out(const tarn__plan_terrain *t, tarn__plan_spot *spot) {
  const tarn__plan_allowed *allowed = &t->allowed;
  bool fits = tarn__plan_allowed_clear(allowed);
  spot->open_count = 0;
  spot->key = (tarn__plan_key){0, 0};
  for (uint32_t i = 0; i < t->in->item_count; i++) {
    bool fixed = allowed->fixed[i];
    spot->at[i] = fixed ? allowed->at[i] : tarn__plan_settle(allowed, i, 0);
    spot->least[i] = fixed ? TARN__PLAN_IS_DOWN : spot->at[i];
    spot->passed[i] = false;
    if (!fixed) spot->open[spot->open_count++] = i;
    if (!ends_within(t, i, spot->at[i])) fits = false;
  }
  insert_by_least(spot->least, spot->open, spot->open_count);
  return fits;
}

// --- sections ---------------------------------------------------------------

static void touch(tarn__plan_terrain *t, uint32_t item) {
  const tarn__plan_item *it = &t->in->items[item];
  if (it->first < t->first) t->first = it->first;
  if (it->last > t->last) t->last = it->last;
}

static void stack(const tarn__plan_terrain *t, uint32_t item, uint32_t least,
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
static bool stack_all(tarn__plan_terrain *t, tarn__plan_spot *spot) {
  uint64_t guide = spot->guide;
  for (uint32_t s = t->first; s < t->last; s++) {
    guide -= weight_of(t, s, spot->top[s]);
    spot->top[s] = 0;
  }
  for (size_t i = 0; i < spot->open_count; i++) {
    uint32_t item = spot->open[i];
    const tarn__plan_item *it = &t->in->items[item];
    if (it->last <= t->first || it->first >= t->last) continue;
    stack(t, item, (uint32_t)(spot->least[item] >> t->shift), spot->top);
  }
  for (uint32_t s = t->first; s < t->last; s++) {
    if (spot->top[s] > t->capacity) return false;
    guide += weight_of(t, s, spot->top[s]);
  }
  spot->guide = guide;
  return true;
}

tarn_status tarn__plan_terrain_begin(tarn__plan_terrain *t, uint64_t capacity,
                                     uint32_t ease, tarn__plan_spot *spot,
                                     bool *out_fits) {
  tarn_status status = tarn__plan_allowed_begin(&t->allowed, NULL);
  *out_fits = false;
  if (status != TARN_OK) return status;
  t->units = capacity;
  if (!lay_out(t, spot)) return TARN_OK;
  count_coarsely(t, capacity);
  weigh(t, ease);
  spot->guide = 0;
  memset(spot->top, 0, t->in->section_count * sizeof *spot->top);
  for (uint32_t s = 0; s < t->in->section_count; s++) {
    spot->guide += weight_of(t, s, 0);
  }
  t->first = 0;
  t->last = (uint32_t)t->in->section_count;
  *out_fits = stack_all(t, spot);
  return TARN_OK;
}

// --- a step -----------------------------------------------------------------

static void copy(const tarn__plan_terrain *t, const tarn__plan_spot *from,
                 tarn__plan_spot *to) {
  const tarn__plan_instance *in = t->in;
  memcpy(to->at, from->at, in->item_count * sizeof *to->at);
  memcpy(to->least, from->least, in->item_count * sizeof *to->least);
  memcpy(to->passed, from->passed, in->item_count * sizeof *to->passed);
  memcpy(to->top, from->top, in->section_count * sizeof *to->top);
  to->guide = from->guide;
  to->key = from->key;
}

static void change(tarn__plan_terrain *t, uint32_t item) {
  touch(t, item);
  if (t->is_changed[item]) return;
  t->is_changed[item] = true;
  t->changed[t->changed_count++] = item;
}

static void turn_key(tarn__plan_spot *spot, uint32_t item) {
  uint64_t value = spot->passed[item] ? UINT64_MAX : spot->at[item];
  uint64_t low = tarn__plan_mix(value + tarn__plan_mix(item + 1));
  spot->key.low ^= low;
  spot->key.high ^= tarn__plan_mix(low ^ UINT64_C(0x9e3779b97f4a7c15));
}

static void pass(tarn__plan_terrain *t, tarn__plan_spot *spot, uint32_t item) {
  turn_key(spot, item);
  spot->passed[item] = true;
  turn_key(spot, item);
  change(t, item);
}

static bool put_down(tarn__plan_terrain *t, tarn__plan_spot *spot,
                     uint32_t item) {
  const tarn__plan_neighbours *near = &t->near;
  turn_key(spot, item);
  spot->least[item] = TARN__PLAN_IS_DOWN;
  change(t, item);
  for (uint32_t e = near->first[item]; e < near->first[item + 1]; e++) {
    uint32_t other = near->item[e];
    uint64_t end = spot->at[item] + tarn__plan_above(near, item, e);
    if (spot->at[other] >= end || spot->least[other] == TARN__PLAN_IS_DOWN) {
      continue;
    }
    turn_key(spot, other);
    spot->passed[other] = false;
    spot->at[other] = spot->least[other] =
        tarn__plan_settle(&t->allowed, other, end);
    turn_key(spot, other);
    if (!ends_within(t, other, spot->at[other])) return false;
    change(t, other);
  }
  return true;
}

// --- what was passed over ---------------------------------------------------

// The least end of what may lift |item| and was not passed over itself.
static uint64_t lift_of(const tarn__plan_terrain *t,
                        const tarn__plan_spot *spot, uint32_t item) {
  const tarn__plan_neighbours *near = &t->near;
  uint64_t best = TARN__PLAN_IS_DOWN - 1;
  for (uint32_t e = near->first[item]; e < near->first[item + 1]; e++) {
    uint32_t other = near->item[e];
    if (spot->least[other] == TARN__PLAN_IS_DOWN || spot->passed[other])
      continue;
    uint64_t end = spot->at[other] + tarn__plan_below(near, e);
    if (end < best) best = end;
  }
  return best;
}

// What was passed over may be lifted by another that was, when that is lifted.
static void lift_others(const tarn__plan_terrain *t, tarn__plan_spot *spot,
                        uint32_t item) {
  const tarn__plan_neighbours *near = &t->near;
  for (uint32_t e = near->first[item]; e < near->first[item + 1]; e++) {
    uint32_t other = near->item[e];
    if (!spot->passed[other] || spot->least[other] == TARN__PLAN_IS_DOWN)
      continue;
    uint64_t end = spot->least[item] + tarn__plan_above(near, item, e);
    if (end < spot->least[other]) spot->least[other] = end;
  }
}

static void bring_least(const tarn__plan_spot *spot, uint32_t *items,
                        size_t count) {
  size_t best = 0;
  for (size_t i = 1; i < count; i++) {
    if (spot->least[items[i]] < spot->least[items[best]]) best = i;
  }
  uint32_t item = items[best];
  items[best] = items[0];
  items[0] = item;
}

static bool lift_passed(tarn__plan_terrain *t, const tarn__plan_spot *from,
                        tarn__plan_spot *spot) {
  size_t count = 0;
  for (size_t i = 0; i < from->open_count; i++) {
    uint32_t item = from->open[i];
    if (!spot->passed[item] || spot->least[item] == TARN__PLAN_IS_DOWN)
      continue;
    t->passed[count++] = item;
    spot->least[item] = lift_of(t, spot, item);
  }
  for (size_t i = 0; i < count; i++) {
    bring_least(spot, t->passed + i, count - i);
    uint32_t item = t->passed[i];
    if (spot->least[item] == TARN__PLAN_IS_DOWN - 1) return false;
    spot->least[item] = tarn__plan_settle(&t->allowed, item, spot->least[item]);
    if (!ends_within(t, item, spot->least[item])) return false;
    lift_others(t, spot, item);
    if (spot->least[item] != from->least[item]) change(t, item);
  }
  return true;
}

// --- the whole step ---------------------------------------------------------

// What is open in |from|, by its least offset in |to|.
static void merge(tarn__plan_terrain *t, const tarn__plan_spot *from,
                  tarn__plan_spot *to) {
  size_t changed = 0;
  for (size_t i = 0; i < t->changed_count; i++) {
    uint32_t item = t->changed[i];
    if (to->least[item] != TARN__PLAN_IS_DOWN) t->passed[changed++] = item;
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

static bool follow(tarn__plan_terrain *t, const tarn__plan_spot *from,
                   const uint32_t *choices, size_t passed,
                   tarn__plan_spot *to) {
  for (size_t i = 0; i < passed; i++)
    pass(t, to, choices[i]);
  if (!put_down(t, to, choices[passed])) return false;
  if (!lift_passed(t, from, to)) return false;
  merge(t, from, to);
  return stack_all(t, to);
}

bool tarn__plan_spot_step(tarn__plan_terrain *t, const tarn__plan_spot *from,
                          const uint32_t *choices, size_t passed,
                          tarn__plan_spot *to) {
  copy(t, from, to);
  t->changed_count = 0;
  t->first = UINT32_MAX;
  t->last = 0;
  bool holds = follow(t, from, choices, passed, to);
  for (size_t i = 0; i < t->changed_count; i++) {
    t->is_changed[t->changed[i]] = false;
  }
  return holds;
}

// --- choices ----------------------------------------------------------------

static bool comes_before(const tarn__plan_spot *spot, const uint32_t *ranks,
                         uint32_t a, uint32_t b) {
  if (spot->at[a] != spot->at[b]) return spot->at[a] < spot->at[b];
  return ranks[a] < ranks[b];
}

size_t tarn__plan_spot_choices(const tarn__plan_terrain *t,
                               const tarn__plan_spot *spot,
                               const uint32_t *ranks, uint32_t *choices,
                               size_t most) {
  uint64_t least_end = UINT64_MAX;
  size_t count = 0;
  for (size_t i = 0; i < spot->open_count; i++) {
    uint32_t item = spot->open[i];
    if (spot->least[item] >= least_end) break;
    if (spot->passed[item]) continue;
    uint64_t end = spot->at[item] + t->in->items[item].size;
    if (end < least_end) least_end = end;
  }
  for (size_t i = 0; i < spot->open_count; i++) {
    uint32_t item = spot->open[i];
    if (spot->least[item] >= least_end) break;
    if (spot->passed[item]) continue;
    size_t to = count < most ? count++ : most;
    if (to == most && !comes_before(spot, ranks, item, choices[most - 1])) {
      continue;
    }
    if (to == most) to--;
    for (; to > 0 && comes_before(spot, ranks, item, choices[to - 1]); to--) {
      choices[to] = choices[to - 1];
    }
    choices[to] = item;
  }
  return count;
}
